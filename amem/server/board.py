"""Turn a harness's own subagents into tasks: the spawn does not run, and what it asked for is on the board.

Called after the guard let the tool pass, for sessions whose subagents are the board's. The refusal is what the model reads next,
so it says what was filed, where results come back, and what to do now. A spawn that cannot be filed does not run either.
"""

import json

from amem.errors import AmemError
from amem.harnesses import spawns
from amem.ledger.store import FannedOut, Filed, Spawn
from amem.memory.session import Memory, Session
from amem.server import guard
from amem.server.replies import Reply
from amem.server.task_tools import fan_out
from amem.typed import Any

CALL_FAN_OUT = 'call the memory tool `fan_out` with {"tasks": [{"title": …, "body": …}]}, each prompt in clear text and whole'
SEALED = f"amem: subagents are tasks here, and this one's prompt reached the hook encrypted: {CALL_FAN_OUT}. It files them on the board."
EMPTY = f"amem: this session has no subagents to start or direct; tasks on the board take their place. For new ones {CALL_FAN_OUT}."


def spawn(body: bytes, harness: str) -> spawns.Spawn | None:
    """The spawn that a pre-tool event asks for; None for any other tool. Pure."""
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        return None
    name, given = guard.tool_call(event) if isinstance(event, dict) else (None, None)
    return spawns.read(harness, name, _object(given)) if isinstance(name, str) else None


def answer(memory: Memory, session: Session, asked: spawns.Spawn, harness: str) -> guard.Answer:
    """File what a spawn asks for, and refuse it with what was filed."""
    try:
        return guard.denial(_reason(memory, session, asked), harness)
    except AmemError as error:
        return guard.denial(f"amem: subagents are tasks here, and these could not be filed: {error.message}", harness)


def _reason(memory: Memory, session: Session, asked: spawns.Spawn) -> str:
    if not asked.work:
        return SEALED if asked.sealed else EMPTY
    match fan_out(memory, session, [Spawn(work.title, work.body) for work in asked.work]):
        case Reply(data=data):
            return f"amem: subagents are tasks here, and these could not be filed: {data['reason']}"
        case FannedOut(children=children, continuation=then):
            told = ["amem: subagents are tasks here; others run them. " + "; ".join(map(_child, children)) + "."]
            if then is not None:
                told.append(
                    f"{then.id} resumes your task with their handoffs once they are done. Do your own part, then call `task_complete` "
                    "with your handoff and end; do not wait for them."
                )
            elif session.holding is not None:
                told.append("All of it is done: open the handoffs with `get` and go on.")
            else:
                told.append("They wait for the owner's word; their results come back as handoffs. Go on with your own part.")
            return " ".join(told)


def _child(one: Filed) -> str:
    task = one.task
    if not one.existed:
        return f"filed {task.id} ({task.title})"
    where = f", its handoff is {task.handoffs[-1]}" if task.handoffs else ""
    return f"{task.id} ({task.title}) was there already: {task.status}{where}"


def _object(given: Any) -> Any:
    """A tool's input; some harnesses give it as JSON text."""
    if isinstance(given, str):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given

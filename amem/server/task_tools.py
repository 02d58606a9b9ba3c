"""The task tools: the ledger as a session sees it, under its domain, its label and its claim.

Nothing here rescores, admits or invalidates; whether what a session files starts admitted is the policy's word.
"""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from amem.ledger import views
from amem.ledger.draft import DEFAULT_PRIORITY, Draft
from amem.ledger.reading import Filter
from amem.ledger.store import FannedOut, Holding, Spawn
from amem.ledger.task import OPEN, Status, Task
from amem.memory import fence, handoff, outcomes
from amem.memory.admission import admitted
from amem.memory.session import Memory, Session
from amem.model.label import lowest
from amem.server import launcher_tools, standing
from amem.server.replies import Reply, held, refusal, refused
from amem.server.table import LEFT_BY, OFFSET, Arguments, Tool, objects, present, text, texts, whole

PENDING = "it is examined once you have ended, and completed if that finds it done. End now."
UNCHECKED = "task_release with a handoff: the checks of a task run under `amem work`, once its harness has ended"
CANDIDATES = 50
"""How many tasks are looked at for one whose label fits, when the first one's does not."""
FIRST = 8
"""Tasks by rank that are looked at before a claim: it costs a third of it, however many tasks there are."""


def _create(memory: Memory, session: Session, given: Arguments) -> Reply:
    body = given.get("body", "")
    needs = tuple(given.get("depends_on", ()))
    for one in needs:
        standing.visible(memory, session, one)
    draft = Draft(
        domain=session.domain, title=given["title"], body=body, priority=given["priority"], requires=tuple(given.get("requires", ())),
        depends_on=needs, check=tuple(given.get("check", ())), label=standing.carried(memory, session),
    )  # fmt: skip
    plain = standing.examined((draft.title, body, *draft.check))
    filed = standing.answered(
        memory.ledger.create(
            draft, by=session.principal, under=session.holding, session=session.id,
            admit_own=plain and admitted(memory, session, draft.requires), capabilities=standing.capabilities(memory, session),
        )
    )  # fmt: skip
    return Reply(data=views.shown(filed.task))


def _list(memory: Memory, session: Session, given: Arguments) -> Reply:
    limit = standing.readable(memory, session)
    page = memory.ledger.list(
        Filter(
            domains=(session.domain,),
            statuses=(Status(given["status"]),) if "status" in given else OPEN,
            origin=given.get("origin"),
            session=session.id if given["mine"] else None,
            without=standing.labels_over(memory, session, limit),
            limit=given["limit"],
            offset=given["offset"],
        )
    )
    standing.served(memory, session, "task_list", page.tasks, "".join(task.title for task in page.tasks))
    more = given["offset"] + len(page.tasks) < page.total
    return Reply(data={"tasks": [standing.shown(session, task) for task in page.tasks], "total": page.total, "more": more})


def _show(memory: Memory, session: Session, given: Arguments) -> Reply:
    task = standing.visible(memory, session, given["id"])
    text = memory.ledger.text(task.domain, task.body) or ""
    shown = standing.shown(session, task, text)
    body = "" if standing.withheld(session, task) or standing.WAITS in shown["title"] else text
    standing.served(memory, session, "task_show", (task,), task.title + body)
    return Reply(data={**shown, "handoffs": list(task.handoffs)}, text=fence.fenced(body, fence.mark()) if body else None)


def _claim(memory: Memory, session: Session, given: Arguments) -> Reply:
    ledger, id = memory.ledger, given.get("id")
    if (before := standing.still_held(memory, session)) is not None:
        if id in (None, before.id):
            return _claimed(memory, session, before)
        return refusal("conflict", f"this session holds {before.id}: complete or release it first", "task_complete", id=before.id)
    granted = standing.capabilities(memory, session)
    capabilities = tuple(given.get("capabilities", granted))
    if beyond := sorted({*capabilities} - {*granted}):
        return refusal("refused", f"{session.principal} is not granted {', '.join(beyond)}", "leave capabilities out")
    how: dict[str, Any] = {
        "by": session.principal, "session": session.id, "capabilities": capabilities, "lease_ms": given["lease_s"] * 1000,
    }  # fmt: skip
    if id is not None:
        task = standing.visible(memory, session, id)
        if (over := standing.over(memory, session, task)) is not None:
            return refusal("over_label", over)
        return _claimed(memory, session, standing.answered(ledger.claim_one(task.id, **how)))
    # A task over its label is no session's to touch: to claim it and give it back would be two events for each that asks.
    found = _fitting(memory, session, how) if _over_first(memory, session) else ledger.claim(session.domain, **how)
    if found is not None and (over := standing.over(memory, session, found)) is not None:
        # It was filed in this moment, or comes after many that this session cannot do.
        ledger.release(found.id, by=session.principal, fence=found.fence, session=session.id, why=over)
        found = _fitting(memory, session, how)
    return Reply(data={"none": True}) if found is None else _claimed(memory, session, found)


def _heartbeat(memory: Memory, session: Session, given: Arguments) -> Reply:
    holding = standing.holding(memory, session, given)
    task = standing.answered(memory.ledger.heartbeat(holding.task, by=session.principal, fence=holding.fence, session=session.id))
    return Reply(data=present({"lease_ends_at": views.shown(task).get("lease_ends_at")}))


def _complete(memory: Memory, session: Session, given: Arguments) -> Reply:
    holding = standing.holding(memory, session, given)
    if "handoff" in given:
        _leave(memory, session, given)
    task = memory.ledger.show(holding.task)
    settles = given[LEFT_BY] == launcher_tools.LAUNCHER
    if not settles and _offers(memory, session, holding, task):
        session.offered = True
        return Reply(data={**views.shown(task), "pending": PENDING})
    check = bool(task.check) and (settles or memory.grants.gates.complete_requires == "check")
    hint = UNCHECKED if check else "task_complete with `handoff`: what was done, what is open"
    claim: dict[str, Any] = {"by": session.principal, "fence": holding.fence, "session": session.id}
    done = standing.answered(memory.ledger.complete(holding.task, **claim, check=check), hint)
    standing.let_go(session, holding)
    return Reply(data=views.shown(done))


def _offers(memory: Memory, session: Session, holding: Holding, task: Task) -> bool:
    """Whether this is all that a completion needs but for what the launcher finds: its claim, which holds and has left a handoff."""
    if holding != session.examined or not (task.check or session.graded):
        return False
    return standing.still_held(memory, session) is not None and task.handed_off == holding.fence


def _release(memory: Memory, session: Session, given: Arguments) -> Reply:
    holding = standing.holding(memory, session, given)
    why, blocker = given.get("why"), given.get("blocker")
    task = memory.ledger.show(holding.task)
    if why or blocker:
        standing.may_say(memory, session, task, "say why in `handoff` instead")
    if not standing.examined(filter(None, (why, blocker))):  # shown beside the task's state, in no fence
        return refusal("refused", "the reason of a release instructs no reader: say it in `handoff`, where the owner judges it", "handoff")
    if "handoff" in given:
        _leave(memory, session, given)
    claim: dict[str, Any] = {"by": session.principal, "fence": holding.fence, "session": session.id}
    if (over := _over_budget(memory, task)) is not None:
        done = standing.answered(memory.ledger.block(task.id, on=over, **claim))
    else:
        done = standing.answered(memory.ledger.release(task.id, why=why, blocker=blocker, **claim))
    standing.let_go(session, holding)
    return Reply(data=views.shown(done))


def _post(memory: Memory, session: Session, given: Arguments) -> Reply:
    task = standing.visible(memory, session, given["id"])
    standing.may_say(memory, session, task, "leave a handoff instead")
    standing.examined((given["text"],))
    return Reply(data={"id": memory.ledger.post(task.id, by=session.principal, text=given["text"]).id})


def _fan_out(memory: Memory, session: Session, given: Arguments) -> Reply:
    spawns = [Spawn(part["title"], part["body"], _maybe(part.get("requires"))) for part in given["tasks"]]
    match fan_out(memory, session, spawns, given.get("continuation")):
        case FannedOut(children=children, continuation=then):
            rows = [
                present({"id": one.task.id, "existed": one.existed, "handoff": one.task.handoffs[-1] if one.task.handoffs else None})
                for one in children
            ]
            return Reply(data=present({"children": rows, "continuation": then.id if then else None}))
        case Reply() as no:
            return no
        case never:
            assert_never(never)


def fan_out(memory: Memory, session: Session, spawns: Sequence[Spawn], continuation: str | None = None) -> FannedOut | Reply:
    """File parts of the held task, or, under none, proposed tasks; or the refusal. Raises UsageError and what the ledger raises."""
    words = [word for one in spawns for word in (one.title, one.body)]
    try:
        plain = standing.examined([*words, *([continuation] if continuation else [])])
        held = memory.ledger.show(session.holding.task).requires if session.holding else ()
        asked = {requires: plain and admitted(memory, session, requires) for requires in {held, *(one.needs(held) for one in spawns)}}
        return standing.answered(
            memory.ledger.fan_out(
                [one._replace(admit=asked[one.needs(held)]) for one in spawns], domain=session.domain, by=session.principal,
                under=session.holding, session=session.id,
                continuation=continuation, admit_own=asked[held],
                capabilities=standing.capabilities(memory, session), label=standing.carried(memory, session),
            )
        )  # fmt: skip
    except standing.No as no:
        return no.reply


def _over_first(memory: Memory, session: Session) -> bool:
    """Say whether one of the first tasks by rank has a label over the session's."""
    first = Filter((session.domain,), statuses=(Status.ADMITTED,), limit=FIRST, count_to=1)
    return any(standing.over(memory, session, task) is not None for task in memory.ledger.list(first).tasks)


def _fitting(memory: Memory, session: Session, how: Mapping[str, Any]) -> Task | None:
    """The first task by rank that can be claimed and whose label fits, where the very first one's did not."""
    readable = standing.readable(memory, session)
    most = readable if session.ceiling is None else lowest(readable, session.ceiling)
    over = standing.labels_over(memory, session, most)
    for task in memory.ledger.list(Filter((session.domain,), statuses=(Status.ADMITTED,), without=over, limit=CANDIDATES)).tasks:
        if standing.over(memory, session, task) is None and not task.open_needs and task.allows(how["capabilities"]):
            taken = memory.ledger.claim_one(task.id, **how)
            if isinstance(taken, Task):
                return taken
    return None


def _claimed(memory: Memory, session: Session, task: Task) -> Reply:
    session.hold(task.id, task.fence)
    standing.served(memory, session, "task_claim", (task,), task.title)
    return Reply(data=views.shown(task))


def _over_budget(memory: Memory, task: Task) -> str | None:
    """Why a task that goes back undone is not for the next worker: what it may cost is spent."""
    if task.budget_tokens is None:
        return None
    from amem.egress import reading

    used = reading.spent(memory.root, task.id)
    return f"its budget of {task.budget_tokens} tokens is spent: {used} were used" if used >= task.budget_tokens else None


def _leave(memory: Memory, session: Session, given: Arguments) -> None:
    match handoff.handoff(memory, session, given["handoff"], left_by=given[LEFT_BY]):
        case outcomes.Written():
            return
        case outcomes.Held() as waiting:
            raise standing.No(held(waiting))
        case outcomes.Refused() as no:
            raise standing.No(refused(no))
        case never:
            assert_never(never)


def _maybe(words: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(words)


_ID = text("task-…", minLength=1, maxLength=100)
_MINE = text("the task; default: the one you hold", minLength=1, maxLength=100)
_NUMBER = whole("the number of your claim; default: the server knows it", 1, 1 << 40)
_REQUIRES = texts("what a claimer must hold: code, human, irreversible, …", 16, 64)
_PART = objects(
    ("title", "body"),
    title=text("one line", minLength=1, maxLength=200),
    body=text("all that is needed to do it: nobody sees this conversation", minLength=1),
    requires=texts("default: as the task you hold", 16, 64),
)

TOOLS: Mapping[str, Tool] = {
    "task_create": Tool(
        "File a task for somebody else. Under a task you hold it becomes a part of that one.",
        objects(
            ("title",),
            title=text("one line that says what is to be done", minLength=1, maxLength=200),
            body=text("Markdown: what, why, and how to tell that it is done"),
            priority=whole("higher first", 0, 9, default=DEFAULT_PRIORITY),
            requires=_REQUIRES,
            depends_on=texts("ids of tasks that must be completed first"),
            check=texts("shell commands that must succeed before it counts as done", 20),
        ),
        standing.told(_create),
        reads=False,
    ),
    "task_list": Tool(
        "List tasks by rank, without their bodies. Default: the open ones.",
        objects(
            (),
            status=text("only these", enum=[status.value for status in Status]),
            origin=text("only what was filed from there: a prefix, such as task:task-…", maxLength=200),
            mine={"type": "boolean", "default": False, "description": "only what this session holds"},
            limit=whole("how many", 1, 100, default=20),
            offset=OFFSET,
        ),
        standing.told(_list),
        reads=True,
    ),
    "task_show": Tool(
        "Open one task: its state, its body as data, and the ids of the handoffs left on it (open those with `get`).",
        objects(("id",), id=_ID),
        standing.told(_show),
        reads=True,
    ),
    "task_claim": Tool(
        "Take a task: the one named, else the best you may take. Yours until the lease ends; `task_heartbeat` renews it.",
        objects(
            (),
            id=text("default: the first by rank", minLength=1, maxLength=100),
            capabilities=texts("act as one who holds only these; default: all you are granted", 16, 64),
            lease_s=whole("seconds until it falls back into the pool", 1, 86_400, default=600),
        ),
        standing.told(_claim),
        reads=False,
    ),
    "task_heartbeat": Tool(
        "Renew the lease of a task you claimed yourself. On `stale_fence` stop: it is no longer yours.",
        objects((), id=_MINE, fence=_NUMBER),
        standing.told(_heartbeat),
        reads=False,
    ),
    "task_complete": Tool(
        "Say that the task is done, with a handoff: what was done and why, what was checked, what is open.",
        objects((), id=_MINE, handoff=text("Markdown; needed unless you left a `handoff` since you took it", minLength=1), fence=_NUMBER),
        standing.told(_complete),
        reads=False,
        leaves=True,
    ),
    "task_release": Tool(
        "Give the task back undone. Name a `blocker` when something outside must change first.",
        objects(
            (),
            id=_MINE,
            handoff=text("Markdown: where it stands, for the next one", minLength=1),
            why=text("one sentence", maxLength=2000),
            blocker=text("what is missing, in the same words as before if it is the same", maxLength=2000),
            fence=_NUMBER,
        ),
        standing.told(_release),
        reads=False,
        leaves=True,
    ),
    "task_post": Tool(
        "Add a remark to a task.",
        objects(("id", "text"), id=_ID, text=text("the remark", minLength=1)),
        standing.told(_post),
        reads=False,
    ),
    "fan_out": Tool(
        "Split the task you hold: others do the parts, and a continuation resumes it with their handoffs. Then complete with your own "
        "handoff and end; do not wait. Without a held task the parts are proposed to the owner.",
        objects(
            ("tasks",),
            tasks={"type": "array", "items": _PART, "maxItems": 99, "description": "the parts, each on its own"},
            continuation=text("what is to be done once all parts are"),
        ),
        standing.told(_fan_out),
        reads=False,
    ),
}  # fmt: skip

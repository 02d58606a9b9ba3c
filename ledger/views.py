"""What a task's fields and events mean to a reader: why it cannot be claimed, how its attempts went, its JSON shape.

Pure. Instants leave as text here and nowhere else.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from amem.ledger import events as ev
from amem.ledger.rank import Move
from amem.ledger.task import HUMAN, LEASE_ENDED, Status, Task
from amem.model.clock import stamp
from amem.typed import Any


@dataclass(frozen=True, slots=True)
class Blocker:
    """One reason why a task cannot be claimed, and the command that helps."""

    kind: str
    """`admission`, `dependency`, `capability`, `lease`, `human`, `blocked` or `closed`."""
    what: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One claim of a task, from its events."""

    fence: int
    holder: str
    session: str | None
    claimed_ms: int
    ended_ms: int | None = None
    outcome: str = "running"
    """`completed`, `released`, `lease ended`, `blocked`, `invalidated`, or `running`."""
    handoff: str | None = None
    check: str | None = None
    grade: str | None = None
    why: str | None = None
    heartbeats: int = 0


def blockers(task: Task, needs: Mapping[str, Task], capabilities: Collection[str], at_ms: int) -> tuple[Blocker, ...]:
    """Why somebody with these capabilities cannot claim the task now; empty when they can. `needs` are the tasks it depends on."""
    found: list[Blocker] = []
    if not task.status.open:
        return (Blocker("closed", f"it is {task.status}" + (f": {task.reason}" if task.reason else ""), f"amem task retry {task.id}"),)
    if task.status is Status.PROPOSED:
        review = " (it asks for more than its filer holds)" if task.review else ""
        found.append(Blocker("admission", f"it is proposed{review}", f"amem task admit {task.id}"))
    if task.status is Status.BLOCKED:
        found.append(Blocker("blocked", task.blocked_on or "it is blocked", f"amem task unblock {task.id}"))
    if task.status is Status.CLAIMED and (task.lease_ends_ms or 0) > at_ms:
        found.append(Blocker("lease", f"{task.holder} holds it until {instant(task.lease_ends_ms or 0)}", f"amem task show {task.id}"))
    found += [_need(one, needs.get(one)) for one in task.depends_on if one not in needs or needs[one].status is not Status.COMPLETED]
    if not task.allows(capabilities):
        lacking = [word for word in task.requires if word not in capabilities]
        if HUMAN in lacking:
            found.append(Blocker("human", "only a person can take it", f"amem task claim {task.id}"))
        if rest := [word for word in lacking if word != HUMAN]:
            found.append(Blocker("capability", f"it requires {', '.join(rest)}", "add it to the grant's capabilities in grants.toml"))
    return tuple(found)


def attempts(events: Iterable[ev.Event]) -> tuple[Attempt, ...]:
    """The claims of one task, oldest first, from its events in order."""
    found: list[Attempt] = []

    def last(event: ev.Event, **change: Any) -> None:
        # Only what belongs to the latest claim and did not come after its end, but for a check or a grade.
        if found and event.fence in (0, found[-1].fence):
            found[-1] = replace(found[-1], **change)

    for event in events:
        running = bool(found) and found[-1].ended_ms is None
        match event:
            case ev.Claimed():
                found.append(Attempt(fence=event.fence, holder=event.by, session=event.session, claimed_ms=event.at_ms))
            case ev.Heartbeat() if running:
                last(event, heartbeats=found[-1].heartbeats + 1)
            case ev.Released() if running:
                outcome = "lease ended" if event.why == LEASE_ENDED else "released"
                kept = event.handoff or found[-1].handoff
                last(event, ended_ms=event.at_ms, outcome=outcome, handoff=kept, why=event.why or event.blocker)
            case ev.HandoffLeft() if event.fence:
                last(event, handoff=event.handoff)
            case ev.Completed():
                last(event, ended_ms=event.at_ms, outcome="completed", handoff=event.handoff or found[-1].handoff)
            case ev.Invalidated() if running:
                last(event, ended_ms=event.at_ms, outcome="invalidated", why=event.why)
            case ev.Blocked():
                last(event, ended_ms=event.at_ms, outcome="blocked", why=event.on)
            case ev.Checked():
                last(event, check=event.state)
            case ev.Graded():
                last(event, grade=event.verdict)
    return tuple(found)


def shown(task: Task, body: str | None = None) -> dict[str, Any]:
    """The JSON of a task; absent rather than null."""
    keys: dict[str, Any] = {
        "id": task.id, "domain": task.domain, "title": task.title, "body": body, "status": task.status.value, "priority": task.priority,
        "rank": task.rank, "requires": list(task.requires), "origin": task.origin, "creator": task.creator, "holder": task.holder,
        "session": task.session, "fence": task.fence or None, "lease_ends_at": _maybe(task.lease_ends_ms), "attempts": task.fence,
        "depends_on": list(task.depends_on), "parent": task.parent, "review": task.review, "check": _check(task),
        "budget_tokens": task.budget_tokens, "label": task.label, "blocked_on": task.blocked_on, "reason": task.reason,
        "grade": task.grade, "handoffs": list(task.handoffs) or None, "lessons": list(task.lessons) or None,
        "created_at": instant(task.created_ms), "closed_at": _maybe(task.closed_ms),
    }  # fmt: skip
    return {name: value for name, value in keys.items() if value is not None}


def shown_event(number: int, event: ev.Event) -> dict[str, Any]:
    """The JSON of an event: `n at event by fence?` and its own keys."""
    keys = {"n": number, "at": instant(event.at_ms), "event": event.kind, "by": event.by}
    if event.fence:
        keys["fence"] = event.fence
    return {**keys, **{name: value for name, value in json.loads(ev.data(event)).items() if name not in keys and value is not None}}


def shown_attempt(attempt: Attempt) -> dict[str, Any]:
    """The JSON of an attempt, without what the meter knows of its session."""
    keys = {
        "session": attempt.session, "holder": attempt.holder, "fence": attempt.fence, "claimed_at": instant(attempt.claimed_ms),
        "ended_at": _maybe(attempt.ended_ms), "outcome": attempt.outcome, "why": attempt.why, "heartbeats": attempt.heartbeats,
        "handoff": attempt.handoff, "check": attempt.check, "grade": attempt.grade,
    }  # fmt: skip
    return {name: value for name, value in keys.items() if value is not None}


def shown_tree(tasks: Sequence[Task], *, open_only: bool = False) -> dict[str, Any]:
    """The JSON of a tree whose first task is its top: each task with its `children`, oldest first."""
    nodes: dict[str, dict[str, Any]] = {}
    for task in tasks:  # oldest first, so a parent stands before its children
        node = {**shown(task), "children": []}
        if task.parent in nodes and (task.status.open or not open_only):
            nodes[task.parent]["children"].append(node)
        nodes[task.id] = node
    return nodes[tasks[0].id]


def tree_text(top: Mapping[str, Any]) -> str:
    """The JSON text of a tree of any depth: written from a stack, where `json` would recurse."""
    parts: list[str] = []
    rest: list[Mapping[str, Any] | str] = [top]
    while rest:
        here = rest.pop()
        if isinstance(here, str):
            parts.append(here)
            continue
        own = {name: value for name, value in here.items() if name != "children"}
        parts.append(json.dumps(own, ensure_ascii=False, separators=(",", ":"))[:-1] + ',"children":[')
        rest.append("]}")
        for child in reversed(here["children"]):
            rest += [child, ","]
        if here["children"]:
            rest.pop()
    return "".join(parts)


def shown_move(move: Move) -> dict[str, Any]:
    """The JSON of a change of rank."""
    keys = {"id": move.id, "from": move.was, "to": move.rank, "reason": move.why, "serves": move.serves}
    return {name: value for name, value in keys.items() if value is not None}


def instant(ms: int) -> str:
    """An instant of the ledger as text: UTC, milliseconds, `Z`."""
    return stamp(datetime.fromtimestamp(ms / 1000, UTC))


def _maybe(ms: int | None) -> str | None:
    return None if ms is None else instant(ms)


def _check(task: Task) -> dict[str, Any] | None:
    if not task.check and task.checked is None:
        return None
    keys = {
        "state": task.checked or "unchecked", "tree": task.checked_tree, "at": _maybe(task.checked_ms), "commands": list(task.check),
        "stale": True if task.checked is not None and task.checked_fence != task.fence else None,
    }  # fmt: skip
    return {name: value for name, value in keys.items() if value is not None}


def _need(name: str, need: Task | None) -> Blocker:
    if need is None:
        return Blocker("dependency", f"{name} is not there", f"amem task show {name}")
    if need.status is Status.INVALIDATED:
        return Blocker("dependency", f"{name} ({need.title}) was invalidated", f"amem task retry {name}")
    return Blocker("dependency", f"{name} ({need.title}) is {need.status}", f"amem task why {name}")

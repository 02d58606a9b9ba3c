"""What the events come to: `project(state, event) -> state`, pure, the same for one event as for a million.

The databases keep its result as a table, so that nobody replays for an answer; `reindex` replays and compares. The statements that
claim, renew and complete in one go write what `changed` would (`sql/*.sql`); the suite holds them to it after every step.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from amem.ledger import events as ev
from amem.ledger.task import Status, Task

ERASED = "(erased)"
"""What stands where words were."""
BLOCKER_RUNS = 3
"""The same blocker this often running moves a task to `blocked`."""


@dataclass(frozen=True, slots=True)
class State:
    """Every task by id, and who waits on whom (`waiting[x]` are the tasks that depend on x, in no order)."""

    tasks: Mapping[str, Task] = field(default_factory=dict)
    waiting: Mapping[str, frozenset[str]] = field(default_factory=dict)


def project(state: State, event: ev.Event) -> State:
    """The state after one more event. The event must be one the state allows; the operations see to that."""
    new = changed(state.tasks, state.waiting, event)
    return State({**state.tasks, **{task.id: task for task in new}}, {**state.waiting, **_edges(state.tasks, state.waiting, new)})


def replay(events: Iterable[ev.Event]) -> State:
    """The state that all these events come to, in one pass."""
    tasks: dict[str, Task] = {}
    waiting: dict[str, frozenset[str]] = {}
    for event in events:
        new = changed(tasks, waiting, event)
        waiting.update(_edges(tasks, waiting, new))
        tasks.update((task.id, task) for task in new)
    return State(tasks, waiting)


def touched(event: ev.Event, waiting: Mapping[str, frozenset[str]]) -> Sequence[str]:
    """The ids of the tasks that `changed` needs in order to apply this event."""
    match event:
        case ev.Created(depends_on=needs, replaces=old):
            return [event.task, *needs, *((old, *waiting.get(old, ())) if old else ())]
        case ev.Completed():
            return [event.task, *waiting.get(event.task, ())]
        case _:
            return [event.task]


def changed(tasks: Mapping[str, Task], waiting: Mapping[str, frozenset[str]], event: ev.Event) -> tuple[Task, ...]:
    """The tasks that this event changes, as they are after it; the event's own task first."""
    if isinstance(event, ev.Created):
        return _created(tasks, waiting, event)
    task = tasks[event.task]
    at_ms = event.at_ms
    match event:
        case ev.Admitted():
            new = task._replace(status=Status.ADMITTED, changed_ms=at_ms)
        case ev.Claimed():
            new = task._replace(status=Status.CLAIMED, fence=event.fence, holder=event.by, session=event.session, lease_ms=event.lease_ms,
                lease_ends_ms=at_ms + event.lease_ms, reason=None, changed_ms=at_ms,
            )  # fmt: skip
        case ev.Heartbeat():
            new = task._replace(lease_ms=event.lease_ms, lease_ends_ms=at_ms + event.lease_ms, changed_ms=at_ms)
        case ev.Released():
            runs = _blocker_runs(task, event.blocker)
            task = _handed_off(task, event.handoff, event.fence)
            new = task._replace(status=Status.ADMITTED, holder=None, session=None, lease_ends_ms=None, reason=event.why or event.blocker,
                blocker=event.blocker, blocker_runs=runs, changed_ms=at_ms,
            )  # fmt: skip
        case ev.HandoffLeft():
            new = _handed_off(task, event.handoff, event.fence)._replace(changed_ms=at_ms)
        case ev.Completed():
            task = _handed_off(task, event.handoff, event.fence)
            new = task._replace(status=Status.COMPLETED, lease_ends_ms=None, closed_ms=at_ms, changed_ms=at_ms)
            freed = (tasks[one]._replace(open_needs=tasks[one].open_needs - 1) for one in sorted(waiting.get(task.id, ())))
            return (new, *freed)
        case ev.Invalidated():
            new = task._replace(status=Status.INVALIDATED, lease_ends_ms=None, reason=event.why, closed_ms=at_ms, changed_ms=at_ms)
        case ev.Posted():
            new = task._replace(changed_ms=at_ms)
        case ev.Rescored():
            new = task._replace(rank=event.rank, changed_ms=at_ms)
        case ev.Blocked():
            new = task._replace(status=Status.BLOCKED, holder=None, session=None, lease_ends_ms=None, blocked_on=event.on, reason=event.on,
                changed_ms=at_ms,
            )  # fmt: skip
        case ev.Unblocked():
            new = task._replace(status=Status.ADMITTED, blocked_on=None, blocker=None, blocker_runs=0, reason=event.why, changed_ms=at_ms)
        case ev.Checked():
            new = task._replace(checked=event.state, checked_tree=event.tree, checked_ms=at_ms, checked_fence=event.fence, changed_ms=at_ms)
        case ev.Graded():
            new = task._replace(grade=event.verdict, changed_ms=at_ms)
        case ev.Erased():
            reason, on = (ERASED if text is not None else None for text in (task.reason, task.blocked_on))
            new = task._replace(title=ERASED, body=None, twin=None, check=(), requires=(), reason=reason, blocked_on=on, blocker=None,
                blocker_runs=0, changed_ms=at_ms,
            )  # fmt: skip
        case _:
            raise AssertionError(f"no projection of {event.kind}")
    return (new,)


def _created(tasks: Mapping[str, Task], waiting: Mapping[str, frozenset[str]], event: ev.Created) -> tuple[Task, ...]:
    needs = [tasks[one] for one in event.depends_on]
    moved = [tasks[one] for one in sorted(waiting.get(event.replaces, ())) if tasks[one].status.open] if event.replaces else []
    new = Task(
        id=event.task, title=event.title, status=Status.PROPOSED, priority=event.priority, rank=event.rank, requires=event.requires,
        origin=event.origin, creator=event.by, parent=event.parent, chain=event.chain, twin=event.twin,
        open_needs=sum(one.status is not Status.COMPLETED for one in needs), dependents=len(moved), fence=0, holder=None, session=None,
        lease_ms=0, lease_ends_ms=None, handed_off=0, handoffs=(), review=event.review, reason=None, created_ms=event.at_ms,
        changed_ms=event.at_ms, closed_ms=None, depends_on=event.depends_on, body=event.body, check=event.check,
        budget_tokens=event.budget_tokens, label=event.label, lessons=event.lessons,
    )  # fmt: skip
    after = {one.id: one._replace(dependents=one.dependents + 1) for one in needs}
    if event.replaces:
        old = after.get(event.replaces, tasks[event.replaces])
        after[old.id] = old._replace(dependents=old.dependents - len(moved))
        again = old.status is Status.COMPLETED
        for one in moved:
            waits = tuple(dict.fromkeys(new.id if need == old.id else need for need in one.depends_on))
            after[one.id] = after.get(one.id, one)._replace(depends_on=waits, open_needs=one.open_needs + again)
    return (new, *after.values())


def _edges(tasks: Mapping[str, Task], waiting: Mapping[str, frozenset[str]], new: Sequence[Task]) -> dict[str, frozenset[str]]:
    """The entries of `waiting` that differ once `new` replaces its tasks."""
    edges: dict[str, frozenset[str]] = {}
    for task in new:
        before = tasks[task.id].depends_on if task.id in tasks else ()
        if before == task.depends_on:
            continue
        for need in before:
            edges[need] = edges.get(need, waiting.get(need, frozenset())) - {task.id}
        for need in task.depends_on:
            edges[need] = edges.get(need, waiting.get(need, frozenset())) | {task.id}
    return edges


def _handed_off(task: Task, handoff: str | None, fence: int) -> Task:
    if handoff is None:
        return task
    known = task.handoffs if handoff in task.handoffs else (*task.handoffs, handoff)
    return task._replace(handoffs=known, handed_off=fence or task.handed_off)


def _blocker_runs(task: Task, blocker: str | None) -> int:
    if blocker is None:
        return 0
    return task.blocker_runs + 1 if task.blocker is not None and same_blocker(task.blocker, blocker) else 1


def same_blocker(one: str, other: str) -> bool:
    """Whether two blockers are the same but for case and spacing."""
    return one.casefold().split() == other.casefold().split()

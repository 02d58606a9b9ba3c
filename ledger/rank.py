"""What comes first. Pure: tasks in, moves out; each move says why, and none changes the priority a task was filed with.

Rank moves in two places only: when a task is admitted, what it waits on rises above it (and so does what takes the place of such a need);
and in the owner's rescore, where everything is reckoned anew from the filed priority, so that rescoring twice moves nothing the second
time. A task that was filed from another one lifts nothing above that one while it is open.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from amem.ledger.task import HUMAN, Status, Task
from amem.typed import Any

CURATION = ("librarian", "check", "reconcile")
"""Families of tasks that tend the record."""
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """The weights of a rescore. This default is in force until a verified policy entry carries another."""

    name: str = "default"
    origins: Mapping[str, float] = field(default_factory=dict)
    """Added to the priority of a task whose origin begins so; the longest prefix counts."""
    unblock: float = 1.0
    """How far a task rises above the one that waits on it."""
    day: float = 0.1
    """Added for each whole day of waiting."""
    curation_floor: float = 0.1
    """The least share of completed work that should tend the record."""


DEFAULT = Rubric()


def rubric(found: Mapping[str, Any] | None) -> Rubric:
    """The rubric that a policy entry carries, checked by whoever read it; the default without one."""
    return Rubric(**found) if found else DEFAULT


@dataclass(frozen=True, slots=True)
class Move:
    """A rank that changes, and why."""

    id: str
    was: float
    rank: float
    why: str
    serves: str | None = None


def filed(priority: int, under: Task | None) -> tuple[int, float]:
    """Priority and rank of a new task; delegated work never outranks the task it serves."""
    if under is None:
        return priority, float(priority)
    held = min(priority, under.priority)
    return held, min(float(held), under.rank)


def raised(task: Task, waits_on: Sequence[Task], rubric: Rubric = DEFAULT, under: Task | None = None) -> tuple[Move, ...]:
    """The rises of the open tasks that a newly admitted one waits on, directly or not; none above the task that it was filed `under`."""
    rank = round(task.rank + rubric.unblock, 3)
    if under is not None and under.status.open and under.id not in (one.id for one in waits_on):
        rank = min(rank, max(task.rank, under.rank))
    why = f"{task.id} waits on it"
    return tuple(Move(one.id, one.rank, rank, why, task.id) for one in waits_on if one.status.open and one.rank < rank)


def rescored(tasks: Sequence[Task], *, at_ms: int, completed: int = 0, curated: int = 0, rubric: Rubric = DEFAULT) -> tuple[Move, ...]:
    """The moves of a rescore over all open tasks of a domain, given how many were completed and how many of those tended the record.

    A proposed task moves, but moves nothing else.
    """
    rank: dict[str, float] = {}
    why: dict[str, str] = {}
    serves: dict[str, str | None] = {}
    for task in tasks:
        rank[task.id], why[task.id] = _own(task, at_ms, rubric)
        serves[task.id] = None
    by_id = {task.id: task for task in tasks}
    for task, edges in _ordered(tasks):
        if task.status is Status.PROPOSED:
            continue
        for other, waits in edges:
            wanted = round(rank[task.id] + (rubric.unblock if waits else 0.0), 3)
            if waits and task.parent in by_id and task.parent not in task.depends_on:
                wanted = min(wanted, max(rank[task.id], rank[task.parent]))
            if wanted > rank[other]:
                rank[other], serves[other] = wanted, task.id
                why[other] = f"{task.id} waits on it" if waits else f"it serves {task.id}"
    if completed and curated / completed < rubric.curation_floor:
        _lift_curation(tasks, rank, why, serves, rubric)
    return tuple(
        Move(task.id, task.rank, rank[task.id], why[task.id], serves[task.id])
        for task in by_id.values()
        if abs(task.rank - rank[task.id]) >= 0.001
    )


def family(origin: str | None) -> str:
    """The kind of thing that filed a task: the origin's first word, `filed` when a person did."""
    return origin.split(":", 1)[0] if origin else "filed"


def _own(task: Task, at_ms: int, rubric: Rubric) -> tuple[float, str]:
    prefix = max((one for one in rubric.origins if (task.origin or "").startswith(one)), key=len, default=None)
    days = max(0, at_ms - task.created_ms) // _DAY_MS
    why = f"filed at {task.priority}"
    value = float(task.priority)
    if prefix is not None:
        value += rubric.origins[prefix]
        why += f", origin {prefix} {rubric.origins[prefix]:+g}"
    if days and rubric.day:
        value += days * rubric.day
        why += f", {days} days of waiting {days * rubric.day:+g}"
    return round(value, 3), why


def _lift_curation(
    tasks: Sequence[Task], rank: dict[str, float], why: dict[str, str], serves: dict[str, str | None], rubric: Rubric
) -> None:
    fit = [one for one in tasks if family(one.origin) in CURATION and HUMAN not in one.requires and one.status is Status.ADMITTED]
    if not fit:
        return
    best = max(fit, key=lambda one: rank[one.id])
    others = max((rank[one.id] for one in tasks if one is not best), default=rank[best.id])
    if others >= rank[best.id]:
        rank[best.id], serves[best.id] = round(others + rubric.unblock, 3), None
        why[best.id] = f"curation is under its floor of {rubric.curation_floor:g} of completed work"


def _ordered(tasks: Sequence[Task]) -> Iterable[tuple[Task, list[tuple[str, bool]]]]:
    """Each task after all that lift it, with the (id, is a dependency) that it lifts: its dependencies, and its children.

    Dependencies make no circle among themselves. Where a parent waits on its own child, or the like, the parent's lift gives way.
    """
    by_id = {task.id: task for task in tasks}
    lifts = {task.id: {need: True for need in task.depends_on if need in by_id} for task in tasks}
    for task in tasks:
        if task.parent in lifts:
            lifts[task.parent].setdefault(task.id, False)
    lifted_by: dict[str, dict[str, None]] = {name: {} for name in by_id}
    for name, edges in lifts.items():
        for other in edges:
            lifted_by[other][name] = None
    while True:
        try:
            order = list(TopologicalSorter(lifted_by).static_order())
            break
        except CycleError as error:
            for name, other in pairwise(error.args[1]):
                if lifts[name].get(other) is False:
                    del lifts[name][other], lifted_by[other][name]
                    break
            else:
                raise AssertionError("tasks wait on each other in a circle") from error
    return [(by_id[name], list(lifts[name].items())) for name in order]

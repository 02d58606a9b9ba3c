"""Who holds a task: the fence, the session and the lease, and what is said to a holder who came too late."""

from amem.ledger import events as ev
from amem.ledger.store import Refused, Why
from amem.ledger.task import LEASE_ENDED, Status, Task
from amem.ledger.work import Work
from amem.model.principal import SYSTEM


def held(work: Work, task: str, fence: int, session: str | None) -> Task | Refused:
    """The task, if this claim (and this session, where the caller is one) holds it now. Raises NotFoundError."""
    found = work.get(task)
    return found if found.held(fence, work.at(found), session) else stale(found, fence, session, work.at(found))


def stale(task: Task, fence: int, session: str | None, at_ms: int) -> Refused:
    """Why this claim does not hold the task."""
    if task.fence != fence:
        what = f"claim {fence} of {task.id} is over: the latest is {task.fence}"
    elif task.status is not Status.CLAIMED:
        what = f"claim {fence} of {task.id} is over: the task is {task.status}"
    elif (task.lease_ends_ms or 0) <= at_ms:
        what = f"claim {fence} of {task.id} is over: its lease ended"
    else:
        what = f"claim {fence} of {task.id} is held by another session"
    return Refused(Why.STALE, what, f"amem task show {task.id}")


def repeated(work: Work, kind: type[ev.Event], task: str, by: str, fence: int) -> Task | None:
    """The task, when the very claim that is refused now did the same thing as its last act."""
    history = work.tx.rows("events_of", {"id": task})
    last = next((row for row in reversed(history) if row[1] not in ("rescored", "posted")), None)
    return work.get(task) if last is not None and (last[1], last[3], last[5]) == (kind.kind, by, fence) else None


def judged(work: Work, task: str, fence: int | None, session: str | None) -> Task | Refused:
    """The task, if this claim holds it or has completed it: what its checks or a grader found may come after that. Without one, any."""
    found = work.get(task)
    if fence is None or found.held(fence, work.at(found), session) or (found.status is Status.COMPLETED and found.fence == fence):
        return found
    return stale(found, fence, session, work.at(found))


def give_back(work: Work, task: Task) -> Task:
    """The task, back in the pool if its lease has ended."""
    if task.at(work.at(task)) is not task:
        return work.do(ev.Released(task=task.id, by=SYSTEM, at_ms=work.at(task), fence=task.fence, why=LEASE_ENDED))
    return task


def sweep(work: Work) -> int:
    """Give back every task whose lease has ended; return how many."""
    ended = work.load(work.ids("ended", now=work.at()))
    return sum(give_back(work, one).status is Status.ADMITTED for one in ended)

"""Promotions: who raised which version of an entry to which tier, why, and what became of it.

The why stands here, beside the entry and not in it, and not in the approval task: whoever audits judges the change first. There is one
open proposal of an entry at most, and it is of one version.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from amem.ledger import events as ev
from amem.ledger.backend import Tx
from amem.ledger.draft import Draft
from amem.ledger.filing import admit_task, file
from amem.ledger.store import Filed, Refused, Why
from amem.ledger.work import Work
from amem.model.principal import SYSTEM
from amem.typed import Any, NamedTuple

VERIFIED = "verified"
PROMOTE = "promote:"
"""How the origin of an approval task begins; `<entry>@<version>` follows. Only a proposal files one."""


class State(StrEnum):
    """What became of a promotion."""

    BEGUN = "begun"
    """Allowed, and not yet in the record."""
    PROPOSED = "proposed"
    LANDED = "landed"
    DECLINED = "declined"
    CLOSED = "closed"
    """A proposal that a newer one, or the end of its task, took the place of."""


class Promotion(NamedTuple):
    """One promotion of one version."""

    seq: int
    entry: str
    version: int
    to: str
    by: str
    at_ms: int
    state: State
    why: str | None
    """None once the entry was erased."""
    task: str | None
    """The approval task of a proposal."""


def of(tx: Tx, entry: str) -> tuple[Promotion, ...]:
    """The promotions of an entry, in order."""
    return _read(tx.rows("promotions", {"entry": entry}))


def all_of(tx: Tx) -> tuple[Promotion, ...]:
    """The promotions of a domain's entries, in order."""
    return _read(tx.rows("all_promotions", {"domain": tx.domain}))


def _read(rows: Iterable[Sequence[Any]]) -> tuple[Promotion, ...]:
    found = (Promotion(*row) for row in rows)
    return tuple(one._replace(state=State(one.state)) for one in found)


def begin(work: Work, entry: str, version: int, to: str, by: str, why: str) -> int:
    """Note a promotion that is about to go into the record; its number."""
    return _add(work, entry, version, to, by, why, State.BEGUN, None, work.at())


def propose(work: Work, entry: str, version: int, by: str, why: str, draft: Draft) -> Filed | Refused:
    """File the approval task of a proposal, and close an open one of an older version."""
    work.tx.serialise()
    older = []
    for one in of(work.tx, entry):
        if one.to != VERIFIED or one.task is None:
            continue
        if one.version == version and one.state is State.DECLINED:
            again = f"version {version} of {entry} was declined: it can be proposed again when the entry has changed"
            return Refused(Why.REFUSED, again, f"amem promotions {entry}")
        if one.state is State.PROPOSED:
            if one.version == version and work.get(one.task).status.open:
                return Refused(Why.CONFLICT, f"version {version} of {entry} is proposed already: {one.task}", f"amem task show {one.task}")
            older.append(one)
    for one in older:
        task = work.get(one.task or "")
        if task.status.open:
            why_closed = f"version {version} was proposed in its place"
            work.do(ev.Invalidated(task=task.id, by=SYSTEM, at_ms=work.at(task), fence=task.fence, why=why_closed))
        work.tx.run("settle_promotion", {"seq": one.seq, "state": State.CLOSED.value})
    task = file(work, draft, by=by, under=None, session=None, origin=draft.origin, twin=None, review="human")
    admit_task(work, task, SYSTEM)
    _add(work, entry, version, VERIFIED, by, why, State.PROPOSED, task.id, task.created_ms)
    return Filed(work.tasks[task.id])


def settle(work: Work, entry: str, task: str, by: str, state: State, why: str | None) -> Promotion | Refused:
    """Say that a proposal landed or was declined, and close its task."""
    work.tx.serialise()
    found = next((one for one in of(work.tx, entry) if one.task == task), None)
    held = work.get(task)
    if found is None or found.state is not State.PROPOSED or not held.status.open:
        return Refused(Why.CONFLICT, f"{task} holds no open proposal", f"amem promotions {entry}")
    at_ms = work.at(held)
    if state is State.LANDED:
        work.do(ev.Completed(task=task, by=by, at_ms=at_ms, fence=held.fence))
    else:
        work.do(ev.Invalidated(task=task, by=by, at_ms=at_ms, fence=held.fence, why=why or "declined"))
    work.tx.run("settle_promotion", {"seq": found.seq, "state": state.value})
    return found._replace(state=state)


def _add(work: Work, entry: str, version: int, to: str, by: str, why: str, state: State, task: str | None, at_ms: int) -> int:
    values = {
        "entry": entry, "version": version, "tier": to, "principal": by, "at_ms": at_ms, "state": state.value, "why": why, "task": task,
    }  # fmt: skip
    return int(work.tx.rows("promote", values)[0][0])

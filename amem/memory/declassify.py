"""Lower the label of an entry: the owner's logged act, and the only thing that lowers one."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from amem.errors import ConflictError, NotFoundError
from amem.logs.schema import MemoryAct
from amem.memory.session import Memory, Session
from amem.model.clock import stamp
from amem.model.entry import Status
from amem.model.label import Label
from amem.policy import request
from amem.record.rows import Filter
from amem.typed import NamedTuple

_TRIES = 20


class Lowered(NamedTuple):
    """Something whose label was, or would be, lowered: an entry, a session or a tree."""

    id: str
    was: Label
    to: Label


def entry(memory: Memory, id: str, to: Label) -> Lowered:
    """What lowering an entry would do. Raises NotFoundError, ConflictError (it is not above that label, or no longer there)."""
    with memory.lock:
        row = memory.index.get(id)
    if row is None or row.status is Status.ERASED:
        raise NotFoundError(f"there is no entry {id[:60]}", hint="amem list")
    if not row.classification.exceeds(to):
        raise ConflictError(f"{id} is {row.classification}: nothing to lower", hint=f"amem get {id}")
    return Lowered(id, row.classification, to)


def written_by(memory: Memory, session: str, to: Label) -> tuple[Lowered, ...]:
    """The entries that a session wrote which stand above a label."""
    with memory.lock:
        rows = memory.index.list(Filter(max_label=Label.RESTRICTED), session=session, status=None, limit=0).rows
    return tuple(
        Lowered(row.id, row.classification, to) for row in rows if row.classification.exceeds(to) and row.status is not Status.ERASED
    )


def lower(memory: Memory, session: Session, entries: Sequence[Lowered], why: str, *, subject: str) -> None:
    """Lower entries, once the act on `subject` was decided. One that is served under a label its file does not say gets that right too.

    The log is written first: an index that is built anew takes it from there. Raises OSError.
    """
    memory.append(
        MemoryAct(
            at=stamp(memory.clock()), session=session.id, principal=session.principal, act=request.DECLASSIFY, subject=subject,
            entries=tuple(one.id for one in entries), why=why, to=entries[0].to if entries else None,
        )
    )  # fmt: skip
    for one in entries:
        path = _lowered(memory, one)
        with memory.lock:
            memory.index.upsert(path, lowers=True)


def _lowered(memory: Memory, one: Lowered) -> Path:
    """Write the next version of an entry under its label. What others write to it meanwhile is no reason to stop in the middle."""
    for _ in range(_TRIES):
        found = memory.store.read(one.id)
        with suppress(ConflictError):
            return memory.store.replace(replace(found, version=found.version + 1, classification=one.to))
    raise ConflictError(f"{one.id} is written to all the time", hint="give the command again")

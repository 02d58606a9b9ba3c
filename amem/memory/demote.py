"""Take an entry out of service: the owner's act. The file stays as a tombstone that says so; readers are told it is gone."""

from dataclasses import replace

from amem.errors import ConflictError, NotFoundError
from amem.logs.schema import MemoryAct
from amem.memory.held import act
from amem.memory.session import Memory, Session
from amem.memory.write import indexed
from amem.model.clock import stamp
from amem.model.entry import Entry, Status
from amem.model.ids import domain_of
from amem.policy import request


def demote(memory: Memory, session: Session, id: str, why: str, *, successor: str | None = None, dry_run: bool = False) -> Entry:
    """Demote an entry, naming what stands in its place where something does, and return it as it stands then.

    Raises RefusedError (only the owner may), NotFoundError, ConflictError (it is demoted or erased already), OSError.
    """
    if not session.is_owner:
        act(memory, session, request.DEMOTE, domain_of(id), id)  # before anybody else learns whether it is there
    with memory.lock:
        read = memory.index.read(id)
        other = memory.index.get(successor) if successor is not None else None
    if read is None:
        raise NotFoundError(f"there is no entry {id[:60]}", hint="amem list")
    entry = read.entry
    if successor is not None and (other is None or other.status is not Status.ACTIVE or successor == id):
        raise NotFoundError(f"{successor[:60]} is no active entry that could stand in its place", hint="amem list")
    if entry.status in (Status.DEMOTED, Status.ERASED):
        raise ConflictError(f"{id} is {entry.status} already", hint=f"amem why {id}")
    gone = replace(entry, version=entry.version + 1, status=Status.DEMOTED, superseded_by=successor or entry.superseded_by)
    if dry_run:
        return gone
    act(memory, session, request.DEMOTE, entry.domain, id)
    indexed(memory, memory.store.replace(gone))
    memory.append(
        MemoryAct(
            at=stamp(memory.clock()), session=session.id, domain=entry.domain, principal=session.principal, act=request.DEMOTE,
            entries=(id,), why=why,
        )
    )  # fmt: skip
    return gone

"""What becomes of a held write: its release into the record, or its end.

The order of a release: the decision is logged, the entry goes into the record exactly as it was written, then what it replaces is
marked, then the write is logged, and only then is the held file removed. So a release that was cut short is done again and finds its own
entry. Nobody but the owner releases or drops, and nothing here judges the text: the policy does.
"""

import logging

from amem.errors import AmemError, ConflictError, RefusedError
from amem.memory.owner_tasks import tasks
from amem.memory.session import Memory, Session
from amem.memory.write import indexed, logged, mark
from amem.model.entry import Entry
from amem.policy import request
from amem.policy.decision import Decision
from amem.record import quarantine
from amem.record.quarantine import HeldWrite
from amem.settings import database
from amem.typed import NamedTuple

_log = logging.getLogger(__name__)


class Released(NamedTuple):
    """A held write that is in the record now."""

    held: str
    entry: Entry


def release(memory: Memory, session: Session, held_id: str, why: str | None = None) -> Released:
    """Put a held write into the record as it was written, with its author.

    Raises NotFoundError, RefusedError (only the owner may), ConflictError (another entry has its id), Malformed, OSError.
    """
    if not session.is_owner:
        act(memory, session, request.RELEASE, session.domain, held_id)  # before anybody else learns whether it is there
    with quarantine.judging(memory.root):
        held = quarantine.show(memory.root, held_id)
        act(memory, session, request.RELEASE, held.entry.domain, held_id)
        entry = held.entry
        try:
            path = memory.store.put(entry)
        except ConflictError:
            path = memory.store.path(entry.id)
            if memory.store.load(path).entry != entry:
                raise
        indexed(memory, path)
        for replaced in entry.supersedes:
            mark(memory, replaced, entry.id)
        memory.append(logged(memory, session, entry, entry=entry.id, held=held_id))
        quarantine.remove(memory.root, held_id)
    _close(memory, session, held, f"released as {entry.id}", why)
    return Released(held_id, entry)


def drop(memory: Memory, session: Session, held_id: str, why: str | None = None) -> None:
    """Delete a held write and what stands beside it; nothing goes into the record.

    Raises NotFoundError, RefusedError (only the owner may), OSError.
    """
    if not session.is_owner:
        act(memory, session, request.DROP, session.domain, held_id)
    with quarantine.judging(memory.root):
        held = quarantine.show(memory.root, held_id)
        act(memory, session, request.DROP, held.entry.domain, held_id)
        quarantine.remove(memory.root, held_id)
    _close(memory, session, held, "dropped", why)


def act(memory: Memory, session: Session, action: str, domain: str, subject: str) -> Decision:
    """Ask the policy whether this session may do an owner's act. Raises RefusedError; the decision is logged either way."""
    decision = memory.door.decide(
        request.owner_act(
            action, principal=session.principal, owner=memory.grants.owner, domain=domain, session=session.id, subject=subject,
            task=session.task,
        )
    )  # fmt: skip
    if not decision.allow:
        raise RefusedError(decision.sentence(), hint=decision.hint, reason=decision.code, decision=decision.id)
    return decision


def _close(memory: Memory, session: Session, held: HeldWrite, what: str, why: str | None) -> None:
    """Close the task about a held write. A failure is told: the act itself stands."""
    try:
        for task in tasks(memory.ledger, (held.entry.domain,), held.id).values():
            memory.ledger.invalidate(task, by=session.principal, why=f"{held.id} was {what}{f': {why}' if why else ''}")
    except (AmemError, database.Error, OSError) as error:
        _log.warning("%s was %s; its task stays open: %s", held.id, what, error)

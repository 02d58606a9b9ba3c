"""Put an entry into the record, through every gate.

The order: scan, ask the policy (its decision is logged before anything happens), then the record, then the index, then the
log of the write. A failing index never undoes a write, because `reindex` repairs it; a failing scan or policy means that
nothing is written.
"""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from amem.errors import AmemError, ConflictError, RefusedError
from amem.logs.schema import MemoryWrite
from amem.memory.draft import Draft
from amem.memory.outcomes import Held, Refused, Written
from amem.memory.owner_tasks import file_task
from amem.memory.read import visible
from amem.memory.session import Memory, Session
from amem.model import ids
from amem.model.clock import stamp
from amem.model.entry import REVIEW_DAYS, Entry, Status, Tier
from amem.model.label import Label, highest
from amem.policy import request
from amem.policy.decision import Reason
from amem.policy.scan import Finding, scan
from amem.record import quarantine
from amem.record.markdown import Malformed, fixed
from amem.record.rows import Row
from amem.settings import database

_log = logging.getLogger(__name__)
_DRAWS = 8
_FINDINGS = 20
_EXCERPT = 200
"""What is kept beside a held write of what the scan found: enough to judge it, whatever the text was."""


def write(memory: Memory, session: Session, draft: Draft, *, left_by: str | None = None) -> Written | Held | Refused:
    """Write `draft` as an entry of the session's domain.

    Raises OSError and AmemError when the record, the quarantine or a log cannot be written.
    """
    with session.writing:
        replaced = _replaced(memory, session, draft.supersedes)
        if isinstance(replaced, Refused):
            return replaced
        entry = _entry(memory, session, draft, left_by)
        findings = scan(_text(entry))
        try:
            asked = _request(memory, session, entry, replaced, findings)
        except ValueError as error:
            return Refused(code="invalid", reason=str(error))
        decision = memory.door.decide(asked)
        try:
            if decision.allow and (hides := _hides(session, entry, replaced)) is not None:
                return _hold(memory, session, entry, findings, (hides,), decision.id)
            if decision.allow:
                curated = _curated(memory, session, entry) if replaced else entry
                return curated if isinstance(curated, Refused) else _store(memory, session, curated, replaced)
            if decision.hold:
                return _hold(memory, session, entry, findings, decision.reasons, decision.id)
        except Malformed as error:  # nothing is written that could not be read back
            return Refused(code="invalid", reason=f"it cannot be kept as it is: {error.why}", decision=decision.id)
        return Refused(code=decision.code or "refused", reason=decision.sentence(), hint=decision.hint, decision=decision.id)


def _replaced(memory: Memory, session: Session, supersedes: Sequence[str]) -> tuple[Row, ...] | Refused:
    """The entries that a draft replaces. What the session may not read is not there for it."""
    rows = []
    for id in supersedes:
        row = visible(memory, session, id)
        if row is None:
            return Refused(code="not_found", reason=f"supersedes: there is no entry {id} for you", hint="search", facts={"id": id})
        if row.status in (Status.DEMOTED, Status.ERASED):  # replacing it would take its tombstone away
            return Refused(code="gone", reason=f"supersedes: {id} is no longer served", facts={"id": id})
        if row.status is Status.SUPERSEDED:
            with memory.lock:
                current = memory.index.resolve(id) or ""
            hint = f"get {current}" if visible(memory, session, current) else None
            return Refused(code="conflict", reason=f"supersedes: {id} was already replaced", hint=hint, facts={"id": id})
        rows.append(row)
    return tuple(rows)


def _entry(memory: Memory, session: Session, draft: Draft, left_by: str | None) -> Entry:
    now = memory.clock()
    granted = memory.grants.domains.get(session.domain)
    usual = highest((session.label,), floor=granted.default if granted else Label.RESTRICTED)
    days = REVIEW_DAYS.get(draft.type)
    return Entry(
        id=ids.draw("entry", session.domain),
        version=1,
        type=draft.type,
        title=draft.title,
        summary=draft.summary,
        domain=session.domain,
        classification=draft.classification or usual,
        tier=Tier.RAW,
        status=Status.ACTIVE,
        author=session.principal,
        written_at=stamp(now),
        body=draft.body,
        session=session.id,
        task=session.task,
        left_by=left_by,
        owner=draft.owner,
        review_by=draft.review_by or ((now + timedelta(days=days)).date().isoformat() if days else None),
        sources=draft.sources,
        supersedes=draft.supersedes,
        basis=draft.basis,
        valid_from_at=draft.valid_from_at,
        valid_to_at=draft.valid_to_at,
        lineage=session.lineage,
    )


def _curated(memory: Memory, session: Session, entry: Entry) -> Entry | Refused:
    """The entry as a session writes it that holds a curator's task: curated at once, once all that must hold of a curation does."""
    holding = session.holding
    if holding is None:
        return entry
    from amem.memory import invariants

    task = memory.ledger.show(holding.task)
    kind = invariants.kind(task.origin)
    if kind is None or not task.held(holding.fence, memory.ledger.now_ms(), holding.session):
        return entry
    curated = replace(entry, tier=Tier.CURATED)
    before = tuple(memory.store.read(old) for old in entry.supersedes)
    try:
        invariants.require(invariants.Curation(kind, before, (curated,)))
    except RefusedError as error:
        return Refused(code="refused", reason=error.message, hint=f"get {entry.supersedes[0]}", facts=error.facts)
    return curated


def _text(entry: Entry) -> str:
    """Every word of the writer's that a reader would see."""
    return "\n".join((entry.title, entry.summary, entry.body, *entry.sources))


def _request(memory: Memory, session: Session, entry: Entry, replaced: Sequence[Row], findings: Sequence[Finding]) -> request.Request:
    return request.write(
        principal=session.principal,
        owner=memory.grants.owner,
        domain=session.domain,
        session=session.id,
        task=memory.bound(session),
        type=entry.type,
        classification=entry.classification,
        label=session.label,
        supersedes=[{"id": row.id, "tier": row.tier, "author": row.author, "domain": row.domain} for row in replaced],
        findings=[finding.cls for finding in findings],
        superseded_so_far=session.superseded_so_far,
        max_supersedes=memory.grants.gates.max_supersedes_per_session,
    )


def _store(memory: Memory, session: Session, entry: Entry, replaced: Sequence[Row]) -> Written:
    entry = _put(memory, entry)
    session.superseded_so_far += len(replaced)
    session.entries.append(entry.id)
    if entry.left_by is not None:
        session.handoffs.append(entry.id)
    for row in replaced:
        mark(memory, row.id, entry.id)
    memory.append(logged(memory, session, entry, entry=entry.id))
    if not replaced:
        return Written(entry)
    from amem.memory.claims import same_elsewhere  # most writes replace nothing

    return Written(entry, same_elsewhere(memory, session, [row.id for row in replaced], entry.id))


def _put(memory: Memory, entry: Entry) -> Entry:
    for _ in range(_DRAWS):
        try:
            path = memory.store.put(entry)
        except ConflictError:  # the id is taken: 60 random bits, so once in the life of a root at most
            entry = replace(entry, id=ids.draw("entry", entry.domain))
            continue
        indexed(memory, path)
        return entry
    raise ConflictError(f"no free id in {entry.domain} after {_DRAWS} draws")


def mark(memory: Memory, old_id: str, new_id: str) -> None:
    """Mark a replaced entry. When that fails the new entry's `supersedes` says the same, and `reindex` writes the mark."""
    try:
        old = memory.store.read(old_id)
        if old.status is not Status.ACTIVE:
            raise ConflictError(f"it is {old.status} by now")
        path = memory.store.replace(replace(old, version=old.version + 1, status=Status.SUPERSEDED, superseded_by=new_id))
    except (AmemError, OSError) as error:
        _log.warning("%s: not marked as replaced by %s: %s", old_id, new_id, error)
    else:
        indexed(memory, path)


def indexed(memory: Memory, path: Path) -> None:
    """Bring the index in line with a file that was written. A failure is told and left to `reindex`."""
    try:
        with memory.lock:
            memory.index.note(path)
    except (database.Error, OSError) as error:
        _log.warning("%s: not indexed, until `amem reindex`: %s", path.name, error)


def _hides(session: Session, entry: Entry, replaced: Sequence[Row]) -> Reason | None:
    """The gate behind the policy's: an entry of a higher label in another's place takes it from those who may not read as high."""
    hidden = [row for row in replaced if entry.classification.exceeds(row.classification)]
    if session.is_owner or not hidden:
        return None
    facts = {"entry": hidden[0].id, "was": hidden[0].classification, "classification": entry.classification}
    return Reason("supersede_hides", facts)


def _hold(memory: Memory, session: Session, entry: Entry, findings: tuple[Finding, ...], reasons: Sequence[Reason], decision: str) -> Held:
    why = "held: " + ("; ".join(reason.sentence() for reason in reasons) or "no rule allows it")
    held = quarantine.hold(
        memory.root,
        entry,
        remembered(findings),
        [{"code": reason.code, **reason.facts} for reason in reasons],
        gate=None if findings or not reasons else reasons[0].code,
        clock=memory.clock,
    )
    session.held.append(held)
    memory.append(logged(memory, session, entry, held=held))
    task = file_task(memory, session, quarantine.show(memory.root, held), why)
    return Held(id=held, reason=why, findings=findings[:_FINDINGS], task=task, decision=decision)


def remembered(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """What is kept of the scan's findings beside a held write."""
    return [{"class": finding.cls, "excerpt": finding.excerpt[:_EXCERPT]} for finding in findings[:_FINDINGS]]


def logged(memory: Memory, session: Session, written: Entry, *, entry: str | None = None, held: str | None = None) -> MemoryWrite:
    """The event of a write, to be appended once it happened."""
    return MemoryWrite(
        at=stamp(memory.clock()),
        session=session.id,
        domain=session.domain,
        principal=session.principal,
        entry=entry,
        held=held,
        type=written.type,
        classification=written.classification,
        supersedes=written.supersedes,
        digest="sha256:" + hashlib.sha256(written.body.encode()).hexdigest(),
        tier=written.tier if written.tier is not Tier.RAW else None,
        fixed=fixed(written),
        label=session.label,
        task=session.task,
    )

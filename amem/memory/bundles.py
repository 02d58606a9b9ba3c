"""Carry entries from one root to another: out under a label bound, in through the gates.

A bundle that the owner's own key sealed keeps its tiers and promotions. Any other lands as hearsay: raw, by the tap that brought it, what
the scan finds held for the owner, and never in the place of an entry that is here. Nothing that is here is changed by either, and what
was erased here does not come back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from amem.errors import ConflictError, UsageError
from amem.logs.schema import MemoryAct
from amem.memory.contain import contained
from amem.memory.draft import draft
from amem.memory.held import act
from amem.memory.owner_tasks import file_task
from amem.memory.promote import shape
from amem.memory.session import Memory, Session
from amem.memory.write import indexed, logged, remembered
from amem.model import ids
from amem.model.clock import stamp
from amem.model.entry import Entry, EntryType, Status, Tier
from amem.model.label import Label, highest
from amem.model.principal import is_principal
from amem.policy import request
from amem.policy.scan import Finding, scan
from amem.record import bundle, keys, quarantine
from amem.record.markdown import Malformed
from amem.record.rows import Filter, Row
from amem.typed import Any, NamedTuple

AUTHOR = "tap:import"
"""Who writes what another owner's bundle says: the author it names could be anybody."""
EXPORT = "export"
_KEY = "owner.key"


class Exported(NamedTuple):
    """What went into a bundle."""

    file: str
    entries: int
    promotions: int
    manifest_digest: str


class Imported(NamedTuple):
    """What became of a bundle's entries."""

    same_owner: bool
    landed: tuple[str, ...]
    held: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    promotions: int


def owner_key(folder: Path) -> bytes:
    """The key of the owner's bundles, made when there is none: `owner.key` in the person's configuration, shared by their roots.

    Raises IntegrityError (it is no key, or others may read it), OSError.
    """
    return keys.key(folder / _KEY)


def known_key(folder: Path) -> bytes | None:
    """The same where there is one; without it nothing that is taken in is the owner's own. Raises as `owner_key` does."""
    return keys.kept(folder / _KEY)


def export(
    memory: Memory, session: Session, file: Path, key: bytes, *, domains: tuple[str, ...], label: Label, types: Iterable[EntryType] = (),
    since: str | None = None,
) -> Exported:  # fmt: skip
    """Write the active entries of these domains up to a label into a bundle, with their promotions. Raises OSError."""
    with memory.lock:
        rows = memory.index.list(Filter(domains=domains, max_label=label), type=tuple(types), since=since, limit=0).rows
        found = [read.entry for row in rows if (read := memory.index.read(row.id)) is not None]
    entries = [entry for entry in found if entry.status is Status.ACTIVE and not entry.classification.exceeds(label)]
    promotions = [{"entry": entry.id, **shape(one)} for entry in entries for one in memory.ledger.promotions(entry.id)]
    at = stamp(memory.clock())
    memory.append(
        MemoryAct(
            at=at, session=session.id, domain=session.domain, principal=session.principal, act=EXPORT, why=f"up to {label}",
            entries=tuple(entry.id for entry in entries), to=str(file),
        )
    )  # fmt: skip
    digest = bundle.write(file, key, memory.grants.owner, at, label, entries, promotions)
    return Exported(str(file), len(entries), len(promotions), digest)


def land(memory: Memory, session: Session, file: Path, key: bytes | None, *, domain: str, floor: Label, dry_run: bool = False) -> Imported:
    """Take a bundle into a domain, no entry under a label below `floor`, nor below what the same entry has here in another domain.

    Raises IntegrityError (it is not what its manifest says: nothing of it lands), RefusedError (only the owner may), OSError.
    """
    found = bundle.read(file, key)
    own = found.sealed and found.owner == memory.grants.owner
    if not dry_run:
        act(memory, session, request.IMPORT, domain, f"bundle:{found.digest.removeprefix('sha256:')[:12]}")
    names = {entry.id: _name(entry.id, domain, "" if own else found.owner) for entry in found.entries}
    away = contained(memory.root)
    landed: list[str] = []
    held: list[str] = []
    skipped = list(found.malformed)
    counted = 0
    for entry in found.entries:
        try:
            with memory.lock:
                original = memory.index.get(entry.id)
            least = highest((original.classification,), floor=floor) if original is not None else floor
            made = _made(entry, names, domain, least, own=own, owner=found.owner, digest=found.digest)
            if (why := _unfit(memory, made, original, away, entry.id)) is not None:
                skipped.append((entry.id, why))
                continue
            findings = () if own else scan("\n".join((made.title, made.summary, made.body, *made.sources)))
            if dry_run:
                (held if findings else landed).append(made.id)
            elif findings:
                held.append(_hold(memory, session, made, findings))
            else:
                if own:
                    counted += _promotions(memory, made, [one for one in found.promotions if one.get("entry") == entry.id])
                path = memory.store.put(made)
                indexed(memory, path)
                memory.append(logged(memory, session, made, entry=made.id))
                landed.append(made.id)
        except (Malformed, ConflictError, UsageError) as error:
            skipped.append((entry.id, error.message))
    return Imported(own, tuple(landed), tuple(held), tuple(skipped), counted)


def _made(entry: Entry, names: Mapping[str, str], domain: str, floor: Label, *, own: bool, owner: str, digest: str) -> Entry:
    """The entry as it is to stand here."""
    label = highest((entry.classification,), floor=floor)
    sources = tuple(names.get(source.partition("@")[0], source) for source in entry.sources)
    if own:
        return replace(
            entry, id=names[entry.id], domain=domain, classification=label, sources=sources,
            supersedes=tuple(names.get(old, old) for old in entry.supersedes),
        )  # fmt: skip
    said = draft(  # what a writer here may not say, a bundle may not either
        type=entry.type, title=entry.title, body=entry.body, summary=entry.summary or None, owner=entry.owner, review_by=entry.review_by,
        sources=(source for source in sources if source in names.values()), basis=entry.basis, valid_from=entry.valid_from_at,
        valid_to=entry.valid_to_at,
    )  # fmt: skip
    author = entry.author if is_principal(entry.author) else "?"
    return Entry(
        id=names[entry.id], version=1, type=said.type, title=said.title, summary=said.summary, domain=domain, classification=label,
        tier=Tier.RAW, status=entry.status, author=AUTHOR, written_at=entry.written_at, body=said.body, owner=said.owner,
        review_by=said.review_by, sources=said.sources, basis=said.basis, valid_from_at=said.valid_from_at, valid_to_at=said.valid_to_at,
        lineage=Tier.RAW, extra={"imported": {"owner": owner, "author": author, "id": entry.id, "bundle": digest}},
    )  # fmt: skip


def _name(id: str, domain: str, owner: str) -> str:
    """The id of an entry here: its own in a domain of the same name, else one that is the same whichever bundle of an owner brings it."""
    return id if ids.domain_of(id) == domain else ids.derived("entry", domain, f"{owner}:{id}")


def _unfit(memory: Memory, entry: Entry, original: Row | None, away: frozenset[str], as_was: str) -> str | None:
    """Why an entry does not land: what was taken out of this record does not come back, in whatever domain.

    `as_was` is the id that the bundle has it under, `original` what has that id here; `away` is what the owner keeps out of the record.
    """
    if not away.isdisjoint((entry.id, as_was)):
        return "it is contained here"
    if entry.status is not Status.ACTIVE:
        return f"it is {entry.status}"
    with memory.lock:
        here = memory.index.get(entry.id)
    if Status.ERASED in [one.status for one in (here, original) if one is not None]:
        return "it was erased here"
    return "it is here already" if here is not None else None


def _hold(memory: Memory, session: Session, entry: Entry, findings: tuple[Finding, ...]) -> str:
    reasons = [{"code": "scan_findings", "findings": sorted({finding.cls for finding in findings})}]
    held = quarantine.hold(memory.root, entry, remembered(findings), reasons, clock=memory.clock)
    memory.append(logged(memory, session, entry, held=held))
    file_task(memory, session, quarantine.show(memory.root, held), "held: a bundle of another owner brought it")
    return held


def _promotions(memory: Memory, entry: Entry, found: Iterable[Mapping[str, Any]]) -> int:
    """Keep the promotions that landed, before the entry does: `verify` looks for them."""
    count = 0
    for one in found:
        match one:
            case {"version": int(version), "to": str(to), "by": str(by), "landed": True} if to in tuple(Tier):
                number = memory.ledger.promotion(entry.id, version, to, by=by, why=str(one.get("why", "")))
                memory.ledger.landed(entry.id, number)
                count += 1
    return count

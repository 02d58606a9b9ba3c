"""Seal the ledger's events into a log, and say which of them were changed behind amem since.

Owns `state/ledger.jsonl`. That log is linked and anchored like the others; the events themselves stay in their database.
"""

from collections import defaultdict
from collections.abc import Callable

from amem.ledger import sealing
from amem.ledger.opening import identity
from amem.logs import reader
from amem.logs.schema import Event, LedgerSealed
from amem.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amem.ledger.reading import Reading
    from amem.ledger.store import Ledger
    from amem.settings.grants import Grants
    from amem.settings.root import Root

_LINE = 500
"""Seals to a line."""


class Checked(NamedTuple):
    """How many events there are, and which are not as they were sealed."""

    events: int
    edits: tuple[sealing.Edit, ...]
    forged: tuple[sealing.Edit, ...]
    """Promotions."""


def seal(root: "Root", grants: "Grants", ledger: "Reading | Ledger", append: Callable[[Event], None], at: str) -> None:
    """Seal what has happened since the last time. Raises UnavailableError, OSError."""
    of = identity(root, grants)
    sealed, noted, _ = _sealed(root, of)
    for domain in grants.domains:
        last = max((one.seq for one in sealed.get(domain, ())), default=0)
        fresh = [sealing.seal(row).text() for row in ledger.events_after(domain, last)]
        known, there = noted.get(domain, {}), map(sealing.note, ledger.all_promotions(domain))
        notes = [one.text() for one in there if one.seq not in known or (known[one.seq] != one and known[one.seq].becomes(one))]
        for first in range(0, max(len(fresh), len(notes)), _LINE):
            part = slice(first, first + _LINE)
            seals, promotions = tuple(fresh[part]), tuple(notes[part])
            append(LedgerSealed(at=at, domain=domain, ledger=of, seals=seals, form=sealing.FORM, promotions=promotions))


def check(root: "Root", grants: "Grants", ledger: "Reading | Ledger") -> Checked:
    """Compare every event with its seal. Raises UnavailableError, OSError."""
    sealed, noted, edits = _sealed(root, identity(root, grants))
    count, forged = 0, list[sealing.Edit]()
    for domain in grants.domains:
        there = ledger.events_after(domain, 0)
        count += len(there)
        edits += sealing.edits(sealed.get(domain, ()), there)
        forged += sealing.forged(noted.get(domain, {}), ledger.all_promotions(domain))
    return Checked(count, tuple(edits), tuple(forged))


class _Sealed(NamedTuple):
    """What the log holds of one ledger, by domain."""

    seals: dict[str, list[sealing.Seal]]
    notes: dict[str, dict[int, sealing.Note]]
    """The last one of each promotion."""
    unread: list[sealing.Edit]
    """Lines of the log that hold no seals of ours."""


def _sealed(root: "Root", of: str) -> _Sealed:
    from amem.logs import shape

    found = _Sealed(defaultdict(list), defaultdict(dict), [])
    for number, text in enumerate(reader.lines(root.state / LedgerSealed.log), start=1):
        line = shape.event(text) or {}
        if line.get("event") == LedgerSealed.event and line.get("ledger") == of:
            domain = str(line.get("domain"))
            try:
                found.seals[domain] += [sealing.read(one, line.get("form", 1)) for one in line.get("seals", ())]
                found.notes[domain] |= {one.seq: one for one in map(sealing.read_note, line.get("promotions", ()))}
            except ValueError:
                found.unread.append(sealing.Edit(LedgerSealed.log, number, "changed"))
    return found

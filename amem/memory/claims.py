"""Find entries that assert what a replaced or withdrawn one asserted, and file one task to reconcile them (B24).

Words alone are compared, no model is asked: entries of which most content words are those of the other. Only what the session may read is
looked at, so nothing is told that a search would not tell.
"""

import logging
from collections.abc import Sequence

from amem.errors import AmemError, NotFoundError
from amem.memory.admission import admitted
from amem.memory.outcomes import Refused
from amem.memory.read import reader
from amem.memory.session import Memory, Session
from amem.model.entry import Entry
from amem.model.ids import domain_of
from amem.model.label import Label, highest
from amem.model.principal import SYSTEM
from amem.record.markdown import Malformed
from amem.record.search import content, fold
from amem.settings import database

_log = logging.getLogger(__name__)
RECONCILE = "reconcile:"
"""How the origin of a task to reconcile begins; the entry that was withdrawn follows."""
ALIKE = 0.6
"""The share of the words of both that both have."""
WITHIN = 0.85
"""The share of the words of the shorter that the longer has."""
_LEAST_WORDS = 4
_ASKED = 12
_LOOKED_AT = 20
_LISTED = 10
_PRIORITY = 6


def same_elsewhere(memory: Memory, session: Session, withdrawn: Sequence[str], instead: str | None) -> tuple[str, ...]:
    """The entries that say what these say, once these no longer stand, and a task about them. A failure is told, never raised."""
    try:
        found = {id: _alike(memory, session, id, {*withdrawn, instead}) for id in withdrawn}
        for id, others in found.items():
            if others:
                _file(memory, session, id, others, instead)
    except (AmemError, database.Error, OSError) as error:
        _log.warning("%s: not looked for the same elsewhere: %s", ", ".join(withdrawn), error)
        return ()
    return tuple(dict.fromkeys(other.id for others in found.values() for other in others))


def _alike(memory: Memory, session: Session, id: str, without: set[str | None]) -> list[Entry]:
    filter = reader(memory, session, (domain_of(id),))
    if isinstance(filter, Refused):
        return []
    old = memory.store.read(id)
    words = _words(old)
    with memory.lock:
        hits = memory.index.search(
            " ".join(content(f"{old.title} {old.summary} {old.body[:2000]}")[:_ASKED]), filter, limit=_LOOKED_AT
        ).hits
    found = []
    for hit in hits:
        if hit.id in without or hit.type != old.type:
            continue
        try:
            entry = memory.store.read(hit.id)
        except (NotFoundError, Malformed):
            continue
        if _say_the_same(words, _words(entry)):
            found.append(entry)
    return found[:_LISTED]


def _say_the_same(one: frozenset[str], other: frozenset[str]) -> bool:
    both, least = len(one & other), min(len(one), len(other))
    return least >= _LEAST_WORDS and (both >= ALIKE * len(one | other) or both >= WITHIN * least)


def _words(entry: Entry) -> frozenset[str]:
    return frozenset(fold(word) for word in content(f"{entry.title} {entry.summary} {entry.body}"))


def _file(memory: Memory, session: Session, id: str, others: Sequence[Entry], instead: str | None) -> None:
    from amem.ledger.draft import Draft

    stands = f"{instead} stands in its place." if instead else "Nothing stands in its place."
    listed = "\n".join(f"    amem get {other.id}" for other in others)
    draft = Draft(
        domain=domain_of(id),
        title=f"Reconcile {len(others)} entries that say what {id} said",
        body=(
            f"{id} no longer stands. {stands}\nThese say much the same, and were left as they are:\n\n{listed}\n\n"
            "Supersede or demote each that is no longer true; leave the others, and say why.\n"
        ),
        priority=_PRIORITY,
        label=highest((other.classification for other in others), floor=Label.PUBLIC),
        origin=f"{RECONCILE}{id}",
        subject=id,
    )
    memory.ledger.create(draft, by=SYSTEM, session=session.id, admit=admitted(memory, session, (), by_amem=True))

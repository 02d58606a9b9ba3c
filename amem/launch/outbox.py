"""File what the hooks left: outbox notes in the private home, read as hostile input, become handoffs.

A note from before a compaction is always filed: what it says is no longer in the harness's context. A note from session
end is the handoff of last resort, and filed only when the session left none of its own. Where there is no note at all, the
launcher's own (`leftover.note`) takes its place.
"""

from amem.sandbox.reader import Refused as Unread
from amem.sandbox.reader import names, read_file
from amem.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amem.memory.session import Memory, Session

FOLDER = ".amem/outbox"
MAX_NOTES = 50
MAX_BYTES = 64 << 10
LAST_RESORT = "session-end"


class Filed(NamedTuple):
    """What became of an outbox."""

    handoffs: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def waiting(home: str) -> bool:
    """Say whether hooks left any note."""
    return bool(_in_order(names(home, FOLDER)))


def file_notes(memory: "Memory", session: "Session", home: str) -> Filed:
    """File the notes below `home` as handoffs that a hook left. Never raises for what a note holds."""
    filed = Filed()
    for name in _in_order(names(home, FOLDER)):
        if name.startswith(LAST_RESORT) and (session.handoffs or filed.handoffs):
            continue
        found = read_file(home, f"{FOLDER}/{name}", MAX_BYTES)
        body = "" if isinstance(found, Unread) else found.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}").strip()
        if not body:
            why = found.why if isinstance(found, Unread) else "it is empty"
            filed = filed._replace(problems=(*filed.problems, f"outbox note {name}: {why}"))
            continue
        one = file_note(memory, session, body, left_by="hook", named=f"outbox note {name}")
        filed = Filed(*(before + more for before, more in zip(filed, one, strict=True)))
    return filed


def file_note(memory: "Memory", session: "Session", body: str, *, left_by: str, named: str = "the launcher's note") -> Filed:
    """File one note as a handoff."""
    from amem.memory.handoff import handoff
    from amem.memory.outcomes import Held, Refused, Written

    match handoff(memory, session, body, left_by=left_by):
        case Written(entry):
            return Filed(handoffs=(entry.id,))
        case Held(id=held):
            return Filed(held=(held,))
        case Refused(reason=reason):
            return Filed(problems=(f"{named}: {reason}",))


def _in_order(found: list[str]) -> list[str]:
    """Notes from before compactions first, in their order; session end last; no more than a bounded number."""
    notes = [name for name in found if name.endswith(".md")]
    return sorted(notes, key=lambda name: (name.startswith(LAST_RESORT), name))[:MAX_NOTES]

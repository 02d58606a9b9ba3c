"""Leave what the next session needs: an entry of type `handoff`, attached to the held task, marked with who left it."""

from collections.abc import Iterable

from amem.errors import UsageError
from amem.memory.draft import TITLE_LIMIT, citations, draft, first_sentence, shorten
from amem.memory.outcomes import Held, Refused, Written
from amem.memory.session import Memory, Session
from amem.memory.write import write
from amem.model.entry import EntryType

LEFT_BY = ("agent", "hook", "launcher")
ITEM_LIMIT = 2000


def handoff(
    memory: Memory,
    session: Session,
    body: str,
    *,
    done: Iterable[str] = (),
    next: Iterable[str] = (),
    cites: Iterable[str] = (),
    left_by: str = "agent",
) -> Written | Held | Refused:
    """Write a handoff under every gate of a write. Raises UsageError, and what `write` raises."""
    assert left_by in LEFT_BY, left_by
    sections = [body.strip(), _items("Done", done), _items("Next", next)]
    text = "\n\n".join(filter(None, sections))
    found = draft(
        type=EntryType.HANDOFF,
        title=shorten(f"Handoff: {first_sentence(body) or 'where things stand'}", min(120, TITLE_LIMIT)),
        body=text,
        sources=citations("cites", cites),
        basis="stated",
    )
    return write(memory, session, found, left_by=left_by)


def _items(heading: str, items: Iterable[str]) -> str:
    lines = []
    for item in items:
        if len(item) > ITEM_LIMIT:
            raise UsageError(f"{heading.lower()}: an item has {len(item)} characters; {ITEM_LIMIT} is the most")
        if item.strip():
            lines.append("- " + item.strip().replace("\n", "\n  "))
    return f"## {heading}\n" + "\n".join(lines) if lines else ""

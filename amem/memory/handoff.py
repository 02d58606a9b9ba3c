"""Leave what the next session needs: an entry of type `handoff`, attached to the held task, marked with who left it.

The entry stands before the ledger names it. An agent whose claim is over is refused before anything is written; what a hook or the
launcher files is kept then too, and only not attached.
"""

from collections.abc import Iterable

from amem.errors import AmemError, UnavailableError, UsageError
from amem.ledger import store
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
    """Write a handoff under every gate of a write. Raises UsageError, and what `write` and the ledger raise."""
    assert left_by in LEFT_BY, left_by
    holding = session.holding
    if holding is not None and left_by == "agent" and (late := _late(memory, holding)) is not None:
        return late
    sections = [body.strip(), _items("Done", done), _items("Next", next)]
    text = "\n\n".join(filter(None, sections))
    found = draft(
        type=EntryType.HANDOFF,
        title=shorten(f"Handoff: {first_sentence(body) or 'where things stand'}", min(120, TITLE_LIMIT)),
        body=text,
        sources=citations("cites", cites),
        basis="stated",
    )
    outcome = write(memory, session, found, left_by=left_by)
    if holding is None or not isinstance(outcome, Written):
        return outcome
    return _attached(memory, session, holding, outcome, left_by)


def _late(memory: Memory, holding: store.Holding) -> Refused | None:
    """Why nothing can be left on the task any more; None while the claim holds."""
    ledger = memory.ledger
    task = ledger.show(holding.task)
    if task.held(holding.fence, ledger.now_ms(), holding.session):
        return None
    reason = f"claim {holding.fence} of {task.id} is over: the task is {task.status}, its latest claim {task.fence}"
    return Refused(code="stale_fence", reason=reason, hint="stop here: somebody else may be at work on it")


def _attached(memory: Memory, session: Session, holding: store.Holding, written: Written, left_by: str) -> Written | Refused:
    """The outcome once the ledger knows of the handoff."""
    id = written.entry.id
    try:
        done = memory.ledger.handoff_left(holding.task, by=session.principal, handoff=id, fence=holding.fence, session=holding.session)
    except AmemError as error:
        raise UnavailableError(f"{id} is written, but the ledger does not know it yet: {error.message}", hint=error.hint) from error
    if not isinstance(done, store.Refused) or left_by != "agent":
        return written
    return Refused(code=done.code.value, reason=f"{done.reason}; the handoff stands as {id}", hint=done.hint, facts={"id": id})


def _items(heading: str, items: Iterable[str]) -> str:
    lines = []
    for item in items:
        if len(item) > ITEM_LIMIT:
            raise UsageError(f"{heading.lower()}: an item has {len(item)} characters; {ITEM_LIMIT} is the most")
        if item.strip():
            lines.append("- " + item.strip().replace("\n", "\n  "))
    return f"## {heading}\n" + "\n".join(lines) if lines else ""

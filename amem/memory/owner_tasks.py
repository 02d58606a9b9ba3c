"""The owner's tasks about held writes: what was found, and the commands that act on it.

The text of such a task quotes what was held, so that it is for the owner's eyes: no session is served it.
"""

import json
import logging
from collections.abc import Iterable, Mapping

from amem.errors import AmemError
from amem.memory.admission import admitted
from amem.memory.session import Memory, Session
from amem.model.principal import SYSTEM
from amem.policy.reasons import visible
from amem.record.quarantine import HeldWrite
from amem.settings import database
from amem.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from amem.ledger.reading import Reading
    from amem.ledger.store import Ledger

_log = logging.getLogger(__name__)
QUARANTINE = "quarantine:"
"""How the origin of a task about a held write begins; the held id follows."""
_PRIORITY = 6


def file_task(memory: Memory, session: Session, held: HeldWrite, why: str) -> str | None:
    """File the owner's task about a held write, and return its id.

    None when the ledger cannot take it: the write is held all the same, and `amem quarantine list` shows it.
    """
    from amem.ledger.draft import Draft  # few sessions have a write held
    from amem.ledger.store import Filed

    draft = Draft(
        domain=held.entry.domain,
        title=f"Judge {held.id}, a {held.entry.type} held from {held.entry.author}",
        body=_body(held, why),
        priority=_PRIORITY,
        requires=("human",),
        label=held.entry.classification,
        origin=f"{QUARANTINE}{held.id}",
        subject=held.id,
    )
    try:
        admit = admitted(memory, session, draft.requires, by_amem=True)
        filed = memory.ledger.create(draft, by=SYSTEM, session=session.id, admit=admit)
    except (AmemError, database.Error, OSError) as error:
        _log.warning("%s: no task filed for the owner: %s", held.id, error)
        return None
    return filed.task.id if isinstance(filed, Filed) else None


def tasks(ledger: "Reading | Ledger", domains: Iterable[str], held: str = "") -> Mapping[str, str]:
    """The open task about each held write, by held id; `held` asks for one."""
    from amem.ledger.reading import Filter

    page = ledger.list(Filter(domains=tuple(domains), origin=f"{QUARANTINE}{held}", limit=0))
    return {(task.origin or "").removeprefix(QUARANTINE): task.id for task in page.tasks}


def _body(held: HeldWrite, why: str) -> str:
    """What the owner is told: why, what was found, and the commands. What the scan found is quoted with nothing in it that acts."""
    found = [f"- {finding['class']}: `{_quoted(str(finding['excerpt']))}`" for finding in held.findings]
    lines = [
        f"{held.entry.author} asked in {held.entry.session or 'no session'} to write a {held.entry.type} of {held.entry.domain}.",
        f"It is {why}.",
        *(["", "What the scan found, quoted and not to be followed:", *found] if found else []),
        "",
        f"    amem quarantine show {held.id}",
        f"    amem quarantine release {held.id}",
        f"    amem quarantine drop {held.id}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return visible(json.dumps(text, ensure_ascii=False)[1:-1]).replace("`", "'")

"""Tell the owner that a task needs a person: by a command of theirs, or a webhook.

Owns `state/notice.*`. What is told are ids and why, never a word of a task: no label leaves with it. The ledger's operations only start
`amem notice send`, which sends beside them; one more that waits its turn is enough for any number of tasks, because it looks at
the board when its turn comes.
"""

import fcntl
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import amem
from amem.ledger import events as ev
from amem.ledger.task import HUMAN, IRREVERSIBLE, Status, Task
from amem.model import principal
from amem.typed import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import subprocess

    from amem.ledger.reading import Reading
    from amem.ledger.store import Observe
    from amem.settings.grants import Grants
    from amem.settings.root import Root

MOST = 1000
"""Tasks looked at in a domain; those of the highest rank."""
_log = logging.getLogger(__name__)
_started: "list[subprocess.Popen[bytes]]" = []
"""Senders that were started here, to be reaped; nobody waits for them."""


def observer(root: "Root", grants: "Grants") -> "Observe | None":
    """What the ledger tells of each event, where the owner wants to be told; None where not."""
    if grants.notice is None:
        return None

    def observe(event: ev.Event, task: Task) -> None:
        if isinstance(event, ev.Blocked) or (isinstance(event, ev.Created | ev.Admitted) and why(task) is not None):
            _start(root)

    return observe


def why(task: Task) -> str | None:
    """Why a task needs a person: `blocked`, `human`, `review`, `irreversible` or `admission`; None when it does not."""
    if task.status is Status.BLOCKED:
        return "blocked"
    if task.status in (Status.PROPOSED, Status.ADMITTED) and HUMAN in task.requires:
        return "human"
    if task.status is not Status.PROPOSED:
        return None
    if task.review:
        return "review"
    if IRREVERSIBLE in task.requires:
        return "irreversible"
    return "admission" if principal.kind(task.creator) != "human" else None


class Waiting(NamedTuple):
    """A task that needs a person: why, and after how many attempts."""

    why: str
    attempts: int


def waiting(ledger: "Reading", grants: "Grants") -> Mapping[str, Waiting]:
    """The tasks that need a person, by their ids."""
    return dict(_waiting(ledger, grants))


def _waiting(ledger: "Reading", grants: "Grants") -> Iterator[tuple[str, Waiting]]:
    from amem.ledger.reading import Filter

    statuses = (Status.PROPOSED, Status.ADMITTED, Status.BLOCKED)
    for domain in grants.domains:
        for task in ledger.list(Filter(domains=(domain,), statuses=statuses, limit=MOST)).tasks:
            if (reason := why(task)) is not None:
                yield task.id, Waiting(reason, task.fence)


def document(tasks: Mapping[str, Waiting]) -> dict[str, Any]:
    """What a command reads, and a webhook gets."""
    return {"event": "tasks.waiting", "tasks": [{"id": id, "why": one.why} for id, one in sorted(tasks.items())], "total": len(tasks)}


def lock(path: Path) -> int:
    """A descriptor of the file; closing it lets go of what was locked."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _start(root: "Root") -> None:
    """Start `amem notice send` unless one waits its turn already: that one will see this task. Never raises: the task stands as it is."""
    import subprocess

    try:
        turn = lock(root.state / "notice.turn")
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _started[:] = [each for each in _started if each.poll() is None]
            sender = subprocess.Popen(
                [sys.executable, "-m", "amem", "--root", str(root.path), "notice", "send", "--turn", str(turn)],
                cwd=Path(amem.__file__).parent.parent, pass_fds=(turn,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            _started.append(sender)
        finally:
            os.close(turn)
    except BlockingIOError:
        return
    except OSError as error:
        _log.warning("a notice could not be sent: %s", error)

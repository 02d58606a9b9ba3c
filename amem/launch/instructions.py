"""Files of a work tree that tell a harness what to do, and which of them the owner has approved as they are.

Owns `state/instructions.json`: work tree → name → what was approved. Anybody who can get a file into the tree can write one (a pull
request, a dependency, the session before), and a harness obeys it like its user. What is read here is hashed and never shown.
"""

import os
import stat
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from amem.errors import UsageError
from amem.launch import keep
from amem.launch.care import Place
from amem.sandbox import worktree
from amem.sandbox.spec import is_below
from amem.settings.root import Root
from amem.typed import NamedTuple

NAMES = (
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    ".claude/CLAUDE.md",
    "GEMINI.md",
    "QWEN.md",
    ".cursorrules",
    ".github/copilot-instructions.md",
)
"""What the harnesses load by themselves from the folder they start in, and from those above and below it."""
_MOST = 256
"""Files in one tree; each one that is masked is a mount."""
_MOST_BYTES = 16 << 20
_UNREAD = "unread:"
_RACY_NS = 1_000_000_000
"""A file changed this recently could change again without a new change time: its text is looked at the next time too."""


class State(StrEnum):
    """What the owner has said about a file."""

    APPROVED = "approved"
    CHANGED = "changed"
    """Another text was approved."""
    NEW = "new"


class Instruction(NamedTuple):
    """One file of instructions."""

    name: str
    """Below the work tree."""
    state: State
    path: str
    """What to mask, its links resolved."""


def find(root: Root, place: Place, *, whole: bool) -> tuple[Instruction, ...]:
    """The instruction files from the top of the work tree to where the session starts; of the whole tree where asked.

    Raises UsageError for more than can be looked after.
    """
    names = tuple(_everywhere(place.workdir) if whole else _on_the_way(place))
    if len(names) > _MOST:
        raise UsageError(f"{place.workdir} holds more than {_MOST} instruction files", hint="amem launch --workdir with a folder of it")
    if not names:
        return ()
    approved = keep.read(_path(root)).get(place.workdir, {})
    return tuple(Instruction(name, _state(place.workdir, name, approved.get(name)), _real(place.workdir, name)) for name in names)


def approve(root: Root, workdir: str, names: tuple[str, ...]) -> None:
    """Take these files as approved, as they are now. Raises UsageError for one that nobody can have read."""
    facts = {name: _facts(workdir, name) for name in names}
    for name, (found, _) in facts.items():
        if found.startswith(_UNREAD):
            raise UsageError(f"{name}: {found.removeprefix(_UNREAD)}, so it cannot be approved", hint="amem instructions list")
    with keep.changing(_path(root)) as document:
        document.setdefault(workdir, {}).update({name: {"digest": found, "mark": mark} for name, (found, mark) in facts.items()})


def digest(workdir: str, name: str) -> str:
    """What identifies a file's text, and where it stands if its name is a link; `unread:` and why for what is no text."""
    return _facts(workdir, name)[0]


def _facts(workdir: str, name: str) -> tuple[str, str]:
    """A file's digest, and its mark (empty for none), of one open file: a session could swap two between one look and the next."""
    real = _real(workdir, name)
    if not is_below(real, workdir):
        return f"link:{real}", ""
    try:
        fd = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return f"{_UNREAD}{(error.strerror or str(error)).lower()}", ""
    with os.fdopen(fd, "rb") as content:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return f"{_UNREAD}not a regular file", ""
        if about.st_size > _MOST_BYTES:
            return f"{_UNREAD}larger than {_MOST_BYTES} bytes", ""
        import hashlib  # ten milliseconds, which a launch pays only when an approved file was touched

        found = hashlib.sha256(content.read(_MOST_BYTES)).hexdigest()
        settled = os.fstat(fd).st_ctime_ns == about.st_ctime_ns < time.time_ns() - _RACY_NS
    return f"sha256:{found}", _mark(real, about) if settled else ""


def sentence(found: tuple[Instruction, ...], *, masked: bool) -> str | None:
    """What to tell the person at the launch; None where all is approved."""
    unknown = [f"{each.name} ({each.state})" for each in found if each.state is not State.APPROVED]
    if not unknown:
        return None
    shown = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
    what = (
        "instructions that you have not approved are hidden from the session" if masked else "the harness obeys what you have not approved"
    )
    return f"{what}: {shown}; read them, then: amem instructions approve"


def maskable(found: tuple[Instruction, ...], workdir: Path) -> tuple[Instruction, ...]:
    """Those to mask: not approved, and in the tree; a link that leads out of it leads nowhere inside."""
    inside = [each for each in found if is_below(each.path, str(workdir)) and os.path.lexists(each.path)]
    return tuple(each for each in inside if each.state is not State.APPROVED)


def _state(workdir: str, name: str, approved: dict[str, str] | None) -> State:
    if approved is None:
        return State.NEW
    # A change time cannot be set back, so what carries the approved mark is the approved text.
    same = approved["mark"] == _mark_now(workdir, name) or approved["digest"] == digest(workdir, name)
    return State.APPROVED if same else State.CHANGED


def _mark_now(workdir: str, name: str) -> str | None:
    real = _real(workdir, name)
    try:
        return _mark(real, os.lstat(real))
    except OSError:
        return None


def _mark(real: str, about: os.stat_result) -> str:
    return f"{real}:{about.st_dev}:{about.st_ino}:{about.st_size}:{about.st_ctime_ns}"


def _real(workdir: str, name: str) -> str:
    return os.path.realpath(os.path.join(workdir, name))


def _on_the_way(place: Place) -> Iterator[str]:
    for folder in place.folders():
        yield from _at(place.workdir, folder)


def _everywhere(workdir: str) -> Iterator[str]:
    """In every folder; links are not followed, and what git keeps is not looked into."""
    for folder, below, _ in worktree.walk(workdir):
        below[:] = (name for name in below if name != ".git")
        yield from _at(workdir, os.path.relpath(folder, workdir) if folder != workdir else "")


def _at(workdir: str, folder: str) -> Iterator[str]:
    for name in NAMES:
        here = f"{folder}/{name}" if folder else name
        if os.path.lexists(os.path.join(workdir, here)):
            yield here


def _path(root: Root) -> Path:
    return root.state / "instructions.json"

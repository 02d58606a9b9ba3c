"""What a harness that did not finish, or left no note, leaves to read: what it printed, or the end of its transcript.

Everything here comes out of a sandbox and is read as hostile input: through the one safe reader, bounded, and never raised for.
"""

import os
import re
from fnmatch import fnmatchcase
from io import BytesIO

from amem.harnesses.base import Harness
from amem.hooks import outbox, shapes, turns
from amem.sandbox.reader import Refused, names, read_file
from amem.typed import NamedTuple

MAX_OUTPUT = 24 << 10
MAX_TRANSCRIPT_BYTES = 64 << 20
"""Of all that are looked at. The worst of that size takes some ten seconds of a processor (2026-11)."""
MAX_NAMES = 200
MAX_FOLDERS = 2000
"""How many are looked into, since a session can make any number of them."""
MAX_TRANSCRIPTS = 8
"""How many are looked at, the last ones first: each may be as large as is read at all, and hold nothing."""


class Found(NamedTuple):
    """A session's transcript."""

    path: str
    """Below the home."""
    read: turns.Transcript


class Tail:
    """The last bytes of a stream."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = bytearray()
        self._cut = False

    def add(self, data: bytes) -> None:
        """More of the stream."""
        self._kept += data
        if len(self._kept) > self._most:
            del self._kept[: len(self._kept) - self._most]
            self._cut = True

    def text(self) -> str:
        """What was kept, as text."""
        found = bytes(self._kept).decode("utf-8", "replace").strip()
        return f"[…]\n{found}" if self._cut else found


_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Harnesses colour what they print, and a note with control characters in it would be held."""


def handoff(harness: Harness, home: str, session: str, *, how: str, answer: str, errors: str, noted: bool) -> str:
    """The launcher's handoff about a session that left its work undone. `how` says how it ended; `noted`: it left a note of its own."""
    parts = [f"The harness {harness.name} ended before its work was done: {how}.", "Left by the launcher, not by the agent."]
    answer, errors = _COLOUR.sub("", answer), _COLOUR.sub("", errors)
    if answer.strip():
        parts.append("What it said last:\n\n" + outbox.fenced(_end(answer.strip(), MAX_OUTPUT)))
    elif not noted and (found := find(harness, home)) is not None:
        parts.append(note(harness, found, session))
    if errors:
        parts.append("The end of its error output:\n\n" + outbox.fenced(errors))
    if len(parts) == 2:
        parts.append("It printed nothing." if not noted else "What it did stands in the handoff that it left.")
    return "\n\n".join(parts)


def find(harness: Harness, home: str) -> Found | None:
    """The session's transcript, the last one where there are more; None where none can be read, or its model never spoke in any.

    A subagent's own is none.
    """
    if harness.transcript_shape is None:
        return None
    left = MAX_TRANSCRIPT_BYTES
    for path in matching(home, harness.transcripts)[:MAX_TRANSCRIPTS]:
        data = read_file(home, path, left)
        if not isinstance(data, Refused):
            left -= len(data)
            found = turns.read(harness.transcript_shape, BytesIO(data))
            if not found.aside and any(turn.role == shapes.ASSISTANT for turn in found.turns):
                return Found(path, found)
    return None


def note(harness: Harness, found: Found, session: str) -> str:
    """The end of a transcript as a note."""
    return outbox.unhooked(harness.name, found.path, found.read.turns, session)


def matching(home: str, patterns: tuple[str, ...]) -> list[str]:
    """Paths beneath the home that match, the last one written first, as their times say."""
    found = [path for pattern in patterns for path in _walk(home, pattern)]
    return sorted(found, key=lambda path: (_written(f"{home}/{path}"), path), reverse=True)


def _walk(home: str, pattern: str) -> list[str]:
    """Level by level: what a level may be looked into for is shared by all its folders, those with the last names first."""
    folders = [""]
    for part in pattern.split("/"):
        folders = [
            f"{folder}/{name}" if folder else name
            for folder in folders[:MAX_FOLDERS]
            for name in reversed(names(home, folder or ".")[-MAX_NAMES:])
            if fnmatchcase(name, part)
        ]
    return folders[:MAX_FOLDERS]


def _written(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except (OSError, ValueError):
        return 0


def _end(text: str, most: int) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= most else "[…]\n" + data[-most:].decode("utf-8", "ignore")

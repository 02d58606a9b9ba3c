"""What a harness that did not finish, or left no note, leaves to read: what it printed, or the end of its transcript.

Everything here comes out of a sandbox and is read as hostile input: through the one safe reader, bounded, and never raised for.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from amem.harnesses.base import Harness
from amem.hooks import outbox
from amem.sandbox.reader import Refused, names, read_file

MAX_OUTPUT = 24 << 10
MAX_ERRORS = 4 << 10
MAX_TRANSCRIPT_BYTES = 64 << 20
MAX_NAMES = 200
MAX_TRANSCRIPTS = 8
"""How many are looked at, the last ones first: each may be as large as is read at all, and hold nothing."""


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


def handoff(harness: Harness, home: str, session: str, *, how: str, answer: str, errors: str, noted: bool) -> str:
    """The launcher's handoff about a session that left its task undone. `how` says how it ended; `noted`: it left a note of its own."""
    parts = [f"The harness {harness.name} ended before the task was completed: {how}.", "Left by the launcher, not by the agent."]
    if answer.strip():
        parts.append("What it said last:\n\n" + outbox.fenced(_end(answer.strip(), MAX_OUTPUT)))
    elif not noted and (told := transcript(harness, home, session)) is not None:
        parts.append(told)
    if errors:
        parts.append("The end of its error output:\n\n" + outbox.fenced(errors))
    if len(parts) == 2:
        parts.append("It printed nothing." if not noted else "What it did stands in the handoff that it left.")
    return "\n\n".join(parts)


def transcript(harness: Harness, home: str, session: str) -> str | None:
    """The end of its transcript as a note; None where it left none that can be read, or in which its model never spoke."""
    if harness.transcript_shape is None:
        return None
    for path in matching(home, harness.transcripts)[:MAX_TRANSCRIPTS]:
        data = read_file(home, path, MAX_TRANSCRIPT_BYTES)
        told = None if isinstance(data, Refused) else outbox.unhooked(harness.transcript_shape, path, data.splitlines(), session)
        if told is not None:
            return told
    return None


def matching(home: str, patterns: tuple[str, ...]) -> list[str]:
    """Paths beneath the home that match, the last name first: transcripts are named by their time where there is more than one."""
    found = [path for pattern in patterns for path in _walk(home, "", pattern.split("/"))]
    return sorted(found, reverse=True)


def _walk(home: str, folder: str, parts: list[str]) -> Iterator[str]:
    head, *rest = parts
    for name in names(home, folder or ".")[-MAX_NAMES:]:
        if fnmatchcase(name, head):
            path = f"{folder}/{name}" if folder else name
            if rest:
                yield from _walk(home, path, rest)
            else:
                yield path


def _end(text: str, most: int) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= most else "[…]\n" + data[-most:].decode("utf-8", "ignore")

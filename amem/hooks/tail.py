"""Find a session's transcript and read its last turns, within bounds."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from amem.hooks import shapes, turns
from amem.hooks.turns import Turn

MAX_FILE_BYTES = 64 << 20
"""Turns are numbered from the start of a file; of a longer one the end is shown without numbers. Codex waits three seconds."""
END_BYTES = 1 << 20
MAX_TURN_CHARACTERS = 4000
MAX_TAIL_BYTES = 56 << 10


class Tail(NamedTuple):
    """The end of a transcript."""

    path: str
    """Relative to the home."""
    text: str
    first: int
    """The first turn shown; 0 when the turns could not be numbered."""
    last: int
    topic: str
    """What the session was asked last, in one line; empty when that is not told."""


def named(event: Mapping[str, Any], home: str) -> str | None:
    """The path of the transcript that an event speaks of, there or not, or None where it names none beneath the home."""
    path = event.get("transcript_path") or event.get("transcriptPath")
    if not isinstance(path, str):
        return None
    if path.startswith("~/"):
        path = f"{home}{path[1:]}"
    path = os.path.realpath(path)
    return path if path.startswith(os.path.realpath(home) + "/") else None


def state(path: str) -> tuple[int, int] | None:
    """What tells whether a transcript was written meanwhile: its size in bytes and its time; None where there is none."""
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_size, about.st_mtime_ns


def read(harness: str, path: str, home: str) -> Tail:
    """The last turns of a transcript below the home. Raises OSError."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        numbered = size <= MAX_FILE_BYTES
        if not numbered:
            file.seek(size - END_BYTES)
            file.readline()
        return of(os.path.relpath(path, os.path.realpath(home)), turns.read(harness, file).turns, numbered=numbered)


def of(path: str, found: list[Turn], *, numbered: bool = True) -> Tail:
    """The last of the turns that were found at `path`, as many as fit. Pure; the host uses it where a harness fired no hook."""
    shown: list[str] = []
    room = MAX_TAIL_BYTES
    for turn in reversed(found):
        text = _short(turns.render(turn))
        room -= len(text.encode()) + 2
        if room < 0:
            break
        shown.append(text if numbered else text.partition(" ")[2])
    last = found[-1].n if numbered and shown else 0
    return Tail(path, "\n\n".join(reversed(shown)), last and last - len(shown) + 1, last, _topic(found))


def _topic(found: list[Turn]) -> str:
    """The user's last words; what begins like these is what the harness says in the user's name."""
    said = (
        turn.text for turn in reversed(found) if turn.role == shapes.USER and not turn.text.lstrip().startswith(("<", "[Request inter"))
    )
    return " ".join(next(said, "")[:400].split())[:100]


def _short(text: str) -> str:
    half = MAX_TURN_CHARACTERS // 2
    return text if len(text) <= MAX_TURN_CHARACTERS else f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"

"""Read a log back: every whole line as its keys; a torn or malformed line is skipped and counted."""

import json
from collections.abc import Iterator
from pathlib import Path

from amem.logs.writer import GENESIS, digest
from amem.typed import Any, NamedTuple


class Broken(NamedTuple):
    """A line whose link to the line before does not hold, or that is no JSON."""

    line: int
    kind: str
    """`changed` (the link is wrong) or `torn` (no JSON)."""


def events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a log in order; nothing when the file is not there."""
    for line in _lines(path):
        value = _parsed(line)
        if value is not None:
            yield value


def verify(path: Path) -> list[Broken]:
    """Check every link of a log and name the lines that do not hold."""
    broken, prev = [], GENESIS
    for number, line in enumerate(_lines(path), start=1):
        value = _parsed(line)
        if value is None:
            broken.append(Broken(number, "torn"))
        elif value.get("prev") != prev:
            broken.append(Broken(number, "changed"))
        prev = digest(line)
    return broken


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            for line in file:
                yield line.rstrip(b"\n")
    except FileNotFoundError:
        return


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

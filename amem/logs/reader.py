"""Read a log back: every whole line as its keys; a torn or malformed line is skipped and counted."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from amem.logs.writer import GENESIS, digest, parsed
from amem.typed import Any, NamedTuple


class Broken(NamedTuple):
    """A line whose link to the line before does not hold, or that is no event."""

    line: int
    kind: str
    """`changed` (the link is wrong), `malformed` (it holds, of what amem does not write) or `torn` (no JSON)."""


def events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a log in order; nothing when the file is not there."""
    for line in lines(path):
        value = parsed(line)
        if value is not None:
            yield value


def verify(path: Path, sound: Callable[[Mapping[str, Any]], bool] = lambda _: True) -> list[Broken]:
    """Check every link of a log, and that `sound` holds of what each line says; name the lines that do not hold."""
    broken, prev = [], GENESIS
    for number, line in enumerate(lines(path), start=1):
        value = parsed(line)
        if value is None:
            broken.append(Broken(number, "torn"))
        elif value.get("prev") != prev:
            broken.append(Broken(number, "changed"))
        elif not sound(value):
            broken.append(Broken(number, "malformed"))
        prev = digest(line)
    return broken


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a log without their newline, a torn one too; nothing when the file is not there."""
    try:
        with path.open("rb") as file:
            for line in file:
                yield line.rstrip(b"\n")
    except FileNotFoundError:
        return

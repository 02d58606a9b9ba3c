"""Transcripts that are kept: what a harness says that its session was, beside the entries of the session's domain.

Owns `record/<domain>/.transcripts/<session>.jsonl`: a line that says whose it is, then a line a turn, its credentials sealed. A source
and no entry: never in the index, and served turn by turn through `amem.memory.transcripts` alone. It is the harness's own account, which
can leave out, reorder or invent. What is not cited is dropped when its time is up; cited turns stay, as excerpts of what cites them.
"""

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from amem.model import clock
from amem.model.ids import is_id
from amem.model.label import Label
from amem.settings.root import Root

FOLDER = ".transcripts"
MAX_TEXT_BYTES = 64 << 10
"""Of one turn, and of the arguments of one call; of more the middle is left out."""
MAX_BYTES = 16 << 20
"""Of one transcript; of more the first turns are kept without their words, since it is the last ones that notes cite."""
MAX_CALLS = 200
"""Of one turn."""

_LONGEST_DAYS = 36_500
_MAX_HEAD_BYTES = 4096

Row = dict[str, Any]


class Kept(NamedTuple):
    """One transcript, or what is left of it."""

    path: Path
    session: str
    domain: str
    harness: str
    classification: Label
    kept_at: str
    turns: int
    """How many it had."""
    swept_at: str | None = None
    """Since when only its cited turns are there."""
    erased_at: str | None = None
    """Since when none of it is."""
    bad_lines: int = 0
    """How many lines of the harness's file could not be read."""
    cut: bool = False
    """Whether there was more than is read."""

    def expires_at(self, days: int) -> datetime:
        """When its time is up."""
        return clock.parse(self.kept_at) + timedelta(days=min(max(days, 0), _LONGEST_DAYS))

    def head(self) -> Row:
        """Its first line."""
        head = {name: value for name, value in self._asdict().items() if name not in ("path", "domain") and value not in (None, 0, False)}
        return {"v": 1, "observed_by": "harness", **head, "turns": self.turns}


def keep(kept: Kept, turns: Iterable[Row], mask: Callable[[bytes], bytes]) -> None:
    """Write a transcript in the place of one that is there. `mask` takes credentials out. Raises OSError, what `mask` raises.

    A row has `n`, `role`, `text`, and `reasoning` and `tools` where there are any (`row`).
    """
    lines: list[bytes] = []
    room = MAX_BYTES
    for turn in reversed(list(turns)):
        line = _line(_masked(turn, mask)) if room > 0 else b""
        if not room or len(line) > room:
            room, line = 0, _line({"n": turn["n"], "role": turn["role"], "text": "", "left_out": True})
        room -= min(room, len(line))
        lines.append(line)
    write(kept, reversed(lines))


def write(kept: Kept, lines: Iterable[bytes]) -> None:
    """Put a transcript in place whole: its head, and its turns as lines. Raises OSError."""
    kept.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = kept.path.with_name(f".{kept.session}.{os.urandom(6).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(_line(kept.head()))
            file.writelines(lines)
        os.replace(temporary, kept.path)
    except BaseException:
        os.unlink(temporary)
        raise


def place(root: Root, domain: str, session: str) -> Path:
    """Where the transcript of a session is."""
    return root.record / domain / FOLDER / f"{session}.jsonl"


def all_kept(root: Root, domains: Iterable[str], session: str | None = None) -> Iterator[Kept]:
    """What is kept in these domains, of one session or of all. A file that is none of ours is passed over."""
    for domain in domains:
        for path in sorted((root.record / domain / FOLDER).glob(f"{session or '*'}.jsonl")):
            if is_id("session", path.stem) and (found := _head(path, domain)) is not None:
                yield found


def rows(kept: Kept) -> Iterator[Row]:
    """Its turns, in order; a line that is no turn is passed over. Raises OSError."""
    with _opened(kept.path) as file:
        file.readline()
        for line in file:
            if (turn := _table(line)) is not None and _is_turn(turn):
                yield turn


def lines(found: Iterable[Row]) -> Iterator[bytes]:
    """Turns as lines, as `rows` gave them."""
    return map(_line, found)


def _head(path: Path, domain: str) -> Kept | None:
    try:
        with _opened(path) as file:
            head = _table(file.readline(_MAX_HEAD_BYTES))
        if head is None:
            return None
        return Kept(
            path, path.stem, domain, str(head["harness"]), Label(head["classification"]), _instant(head["kept_at"]), int(head["turns"]),
            _instant(head["swept_at"]) if "swept_at" in head else None, _instant(head["erased_at"]) if "erased_at" in head else None,
            int(head.get("bad_lines", 0)), bool(head.get("cut", False)),
        )  # fmt: skip
    except (OSError, KeyError, TypeError, ValueError):
        return None


def _opened(path: Path) -> BinaryIO:
    """A file of ours, opened to be read: no link, and no pipe that would hold the reader for ever. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return open(descriptor, "rb")


def _is_turn(turn: Row) -> bool:
    calls = turn.get("tools", [])
    return (
        isinstance(turn.get("n"), int)
        and isinstance(turn.get("role"), str)
        and isinstance(turn.get("text"), str)
        and isinstance(calls, list)
        and all(isinstance(call, dict) and isinstance(call.get("name"), str) and isinstance(call.get("arguments"), str) for call in calls)
    )


def _instant(text: str) -> str:
    clock.parse(text)
    return text


def _table(line: bytes) -> Row | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _masked(row: Row, mask: Callable[[bytes], bytes]) -> Row:
    """The turn without credentials, its texts cut: masked first, so that no half of one is left."""

    def words(text: str) -> str:
        data = mask(text.encode("utf-8", "replace"))
        if len(data) > MAX_TEXT_BYTES:
            half, left = MAX_TEXT_BYTES // 2, len(data) - MAX_TEXT_BYTES
            data = data[:half] + f"\n… {left} bytes left out …\n".encode() + data[-half:]
        return data.decode("utf-8", "replace")

    calls = [{**call, "name": words(call["name"]), "arguments": words(call["arguments"])} for call in row.get("tools", ())[:MAX_CALLS]]
    return {**row, "text": words(row["text"]), **({"tools": calls} if calls else {})}

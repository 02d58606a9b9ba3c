"""Append one line to a log: under the file's lock, linked to the line before, with one `write`.

`prev` is the sha256 of the bytes of the line before (without its newline), so that a changed, dropped or reordered line
shows. A torn last line (a process died, the disk was full) is ended with a newline and kept: the reader skips it and
says so.
"""

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

from amem.errors import IntegrityError
from amem.logs.schema import Event
from amem.typed import Any, NamedTuple

_TAIL_BYTES = 8192
MASK = "[erased]"
"""What stands in a log where an erasure took a text."""
GENESIS = "sha256:" + "0" * 64
_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class _Open(NamedTuple):
    """A log that is kept open, and how it ended when this process last wrote to it."""

    descriptor: int
    inode: int
    end: int = -1
    last: str = GENESIS


class Writer:
    """Appends to the logs of one root, keeping each file open between lines. Safe to use from several threads.

    Not to be carried over a fork: the two processes would share one lock.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory)
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()  # guards _open; the file's own lock is the process's, not the thread's

    def append(self, event: Event) -> None:
        """Append `event` to its log. Raises OSError: the caller then does not go on."""
        with self._lock:
            log = self._log(event.log)
            fcntl.flock(log.descriptor, fcntl.LOCK_EX)
            try:
                self._open[event.log] = _append(log, event.line(), event.log)
            finally:
                fcntl.flock(log.descriptor, fcntl.LOCK_UN)

    def ends(self) -> dict[str, dict[str, Any]]:
        """How far each log went when this last wrote to it, as an anchor remembers it."""
        with self._lock:
            return {name: {"bytes": log.end, "digest": log.last} for name, log in self._open.items() if log.end >= 0}

    def close(self) -> None:
        """Let go of the files."""
        with self._lock:
            for log in self._open.values():
                os.close(log.descriptor)
            self._open.clear()

    def _log(self, name: str) -> _Open:
        path = f"{self._directory}/{name}"
        log = self._open.get(name)
        if log is not None:
            try:
                if os.stat(path, follow_symlinks=False).st_ino == log.inode:
                    return log
            except FileNotFoundError:
                pass
            # The owner moved or removed the file: the next line begins a new one.
            os.close(self._open.pop(name).descriptor)
        log = self._open[name] = _opened(path)
        return log


def append(directory: Path, event: Event) -> None:
    """Append one event to its log under `directory` (`state/`). Raises OSError: the caller then does not go on."""
    log = _opened(f"{directory}/{event.log}")
    try:
        fcntl.flock(log.descriptor, fcntl.LOCK_EX)
        _append(log, event.line(), event.log)
    finally:
        os.close(log.descriptor)


def mask(directory: Path, name: str, masked: Callable[[dict[str, Any]], dict[str, Any]], end: Callable[[int, int], Event]) -> int:
    """Change lines of a log where it stands, none in length, and link those after the first of them anew. How many were changed.

    `end(first, how many)` is appended under the same lock, so that a process that remembers how the log ended looks again. A log that is
    broken already is left alone, or its break would be linked over; but one that this was doing when it was cut short is made whole.
    Raises IntegrityError, OSError.
    """
    log = _opened(f"{directory}/{name}")
    plain = os.open(f"{directory}/{name}", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)  # O_APPEND would append whatever the offset
    try:
        fcntl.flock(log.descriptor, fcntl.LOCK_EX)
        with open(plain, "rb", closefd=False) as file:
            lines = file.read().split(b"\n")[:-1]
        ended = max((n for n, line in enumerate(lines) if b'"event":"log.masked"' in line), default=-1)
        at, first, count, was, prev, resumed = 0, 0, 0, GENESIS, GENESIS, False
        edits: list[tuple[int, bytes]] = []
        for n, line in enumerate(lines):
            keys = parsed(line)
            new = masked(keys) if keys else None
            cut_short = n > ended and MASK.encode() in line
            if keys and new is not None and (first or cut_short or new != keys):
                resumed = resumed or cut_short
                if keys.get("prev") not in (was, prev) and not resumed:
                    raise IntegrityError(f"{name}:{n + 1}: it was changed before", hint="amem verify")
                first = first or n + 1
                count += new != keys or cut_short
                text = _text({**new, "prev": prev}).encode()
                if len(text) != len(line):
                    raise IntegrityError(f"{name}:{n + 1}: not a line that amem wrote", hint="amem verify")
                edits.append((at, text))
            else:
                text = line
            at, was, prev = at + len(line) + 1, digest(line), digest(text)
        for place, text in edits:
            os.pwrite(plain, text, place)
        if first:
            os.fsync(plain)
            _append(log, end(first, count).line(), name)
        return count
    finally:
        os.close(plain)
        os.close(log.descriptor)


def erased(text: str) -> str:
    """What stands for a text in a log: as long as the text's JSON."""
    room = len(json.dumps(text, ensure_ascii=False).encode()) - 2
    return (MASK + "." * room)[:room] if room >= len(MASK) else "*" * room


def digest(line: bytes) -> str:
    """The digest that links a line to the next."""
    return "sha256:" + hashlib.sha256(line).hexdigest()


def _opened(path: str) -> _Open:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    return _Open(descriptor, os.fstat(descriptor).st_ino)


def _append(log: _Open, keys: dict[str, object], name: str) -> _Open:
    """Write one line under the lock that the caller holds; how the log ends now."""
    size = os.fstat(log.descriptor).st_size
    if size == log.end:
        prev, torn = log.last, False
    else:
        line, torn = _last_line(log.descriptor, size)
        prev = digest(line) if line is not None else GENESIS
    text = _text({**keys, "prev": prev}).encode()
    data = (b"\n" if torn else b"") + text + b"\n"
    if os.write(log.descriptor, data) != len(data):
        raise OSError(f"{name}: short write; is the disk full?")
    return log._replace(end=size + len(data), last=digest(text))


def parsed(line: bytes) -> dict[str, Any] | None:
    """The keys of a line; None when it is no JSON object, or one that is too deep to be an event."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _last_line(descriptor: int, size: int) -> tuple[bytes | None, bool]:
    """The last line without its newline (a torn one counts), and whether it is torn."""
    if size == 0:
        return None, False
    span = _TAIL_BYTES
    while True:
        start = max(0, size - span)
        tail = os.pread(descriptor, size - start, start)
        torn = not tail.endswith(b"\n")
        body = tail if torn else tail[:-1]
        cut = body.rfind(b"\n")
        if cut >= 0 or start == 0:
            return body[cut + 1 :], torn
        span *= 4

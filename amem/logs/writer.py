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
from pathlib import Path
from typing import NamedTuple

from amem.logs.schema import Event

_TAIL_BYTES = 8192
GENESIS = "sha256:" + "0" * 64


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
    text = json.dumps({**keys, "prev": prev}, ensure_ascii=False, separators=(",", ":")).encode()
    data = (b"\n" if torn else b"") + text + b"\n"
    if os.write(log.descriptor, data) != len(data):
        raise OSError(f"{name}: short write; is the disk full?")
    return log._replace(end=size + len(data), last=digest(text))


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

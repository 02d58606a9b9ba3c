"""Append one line to a log: under the file's lock, linked to the line before, with one `write`.

`prev` is the sha256 of the bytes of the line before (without its newline), so that a changed, dropped or reordered line
shows. A torn last line (a process died, the disk was full) is ended with a newline and kept: the reader skips it and
says so.
"""

import fcntl
import hashlib
import json
import os
from pathlib import Path

from amem.logs.schema import Event

_TAIL_BYTES = 8192
GENESIS = "sha256:" + "0" * 64


def append(directory: Path, event: Event) -> None:
    """Append `event` to its log under `directory` (`state/`). Raises OSError: the caller then does not go on."""
    append_line(directory / event.log, event.line())


def append_line(path: Path, keys: dict[str, object]) -> None:
    """Append one line with these keys and `prev`. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        last, torn = _last_line(descriptor)
        prev = digest(last) if last is not None else GENESIS
        text = json.dumps({**keys, "prev": prev}, ensure_ascii=False, separators=(",", ":"))
        data = (b"\n" if torn else b"") + text.encode() + b"\n"
        if os.write(descriptor, data) != len(data):
            raise OSError(f"{path}: short write; is the disk full?")
    finally:
        os.close(descriptor)


def digest(line: bytes) -> str:
    """The digest that links a line to the next."""
    return "sha256:" + hashlib.sha256(line).hexdigest()


def _last_line(descriptor: int) -> tuple[bytes | None, bool]:
    """The last line without its newline (a torn one counts), and whether it is torn."""
    size = os.fstat(descriptor).st_size
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

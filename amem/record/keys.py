"""Keep a key in a file of its owner's: made once, whole or not at all, and never replaced."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from amem.errors import IntegrityError
from amem.record.store import write_new

KEY_BYTES = 32


def key(path: Path, made: Callable[[bytes], None] = lambda key: None) -> bytes:
    """The key in a file, made where there is none; `made` is told. Raises IntegrityError (it is no key, or others may read it), OSError."""
    if (found := kept(path)) is not None:
        return found
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        write_new(path, fresh := os.urandom(KEY_BYTES))
    except FileExistsError:  # another process was quicker
        return key(path, made)
    made(fresh)
    return fresh


def kept(path: Path) -> bytes | None:
    """The key in a file, None where there is none. Raises IntegrityError (it is no key, or others may read it), OSError."""
    if not os.path.lexists(path):
        return None
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        found, mode = file.read(KEY_BYTES + 1), os.fstat(file.fileno()).st_mode
    if len(found) != KEY_BYTES or not stat.S_ISREG(mode) or mode & 0o077:
        raise IntegrityError(f"{path} is no key: expected {KEY_BYTES} bytes that nobody else may read", hint=f"ls -l {path}")
    return found

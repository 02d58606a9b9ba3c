"""Read what a sandbox wrote, from the host, as the work of an adversary.

The one door for outbox notes, transcripts, handoffs and login files. `openat2` keeps the whole path beneath its folder and
follows no link, no magic link and no mount; the file must be regular and have one name; its size is bounded.
"""

import os
import stat

from amem.sandbox import calls
from amem.typed import NamedTuple

_RESOLVE = calls.RESOLVE_BENEATH | calls.RESOLVE_NO_SYMLINKS | calls.RESOLVE_NO_MAGICLINKS | calls.RESOLVE_NO_XDEV


class Refused(NamedTuple):
    """A file that was not read, and why."""

    path: str
    why: str


def read_file(folder: str, name: str, max_bytes: int) -> bytes | Refused:
    """The bytes of `name` beneath `folder`, or why they were not read. `name` may have slashes. Never blocks."""
    try:
        descriptor = open_beneath(folder, name, os.O_RDONLY)
    except OSError as error:
        return Refused(name, _why(error))
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return Refused(name, "not a regular file")
        if found.st_nlink != 1:
            return Refused(name, "it has a second name (hard link)")
        if found.st_size > max_bytes:
            return Refused(name, f"{found.st_size} bytes; at most {max_bytes} are read")
        chunks, left = [], max_bytes
        while left > 0 and (chunk := os.read(descriptor, min(left, 1 << 20))):
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks)
    except OSError as error:
        return Refused(name, _why(error))
    finally:
        os.close(descriptor)


def names(folder: str, name: str = ".") -> list[str]:
    """The names in a directory beneath `folder`, sorted; none when it is not a plain directory."""
    try:
        descriptor = open_beneath(folder, name, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return []
    try:
        return sorted(os.listdir(descriptor))
    finally:
        os.close(descriptor)


def remove(folder: str) -> None:
    """Take away a tree that a sandbox wrote, folders that it closed too, as far as that can be done. `shutil.rmtree` of Python 3.11 and
    3.12 recurses: it ends with a tree of a thousand levels, and its caller with it."""
    import subprocess

    from amem.sandbox.surroundings import HOST_PATH

    path = os.path.abspath(folder)
    remove, unlock = ["rm", "-rf", "--", path], ["chmod", "-R", "u+rwX", "--", path]  # neither follows a link that it comes upon below
    for words in (remove, unlock, remove):
        if not os.path.isdir(path) or os.path.islink(path):
            return
        subprocess.run(words, env={"PATH": HOST_PATH}, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def open_beneath(folder: str, name: str, flags: int) -> int:
    """Open `name` beneath `folder` without following anything. Raises OSError."""
    parent = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return calls.open_beneath(parent, name, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW, _RESOLVE)
    finally:
        os.close(parent)


def _why(error: OSError) -> str:
    """The kernel's answer in words; a link shows as ELOOP, a step outside as EXDEV."""
    import errno

    words = {errno.ELOOP: "a symbolic link", errno.EXDEV: "it leads outside its folder", errno.ENOENT: "not there"}
    return words.get(error.errno or 0, error.strerror or str(error))

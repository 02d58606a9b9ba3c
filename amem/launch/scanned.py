"""The files of a work tree, folder by folder, and what is known of them from when they were read last.

Every file is read beneath the tree, following no link. What carries the same mark as when it was read last need not be read again, and a
folder whose marks are all the same is not gone through name by name. What stands in a `.git` is left out.
"""

import errno
import hashlib
import os
import shlex
import stat
import sys
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from amem.errors import UnavailableError
from amem.sandbox import calls

MOST_BYTES = 256 << 20
"""A larger file is not read."""
RACY_NS = 2_000_000_000
"""A file changed this recently could change again without a new change time, which some file systems count in steps of two seconds."""
_NUMBERS = 4
"""Of a mark: inode, size, mode and change time, 8 bytes each. A change time cannot be set back, so what would change them changes it."""
_MARK = _NUMBERS * 8
_BLOB = 32
_MOST = (1 << 64) - 1
_KIND, _FOLDER, _FILES = 0o170000, stat.S_IFDIR, (stat.S_IFREG, stat.S_IFLNK)


class Known(NamedTuple):
    """What was read of a folder's files: plain values, which a folder can be compared with as a whole."""

    names: str
    """Between NULs."""
    marks: bytes
    """A mark for each name; all zeros for a file that is to be read again."""
    blobs: bytes
    """git's name for what each of them holds, 32 bytes."""

    def files(self) -> dict[str, tuple[bytes, bytes]]:
        """Each name's mark and blob."""
        names = self.names.split("\0") if self.names else []
        return {
            name: (self.marks[at * _MARK : (at + 1) * _MARK], self.blobs[at * _BLOB : (at + 1) * _BLOB]) for at, name in enumerate(names)
        }


class Folder:
    """One folder of a tree, open: its files and links in the order of their names."""

    def __init__(self, path: str, fd: int, names: list[str], marks: "array[int]", folders: list[tuple[str, int]]) -> None:
        self.path = path
        """Below the tree; empty for the tree itself."""
        self.fd = fd
        self.names = names
        self.folders = folders
        """Name and mode of each folder in it."""
        self.modes = marks[2::_NUMBERS]
        self.marks = marks.tobytes()

    def __iter__(self) -> Iterator[tuple[str, int, bytes]]:
        """Name, mode and mark of each file."""
        for at, (name, mode) in enumerate(zip(self.names, self.modes, strict=True)):
            yield name, mode, self.marks[at * _MARK : (at + 1) * _MARK]

    def is_as(self, known: Known) -> bool:
        """Say whether every file in it is one that was read, and no other was."""
        return self.marks == known.marks and "\0".join(self.names) == known.names

    def below(self, name: str) -> str:
        """A name in it, below the tree."""
        return f"{self.path}/{name}" if self.path else name


def size(mark: bytes) -> int:
    """Bytes of the file that carries this mark."""
    return int.from_bytes(mark[8:16], sys.byteorder)


def settled(mark: bytes, now_ns: int) -> bytes:
    """The mark to know a file by that was read no earlier than `now_ns`."""
    return mark if int.from_bytes(mark[-8:], sys.byteorder) < now_ns - RACY_NS else bytes(_MARK)


def top(workdir: str) -> int:
    """The tree's folder, open. Raises UnavailableError.

    Its name was noted with the links resolved. Another session that may write a folder above it could have put one there since, and be
    read or written by it, so none is followed now.
    """
    try:
        return calls.open_beneath(calls.AT_FDCWD, workdir, os.O_RDONLY | os.O_DIRECTORY, calls.RESOLVE_NO_SYMLINKS)
    except OSError as error:
        why = "a symbolic link stands in its way now" if error.errno == errno.ELOOP else error.strerror
        raise UnavailableError(f"{workdir}: {why}", hint=f"ls -ld {shlex.quote(workdir)}") from error


def folders(workdir: str, left_out: list[str]) -> Iterator[Folder]:
    """Each folder of a tree, open until the next is asked for; `left_out` gets those that cannot be read. Raises UnavailableError."""
    tree = top(workdir)
    try:
        waiting = [""]
        while waiting:
            path = waiting.pop()
            try:
                fd = calls.open_beneath(tree, path, os.O_RDONLY | os.O_DIRECTORY) if path else os.dup(tree)
            except OSError:
                left_out.append(path)
                continue
            try:
                yield _folder(path, fd, waiting, left_out)
            finally:
                os.close(fd)
    finally:
        os.close(tree)


def _folder(path: str, fd: int, below: list[str], left_out: list[str]) -> Folder:
    """A folder that is open; `below` gets the folders in it, `left_out` names that git keeps nothing under (`.GIT`, a link `.gitmodules`).

    All files there are pass through here: as little as can be happens to each.
    """
    names: list[str] = []
    marks: list[int] = []
    folders: list[tuple[str, int]] = []
    for name in sorted(os.listdir(fd)):
        if len(name) == 4 and name.lower() == ".git":
            if name != ".git":
                left_out.append(f"{path}/{name}" if path else name)
            continue
        try:
            about = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:  # an editor, at this moment
            continue
        except OSError:  # a folder that may be listed and not searched, a name too long
            left_out.append(f"{path}/{name}" if path else name)
            continue
        mode = about.st_mode
        kind = mode & _KIND
        if len(name) == 11 and kind == stat.S_IFLNK and name.lower() == ".gitmodules":
            left_out.append(f"{path}/{name}" if path else name)
        elif kind in _FILES:
            names.append(name)
            marks += (about.st_ino, about.st_size, mode, about.st_ctime_ns & _MOST)
        elif kind == _FOLDER:
            below.append(f"{path}/{name}" if path else name)
            folders.append((name, mode))
    return Folder(path, fd, names, array("Q", marks), folders)


def content(fd: int, name: str, most_hole: int = _MOST) -> tuple[bytes, int] | None:
    """What a file holds, or where a link leads, and how much of it is a hole; None where it cannot be read, or is too large."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    except OSError as error:
        return _link(fd, name) if error.errno == errno.ELOOP else None
    try:
        about = os.fstat(file)
        hole = max(0, about.st_size - about.st_blocks * 512)
        if not stat.S_ISREG(about.st_mode) or about.st_size > MOST_BYTES or hole > most_hole:
            return None
        found = whole(file, about.st_size)
        return None if found is None else (found, hole)
    except OSError:
        return None
    finally:
        os.close(file)


def _link(fd: int, name: str) -> tuple[bytes, int] | None:
    try:
        return os.fsencode(os.readlink(name, dir_fd=fd)), 0
    except OSError:
        return None


def whole(fd: int, expected: int) -> bytes | None:
    """All of a file; None when it has grown past what is read. A buffer for the largest there may be would cost more than the reading."""
    data = os.read(fd, expected + 1)
    if len(data) == expected:
        return data
    found = bytearray(data)
    while len(found) <= MOST_BYTES and (data := os.read(fd, 1 << 20)):
        found += data
    return bytes(found) if len(found) <= MOST_BYTES else None


def blob(content: bytes) -> bytes:
    """git's name for a content."""
    return hashlib.sha256(b"blob %d\0" % len(content) + content).digest()


def git_mode(mode: int) -> str:
    """The mode that git would keep of a file or a link."""
    if stat.S_ISLNK(mode):
        return "120000"
    return "100755" if mode & stat.S_IXUSR else "100644"

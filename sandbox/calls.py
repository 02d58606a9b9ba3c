"""The few system calls Python has no name for, through libc's `syscall`.

Owns numbers and flags. Every failure is an OSError whose `filename` is what was being worked on. Nothing here decides anything.
Loaded in the stage before anything else, so it takes the two types and the functions that it needs from `_ctypes`, of which ctypes is
made: ctypes would define thirty types more first, a quarter of what a stage loads.
"""

import _ctypes
import os
import struct
import sys

from amem.typed import Callable

_ARM = os.uname().machine == "aarch64"

# Numbers above 424 are the same on every architecture; the older ones are (x86_64, aarch64).
CLONE = (56, 220)[_ARM]
PIVOT_ROOT = (155, 41)[_ARM]
KEYCTL = (250, 219)[_ARM]
UNSHARE = (272, 97)[_ARM]
CAPSET = (126, 91)[_ARM]
SECCOMP = (317, 277)[_ARM]
OPEN_TREE = 428
MOVE_MOUNT = 429
CLOSE_RANGE = 436
OPENAT2 = 437
MOUNT_SETATTR = 442
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_ADD_RULE = 445
LANDLOCK_RESTRICT_SELF = 446

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_PIDFD = 0x00001000
ALL_NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC, ATTR_IDMAP = 1, 2, 4, 8, 0x00100000

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_OPEN_TREE_CLOEXEC = 0o2000000
_MOVE_FROM_EMPTY = 0x04
_MOVE_TO_EMPTY = 0x40

RESOLVE_NO_XDEV, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH, RESOLVE_IN_ROOT = 1, 2, 4, 8, 16


class Word(_ctypes._SimpleCData):  # type: ignore[type-arg]  # no generic when run
    """An argument as wide as a register, as ctypes.c_ulong: a plain int passes as C's `int`."""

    _type_ = "L"


class _Int(_ctypes._SimpleCData):  # type: ignore[type-arg]  # no generic when run
    _type_ = "i"


class _Char(_ctypes._SimpleCData):  # type: ignore[type-arg]  # no generic when run
    _type_ = "c"


class _Function(_ctypes.CFuncPtr):
    """One of libc's that returns an int, and leaves what went wrong for `_ctypes.get_errno`."""

    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Int


def _libc(name: str, *kinds: type[_Int | Word]) -> Callable[..., int]:
    function = _Function(_ctypes.dlsym(_PROGRAM, name))
    if kinds:
        function.argtypes = kinds
    made: Callable[..., int] = function
    return made


_PROGRAM = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: the program itself, dlopen(3)
_syscall, _mount, _umount2, _connect = (_libc(name) for name in ("syscall", "mount", "umount2", "connect"))
_prctl = _libc("prctl", _Int, Word, Word, Word, Word)
_memset = _libc("memset", Word, _Int, Word)


def call(number: int, *arguments: object, name: str | None = None) -> int:
    """Make one system call; bytes pass as pointers, None as NULL. Raises OSError(errno, text, name)."""
    result = _syscall(Word(number), *arguments)
    if result < 0:
        _fail(name)
    return result


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2). Raises OSError."""
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    if _mount(texts[0], texts[1], texts[2], Word(flags), texts[3]) < 0:
        _fail(target)


def unmount(target: str, flags: int) -> None:
    """umount2(2). Raises OSError."""
    if _umount2(os.fsencode(target), flags) < 0:
        _fail(target)


def prctl(option: int, *arguments: int) -> int:
    """prctl(2) with the unused arguments zero. Raises OSError."""
    result = _prctl(option, *(*arguments, 0, 0, 0, 0)[:4])
    if result < 0:
        _fail(f"prctl {option}")
    return result


def open_tree(path: str, recursive: bool = True) -> int:
    """A detached copy of the mount at `path` (final symlinks followed). Raises OSError."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | (AT_RECURSIVE if recursive else 0)
    return call(OPEN_TREE, AT_FDCWD, os.fsencode(path), flags, name=path)


def open_tree_fd(fd: int, name: str) -> int:
    """A detached copy of the mount at what `fd` names. Raises OSError."""
    return call(OPEN_TREE, fd, b"", _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH, name=name)


def set_attributes(fd: int, attributes: int, name: str, userns: int = -1) -> None:
    """Set mount attributes on a detached copy and everything mounted below it, and make it private. Raises OSError.

    Private, because a copy of a shared mount joins its peers: a disk mounted on the host later would show inside.
    """
    wanted = attributes | (ATTR_IDMAP if userns >= 0 else 0)
    record = struct.pack("=QQQQ", wanted, 0, MS_PRIVATE, max(userns, 0))
    call(MOUNT_SETATTR, fd, b"", AT_EMPTY_PATH | AT_RECURSIVE, record, Word(len(record)), name=name)


def move_mount(fd: int, target: str) -> None:
    """Attach a detached copy at a path. Raises OSError."""
    call(MOVE_MOUNT, fd, b"", AT_FDCWD, os.fsencode(target), _MOVE_FROM_EMPTY, name=target)


def move_mount_fd(fd: int, target: int, name: str) -> None:
    """Attach a detached copy on what another descriptor names. Raises OSError."""
    call(MOVE_MOUNT, fd, b"", target, b"", _MOVE_FROM_EMPTY | _MOVE_TO_EMPTY, name=name)


def open_beneath(folder: int, name: str, flags: int, resolve: int = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS) -> int:
    """openat2(2): open `name` below a folder, following no link. Raises OSError (ELOOP for a link, EXDEV for an escape)."""
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, resolve)
    return call(OPENAT2, folder, os.fsencode(name), how, Word(len(how)), name=name)


def real_beneath(folder: str, name: str, resolve: int) -> str:
    """The path that `name` leads to from a folder, as `resolve` has its links and its root taken. Raises OSError."""
    top = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fd = open_beneath(top, name, os.O_PATH, resolve)
    finally:
        os.close(top)
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def disconnect(descriptor: int) -> None:
    """connect(2) to AF_UNSPEC: a TCP socket as new, in the network namespace it was made in. Raises OSError."""
    if _connect(descriptor, bytes(16), 16) < 0:
        _fail("socket")


def pivot_root(new: str, old: str) -> None:
    """pivot_root(2). Raises OSError."""
    call(PIVOT_ROOT, os.fsencode(new), os.fsencode(old), name=new)


def clone(flags: int) -> tuple[int, int]:
    """clone(2) without a new stack, like fork: (0, -1) in the child, (pid, pidfd) in the parent. Only in a single-threaded process.

    It runs no at-fork handlers: with other threads alive, a lock one of them held would never open again in the child.
    """
    pidfd = _Int(-1)
    pid = call(CLONE, Word(flags | CLONE_PIDFD | 17), None, _ctypes.byref(pidfd), None, None, name="clone")
    return pid, int(pidfd.value) if pid else -1


def buffer(data: bytes) -> "tuple[_ctypes.Array[_Char], int]":
    """A copy in memory that does not move while the first is kept, and its address."""
    kept = (_Char * len(data)).from_buffer_copy(data)
    return kept, _ctypes.addressof(kept)


def zero(address: int, length: int) -> None:
    """Overwrite memory of this process with zeros."""
    _memset(address, 0, length)


def _fail(name: str | None) -> None:
    number = _ctypes.get_errno()
    raise OSError(number, os.strerror(number), name)


assert sys.byteorder == "little"

"""The mark of a running session under `state/running/`: that it runs, and how it is asked to stop.

The launcher holds a lock on the mark for as long as it lives, so a mark without a lock is a launcher that died, whatever its pid
is now. To stop a session, what is wanted is written beside the mark and the launcher is told by a signal that nothing else
here uses; a launcher that is not there any more is never signalled.
"""

import _signal  # type: ignore[import-not-found]  # `signal` itself makes enums, and a launch would wait for them
import errno
import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from amem.errors import UnavailableError
from amem.model.ids import is_id
from amem.settings.root import Root
from amem.typed import NamedTuple

LOOKS, LOOK_S = 50, 0.02
RESERVE_BYTES = 512 << 10
"""Of the root's disk, held by each mark: a session that fills that disk must not keep its own end, or its notes, off it."""
STOP_SIGNAL: int = _signal.SIGRTMIN + 3


class Stop(NamedTuple):
    """A request to stop a session."""

    by: str
    why: str = ""
    grace_s: float = 5.0
    """Between SIGTERM to the harness and the end of everything inside."""


class Presence:
    """This process's mark for a session. `end` takes it away."""

    def __init__(self, root: Root, session: str) -> None:
        self._path = mark(root, session)
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _shrink(self._path.parent)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._lock()
        try:
            os.write(self._descriptor, str(os.getpid()).encode())
            os.posix_fallocate(self._descriptor, 0, RESERVE_BYTES)
        except OSError as error:  # the disk is full
            self.end()
            raise OSError(error.errno, error.strerror, str(root.path)) from error

    def _lock(self) -> None:
        """Take the mark. Somebody who looks whether its launcher lives has it for a moment; another launcher of this session for long."""
        for _ in range(LOOKS):
            try:
                return fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(LOOK_S)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def make_room(self) -> bool:
        """Give the reserve back where the disk has no more than that; True then. Only once nothing inside can write any more."""
        about = os.fstatvfs(self._descriptor)
        if not about.f_blocks or about.f_bavail * about.f_frsize > RESERVE_BYTES:  # some file systems do not say what they hold
            return False
        self.give_back()
        return True

    def give_back(self) -> None:
        """Give the reserve back: a quota leaves room that this user may not have."""
        os.ftruncate(self._descriptor, len(str(os.getpid())))

    def asked(self) -> Stop | None:
        """What `amem session stop` asked for, if it did."""
        try:
            order = _order(self._path).read_text()
        except OSError:
            return None
        import json

        try:
            return Stop(**json.loads(order))
        except (ValueError, TypeError):
            return None

    def end(self) -> None:
        """Take the mark away."""
        for path in (_order(self._path), self._path):
            path.unlink(missing_ok=True)
        os.close(self._descriptor)


def _shrink(folder: Path) -> None:
    """Take the reserve from the marks whose launcher was killed: nobody will. They stay, since tasks are given back by them."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # it ended meanwhile
                if entry.stat(follow_symlinks=False).st_size >= RESERVE_BYTES:
                    _shrink_dead(entry.path)


def _shrink_dead(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused where its launcher lives
        os.ftruncate(descriptor, len(os.pread(descriptor, 20, 0).rstrip(b"\0")))
    finally:
        os.close(descriptor)


def mark(root: Root, session: str) -> Path:
    """Where the mark of a session stands."""
    return root.state / "running" / session


def is_running(root: Root, session: str) -> bool:
    """Say whether a launcher holds the mark of this session."""
    return launcher(root, session) is not None


def launcher(root: Root, session: str) -> int | None:
    """The pid of the launcher that holds the mark, or None."""
    try:
        descriptor = os.open(mark(root, session), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 20, 0).rstrip(b"\0")  # the reserve follows
        return int(text) if text.isdigit() else None
    finally:
        os.close(descriptor)
    return None


def dead(root: Root) -> tuple[str, ...]:
    """The sessions whose launcher died: their marks stand, and nobody holds them."""
    try:
        names = os.listdir(root.state / "running")
    except FileNotFoundError:
        return ()
    return tuple(name for name in sorted(names) if is_id("session", name) and mark(root, name).exists() and not is_running(root, name))


def ask_to_stop(root: Root, session: str, wanted: Stop) -> bool:
    """Ask a session's launcher to stop it; False when no launcher runs it.

    Raises PermissionError for another user's, UnavailableError where its number is not that of the launcher here. On a full disk what is
    wanted cannot be written: the signal alone stops the session then, with the usual grace.
    """
    pid = launcher(root, session)
    if pid is None:
        return False
    import json

    path = mark(root, session)
    temporary = path.with_name(f".{session}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(wanted._asdict()))
        temporary.rename(_order(path))
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        # The handle pins the process; if the mark is still held now, it is the launcher that the handle names.
        if launcher(root, session) != pid:
            return False
        if not _has_open(pid, path):
            raise UnavailableError(
                f"{session}: its launcher is process {pid} of another container, which shares this root",
                hint=f"amem session stop {session}, in that one",
            )
        _signal.pidfd_send_signal(handle, STOP_SIGNAL)
        _signal.pidfd_send_signal(handle, _signal.SIGCONT)  # a launcher that was stopped (Ctrl-Z) hears nothing before
    except (ProcessLookupError, FileNotFoundError):
        return False
    finally:
        os.close(handle)
    return True


def _has_open(pid: int, path: Path) -> bool:
    """Whether a process has a file open. A number in the mark is one of the launcher's pid namespace; here it may be anybody's."""
    wanted, folder = os.stat(path), f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        try:
            if os.path.samestat(os.stat(f"{folder}/{name}"), wanted):
                return True
        except OSError:  # closed meanwhile
            continue
    return False


def _order(path: Path) -> Path:
    return path.with_name(path.name + ".stop")

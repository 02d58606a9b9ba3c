"""Where a session is served whose listener does not come out of its sandbox, and the bearer that every call has to carry there.

The port is on the host's loopback, or a Unix socket is: other programs of this machine may reach it, and the bearer is what they lack.
It stands in the environment and in files of the private home, never in an argument, which every user of a machine may read.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from amem.settings.credentials import Secret

NAME = "egress.sock"
BACKLOG = 1024


class Door:
    """A listening socket and its bearer."""

    def __init__(self, *, loopback: bool) -> None:
        """`loopback`: listen on a free port of 127.0.0.1 from now on; else `make_socket` is still to come."""
        self.token = Secret(os.urandom(24).hex())
        self.port: int | None = None
        self._folder: Path | None = None
        self._listener: socket.socket | None = None
        if loopback:
            self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._listener.bind(("127.0.0.1", 0))
            self._listener.listen(BACKLOG)
            self.port = self._listener.getsockname()[1]

    def make_socket(self, folder: str) -> None:
        """Listen on a Unix socket in a folder of its own, which only the owner may enter. Raises OSError."""
        os.makedirs(folder, mode=0o700)
        self._folder = Path(folder)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short(self._folder) as short:
            self._listener.bind(f"{short}/.{NAME}")
            self._listener.listen(BACKLOG)
            os.rename(f"{short}/.{NAME}", f"{short}/{NAME}")  # so one that nobody listens on is a killed launcher's
        _sweep(self._folder.parent)

    def take(self) -> int:
        """The listening descriptor, the caller's from now on."""
        assert self._listener is not None
        return self._listener.detach()

    def close(self) -> None:
        """Let go of what is left of it. Safe to call twice."""
        if self._listener is not None:
            self._listener.close()
        if self._folder is not None:
            with suppress(OSError):
                os.unlink(self._folder / NAME)
            with suppress(OSError):
                os.rmdir(self._folder)


@contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A short name of a folder: a socket's may have 107 bytes, and a root's path more. Raises OSError."""
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


def _sweep(doors: Path) -> None:
    """Remove the sockets of launchers that were killed."""
    for folder in doors.iterdir():
        with suppress(OSError), _short(folder) as short, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.settimeout(1)  # a full backlog, say: somebody listens
            try:
                caller.connect(f"{short}/{NAME}")
            except ConnectionRefusedError:
                os.unlink(f"{short}/{NAME}")
                os.rmdir(folder)

"""The thread that serves a session: egress and memory on the listener that the sandbox passed out.

Its packages are imported here, after the harness was exec'ed; what the harness sends meanwhile waits in the listener's
backlog. The launcher's own thread watches the harness and never waits for this one except to end it.

A launcher that is a client of the session's memory itself dials in over a socket pair: there is no name, path or port that anything
else could connect to.
"""

import sys
import threading
from collections.abc import Awaitable, Callable

from amem.errors import UnavailableError
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    import socket

Serve = Callable[["Doors", "asyncio.Event"], Awaitable[None]]
"""Serves what comes through the doors until the event is set, then ends what is open and returns."""
Accept = Callable[["socket.socket"], None]
"""Takes a connection of the launcher's own; called in the event loop."""

SWITCH_S = 0.0005
"""After so long the launcher's thread, which has little to do, is let in while this one imports; by default it waits ten times that."""
HEAD_START_S = 0.01
"""So long a harness may run before the packages that serve it are imported, unless it calls sooner: one that has ended needs none."""
DIAL_TIMEOUT_S = 60.0
"""Until the packages are imported, on a machine that is busy."""


class Doors:
    """How a session's server is reached."""

    def __init__(self, opened: Callable[[Accept], None]) -> None:
        import asyncio

        self._arrived: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()
        self._opened = opened

    def arrive(self, descriptor: int) -> None:
        """Hand over the sandbox's listener; in the event loop."""
        import socket

        listener = socket.socket(fileno=descriptor)
        listener.setblocking(False)
        self._arrived.set_result(listener)

    async def listener(self, end: "asyncio.Event") -> "socket.socket | None":
        """The sandbox's listener, once there is one; None when the session ends before. The caller closes it."""
        import asyncio

        ended = asyncio.ensure_future(end.wait())
        await asyncio.wait((self._arrived, ended), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        return self._arrived.result() if self._arrived.done() else None

    def open(self, accept: Accept) -> None:
        """Let the launcher dial in from now on."""
        self._opened(accept)


class Served:
    """A running server thread. `stop` ends it; `failure` is what ended it, when it ended by itself."""

    def __init__(self, make: Callable[[], Serve]) -> None:
        self.failure: BaseException | None = None
        self._make = make
        self._lock = threading.Lock()  # guards everything below
        self._listener_fd = -1
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._doors: Doors | None = None
        self._accept: Accept | None = None
        self._on_failure: Callable[[], None] | None = None
        self._stopped = False
        self._importing = False
        self._open = threading.Event()
        """Set when the launcher may dial in, and when it never will."""
        self._imported = threading.Event()
        """Set when nothing but the listener is missing, and when it never will be so."""
        self._thread = threading.Thread(target=self._run, name="egress", daemon=True)

    def start(self) -> None:
        """Start importing, then serving; nothing where that was done already."""
        if self._thread.ident is None:
            sys.setswitchinterval(SWITCH_S)
            self._thread.start()

    def ready(self) -> None:
        """Start, and wait until what serves is imported; for a while only, and the listener is served either way."""
        self.start()
        self._imported.wait(DIAL_TIMEOUT_S)

    def listen(self, listener_fd: int, on_failure: Callable[[], None]) -> None:
        """Serve the sandbox's listener from now on; `on_failure` is called once, also when the server has failed already."""
        import os

        with self._lock:
            self._listener_fd = listener_fd
            self._on_failure = on_failure
            failed = self.failure is not None
            if self._loop is not None and self._doors is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._doors.arrive, listener_fd)
        if failed:
            os.close(listener_fd)
            on_failure()

    def dial(self) -> "socket.socket":
        """A connection of the launcher's own to the session's memory. Raises UnavailableError."""
        import socket

        if not self._open.wait(DIAL_TIMEOUT_S):
            raise UnavailableError("the memory server did not start in time", hint="amem doctor")
        with self._lock:
            if self._loop is None or self._accept is None or self._stopped or self.failure is not None:
                raise UnavailableError(f"the memory server is not there: {self.failure or 'it has ended'}", hint="amem doctor")
            ours, theirs = socket.socketpair()
            self._loop.call_soon_threadsafe(self._accept, theirs)
        return ours

    def stop(self, timeout_s: float = 10.0) -> bool:
        """End the server and wait for it; True when it settled everything in time.

        A server that has not begun to serve has nothing to settle, and is left to the end of the process.
        """
        with self._lock:
            self._stopped = True
            serving = self._loop is not None
            if self._loop is not None and self._end is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._end.set)
            importing = self._importing
        if not serving:
            if importing:  # `dataclasses` takes a `typing` that another thread has loaded by half for the whole of it (CPython 3.11)
                import typing  # noqa: F401 (which waits for that thread)
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            if self._over_at_once():
                return
            import asyncio

            _log_visibly()
            asyncio.run(self._serve(self._make()))
        except BaseException as error:  # the outer edge of this thread: told once, to the launcher
            with self._lock:
                self.failure, tell = error, self._on_failure
            if tell is not None:
                tell()
        finally:
            self._open.set()
            self._imported.set()

    def _over_at_once(self) -> bool:
        import select

        with self._lock:
            listener_fd = self._listener_fd
        if listener_fd >= 0:
            select.select([listener_fd], [], [], HEAD_START_S)
        with self._lock:
            self._importing = not self._stopped
            return self._stopped

    async def _serve(self, serve: Serve) -> None:
        import asyncio

        end, doors = asyncio.Event(), Doors(self._let_in)
        with self._lock:
            if self._stopped:
                return
            self._loop, self._end, self._doors = asyncio.get_running_loop(), end, doors
            if self._listener_fd >= 0:
                doors.arrive(self._listener_fd)
        self._imported.set()
        await serve(doors, end)

    def _let_in(self, accept: Accept) -> None:
        with self._lock:
            self._accept = accept
        self._open.set()


def _log_visibly() -> None:
    """What is logged goes to a person's terminal and can hold what a harness sent: control characters show, and no line is forged."""
    import logging

    from amem.policy.reasons import visible

    class Visible(logging.Formatter):
        def formatMessage(self, record: logging.LogRecord) -> str:
            return visible(super().formatMessage(record))

        def formatException(self, ei: Any) -> str:
            return "\n".join(map(visible, super().formatException(ei).split("\n")))

    assert logging.lastResort is not None
    logging.lastResort.setFormatter(Visible())

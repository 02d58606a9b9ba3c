"""The thread that serves a session: egress and memory on the listener that the sandbox passed out.

Its packages are imported here, after the harness was exec'ed; what the harness sends meanwhile waits in the listener's
backlog. The launcher's own thread watches the harness and never waits for this one except to end it.
"""

import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    import socket

Serve = Callable[["socket.socket", "asyncio.Event"], Awaitable[None]]
"""Serves on a listener until the event is set, then ends what is open and returns."""


class Served:
    """A running server thread. `stop` ends it; `failed` is what ended it, when it ended by itself."""

    def __init__(self, listener_fd: int, make: Callable[[], Serve], on_failure: Callable[[BaseException], None]) -> None:
        self._listener_fd = listener_fd
        self._make = make
        self._on_failure = on_failure
        self._lock = threading.Lock()  # guards _loop, _end and _stopped
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="egress", daemon=True)

    def start(self) -> None:
        """Start importing, then serving."""
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> bool:
        """End the server and wait for it; True when it settled everything in time.

        A server that has not begun to serve has nothing to settle, and is left to the end of the process.
        """
        with self._lock:
            self._stopped = True
            serving = self._loop is not None
            if self._loop is not None and self._end is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._end.set)
        if not serving:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        import asyncio

        try:
            serve = self._make()
            asyncio.run(self._serve(serve))
        except BaseException as error:  # the outer edge of this thread: told once, to the launcher
            self._on_failure(error)

    async def _serve(self, serve: Serve) -> None:
        import asyncio
        import socket

        end = asyncio.Event()
        with self._lock:
            if self._stopped:
                return
            self._loop, self._end = asyncio.get_running_loop(), end
        with socket.socket(fileno=self._listener_fd) as listener:
            listener.setblocking(False)
            await serve(listener, end)

"""Ctrl-C while a worker works: the first means "after this task", the second "now".

SIGINT is blocked and taken by a thread of its own, so that it never reaches the harness by way of the launcher's main thread and never
breaks off a claim or a release half way.
"""

import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from amem.sandbox.run import Running

GRACE_S = 5.0
"""Between SIGTERM to the harness and the end of everything inside."""
AFTER_THIS = "this task is worked to its end; Ctrl-C again ends it now and gives it back"
NOW = "ending it now"


class Interrupts:
    """A context in which Ctrl-C is counted."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.count = 0
        self.struck = False
        """Whether the session was ended from here."""
        self._note = note
        self._running: Running | None = None
        self._lock = threading.Lock()  # guards struck and _running
        self._timer: threading.Timer | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._wait, name="interrupts", daemon=True)

    def __enter__(self) -> Self:
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended = True
        assert self._thread.ident is not None
        signal.pthread_kill(self._thread.ident, signal.SIGINT)
        self._thread.join()
        if self._timer is not None:
            self._timer.cancel()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def attend(self, running: "Running") -> None:
        """The session that is to end; at once where that was asked for already."""
        with self._lock:
            self._running = running
            struck = self.struck
        if struck:
            self._end(running)

    def strike(self) -> None:
        """End the session: SIGTERM to the harness, and after a while the end of everything inside."""
        with self._lock:
            self.struck, before, running = True, self.struck, self._running
        if running is not None and not before:
            self._end(running)

    def _end(self, running: "Running") -> None:
        running.signal(signal.SIGTERM)
        self._timer = threading.Timer(GRACE_S, running.kill)
        self._timer.daemon = True
        self._timer.start()

    def _wait(self) -> None:
        while True:
            signal.sigwait({signal.SIGINT})
            if self._ended:
                return
            self.count += 1
            if self.count == 1:
                self._note(AFTER_THIS)
            elif not self.struck:
                self._note(NOW)
                self.strike()

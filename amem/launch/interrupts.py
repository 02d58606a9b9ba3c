"""Ctrl-C while a worker works: the first means "after this task", the second "now"; SIGTERM and SIGHUP mean "now" at once.

These signals are blocked and taken by a thread of its own, so that they never reach the harness by way of the launcher's main thread and
never break off a claim or a release half way.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from amem.typed import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from amem.sandbox.run import Running

SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
GRACE_S = 5.0
"""Between SIGTERM to the harness and the end of everything inside."""
NONE_AFTER = "no further task is taken; Ctrl-C again ends at once"
AFTER_THIS = "this task is worked to its end; Ctrl-C again ends it now and gives it back"
NOW = "ending it now"


@contextmanager
def held_back() -> Iterator[None]:
    """These signals wait while this lasts: nothing is left half made. `Interrupts` within takes them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Interrupts:
    """A context in which these signals are taken; within `held_back`."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.asked = threading.Event()
        """Set once somebody wants no more tasks to be taken."""
        self.struck = False
        """Whether the session was ended from here."""
        self._note = note
        self._running: Running | None = None
        self._lock = threading.Lock()  # guards struck and _running
        self._timer: threading.Timer | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._wait, name="interrupts", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended = True
        assert self._thread.ident is not None
        signal.pthread_kill(self._thread.ident, signal.SIGINT)
        self._thread.join()
        if self._timer is not None:
            self._timer.cancel()

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
            number = signal.sigwait(SIGNALS)
            if self._ended:
                return
            first = number == signal.SIGINT and not self.asked.is_set()
            with self._lock:
                struck, running = self.struck, self._running is not None
            if not struck:
                self._note(NOW if not first else AFTER_THIS if running else NONE_AFTER)
            self.asked.set()
            if not first:
                self.strike()

"""Say that nothing has been heard of a headless session for long: it printed nothing and asked no model.

A report and never an end: a long build may be at work. What ends a session is its time limit, or `amem session stop`.
"""

import threading
import time
from collections.abc import Callable
from types import TracebackType

from amem.typed import Self

SILENCE_S = 600.0
"""After which a person would begin to wonder."""


class Watch:
    """A watch over one session; `heard` is called for each sign of life, from any thread."""

    def __init__(self, session: str, tell: Callable[[str], None], silence_s: float = SILENCE_S) -> None:
        self._session, self._tell, self._silence_s = session, tell, silence_s
        self._heard_at = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stall", daemon=True)

    def heard(self) -> None:
        """There was a sign of life."""
        self._heard_at = time.monotonic()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        told_at = -1.0
        while not self._ended.wait(max(0.0, self._heard_at + self._silence_s - time.monotonic()) or self._silence_s):
            at = self._heard_at
            if at != told_at and time.monotonic() >= at + self._silence_s:
                told_at = at
                self._tell(self._sentence())

    def _sentence(self) -> str:
        return (
            f"for {self._silence_s / 60:.0f} minutes the session has printed nothing and asked no model; it works on something long, "
            f"or is stuck; to end it: amem session stop {self._session}"
        )

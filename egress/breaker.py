"""A circuit breaker for amem's own calls: a destination that keeps failing is left alone for a while (B11).

Pure but for what it remembers; the caller brings the clock. A harness has its own patience and is never held back here; amem's own
calls come in bulk, and would make a bad hour of a provider worse and spend on calls that fail.
"""

from amem.typed import NamedTuple

FAILURES = 5
"""In a row, until it opens."""
FIRST_REST_S = 30.0
LONGEST_REST_S = 600.0


class Resting(NamedTuple):
    """The destination is left alone for so many seconds more."""

    seconds: float


class Breaker:
    """The breaker of one destination. `ask` before a call, `told` after it; times are seconds of one clock that only rises."""

    def __init__(self) -> None:
        self._failures = 0
        self._rest_s = FIRST_REST_S
        self._until: float | None = None
        self._trying = False

    def ask(self, now_s: float) -> Resting | None:
        """Whether a call may be made; after a rest one may, and the others wait for what comes of it."""
        if self._until is None:
            return None
        if now_s < self._until or self._trying:
            return Resting(max(self._until - now_s, 0.0))
        self._trying = True
        return None

    def told(self, good: bool, now_s: float) -> None:
        """What came of a call. One that did not leave, or was our own fault, is no word on the destination: `left` it is."""
        trying, self._trying = self._trying, False
        if good:
            self._failures, self._rest_s, self._until = 0, FIRST_REST_S, None
            return
        self._failures += 1
        if trying:
            self._rest_s = min(self._rest_s * 2, LONGEST_REST_S)
        if trying or self._failures >= FAILURES:
            self._until = now_s + self._rest_s

    def left(self) -> None:
        """A call ended without a word on the destination."""
        self._trying = False

"""Keep a claim while a harness works on it: a heartbeat now and then, and a watchdog for when none gets through.

A lease runs from when the ledger renewed it, which cannot be before the heartbeat was sent: so the watchdog counts from sending. One
lost heartbeat does no harm, since several fall into one lease. When the ledger says that the claim is over, or a whole lease went by
without its word, the worker is stopped: somebody else may be at work.
"""

import threading
import time
from collections.abc import Callable
from enum import Enum

BEATS = 4
"""Heartbeats in one lease."""
RETRIES = 20
"""A heartbeat that got no answer is sent again after this part of a lease."""


class Beat(Enum):
    """What became of a heartbeat."""

    RENEWED = "renewed"
    LOST = "lost"
    """No answer, or one that says nothing about the claim: the next one may get through."""
    OVER = "over"
    """The claim is over."""


def since_boot() -> float:
    """Seconds, those included in which the machine slept: the ledger's lease ran on meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """When the next heartbeat is due, and whether the claim must be taken for lost. Pure: instants come in."""

    def __init__(self, lease_s: float, sent_at: float) -> None:
        self.over = False
        self._lease_s = lease_s
        self._renewed_at = sent_at
        """When the last heartbeat that was answered, or the claim, was sent."""
        self._due_at = sent_at + lease_s / BEATS

    def wait_s(self, now: float) -> float:
        """Seconds until the next heartbeat is due, or until the lease ends, whichever is first."""
        return max(0.0, min(self._due_at, self._renewed_at + self._lease_s) - now)

    def beaten(self, beat: Beat, sent_at: float, now: float) -> None:
        """Take note of what became of a heartbeat."""
        if beat is Beat.RENEWED:
            self._renewed_at = sent_at
            self._due_at = sent_at + self._lease_s / BEATS
        else:
            self._due_at = now + self._lease_s / RETRIES
        self.over = self.over or beat is Beat.OVER or self.expired(now)

    def expired(self, now: float) -> bool:
        """Whether a whole lease went by since the last heartbeat that was answered."""
        return now - self._renewed_at >= self._lease_s


class Keeper:
    """A thread that sends heartbeats until `stop`. `lost` says why the claim is gone; the worker has been told by then."""

    def __init__(
        self, beat: Callable[[], Beat], lease_s: float, sent_at: float, on_lost: Callable[[str], None],
        clock: Callable[[], float] = since_boot,
    ) -> None:  # fmt: skip
        self.lost: str | None = None
        self._beat = beat
        self._lease = Lease(lease_s, sent_at)
        self._on_lost = on_lost
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        """Begin to keep the claim."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more; returns when none is under way."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._lease.wait_s(self._clock())):
            sent_at = self._clock()
            # Past its lease it is too late to ask: the claim may be somebody else's.
            beat = Beat.LOST if self._lease.expired(sent_at) else self._beat()
            if self._stopping.is_set():
                return  # what the worker did meanwhile may have ended the claim
            self._lease.beaten(beat, sent_at, self._clock())
            if self._lease.over:
                self.lost = "the claim is over" if beat is Beat.OVER else "no heartbeat got through for a whole lease"
                self._on_lost(self.lost)
                return

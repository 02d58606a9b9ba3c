"""Admission: how many calls may be under way at a destination, how many may wait, and when to come back (B11).

Pure. A queue is bounded, because a harness waits at its own end better than in ours.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum

WAITING_PER_SLOT = 4
_CALL_S = 8
"""A guess at how long a call takes, for `retry-after`."""


class Lane(StrEnum):
    """Who calls. Each has its own limit in grants.toml, so that nobody who works waits behind what can wait."""

    HARNESS = "harness"
    OWN = "own"
    """amem's own calls that somebody waits for."""
    CURATION = "curation"
    """amem's own calls in bulk."""


class Verdict(Enum):
    """What becomes of a call that comes."""

    GO = "go"
    WAIT = "wait"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Busy:
    """Too many calls are under way and wait already."""

    destination: str
    most_at_once: int

    @property
    def sentence(self) -> str:
        """What the harness is told."""
        return f"{self.most_at_once} calls are under way at {self.destination}, which is the most that grants.toml allows, and more wait"

    @property
    def retry_after_s(self) -> int:
        """Until about one call of each slot has ended."""
        return _CALL_S


def admit(most_at_once: int, running: int, waiting: int) -> Verdict:
    """The verdict on one more call. Nobody who waits is overtaken."""
    if running < most_at_once and waiting == 0:
        return Verdict.GO
    return Verdict.WAIT if waiting < most_at_once * WAITING_PER_SLOT else Verdict.BUSY

"""An entry: one Markdown file of the record, as a value."""

from dataclasses import dataclass, field
from enum import StrEnum

from amem.model.label import Label
from amem.typed import Any


class EntryType(StrEnum):
    """What an entry is."""

    FACT = "fact"
    DECISION = "decision"
    CONVENTION = "convention"
    METHOD = "method"
    HANDOFF = "handoff"
    POLICY = "policy"
    QUESTION = "question"


class Tier(StrEnum):
    """How far an entry is trusted: `raw < curated < verified`."""

    RAW = "raw"
    CURATED = "curated"
    VERIFIED = "verified"

    @property
    def rank(self) -> int:
        """0 for raw, 1 for curated, 2 for verified."""
        return _RANK[self]


_RANK = {Tier.RAW: 0, Tier.CURATED: 1, Tier.VERIFIED: 2}


class Status(StrEnum):
    """Whether an entry is live."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DEMOTED = "demoted"
    ERASED = "erased"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry. Absent values are None or empty; `extra` keeps front-matter keys amem does not know."""

    id: str
    version: int
    type: EntryType
    title: str
    summary: str
    domain: str
    classification: Label
    tier: Tier
    status: Status
    author: str
    written_at: str
    """UTC, milliseconds, `Z`."""
    body: str
    session: str | None = None
    task: str | None = None
    left_by: str | None = None
    """Of a handoff: `agent`, `hook` or `launcher`."""
    owner: str | None = None
    """A convention's owner."""
    review_by: str | None = None
    """A date, `YYYY-MM-DD`."""
    sources: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    basis: str | None = None
    valid_from_at: str | None = None
    valid_to_at: str | None = None
    lineage: Tier | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def tokens(text: str) -> int:
    """Tokens of a text as amem counts its own pages: UTF-8 bytes / 4, rounded up."""
    return -(-len(text.encode()) // 4)


REVIEW_DAYS = {EntryType.FACT: 90}
"""Days until an entry of a type is due for review when its writer names no date."""
RAW_DUE_DAYS = 30
"""A raw entry without `review_by` is due this many days after it was written."""

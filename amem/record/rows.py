"""What goes into and comes out of the index, as frozen values."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from amem.model.entry import EntryType, Status, Tier
from amem.model.label import Label
from amem.typed import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a reader may read. Nothing outside it shows in a hit, a count or an error."""

    domains: tuple[str, ...] | None = None
    """None is every domain; an empty tuple is none."""
    max_label: Label
    min_tier: Tier = Tier.RAW

    def admits(self, domain: str, label: Label, tier: Tier) -> bool:
        """Say whether the reader may read an entry with these."""
        return bool(self.admitted([(0, domain, label.rank, tier.rank)]))

    def admitted(self, combinations: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Of rows `(number, domain, rank of label, rank of tier, …)`, those of entries the reader may read."""
        domains, high, low = self.domains, self.max_label.rank, self.min_tier.rank
        return [row for row in combinations if row[2] <= high and row[3] >= low and (domains is None or row[1] in domains)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An entry as the index knows it: everything but its body."""

    id: str
    version: int
    type: EntryType
    title: str
    summary: str
    domain: str
    classification: Label
    """The file's, or the highest it ever had when somebody lowered it behind amem."""
    tier: Tier
    status: Status
    """Superseded also when only the successor says so."""
    author: str
    written_at: str
    session: str | None
    task: str | None
    left_by: str | None
    owner: str | None
    review_by: str | None
    sources: tuple[str, ...]
    supersedes: tuple[str, ...]
    superseded_by: str | None
    basis: str | None
    valid_from_at: str | None
    valid_to_at: str | None
    lineage: Tier | None
    due: bool
    """Its review date is past, or it is raw, undated and old."""
    tokens: int
    """Of the body."""
    path: str
    """Below `record/`."""
    digest: str
    """`sha256:…` of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """What a search shows of an entry; the body is asked for with `get`."""

    id: str
    type: EntryType
    title: str
    summary: str
    domain: str
    classification: Label
    tier: Tier
    lineage: Tier | None
    due: bool
    score: float
    """By place alone: 1.0 for the first, .91 for the second. A raw score would tell of words in entries that are hidden."""
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A page of hits, best first."""

    hits: tuple[Hit, ...]
    total: int
    """Entries that were ranked: all that have a word of the question, at most `search.WINDOW`."""
    more: bool
    mode: str
    """`all` when the best hit has every word of the question, else `any`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of rows in the order asked for."""

    rows: tuple[Row, ...]
    total: int
    more: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """A file below `record/` that is not served as it stands. It is kept."""

    path: str
    """Below `record/`."""
    kind: str
    """`malformed`, `duplicate` (another file has this id) or `misplaced` (served, but not where it belongs)."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a look at the record found."""

    entries: int
    """In the index afterwards."""
    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    problems: tuple[Problem, ...] = ()
    raised: tuple[str, ...] = ()
    """Entries whose file says a lower label than they had; they are served under the old one."""
    repaired: tuple[str, ...] = ()
    """Entries whose missing supersession mark was written."""

    @property
    def malformed(self) -> tuple[Problem, ...]:
        """The files that are no entries."""
        return tuple(problem for problem in self.problems if problem.kind == "malformed")


@dataclass(slots=True)
class Tally:
    """A report while it is being counted."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    raised: list[str] = field(default_factory=list)

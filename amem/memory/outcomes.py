"""What a write or a read can come to. Each is a value; the caller handles every one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from amem.model.entry import Entry
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.policy.scan import Finding
    from amem.record.rows import Hit, Row


@dataclass(frozen=True, slots=True)
class Written:
    """The entry stands in the record."""

    entry: Entry
    same: tuple[str, ...] = ()
    """Entries that still say what it replaced: there is a task about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The write waits in the quarantine for the owner; nothing of it is served."""

    id: str
    reason: str
    findings: "tuple[Finding, ...]" = ()
    task: str | None = None
    """The owner's task about it; None when the ledger could not be reached."""
    decision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nothing happened. `code` is one of the tools' codes, or of the policy's reasons."""

    code: str
    reason: str
    hint: str | None = None
    decision: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """A page of search hits: summaries, never bodies."""

    hits: "tuple[Hit, ...]"
    total: int
    more: bool
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """A page of a list, each entry without its body."""

    rows: "tuple[Row, ...]"
    total: int
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One entry with its body."""

    row: "Row"
    body: str
    redirected_from: str | None = None
    """What the reader asked for, when a redirect was followed."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The entry was replaced; `location` is its current version. Given only when the reader did not want to be redirected."""

    id: str
    location: str


@dataclass(frozen=True, slots=True)
class Gone:
    """The entry was demoted, erased, or replaced by nothing this reader may read."""

    id: str


@dataclass(frozen=True, slots=True)
class NotFound:
    """There is no such entry for this reader; whether one exists is not told."""

    id: str

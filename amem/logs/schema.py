"""One frozen record per event. The dotted `event` is also the span name and the Rego action.

Adding a key is free; a rename needs a new `V` and an upgrade in the reader. A key is left out when there is nothing to
say. Never a body, a prompt, a header value or a secret.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from amem.model.call import ObservedBy

V = 1


@dataclass(frozen=True, kw_only=True)
class Event:
    """What every line carries: `v event at id session domain principal observed_by`, then the event's keys."""

    event: ClassVar[str]
    log: ClassVar[str]
    """The file under `state/` that holds it."""

    at: str
    id: str | None = None
    session: str | None = None
    domain: str | None = None
    principal: str | None = None
    observed_by: ObservedBy = ObservedBy.AMEM

    def line(self) -> dict[str, Any]:
        """The event as the keys of its line, in order, absent rather than null."""
        keys: dict[str, Any] = {"v": V, "event": self.event}
        for name, value in vars(self).items():
            if value is not None and value != () and value != {}:
                keys[name] = value
        return keys


@dataclass(frozen=True, kw_only=True)
class PolicyDecision(Event):
    """A decision of the policy, logged before its effect."""

    event = "policy.decision"
    log = "decisions.jsonl"

    action: str
    allow: bool
    hold: bool | None = None
    """A write that goes to the quarantine."""
    review: str | None = None
    task: str | None = None
    subject: str | None = None
    """The entry or held write that an act is about."""
    reasons: tuple[dict[str, Any], ...] = ()
    citations: tuple[str, ...] = ()
    policy_version: str
    data_version: str | None = None
    """Of the grants that it was made over."""
    input_digest: str
    input: dict[str, Any] = field(default_factory=dict)
    """What was asked, but for what the line says already: ids, labels, counts and classes, so that it can be decided again."""


@dataclass(frozen=True, kw_only=True)
class MemoryRead(Event):
    """A read that was served: which entries, how many tokens."""

    event = "memory.read"
    log = "reads.jsonl"

    tool: str
    """`t0`, `search`, `get`, `list`, `prefetch`, `read_with`."""
    entries: tuple[str, ...] = ()
    tokens: int = 0
    label: str
    """The session's label after the read."""
    task: str | None = None


@dataclass(frozen=True, kw_only=True)
class MemoryWrite(Event):
    """A write that happened: stored in the record, or held in the quarantine."""

    event = "memory.write"
    log = "writes.jsonl"

    entry: str | None = None
    held: str | None = None
    type: str
    classification: str
    supersedes: tuple[str, ...] = ()
    digest: str
    """sha256 of the body."""
    tier: str | None = None
    """What it was written as, where that is not raw."""
    fixed: str | None = None
    """sha256 of all of the entry that does not change later."""
    label: str
    task: str | None = None


@dataclass(frozen=True, kw_only=True)
class MemoryAct(Event):
    """What the owner did to entries, once it was done."""

    event = "memory.act"
    log = "writes.jsonl"

    act: str
    subject: str | None = None
    """What the act was about, where that is no entry."""
    entries: tuple[str, ...]
    why: str
    """In the owner's words."""
    digests: dict[str, str] = field(default_factory=dict)
    """By entry: sha256 of what is fixed of it, after an act that changed that."""
    files: dict[str, str] = field(default_factory=dict)
    """By file below `state/` that says what the act did: sha256 of its bytes; empty once it is gone again."""
    to: str | None = None
    """Of an export: the file. Of a declassification: the label."""


@dataclass(frozen=True, kw_only=True)
class KeyMade(Event):
    """A key of the root was made: from then on it is missed where it is gone."""

    event = "key.made"
    log = "writes.jsonl"

    files: dict[str, str]
    """By file below `state/`: sha256 of its bytes."""


@dataclass(frozen=True, kw_only=True)
class ModelDecision(Event):
    """What came of a model call of amem's own, or of the code that decided on it."""

    event = "model.decision"
    log = "curation.jsonl"

    role: str
    """`recommender`, `evaluator` or `generator`; `decider` or `router`, which is code."""
    verdict: str
    call: str | None = None
    """The metered call."""
    model: str | None = None
    rubric: str | None = None
    rubric_version: str | None = None
    confidence: float | None = None
    """0 to 1."""
    alternatives: tuple[str, ...] = ()
    invariants: dict[str, bool] = field(default_factory=dict)
    """Each rule that was checked, and whether it held."""
    escalated: bool | None = None
    """A person was asked."""
    gate: str | None = None
    """What the outcome had to pass, or did not."""


@dataclass(frozen=True, kw_only=True)
class Anchor(Event):
    """How far each log went at this moment: what shows later that one was cut back."""

    event = "anchor"
    log = "anchors.jsonl"

    heads: dict[str, dict[str, Any]]
    """By log: `{lines, digest}`, or `{bytes, digest}` of one that a process only knows by what it wrote; the digest of its last line."""


@dataclass(frozen=True, kw_only=True)
class LedgerSealed(Event):
    """What events of the ledger say, as digests, once they were there."""

    event = "ledger.sealed"
    log = "ledger.jsonl"

    ledger: str
    """Which one (`ledger.opening.identity`)."""
    seals: tuple[str, ...]
    """As `ledger.sealing` writes them, in order."""
    form: int
    """Of the seals; 1 where it is absent."""
    promotions: tuple[str, ...] = ()
    """Seals of promotions; the last one of each counts."""


@dataclass(frozen=True, kw_only=True)
class LogMasked(Event):
    """What an erasure did to the log that this line ends: texts were masked, and the lines from the first such one on linked anew."""

    event = "log.masked"
    log = "writes.jsonl"

    first: int
    """The first line that was changed."""
    count: int
    """How many were masked."""


@dataclass(frozen=True, kw_only=True)
class TranscriptSwept(Event):
    """What is dropped of a session once its time is up, before it is."""

    event = "transcript.swept"
    log = "transcripts.jsonl"

    turns: tuple[int, ...] = ()
    """The turns that stay, because entries cite them."""
    contexts: bool | None = None
    """It is the session's decision contexts that are dropped."""
    home: bool | None = None
    """It is the session's private home that is dropped."""


@dataclass(frozen=True, kw_only=True)
class SessionPort(Event):
    """A port that the owner opened between a session and the host's loopback, before it is."""

    event = "session.port"
    log = "sessions.jsonl"

    port: int
    of: str
    """`inside`: the session's, reached from the host. `host`: the host's, reached from inside."""


@dataclass(frozen=True, kw_only=True)
class SessionStop(Event):
    """A running session that is to be stopped; by whom is the line's `principal`. Before it is."""

    event = "session.stop"
    log = "sessions.jsonl"

    why: str | None = None
    """In the words of whoever stops it."""
    grace_s: float
    """Between SIGTERM and the end of everything inside."""

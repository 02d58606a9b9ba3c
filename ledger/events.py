"""The events of the ledger: one frozen record each, the only thing that is canonical here.

An event is what was decided, with everything the projection needs to know of it; `task.<kind>` is also the name of its span.
Never the text of a body or a remark, only its digest. Adding a key with a default is free; a rename needs an upgrade
in `read`.
"""

import json
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from amem.errors import IntegrityError


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event carries."""

    kind: ClassVar[str]

    task: str
    by: str
    """The principal."""
    at_ms: int
    fence: int = 0
    """The claim it belongs to; 0 when to none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Created(Event):
    """A task was filed. Its rank is the filed priority, never above the task it serves."""

    kind = "created"

    title: str
    priority: int
    rank: float
    requires: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    body: str | None = None
    origin: str | None = None
    parent: str | None = None
    chain: str
    twin: str | None = None
    check: tuple[str, ...] = ()
    budget_tokens: int | None = None
    label: str | None = None
    review: str | None = None
    session: str | None = None
    replaces: str | None = None
    """The closed task whose dependents wait on this one from now on."""
    lessons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted(Event):
    """A proposed task may be claimed."""

    kind = "admitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed(Event):
    """A worker took it; `fence` is the number of this claim."""

    kind = "claimed"

    lease_ms: int
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Event):
    """The lease runs again from now."""

    kind = "heartbeat"

    lease_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(Event):
    """It went back to the pool: given back, or its lease ended (then `by` is the ledger)."""

    kind = "released"

    why: str | None = None
    blocker: str | None = None
    """What stood in the way, in the worker's words."""
    handoff: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffLeft(Event):
    """A handoff was attached; under a fence it is that of the claim."""

    kind = "handoff_left"

    handoff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed(Event):
    """It is done; what waits on it has one need fewer."""

    kind = "completed"

    handoff: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalidated(Event):
    """It was closed without being done."""

    kind = "invalidated"

    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted(Event):
    """Somebody remarked on it."""

    kind = "posted"

    text: str
    """sha256 of the remark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored(Event):
    """Its rank moved, and why."""

    kind = "rescored"

    was: float
    rank: float
    why: str
    serves: str | None = None
    """The task for whose sake it rose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked(Event):
    """Nobody may claim it until what it needs is there."""

    kind = "blocked"

    on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unblocked(Event):
    """It may be claimed again; the count of blockers starts anew."""

    kind = "unblocked"

    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(Event):
    """Its check commands ran outside any model, on a tree with this digest."""

    kind = "checked"

    state: str
    """`verified`, `failed` or `unchecked`."""
    tree: str | None = None
    exits: tuple[int, ...] = ()
    """The exit code of each command that ran, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded(Event):
    """A grader judged its output."""

    kind = "graded"

    verdict: str
    """`satisfied`, `needs_revision`, `max_iterations_reached`, `failed` or `interrupted`."""
    round: int = 1
    grader: str | None = None
    """The model that judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased(Event):
    """Its words were erased, from here and from the events before this one."""

    kind = "erased"


KINDS: dict[str, type[Event]] = {
    kind.kind: kind
    for kind in (
        Created, Admitted, Claimed, Heartbeat, Released, HandoffLeft, Completed, Invalidated, Posted, Rescored, Blocked,
        Unblocked, Checked, Graded, Erased,
    )
}  # fmt: skip
encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""The keys of an event as they are kept."""
_BASE = ("task", "by", "at_ms", "fence")
_OWN = {kind: tuple((item.name, item.default) for item in fields(cls) if item.name not in _BASE) for kind, cls in KINDS.items()}


def data(event: Event) -> str:
    """The event's own keys as one line of JSON, those that hold their default left out."""
    keys = {}
    for name, default in _OWN[event.kind]:
        value = getattr(event, name)
        if default is MISSING or value != default:
            keys[name] = value
    return encode(keys) if keys else "{}"


def read(kind: str, task: str, by: str, at_ms: int, fence: int, text: str) -> Event:
    """The event that these columns hold. Raises KeyError on a kind, TypeError on a key, that this version does not know."""
    keys: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(text).items()}
    return KINDS[kind](task=task, by=by, at_ms=at_ms, fence=fence, **keys)


def of_row(row: Sequence[Any]) -> Event:
    """The event of a row: kind, task, principal, at_ms, fence, data. Raises IntegrityError on one that cannot be read."""
    try:
        return read(*row)
    except (KeyError, TypeError, ValueError) as error:
        raise IntegrityError(f"{row[1]}: the event {row[0]!r} cannot be read: a later amem wrote it, or it was changed") from error

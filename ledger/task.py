"""A task as the projection holds it.

Pure values. Instants are whole milliseconds since the epoch by the ledger's own clock; only `amem.ledger.shown` writes them as text.
A long text (a body, a remark) is never in here: its digest is, and the text lies beside the events, so that erasing a
text leaves every event whole.
"""

from collections.abc import Iterable
from enum import StrEnum

from amem.errors import NotFoundError, UsageError
from amem.model.ids import domain_of, is_id
from amem.typed import NamedTuple

LEASE_ENDED = "the lease ended"
"""Why the ledger itself gave a task back."""
HUMAN = "human"
IRREVERSIBLE = "irreversible"
ANYTHING = frozenset({"*"})
"""The capabilities of a person: whatever a task requires."""


class Status(StrEnum):
    """Where a task stands."""

    PROPOSED = "proposed"
    ADMITTED = "admitted"
    CLAIMED = "claimed"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    INVALIDATED = "invalidated"

    @property
    def open(self) -> bool:
        """Whether work on it is still to come."""
        return self not in (Status.COMPLETED, Status.INVALIDATED)


OPEN = tuple(status for status in Status if status.open)


class Task(NamedTuple):
    """One task. Fields stand in the order of the columns that hold them (`rows.COLUMNS`)."""

    id: str
    title: str
    status: Status
    priority: int
    """As filed, 0 to 9; nothing changes it."""
    rank: float
    """What orders the claims, highest first; equal ranks go by `seq`."""
    requires: tuple[str, ...]
    """Capabilities a claimer needs, sorted."""
    origin: str | None
    """What filed it (`task:<parent>`, `librarian:<kind>`, …); None when a person did."""
    creator: str
    parent: str | None
    """The task it was filed from."""
    chain: str
    """The task that this one and everything beside it was first filed from; its own id at the top."""
    twin: str | None
    """Digest by which the same filing twice is one task: of the body within a chain, of the subject within a domain."""
    open_needs: int
    """Tasks it waits on that are not completed."""
    dependents: int
    """Tasks that name it as a dependency."""
    fence: int
    """The number of the latest claim; 0 before the first. Also the number of attempts."""
    holder: str | None
    """Who holds it, or who completed it."""
    session: str | None
    lease_ms: int
    lease_ends_ms: int | None
    handed_off: int
    """The fence of the claim that left the latest handoff."""
    handoffs: tuple[str, ...]
    """Entry ids, oldest first."""
    review: str | None
    """`human` when it asked for more than its filer holds."""
    reason: str | None
    """Why it was last released, blocked or invalidated."""
    created_ms: int
    changed_ms: int
    closed_ms: int | None
    depends_on: tuple[str, ...]
    body: str | None
    """sha256 of the text; None when it has none."""
    check: tuple[str, ...] = ()
    """Commands that must succeed before it counts as done."""
    checked: str | None = None
    """`verified`, `failed` or `unchecked`, of the tree whose digest is `checked_tree`."""
    checked_tree: str | None = None
    checked_ms: int | None = None
    checked_fence: int = 0
    budget_tokens: int | None = None
    label: str | None = None
    blocker: str | None = None
    """The latest stated blocker, and in how many attempts running."""
    blocker_runs: int = 0
    blocked_on: str | None = None
    grade: str | None = None
    lessons: tuple[str, ...] = ()
    """Of a retry: the handoffs of the chain before it."""

    @property
    def domain(self) -> str:
        """The domain, which the id names."""
        return domain_of(self.id)

    def held(self, fence: int, at_ms: int, session: str | None) -> bool:
        """Whether this claim (and this session, where the caller is one) holds it now."""
        return (
            self.status is Status.CLAIMED
            and self.fence == fence
            and (self.lease_ends_ms or 0) > at_ms
            and (session is None or session == self.session)
        )

    def at(self, at_ms: int) -> "Task":
        """The task as it stands at an instant: one whose lease has ended is in the pool, though nobody has come by yet to put it there."""
        if self.status is not Status.CLAIMED or (self.lease_ends_ms or 0) > at_ms:
            return self
        return self._replace(
            status=Status.ADMITTED, holder=None, session=None, lease_ends_ms=None, reason=LEASE_ENDED, blocker=None, blocker_runs=0
        )

    def allows(self, capabilities: Iterable[str]) -> bool:
        """Whether somebody with these capabilities may take it."""
        return covers(capabilities, self.requires)


def covers(capabilities: Iterable[str], requires: Iterable[str]) -> bool:
    """Whether the capabilities hold every requirement; `*` holds anything."""
    held = frozenset(capabilities)
    return held >= ANYTHING or held.issuperset(requires)


def known(task: str) -> str:
    """A task's id, checked. Raises UsageError when it has not the form of one."""
    if not is_id("task", task):
        raise UsageError(f"{task[:60]!r} is not a task's id: expected task-<domain>-<8 letters and digits>", hint="amem task list")
    return task


def not_found(task: str) -> NotFoundError:
    """The error for an id that is not there."""
    return NotFoundError(f"{task}: there is no such task here", hint="amem task list", task=task)

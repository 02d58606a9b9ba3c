"""What the ledger offers, whichever database holds it, and what its writing operations answer; `reading` has the questions.

One operation is one transaction: its events are appended and the projection updated, or nothing happened. A refusal is a value.
Every claim has a number, the fence: whoever held an earlier one, or whose lease has ended by the ledger's own clock, is refused with
`stale_fence`, so that a worker thought dead can do no harm when it comes back.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from amem.ledger.task import Task

if TYPE_CHECKING:
    from amem.ledger.draft import Draft
    from amem.ledger.events import Event
    from amem.ledger.promotions import Promotion, State
    from amem.ledger.rank import Move
    from amem.ledger.reading import Filter, Page, Reindexed, Stats
    from amem.model.label import Label

LEASE_MS = 600_000
"""How long a claim holds without a heartbeat."""
MAX_LEASE_MS = 86_400_000

Observe = Callable[["Event", Task], None]
"""Called after the commit with each event that took effect and the task as it was then: the place for spans and notices."""


class Why(StrEnum):
    """Why an operation was refused; the words of a tool's error."""

    STALE = "stale_fence"
    CONFLICT = "conflict"
    REFUSED = "refused"


class Refused(NamedTuple):
    """It did not happen, and the reason is one clear sentence."""

    code: Why
    reason: str
    hint: str | None = None


class Filed(NamedTuple):
    """A task that was filed, or the one that was there already."""

    task: Task
    existed: bool = False


class Admission(NamedTuple):
    """Tasks that are admitted now, and those that rose because they stand in the way."""

    tasks: tuple[Task, ...]
    raised: "tuple[Move, ...]"


class Closing(NamedTuple):
    """What an invalidation closed, and what it left as it was, with why."""

    closed: tuple[str, ...]
    left: Mapping[str, str]


class Spawn(NamedTuple):
    """A part of a fan-out. `requires` None takes the requirements of the task it comes from."""

    title: str
    body: str
    requires: tuple[str, ...] | None = None
    admit: bool = True
    """False where the policy does not let it start admitted, whatever the others do."""

    def needs(self, held: tuple[str, ...]) -> tuple[str, ...]:
        """What it requires under a task that requires `held`."""
        return held if self.requires is None else self.requires


class FannedOut(NamedTuple):
    """The children in the order asked for, and the task that resumes when all are done; None when nothing is left to wait for."""

    children: tuple[Filed, ...]
    continuation: Task | None


class Holding(NamedTuple):
    """The claim that a session acts under."""

    task: str
    fence: int
    session: str | None


class Ledger(Protocol):
    """The task ledger. Safe to call from several threads; calls block, so an event loop makes them in one.

    Each raises UnavailableError when the database cannot be reached within bounds, UsageError on an argument that cannot be right, and
    NotFoundError on an id that is not there. `by` is the acting principal.
    """

    def create(
        self,
        draft: "Draft",
        *,
        by: str,
        under: Holding | None = None,
        session: str | None = None,
        admit: bool = False,
        admit_own: bool = False,
        capabilities: Collection[str] | None = None,
    ) -> Filed | Refused:
        """File a task: proposed, unless `admit` (a person's word) or, under a held task, `admit_own` lets it start admitted.

        `capabilities` are what a filing agent holds: a task that asks for more is marked for a person's review.
        """

    def admit(self, ids: Sequence[str], *, by: str) -> Admission | Refused:
        """Let tasks be claimed; what they wait on rises above them. All or none."""

    def claim(
        self, domain: str, *, by: str, session: str | None = None, capabilities: Collection[str] = (), lease_ms: int = LEASE_MS
    ) -> Task | None:
        """Take the first ready task that these capabilities allow, or None. The fence is in the task."""

    def claim_one(
        self, task: str, *, by: str, session: str | None = None, capabilities: Collection[str] = (), lease_ms: int = LEASE_MS
    ) -> Task | Refused:
        """Take this very task."""

    def heartbeat(self, task: str, *, by: str, fence: int, session: str | None = None, lease_ms: int | None = None) -> Task | Refused:
        """Let the lease run again from now."""

    def release(
        self,
        task: str,
        *,
        by: str,
        fence: int,
        session: str | None = None,
        why: str | None = None,
        blocker: str | None = None,
        handoff: str | None = None,
    ) -> Task | Refused:
        """Give it back to the pool. The same blocker for the third time running makes it `blocked` instead."""

    def complete(
        self, task: str, *, by: str, fence: int, session: str | None = None, handoff: str | None = None, check: bool = False
    ) -> Task | Refused:
        """Say it is done; refused without a handoff of this claim, and, under `check`, without its checks verified in this claim."""

    def handoff_left(self, task: str, *, by: str, handoff: str, fence: int | None = None, session: str | None = None) -> Task | Refused:
        """Attach a handoff entry; without a fence a person does, to any task."""

    def post(self, task: str, *, by: str, text: str) -> Task:
        """Add a remark."""

    def block(self, task: str, *, by: str, on: str, fence: int | None = None, session: str | None = None) -> Task | Refused:
        """Say what must be there before anybody may claim it."""

    def unblock(self, task: str, *, by: str, why: str | None = None) -> Task | Refused:
        """Let a blocked task be claimed again."""

    def invalidate(self, task: str, *, by: str, why: str | None = None, dry_run: bool = False) -> Closing:
        """Close a task and every open one filed from it."""

    def retry(self, task: str, *, by: str, why: str | None = None) -> Task | Refused:
        """File a closed task again, with the handoffs of its chain as lessons; what waited on it waits on the new one."""

    def fan_out(
        self,
        spawns: Sequence[Spawn],
        *,
        domain: str,
        by: str,
        under: Holding | None = None,
        session: str | None = None,
        continuation: str | None = None,
        admit_own: bool = False,
        capabilities: Collection[str] | None = None,
        label: "Label | None" = None,
    ) -> FannedOut | Refused:
        """File the parts of a held task and the task that resumes it once they and the session are done. Twice is once.

        `label` is what the filing session had read; what is filed carries it on.
        """

    def rescore(self, domain: str, *, by: str, dry_run: bool = False) -> "tuple[Move, ...]":
        """Reckon the rank of every open task anew from the priority it was filed with."""

    def checked(
        self,
        task: str,
        *,
        by: str,
        state: str,
        tree: str | None,
        fence: int | None = None,
        session: str | None = None,
        exits: tuple[int, ...] = (),
    ) -> Task | Refused:
        """Note how a task's check commands ended, `verified`, `failed` or `unchecked`, on which tree."""

    def graded(self, task: str, *, by: str, verdict: str, round: int, grader: str | None, fence: int | None = None) -> Task | Refused:
        """Note a grader's verdict."""

    def promotion(self, entry: str, version: int, to: str, *, by: str, why: str) -> int:
        """Note a promotion of a version that is about to go into the record; its number."""

    def landed(self, entry: str, seq: int) -> None:
        """Say that a promotion stands in the record."""

    def propose(self, entry: str, version: int, draft: "Draft", *, by: str, why: str) -> Filed | Refused:
        """Propose a version as verified: file its approval task, and close the open proposal of an older version.

        Refused while one of the same version is open, and once it was declined.
        """

    def settle(self, entry: str, task: str, *, by: str, state: "State", why: str | None = None) -> "Promotion | Refused":
        """Say that a proposal landed or was declined; its task is closed."""

    def filed_by(self, domain: str, session: str, *, since_ms: int = 0) -> tuple[str, ...]:
        """The tasks that a session filed since then, oldest first."""

    def promotions(self, entry: str) -> "tuple[Promotion, ...]":
        """The promotions and proposals of an entry, in order."""

    def show(self, task: str) -> Task:
        """One task."""

    def list(self, filter: "Filter") -> "Page":
        """Tasks, the highest rank first."""

    def tasks(self, ids: Sequence[str]) -> dict[str, Task]:
        """Those of the tasks that are there."""

    def tree(self, task: str) -> tuple[Task, ...]:
        """A task and everything filed from it, oldest first."""

    def events(self, task: str) -> "tuple[Event, ...]":
        """What happened to a task, in order."""

    def stats(self, domain: str, *, since_ms: int = 0) -> "Stats":
        """Counts over the tasks filed since then."""

    def text(self, domain: str, digest: str | None) -> str | None:
        """The text of a body or remark; None when there is none or it was erased."""

    def events_after(self, domain: str, seq: int) -> Sequence[Sequence[Any]]:
        """The rows of a domain's events after one, as `sealing` takes them; none that comes later has a lower number."""

    def all_promotions(self, domain: str) -> "tuple[Promotion, ...]":
        """The promotions and proposals of a domain's entries, in order."""

    def mentioning(self, domain: str, says: Callable[[str], bool]) -> tuple[str, ...]:
        """The tasks of a domain with words (title, text, remarks, checks, requirements, reasons) of which `says` holds."""

    def erase(self, task: str, *, by: str) -> Task:
        """Erase the words of a task from its events; an open one is closed. They are on pages of the database until `scrub`.

        Who did what and when stays, and replays to the same projection. A text that another task has as well stays with that one; so
        does a title that another one took over (`mentioning` finds both). Raises NotFoundError.
        """

    def erase_whys(self, domain: str, entries: Collection[str], says: Callable[[str], bool]) -> int:
        """Erase why these entries of a domain were promoted, and each why of which `says` holds; how many there were."""

    def scrub(self, domain: str) -> None:
        """Leave nothing of what was erased on the pages of the database. Raises UnavailableError while somebody reads it."""

    def now_ms(self) -> int:
        """The ledger's clock."""

    def reindex(self, domain: str, *, check: bool = False) -> "Reindexed":
        """Replay the events and repair the projection; with `check` only compare."""

    def close(self) -> None:
        """Let go of the database."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

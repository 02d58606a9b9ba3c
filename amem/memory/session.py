"""Who is at work: one session's principal, domain, handling and label, and the services it works with.

Owns the label of a running session. The rule that is easy to break: a label only rises, and it has risen, and the rise
is kept, before anything of that label is served.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping

from amem.errors import AmemError
from amem.logs.schema import Anchor, Event, MemoryWrite
from amem.logs.writer import Writer
from amem.model import ids
from amem.model.clock import Clock, now, stamp
from amem.model.entry import Tier
from amem.model.label import Label, highest, lowest
from amem.typed import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from amem.ledger.store import Holding, Ledger
    from amem.memory.together import Together
    from amem.policy.door import Door
    from amem.record.index import Index
    from amem.record.policies import Policies
    from amem.record.rows import Filter
    from amem.record.store import Store
    from amem.settings.grants import Grants
    from amem.settings.root import Root

_log = logging.getLogger(__name__)


class Verdict(NamedTuple):
    """What a grader found, in its own words."""

    verdict: str
    """`satisfied` or `needs_revision`."""
    explanation: str


class Session:
    """One principal's sitting in one domain.

    `handling` is the most it may be served; `ceiling` the most its model may be sent, when it has one: pages that amem
    puts together unasked stay below it. `persist` keeps a label that rose and raises when it cannot. `beside` says what may reach the
    session by another way than the memory, such as a file of its tree that another session writes now.
    """

    def __init__(
        self,
        *,
        id: str,
        principal: str,
        owner: str,
        domain: str,
        handling: Label,
        harness: str = "",
        label: Label = Label.PUBLIC,
        ceiling: Label | None = None,
        task: str | None = None,
        persist: Callable[[Label], None] = lambda label: None,
        beside: Callable[[], Label] | None = None,
    ) -> None:
        self.id = id
        self.principal = principal
        self.owner = owner
        self.domain = domain
        self.handling = handling
        self.harness = harness
        self.ceiling = ceiling
        self.task = task
        self.fence: int | None = None
        """The number of the claim under which the session holds `task`; None where a task is only named, or none is held."""
        self.examined: Holding | None = None
        """The claim that its launcher examines once the harness has ended: it is completed by what that finds."""
        self.graded = False
        """Whether it is judged then, whether the task has checks or not."""
        self.verdict: Verdict | None = None
        """Of a grader's session: what it found."""
        self.offered = False
        """Whether the held task was said to be done, and waits for that."""
        self.writing = threading.Lock()
        """Held over a whole write, so that two writes at once cannot both be the last that a gate lets through."""
        self.superseded_so_far = 0
        self.entries: list[str] = []
        """Ids of what this session put into the record, handoffs included."""
        self.handoffs: list[str] = []
        self.held: list[str] = []
        self.lineage: Tier | None = None
        """The least trusted tier among what was served to it; None while nothing was."""
        self.filters: dict[tuple[str, int, str | None], Filter] = {}
        """The read filter by domain, generation of the policy, and the task that binds: it is asked once for each."""
        self._label = label
        self._kept = label
        self._persist = persist
        self._beside = beside
        self._lock = threading.Lock()  # guards _label, _kept and lineage

    def __repr__(self) -> str:
        return f"Session({self.id}, {self.principal}, {self.domain}, label={self._label})"

    @property
    def is_owner(self) -> bool:
        """Say whether the root's owner is at work."""
        return self.principal == self.owner

    @property
    def holding(self) -> "Holding | None":
        """The claim that the session acts under. It may be over by now: the ledger says."""
        if self.task is None or self.fence is None:
            return None
        from amem.ledger.store import Holding

        return Holding(self.task, self.fence, self.id)

    def hold(self, task: str | None, fence: int | None) -> None:
        """Take note of a claim, or with None of its end."""
        self.task, self.fence, self.offered = task, fence, False

    @property
    def label(self) -> Label:
        """The highest label of what has reached the session. Raises what `beside` and `persist` raise."""
        if self._beside is not None and (found := self._beside()).exceeds(self._label):
            self.raise_label(found)
        return self._label

    def raise_label(self, to: Label) -> Label:
        """Raise the label to `to` where that is higher, and keep it. Raises what `persist` raises; the label has risen then too."""
        with self._lock:
            self._label = highest((to,), floor=self._label)
            if self._label.exceeds(self._kept):
                self._persist(self._label)
                self._kept = self._label
            return self._label

    def served(self, labels: Iterable[Label], tiers: Iterable[Tier]) -> Label:
        """Take note of entries about to be served, before they are: the label after them."""
        label = self.raise_label(highest(labels))
        with self._lock:
            self.lineage = min((*tiers, *([self.lineage] if self.lineage else [])), key=lambda tier: tier.rank, default=None)
        return label


class Beside(Session):
    """A running session as its launcher acts in it: the same in all but that it reads nothing above the model's ceiling.

    What the launcher reads goes into a prompt unasked, and must not put the session above what its model may be sent.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.handling = session.handling if session.ceiling is None else lowest(session.handling, session.ceiling)
        self.filters = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def hold(self, task: str | None, fence: int | None) -> None:
        """See `Session`."""
        self._session.hold(task, fence)

    def raise_label(self, to: Label) -> Label:
        """See `Session`."""
        return self._session.raise_label(to)

    def served(self, labels: Iterable[Label], tiers: Iterable[Tier]) -> Label:
        """See `Session`."""
        return self._session.served(labels, tiers)


class Memory:
    """The services that memory functions work with: one bundle for a root, shared by its sessions."""

    def __init__(
        self,
        root: "Root",
        grants: "Grants",
        door: "Door",
        index: "Index",
        store: "Store",
        append: Callable[[Event], None],
        clock: Clock = now,
        logs: Writer | None = None,
        policies: "Policies | None" = None,
    ) -> None:
        self.root = root
        self.grants = grants
        self.door = door
        self.index = index
        self.store = store
        self.append = append
        """Appends one event to its log; raises when it could not, and then nothing is served."""
        self.clock = clock
        self.lock = threading.RLock()
        """Guards `index`, which one thread at a time may use, and the opening of the ledger."""
        self._ledger: Ledger | None = None
        self._together: Together | None = None
        self.policies = policies
        """The record's policies, and which of them are in force."""
        self._logs = logs

    def granted(self, grants: "Grants") -> None:
        """Other grants are in force from now on."""
        self.grants = grants

    @property
    def ledger(self) -> "Ledger":
        """The root's tasks, opened when first asked for: most sessions never do. Raises UnavailableError."""
        with self.lock:
            if self._ledger is None:
                from amem.ledger.opening import open_ledger
                from amem.memory.notice import observer

                self._ledger = open_ledger(self.root, self.grants, observer(self.root, self.grants), self._rubric)
            return self._ledger

    @property
    def together(self) -> "Together":
        """What searches of this root found together."""
        with self.lock:
            if self._together is None:
                from amem.memory.together import Together

                self._together = Together(self.root.state / "reads.jsonl")
            return self._together

    def bound(self, session: Session) -> str | None:
        """The session's task as the policy is told it: one that an exception is for counts only while the claim holds. Raises AmemError."""
        holding = session.holding
        if holding is None or self.policies is None:
            return session.task
        self.door.generation()  # so that the exceptions are those that the decision will know
        if all(one.task != holding.task for one in self.policies.standing.exemptions):
            return session.task
        held = self.ledger.show(holding.task).held(holding.fence, self.ledger.now_ms(), holding.session)
        return session.task if held else None

    def _rubric(self, domain: str) -> "Mapping[str, Any] | None":
        return self.policies.standing.rubrics.get(domain) if self.policies is not None else None

    def anchor(self) -> None:
        """Remember how far the logs go that this wrote to, so that one that is cut back shows. A failure is told."""
        if self._logs is not None and (MemoryWrite.log in (ends := self._logs.ends()) or self.door.refused):
            try:
                self.append(Anchor(at=stamp(self.clock()), heads=ends))
            except OSError as error:
                _log.warning("the logs were not anchored: %s", error)

    def close(self) -> None:
        """Close the index and the logs, and the ledger where it was opened, its events sealed. Sessions of this memory are over."""
        self.index.close()
        if self.policies is not None:
            self.policies.close()
        if self._ledger is not None:
            self._seal(self._ledger)
            self._ledger.close()
        self.anchor()
        if self._logs is not None:
            self._logs.close()

    def _seal(self, ledger: "Ledger") -> None:
        """Seal what happened to tasks. A failure is told and made good by the next one."""
        from amem.memory import sealing

        try:
            sealing.seal(self.root, self.grants, ledger, self.append, stamp(self.clock()))
        except (AmemError, OSError) as error:
            _log.warning("the ledger's events were not sealed: %s", error)


def open_memory(root: "Root", grants: "Grants", clock: Clock = now) -> Memory:
    """Open a root's record, index and policy, and notice files that appeared behind amem.

    Imports no MCP and no web server: `amem search` starts through here. Raises ConfigError, IntegrityError (the policy is
    not what it should be) and UnavailableError (SQLite too old).
    """
    from amem.policy.door import Door
    from amem.policy.live import Live
    from amem.record.index import Index
    from amem.record.policies import Policies
    from amem.record.store import Store

    root.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    logs = Writer(root.state)
    fresh = not root.index.exists()
    index = Index.open(root, clock=clock)
    if fresh:
        index.rebuild()  # the same result as noticing every file, several times faster
    else:
        index.refresh()
    policies = Policies(root, clock)
    live = Live(root, grants, policies, clock)
    door = Door(live.start(), logs.append, clock)
    memory = Memory(root, grants, door, index, Store(root), logs.append, clock, logs, policies)
    live.on_change = memory.granted
    door.watch(live.look)
    return memory


def owner_session(memory: Memory, principal: str, domain: str) -> Session:
    """A session of the command line: the owner's, or another person's under what the grants give them."""
    grant = memory.grants.grant(domain, principal)
    return Session(
        id=ids.draw("session"),
        principal=principal,
        owner=memory.grants.owner,
        domain=domain,
        handling=grant.read if grant else Label.PUBLIC,
        harness="cli",
    )


def agent_session(
    memory: Memory,
    *,
    id: str,
    principal: str,
    domain: str,
    harness: str = "",
    handling: Label = Label.RESTRICTED,
    label: Label = Label.PUBLIC,
    ceiling: Label | None = None,
    task: str | None = None,
    persist: Callable[[Label], None] = lambda label: None,
    beside: Callable[[], Label] | None = None,
) -> Session:
    """A harness's session: its handling is what the launch allows, cut down to the principal's grant."""
    grant = memory.grants.grant(domain, principal)
    return Session(
        id=id,
        principal=principal,
        owner=memory.grants.owner,
        domain=domain,
        harness=harness,
        handling=lowest(handling, grant.read) if grant else Label.PUBLIC,
        label=label,
        ceiling=ceiling,
        task=task,
        persist=persist,
        beside=beside,
    )

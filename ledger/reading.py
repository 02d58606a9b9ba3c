"""What can be asked of the ledger, and the replay that repairs its projection.

Every question names its domain: nothing of another one is read, counted or ordered by.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType

from amem.ledger.backend import Backend, Tx
from amem.ledger.rows import listed
from amem.ledger.task import HUMAN, OPEN, Status, Task, known, not_found
from amem.model.ids import domain_of
from amem.typed import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from amem.ledger.events import Event
    from amem.ledger.promotions import Promotion


class Filter(NamedTuple):
    """Which tasks a listing shows; everything must hold. Domains are always named: nothing of another one is counted."""

    domains: tuple[str, ...]
    statuses: tuple[Status, ...] = OPEN
    requires: str | None = None
    origin: str | None = None
    """A prefix."""
    parent: str | None = None
    session: str | None = None
    since_ms: int | None = None
    without: tuple[str, ...] = ()
    """Labels whose tasks are not shown and not counted; an empty one stands for tasks that were filed without."""
    limit: int = 50
    """0 is all."""
    offset: int = 0
    count_to: int = 0
    """How far a domain's tasks are counted; 0 is all of them, which takes longer the more there are."""


class Page(NamedTuple):
    """A part of a listing, by rank, and how many there are in all (at least so many, where they were not counted to the end)."""

    tasks: tuple[Task, ...]
    total: int


class Stats(NamedTuple):
    """The telemetry of a domain's tasks."""

    by_status: Mapping[str, int]
    by_family: Mapping[str, Mapping[str, int]]
    invalidated: Mapping[str, int]
    capability_gaps: tuple[str, ...]
    """Requirements of waiting tasks that no completed task ever had."""
    inflation: Mapping[str, int]
    """By creator: filings held back because they asked for more than the creator holds."""


class Reindexed(NamedTuple):
    """How many tasks the events come to, and which rows of the projection differed."""

    tasks: int
    repaired: tuple[str, ...]


class Reading:
    """The questions of `store.Ledger` over any backend; only `reindex` writes."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def show(self, task: str) -> Task:
        """See `store.Ledger`."""
        found = self.tasks([task])
        if not found:
            raise not_found(task)
        return found[task]

    def filed_by(self, domain: str, session: str, *, since_ms: int = 0) -> tuple[str, ...]:
        """See `store.Ledger`."""
        values = {"session": f'%"session":"{session}"%', "at_ms": since_ms}
        rows = self._backend.read(domain, lambda tx: tx.rows("filed", values))
        return tuple(row[0] for row in rows if domain_of(row[0]) == domain)

    def promotions(self, entry: str) -> "tuple[Promotion, ...]":
        """See `store.Ledger`."""
        from amem.ledger import promotions

        return self._backend.read(domain_of(entry), lambda tx: promotions.of(tx, entry))

    def tasks(self, ids: Sequence[str]) -> dict[str, Task]:
        """See `store.Ledger`."""
        by_domain: dict[str, list[str]] = defaultdict(list)
        for one in ids:
            by_domain[domain_of(known(one))].append(one)
        found: dict[str, Task] = {}
        for domain, some in by_domain.items():
            found.update(self._backend.read(domain, partial(_some, some)))
        return found

    def list(self, filter: Filter) -> Page:
        """See `store.Ledger`."""
        where, values = _where(filter)
        last = f" limit {filter.offset + filter.limit}" if filter.limit else ""
        counting = f"select count(*) from @task t where {where}"
        if filter.count_to:
            counting = f"select count(*) from (select 1 from @task t where {where} limit {filter.count_to}) found"

        def ask(tx: Tx) -> tuple[tuple[Task, ...], int]:
            now_ms = tx.now()
            mine = {**values, "domain": tx.domain, "now": now_ms}
            total = int(tx.select(counting, mine)[0][0])
            found = tx.select(f"select @columns from @task t where {where} order by t.rank desc, t.seq{last}", mine)
            return _standing(found, now_ms), total

        parts = [self._backend.read(domain, ask) for domain in filter.domains]
        tasks = [task for part, _ in parts for task in part]
        if len(parts) > 1:
            tasks.sort(key=lambda task: (-task.rank, task.created_ms))
        end = filter.offset + filter.limit if filter.limit else None
        return Page(tuple(tasks[filter.offset : end]), sum(total for _, total in parts))

    def tree(self, task: str) -> tuple[Task, ...]:
        """See `store.Ledger`."""
        found = self._backend.read(domain_of(known(task)), lambda tx: _standing(tx.rows("tree", {"id": task}), tx.now()))
        if not found:
            raise not_found(task)
        return found

    def events(self, task: str) -> "tuple[Event, ...]":
        """See `store.Ledger`."""
        from amem.ledger.events import of_row

        found = self._backend.read(domain_of(known(task)), lambda tx: tuple(of_row(one[1:]) for one in tx.rows("events_of", {"id": task})))
        if not found:
            raise not_found(task)
        return found

    def stats(self, domain: str, *, since_ms: int = 0) -> Stats:
        """See `store.Ledger`."""

        def ask(tx: Tx) -> Stats:
            values = {"domain": domain, "since": since_ms, "now": tx.now()}
            by_status: Counter[str] = Counter()
            by_family: dict[str, Counter[str]] = defaultdict(Counter)
            invalidated: Counter[str] = Counter()
            for family, status, reason, count in tx.rows("tally", values):
                by_status[status] += count
                by_family[family][status] += count
                if status == Status.INVALIDATED.value:
                    invalidated[reason or "no reason given"] += count
            wanted: set[str] = set()
            carried: set[str] = {HUMAN}
            for requires, waits, done in tx.rows("carried", values):
                wanted.update(requires.split() if waits else ())
                carried.update(requires.split() if done else ())
            inflation = {creator: count for creator, count in tx.rows("inflated", values)}
            return Stats(by_status, by_family, invalidated, tuple(sorted(wanted - carried)), inflation)

        return self._backend.read(domain, ask)

    def text(self, domain: str, digest: str | None) -> str | None:
        """See `store.Ledger`."""
        if digest is None:
            return None
        found = self._backend.read(domain, lambda tx: tx.rows("read_text", {"digest": digest}))
        return str(found[0][0]) if found else None

    def reindex(self, domain: str, *, check: bool = False) -> Reindexed:
        """See `store.Ledger`."""
        from amem.ledger.events import of_row
        from amem.ledger.projection import replay
        from amem.ledger.work import needs, row

        def act(tx: Tx) -> Reindexed:
            state = replay(of_row(one) for one in tx.rows("all_events", {"domain": domain}))
            there = {task.id: task for task in listed(tx.rows("all_tasks", {"domain": domain}))}
            edges: dict[str, set[str]] = defaultdict(set)
            for one, need in tx.rows("all_needs", {"domain": domain}):
                edges[one].add(need)
            differing = [one for one, task in state.tasks.items() if there.get(one) != task or edges[one] != {*task.depends_on}]
            extra = sorted(there.keys() - state.tasks.keys())
            if not check:
                seqs: dict[str, int] = {one: seq for one, seq in tx.rows("firsts", {"domain": domain})}
                for one in [*differing, *extra]:
                    tx.run("forget", {"id": one})
                for one in differing:
                    tx.insert({**row(state.tasks[one]), "seq": seqs[one], "domain": domain})
                    needs(tx, state.tasks[one], fresh=False)
            return Reindexed(len(state.tasks), tuple([*differing, *extra]))

        return self._backend.alone(domain, act)

    def events_after(self, domain: str, seq: int) -> Sequence[Sequence[Any]]:
        """See `store.Ledger`."""
        return self._backend.alone(domain, lambda tx: tx.rows("events_after", {"domain": domain, "seq": seq}))

    def all_promotions(self, domain: str) -> "tuple[Promotion, ...]":
        """See `store.Ledger`."""
        from amem.ledger import promotions

        return self._backend.alone(domain, promotions.all_of)  # of numbers in order no one is missing yet

    def mentioning(self, domain: str, says: "Callable[[str], bool]") -> tuple[str, ...]:
        """See `store.Ledger`."""
        from amem.ledger import erasing

        return self._backend.read(domain, lambda tx: tuple(erasing.mentioning(tx, says)))

    def now_ms(self) -> int:
        """See `store.Ledger`."""
        return self._backend.now_ms()

    def close(self) -> None:
        """See `store.Ledger`."""
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _some(ids: Sequence[str], tx: Tx) -> dict[str, Task]:
    found = tx.select("select @columns from @task t where t.id @any(ids)", {"ids": ids})
    return {task.id: task for task in _standing(found, tx.now())}


def _standing(found: Sequence[Sequence[Any]], at_ms: int) -> tuple[Task, ...]:
    return tuple(task.at(at_ms) for task in listed(found))


def _where(filter: Filter) -> tuple[str, dict[str, Any]]:
    """The condition of a listing, from fixed parts, and its values."""
    parts = ["@mine"]
    values: dict[str, Any] = {}
    if all(status.open for status in filter.statuses):
        parts.append("t.open = 1")
    if {*filter.statuses} != {*OPEN} and {*filter.statuses} != {*Status}:
        parts.append("(case when @late then 'admitted' else t.status end) @any(statuses)")
        values["statuses"] = [status.value for status in filter.statuses]
    for name, condition in _CONDITIONS.items():
        value = getattr(filter, name)
        if value is not None:
            parts.append(condition)
            values[name] = value
    for number, label in enumerate(filter.without):
        # `rest` is compact JSON: this text stands in it for the field alone, since in a value its quotes would be escaped.
        parts.append(f"replace(t.rest, :label{number}, '') {'=' if label else '<>'} t.rest")
        values[f"label{number}"] = f'"label":"{label}"' if label else '"label":'
    return " and ".join(parts), values


_CONDITIONS = {
    "requires": "replace(' ' || t.requires || ' ', ' ' || :requires || ' ', '') <> ' ' || t.requires || ' '",
    "origin": "substr(t.origin, 1, length(:origin)) = :origin",
    "parent": "t.parent = :parent",
    "session": "t.session = :session and not (@late)",
    "since_ms": "t.created_ms >= :since_ms",
}

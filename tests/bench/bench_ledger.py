"""P8: tasks claimed and completed by many workers, against two PostgreSQL queues on the same server; the ready query as the ledger grows.

    python -m tests.bench.bench_ledger [JOBS] [ROUNDS]

A worker is one process with one task in hand, as `amem work` is; ours claims and completes through the ledger's own operations, events,
fences and all. Everybody's commits are synced to the same disk (our own PostgreSQL, unless `MEMORY_PG_URL` names one), and the rounds are
interleaved: the figure is the median of the rounds' rates, the peers' taken between ours. Doubles and lost tasks are counted
after each round. The ready query is what a claim looks up: the fastest of 50, the median of twenty turns between both sizes; a third of the
tasks waits, a third is completed.
Beside it stands a query of the kind that beads has (1.3.0, 2026-11: who is blocked is found when asked, from everybody's links, and
passed on to the parts of what is blocked), over as many rows in SQLite. It is written here after what it does, because `bd` itself
comes from a download site of its own.
"""

import json
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from amem.commands.task import COUNTED
from amem.ledger.backend import Tx
from amem.ledger.draft import Draft
from amem.ledger.operations import Operations
from amem.ledger.postgres import Postgres
from amem.ledger.reading import Filter
from amem.ledger.rows import COLUMNS
from amem.ledger.sqlite import Sqlite
from amem.ledger.store import Filed, Ledger
from amem.ledger.task import Status
from tests.bench.rows import Row, table
from tests.ledger import servers

PEERS = Path(__file__).resolve().parents[2] / "build" / "peers" / "queues" / "bin" / "python"
FORK = multiprocessing.get_context("fork")
DOM = "dom-me"
HANDOFF = "mem-me-0123456789ab"
WORKERS = (1, 8, 32)
SIZES = (10_000, 100_000)
TURNS = 20


class Figures(NamedTuple):
    """What one round came to."""

    rate: float
    """Tasks a second, from the start signal to the last one's end."""
    lost: int
    doubles: int
    least: int
    """The smallest share that a worker had."""
    most: int


def ours(make: Callable[[], Ledger], jobs: int, workers: int) -> Figures:
    """Fill an empty ledger and let the workers empty it."""
    with make() as ledger:
        for number in range(jobs):
            ledger.create(Draft(domain=DOM, title=f"Task {number}", priority=number % 10), by="human:bench:owner", admit=True)
    start, out = FORK.Barrier(workers + 1), FORK.Queue()
    processes = [FORK.Process(target=_drain, args=(make, f"agent:w{n}", start, out), daemon=True) for n in range(workers)]
    for process in processes:
        process.start()
    start.wait(120)
    began = time.monotonic()
    shares = [out.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    done = [task for share in shares for task, _ in share]
    with make() as ledger:
        finished = ledger.list(Filter(domains=(DOM,), statuses=(Status.COMPLETED,), limit=1)).total
    end = max(at for share in shares for _, at in share)
    sizes = [len(share) for share in shares]
    return Figures(len(done) / (end - began), jobs - finished, len(done) - len(set(done)), min(sizes), max(sizes))


def _drain(make: Callable[[], Ledger], name: str, start: Any, out: Any) -> None:
    done = []
    with make() as ledger:
        ledger.now_ms()
        start.wait()
        while (task := ledger.claim(DOM, by=name, capabilities=("code",))) is not None:
            ledger.complete(task.id, by=name, fence=task.fence, handoff=HANDOFF)
            done.append((task.id, time.monotonic()))
    out.put(done)


def theirs(name: str, dsn: str, jobs: int, workers: int) -> Figures | None:
    """One round of a peer, by its own interpreter; None when it failed."""
    command = [str(PEERS), str(Path(__file__).with_name("queue_peers.py")), name, dsn, str(jobs), str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return Figures(**json.loads(done.stdout.splitlines()[-1]))


def contest(server: servers.Server | None, jobs: int, rounds: int, workers: int) -> dict[str, list[Figures]]:
    """Interleaved rounds of everybody."""
    found: dict[str, list[Figures]] = {}
    for _ in range(rounds):
        with _folder() as folder:
            found.setdefault("sqlite", []).append(ours(lambda: Operations(Sqlite(folder / "ledger.sqlite")), jobs, workers))
        if server is None:
            continue
        with servers.database(server) as dsn:
            found.setdefault("postgres", []).append(ours(lambda: Operations(Postgres(dsn, space="bench")), jobs, workers))
        for name in ("procrastinate", "pgqueuer", "pgqueuer-10") if PEERS.exists() else ():
            with servers.database(server) as dsn:
                if (figures := theirs(name, dsn, jobs, workers)) is not None:
                    found.setdefault(name, []).append(figures)
    return found


_GROW = """
with recursive n(i) as (select 1 union all select i + 1 from n where i < :size)
insert into @task(seq, {domain}family, open, {columns})
select n.i + 10, {domain}t.family, {values} from n, @task t where t.id = :id returning seq
"""
_VALUES = {
    # A third waits, a third is completed; no operator that one of the two databases writes in another way.
    "open": "case when n.i - n.i / 3 * 3 = 1 then 0 else 1 end",
    "id": "'task-me-' || (10000000 + n.i)",
    "status": "case when n.i - n.i / 3 * 3 = 1 then 'completed' else 'admitted' end",
    "open_needs": "case when n.i - n.i / 3 * 3 = 0 then 1 else 0 end",
    "rank": "n.i * 7919 - n.i * 7919 / 1000 * 1000",
}
_PICK = """
select t.seq from @task t where {mine}t.requires = '' and t.status = 'admitted' and t.open_needs = 0 order by t.rank desc, t.seq limit 20
"""


def grown(backend: Sqlite | Postgres, size: int) -> "Looks":
    """A projection of `size` tasks, and how to ask it for the 20 that come first and for a page of `task list`."""
    lite = isinstance(backend, Sqlite)
    ledger = Operations(backend)
    filed = ledger.create(Draft(domain=DOM, title="Sample"), by="human:bench:owner", admit=True)
    assert isinstance(filed, Filed)
    values = ", ".join(_VALUES.get(name, f"t.{name}") for name in ("open", *COLUMNS))
    grow = _GROW.format(domain="domain, " if lite else "", columns=", ".join(COLUMNS), values=values)
    grow = grow.replace("select n.i + 10, domain, ", "select n.i + 10, t.domain, ")
    backend.change(DOM, lambda tx: tx.select(grow, {"size": size, "id": filed.task.id}))
    if isinstance(backend, Postgres):
        backend._connected().execute("vacuum analyze")
    pick = _PICK.format(mine="@mine and " if lite else "")

    def look(tx: Tx) -> float:
        return _fastest(lambda: tx.select(pick, {"domain": DOM}), 50)

    def page() -> float:
        return _fastest(lambda: ledger.list(Filter(domains=(DOM,), count_to=COUNTED)).tasks, 5)

    return Looks(lambda: backend.read(DOM, look), page, ledger.close)


class Looks(NamedTuple):
    """How long a question takes each time it is asked for, in microseconds."""

    ready: Callable[[], float]
    page: Callable[[], float]
    close: Callable[[], None]


_BEADS_TABLES = """
create table item(id integer primary key, state text not null, priority integer not null);
create table link(item integer not null, other integer not null, kind text not null, primary key(item, other, kind)) without rowid;
create index item_state on item(state, priority);
create index link_other on link(other, kind);
"""
_BEADS_READY = """
with recursive held(item) as (
    select l.item from link l join item o on o.id = l.other and o.state <> 'closed' where l.kind = 'blocks'
    union select l.item from held h join link l on l.other = h.item and l.kind = 'part'
) select i.id from item i where i.state = 'open' and i.id not in (select item from held) order by i.priority, i.id limit 20
"""


@contextmanager
def beads(size: int) -> Iterator[Callable[[], float]]:
    """Microseconds for the 20 that come first by a query that looks at every need when it is asked."""
    from amem.settings import database

    with _folder() as folder:
        connection = database.connect(folder / "items.sqlite", durable=False)
        try:
            for statement in _BEADS_TABLES.strip().split(";\n"):
                connection.execute(statement)
            connection.execute(
                "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?) "
                "insert into item select i, iif(i % 3 = 1, 'closed', 'open'), i * 7919 % 5 from n", (size,),
            )  # fmt: skip
            # As in the projection above: a third waits, each on one that is open.
            connection.execute("insert into link select id, id - 1, 'blocks' from item where id % 3 = 0")
            connection.execute("analyze")
            connection.commit()
            yield lambda: _fastest(lambda: list(connection.execute(_BEADS_READY)), 2)
        finally:
            connection.close()


def _fastest(call: Callable[[], Sequence[Any]], times: int) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        found = call()
        taken.append((time.perf_counter() - began) * 1e6)
        assert len(found) >= 20
    return min(taken)


def by_turns(questions: Sequence[Callable[[], float]]) -> list[float]:
    """The median of each over turns in which all of them have theirs, so that a busy machine is as busy for each."""
    found = [[ask() for ask in questions] for _ in range(TURNS)]
    return [statistics.median(column) for column in zip(*found, strict=True)]


def run(jobs: int = 1000, rounds: int = 3) -> list[Row]:
    """Every row; the peers' and PostgreSQL's are missing, and said so, where they cannot be had."""
    with ExitStack() as stack:
        server: servers.Server | None = None
        try:
            server = stack.enter_context(servers.server(durable=True))
        except servers.Absent as reason:
            print(f"P8: {reason}", file=sys.stderr)
        if not PEERS.exists():
            print("P8: no peers: scripts/bench-peers.py queues", file=sys.stderr)
        rows: list[Row] = []
        for workers in WORKERS:
            found = contest(server, jobs, rounds, workers)
            rates = {name: statistics.median(figures.rate for figures in rounds_of) for name, rounds_of in found.items()}
            for name, figures in found.items():
                print(f"P8: {workers} workers, {name}: {figures}", file=sys.stderr)
            rows += _claims(workers, jobs, found, rates)
        return rows + _ready_rows(server)


GOALS: dict[str, dict[str, float | None]] = {
    "postgres": {"procrastinate": 3.0, "pgqueuer": 3.0, "pgqueuer-10": None}, "sqlite": {"procrastinate": 2.0},
}  # fmt: skip
"""How many times a peer's rate at 8 workers; at other numbers, and against batches of ten, the ratio is reported."""


def _claims(workers: int, jobs: int, found: dict[str, list[Figures]], rates: dict[str, float]) -> list[Row]:
    rows = []
    for name in GOALS.keys() & found.keys():
        for peer, times in GOALS[name].items():
            theirs_ = rates.get(peer)
            judged = times is not None and workers == 8
            holds = rates[name] >= times * theirs_ if judged and times and theirs_ else None
            goal = f">= {times:g} x" if judged else "reported"
            rows.append(Row("P8", f"{name}, {workers} workers", rates[name], peer, theirs_, "tasks/s", goal, holds))
        wrong = sum(figures.lost + figures.doubles for figures in found[name])
        rows.append(Row("P8", f"{name}, {workers}: lost, doubled", wrong, "none", 0.0, "tasks", "0", wrong == 0))
        least = min(figures.least for figures in found[name]) * workers / jobs
        rows.append(Row("P8", f"{name}, {workers}: least share", least, "equal shares", 1.0, "of its share", ">= 0.5", least >= 0.5))
    return rows


def _ready_rows(server: servers.Server | None) -> list[Row]:
    rows = []
    for name in ("sqlite", "postgres") if server else ("sqlite",):
        with ExitStack() as stack:
            looks = []
            for size in SIZES:
                if name == "sqlite":
                    backend: Sqlite | Postgres = Sqlite(stack.enter_context(_folder()) / "ledger.sqlite")
                elif server is not None:
                    backend = Postgres(stack.enter_context(servers.database(server)), space="bench")
                looks.append(grown(backend, size))
                stack.callback(looks[-1].close)
            small, large = by_turns([one.ready for one in looks])
            small_page, large_page = by_turns([one.page for one in looks])
        rows.append(Row("P8", f"{name}, ready of 100k", large, "of 10k", small, "us", "<= 1.5 x", large <= 1.5 * small))
        rows.append(Row("P8", f"{name}, list 50 of 100k", large_page, "of 10k", small_page, "us", "reported", None))
        if name == "sqlite":
            with ExitStack() as stack:
                others = by_turns([stack.enter_context(beads(size)) for size in SIZES])
            for size, mine, other in zip(SIZES, (small, large), others, strict=True):
                rows.append(Row("P8", f"{name}, ready of {size // 1000}k", mine, "as in beads", other, "us", "reported", None))
    return rows


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="bench-ledger-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    print(table(run(*map(int, sys.argv[1:]))))

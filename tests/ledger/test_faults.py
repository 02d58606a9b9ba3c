"""Workers that die at any moment: every task is completed once, none is lost, none is stuck. Real processes, real kill -9."""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from amem.ledger.operations import Operations
from amem.ledger.postgres import Postgres
from amem.ledger.sqlite import HOST, HostClock, Sqlite
from amem.ledger.store import Ledger
from tests.ledger import servers, workers
from tests.ledger.worlds import DOM, EVERY, PostgresWorld, SqliteWorld, World, admitted, closing, listing

# Python 3.12 and later warn of a fork beside threads: those of the test runner itself, which hold nothing that a worker takes.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

SMALL = {"tasks": 150, "count": 6, "kills": 8}
WHOLE = {"tasks": 2000, "count": 32, "kills": 120}


class _PlainPostgres(PostgresWorld):
    """The server's own clock."""

    def _ledger(self, observe: object) -> Ledger:
        return Operations(Postgres(self.dsn, space=self.space, patience_s=30))


class _PlainSqlite(SqliteWorld):
    def _ledger(self, observe: object) -> Ledger:
        return Operations(Sqlite(self.path))


def _endure(
    world: World, make: Callable[[], Ledger], tasks: int, count: int, kills: int, disturb: Callable[[], None] = lambda: None
) -> None:
    with world.open() as ledger:
        previous: tuple[str, ...] = ()
        for number in range(tasks):
            # Every tenth waits on the one before it, so that completions have something to free.
            task = admitted(ledger, f"t{number}", priority=number % 10, depends_on=previous if number % 10 == 0 else ())
            previous = (task.id,)
    died = workers.crash_and_finish(make, workers=count, kills=kills, lease_ms=1500, patience_s=120, disturb=disturb)
    assert died > 0
    with world.open() as ledger:
        page = ledger.list(listing(statuses=EVERY, limit=0))
        assert Counter(task.status for task in page.tasks) == {"completed": tasks}
        assert ledger.reindex(DOM, check=True).repaired == ()
    acts = Counter((event.kind, event.task) for event in world.events())
    assert all(acts["completed", task.id] == 1 for task in page.tasks)
    claims = Counter((event.task, event.fence) for event in world.events() if event.kind == "claimed")
    assert set(claims.values()) == {1}


def test_killed_workers_lose_and_double_nothing_on_sqlite(tmp_path: Path) -> None:
    with closing(_PlainSqlite(tmp_path)) as world:
        _endure(world, lambda: Operations(Sqlite(world.path)), **SMALL)


def test_killed_workers_lose_and_double_nothing_on_postgres(pg_dsn: str) -> None:
    with closing(_PlainPostgres(pg_dsn)) as world:
        _endure(world, lambda: Operations(Postgres(pg_dsn, space="here")), **SMALL)


@pytest.mark.real
def test_thirty_two_workers_on_two_thousand_tasks_on_sqlite_while_the_clock_steps(tmp_path: Path) -> None:
    """Each worker believes another wall clock, hours from the next: the ledger's own time does not mind."""

    def make() -> Ledger:
        off = (os.getpid() % 5 - 2) * 3_600_000
        return Operations(Sqlite(tmp_path / "state" / "ledger.sqlite", host=HostClock(HOST.boot, HOST.up_ms, lambda: HOST.wall_ms() + off)))

    with closing(_PlainSqlite(tmp_path)) as world:
        _endure(world, make, **WHOLE)


@pytest.mark.real
def test_thirty_two_workers_on_two_thousand_tasks_on_postgres_while_the_server_restarts() -> None:
    """A server of our own, with synced commits, stopped in the middle three times: `immediate` is a crash."""
    try:
        with servers.server(url="", durable=True) as server, servers.database(server) as dsn, closing(_PlainPostgres(dsn)) as world:
            if not server.own:
                pytest.skip("MEMORY_PG_URL names a server that is not ours to restart")
            kills = iter(range(1_000_000))

            def restart() -> None:
                if next(kills) % 40 == 20:
                    server.stop("immediate")
                    server.start()

            _endure(world, lambda: Operations(Postgres(dsn, space="here", patience_s=30)), **WHOLE, disturb=restart)
    except servers.Absent as reason:
        pytest.skip(str(reason))

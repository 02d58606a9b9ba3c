"""Both backends for every test that asks for `world`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from amem.ledger.store import Ledger
from tests.ledger import servers
from tests.ledger.worlds import PostgresWorld, SqliteWorld, World, closing


@pytest.fixture(scope="session")
def pg() -> Iterator[servers.Server]:
    try:
        context = servers.server()
        with context as server:
            yield server
    except servers.Absent as reason:
        pytest.skip(str(reason))


@pytest.fixture
def pg_dsn(pg: servers.Server) -> Iterator[str]:
    with servers.database(pg) as dsn:
        yield dsn


@pytest.fixture
def sqlite_world(tmp_path: Path) -> Iterator[World]:
    with closing(SqliteWorld(tmp_path)) as world:
        yield world


@pytest.fixture
def postgres_world(pg_dsn: str) -> Iterator[World]:
    with closing(PostgresWorld(pg_dsn)) as world:
        yield world


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest) -> World:
    found: World = request.getfixturevalue(f"{request.param}_world")
    return found


@pytest.fixture
def ledger(world: World) -> Ledger:
    return world.open()

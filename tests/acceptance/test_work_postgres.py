"""`amem work` with the ledger on a real PostgreSQL: shared by roots that say so, away, restarted, full, read-only."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place
from tests.acceptance.test_work import COMPLETE, agent, desk, entry, filed, task, work
from tests.ledger import servers

__all__ = ["desk"]


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    """A server of our own, since it is stopped and filled."""
    try:
        with servers.server(url="", durable=True) as found:
            if not found.own:
                pytest.skip("MEMORY_PG_URL names a server that is not ours to stop")
            yield found
    except servers.Absent as reason:
        pytest.skip(str(reason))


@pytest.fixture
def shared(desk: Place, server: servers.Server) -> Iterator[Place]:
    with servers.database(server) as dsn:
        on(desk, dsn)
        yield desk


def on(place: Place, dsn: str, space: str | None = None) -> None:
    with (place.root / "grants.toml").open("a") as grants:
        grants.write(f'\n[ledger]\nurl = "{dsn}"\n' + (f'space = "{space}"\n' if space else ""))


def another(desk: Place, base: Path, provider: Running, dsn: str, space: str | None) -> Place:
    place = Place(base)
    assert place.amem("init", "--owner", "human:asf:you").code == 0
    place.destination(provider.url)
    on(place, dsn, space)
    return place


def test_claim_work_complete(shared: Place) -> None:
    id = filed(shared)
    done = work(shared, "--json", *agent(shared, COMPLETE))
    assert (done.code, done.json["outcome"]) == (0, "completed"), done.err
    assert [event["event"] for event in task(shared, id)["events"]] == ["created", "admitted", "claimed", "handoff_left", "completed"]
    assert not (shared.root / "state" / "ledger.sqlite").exists()


@pytest.mark.real
def test_two_roots_see_each_others_tasks_only_if_told_to(desk: Place, server: servers.Server, provider: Running, tmp_path: Path) -> None:
    with servers.database(server) as dsn:
        places = []
        for name, space in (("a", None), ("b", "team"), ("c", "team")):
            (tmp_path / name).mkdir()
            places.append(another(desk, tmp_path / name, provider, dsn, space))
        alone, one, other = places
        mine, ours = filed(alone), filed(one)
        assert alone.amem("task", "show", ours).code == 3 and one.amem("task", "show", mine).code == 3
        assert work(alone, "--task", ours, *agent(alone, COMPLETE)).code == 3
        done = work(other, "--json", *agent(other, COMPLETE))
        assert done.code == 0 and done.json["task"]["id"] == ours, done.err
        assert work(other, *agent(other, COMPLETE)).code == 3
        assert task(alone, mine)["status"] == "admitted" and task(one, ours)["status"] == "completed"


@pytest.mark.real
def test_a_server_that_is_away_is_said_and_nothing_is_claimed(shared: Place, server: servers.Server) -> None:
    id = filed(shared)
    server.stop("immediate")
    try:
        done = work(shared, *agent(shared, COMPLETE))
        assert done.code == 1 and "the ledger's server" in done.err and "grants.toml" in done.err, done.err
        listed = shared.amem("task", "list", "--json")
        assert listed.code == 1 and json.loads(listed.err)["error"]["code"] == "unavailable"
    finally:
        server.start()
    assert work(shared, *agent(shared, COMPLETE)).code == 0
    assert task(shared, id)["attempts"] == 1


@pytest.mark.real
@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_a_restart_while_the_harness_works_loses_nothing(shared: Place, server: servers.Server, mode: str) -> None:
    """The harness ends while the server is down: the launcher waits for it, and gives the task back with what was said."""
    id = filed(shared)
    wait = "print('up', flush=True)\nimport pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)\nprint('Six so far.')"
    process = subprocess.Popen(
        shared.command("work", "--harness", "command", *shared.launch_flags(), *agent(shared, wait)),
        cwd=PROJECT, env=shared.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    try:
        assert process.stdout.readline() == b"up\n"
        server.stop(mode)
        try:
            (shared.tree / "go").touch()
            while b"trying again" not in (line := process.stderr.readline()):
                assert line, "it ended without waiting"
        finally:
            server.start()
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 4, err
    found = task(shared, id)
    assert found["status"] == "admitted" and found["attempts"] == 1
    assert "Six so far." in entry(shared, found["handoffs"][-1])["body"]
    assert work(shared, *agent(shared, COMPLETE)).code == 0


@pytest.mark.real
def test_a_database_that_is_read_only_is_said_and_claims_nothing(shared: Place, server: servers.Server) -> None:
    import psycopg

    id = filed(shared)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        (name,) = connection.execute("select datname from pg_database where datname like 'amem_%'").fetchone() or ("",)
        connection.execute(f"alter database {name} set default_transaction_read_only = on".encode())
        done = work(shared, *agent(shared, COMPLETE))
        assert done.code == 1 and "read-only" in done.err, done.err
        connection.execute(f"alter database {name} reset default_transaction_read_only".encode())
    assert work(shared, *agent(shared, COMPLETE)).code == 0
    assert task(shared, id)["attempts"] == 1


@pytest.mark.real
def test_a_server_without_a_connection_left_is_said_and_comes_back(shared: Place, server: servers.Server) -> None:
    import psycopg

    id = filed(shared)
    taken: list[psycopg.Connection] = []  # type: ignore[type-arg]
    try:
        with pytest.raises(psycopg.OperationalError):
            while True:
                taken.append(psycopg.connect(server.dsn, connect_timeout=20))
        done = work(shared, *agent(shared, COMPLETE))
        assert done.code == 1 and "too many clients" in done.err, done.err
    finally:
        for connection in taken:
            connection.close()
    done = work(shared, *agent(shared, COMPLETE))
    assert done.code == 0, done.err
    assert task(shared, id)["attempts"] == 1


@pytest.mark.real
def test_a_server_that_is_slow_delays_a_worker_and_stops_it_not(shared: Place, server: servers.Server) -> None:
    """Another client holds the table for a while: the claim waits for it."""
    import psycopg

    id = filed(shared)
    dsn = next(line for line in (shared.root / "grants.toml").read_text().splitlines() if line.startswith("url"))[7:-1]
    with psycopg.connect(dsn) as holder:
        (schema,) = holder.execute("select schema from public.ledger_domains").fetchone() or ("",)
        holder.execute(f'lock table "{schema}".task in access exclusive mode'.encode())
        process = subprocess.Popen(
            shared.command("work", "--harness", "command", *shared.launch_flags(), *agent(shared, COMPLETE)),
            cwd=PROJECT, env=shared.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            until = time.monotonic() + 60
            waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            with psycopg.connect(dsn, autocommit=True) as look:
                while (look.execute(waits.encode()).fetchone() or (0,))[0] == 0:
                    assert process.poll() is None and time.monotonic() < until
                    time.sleep(0.05)
            holder.rollback()
            _, err = process.communicate(timeout=120)
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 0, err
    assert task(shared, id)["status"] == "completed"

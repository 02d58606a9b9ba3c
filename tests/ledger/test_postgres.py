"""What only PostgreSQL can do to a ledger: routing, spaces, two first users at once, a server that is away, full, read-only, or lost."""

import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from amem.errors import ConfigError, IntegrityError, NotFoundError, UnavailableError
from amem.ledger.draft import Draft
from amem.ledger.operations import Operations
from amem.ledger.postgres import Postgres, schema_name
from amem.ledger.store import Ledger, Refused
from amem.ledger.task import Status, Task
from tests.ledger import proxies, servers
from tests.ledger.worlds import BOT, DOM, EVERY, HANDOFF, ME, admitted, claimed, completed, filed, listing


def opened(dsn: str, space: str = "here", patience_s: float = 5) -> Ledger:
    return Operations(Postgres(dsn, space=space, patience_s=patience_s))


def beside(dsn: str) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(dsn, autocommit=True)


def test_a_domain_has_a_schema_of_its_own_and_each_task_a_route(pg_dsn: str) -> None:
    with opened(pg_dsn) as ledger, beside(pg_dsn) as connection:
        task = filed(ledger)
        ledger.create(Draft(domain="dom-other", title="x"), by=ME)
        schemas = connection.execute("select domain, schema from public.ledger_domains order by 1").fetchall()
        assert schemas == [(domain, schema_name("here", domain)) for domain in ("dom-me", "dom-other")]
        assert schemas[0][1].startswith("ledger_dom-me_")
        assert len(schemas[0][1].rsplit("_", 1)[1]) == 8
        assert connection.execute("select domain from public.ledger_tasks where id = %s", (task.id,)).fetchall() == [("dom-me",)]
        there = connection.execute("select table_schema from information_schema.tables where table_name in ('task', 'event')").fetchall()
        assert sorted({schema for (schema,) in there}) == sorted(schema for _, schema in schemas)


def test_asking_makes_no_schema(pg_dsn: str) -> None:
    with opened(pg_dsn) as ledger, beside(pg_dsn) as connection:
        assert ledger.list(listing()).total == 0
        with pytest.raises(NotFoundError):
            ledger.show("task-me-00000000")
        assert ledger.claim(DOM, by=BOT) is None
        assert connection.execute("select count(*) from information_schema.tables where table_schema = 'public'").fetchone() == (0,)


def test_two_roots_on_one_database_see_nothing_of_each_other_unless_told_to(pg_dsn: str) -> None:
    with opened(pg_dsn, "root-a") as one, opened(pg_dsn, "root-b") as two, opened(pg_dsn, "root-a") as same:
        task = admitted(one)
        assert two.list(listing(statuses=EVERY)).total == 0
        with pytest.raises(NotFoundError):
            two.show(task.id)
        assert two.claim(DOM, by=BOT) is None
        assert claimed(same).id == task.id


def test_longest_domain_fits_a_schema_name() -> None:
    assert len(schema_name("here", "dom-" + "a" * 32)) <= 63


def test_first_task_of_a_domain_from_many_at_once_makes_one_schema(pg_dsn: str) -> None:
    start, failures = threading.Barrier(6), []

    def file() -> None:
        with opened(pg_dsn, patience_s=20) as ledger:
            start.wait()
            try:
                filed(ledger)
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=file) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with opened(pg_dsn) as ledger:
        assert ledger.list(listing()).total == 6


def test_many_claimers_get_each_another_task(pg_dsn: str) -> None:
    with opened(pg_dsn) as ledger:
        for _ in range(60):
            admitted(ledger, requires=("code",) if _ % 2 else ())
    start, got, lock = threading.Barrier(6), [], threading.Lock()

    def claim() -> None:
        with opened(pg_dsn) as ledger:
            start.wait()
            while (task := ledger.claim(DOM, by=BOT, capabilities=("code",))) is not None:
                with lock:
                    got.append(task.id)

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == len(set(got)) == 60


def test_dependent_filed_while_its_need_is_completed_is_never_stuck(pg_dsn: str) -> None:
    """The completion that takes one statement must not miss a dependent that was filed in the same moment."""
    with opened(pg_dsn) as one, opened(pg_dsn) as two:
        for _ in range(30):
            need = admitted(one)
            held = claimed(one)
            start, made = threading.Barrier(2), []

            def file(need: Task = need, start: threading.Barrier = start, made: list[Task] = made) -> None:
                start.wait()
                made.append(admitted(two, depends_on=(need.id,)))

            thread = threading.Thread(target=file)
            thread.start()
            start.wait()
            completed(one, held)
            thread.join()
            assert one.show(made[0].id).open_needs == 0
            completed(one, claimed(one))
        assert one.reindex(DOM, check=True).repaired == ()


def test_connection_that_was_ended_is_made_again(pg_dsn: str) -> None:
    with opened(pg_dsn) as ledger, beside(pg_dsn) as connection:
        task = admitted(ledger)
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'amem'")
        assert claimed(ledger).id == task.id
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'amem'")
        assert ledger.post(task.id, by=ME, text="still here").status is Status.CLAIMED


def test_commit_that_failed_is_done_again_and_once(pg_dsn: str) -> None:
    """The server ends the connection in the middle of a COMMIT, before it took effect."""
    with opened(pg_dsn) as ledger, beside(pg_dsn) as connection:
        filed(ledger)
        schema = schema_name("here", DOM)
        connection.execute("create sequence public.once")
        connection.execute(
            "create function public.cut() returns trigger language plpgsql as $$ begin if nextval('public.once') = 1 then"
            " perform pg_terminate_backend(pg_backend_pid()); end if; return null; end $$"
        )
        connection.execute(
            f'create constraint trigger cut after insert on "{schema}".task deferrable initially deferred'
            " for each row execute function public.cut()".encode()
        )
        filed(ledger, "the second")
        assert connection.execute("select last_value from public.once").fetchone() == (2,)
        assert [task.title for task in ledger.list(listing()).tasks] == ["A task", "the second"]


def test_commit_whose_answer_was_lost_is_not_done_twice(pg: servers.Server, pg_dsn: str) -> None:
    if not pg.own:
        pytest.skip("MEMORY_PG_URL names a server that no Unix socket of ours leads to")
    parts = conninfo_to_dict(pg_dsn)
    upstream = Path(str(parts["host"])) / ".s.PGSQL.5432"
    with (
        TemporaryDirectory(prefix="px-") as folder,
        proxies.before(upstream, Path(folder)) as proxy,
        opened(make_conninfo(pg_dsn, host=folder)) as ledger,
    ):
        filed(ledger, "first")
        proxy.cut_after_commit = 1
        second = filed(ledger, "second")
        assert proxy.cut == 1
        assert [task.id for task in ledger.list(listing()).tasks][1:] == [second.id]
        ledger.admit([second.id], by=ME)
        held = claimed(ledger)
        proxy.cut_after_commit = 1
        done = ledger.handoff_left(held.id, by=BOT, handoff=HANDOFF, fence=1)
        assert not isinstance(done, Refused)
        assert proxy.cut == 2
        assert [event.kind for event in ledger.events(held.id)].count("handoff_left") == 1


def test_server_that_is_away_is_said_within_bounds(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="the ledger's server") as caught:
        opened(f"host={tmp_path} user=nobody dbname=none", patience_s=0.2)
    assert "ledger" in (caught.value.hint or "")


def test_address_that_is_none_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError) as caught:
        opened("postgres//memory:s3cret@localhost/memory")
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_database_that_is_read_only_is_said(pg_dsn: str) -> None:
    with opened(pg_dsn, patience_s=0.3) as ledger, beside(pg_dsn) as connection:
        task = admitted(ledger)
        name = conninfo_to_dict(pg_dsn)["dbname"]
        connection.execute(f"alter database {name} set default_transaction_read_only = on".encode())
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'amem'")
        assert ledger.show(task.id).status is Status.ADMITTED
        with pytest.raises(UnavailableError, match="read-only") as caught:
            ledger.claim(DOM, by=BOT)
        assert "name the primary" in (caught.value.hint or "")
        connection.execute("set default_transaction_read_only = off")
        connection.execute(f"alter database {name} reset default_transaction_read_only".encode())
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'amem'")
        assert claimed(ledger).id == task.id


def test_server_out_of_connections_is_said_and_comes_back(pg_dsn: str) -> None:
    name = conninfo_to_dict(pg_dsn)["dbname"]
    with beside(pg_dsn) as connection:
        connection.execute("create role small login")
        try:
            connection.execute(f"grant all on database {name} to small".encode())
            connection.execute("grant all on schema public to small")
            connection.execute("alter role small connection limit 1")
            dsn = make_conninfo(pg_dsn, user="small")
            with opened(dsn), pytest.raises(UnavailableError, match="too many connections") as caught:
                opened(dsn, patience_s=0.3)
            assert "max_connections" in (caught.value.hint or "")
            with opened(dsn) as ledger:
                filed(ledger)
        finally:
            connection.execute("drop owned by small")
            connection.execute("drop role small")


def test_user_who_may_not_create_is_told_what_to_grant(pg_dsn: str) -> None:
    with beside(pg_dsn) as connection:
        connection.execute("create role weak login")
        try:
            connection.execute("revoke create on schema public from public")
            with opened(make_conninfo(pg_dsn, user="weak")) as ledger:
                with pytest.raises(UnavailableError) as caught:
                    filed(ledger)
                assert "grant create" in (caught.value.hint or "")
        finally:
            connection.execute("drop role weak")


def test_ledger_of_a_later_amem_is_left_alone(pg_dsn: str) -> None:
    with opened(pg_dsn) as ledger, beside(pg_dsn) as connection:
        filed(ledger)
        connection.execute("update public.ledger_domains set layout = 99")
        with opened(pg_dsn) as later, pytest.raises(UnavailableError, match="later amem"):
            later.list(listing())


OLDER = (
    "create table public.events(seq bigint primary key, task text, kind text, principal text, at_ms bigint, fence int, data text)",
    "create table public.tasks(id text primary key)",
)


def test_older_layout_is_moved_in_order_and_kept_beside(pg_dsn: str) -> None:
    with opened(pg_dsn) as ledger, beside(pg_dsn) as connection:
        need = admitted(ledger)
        last = admitted(ledger, depends_on=(need.id,))
        completed(ledger, claimed(ledger))
        other = ledger.create(Draft(domain="dom-other", title="x"), by=ME).task
        before = {one.id: one for one in ledger.tree(last.id) + ledger.tree(need.id)}
        for statement in OLDER:
            connection.execute(statement.encode())
        for domain in (DOM, "dom-other"):
            schema = schema_name("here", domain)
            offset = 0 if domain == DOM else 1000
            connection.execute(
                f"insert into public.events select seq + {offset}, task, kind, principal, at_ms, fence, data from".encode()
                + f' "{schema}".event'.encode()
            )
            connection.execute(f'drop schema "{schema}" cascade'.encode())
        connection.execute("drop table public.ledger_domains, public.ledger_tasks")
    with opened(pg_dsn) as ledger, beside(pg_dsn) as connection:
        assert {one: ledger.show(one) for one in before} == before
        assert ledger.show(other.id) == other
        assert claimed(ledger).id == last.id
        assert ledger.reindex(DOM, check=True).repaired == ()
        kept = connection.execute("select count(*) from public.events_before_domain_schemas").fetchone()
        assert kept == (8,)
        assert connection.execute("select to_regclass('public.events')").fetchone() == (None,)


def test_move_that_fails_leaves_the_older_layout_as_it_was(pg_dsn: str) -> None:
    with beside(pg_dsn) as connection:
        for statement in OLDER:
            connection.execute(statement.encode())
        connection.execute(
            "insert into public.events values (1, 'task-me-00000000', 'melted', 'human:a:b', 1, 0, '{}')",
        )
        with pytest.raises(IntegrityError, match="'melted' cannot be read"):
            opened(pg_dsn)
        assert connection.execute("select count(*) from public.events").fetchone() == (1,)
        assert connection.execute("select to_regclass('public.ledger_domains')").fetchone() == (None,)


def test_events_table_of_another_program_is_left_alone(pg_dsn: str) -> None:
    with beside(pg_dsn) as connection:
        connection.execute("create table public.events(id int)")
        connection.execute("create table public.tasks(id int)")
        with opened(pg_dsn) as ledger:
            filed(ledger)
        assert connection.execute("select to_regclass('public.events')").fetchone() != (None,)

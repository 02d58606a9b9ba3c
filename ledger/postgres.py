"""The ledger in PostgreSQL, for workers on many machines. The one door to psycopg.

A domain has a schema of its own, made under an advisory lock with its first task; two tables in `public` say where each domain and each
task is. A claim takes its row with FOR UPDATE SKIP LOCKED, so that no claimer waits on another. The clock is the server's.
An operation whose connection breaks is tried again within bounds; when the answer to a commit was lost, the server is asked
whether it happened, so that nothing happens twice.
"""

import hashlib
import random
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache

import psycopg
from psycopg import errors

from amem.errors import AmemError, ConfigError, IntegrityError, UnavailableError
from amem.ledger import events as ev
from amem.ledger import queries, rows
from amem.ledger.backend import Taken, Tx
from amem.ledger.prepared import Prepared
from amem.ledger.task import ANYTHING, Task, not_found
from amem.ledger.work import fill
from amem.model.ids import domain_of
from amem.typed import Any, TypeVar

T = TypeVar("T")
NOW = "(extract(epoch from clock_timestamp()) * 1000)::bigint"
_MIGRATIONS = ("postgres_001.sql", "postgres_002.sql")
_OLDEST = 130000
# Another transaction was in the way: the same again goes through.
_CROSSED = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation, errors.LockNotAvailable)
# The server is there and cannot write now, for long or not; and what helps.
_NOT_NOW: Mapping[type[psycopg.Error], str] = {
    errors.ReadOnlySqlTransaction: "it may be a standby: name the primary in [ledger] url, or look at default_transaction_read_only",
    errors.DiskFull: "make room on the server's disk",
    errors.TooManyConnections: "run fewer workers, or raise max_connections on the server",
}
# Whether the two tables of the older layout are there, with its columns: other programs may have an `events` of their own.
_OLDER = """
select to_regclass('public.tasks') is not null and (
    select array_agg(column_name::text order by column_name) from information_schema.columns
    where table_schema = 'public' and table_name = 'events'
) = array['at_ms', 'data', 'fence', 'kind', 'principal', 'seq', 'task']
"""
_SETTINGS = """
set statement_timeout = 30000; set lock_timeout = 10000; set idle_in_transaction_session_timeout = 60000;
set plan_cache_mode = force_generic_plan
"""
_FULL = re.compile("too many clients|too many connections|connection slots")
_HINT = "check [ledger] url in grants.toml and that the server runs"


class _Nothing:
    """`Tx` on a domain that has no schema yet: nothing is found in it."""

    def __init__(self, domain: str) -> None:
        self.domain = domain

    def now(self) -> int:
        return 0

    def rows(self, query: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return ()

    def select(self, body: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return [(0,)] if body.startswith("select count(*)") else ()

    def run(self, query: str, values: Mapping[str, Any]) -> None:
        raise AssertionError(f"{query} in a domain without a schema")

    def insert(self, columns: Mapping[str, Any]) -> None:
        raise AssertionError("a task in a domain without a schema")

    def update(self, task: str, columns: Mapping[str, Any]) -> None:
        raise not_found(task)

    def serialise(self) -> None:
        """Nobody is there."""


class _Tx:
    """`Tx` in one schema."""

    def __init__(self, connection: "psycopg.Connection[Any]", schema: str, domain: str, space: str, now: str) -> None:
        self.domain = domain
        self._connection = connection
        self._schema = schema
        self._space = space
        self._clock = now
        self.statements = _statements(schema, now)

    def now(self) -> int:
        return int(self.rows("clock", {})[0][0])

    def rows(self, query: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return self._connection.execute(self.statements[query], values).fetchall()

    def select(self, body: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return self._connection.execute(queries.pg(body, self._schema, self._clock).encode(), values).fetchall()

    def run(self, query: str, values: Mapping[str, Any]) -> None:
        self._connection.execute(self.statements[query], values)

    def insert(self, columns: Mapping[str, Any]) -> None:
        self.run("insert", columns)
        self.run("add_requirement", columns)
        self.run("route", {"space": self._space, "id": columns["id"], "domain": self.domain})

    def update(self, task: str, columns: Mapping[str, Any]) -> None:
        # The names are those of `rows.COLUMNS`, never from outside.
        what = ", ".join(f"{name} = %({name})s" for name in columns)
        self._connection.execute(f'update "{self._schema}".task set {what} where id = %(task)s'.encode(), {**columns, "task": task})

    def serialise(self) -> None:
        self._connection.execute("select pg_advisory_xact_lock(%s)", (_key(self._schema),))


_NOTHING = "chr(1)"
_EMPTIED = (("text", "digest", f"({_NOTHING}, '')"), ("requirement", "requires", f"({_NOTHING})"))
"""Tables that may have no row left: the key of each, and a row that nobody else sees."""


class Postgres:
    """`Backend` on a server. One connection; a lock lets one thread at a time use it. Not to be carried across a fork.

    `space` keeps roots on one database apart: those with the same one share their domains. `patience_s` is how long an operation
    tries to reach the server before it raises UnavailableError.
    """

    def __init__(self, url: str, *, space: str, patience_s: float = 8.0, now: str = NOW) -> None:
        self._url = url
        self._space = space
        self._patience_s = patience_s
        self._clock = now
        self._guard = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._schemas: dict[str, str] = {}
        self._prepared: dict[tuple[str, str], Prepared] = {}
        self._patiently(lambda connection: None)

    def close(self) -> None:
        """See `Backend`."""
        with self._guard:
            self._drop()

    def now_ms(self) -> int:
        """See `Backend`."""
        statement = f"select {self._clock}".encode()
        return int(self._patiently(lambda connection: connection.execute(statement).fetchall())[0][0])

    def alone(self, domain: str, act: Callable[[Tx], T]) -> T:
        """See `Backend`."""

        def locked(tx: Tx) -> T:
            tx.serialise()
            if isinstance(tx, _Tx):
                tx.run("alone", {})
            return act(tx)

        return self.change(domain, locked)

    def read(self, domain: str, ask: Callable[[Tx], T]) -> T:
        """See `Backend`."""

        def attempt(connection: "psycopg.Connection[Any]") -> T:
            tx = self._tx(connection, domain)
            with connection.transaction():
                connection.execute("set transaction isolation level repeatable read, read only")
                return ask(tx)

        return self._patiently(attempt)

    def change(self, domain: str, act: Callable[[Tx], T], *, new: bool = False) -> T:
        """See `Backend`."""

        def attempt(connection: "psycopg.Connection[Any]") -> T:
            if new:
                self._make(connection, domain)
            tx = self._tx(connection, domain)
            number, done = "", False
            try:
                with connection.transaction():
                    if isinstance(tx, _Tx):
                        number = tx.rows("start", {})[0][1]
                    result = act(tx)
                    done = True
                return result
            except psycopg.OperationalError as error:
                # Broken between the last statement and the answer to the commit: it may have happened.
                if done and connection.broken and number:
                    if self._happened(number):
                        return result
                    raise errors.SerializationFailure("the commit did not happen") from error
                raise

        return self._patiently(attempt)

    def at_once(self, statement: str, event: ev.Event, values: Mapping[str, Any]) -> Task | None:
        """See `Backend`."""
        found = self._statement(domain_of(event.task), statement, event, values)
        return rows.task(found[0]) if found else None

    def take(self, domain: str, event: ev.Claimed, capabilities: Collection[str], *, unless_ended: bool) -> Taken:
        """See `Backend`."""
        values = {
            "session": event.session, "lease_ms": event.lease_ms, "unless_ended": unless_ended,
            "anything": frozenset(capabilities) >= ANYTHING, "capabilities": list(capabilities),
        }  # fmt: skip
        found = self._statement(domain, "claim", event, values)
        if not found:
            return Taken(None)
        ended, ready, *row = found[0]
        if row[0] is not None:
            return Taken(rows.task(row))
        if ended and unless_ended:
            return Taken(None, ended=True)
        if ready:
            found = self._statement(domain, "claim_any", event, values)
            return Taken(rows.task(found[0]) if found else None)
        return Taken(None)

    def scrub(self, domain: str) -> None:
        """See `Backend`. What the planner keeps of the values is made anew; the server's own log and its backups are the server's."""

        def attempt(connection: "psycopg.Connection[Any]") -> None:
            schema = self._schemas.get(domain) or self._find(connection, domain)
            if schema is not None:
                tables = ", ".join(f'"{schema}".{name}' for name in ("task", "event", "text", "promotion", "requirement"))
                connection.execute(f"vacuum (full, analyze) {tables}".encode())
                for table, key, row in _EMPTIED:  # of an empty table the planner would keep what it knew
                    with connection.transaction():
                        connection.execute(f'insert into "{schema}".{table} values {row} on conflict do nothing'.encode())
                        connection.execute(f'analyze "{schema}".{table}'.encode())
                        connection.execute(f'delete from "{schema}".{table} where {key} = {_NOTHING}'.encode())

        self._patiently(attempt)

    def _statement(self, domain: str, name: str, event: ev.Event, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        values = {**values, "by": event.by, "data": ev.data(event)}

        def attempt(connection: "psycopg.Connection[Any]") -> Sequence[Sequence[Any]]:
            run = self._prepared.get((domain, name))
            if run is None:
                tx = self._tx(connection, domain)
                if isinstance(tx, _Nothing):
                    return ()
                run = self._prepared[domain, name] = Prepared(connection, f"{name} {domain}", tx.statements[name])
            return run(values)

        return self._patiently(attempt)

    def _tx(self, connection: "psycopg.Connection[Any]", domain: str) -> "_Tx | _Nothing":
        schema = self._schemas.get(domain) or self._find(connection, domain)
        return _Tx(connection, schema, domain, self._space, self._clock) if schema else _Nothing(domain)

    def _find(self, connection: "psycopg.Connection[Any]", domain: str) -> str | None:
        """The schema of a domain, brought to this layout; None when it has none."""
        try:
            row = connection.execute(
                "select schema, layout from public.ledger_domains where space = %s and domain = %s", (self._space, domain)
            ).fetchone()
        except errors.UndefinedTable:
            return None
        if row is None:
            return None
        if row[1] > len(_MIGRATIONS):
            raise UnavailableError(f"the ledger of {domain} was written by a later amem (layout {row[1]})", hint="amem --version")
        if row[1] < len(_MIGRATIONS):
            self._migrate(connection, domain)
        self._schemas[domain] = row[0]
        return str(row[0])

    def _make(self, connection: "psycopg.Connection[Any]", domain: str) -> None:
        if domain in self._schemas or self._find(connection, domain):
            return
        self._migrate(connection, domain)
        self._find(connection, domain)

    def _migrate(self, connection: "psycopg.Connection[Any]", domain: str) -> None:
        with connection.transaction():
            self._lay_out(connection, domain)

    def _lay_out(self, connection: "psycopg.Connection[Any]", domain: str) -> None:
        """Make or bring up to date the schema of a domain, in the transaction that is open."""
        schema = schema_name(self._space, domain)
        connection.execute("select pg_advisory_xact_lock(%s)", (_key("amem ledger"),))
        for statement in queries.text("postgres_public.sql").split(";\n"):
            connection.execute(statement.encode())
        row = connection.execute(
            "select layout from public.ledger_domains where space = %s and domain = %s for update", (self._space, domain)
        ).fetchone()
        if row is None:
            connection.execute(f'create schema "{schema}"'.encode())
            connection.execute("insert into public.ledger_domains values (%s, %s, %s, 0)", (self._space, domain, schema))
        for name in _MIGRATIONS[row[0] if row else 0 :]:
            for statement in queries.text(name).split(";\n"):
                connection.execute(queries.pg(statement, schema, self._clock).encode())
        connection.execute(
            "update public.ledger_domains set layout = %s where space = %s and domain = %s", (len(_MIGRATIONS), self._space, domain)
        )

    def _move_older(self, connection: "psycopg.Connection[Any]") -> None:
        """Move a ledger that kept every domain in two tables of `public` into a schema a domain, all or nothing.

        The events go over in order and are replayed; the old tables are renamed, not dropped.
        """
        if connection.execute(_OLDER).fetchone() != (True,):
            return
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock(%s)", (_key("amem ledger"),))
            if connection.execute(_OLDER).fetchone() != (True,):
                return
            connection.execute("lock table public.events, public.tasks in access exclusive mode")
            found = connection.execute("select kind, task, principal, at_ms, fence, data from public.events order by seq").fetchall()
            by_domain: dict[str, list[ev.Event]] = {}
            for row in found:
                by_domain.setdefault(domain_of(row[1]), []).append(ev.of_row(row))
            for domain, events in by_domain.items():
                self._lay_out(connection, domain)
                fill(_Tx(connection, schema_name(self._space, domain), domain, self._space, self._clock), events)
            for name in ("events", "tasks"):
                connection.execute(f"alter table public.{name} rename to {name}_before_domain_schemas".encode())

    def _patiently(self, attempt: Callable[["psycopg.Connection[Any]"], T]) -> T:
        """Run `attempt`, again when another transaction was in the way or the server was away, for as long as patience lasts."""
        until, delay_s = time.monotonic() + self._patience_s, 0.02
        while True:
            try:
                with self._guard:
                    return attempt(self._connected())
            except AmemError:
                raise
            except errors.InsufficientPrivilege as error:
                raise UnavailableError(
                    f"the ledger's server refuses: {_first_line(error)}", hint="grant create on its database and schema public to its user"
                ) from error
            except (*_CROSSED, errors.ReadOnlySqlTransaction, errors.DiskFull, errors.TooManyConnections) as error:
                failure: psycopg.Error = error
                hint = _NOT_NOW.get(type(error), "try it again")
            except psycopg.OperationalError as error:
                with self._guard:
                    self._drop()
                if (error.sqlstate or "").startswith("28") or "password authentication failed" in str(error):
                    raise UnavailableError(f"the ledger's server does not let amem in: {_first_line(error)}", hint=_HINT) from None
                failure = error
                # A connection that is refused has no code, only the server's words.
                hint = _NOT_NOW[errors.TooManyConnections] if _FULL.search(str(error)) else _HINT
            except psycopg.Error as error:
                raise IntegrityError(f"the ledger's server: {_first_line(error)}", hint="amem reindex --ledger --check") from error
            if time.monotonic() + delay_s > until:
                raise UnavailableError(f"the ledger's server: {_first_line(failure)}", hint=hint) from None
            # Apart from each other, so that those who met once do not meet again.
            time.sleep(delay_s * random.uniform(0.5, 1.0))
            delay_s = min(delay_s * 2, 1.0)

    def _connected(self) -> "psycopg.Connection[Any]":
        if self._connection is not None and not self._connection.broken and not self._connection.closed:
            return self._connection
        self._drop()
        try:
            connection: psycopg.Connection[Any] = psycopg.connect(
                self._url, autocommit=True, connect_timeout=5, application_name="amem", keepalives_idle=30, keepalives_interval=5,
                keepalives_count=3, tcp_user_timeout=20_000, client_encoding="utf8",
            )  # fmt: skip
        except psycopg.ProgrammingError:
            # Its text would show a part of the address, and with it the password.
            raise ConfigError("grants.toml: ledger.url: not a PostgreSQL address", hint="amem doctor --config") from None
        try:
            if connection.info.server_version < _OLDEST:
                raise UnavailableError(f"PostgreSQL {connection.info.server_version // 10000} is too old: 13 or later is needed")
            # A statement is prepared from its second use on and planned once: every look-up has its index, whatever the values
            # are, and planning a claim anew took longer than the claim (PostgreSQL 15, 2026-11).
            connection.prepare_threshold = 1
            connection.execute(_SETTINGS)
            self._move_older(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
        self._connection = None
        self._prepared.clear()

    def _happened(self, number: str) -> bool:
        """Whether the transaction of that number was committed, once the server is back and it is over."""
        until = time.monotonic() + self._patience_s
        while True:
            try:
                row = self._connected().execute("select pg_xact_status(%s::xid8)", (number,)).fetchone()
                if row is not None and row[0] != "in progress":
                    return bool(row[0] == "committed")
            except psycopg.OperationalError:
                self._drop()
            if time.monotonic() > until:
                raise UnavailableError("the ledger's server went away in the middle of a commit: it may have happened", hint=_HINT)
            time.sleep(0.05)


def schema_name(space: str, domain: str) -> str:
    """The schema of a domain: `ledger_<domain>_<8 hex digits of the digest of space and domain>`."""
    digest = hashlib.sha256(f"{space}/{domain}".encode() if space else domain.encode()).hexdigest()
    return f"ledger_{domain}_{digest[:8]}"


@cache
def _statements(schema: str, now: str) -> Mapping[str, bytes]:
    return {name: body.encode() for name, body in queries.postgres(schema, now).items()}


def _key(name: str) -> int:
    """The number of an advisory lock."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]

"""Keep what every call used, and which sessions there were: `state/usage.sqlite`.

Owns the file. Rows are written by one thread of the meter's own, many to a transaction, so that the loop that carries streams
never waits for a disk. A row is written once (its id is the call's); when the store cannot be written the meter says so
(`fault`) and the egress sends no more calls, because what cannot be counted must not be spent.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from amem.egress.identity import Backends
from amem.errors import UnavailableError
from amem.model.call import Billing, ObservedBy
from amem.model.clock import now, stamp
from amem.settings import database
from amem.settings.root import Root
from amem.typed import Any, NamedTuple

QUARTER = "substr({at}, 1, 14) || printf('%02d', substr({at}, 15, 2) / 15 * 15)"
"""The quarter of an hour of an instant: `2026-11-30T07:15`."""
SCHEMA = (
    """create table if not exists calls(
        id text primary key, at text not null, session text not null, domain text not null, principal text not null, task text,
        kind text not null, destination text not null, model text not null, dialect text not null, status integer not null,
        billing text not null, source text not null, input integer, output integer, cache_read integer, cache_write integer,
        reasoning integer, partial integer not null, unmetered_reason text, refused text, ms integer, first_ms integer,
        response_id_class text, reported_model text, request_id text, shaping text, charged integer not null, role text, alarm text)
        strict""",
    "create index if not exists calls_by_session on calls(session, at)",
    "create index if not exists calls_by_destination on calls(destination, at)",
    """create table if not exists sessions(
        id text primary key, harness text not null, auth text not null, destination text not null, model text, backend text not null,
        label text not null, ceiling text not null, handling text not null, domain text not null, workdir text not null, task text,
        pid integer, started_at text not null, ended_at text, exit integer, reason text) strict""",
    # One row a call that is under way where a spend limit holds; `until` is when it is released by itself.
    """create table if not exists reservations(
        call text primary key, destination text not null, session text not null, tokens integer not null, until text not null) strict""",
    # What limits are held against: running sums, because it is asked before each call and a day may have very many. A day of any zone
    # begins with a quarter of an hour.
    """create table if not exists charged_by_session(
        destination text not null, session text not null, tokens integer not null, primary key(destination, session))
        strict, without rowid""",
    """create table if not exists charged_by_quarter(
        destination text not null, quarter text not null, tokens integer not null, primary key(destination, quarter))
        strict, without rowid""",
    """insert or replace into charged_by_session
        select destination, session, sum(charged) from calls where charged > 0 group by destination, session""",
    f"""insert or replace into charged_by_quarter
        select destination, {QUARTER.format(at="at")}, sum(charged) from calls where charged > 0 group by 1, 2""",
    f"""create trigger if not exists calls_charged after insert on calls when new.charged > 0 begin
        insert into charged_by_session values (new.destination, new.session, new.charged)
          on conflict do update set tokens = tokens + excluded.tokens;
        insert into charged_by_quarter values (new.destination, {QUARTER.format(at="new.at")}, new.charged)
          on conflict do update set tokens = tokens + excluded.tokens;
        end""",
)
_ADDED = {"role": "text", "alarm": "text"}
"""Columns of `calls` that a store of an older amem may not have."""
VERSION = 3
_GATHER_S = 0.05
"""Rows wait so long for others to be written with: what a killed egress can lose, and each writing costs the loop a turn."""


class CallRow(NamedTuple):
    """One call as it is kept. Tokens are None when they are not known, never zero for that."""

    id: str
    at: str
    session: str
    domain: str
    principal: str
    destination: str
    model: str
    """As it was asked for."""
    dialect: str
    status: int
    """What the harness got: the upstream's status, or the egress's own; 499 when the harness went before there was one."""
    billing: Billing
    task: str | None = None
    kind: str = "call"
    """`call` or `count` (see `flow.Kind`), or `tunnel`."""
    source: ObservedBy = ObservedBy.EGRESS
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    partial: bool = False
    """The answer did not come to its end: the tokens are a floor."""
    unmetered_reason: str | None = None
    refused: str | None = None
    """The code of the reason, of a call that did not leave."""
    ms: int | None = None
    first_ms: int | None = None
    """Until the first byte of the answer's body."""
    response_id_class: str | None = None
    """The shape of the answer's id (B16): `msg_`, `chatcmpl-`, …"""
    reported_model: str | None = None
    request_id: str | None = None
    shaping: str | None = None
    """The names of the changes that were made, joined by commas."""
    charged: int = 0
    """Tokens that count against spend limits: what was used, or what was reserved when an answer did not say."""
    role: str | None = None
    """What a call of amem's own was for (`call.Role`)."""
    alarm: str | None = None
    """A code of `identity`: the answer did not come from what was asked, or not as the grant requires."""


_INSERT = f"""insert or ignore into calls({", ".join(CallRow._fields)})
    select {", ".join(f"value ->> {n}" for n in range(len(CallRow._fields)))} from json_each(?)"""
"""All rows in one step: between steps the thread that carries streams would have to wait its turn."""
_SETTLE = "delete from reservations where call in (select value from json_each(?)) or until < ?"


class Meter:
    """Writes rows in a thread of its own. `close` waits until all of them are on disk."""

    def __init__(self, root: Root) -> None:
        """Open or make the file. Raises UnavailableError, or database.Error when it cannot be written."""
        self.fault: str | None = None
        """Why the last write failed; None while the store is well."""
        self._path = root.usage
        connect(self._path).close()
        self._lock = threading.Condition()  # guards the five below
        self._rows: list[CallRow] = []
        self._handed = 0
        self._settled = 0
        self._hurry = False
        self._closing = False
        self._backends = Backends()
        self._judged = 0
        """How many of the rows that wait to be written were compared with their backend's last: each is, once."""
        self._thread = threading.Thread(target=self._run, name="meter", daemon=True)
        self._thread.start()

    def record(self, row: CallRow) -> None:
        """Hand over a row; returns at once."""
        with self._lock:
            self._rows.append(row)
            self._handed += 1
            if len(self._rows) == 1:
                self._lock.notify_all()

    def flush(self) -> None:
        """Wait until every row handed over so far is on disk, or failed."""
        with self._lock:
            handed = self._handed
            self._hurry = True
            self._lock.notify_all()
            self._lock.wait_for(lambda: self._settled >= handed)

    def close(self) -> None:
        """Write what is left and end the thread."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        self._thread.join()

    def _run(self) -> None:
        connection = connect(self._path, durable=False)
        pending: list[CallRow] = []
        try:
            while True:
                with self._lock:
                    self._lock.wait_for(lambda: self._rows or self._hurry or self._closing)
                    # Waking for each row would cost the loop more than the row: whatever comes in a moment goes with the first.
                    if not self._hurry and not self._closing:
                        self._lock.wait_for(lambda: self._hurry or self._closing, timeout=_GATHER_S)
                    pending += self._rows
                    self._rows, self._hurry = [], False
                    handed, closing = self._handed, self._closing
                self._write(connection, pending)
                with self._lock:
                    self._settled = handed
                    self._lock.notify_all()
                    if closing and not self._rows:
                        return
        finally:
            connection.close()

    def _write(self, connection: database.Connection, pending: list[CallRow]) -> None:
        """Write the rows; those that could not be written stay and are tried with the next ones."""
        if not pending:
            return
        import json  # a launch reads this module before its harness runs

        try:
            connection.execute("begin immediate")
            try:
                for at in range(self._judged, len(pending)):
                    pending[at] = self._backends.judged(connection, pending[at])
                    self._judged = at + 1
                connection.execute(_INSERT, (json.dumps(pending, ensure_ascii=False),))
                connection.execute(_SETTLE, (json.dumps([row.id for row in pending]), stamp(now())))
                connection.execute("commit")
            except BaseException:
                connection.execute("rollback")
                raise
            to_disk(self._path)
        except Exception as error:  # an outer edge: a row that nobody can write must stop the calls, not this thread
            if self.fault is None:
                import logging

                logging.getLogger(__name__).exception("the usage store cannot be written")
            self.fault = f"the usage store cannot be written: {error}"
        else:
            self.fault = None
            pending.clear()
            self._judged = 0


@contextmanager
def unsynced(connection: database.Connection) -> Iterator[None]:
    """For a commit that the caller takes to the disk by `to_disk`: SQLite would wait for the first page of a new log, whatever was asked.

    Nothing is taken from the log into the file meanwhile, for that needs the order that waiting gives.
    """
    (checkpoint,) = connection.execute("pragma wal_autocheckpoint").fetchone()
    connection.execute("pragma wal_autocheckpoint = 0")
    connection.execute("pragma synchronous = off")
    try:
        yield
    finally:
        connection.execute("pragma synchronous = normal")
        connection.execute(f"pragma wal_autocheckpoint = {checkpoint}")


def to_disk(path: Path, *, folder: bool = False) -> None:
    """Wait until what was committed is on the disk; with `folder`, the log's own name too, which may be new. Raises OSError.

    SQLite would do so under its lock, and every reservation would wait for it.
    """
    for name in (f"{path}-wal", *((path.parent,) if folder else ())):
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # it was taken into the file, which SQLite does durably
            return
        try:
            (os.fsync if folder else os.fdatasync)(descriptor)
        finally:
            os.close(descriptor)


def keep(root: Root, rows: Iterable[CallRow]) -> None:
    """Write rows at once, in one transaction: what a harness itself reports after a session. Raises database.Error."""
    import json

    with opened(root) as connection:
        connection.execute("begin immediate")
        try:
            connection.execute(_INSERT, (json.dumps(list(rows), ensure_ascii=False),))
            connection.execute("commit")
        except BaseException:
            connection.execute("rollback")
            raise


def connect(path: Path, *, durable: bool = True) -> database.Connection:
    """Open the store and make what is missing in it. Raises UnavailableError for one of a newer amem, database.Error.

    Without `durable` a power cut may lose the last commits.
    """
    connection = database.connect(path, durable=durable, check_same_thread=False)
    try:
        found = _version(connection)
        if found > VERSION:
            raise UnavailableError(f"{path}: it was written by a newer amem (its version is {found}, and {VERSION} is known here)")
        if found < VERSION:
            path.chmod(0o600)
            _bring_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: database.Connection) -> int:
    return int(connection.execute("pragma user_version").fetchone()[0])


def _bring_up(connection: database.Connection) -> None:
    """Make what is missing in a store that is new, or of an older amem: all of it or nothing."""
    connection.execute("begin immediate")  # another process may be doing the same
    try:
        for statement in SCHEMA:
            connection.execute(statement)
        there = {name for (name,) in connection.execute("select name from pragma_table_info('calls')")}
        for name, kind in _ADDED.items():
            if name not in there:
                connection.execute(f"alter table calls add column {name} {kind}")
        connection.execute(f"pragma user_version = {VERSION}")
        connection.execute("commit")
    except BaseException:
        connection.execute("rollback")
        raise


# ---- sessions --------------------------------------------------------------------------

_SESSION_COLUMNS = (
    "id", "harness", "auth", "destination", "model", "backend", "label", "ceiling", "handling", "domain", "workdir", "task", "pid",
    "started_at",
)  # fmt: skip
_RANKS = "case label when 'public' then 0 when 'internal' then 1 else 2 end"


def start_session(root: Root, row: Mapping[str, Any]) -> None:
    """Keep a session that starts, on the disk. Raises as `enter_session` does."""
    with opened(root) as connection:
        enter_session(connection, row)


def enter_session(connection: database.Connection, row: Mapping[str, Any]) -> None:
    """The row of a session that starts, with the columns from `id` to `started_at`; as durable as the connection is.

    Raises ValueError for another column, database.Error for the same id.
    """
    unknown = set(row) - set(_SESSION_COLUMNS)
    if unknown:
        raise ValueError(f"not of a session: {sorted(unknown)}")
    values = tuple(row.get(name) for name in _SESSION_COLUMNS)
    connection.execute(f"insert into sessions({', '.join(_SESSION_COLUMNS)}) values ({', '.join('?' * len(values))})", values)


def raise_label(root: Root, session: str, label: str) -> None:
    """Raise a session's label; one that is not higher changes nothing."""
    rank = ("public", "internal", "restricted").index(label)
    with opened(root) as connection:
        connection.execute(f"update sessions set label = ? where id = ? and {_RANKS} < ?", (str(label), session, rank))


def lower_label(root: Root, session: str, label: str) -> None:
    """Set the label of a session that has ended: the owner's act, once it was decided."""
    with opened(root) as connection:
        connection.execute("update sessions set label = ? where id = ?", (str(label), session))


def end_session(root: Root, session: str, *, exit: int, ended_at: str, reason: str | None = None) -> None:
    """Keep how a session ended; the first end stands."""
    with opened(root) as connection:
        connection.execute(
            "update sessions set ended_at = ?, exit = ?, reason = ? where id = ? and ended_at is null", (ended_at, exit, reason, session)
        )


@contextmanager
def opened(root: Root) -> Iterator[database.Connection]:
    """A connection for one act of a command."""
    connection = connect(root.usage)
    try:
        yield connection
    finally:
        connection.close()

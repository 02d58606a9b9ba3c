"""The ledger in SQLite, for one machine.

Owns `state/ledger.sqlite` and the two lock files beside it. `amem.settings.database` picks the library. Writers queue for the file lock
rather than race for SQLite's own, which lets one worker have everything and another nothing. No operation is answered before what it wrote
or found is on the disk; but it waits for the disk after its turn, when others write already, so that one sync serves all who wait.
The clock is the ledger's own: milliseconds since this boot plus an offset that is fixed while anybody holds a lease, so that a
step of the wall clock ends no lease and prolongs none.
"""

import errno
import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from amem.errors import IntegrityError, UnavailableError
from amem.ledger import queries, rows
from amem.ledger.backend import Taken, Tx
from amem.ledger.task import covers
from amem.model.ids import domain_of
from amem.settings import database
from amem.typed import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from amem.ledger.events import Claimed, Event
    from amem.ledger.task import Task

T = TypeVar("T")
_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
_MIGRATIONS = ("sqlite_001.sql", "sqlite_002.sql")
_DRIFT_MS = 2000
_ID, _AT, _FENCE = (rows.COLUMNS.index(name) for name in ("id", "changed_ms", "fence"))


class HostClock(NamedTuple):
    """What the machine says of the time; tests pass their own."""

    boot: Callable[[], str]
    """What tells this boot from another."""
    up_ms: Callable[[], int]
    """Milliseconds since then, suspended time included; no step of the wall clock touches it."""
    wall_ms: Callable[[], int]


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # not Linux: the boot's own start, to the minute
        return str((time.time_ns() - time.monotonic_ns()) // 60_000_000_000)


def _up_ms() -> int:
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


HOST = HostClock(_boot, _up_ms, lambda: time.time_ns() // 1_000_000)


class _Tx:
    """`Tx` on the one connection."""

    def __init__(self, connection: database.Connection, host: HostClock, boot: str, domain: str, *, writes: bool) -> None:
        self.domain = domain
        self._writes = writes
        self._connection = connection
        self._host = host
        self._statements = queries.sqlite()
        self._boot = boot

    def now(self) -> int:
        found = self._connection.execute(self._statements["clock"]).fetchone()
        up_ms, wall_ms = self._host.up_ms(), self._host.wall_ms()
        if found is not None and found[0] == self._boot:
            now_ms: int = up_ms + found[1]
            # Behind the wall clock, it was set from one that was wrong: put right when no lease can be cut short by it.
            if wall_ms - now_ms <= _DRIFT_MS or self._connection.execute(self._statements["any_claimed"]).fetchone():
                return now_ms
        latest = self._connection.execute(self._statements["latest"]).fetchone()
        now_ms = max(wall_ms, latest[0] if latest else 0)
        if self._writes:
            self._connection.execute("delete from clock")
            self._connection.execute("insert into clock(boot, offset_ms) values (?, ?)", (self._boot, now_ms - up_ms))
        return now_ms

    def rows(self, query: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return list(self._run(self._statements[query], values))

    def select(self, body: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return list(self._run(queries.lite(body), values))

    def run(self, query: str, values: Mapping[str, Any]) -> None:
        self._run(self._statements[query], values)

    def insert(self, columns: Mapping[str, Any]) -> None:
        self.run("insert", columns)
        self.run("add_requirement", columns)

    def update(self, task: str, columns: Mapping[str, Any]) -> None:
        # The names are those of `rows.COLUMNS`, never from outside.
        what = ", ".join(f"{name} = :{name}" for name in columns)
        self._connection.execute(f"update task set {what} where id = :task", {**columns, "task": task})

    def serialise(self) -> None:
        """A write transaction is alone already."""

    def noted(self, statement: str, values: Mapping[str, Any], event: "Event", data: str) -> Sequence[Any] | None:
        """Run a statement that changes one task; when it did, append the event, and return the row."""
        row: Sequence[Any] | None = self._connection.execute(self._statements[statement], values).fetchone()
        if row is not None:
            self._connection.execute(self._statements["note"], (row[_ID], event.kind, event.by, row[_AT], row[_FENCE], data))
        return row

    def _run(self, statement: str, values: Mapping[str, Any]) -> Any:
        if any(type(value) is list for value in values.values()):
            values = {name: json.dumps(value) if type(value) is list else value for name, value in values.items()}
        return self._connection.execute(statement, values)


class Sqlite:
    """`Backend` in one file.

    One connection; a lock lets one thread of this process at a time use it. Not to be carried across a fork.
    """

    def __init__(self, path: Path, *, host: HostClock = HOST) -> None:
        self._path = path
        self._host = host
        self._boot = host.boot()
        self._guard = threading.RLock()
        self._log = -1
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _make(path)
            self._queue = _lock_file(f"{path}.queue")
            self._turn = _lock_file(f"{path}.turn")
        except OSError as error:
            raise UnavailableError(f"the ledger {error.filename}: {error.strerror}", hint="amem doctor") from error
        self._files: tuple[int, ...] = (self._queue, self._turn)
        with self._said(), self._writing():
            # Opened in its turn: the switch of a new file to WAL is no place to meet another process. A commit that synced by itself
            # would do so in its turn, and everybody would wait for the disk behind everybody else: `_synced` does it.
            self._connection = database.connect(path, durable=False, check_same_thread=False, cached_statements=256)
        self._migrate()

    def close(self) -> None:
        """See `Backend`."""
        with self._guard:
            self._connection.close()
            for file in self._files:
                os.close(file)
            self._files = ()

    def now_ms(self) -> int:
        """See `Backend`."""
        return self.read("", lambda tx: tx.now())

    def change(self, domain: str, act: Callable[[Tx], T], *, new: bool = False) -> T:
        """See `Backend`."""
        return self.alone(domain, act)

    def alone(self, domain: str, act: "Callable[[_Tx], T]") -> T:
        """See `Backend`."""
        with self._guard, self._said():
            with self._writing():
                self._connection.execute("begin immediate")
                try:
                    result = act(_Tx(self._connection, self._host, self._boot, domain, writes=True))
                    self._connection.execute("commit")
                except BaseException:
                    if self._connection.in_transaction:
                        self._connection.execute("rollback")
                    raise
            self._synced()
        return result

    def read(self, domain: str, ask: Callable[[Tx], T]) -> T:
        """See `Backend`."""
        with self._guard, self._said():
            self._connection.execute("begin")
            try:
                return ask(_Tx(self._connection, self._host, self._boot, domain, writes=False))
            finally:
                self._connection.execute("rollback")

    def at_once(self, statement: str, event: "Event", values: Mapping[str, Any]) -> "Task | None":
        """See `Backend`."""
        keys = _data(event)

        def act(tx: _Tx) -> Sequence[Any] | None:
            return tx.noted(statement, {**values, "now": tx.now()}, event, keys)

        return _read(self.alone(domain_of(event.task), act))

    def take(self, domain: str, event: "Claimed", capabilities: Collection[str], *, unless_ended: bool) -> Taken:
        """See `Backend`."""
        keys = _data(event)

        def act(tx: _Tx) -> tuple[Sequence[Any] | None, bool]:
            now_ms = tx.now()
            ends, sets = tx.rows("before_claim", {"domain": domain})[0]
            if unless_ended and ends is not None and ends <= now_ms:
                return None, True
            values = {"domain": domain, "by": event.by, "session": event.session, "lease_ms": event.lease_ms, "now": now_ms}
            fit = [one for one in json.loads(sets) if covers(capabilities, one.split())]
            if len(fit) == 1:
                return tx.noted("claim_first", {**values, "key": fit[0]}, event, keys), False
            best = tx.rows("best", {"domain": domain, "keys": fit})
            return tx.noted("claim_row", {**values, "seq": best[0][0]}, event, keys) if best else None, False

        found, ended = self.alone(domain, act)
        return Taken(_read(found), ended)

    def scrub(self, domain: str) -> None:
        """See `Backend`: the whole file, and then the log before it is gone."""
        with self._guard, self._said(), self._writing():
            self._connection.execute("vacuum")
            busy = self._connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
        if busy:
            raise UnavailableError(
                f"the ledger {self._path}: somebody reads it, so its log still holds what was erased", hint="try it again"
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        # Whoever waits for its turn keeps the queue shut behind it: one that has just written cannot pass those that wait.
        try:
            fcntl.flock(self._queue, fcntl.LOCK_EX)
            fcntl.flock(self._turn, fcntl.LOCK_EX)
            fcntl.flock(self._queue, fcntl.LOCK_UN)
            yield
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except database.OperationalError as error:
            raise UnavailableError(f"the ledger {self._path}: {error}", hint="amem doctor") from error
        except database.Error as error:
            raise IntegrityError(f"the ledger {self._path}: {error}", hint="amem doctor") from error

    def _synced(self) -> None:
        """Wait until the disk has what was committed so far, whoever committed it.

        SQLite's log is read after a power cut up to the first frame that is not whole, so an answered commit is there with all
        before it. What the log leads to is synced by SQLite itself: the log before its pages go into the database, the database
        before the log begins anew (`synchronous=normal`, sqlite.org/pragma.html#pragma_synchronous).
        """
        try:
            if self._log < 0:
                # It stays this file for as long as a connection is open.
                self._log = os.open(f"{self._path}-wal", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                self._files += (self._log,)
                # Its name too: SQLite syncs the folder only where it syncs the log itself.
                folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
            _sync(self._log)
        except OSError as error:
            raise UnavailableError(
                f"the ledger {self._path}: {error.strerror}: what was asked may have happened", hint="amem doctor"
            ) from error

    def _migrate(self) -> None:
        def act(tx: Tx) -> None:
            version = int(self._connection.execute("pragma user_version").fetchone()[0])
            if version > len(_MIGRATIONS):
                raise UnavailableError(f"the ledger {self._path} was written by a later amem (layout {version})", hint="amem --version")
            for number, name in enumerate(_MIGRATIONS[version:], start=version + 1):
                # One by one: `executescript` would end the transaction.
                for statement in queries.text(name).split(";\n"):
                    self._connection.execute(statement)
                self._connection.execute(f"pragma user_version = {number}")

        if int(self._connection.execute("pragma user_version").fetchone()[0]) != len(_MIGRATIONS):
            self.alone("", act)


def _make(path: Path) -> None:
    """Make the database's file for its owner alone.

    One that is there is not even opened: closing it again would drop the locks that another connection of this process has on it.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if path.is_symlink():
            raise OSError(errno.ELOOP, "a link stands in its place", str(path)) from None


def _lock_file(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _data(event: "Event") -> str:
    from amem.ledger.events import data

    return data(event)


def _read(row: Sequence[Any] | None) -> "Task | None":
    """The task of the row that a statement changed, read once nobody waits for it any more."""
    return None if row is None else rows.task(row)

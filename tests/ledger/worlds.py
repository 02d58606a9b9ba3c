"""A ledger in a fresh database with a clock that the test moves, on either backend."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

from amem.ledger import events as ev
from amem.ledger.draft import Draft
from amem.ledger.operations import Operations
from amem.ledger.postgres import Postgres, schema_name
from amem.ledger.projection import State, replay
from amem.ledger.reading import Filter
from amem.ledger.rows import COLUMNS, listed
from amem.ledger.sqlite import HostClock, Sqlite
from amem.ledger.store import Holding, Ledger, Observe, Refused
from amem.ledger.task import ANYTHING, Status, Task

ME = "human:asf:you"
BOT = "agent:codex"
DOM = "dom-me"
START_MS = 1_800_000_000_000
HANDOFF = "mem-me-0123456789ab"


class World:
    """One database, and what a test does to it from outside."""

    backend: str

    def __init__(self) -> None:
        self._open: list[Ledger] = []

    def open(self, observe: Observe | None = None) -> Ledger:
        """One more connection to it, closed with the world."""
        ledger = self._ledger(observe)
        self._open.append(ledger)
        return ledger

    def _ledger(self, observe: Observe | None) -> Ledger:
        raise NotImplementedError

    def tick(self, ms: int) -> None:
        """Let time pass."""
        raise NotImplementedError

    def sql(self, statement: str) -> Sequence[Sequence[Any]]:
        """Run a statement beside the ledger; `task` and `event` are the tables of DOM."""
        raise NotImplementedError

    def events(self) -> list[ev.Event]:
        """Every event of DOM."""
        return [ev.of_row(row) for row in self.sql("select kind, task, principal, at_ms, fence, data from event order by seq")]

    def table(self) -> dict[str, Task]:
        """The projection as the database holds it."""
        return {task.id: task for task in listed(self.sql(f"select {', '.join(COLUMNS)} from task order by seq"))}

    def check(self) -> State:
        """The projection is what the events come to; return it."""
        state = replay(self.events())
        assert self.table() == dict(state.tasks)
        edges = {(one, need) for one, need in self.sql("select task, on_task from need")}
        assert edges == {(task.id, need) for task in state.tasks.values() for need in task.depends_on}
        return state

    def close(self) -> None:
        for ledger in self._open:
            ledger.close()


class SqliteWorld(World):
    backend = "sqlite"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.path = folder / "state" / "ledger.sqlite"
        self.ms = START_MS

    def _ledger(self, observe: Observe | None) -> Ledger:
        host = HostClock(lambda: "boot", lambda: self.ms, lambda: self.ms)
        return Operations(Sqlite(self.path, host=host), observe)

    def tick(self, ms: int) -> None:
        self.ms += ms

    def sql(self, statement: str) -> Sequence[Sequence[Any]]:
        from amem.settings import database

        connection = database.connect(self.path, durable=True)
        try:
            return list(connection.execute(statement))
        finally:
            connection.close()


class PostgresWorld(World):
    backend = "postgres"

    def __init__(self, dsn: str, space: str = "here") -> None:
        super().__init__()
        self.dsn = dsn
        self.space = space
        self._beside = psycopg.connect(dsn, autocommit=True)
        self._beside.execute("create table if not exists public.test_clock(ms bigint not null)")
        self._beside.execute("delete from public.test_clock")
        self._beside.execute("insert into public.test_clock values (%s)", (START_MS,))

    def _ledger(self, observe: Observe | None) -> Ledger:
        backend = Postgres(self.dsn, space=self.space, now="(select ms from public.test_clock)", patience_s=5)
        return Operations(backend, observe)

    def tick(self, ms: int) -> None:
        self._beside.execute("update public.test_clock set ms = ms + %s", (ms,))

    def sql(self, statement: str) -> Sequence[Sequence[Any]]:
        with contextlib.suppress(psycopg.OperationalError):
            self._beside.execute("select 1")
        if self._beside.broken:  # the server was restarted
            self._beside = psycopg.connect(self.dsn, autocommit=True)
        self._beside.execute(f'set search_path = "{schema_name(self.space, DOM)}", public'.encode())
        cursor = self._beside.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        super().close()
        self._beside.close()


@contextlib.contextmanager
def closing(world: World) -> Iterator[World]:
    try:
        yield world
    finally:
        world.close()


def admitted(ledger: Ledger, title: str = "A task", **more: Any) -> Task:
    """A task that may be claimed."""
    return filed(ledger, title, admit=True, **more)


def filed(ledger: Ledger, title: str = "A task", *, admit: bool = False, **more: Any) -> Task:
    answer = ledger.create(Draft(domain=DOM, title=title, **more), by=ME, admit=admit)
    assert not isinstance(answer, Refused), answer
    return answer.task


def claimed(ledger: Ledger, session: str | None = None, by: str = BOT, **more: Any) -> Task:
    task = ledger.claim(DOM, by=by, session=session, capabilities=ANYTHING, **more)
    assert task is not None
    return task


def completed(ledger: Ledger, task: Task) -> Task:
    answer = ledger.complete(task.id, by=task.holder or BOT, fence=task.fence, handoff=HANDOFF)
    assert isinstance(answer, Task), answer
    return answer


def holding(task: Task) -> Holding:
    return Holding(task.id, task.fence, task.session)


def refused(answer: object, code: str) -> Refused:
    assert isinstance(answer, Refused), answer
    assert answer.code == code
    return answer


def listing(**more: Any) -> Filter:
    return Filter(domains=(DOM,), **more)


EVERY = tuple(Status)

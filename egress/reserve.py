"""Reservations in the usage store: one transaction looks at what was spent and takes the room.

Shares the store with `meter`, which settles: the row of a call replaces its reservation in one commit, and takes away what lapsed.
Several egresses on one root, and a crash, are safe: the transaction excludes the others, and a reservation nobody renews lapses.
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, tzinfo

from amem.egress import spend
from amem.egress.meter import connect
from amem.egress.spend import Spent
from amem.model.clock import Clock, now, stamp
from amem.settings import database
from amem.settings.root import Root
from amem.typed import NamedTuple, TypeVar

T = TypeVar("T")

LEASE = timedelta(minutes=15)

_SPENT = """
    select
      coalesce(sum(tokens) filter (where session = :session), 0)
        + coalesce((select tokens from charged_by_session where destination = :destination and session = :session), 0),
      coalesce(sum(tokens), 0)
        + coalesce((
          select sum(tokens) from charged_by_quarter where destination = :destination and quarter >= :start and quarter < :end), 0)
    from reservations where destination = :destination and until >= :at
"""
_BEGIN = "begin immediate"
_TAKEN = "insert into reservations(call, destination, session, tokens, until) values (?, ?, ?, ?, ?)"
_QUARTER_CHARS = len("2026-11-30T07:15")


class _Day(NamedTuple):
    """A day of the owner's, and its first quarter of an hour and the next day's, as the store names them."""

    start: datetime
    end: datetime
    first: str
    beyond: str


class Reservations:
    """The reservations of one egress. Its methods are called in the loop, which waits for nobody: room is taken there and then, but
    where another one writes to the store at that moment, for which a thread of its own waits."""

    def __init__(self, root: Root, zone: tzinfo, clock: Clock = now) -> None:
        self._path = root.usage
        self._zone = zone
        self._clock = clock
        self._open: set[str] = set()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reserve")
        self._near: database.Connection | None = None
        """The loop's, which waits for no lock."""
        self._far: database.Connection | None = None
        """The thread's."""
        self._day: _Day | None = None
        """The owner's day that was last asked about."""

    async def take(self, call: str, destination: str, session: str, wanted: int, refused_at: Callable[[Spent], T | None]) -> T | None:
        """Reserve, or say why not: `refused_at` is asked with what was spent, while nobody else can take room.

        Raises database.Error, and what `refused_at` raises: the call then does not leave.
        """
        if self._near is None:
            self._near = connect(self._path, durable=False)
            # What waits is the thread's, and to take a long log into the file is the meter's.
            self._near.execute("pragma busy_timeout=0")
            self._near.execute("pragma wal_autocheckpoint=0")

        def begun(connection: database.Connection) -> T | None:
            return self._begun(connection, call, destination, session, wanted, refused_at)

        def waiting(connection: database.Connection) -> T | None:
            connection.execute(_BEGIN)
            return begun(connection)

        try:
            self._near.execute(_BEGIN)
        except database.OperationalError:
            refused = await self._in_thread(waiting)
        else:
            refused = begun(self._near)
        if refused is None:
            self._open.add(call)
        return refused

    def left(self, call: str) -> None:
        """The call's row was handed to the meter, which settles it."""
        self._open.discard(call)

    async def renew(self) -> None:
        """Renew what is under way until cancelled: a stream has no limit in total."""
        while True:
            await asyncio.sleep(LEASE.total_seconds() / 3)
            until, calls = self._until(), tuple(self._open)
            with contextlib.suppress(database.Error):  # tried again before the lease ends
                await self._in_thread(
                    lambda connection, until=until, calls=calls: connection.executemany(  # type: ignore[misc]
                        "update reservations set until = ? where call = ?", [(until, call) for call in calls]
                    )
                )

    async def close(self) -> None:
        """Close the store; what is still reserved lapses."""

        def close() -> None:
            for connection in (self._near, self._far):
                if connection is not None:
                    connection.close()

        await asyncio.get_running_loop().run_in_executor(self._worker, close)
        self._worker.shutdown()

    async def _in_thread(self, act: Callable[[database.Connection], T]) -> T:
        def work() -> T:
            if self._far is None:
                # A power cut ends the calls that were reserved for; their reservations may go with it.
                self._far = connect(self._path, durable=False)
            return act(self._far)

        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _until(self) -> str:
        return stamp(self._clock() + LEASE)

    def _begun(
        self,
        connection: database.Connection,
        call: str,
        destination: str,
        session: str,
        wanted: int,
        refused_at: Callable[[Spent], T | None],
    ) -> T | None:
        """Take the room, in a transaction that has begun, and end it."""
        try:
            at = self._clock()
            start, end = self._bounds(at)
            asked = {"destination": destination, "session": session, "start": start, "end": end, "at": stamp(at)}
            in_session, in_day = connection.execute(_SPENT, asked).fetchone()
            refused = refused_at(Spent(session=in_session, day=in_day, zone=str(self._zone)))
            if refused is None:
                connection.execute(_TAKEN, (call, destination, session, wanted, self._until()))
            connection.execute("commit")
        except BaseException:
            connection.execute("rollback")
            raise
        return refused

    def _bounds(self, at: datetime) -> tuple[str, str]:
        """The quarters of an hour between which the owner's day lies that holds `at`."""
        day = self._day
        if day is None or not day.start <= at < day.end:
            start, end = spend.day_bounds(at, self._zone)
            day = self._day = _Day(start, end, stamp(start)[:_QUARTER_CHARS], stamp(end)[:_QUARTER_CHARS])
        return day.first, day.beyond

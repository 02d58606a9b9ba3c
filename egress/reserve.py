"""Reservations in the usage store: one transaction looks at what was spent and takes the room.

Shares the store with `meter`, which settles: the row of a call replaces its reservation in one commit. Several egresses on
one root, and a crash, are safe: the transaction excludes the others, and a reservation nobody renews lapses.
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta, tzinfo

from amem.egress import spend
from amem.egress.meter import connect
from amem.egress.spend import Spent
from amem.model.clock import Clock, now, stamp
from amem.settings import database
from amem.settings.root import Root
from amem.typed import TypeVar

T = TypeVar("T")

LEASE = timedelta(minutes=15)

_SPENT = """
    select
      coalesce((select tokens from charged_by_session where destination = :destination and session = :session), 0)
        + (select coalesce(sum(tokens), 0) from reservations where destination = :destination and session = :session),
      (select coalesce(sum(tokens), 0) from charged_by_quarter where destination = :destination and quarter >= :start and quarter < :end)
        + (select coalesce(sum(tokens), 0) from reservations where destination = :destination)
"""
_QUARTER_CHARS = len("2026-11-30T07:15")


class Reservations:
    """The reservations of one egress. Its methods are called in the loop and work in a thread of their own."""

    def __init__(self, root: Root, zone: tzinfo, clock: Clock = now) -> None:
        self._path = root.usage
        self._zone = zone
        self._clock = clock
        self._open: set[str] = set()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reserve")
        self._connection: database.Connection | None = None

    async def take(self, call: str, destination: str, session: str, wanted: int, refused_at: Callable[[Spent], T | None]) -> T | None:
        """Reserve, or say why not: `refused_at` is asked with what was spent, while nobody else can take room.

        Raises database.Error, and what `refused_at` raises: the call then does not leave.
        """
        refused = await self._in_thread(lambda connection: self._take(connection, call, destination, session, wanted, refused_at))
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
            if self._connection is not None:
                self._connection.close()

        await asyncio.get_running_loop().run_in_executor(self._worker, close)
        self._worker.shutdown()

    async def _in_thread(self, act: Callable[[database.Connection], T]) -> T:
        def work() -> T:
            if self._connection is None:
                # A power cut ends the calls that were reserved for; their reservations may go with it.
                self._connection = connect(self._path, durable=False)
            return act(self._connection)

        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _until(self) -> str:
        return stamp(self._clock() + LEASE)

    def _take(
        self,
        connection: database.Connection,
        call: str,
        destination: str,
        session: str,
        wanted: int,
        refused_at: Callable[[Spent], T | None],
    ) -> T | None:
        at = self._clock()
        start, end = spend.day_bounds(at, self._zone)
        connection.execute("begin immediate")
        try:
            connection.execute("delete from reservations where until < ?", (stamp(at),))
            day = {"start": stamp(start)[:_QUARTER_CHARS], "end": stamp(end)[:_QUARTER_CHARS]}
            asked = {"destination": destination, "session": session, **day}
            in_session, in_day = connection.execute(_SPENT, asked).fetchone()
            refused = refused_at(Spent(session=in_session, day=in_day, zone=str(self._zone)))
            if refused is None:
                connection.execute(
                    "insert into reservations(call, destination, session, tokens, until) values (?, ?, ?, ?, ?)",
                    (call, destination, session, wanted, self._until()),
                )
            connection.execute("commit")
        except BaseException:
            connection.execute("rollback")
            raise
        return refused

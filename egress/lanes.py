"""The calls under way at each destination, and those that wait for a slot, first come first served.

Lives in one event loop. A call is in a lane from `enter` to `leave`; a harness that leaves while it waits gives up its place.
"""

import asyncio
from collections import deque

from amem.egress.admit import Busy, Verdict, admit
from amem.egress.flow import Call, Kind
from amem.egress.routes import Route


class Lanes:
    """One lane a destination that has a limit."""

    def __init__(self) -> None:
        self._running: dict[str, set[str]] = {}
        self._waiting: dict[str, deque[tuple[str, asyncio.Future[None]]]] = {}
        self._lane: dict[str, str] = {}

    async def enter(self, call_id: str, call: Call, route: Route) -> Busy | None:
        """Wait for a slot where the route has a limit; Busy when too many wait already."""
        most, destination = route.most_at_once, route.destination
        if most is None or call.kind is not Kind.CALL:
            return None
        running = self._running.setdefault(destination, set())
        waiting = self._waiting.setdefault(destination, deque())
        verdict = admit(most, len(running), len(waiting))
        if verdict is Verdict.BUSY:
            return Busy(destination, most)
        self._lane[call_id] = destination
        if verdict is Verdict.GO:
            running.add(call_id)
            return None
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append((call_id, turn))
        await turn  # `leave` clears up when this is cancelled
        return None

    def leave(self, call_id: str) -> None:
        """The call is over, or gave up waiting: the next one goes."""
        destination = self._lane.pop(call_id, None)
        if destination is None:
            return
        running, waiting = self._running[destination], self._waiting[destination]
        if call_id not in running:
            self._waiting[destination] = deque(item for item in waiting if item[0] != call_id)
            return
        running.discard(call_id)
        while waiting:
            next_id, turn = waiting.popleft()
            if not turn.cancelled():
                running.add(next_id)
                turn.set_result(None)
                return

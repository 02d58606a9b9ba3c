"""The calls under way in each lane of a destination, and those that wait for a slot, first come first served.

Lives in one event loop. A call is in a lane from `enter` to `leave`; a harness that leaves while it waits gives up its place.
"""

import asyncio
from collections import deque

from amem.egress.admit import Busy, Lane, Verdict, admit
from amem.egress.flow import Call, Kind
from amem.egress.routes import Route
from amem.egress.slots import Slots

LONGEST_WAIT_S = 60.0
"""For calls of other sessions; a harness that waits longer gives up by itself."""
_LOOK_AGAIN_S = 0.05

_Where = tuple[str, Lane]


class Lanes:
    """One lane for each kind of caller and each destination that has a limit for it."""

    def __init__(self, slots: Slots | None = None) -> None:
        """`slots` are those that other sessions of the root take as well."""
        self._slots = slots
        self._places: dict[str, int] = {}
        self._running: dict[_Where, set[str]] = {}
        self._waiting: dict[_Where, deque[tuple[str, asyncio.Future[None]]]] = {}
        self._lane: dict[str, _Where] = {}

    async def enter(self, call_id: str, call: Call, route: Route, lane: Lane) -> Busy | None:
        """Wait for a slot where the route has a limit; Busy when too many wait already."""
        most, where = route.most_at_once.get(lane), (route.destination, lane)
        if most is None or call.kind is not Kind.CALL:
            return None
        running = self._running.setdefault(where, set())
        waiting = self._waiting.setdefault(where, deque())
        verdict = admit(most, len(running), len(waiting))
        if verdict is Verdict.BUSY:
            return Busy(route.destination, most)
        self._lane[call_id] = where
        if verdict is Verdict.GO:
            running.add(call_id)
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            waiting.append((call_id, turn))
            await turn  # `leave` clears up when this is cancelled
        return await self._place(call_id, route.destination, lane, most)

    async def _place(self, call_id: str, destination: str, lane: Lane, most: int) -> Busy | None:
        """One of the places that the root's sessions share; Busy when others have kept them all for long."""
        if self._slots is None:
            return None
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST_WAIT_S
        while (place := self._slots.take(f"{destination}.{lane}", most)) is None:
            if loop.time() >= until:
                self.leave(call_id)
                return Busy(destination, most)
            await asyncio.sleep(_LOOK_AGAIN_S)
        self._places[call_id] = place
        return None

    def leave(self, call_id: str) -> None:
        """The call is over, or gave up waiting: the next one goes."""
        if self._slots is not None and (place := self._places.pop(call_id, None)) is not None:
            self._slots.free(place)
        where = self._lane.pop(call_id, None)
        if where is None:
            return
        running, waiting = self._running[where], self._waiting[where]
        if call_id not in running:
            self._waiting[where] = deque(item for item in waiting if item[0] != call_id)
            return
        running.discard(call_id)
        while waiting:
            next_id, turn = waiting.popleft()
            if not turn.cancelled():
                running.add(next_id)
                turn.set_result(None)
                return

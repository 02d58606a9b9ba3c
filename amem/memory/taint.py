"""How far an entry reached: the sessions that were served it, what they wrote and filed after that, and who was served that.

From the logs alone, so it holds for entries that are gone. A session is reached when a read served it the entry (a hit is content too);
what it wrote from that moment on is reached with it, whether or not it shows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from amem.model.clock import parse
from amem.typed import Any, NamedTuple

CLOCKS_APART_MS = 5000
"""How far the ledger's clock may be behind the logs': what was filed within it counts as filed after."""
Events = Iterable[Mapping[str, Any]]


class Reader(NamedTuple):
    """A session that was served something tainted, and what it wrote since."""

    session: str
    principal: str
    read_at: str
    depth: int
    """1: it read the entry itself; 2: it read what such a session wrote; and so on."""
    wrote: tuple[str, ...]
    """Entries, and held writes that were not released."""
    domain: str

    @property
    def since_ms(self) -> int:
        """From when on what it filed counts, by the ledger's clock."""
        return int(parse(self.read_at).timestamp() * 1000) - CLOCKS_APART_MS


class Reach(NamedTuple):
    """What an entry reached."""

    entry: str
    readers: tuple[Reader, ...]
    entries: tuple[str, ...]
    """Everything that they wrote, held writes too, in the order it was found."""


class _Write(NamedTuple):
    at: str
    what: str


def reach(entry: str, reads: Events, writes: Events, *, depth: int = 0, since: str = "") -> Reach:
    """Follow an entry through the logs, `depth` steps far (0: to the end). `since` leaves earlier reads out."""
    served: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for event in reads:
        if event.get("event") == "memory.read" and isinstance(event.get("session"), str) and str(event.get("at", "")) >= since:
            for id in event.get("entries", ()):
                served[id].append(event)
    wrote = _written(writes)
    readers: dict[str, Reader] = {}
    found: dict[str, None] = {}
    frontier, step = [entry], 0
    while frontier and not (depth and step >= depth):
        step += 1
        reached: dict[str, Mapping[str, Any]] = {}
        for id in frontier:
            for event in served[id]:
                first = reached.get(event["session"])
                if first is None or event["at"] < first["at"]:
                    reached[event["session"]] = event
        frontier = []
        for session, event in reached.items():
            known = readers.get(session)
            if known is not None and known.read_at <= event["at"]:
                continue
            mine = tuple(dict.fromkeys(one.what for one in wrote.get(session, ()) if one.at >= event["at"] and one.what != entry))
            level = known.depth if known else step
            readers[session] = Reader(
                session, str(event.get("principal", "")), event["at"], level, mine, str(event.get("domain", ""))
            )  # fmt: skip
            fresh = [id for id in mine if id not in found]
            found.update(dict.fromkeys(fresh))
            frontier += fresh
    return Reach(entry, tuple(sorted(readers.values(), key=lambda one: (one.read_at, one.session))), tuple(found))


def tasks(reached: Reach, filed: Callable[[Reader], Iterable[str]]) -> tuple[str, ...]:
    """The tasks that the sessions filed after they were reached; `filed` asks the ledger about one."""
    return tuple(dict.fromkeys(task for reader in reached.readers for task in filed(reader)))


def _written(writes: Events) -> Mapping[str, list[_Write]]:
    """What each session wrote. A held write that was released later is the entry it became, and still its session's."""
    found: defaultdict[str, list[_Write]] = defaultdict(list)
    released: dict[str, str] = {}
    for event in writes:
        if event.get("event") != "memory.write" or not isinstance(event.get("session"), str):
            continue
        held, entry = event.get("held"), event.get("entry")
        if held and entry:
            released[held] = entry
        elif what := entry or held:
            found[event["session"]].append(_Write(str(event.get("at", "")), what))
    return {session: [one._replace(what=released.get(one.what, one.what)) for one in some] for session, some in found.items()}

"""What the memory saves, measured on a root's own logs: what was served beside what models took in, and whether it was used.

Pure over the lines of the read and write logs and the meter's rows. `tokens` of amem's own texts are UTF-8 bytes / 4, rounded up; what a
model took in is as the egress metered it or, for a login's tunnel, as the harness says.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from amem.model.call import ObservedBy
from amem.typed import Any, NamedTuple


@dataclass(slots=True)
class Reads:
    """What one session read, in the order of the log."""

    count: int = 0
    served: Counter[str] = field(default_factory=Counter)
    """Tokens, by tool."""
    hits: dict[str, bool] = field(default_factory=dict)
    """Entries that its searches found, and whether it opened them after."""
    opened: set[str] = field(default_factory=set)
    pulls: int = 0
    """Bodies that it opened, one that it opened twice counted twice."""
    prefetched: set[str] = field(default_factory=set)

    def add(self, line: Mapping[str, Any]) -> None:
        """Take the next line of the read log."""
        tool, entries, tokens = str(line.get("tool")), line.get("entries"), line.get("tokens")
        ids = [id for id in entries if isinstance(id, str)] if isinstance(entries, list) else []
        self.count += 1
        self.served[tool] += tokens if isinstance(tokens, int) and tokens > 0 else 0
        if tool == "search":
            for id in ids:
                self.hits.setdefault(id, False)
        elif tool in ("prefetch", "read_with"):
            self.prefetched.update(ids)
        elif tool == "get":
            self.pulls += len(ids)
            self.opened.update(ids)
            self.hits.update((id, True) for id in ids if id in self.hits)


class Funnel(NamedTuple):
    """What a session was served beside what its model calls took in."""

    session: str
    reads: int
    served: int
    by: Mapping[str, int]
    """Tokens served, by tool."""
    ingested: int = 0
    cached: int = 0
    """Of what was ingested, read from a cache."""
    source: ObservedBy | None = None
    """Who counted what was ingested; None where nobody did."""

    def shown(self) -> dict[str, Any]:
        """The JSON of it."""
        row: dict[str, Any] = {"session": self.session, "reads": self.reads, "served": self.served, "by": dict(self.by)}
        return row if self.source is None else row | {"ingested": self.ingested, "cached": self.cached, "source": self.source}


class Share(NamedTuple):
    """Some of a whole."""

    some: int = 0
    of: int = 0

    def plus(self, other: "Share") -> "Share":
        """Both together."""
        return Share(self.some + other.some, self.of + other.of)

    def shown(self) -> dict[str, Any]:
        """The JSON of it; no rate of nothing."""
        return {"count": self.some, "of": self.of, **({"rate": round(self.some / self.of, 4)} if self.of else {})}

    def __str__(self) -> str:
        return f"{self.some} of {self.of}" if self.of else "-"


class Metrics(NamedTuple):
    """How what was served was used. Used is opened, or cited by id in the session's handoff."""

    fetch_through: Share = Share()
    """Search hits that the session opened later."""
    prefetch_precision: Share = Share()
    """Prefetched entries that it opened or cited."""
    wasted_reads: Share = Share()
    """Bodies that it opened and that its handoff does not cite; of sessions that left one."""
    pulls: int = 0
    completed: int = 0

    def plus(self, other: "Metrics") -> "Metrics":
        """Both together."""
        return Metrics(
            fetch_through=self.fetch_through.plus(other.fetch_through),
            prefetch_precision=self.prefetch_precision.plus(other.prefetch_precision),
            wasted_reads=self.wasted_reads.plus(other.wasted_reads),
            pulls=self.pulls + other.pulls,
            completed=self.completed + other.completed,
        )

    def shown(self) -> dict[str, Any]:
        """The JSON of it."""
        shown = {name: getattr(self, name).shown() for name in ("fetch_through", "prefetch_precision", "wasted_reads")}
        depth = {"pulls": self.pulls, "completed": self.completed}
        return shown | {"depth": depth | ({"rate": round(self.pulls / self.completed, 2)} if self.completed else {})}


def reads(lines: Iterable[Mapping[str, Any]], sessions: Collection[str], domains: Collection[str], since: str = "") -> dict[str, Reads]:
    """What each session read in these domains: those that were launched, and any other that an agent was in."""
    found: dict[str, Reads] = {}
    for line in lines:
        session = line.get("session")
        if not isinstance(session, str) or line.get("domain") not in domains or str(line.get("at", "")) < since:
            continue
        if session in sessions or str(line.get("principal", "")).startswith("agent:"):
            found.setdefault(session, Reads()).add(line)
    return found


def funnel(read: Mapping[str, Reads], usage: Iterable[Mapping[str, Any]]) -> list[Funnel]:
    """A row for each session that read something, the one that was served most first. `usage`: the meter's rows by session."""
    took: dict[str, Mapping[str, Any]] = {}
    for told in usage:
        if told["session"] not in took or told["source"] == ObservedBy.EGRESS:  # a harness's word is no more than that
            took[told["session"]] = told
    rows = []
    for session, one in read.items():
        row = Funnel(session, one.count, one.served.total(), dict(one.served.most_common()))
        if (used := took.get(session)) is not None:
            ingested = used["input"] + used["cache_read"] + used["cache_write"]
            row = row._replace(ingested=ingested, cached=used["cache_read"], source=ObservedBy(used["source"]))
        rows.append(row)
    return sorted(rows, key=lambda row: (-row.served, row.session))


def metrics(read: Reads, handoff: str | None, completed: int) -> Metrics:
    """How a session used what it was served; `handoff` is the text of those it left, None where it left none."""
    cited = {id for id in (*read.prefetched, *read.opened) if handoff is not None and id in handoff}
    return Metrics(
        fetch_through=Share(sum(read.hits.values()), len(read.hits)),
        prefetch_precision=Share(len(read.prefetched & (read.opened | cited)), len(read.prefetched)),
        wasted_reads=Share(len(read.opened - cited), len(read.opened)) if handoff is not None else Share(),
        pulls=read.pulls,
        completed=completed,
    )

"""Say what was changed behind amem: lines of the logs, bodies and trust of entries, events of the ledger, and whether a log was cut back.

Each line of a log is linked to the one before, so that a changed, dropped or reordered line shows; an anchor remembers how far a log
went, so that its end shows too. An entry is compared with what the log says was written, its tier with the promotions of the ledger.
Whoever may write the whole root can make all of it agree: the head that is printed is to be kept elsewhere.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from amem.logs import reader, writer
from amem.logs.schema import Anchor, MemoryWrite
from amem.memory import sealing
from amem.model.entry import Entry, Status, Tier
from amem.model.label import Label
from amem.policy import request
from amem.record import markdown, quarantine
from amem.record.markdown import Malformed
from amem.record.store import Store
from amem.settings.root import Root

if TYPE_CHECKING:
    from amem.ledger.promotions import Promotion
    from amem.ledger.reading import Reading
    from amem.ledger.store import Ledger
    from amem.settings.grants import Grants


class Broken(NamedTuple):
    """One thing that is not as it was written."""

    what: str
    """`line`, `log`, `entry`, `event` or `held`."""
    where: str
    kind: str
    """`changed`, `dropped`, `added`, `rolled_back` or `torn`."""


class Head(NamedTuple):
    """How far a log goes."""

    lines: int
    digest: str


class Verified(NamedTuple):
    """What was looked at and what is broken."""

    entries: int
    events: int
    lines: int
    broken: tuple[Broken, ...]
    heads: Mapping[str, Head]


Promotions = Callable[[str], "Iterable[Promotion]"]


def verify(
    root: Root, store: Store, grants: "Grants", ledger: "Reading | Ledger", contained: frozenset[str], *, since: str = "", anchor: str = ""
) -> Verified:
    """Check the logs, the entries and the ledger of a root; `since` leaves entries out that were written before.

    `contained` are entries that the owner took out of the record; `anchor` is the head of an anchor that somebody kept elsewhere, so that
    a root that was put back whole shows. Raises OSError, UnavailableError.
    """
    ends = heads(root)
    broken = [found for name in ends for found in _log(root.state / name)]
    broken += _anchors(root.state)
    if anchor and anchor not in (writer.digest(line) for line in _lines(root.state / Anchor.log)):
        broken.append(Broken("log", Anchor.log, "rolled_back"))
    count, wrong = _entries(root, store, ledger.promotions, contained, since)
    tasks = sealing.check(root, grants, ledger)
    wrong += [Broken("event", f"{one.task}#{one.seq}", one.kind) for one in tasks.edits]
    return Verified(count, tasks.events, sum(head.lines for head in ends.values()), (*broken, *wrong), ends)


def heads(root: Root) -> dict[str, Head]:
    """How far each log goes."""
    return {path.name: _head(path) for path in sorted(root.state.glob("*.jsonl"))}


def last_anchor(root: Root) -> str | None:
    """The head of the last anchor, to be kept elsewhere; None where there is none."""
    return next((writer.digest(line) for line in reversed(list(_lines(root.state / Anchor.log)))), None)


def _log(path: Path) -> Iterator[Broken]:
    for found in reader.verify(path):
        yield Broken("line", f"{path.name}:{found.line}", found.kind)


def _head(path: Path) -> Head:
    lines, digest = 0, writer.GENESIS
    for line in _lines(path):
        lines, digest = lines + 1, writer.digest(line)
    return Head(lines, digest)


def _anchors(state: Path) -> Iterator[Broken]:
    """The logs that do not reach, or say otherwise than, what an anchor remembers."""
    wanted: dict[str, dict[int, str]] = {}
    for event in reader.events(state / Anchor.log):
        for name, head in event.get("heads", {}).items():
            if head["lines"]:
                wanted.setdefault(name, {})[head["lines"]] = head["digest"]
    for name, marks in wanted.items():
        last, differ, erased = 0, list[int](), list[tuple[int, int]]()
        for last, line in enumerate(_lines(state / name), start=1):
            if last in marks and writer.digest(line) != marks[last]:
                differ.append(last)
            if b'"event":"log.masked"' in line:
                erased.append((json.loads(line)["first"], last))
        for number in differ:
            if not any(first <= number < end for first, end in erased):  # else an erasure linked it anew since
                yield Broken("line", f"{name}:{number}", "changed")
        if last < max(marks):
            yield Broken("log", name, "rolled_back")


def _entries(root: Root, store: Store, promotions: Promotions, contained: frozenset[str], since: str) -> tuple[int, list[Broken]]:
    """Compare every entry that the log says was written with its file, every file with the log, and what is held with both."""
    logged = _logged(root.state)
    files = {path.stem: path for path, _ in store.walk()}
    broken = []
    wanted = {id: event for id, event in logged.written.items() if str(event.get("at", "")) >= since}
    for id, event in wanted.items():
        if id not in files:
            if id not in contained:
                broken.append(Broken("entry", id, "dropped"))
            continue
        try:
            entry = store.load(files[id]).entry
        except Malformed:
            broken.append(Broken("entry", id, "changed"))
            continue
        if entry.id != id or not _as_written(entry, event) or not _as_promoted(entry, event, promotions) or not logged.allows(entry):
            broken.append(Broken("entry", id, "changed"))
        elif logged.passed(entry) or any(one.state == "landed" and one.version >= entry.version for one in promotions(id)):
            broken.append(Broken("entry", id, "rolled_back"))
    if not since:
        broken += [Broken("entry", id, "added") for id in files if id not in logged.written]
    for held in quarantine.listed(root):
        if held.id not in logged.held:
            broken.append(Broken("held", held.id, "added"))
        elif not _as_written(held.entry, logged.held[held.id]):
            broken.append(Broken("held", held.id, "changed"))
    return len(wanted), broken


class _Logged(NamedTuple):
    """What the log of writes says was done to entries."""

    written: dict[str, dict[str, Any]]
    held: dict[str, dict[str, Any]]
    replaced: dict[str, set[str]]
    """By entry: what was written in its place."""
    acts: dict[str, str]
    """By entry: the last act that took it out of service."""

    def allows(self, entry: Entry) -> bool:
        """Say whether something was done that makes the entry's status what it is."""
        match entry.status:
            case Status.SUPERSEDED:
                return entry.superseded_by in self.replaced.get(entry.id, ())
            case Status.DEMOTED:
                return entry.id in self.acts
            case Status.ERASED:
                return self.acts.get(entry.id) == request.ERASE
            case _:
                return True

    def passed(self, entry: Entry) -> bool:
        """Say whether the entry is in service though it was taken out."""
        return entry.status in (Status.ACTIVE, Status.SUPERSEDED) and entry.id in self.acts


def _logged(state: Path) -> _Logged:
    found = _Logged({}, {}, {}, {})
    for event in reader.events(state / MemoryWrite.log):
        if event.get("event") == MemoryWrite.event:
            if entry := event.get("entry"):
                found.written[entry] = event
                for old in event.get("supersedes", ()):
                    found.replaced.setdefault(old, set()).add(entry)
                found.held.pop(event.get("held", ""), None)
            else:
                found.held[event.get("held", "")] = event
        for id, digest in event.get("digests", {}).items():
            if id in found.written:
                found.written[id] = {**found.written[id], "fixed": digest}
        if event.get("act") == request.DECLASSIFY:
            for id in event.get("entries", ()):
                found.written[id] = {**found.written.get(id, event), "classification": event.get("to", "public")}
        if event.get("act") in (request.DEMOTE, request.ERASE):
            found.acts.update(dict.fromkeys(event.get("entries", ()), event["act"]))
    return found


def _as_written(entry: Entry, event: Mapping[str, Any]) -> bool:
    if (digest := event.get("fixed")) is not None:
        same = markdown.fixed(entry) == digest
    else:  # of a line from before that was kept
        same = "sha256:" + hashlib.sha256(entry.body.encode()).hexdigest() == event.get("digest") and entry.type == event.get("type")
    return same and not Label(event["classification"]).exceeds(entry.classification)


def _as_promoted(entry: Entry, event: Mapping[str, Any], promotions: Promotions) -> bool:
    """Say whether it was written as of this tier, or the ledger has a promotion of an earlier version to it, and none to a higher one."""
    past = [one for one in promotions(entry.id) if one.version < entry.version]
    if any(one.state == "landed" and Tier(one.to).rank > entry.tier.rank for one in past):
        return False
    if entry.tier in (Tier.RAW, event.get("tier")):
        return True
    states = ("landed", "begun", "proposed")  # the last two: cut short, after the record
    return any(one.to == entry.tier and one.state in states for one in past)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            for line in file:
                yield line.rstrip(b"\n")
    except FileNotFoundError:
        return

"""Say what was changed behind amem: lines of the logs, bodies and trust of entries, and whether a log was cut back.

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
from amem.logs.schema import Anchor, MemoryRead, MemoryWrite, PolicyDecision
from amem.model.entry import Entry, Tier
from amem.model.label import Label
from amem.record.markdown import Malformed
from amem.record.store import Store

if TYPE_CHECKING:
    from amem.ledger.promotions import Promotion

LOGS = (PolicyDecision.log, MemoryRead.log, MemoryWrite.log, Anchor.log)


class Broken(NamedTuple):
    """One thing that is not as it was written."""

    what: str
    """`line`, `log` or `entry`."""
    where: str
    kind: str
    """`changed`, `dropped`, `rolled_back` or `torn`."""


class Head(NamedTuple):
    """How far a log goes."""

    lines: int
    digest: str


class Verified(NamedTuple):
    """What was looked at and what is broken."""

    entries: int
    lines: int
    broken: tuple[Broken, ...]
    heads: Mapping[str, Head]


Promotions = Callable[[str], "Iterable[Promotion]"]


def verify(state: Path, store: Store, promotions: Promotions, contained: frozenset[str], *, since: str = "") -> Verified:
    """Check the logs under `state` and the entries of `store`; `since` leaves entries out that were written before.

    `promotions` gives those of an entry; `contained` are entries that the owner took out of the record. Raises OSError, UnavailableError.
    """
    heads = {name: _head(state / name) for name in LOGS}
    broken = [found for name in LOGS for found in _log(state / name)]
    broken += _anchors(state)
    count, wrong = _entries(state, store, promotions, contained, since)
    return Verified(count, sum(head.lines for head in heads.values()), (*broken, *wrong), heads)


def total(heads: Mapping[str, Head]) -> str:
    """One digest over how far every log goes."""
    return writer.digest("\n".join(f"{name} {head.lines} {head.digest}" for name, head in sorted(heads.items())).encode())


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
            if name in LOGS and head["lines"]:
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


def _entries(state: Path, store: Store, promotions: Promotions, contained: frozenset[str], since: str) -> tuple[int, list[Broken]]:
    """Compare every entry that the log says was written with its file."""
    written: dict[str, dict[str, Any]] = {}
    for event in reader.events(state / MemoryWrite.log):
        if event.get("event") == MemoryWrite.event and event.get("entry") and str(event.get("at", "")) >= since:
            written[event["entry"]] = event
        for id, digest in event.get("digests", {}).items():  # an act that changed bodies
            if id in written:
                written[id] = {**written[id], "digest": digest}
    files = {path.stem: path for path, _ in store.walk()}
    broken = []
    for id, event in written.items():
        if id not in files:
            if id not in contained:
                broken.append(Broken("entry", id, "dropped"))
            continue
        try:
            entry = store.load(files[id]).entry
        except Malformed:
            broken.append(Broken("entry", id, "changed"))
            continue
        if not _as_written(entry, event) or not _as_promoted(entry, promotions):
            broken.append(Broken("entry", id, "changed"))
    return len(written), broken


def _as_written(entry: Entry, event: Mapping[str, Any]) -> bool:
    same = "sha256:" + hashlib.sha256(entry.body.encode()).hexdigest() == event.get("digest") and entry.type == event.get("type")
    return same and not Label(event["classification"]).exceeds(entry.classification)


def _as_promoted(entry: Entry, promotions: Promotions) -> bool:
    """Say whether a promotion of an earlier version to this tier stands in the ledger."""
    if entry.tier is Tier.RAW:
        return True
    mine = (one for one in promotions(entry.id) if one.to == entry.tier and one.version < entry.version)
    return any(one.state in ("landed", "begun", "proposed") for one in mine)  # the last two: cut short, after the record


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            for line in file:
                yield line.rstrip(b"\n")
    except FileNotFoundError:
        return

"""Say what was changed behind amem: lines of the logs, bodies and trust of entries, events of the ledger, and whether a log was cut back.

Each line of a log is linked to the one before, so that a changed, dropped or reordered line shows; an anchor remembers how far a log
went, so that its end shows too. An entry is compared with what the log says was written, its tier with the promotions of the ledger.
Whoever may write the whole root can make all of it agree: the head that is printed is to be kept elsewhere.
"""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from amem.logs import reader, shape, writer
from amem.logs.schema import Anchor, MemoryWrite, PolicyDecision
from amem.memory import sealing
from amem.model.entry import Entry, Status, Tier
from amem.model.ids import domain_of
from amem.model.label import Label
from amem.policy import request
from amem.record import markdown, quarantine, sealed
from amem.record.markdown import Malformed
from amem.record.store import Store
from amem.record.store import digest as digest_of
from amem.settings.root import Root
from amem.typed import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from amem.ledger.promotions import Promotion
    from amem.ledger.reading import Reading
    from amem.ledger.store import Ledger
    from amem.settings.grants import Grants


class Broken(NamedTuple):
    """One thing that is not as it was written."""

    what: str
    """`line`, `log`, `entry`, `held`, `file` (of an act, or the key of seals), `event` or `promotion`."""
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
    """Check the logs, the entries, what is set aside and the ledger of a root; `since` leaves entries out that were written before.

    `contained` are entries that the owner took out of the record; `anchor` is the head of an anchor that somebody kept elsewhere, so that
    a root that was put back whole shows. Raises OSError, UnavailableError.
    """
    ends = heads(root)
    broken = [found for name in ends for found in _log(root.state / name)]
    broken += _anchors(root.state)
    if anchor and anchor not in (writer.digest(line) for line in reader.lines(root.state / Anchor.log)):
        broken.append(Broken("log", Anchor.log, "rolled_back"))
    logged, decided = _logged(root.state), _decided(root.state)
    broken += _missing(root, store, ends)
    count, wrong = _entries(root, store, ledger.promotions, contained, since, logged)
    wrong += _held(root, logged, decided)
    wrong += _files(root, logged)
    wrong += [Broken("promotion", entry, "added") for entry in _undecided(grants, ledger, logged, decided)]
    tasks = sealing.check(root, grants, ledger)
    wrong += [Broken("event", f"{one.task}#{one.seq}", one.kind) for one in tasks.edits]
    wrong += [Broken("promotion", f"{one.task}#{one.seq}", one.kind) for one in tasks.forged]
    lines = sum(head.lines for name, head in ends.items() if name != Anchor.log)
    return Verified(count, tasks.events, lines, (*broken, *wrong), ends)


def heads(root: Root) -> dict[str, Head]:
    """How far each log goes."""
    return {path.name: _head(path) for path in sorted(root.state.glob("*.jsonl"))}


def last_anchor(root: Root) -> str | None:
    """The head of the last anchor, to be kept elsewhere; None where there is none."""
    return next((writer.digest(line) for line in reversed(list(reader.lines(root.state / Anchor.log)))), None)


def _log(path: Path) -> Iterator[Broken]:
    for found in reader.verify(path, shape.sound):
        yield Broken("line", f"{path.name}:{found.line}", found.kind)


def _head(path: Path) -> Head:
    lines, digest = 0, writer.GENESIS
    for line in reader.lines(path):
        lines, digest = lines + 1, writer.digest(line)
    return Head(lines, digest)


class _Marks(NamedTuple):
    """What anchors remember of one log: the digest of the line that ended it, by how many lines or bytes it had."""

    lines: dict[int, str]
    bytes: dict[int, str]


def _anchors(state: Path) -> Iterator[Broken]:
    """The logs that do not reach, or say otherwise than, what an anchor remembers."""
    wanted: dict[str, _Marks] = defaultdict(lambda: _Marks({}, {}))
    for event in shape.events(state / Anchor.log):
        for name, head in event.get("heads", {}).items():
            for unit, marks in wanted[name]._asdict().items():
                if head.get(unit) and isinstance(head[unit], int):
                    marks[head[unit]] = head.get("digest")
    for name, marks in wanted.items():
        last, size, differ, erased = 0, 0, list[int](), list[tuple[int, int]]()
        met = set[int]()
        for last, line in enumerate(reader.lines(state / name), start=1):
            size += len(line) + 1
            met |= {size} & marks.bytes.keys()
            if any(mark is not None and writer.digest(line) != mark for mark in (marks.lines.get(last), marks.bytes.get(size))):
                differ.append(last)
            if b'"event":"log.masked"' in line and (masked := shape.event(line)) is not None and "first" in masked:
                erased.append((masked["first"], last))
        for number in differ:
            if not any(first <= number < end for first, end in erased):  # else an erasure linked it anew since
                yield Broken("line", f"{name}:{number}", "changed")
        if last == 0 and not (state / name).exists():
            yield Broken("log", name, "dropped")
        elif last < max(marks.lines, default=0) or size < max(marks.bytes, default=0) or (marks.bytes.keys() - met and not differ):
            yield Broken("log", name, "rolled_back")


def _missing(root: Root, store: Store, ends: Mapping[str, Head]) -> Iterator[Broken]:
    """The logs that must be there for what else there is, and are in no anchor."""
    if next(store.walk(), None) is None and next(quarantine.listed(root), None) is None:
        return
    anchored = {name for event in shape.events(root.state / Anchor.log) for name in event.get("heads", {})}
    for name in (MemoryWrite.log, PolicyDecision.log):
        if name not in ends and name not in anchored:
            yield Broken("log", name, "dropped")


def _entries(
    root: Root, store: Store, promotions: Promotions, contained: frozenset[str], since: str, logged: "_Logged"
) -> tuple[int, list[Broken]]:
    """Compare every entry that the log says was written with its file, contained ones too, and every file with the log."""
    files: dict[str, list[Path]] = defaultdict(list)
    for path, _ in store.walk():
        files[path.stem].append(path)
    for path in sorted((root.quarantine / "contained").glob("*/*.md")):
        if path.stem in contained:
            files[path.stem].append(path)
    broken = []
    wanted = {id: event for id, event in logged.written.items() if str(event.get("at", "")) >= since}
    for id, event in wanted.items():
        if id not in files:
            broken.append(Broken("entry", id, "dropped"))
            continue
        place, *copies = sorted(files[id], key=lambda path: store.relative(path) != f"{domain_of(id)}/{_month(event)}/{id}.md")
        broken += [Broken("entry", os.path.relpath(path, root.path), "added") for path in copies]
        try:
            entry = store.load(place).entry
        except Malformed:
            broken.append(Broken("entry", id, "changed"))
            continue
        if entry.id != id or not _as_written(entry, event) or not _as_promoted(entry, event, promotions) or not logged.allows(entry):
            broken.append(Broken("entry", id, "changed"))
        elif logged.passed(entry) or any(one.state == "landed" and one.version >= entry.version for one in promotions(id)):
            broken.append(Broken("entry", id, "rolled_back"))
    if not since:
        broken += [Broken("entry", id, "added") for id in files if id not in logged.written]
    return len(wanted), broken


def _held(root: Root, logged: "_Logged", decided: Mapping[str, set[str]]) -> Iterator[Broken]:
    """Compare what is held with what the log says was, and is neither released, dropped nor erased."""
    there = {held.id: held.entry for held in quarantine.listed(root)}
    unread = {id for id, _ in quarantine.broken(root)}
    erased = {Path(trace["path"]).stem for path in root.state.glob("erased/*.json") for trace in _document(path).get("removed", ())}
    for id, entry in there.items():
        if id not in logged.held:
            yield Broken("held", id, "added")
        elif not _as_written(entry, logged.held[id]):
            yield Broken("held", id, "changed")
    for id in logged.held.keys() - there.keys() - decided[request.DROP] - erased:
        yield Broken("held", id, "changed" if id in unread else "dropped")


def _files(root: Root, logged: "_Logged") -> Iterator[Broken]:
    """Compare the lists of what was contained, the receipts of what was erased and the key of seals with the log of what made them."""
    lists = [*root.state.glob("erased/*.json"), *root.quarantine.glob("contained/*/act.json")]
    lists += [root.state / name for name in {sealed.KEY} & logged.files.keys() if (root.state / name).exists()]
    there = {os.path.relpath(path, root.state): path for path in lists}
    for name, digest in logged.files.items():
        if name not in there:
            yield Broken("file", name, "dropped")
        elif digest_of(there[name].read_bytes()) != digest:
            yield Broken("file", name, "changed")
    under_way = {path.stem for path in root.state.glob("erasing/*.jsonl")}
    for name in sorted(there.keys() - logged.files.keys()):
        if there[name].stem not in under_way:
            yield Broken("file", name, "added")


def _undecided(grants: "Grants", ledger: "Reading | Ledger", logged: "_Logged", decided: Mapping[str, set[str]]) -> Iterator[str]:
    """The entries with a promotion that landed and that no decision allowed: it was put into the ledger behind amem."""
    for domain in grants.domains:
        for one in ledger.all_promotions(domain):
            written = logged.written.get(one.entry, {})
            brought = written.get("session") in decided[request.IMPORT]
            allowed = one.entry in decided[request.APPROVE if one.to == Tier.VERIFIED else request.PROMOTE]
            if one.state == "landed" and not allowed and not brought:
                yield f"{one.entry}#{one.seq}"


def _decided(state: Path) -> Mapping[str, set[str]]:
    """By act, what the owner, or who approves, was allowed to do it to; of an import, the sessions that did it."""
    found: dict[str, set[str]] = defaultdict(set)
    acts = {f'"action":"{act}"'.encode(): act for act in (request.DROP, request.APPROVE, request.PROMOTE, request.IMPORT)}
    for line in reader.lines(state / PolicyDecision.log):
        for mark, act in acts.items():
            if mark in line and (event := shape.event(line)) is not None and event.get("allow") is True and event.get("action") == act:
                found[act].add(str(event.get("session" if act == request.IMPORT else "subject")))
    return found


def _month(event: Mapping[str, Any]) -> str:
    return str(event.get("at", ""))[:7].replace("-", "/")


def _document(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class _Logged(NamedTuple):
    """What the log of writes says was done to entries."""

    written: dict[str, dict[str, Any]]
    held: dict[str, dict[str, Any]]
    replaced: dict[str, set[str]]
    """By entry: what was written in its place."""
    acts: dict[str, str]
    """By entry: the last act that took it out of service."""
    files: dict[str, str]
    """By file below `state/` that an act left: sha256 of it."""

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
    found = _Logged({}, {}, {}, {}, {})
    for event in shape.events(state / MemoryWrite.log):
        if event.get("event") == MemoryWrite.event:
            if entry := event.get("entry"):
                found.written[entry] = event
                for old in event.get("supersedes", ()):
                    found.replaced.setdefault(old, set()).add(entry)
                found.held.pop(event.get("held", ""), None)
            else:
                found.held[event.get("held", "")] = event
        for name, digest in event.get("files", {}).items():
            found.files[name] = digest
            if not digest:
                del found.files[name]
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
    return same and event.get("classification") in [label for label in Label if not label.exceeds(entry.classification)]


def _as_promoted(entry: Entry, event: Mapping[str, Any], promotions: Promotions) -> bool:
    """Say whether it was written as of this tier, or the ledger has a promotion of an earlier version to it, and none to a higher one."""
    past = [one for one in promotions(entry.id) if one.version < entry.version]
    if any(one.state == "landed" and Tier(one.to).rank > entry.tier.rank for one in past):
        return False
    if entry.tier in (Tier.RAW, event.get("tier")):
        return True
    states = ("landed", "begun", "proposed")  # the last two: cut short, after the record
    return any(one.to == entry.tier and one.state in states for one in past)

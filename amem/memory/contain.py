"""Contain an entry: it and everything it reached leaves the record in one act of the owner's, and comes back byte for byte when undone.

Owns `state/quarantine/contained/<act>/`: `act.json`, the list of what was taken, written before anything is; and the files themselves. So
an act that was cut short is completed by asking again, and undone from its list; what sessions that it reached write meanwhile is taken by
asking again too. Nothing in there is indexed or served. A task that somebody is at work on, and what a contained entry had replaced, stay
as they are. What was changed in there behind amem, and what has something else in its place, stays when the rest goes back.
"""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from amem.errors import ConflictError, NotFoundError
from amem.logs import reader
from amem.logs.schema import MemoryAct, MemoryRead, MemoryWrite
from amem.memory.held import act
from amem.memory.session import Memory, Session
from amem.memory.taint import Reach, reach, tasks
from amem.memory.write import indexed
from amem.model.clock import stamp
from amem.model.ids import is_id
from amem.policy import request
from amem.record import markdown, quarantine
from amem.record.store import digest, write_new
from amem.settings.root import Root
from amem.typed import Any, NamedTuple

_LIST = "act.json"
UNDO = "contain.undo"


class Contained(NamedTuple):
    """What an act took, or would take."""

    act: str
    """The id of the decision; empty of a dry run."""
    entry: str
    held: tuple[str, ...]
    """Entries that left the record."""
    tasks: tuple[str, ...]
    """Waiting tasks that nobody may claim meanwhile."""
    contexts: tuple[str, ...]
    """Decision contexts of the sessions it reached, below `record/`."""
    left: tuple[str, ...] = ()
    """By an undo: entries and contexts that stay contained, because they were changed there or something stands in their place."""


class _Act(NamedTuple):
    """An act as its list says."""

    folder: Path
    found: Contained
    paths: dict[str, str]
    """By entry: where it was, below `record/`."""
    digests: dict[str, str]
    """By entry: sha256 of its file; empty in a list of before that was kept."""
    at: str


def contain(memory: Memory, session: Session, id: str, why: str, *, dry_run: bool = False) -> Contained:
    """Take an entry and all it reached out of the record.

    Raises RefusedError (only the owner may), NotFoundError (nothing of it is in the record), OSError.
    """
    if not session.is_owner:
        act(memory, session, request.CONTAIN, session.domain, id)  # before anybody else learns what there is
    with quarantine.judging(memory.root):
        begun = _acts(memory, id)
        more = _plan(memory, id)
        if not begun and not more.held:
            raise NotFoundError(f"nothing of {id} is in the record", hint="amem list")
        if dry_run:
            return _together([*(one.found for one in begun), more])._replace(act="")
        for one in begun:
            _take(memory, session, one, why)
        more = _plan(memory, id)
        if more.held:  # what was not there yet when the act before was planned
            more = more._replace(act=act(memory, session, request.CONTAIN, session.domain, id).id)
            begun.append(_begin(memory, session, more, why))
            _take(memory, session, begun[-1], why)
    return _together([one.found for one in begun])


def undo(memory: Memory, session: Session, id: str, why: str) -> Contained:
    """Put everything back as it was, but for what it leaves. Raises RefusedError, NotFoundError, OSError."""
    if not session.is_owner:
        act(memory, session, request.CONTAIN, session.domain, id)
    with quarantine.judging(memory.root):
        acts = _acts(memory, id)
        if not acts:
            raise NotFoundError(f"{id} is not contained", hint=f"amem contain {id} --dry-run --why …")
        act(memory, session, request.CONTAIN, session.domain, id)
        return _together([_give(memory, session, one, why) for one in acts])


def _take(memory: Memory, session: Session, one: _Act, why: str) -> None:
    """Take what a list names, as far as it was not taken yet."""
    for entry in one.found.held:
        if (place := memory.store.folder / one.paths[entry]).exists() and not (kept := one.folder / f"{entry}.md").exists():
            memory.store.take(entry, kept)
            indexed(memory, place)
    for shown in (memory.root.state / "projections").rglob("mem-*.md"):  # a session that was served it reads it no longer by path
        if shown.stem in one.found.held:
            shown.unlink(missing_ok=True)
    for n, context in enumerate(one.found.contexts):
        if (memory.store.folder / context).is_dir() and not (kept := one.folder / f"context-{n}").exists():
            os.rename(memory.store.folder / context, kept)
    for task in memory.ledger.tasks(one.found.tasks).values():
        if task.status == "admitted":
            memory.ledger.block(task.id, by=session.principal, on=_blocker(one.found.act))
    _logged(memory, session, request.CONTAIN, one, why)


def _give(memory: Memory, session: Session, one: _Act, why: str) -> Contained:
    """Put back what a list names, and keep a list of what is left."""
    left = []
    for entry in one.found.held:
        kept = one.folder / f"{entry}.md"
        if kept.exists() and not _as_taken(memory, one, entry):
            left.append(entry)
        elif kept.exists():
            try:
                indexed(memory, memory.store.give(kept, one.paths[entry]))
            except ConflictError:
                left.append(entry)
    for n, context in enumerate(one.found.contexts):
        if (kept := one.folder / f"context-{n}").exists() and not _given(kept, memory.store.folder / context):
            left.append(context)
    for task in memory.ledger.tasks(one.found.tasks).values():
        if task.blocked_on == _blocker(one.found.act):
            memory.ledger.unblock(task.id, by=session.principal, why=why)
    if left:
        _list_what_is_left(one, left)
    _logged(memory, session, UNDO, one, why, tuple(left))
    if not left:
        os.unlink(one.folder / _LIST)
        os.rmdir(one.folder)
    return one.found._replace(left=tuple(left))


def _list_what_is_left(one: _Act, left: Sequence[str]) -> None:
    """Write the list anew, so that what went back is not taken again by it."""
    note = json.loads((one.folder / _LIST).read_bytes())
    note |= {"held": [entry for entry in one.found.held if entry in left], "tasks": []}  # contexts are known by their number
    write_new(fresh := one.folder / f".{os.urandom(6).hex()}", json.dumps(note, ensure_ascii=False).encode())
    os.replace(fresh, one.folder / _LIST)


def _as_taken(memory: Memory, one: _Act, entry: str) -> bool:
    """Say whether a contained entry is as it was taken, or as an erasure has left it since."""
    if one.digests.get(entry) in (None, digest((one.folder / f"{entry}.md").read_bytes())):
        return True
    acts = reader.events(memory.root.state / MemoryAct.log)
    logged = [event["digests"][entry] for event in acts if event.get("act") == request.ERASE and entry in event.get("digests", {})]
    try:
        return logged[-1:] == [markdown.fixed(memory.store.load(one.folder / f"{entry}.md").entry)]
    except (markdown.Malformed, NotFoundError):
        return False


def _given(kept: Path, place: Path) -> bool:
    """Put a session's contexts back, beside those of its calls since, if it went on; False where a file is in the way."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(OSError):
        os.rename(kept, place)
        return True
    if not place.is_dir() or {path.name for path in kept.iterdir()} - {"blobs", "calls.jsonl"}:
        return False
    (place / "blobs").mkdir(mode=0o700, exist_ok=True)
    bodies = [path for path in (kept / "blobs").glob("*") if not (place / "blobs" / path.name).exists()]
    for path in bodies:
        os.rename(path, place / "blobs" / path.name)
    with open(os.open(place / "calls.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "ab") as file:
        file.write((kept / "calls.jsonl").read_bytes())
        os.fsync(file.fileno())
    shutil.rmtree(kept)
    return True


def contained(root: Root) -> frozenset[str]:
    """Every entry that an act keeps out of the record now."""
    acts = (_listed(path.parent) for path in (root.quarantine / "contained").glob(f"*/{_LIST}"))
    return frozenset(entry for one in acts for entry in one.found.held if (one.folder / f"{entry}.md").exists())


def _plan(memory: Memory, id: str) -> Contained:
    """What an act would take now."""
    reads, writes = (reader.events(memory.root.state / log) for log in (MemoryRead.log, MemoryWrite.log))
    reached = reach(id, reads, writes)
    held = [entry for entry in dict.fromkeys((id, *reached.entries)) if is_id("entry", entry) and _place(memory, entry)]
    if not held:
        return Contained("", id, (), (), ())
    filed = tasks(reached, lambda one: memory.ledger.filed_by(one.domain, one.session, since_ms=one.since_ms))
    waiting = [task.id for task in memory.ledger.tasks(filed).values() if task.status == "admitted"]
    return Contained("", id, tuple(held), tuple(waiting), tuple(_contexts(memory, reached)))


def _together(parts: Sequence[Contained]) -> Contained:
    """What several acts about one entry took; the last one's id."""
    return Contained(
        parts[-1].act,
        parts[-1].entry,
        *(tuple(dict.fromkeys(one for part in parts for one in getattr(part, name))) for name in ("held", "tasks", "contexts", "left")),
    )


def _contexts(memory: Memory, reached: Reach) -> Iterator[str]:
    for one in reached.readers:
        place = f"{one.domain}/.contexts/{one.session}"
        if is_id("domain", one.domain) and is_id("session", one.session) and (memory.store.folder / place).is_dir():
            yield place


def _place(memory: Memory, entry: str) -> str | None:
    try:
        return memory.store.relative(memory.store.path(entry))
    except NotFoundError:
        return None


def _begin(memory: Memory, session: Session, found: Contained, why: str) -> _Act:
    """Write down what is about to be taken, and from where."""
    folder = _folder(memory) / found.act
    folder.mkdir(mode=0o700, parents=True)
    paths = {entry: memory.store.relative(memory.store.path(entry)) for entry in found.held}
    digests = {entry: digest((memory.store.folder / path).read_bytes()) for entry, path in paths.items()}
    at = stamp(memory.clock())
    note: dict[str, Any] = {**found._asdict(), "paths": paths, "digests": digests, "why": why, "by": session.principal, "at": at}
    write_new(folder / _LIST, json.dumps(note, ensure_ascii=False).encode())
    return _Act(folder, found, paths, digests, at)


def _acts(memory: Memory, id: str) -> list[_Act]:
    """The acts about an entry that were not undone, in order."""
    acts = (_listed(path.parent) for path in _folder(memory).glob(f"*/{_LIST}"))
    return sorted((one for one in acts if one.found.entry == id), key=lambda one: (one.at, one.folder))


def _listed(folder: Path) -> _Act:
    note = json.loads((folder / _LIST).read_bytes())
    found = Contained(note["act"], note["entry"], tuple(note["held"]), tuple(note["tasks"]), tuple(note["contexts"]))
    return _Act(folder, found, note["paths"], note.get("digests", {}), note["at"])


def _folder(memory: Memory) -> Path:
    return memory.root.quarantine / "contained"


def _blocker(act: str) -> str:
    return f"contained by {act}"


def _logged(memory: Memory, session: Session, what: str, one: _Act, why: str, left: tuple[str, ...] = ()) -> None:
    there = digest((one.folder / _LIST).read_bytes()) if what == request.CONTAIN or left else ""
    memory.append(
        MemoryAct(
            at=stamp(memory.clock()), session=session.id, domain=session.domain, principal=session.principal, act=what,
            entries=tuple(entry for entry in one.found.held if entry not in left), why=why,
            files={f"quarantine/contained/{one.folder.name}/{_LIST}": there},
        )
    )  # fmt: skip

"""Contain an entry: it and everything it reached leaves the record in one act of the owner's, and comes back byte for byte when undone.

Owns `state/quarantine/contained/<act>/`: `act.json`, the list of what was taken, written before anything is; and the files
themselves. So an act that was cut short is completed by asking again, and undone from its list. Nothing in there is indexed or served. A
task that somebody is at work on, and what a contained entry had replaced, stay as they are.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

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
from amem.record import quarantine
from amem.record.store import digest, write_new
from amem.settings.root import Root

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


def contain(memory: Memory, session: Session, id: str, why: str, *, dry_run: bool = False) -> Contained:
    """Take an entry and all it reached out of the record.

    Raises RefusedError (only the owner may), NotFoundError (nothing of it is in the record), OSError.
    """
    if not session.is_owner:
        act(memory, session, request.CONTAIN, session.domain, id)  # before anybody else learns what there is
    with quarantine.judging(memory.root):
        folder = next(_acts(memory, id), None)
        if folder is None:
            found = _plan(memory, id)
            if dry_run:
                return found
            decision = act(memory, session, request.CONTAIN, session.domain, id)
            found = found._replace(act=decision.id)
            folder = _begin(memory, session, found, why)
        elif dry_run:
            return _listed(folder)[0]
        found, paths = _listed(folder)
        for entry in found.held:
            if (memory.store.folder / paths[entry]).exists():
                memory.store.take(entry, folder / f"{entry}.md")
                indexed(memory, memory.store.folder / paths[entry])
        for n, context in enumerate(found.contexts):
            if (memory.store.folder / context).is_dir():
                os.rename(memory.store.folder / context, folder / f"context-{n}")
        for task in found.tasks:
            memory.ledger.block(task, by=session.principal, on=_blocker(found.act))
        _logged(memory, session, request.CONTAIN, found, why, digest((folder / _LIST).read_bytes()))
    return found


def undo(memory: Memory, session: Session, id: str, why: str) -> Contained:
    """Put everything back as it was. Raises RefusedError, NotFoundError, ConflictError (something stands in a place), OSError."""
    if not session.is_owner:
        act(memory, session, request.CONTAIN, session.domain, id)
    with quarantine.judging(memory.root):
        folder = next(_acts(memory, id), None)
        if folder is None:
            raise NotFoundError(f"{id} is not contained", hint=f"amem contain {id} --dry-run --why …")
        act(memory, session, request.CONTAIN, session.domain, id)
        found, paths = _listed(folder)
        taken = [(folder / f"{entry}.md", paths[entry]) for entry in found.held]
        taken += [(folder / f"context-{n}", context) for n, context in enumerate(found.contexts)]
        for kept, place in taken:  # all or none, as far as can be seen
            if kept.exists() and os.path.lexists(memory.store.folder / place):
                raise ConflictError(f"{place} is taken: what was contained cannot go back there", hint=f"amem get {id}")
        for kept, place in taken:
            if kept.exists():
                path = memory.store.give(kept, place)
                if path.suffix == ".md":
                    indexed(memory, path)
        for task in memory.ledger.tasks(found.tasks).values():
            if task.blocked_on == _blocker(found.act):
                memory.ledger.unblock(task.id, by=session.principal, why=why)
        _logged(memory, session, UNDO, found, why, "")
        os.unlink(folder / _LIST)
        os.rmdir(folder)
    return found


def contained(root: Root) -> frozenset[str]:
    """Every entry that an act keeps out of the record now."""
    lists = (_listed(path.parent)[0] for path in (root.quarantine / "contained").glob(f"*/{_LIST}"))
    return frozenset(entry for found in lists for entry in found.held)


def _plan(memory: Memory, id: str) -> Contained:
    """What an act would take now."""
    reads, writes = (reader.events(memory.root.state / log) for log in (MemoryRead.log, MemoryWrite.log))
    reached = reach(id, reads, writes)
    held = [entry for entry in dict.fromkeys((id, *reached.entries)) if is_id("entry", entry) and _place(memory, entry)]
    if not held:
        raise NotFoundError(f"nothing of {id} is in the record", hint="amem list")
    filed = tasks(reached, lambda one: memory.ledger.filed_by(one.domain, one.session, since_ms=one.since_ms))
    waiting = [task.id for task in memory.ledger.tasks(filed).values() if task.status == "admitted"]
    return Contained("", id, tuple(held), tuple(waiting), tuple(_contexts(memory, reached)))


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


def _begin(memory: Memory, session: Session, found: Contained, why: str) -> Path:
    """Write down what is about to be taken, and from where."""
    folder = _folder(memory) / found.act
    folder.mkdir(mode=0o700, parents=True)
    paths = {entry: _place(memory, entry) for entry in found.held}
    note: dict[str, Any] = {**found._asdict(), "paths": paths, "why": why, "by": session.principal, "at": stamp(memory.clock())}
    write_new(folder / _LIST, json.dumps(note, ensure_ascii=False).encode())
    return folder


def _acts(memory: Memory, id: str) -> Iterator[Path]:
    """The folders of the acts about an entry that were not undone."""
    for path in sorted(_folder(memory).glob(f"*/{_LIST}")):
        if _listed(path.parent)[0].entry == id:
            yield path.parent


def _listed(folder: Path) -> tuple[Contained, dict[str, str]]:
    note = json.loads((folder / _LIST).read_bytes())
    found = Contained(note["act"], note["entry"], tuple(note["held"]), tuple(note["tasks"]), tuple(note["contexts"]))
    return found, note["paths"]


def _folder(memory: Memory) -> Path:
    return memory.root.quarantine / "contained"


def _blocker(act: str) -> str:
    return f"contained by {act}"


def _logged(memory: Memory, session: Session, what: str, found: Contained, why: str, digest: str) -> None:
    memory.append(
        MemoryAct(
            at=stamp(memory.clock()), session=session.id, domain=session.domain, principal=session.principal, act=what,
            entries=found.held, why=why, files={f"quarantine/contained/{found.act}/{_LIST}": digest},
        )
    )  # fmt: skip

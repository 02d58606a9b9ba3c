"""Erase entries, and what quotes them: the owner's act, with a receipt of what was taken from where.

Owns `state/erasing/`, the list of an act under way, and `state/erased/`, the receipts. The order: the decision is logged, the list begun,
the entries taken out of service; then every place that carries a passage of theirs is cleaned, each noted before it is touched; the
bodies themselves go last, because they are what the places are known by. So an act that was killed goes on where it was when the same
command is given again. What stays of an entry is a tombstone: its id, type, domain, label, author and time.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from amem.errors import ConflictError, NotFoundError, UsageError
from amem.ledger.projection import ERASED
from amem.logs import reader
from amem.logs.schema import LogMasked, MemoryAct, MemoryRead, MemoryWrite
from amem.memory import owner_tasks, passages, traces, transcripts
from amem.memory.held import act
from amem.memory.passages import Passages, masked
from amem.memory.session import Memory, Session
from amem.memory.taint import reach
from amem.memory.traces import Trace
from amem.memory.write import indexed
from amem.model.clock import stamp
from amem.model.entry import Entry, Status
from amem.model.ids import domain_of
from amem.policy import request
from amem.record import quarantine
from amem.record.markdown import Malformed, fixed, format
from amem.record.sealed import Sealer
from amem.record.store import digest
from amem.settings.root import Root
from amem.typed import Any, NamedTuple

TITLE = "(erased)"
_KNOWN_ELSEWHERE = 3
"""More other entries with the same long word make it a word of the trade, not this entry's."""
_TOLD = 100
_ROUNDS = 3
_LEDGER = "ledger: "
_OF_AN_ACT = re.compile(r"state/(erased/[^/]+\.json|quarantine/contained/[^/]+/act\.json)")


class Receipt(NamedTuple):
    """What an erasure took, and what was looked at afterwards."""

    id: str
    """Of the act: the decision's."""
    entries: tuple[str, ...]
    by: str
    why: str
    at: str
    removed: tuple[Trace, ...]
    searched: traces.Search
    also_in: tuple[str, ...] = ()
    """Entries by others that share words with these, and were left as they are."""
    exported: tuple[str, ...] = ()
    """Files that these were once exported to, wherever they are now: what is not below the root is not reached."""
    whys: int = 0
    tasks: int = 0
    readers: tuple[str, ...] = ()
    """Sessions that wrote these or were served them: what one that still runs writes after this may say them again."""


class _Kept(NamedTuple):
    """An entry's file, in the record or set aside by `contain`."""

    path: Path
    entry: Entry


def erase(memory: Memory, session: Session, ids: tuple[str, ...], why: str, *, dry_run: bool = False) -> Receipt:
    """Erase entries and what quotes them; go on with an act that was cut short.

    Raises RefusedError (only the owner may), NotFoundError, ConflictError (erased already), UsageError (the why quotes them), OSError.
    """
    if not session.is_owner:
        act(memory, session, request.ERASE, domain_of(ids[0]), ids[0])  # before anybody else learns whether it is there
    with quarantine.judging(memory.root):
        begun = None if dry_run else _begun(memory.root, ids)
        kept = {id: _find(memory, id) for id in ids}
        gone = [id for id, found in kept.items() if found.entry.status is Status.ERASED]
        if gone and begun is None:
            raise ConflictError(f"{', '.join(gone)}: erased already", hint=f"amem get {gone[0]}")
        wanted, also_in = _wanted(memory, kept)
        readers = _readers(memory, [found.entry for found in kept.values()])
        exported = _exported(memory, ids)
        if wanted.found(why):
            raise UsageError("--why quotes what is to be erased, and would stay")
        if dry_run:
            carrying = tuple(Trace(memory.store.relative(path), "masked") for path, *_ in _quoting(memory, kept, wanted))
            searched, at = traces.search(memory.root.path, wanted), stamp(memory.clock())
            return Receipt("", ids, session.principal, why, at, carrying, searched, also_in, exported, readers=readers)
        notes = begun or _begin(memory, session, ids, why)
        _out_of_service(memory, kept)
        own = {_relative(memory, found.path) for found in kept.values()} | set(traces.INDEX)
        searched, digests, whys = _cleaned(memory, session, ids, kept, wanted, notes, own)
        digests |= {id: _buried(memory, id, notes) for id in ids}
        transcripts.prune(memory, session, lambda path: notes.add(Trace(path, "masked")))
        with memory.lock:
            memory.index.scrub()
        searched = searched.then(traces.search(memory.root.path, wanted, lambda path: path in own))
        tasks = sum(one.path.startswith(_LEDGER) for one in notes.traces)
        at = stamp(memory.clock())
        receipt = Receipt(notes.act, ids, session.principal, why, at, notes.traces, searched, also_in, exported, whys, tasks, readers)
        kept_as = json.dumps(shape(receipt), indent=1).encode()
        memory.append(
            MemoryAct(
                at=receipt.at, session=session.id, domain=domain_of(ids[0]), principal=session.principal, act=request.ERASE, entries=ids,
                why=why, digests={**notes.digests, **digests}, files=_listed(memory.root, notes) | {_receipt(notes.act): digest(kept_as)},
            )
        )  # fmt: skip
        notes.end(kept_as)
    return receipt


def _out_of_service(memory: Memory, kept: Mapping[str, _Kept]) -> None:
    """Demote what is still served: from here on nobody is served it, though cleaning the places that carry it takes a while."""
    for found in kept.values():
        if found.entry.status not in (Status.DEMOTED, Status.ERASED):
            _put(memory, found, replace(found.entry, version=found.entry.version + 1, status=Status.DEMOTED))


def _cleaned(
    memory: Memory, session: Session, ids: tuple[str, ...], kept: Mapping[str, _Kept], wanted: Passages, notes: "_Notes", own: set[str]
) -> tuple[traces.Search, dict[str, str], int]:
    """Clean every place that carries a passage, but for the entries' `own`.

    What the last search found, the digests of the entries that were rewritten, and how many whys of promotions went.
    """
    digests, whys, before = dict[str, str](), 0, None
    for _ in range(_ROUNDS):  # sessions write while this runs
        digests |= _rewritten(memory, kept, wanted, notes)
        traces.clean(memory.root.path, wanted, notes.add, lambda first, count: _masked(memory, session, first, count))
        whys += _ledger(memory, session, ids, wanted, notes)
        searched = traces.search(memory.root.path, wanted, lambda path: path not in own)
        if not searched.left or searched.left == before:
            break
        before = searched.left
    return searched, digests, whys


def _buried(memory: Memory, id: str, notes: "_Notes") -> str:
    """Leave the tombstone in an entry's place; the digest of all of it that stays as it is from now on."""
    found = _find(memory, id)
    if found.entry.status is not Status.ERASED:
        notes.add(Trace(_relative(memory, found.path), "erased"))
        _put(memory, found, _tombstone(found.entry))
    return fixed(_tombstone(found.entry))


def shape(receipt: Receipt) -> dict[str, Any]:
    """A receipt as commands show it and as it is kept."""
    shown: dict[str, Any] = {
        "id": receipt.id, "act": request.ERASE, "entries": list(receipt.entries), "by": receipt.by, "why": receipt.why, "at": receipt.at,
        "removed": [{"path": one.path, "how": one.how} for one in receipt.removed],
        "searched": [{"place": "root", "files": receipt.searched.files, "bytes": receipt.searched.bytes}],
        "left": list(receipt.searched.left), "also_in": list(receipt.also_in),
        "exported_to": list(receipt.exported),
        "promotion_whys_removed": receipt.whys, "promotion_tasks_cleared": receipt.tasks,
        "contexts_removed": [one.path for one in receipt.removed if "/.contexts/" in one.path or "/context-" in one.path],
    }  # fmt: skip
    return {key: value for key, value in shown.items() if value not in ("", [])}


def unfinished(root: Root) -> tuple[tuple[str, ...], ...]:
    """The entries of each act that was cut short."""
    lists = sorted((root.state / "erasing").glob("*.jsonl"))
    return tuple(tuple(_Notes.read(path).ids) for path in lists if b"\n" in path.read_bytes())


class _Notes:
    """The list of an act under way: a line before each thing that is touched."""

    def __init__(self, root: Root, path: Path, head: Mapping[str, Any]) -> None:
        self._root = root
        self._path = path
        self.act: str = head["id"]
        self.ids: list[str] = head["entries"]
        self.traces: tuple[Trace, ...] = ()
        self.digests: dict[str, str] = {}

    @classmethod
    def read(cls, path: Path) -> "_Notes":
        """The list in a file, whose last line may be torn."""
        lines = path.read_bytes().split(b"\n")[:-1]
        notes = cls(Root(path.parents[2]), path, json.loads(lines[0]))
        for line in lines[1:]:
            found = json.loads(line)
            notes.traces += (Trace(found["path"], found["how"]),)
            notes.digests |= found.get("digests", {})
        return notes

    def add(self, trace: Trace, digests: Mapping[str, str] | None = None) -> None:
        """Note what is about to be touched."""
        if trace in self.traces and not digests:
            return
        self.traces += (trace,) if trace not in self.traces else ()
        self.digests |= digests or {}
        self._write({**trace._asdict(), **({"digests": digests} if digests else {})})

    def end(self, receipt: bytes) -> None:
        """Keep the receipt in place of the list."""
        path = self._root.state / _receipt(self.act)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(receipt)
            file.flush()
            os.fsync(file.fileno())
        self._path.unlink()

    def _write(self, keys: Mapping[str, Any]) -> None:
        with open(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(json.dumps(keys, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _receipt(act: str) -> str:
    """Where a receipt is kept, below `state/`."""
    return f"erased/{act}.json"


def _listed(root: Root, notes: _Notes) -> dict[str, str]:
    """What the receipts and lists of other acts are like now that this one masked something in them; empty of one that is gone."""
    touched = [one.path.removeprefix("state/") for one in notes.traces if _OF_AN_ACT.fullmatch(one.path)]
    return {name: digest(path.read_bytes()) if (path := root.state / name).exists() else "" for name in touched}


def _begun(root: Root, ids: tuple[str, ...]) -> _Notes | None:
    """The act about exactly these entries that was cut short."""
    for path in sorted((root.state / "erasing").glob("*.jsonl")):
        if b"\n" not in path.read_bytes():  # cut short before anything was touched
            path.unlink()
        elif set((notes := _Notes.read(path)).ids) == set(ids):
            return notes
    return None


def _begin(memory: Memory, session: Session, ids: tuple[str, ...], why: str) -> _Notes:
    decisions = [act(memory, session, request.ERASE, domain_of(id), id) for id in ids]
    folder = memory.root.state / "erasing"
    folder.mkdir(mode=0o700, exist_ok=True)
    head = {"id": decisions[0].id, "entries": list(ids), "by": session.principal, "why": why, "at": stamp(memory.clock())}
    notes = _Notes(memory.root, folder / f"{decisions[0].id}.jsonl", head)
    notes._write(head)
    return notes


def _find(memory: Memory, id: str) -> _Kept:
    """An entry, in the record or set aside. Raises NotFoundError, Malformed."""
    try:
        path = memory.store.path(id)
    except NotFoundError:
        path = next(iter((memory.root.quarantine / "contained").glob(f"*/{id}.md")), Path())
        if not path.name:
            raise NotFoundError(f"there is no entry {id[:60]}", hint="amem list") from None
    return _Kept(path, memory.store.load(path).entry)


def _wanted(memory: Memory, kept: Mapping[str, _Kept]) -> tuple[Passages, tuple[str, ...]]:
    """What the entries' text is known by, and the entries of others that share some of it and keep it.

    A passage that stands in an entry by nobody who wrote or was served these, or in one that took their place, is not theirs alone.
    """
    mine = [found.entry for found in kept.values() if found.entry.status is not Status.ERASED]
    all = passages.NOTHING
    sealer = Sealer(memory.root.state)
    for entry in mine:
        texts = (entry.title, entry.summary, entry.body, *entry.sources)
        all |= passages.passages(*texts)
        # A credential stands sealed in what was kept, the same one alike each time.
        all |= passages.passages(*(sealed for text in texts if (sealed := sealer.masked(text.encode()).decode()) != text))
    related = _related(memory, mine)
    after = {entry.superseded_by for entry in mine}
    own, sharing, words = all, list[tuple[str, str]](), dict.fromkeys(passages.telling(all).words, 0)
    for _, entry in _entries(memory, set(kept)):
        if (entry.id in after or entry.id not in related) and all.found(text := _text(entry)):
            own, plain = own.without([text]), passages.plain(text)
            words = {word: count + (word in plain) for word, count in words.items()}
            if len(sharing) < _TOLD:
                sharing.append((entry.id, text))
    wanted = own | Passages(frozenset(), frozenset(word for word, count in words.items() if count <= _KNOWN_ELSEWHERE))
    return wanted, tuple(id for id, text in sharing if not wanted.found(text))


def _exported(memory: Memory, ids: tuple[str, ...]) -> tuple[str, ...]:
    acts = reader.events(memory.root.state / MemoryAct.log)
    exports = (one for one in acts if one.get("act") == "export" and one.get("to"))
    return tuple(dict.fromkeys(str(one["to"]) for one in exports if not set(ids).isdisjoint(one.get("entries", ()))))


def _related(memory: Memory, entries: Iterable[Entry]) -> frozenset[str]:
    """Entries by the sessions that wrote or were served one of these, and what these replaced."""
    reads, writes = (list(reader.events(memory.root.state / log)) for log in (MemoryRead.log, MemoryWrite.log))
    related: set[str] = set()
    for entry in entries:
        related |= {*reach(entry.id, reads, writes).entries, *entry.supersedes}
    sessions = _readers(memory, entries)
    related |= {event["entry"] for event in writes if event.get("entry") and event.get("session") in sessions}
    return frozenset(related)


def _readers(memory: Memory, entries: Iterable[Entry]) -> tuple[str, ...]:
    """The sessions that wrote or were served one of these."""
    reads, writes = (list(reader.events(memory.root.state / log)) for log in (MemoryRead.log, MemoryWrite.log))
    found = [session for entry in entries for session in (entry.session, *(one.session for one in reach(entry.id, reads, writes).readers))]
    return tuple(dict.fromkeys(session for session in found if session))


def _quoting(memory: Memory, kept: Mapping[str, _Kept], wanted: Passages) -> Iterator[tuple[Path, Entry, Entry]]:
    """The other entries that carry a passage: each file, its entry, and that entry without it."""
    for path, entry in _entries(memory, set(kept)):
        if not wanted.found(_text(entry)):
            continue
        new = replace(
            entry,
            version=entry.version + 1,
            title=masked(entry.title, wanted),
            summary=masked(entry.summary, wanted),
            body=masked(entry.body, wanted),
            sources=tuple(source for source in entry.sources if not wanted.found(source)),
            owner=None if wanted.found(entry.owner or "") else entry.owner,
            extra=passages.walked(entry.extra, wanted),
        )
        yield path, entry, new


def _rewritten(memory: Memory, kept: Mapping[str, _Kept], wanted: Passages, notes: _Notes) -> Iterator[tuple[str, str]]:
    """Mask what other entries quote. A file that is no entry and carries something goes whole, and so does a copy of an entry's own."""
    for path, entry, new in list(_quoting(memory, kept, wanted)):
        notes.add(Trace(_relative(memory, path), "masked"), {entry.id: fixed(new)})
        _put(memory, _Kept(path, entry), new)
        yield entry.id, fixed(new)
    for path, _ in memory.store.walk():
        try:
            mine = kept.get(memory.store.load(path).entry.id)
            goes = mine is not None and mine.path != path
        except (Malformed, NotFoundError):
            goes = path.is_file() and not path.is_symlink() and traces.carries(path.read_bytes(), wanted) is True
        if goes:
            notes.add(Trace(_relative(memory, path), "deleted"))
            path.unlink()
            indexed(memory, path)


def _entries(memory: Memory, without: set[str]) -> Iterator[tuple[Path, Entry]]:
    """Every entry of the record and of what is contained; the files that hold others."""
    contained = sorted((memory.root.quarantine / "contained").glob("*/mem-*.md"))
    for path in (*(path for path, _ in memory.store.walk()), *contained):
        try:
            entry = memory.store.load(path).entry
        except (Malformed, NotFoundError):
            continue
        if entry.id not in without:
            yield path, entry


def _put(memory: Memory, found: _Kept, new: Entry) -> None:
    if found.path.is_relative_to(memory.store.folder):
        indexed(memory, memory.store.replace(new, found.path))
        return
    temporary = found.path.with_name(f".{found.path.name}.{os.urandom(6).hex()}")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(format(new))
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, found.path)


def _tombstone(entry: Entry) -> Entry:
    return replace(
        entry, version=entry.version + 1, status=Status.ERASED, title=TITLE, summary="", body="", sources=(), owner=None, extra={},
        review_by=None, basis=None, valid_from_at=None, valid_to_at=None,
    )  # fmt: skip


def _ledger(memory: Memory, session: Session, ids: tuple[str, ...], wanted: Passages, notes: _Notes) -> int:
    """Take the whys of the entries' promotions and those that quote them, and the words of each task that quotes them, asks to approve
    them, or is about a write that was dropped with them; an open one is closed. How many whys.
    """
    ledger = memory.ledger
    dropped = [Path(one.path).stem for one in notes.traces if one.path.startswith("state/quarantine/held-")]
    tasks = [one.task for id in ids for one in ledger.promotions(id) if one.task]
    tasks += [task for held in dropped for task in owner_tasks.tasks(ledger, memory.grants.domains, held).values()]
    tasks += [task for domain in memory.grants.domains for task in ledger.mentioning(domain, wanted.found)]
    for task in dict.fromkeys(tasks):
        if ledger.show(task).title != ERASED:
            notes.add(Trace(f"{_LEDGER}{task}", "erased"))
            ledger.erase(task, by=session.principal)
    whys = sum(ledger.erase_whys(domain, ids, wanted.found) for domain in memory.grants.domains)
    for domain in memory.grants.domains:
        ledger.scrub(domain)
    return whys


def _masked(memory: Memory, session: Session, first: int, count: int) -> LogMasked:
    return LogMasked(at=stamp(memory.clock()), session=session.id, principal=session.principal, first=first, count=count)


def _text(entry: Entry) -> str:
    return "\n".join(
        (entry.title, entry.summary, entry.body, *entry.sources, entry.owner or "", json.dumps(entry.extra, ensure_ascii=False))
    )


def _relative(memory: Memory, path: Path) -> str:
    return os.path.relpath(path, memory.root.path)

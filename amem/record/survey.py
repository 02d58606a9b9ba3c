"""Bring the index in line with the files: one file, the folders that changed, or everything anew.

A file is known by its seal (stat), then by its digest. `refresh` looks at folders: a file that appeared, left or was replaced
changes its folder's time, so a look costs one stat a folder. A file written over in place does not: it is noticed when it
is served (`Index` compares each row it serves), and by `refresh(full=True)`, which stats every file. A file that is no
entry is reported and kept. The label an entry once had is a floor, whatever its file says later.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from amem.errors import ConflictError, NotFoundError
from amem.logs import reader
from amem.logs.schema import MemoryWrite
from amem.model.entry import Entry, Status
from amem.model.label import Label
from amem.record.blocks import blocks
from amem.record.markdown import Malformed
from amem.record.rows import Problem, Report, Tally
from amem.record.store import Loaded, Store, is_entry_name
from amem.record.tables import Place, Put, Tables, inode, place, seal
from amem.settings import database
from amem.settings.root import Root

_RACY_NS = 2_000_000_000
"""A folder changed less than this ago may change again within the same tick of its clock: it is looked at again next time."""
_BATCH = 500
_SQL = blocks("index.sql")


def connect(path: Path) -> database.Connection:
    """Open an index file, made 0600. Raises UnavailableError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    return database.connect(path, durable=False, check_same_thread=False)


def opened(root: Root) -> database.Connection:
    """Open the index of a root, an empty one in place of a file that is no database. Raises UnavailableError."""
    try:
        return connect(root.index)
    except database.Error as error:
        if isinstance(error, database.OperationalError):  # busy, or the disk: nothing is wrong with the file
            raise
    with locked(root):
        with suppress(database.Error):
            return connect(root.index)  # somebody else was quicker
        discard(root)
        return connect(root.index)


def discard(root: Root) -> None:
    """Remove the index; everything in it can be read again from the record."""
    for suffix in ("", "-wal", "-shm"):
        root.index.with_name(root.index.name + suffix).unlink(missing_ok=True)


@contextmanager
def locked(root: Root) -> Iterator[None]:
    """Hold the index's lock: it guards building the index anew and removing it."""
    descriptor = os.open(root.state / "index.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def put(tables: Tables, store: Store, loaded: Loaded, *, lowers: bool = False) -> Put:
    """Put a file's entry, and those whose words change by it. Inside the caller's transaction."""
    done = tables.put(loaded.entry, place(store.relative(loaded.path), loaded.stat, loaded.digest), lowers=lowers)
    _again(tables, store, done.again)
    return done


def look(tables: Tables, store: Store, path: Path, tally: Tally | None = None) -> None:
    """Bring the index in line with one file, whatever became of it. Inside the caller's transaction."""
    tally = tally or Tally()
    relative = store.relative(path)
    here = _at(tables, path, store)
    tables.settled(relative)
    try:
        loaded = store.load(path)
    except NotFoundError:
        _forget(tables, store, here, tally)
        return
    except Malformed as error:
        _forget(tables, store, here, tally)
        tables.report(Problem(relative, "malformed", error.why))
        return
    entry = loaded.entry
    _forget(tables, store, [found for found in here if found != entry.id], tally)
    canonical = store.expected(entry)
    other = _elsewhere(tables, store, entry.id, path)
    if other is not None and path != canonical:
        tables.report(Problem(relative, "duplicate", f"{entry.id} is also in {store.relative(other)}"))
        return
    if other is not None:
        tables.report(Problem(store.relative(other), "duplicate", f"{entry.id} is also in {relative}"))
    done = put(tables, store, loaded)
    if path != canonical:
        tables.report(Problem(relative, "misplaced", f"{entry.id} belongs in {store.relative(canonical)}"))
    tally.added += done.added
    tally.changed += done.changed
    tally.moved += done.moved
    if done.raised:
        tally.raised.append(entry.id)


def refresh(tables: Tables, store: Store, root: Root, *, full: bool = False) -> Report:
    """Notice new, changed, moved, removed and malformed files: in folders that changed, or with `full` everywhere."""
    tally = Tally()
    seen = dict(store.folders())
    known = {path: (n, mtime_ns) for n, path, mtime_ns in tables.connection.execute("select n, path, mtime_ns from folder")}
    waiting: list[Path] = []
    times: dict[str, int] = {}
    for folder, mtime_ns in seen.items():
        relative = store.relative(Path(folder))
        number, before = known.get(relative, (None, 0))
        if not full and before == mtime_ns:
            continue
        times[relative] = mtime_ns if time.time_ns() - mtime_ns > _RACY_NS else 0
        waiting += _changed(tables, Path(folder), number, full=full)
    present = {store.relative(Path(folder)) for folder in seen}
    gone = [n for path, (n, _) in known.items() if path not in present]
    for number in gone:
        rows = tables.connection.execute("select d.path, e.name from entry e join folder d on d.n = e.folder where e.folder = ?", (number,))
        waiting += [store.folder / path / name for path, name in rows]
    if waiting or times:
        # What appeared comes before what left, or a moved file would lose its row between the two.
        waiting.sort(key=lambda path: not os.path.lexists(path))
        unknown = any(_at(tables, path, store) == [] for path in waiting)
        floors = _logged_labels(root) if unknown else {}
        for start in range(0, max(1, len(waiting)), _BATCH):
            with tables.transaction():
                if start == 0:
                    tables.floors(floors.items())
                for path in waiting[start : start + _BATCH]:
                    look(tables, store, path, tally)
        with tables.transaction():
            for relative, mtime_ns in times.items():
                tables.connection.execute("update folder set mtime_ns = ? where n = ?", (mtime_ns, tables.folder(relative)))
    return _report(tables, tally)


def rebuild(tables: Tables, store: Store, root: Root) -> Report:
    """Build the index anew from the files and put it in place of the old one, whole.

    Labels that the old index or the log of writes knows stay floors. A supersession mark that a crash left unwritten is written.
    Readers see the old index until the new one is there; what others write meanwhile is noticed at the end.
    """
    floors = _logged_labels(root)
    for sql in ("select id, label from floor", "select id, label from entry"):
        for entry_id, label in tables.connection.execute(sql):
            floors[entry_id] = max(label, floors.get(entry_id, 0))
    scratch = root.index.with_name(f".{root.index.name}.{os.getpid()}.new")
    tally = Tally()
    with locked(root):  # one rebuild at a time: two would only slow each other
        try:
            for left in root.state.glob(f".{root.index.name}.*.new*"):  # of a rebuild that was killed
                left.unlink(missing_ok=True)
            built = connect(scratch)
            built.execute("pragma journal_mode=off")
            built.execute("pragma synchronous=off")
            new = Tables(built)
            with new.transaction():
                new.create(bulk=True)
                new.floors(floors.items())
                _fill(new, store, floors, tally)
            built.backup(tables.connection)
            built.close()
        finally:
            scratch.unlink(missing_ok=True)
    store.sweep()
    repaired = _repair(tables, store)
    late = refresh(tables, store, root)
    report = _report(tables, tally)
    return Report(entries=late.entries, added=tally.added, problems=report.problems, raised=tuple(tally.raised), repaired=repaired)


def _fill(tables: Tables, store: Store, floors: Mapping[str, int], tally: Tally) -> None:
    """Put every file."""
    later: list[Path] = []
    batch: list[tuple[Entry, Place]] = []
    known: set[str] = set()

    def flush() -> None:
        tally.raised += tables.fill(batch, floors)
        tally.added += len(batch)
        batch.clear()

    for path, _ in store.walk():
        try:
            loaded = store.load(path)
        except (Malformed, NotFoundError):
            later.append(path)
            continue
        where = place(store.relative(path), loaded.stat, loaded.digest)
        if loaded.entry.id in known or where.path != store.belongs(loaded.entry):
            later.append(path)
            continue
        known.add(loaded.entry.id)
        batch.append((loaded.entry, where))
        if len(batch) == _BATCH:
            flush()
    flush()
    _again(tables, store, tables.finish())
    for path in later:  # malformed, not in its place, or the second file of an id: `look` says which
        look(tables, store, path, tally)


def _repair(tables: Tables, store: Store) -> tuple[str, ...]:
    """Write the mark that a crash between the successor and its predecessor left out."""
    repaired = []
    for entry_id, successor, folder, name in tables.connection.execute(_SQL["unmarked"]).fetchall():
        path = store.folder / folder / name
        try:
            entry: Entry = store.load(path).entry
            store.replace(replace(entry, version=entry.version + 1, status=Status.SUPERSEDED, superseded_by=successor), path)
        except (ConflictError, NotFoundError, Malformed):
            continue  # somebody else is at it; the index says superseded all the same
        with tables.transaction():
            look(tables, store, path)
        repaired.append(entry_id)
    return tuple(repaired)


def _changed(tables: Tables, folder: Path, number: int | None, *, full: bool) -> list[Path]:
    """The files of a folder that are not as they are known: by name and inode, or with `full` by their whole stat."""
    rows = tables.connection.execute("select name, seal from entry where folder = ?", (number,)).fetchall() if number is not None else []
    known = dict(rows)
    found: list[Path] = []
    try:
        items = [item for item in os.scandir(folder) if is_entry_name(item.name) and not item.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        items = []
    for item in items:
        before = known.pop(item.name, None)
        if before is None:
            found.append(folder / item.name)
            continue
        try:
            same = seal(item.stat(follow_symlinks=False)) == before if full else item.inode() == inode(before)
        except FileNotFoundError:
            same = False
        if not same:
            found.append(folder / item.name)
    return found + [folder / name for name in known]


def _at(tables: Tables, path: Path, store: Store) -> list[str]:
    """The ids of the entries that the index has in a file."""
    folder, name = os.path.split(store.relative(path))
    sql = "select e.id from folder d join entry e on e.folder = d.n where d.path = ? and e.name = ?"
    return [entry_id for (entry_id,) in tables.connection.execute(sql, (folder or ".", name))]


def _elsewhere(tables: Tables, store: Store, entry_id: str, path: Path) -> Path | None:
    """Another file that has this id, when it is still there."""
    sql = "select d.path, e.name from entry e join folder d on d.n = e.folder where e.id = ?"
    row = tables.connection.execute(sql, (entry_id,)).fetchone()
    other = store.folder / row[0] / row[1] if row else None
    return other if other is not None and other != path and os.path.lexists(other) else None


def _forget(tables: Tables, store: Store, ids: Iterable[str], tally: Tally) -> None:
    for entry_id in ids:
        _again(tables, store, tables.drop(entry_id))
        tally.removed += 1
        # The other file of this id, if there is one, is the entry now.
        sql = "select path from problem where kind = 'duplicate' and why glob ?"
        for (other,) in tables.connection.execute(sql, (f"{entry_id} *",)).fetchall():
            look(tables, store, store.folder / other, tally)


def _again(tables: Tables, store: Store, ids: Iterable[str]) -> None:
    """Put entries again that became active or have new neighbours: their words are in their files."""
    for entry_id in ids:
        sql = "select d.path, e.name from entry e join folder d on d.n = e.folder where e.id = ?"
        folder, name = tables.connection.execute(sql, (entry_id,)).fetchone()
        try:
            loaded = store.load(store.folder / folder / name)
        except (NotFoundError, Malformed):
            continue  # noticed when it is looked at itself
        if loaded.entry.id == entry_id:
            tables.put(loaded.entry, place(store.relative(loaded.path), loaded.stat, loaded.digest), alone=True)


def _logged_labels(root: Root) -> dict[str, int]:
    """The highest label under which the log of writes says each entry was stored, since the owner last lowered it."""
    labels: dict[str, int] = {}
    for event in reader.events(root.state / MemoryWrite.log):
        if event.get("event") == MemoryWrite.event and isinstance(entry_id := event.get("entry"), str):
            try:
                rank = Label(event.get("classification", "")).rank
            except ValueError:
                continue
            labels[entry_id] = max(rank, labels.get(entry_id, 0))
        elif event.get("act") == "declassify":
            labels |= dict.fromkeys(event.get("entries", ()), Label(event.get("to", "public")).rank)
    return labels


def _report(tables: Tables, tally: Tally) -> Report:
    entries = tables.connection.execute("select count(*) from entry").fetchone()[0]
    problems = tuple(Problem(*row) for row in tables.connection.execute("select path, kind, why from problem order by path"))
    raised = tuple(tally.raised)
    return Report(
        entries=entries,
        added=tally.added,
        changed=tally.changed,
        moved=tally.moved,
        removed=tally.removed,
        problems=problems,
        raised=raised,
    )

"""The rows of the index: how an entry gets in, moves between active and not, and gets out.

Every method runs inside the caller's transaction. It reads no file: what it cannot know without one (the words of an entry that
becomes active again) it names in its answer.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from amem.model.entry import Entry, Status, tokens
from amem.model.label import Label
from amem.record.blocks import blocks
from amem.record.rows import Problem
from amem.record.search import acl_token, beginnings, fold, prepared, type_token
from amem.settings.database import Connection
from amem.typed import Any

VERSION = 4
"""Of the schema; another one is dropped and built again."""
COVER_CHARACTERS = 16_000
"""How much of an entry is looked at for the share of words; longer bodies are due for a split anyway."""
_SQL = blocks("index.sql")
_SCHEMA = blocks("schema.sql")
_PART = re.compile(r"((?:transcript|file|source|context):[^#]+)#(\d{1,15})(?:-\d+)?", re.ASCII)
_ACTIVE, _SUPERSEDED = Status.ACTIVE.value, Status.SUPERSEDED.value


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry's file is and how it looked: its folder and name below `record/`, the seal of its stat, its digest."""

    folder: str
    name: str
    seal: str
    digest: str

    @property
    def path(self) -> str:
        """Below `record/`."""
        return f"{self.folder}/{self.name}" if self.folder != "." else self.name


@dataclass(frozen=True, slots=True)
class Put:
    """What putting an entry did."""

    added: bool
    changed: bool
    moved: bool
    raised: bool
    """The label in the file is lower than the one it is served under."""
    again: tuple[str, ...]
    """Entries whose words must be put again: active again, or beside this one in its source."""


def seal(found: os.stat_result) -> str:
    """What a file's stat is remembered by. The change time is in it: a tool can set the modification time back, not this one."""
    return f"{found.st_mtime_ns}.{found.st_ctime_ns}.{found.st_size}.{found.st_ino}"


def inode(text: str) -> int:
    """The inode in a seal."""
    return int(text.rsplit(".", 1)[1])


class Tables:
    """The tables of one open index."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._folders: dict[str, int] = {}
        self._acls: dict[tuple[str, int, int], int] = {}
        self._words: dict[str, str] = {}

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Take the write lock now (a later upgrade could fail busy), commit at the end, roll back on an error."""
        self.connection.execute("begin immediate")
        self.forget()
        try:
            yield
        except BaseException:
            self.connection.execute("rollback")
            raise
        self.connection.execute("commit")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the index: between two statements alone, another process may put a rebuilt one in its place."""
        self.connection.execute("begin")
        try:
            yield
        finally:
            self.connection.execute("commit")

    def create(self, *, bulk: bool = False) -> None:
        """Make the tables, dropping those of another version; with `bulk`, `fill` and `finish` follow."""
        for table in self.word_tables():
            self.connection.execute(f"drop table {table}")
        for name in ("drop", "create") if bulk else ("drop", "create", "order"):
            self._script(name)
        self.connection.execute(f"pragma user_version = {VERSION}")
        self.forget()

    def forget(self) -> None:
        """Drop the numbers of folders and combinations: they hold for one transaction.

        Another process may have put a rebuilt index in place since, where a number means other readers.
        """
        self._folders.clear()
        self._acls.clear()
        self._words.clear()

    def put(self, entry: Entry, place: Place, *, lowers: bool = False, alone: bool = False) -> Put:
        """Put an entry as its file says, never under a label lower than it had, unless `lowers`: the owner's logged act.

        `alone` leaves its neighbours in its source as they are: they are being put themselves.
        """
        known = self.connection.execute(_SQL["known"], (entry.id,)).fetchone()
        floor = known[1] if known else self._floor(entry.id)
        label = entry.classification.rank if lowers else max(entry.classification.rank, floor)
        raised = label > entry.classification.rank
        folder = self.folder(place.folder)
        moved = known is not None and (known[5], known[6]) != (folder, place.name)
        if known and known[4] == place.digest and known[1] == label and not alone:
            values = (folder, place.name, place.seal, known[0])
            self.connection.execute("update entry set folder = ?, name = ?, seal = ? where n = ?", values)
            return Put(added=False, changed=False, moved=moved, raised=raised, again=())
        acl = self.acl(entry.domain, label, entry.tier.rank)
        successor = self._successor(entry.id, entry.domain)
        series, turn = self._turn(entry)
        beside = () if alone or not known else self._beside(known[7], known[8], known[3])
        if known:
            self._withdraw(known[0], known[2], known[3])
            # not `insert or replace`: that keeps a journal of its own for each row, ten times the cost of the row
            self.connection.execute("delete from entry where n = ?", (known[0],))
        row = _row(known[0] if known else None, entry, label, successor, acl, folder, place, series, turn)
        n = self.connection.execute(_SQL["put_entry"], row).lastrowid
        assert n is not None
        if lowers:
            self.connection.execute("delete from floor where id = ?", (entry.id,))
        if row[_STATUS] == _ACTIVE:
            near = self._beside(series, turn, acl)
            self.connection.execute(
                _SQL["put_words"].format(words=self.words(entry.domain)), _words(n, entry, acl, " ".join(near.values()))
            )
            self.connection.execute(_SQL["put_cover"], _cover(n, entry, series))
            self.connection.execute(_SQL["put_seat"], (n, acl))
            self.connection.execute("update acl set live = live + 1 where n = ?", (acl,))
            beside = {**dict(beside), **near} if not alone else {}
        again = (*self._link(entry), *beside)
        changed = known is not None and known[4] != place.digest
        return Put(added=known is None, changed=changed, moved=moved, raised=raised, again=again)

    def fill(self, loaded: Iterable[tuple[Entry, Place]], floors: Mapping[str, int]) -> tuple[str, ...]:
        """Put many entries into empty tables, each id once, and return those whose file says too low a label.

        Goes by statements over many rows; `finish` must follow.
        """
        raised = []
        first = self.connection.execute("select coalesce(max(n), 0) + 1 from entry").fetchone()[0]
        rows, covers, seats, links = [], [], [], list[tuple[str, str]]()
        words: dict[str, list[tuple[Any, ...]]] = {}
        for n, (entry, where) in enumerate(loaded, start=first):
            label = max(entry.classification.rank, floors.get(entry.id, 0))
            if label > entry.classification.rank:
                raised.append(entry.id)
            acl, (series, turn) = self.acl(entry.domain, label, entry.tier.rank), self._turn(entry)
            rows.append(_row(n, entry, label, None, acl, self.folder(where.folder), where, series, turn))
            if entry.status is Status.ACTIVE:
                words.setdefault(entry.domain, []).append(_words(n, entry, acl, ""))
                covers.append(_cover(n, entry, series))
                seats.append((n, acl))
            links += [(old, entry.id) for old in entry.supersedes if old != entry.id]
        for name, values in (("put_entry", rows), ("put_cover", covers), ("put_seat", seats), ("put_link", links)):
            self.connection.executemany(_SQL[name], values)
        for domain, texts in words.items():
            self.connection.executemany(_SQL["put_words"].format(words=self.words(domain)), texts)
        return tuple(raised)

    def finish(self) -> tuple[str, ...]:
        """Bring what follows from all entries in line after `fill`; return the entries that must be put again."""
        self._script("order")
        self.connection.execute("update acl set live = (select count(*) from seat where seat.acl = acl.n)")
        again = dict.fromkeys(
            self._settle([old for (old,) in self.connection.execute("select distinct old from link order by old").fetchall()])
        )
        # Only now does every part of a source have its neighbours.
        return (*(again | dict(self.connection.execute(_SQL["ordered"]))),)

    def drop(self, entry_id: str) -> tuple[str, ...]:
        """Forget an entry but for its label, and return the entries that are active again without it."""
        known = self.connection.execute(_SQL["known"], (entry_id,)).fetchone()
        if known is None:
            return ()
        beside = self._beside(known[7], known[8], known[3])
        self._withdraw(known[0], known[2], known[3])
        self.floors([(entry_id, known[1])])
        self.connection.execute("delete from entry where n = ?", (known[0],))
        before = [old for (old,) in self.connection.execute("select old from link where new = ?", (entry_id,))]
        self.connection.execute("delete from link where new = ?", (entry_id,))
        return (*self._settle(before), *beside)

    def report(self, problem: Problem) -> None:
        """Remember a file that is not served as it stands."""
        self.connection.execute("insert or replace into problem values (?, ?, ?)", (problem.path, problem.kind, problem.why))

    def settled(self, path: str) -> None:
        """Forget the problem of a file."""
        self.connection.execute("delete from problem where path = ?", (path,))

    def floors(self, labels: Iterable[tuple[str, int]]) -> None:
        """Remember labels that entries had, before they are put."""
        self.connection.executemany("insert into floor values (?, ?) on conflict do update set label = max(label, excluded.label)", labels)

    def folder(self, path: str) -> int:
        """The number of a folder, new or known."""
        if (found := self._folders.get(path)) is None:
            self.connection.execute("insert or ignore into folder (path, mtime_ns) values (?, 0)", (path,))
            found = self._folders[path] = self.connection.execute("select n from folder where path = ?", (path,)).fetchone()[0]
        return found

    def acl(self, domain: str, label: int, tier: int) -> int:
        """The number of a combination, new or known."""
        key = (domain, label, tier)
        if (found := self._acls.get(key)) is None:
            self.connection.execute("insert or ignore into acl (domain, label, tier) values (?, ?, ?)", key)
            row = self.connection.execute("select n from acl where domain = ? and label = ? and tier = ?", key).fetchone()
            found = self._acls[key] = row[0]
        return found

    def words(self, domain: str) -> str:
        """The name of the table of a domain's words, new or known."""
        if (found := self._words.get(domain)) is None:
            row = self.connection.execute("select n from words where domain = ?", (domain,)).fetchone()
            if row is None:
                row = (self.connection.execute("insert into words (domain) values (?)", (domain,)).lastrowid,)
                self.connection.execute(_SCHEMA["words"].rstrip(";").format(words=f"f{row[0]}"))
            found = self._words[domain] = f"f{row[0]}"
        return found

    def word_tables(self) -> list[str]:
        """The names of all tables of words, and of the one that an older version had."""
        sql = "select name from sqlite_master where type = 'table' and sql like 'create virtual table%'"
        return [name for (name,) in self.connection.execute(sql).fetchall()]

    def _script(self, name: str) -> None:
        for statement in _SCHEMA[name].split(";"):
            if statement.strip():
                self.connection.execute(statement)

    def _floor(self, entry_id: str) -> int:
        row = self.connection.execute("select label from floor where id = ?", (entry_id,)).fetchone()
        return row[0] if row else Label.PUBLIC.rank

    def _successor(self, entry_id: str, domain: str) -> str | None:
        row = self.connection.execute(_SQL["successor"], (entry_id, domain)).fetchone()
        return row[0] if row else None

    def _turn(self, entry: Entry) -> tuple[int | None, int | None]:
        """The source an entry is a part of and its place there, by the first of its sources that says one."""
        for source in entry.sources:
            if found := _PART.fullmatch(source):
                self.connection.execute("insert or ignore into series (source) values (?)", (found[1],))
                return self.connection.execute("select n from series where source = ?", (found[1],)).fetchone()[0], int(found[2])
        return None, None

    def _beside(self, series: int | None, turn: int | None, acl: int) -> dict[str, str]:
        """What is said just before and after in the same source, by entry; never of an entry that others may read."""
        return dict(self.connection.execute(_SQL["beside"], (series, turn, acl))) if series is not None else {}

    def _withdraw(self, n: int, status: str, acl: int) -> None:
        """Make an entry that was active unfindable."""
        if status != _ACTIVE:
            return
        (domain,) = self.connection.execute("select domain from acl where n = ?", (acl,)).fetchone()
        for table, column in ((self.words(domain), "rowid"), ("cover", "n"), ("seat", "n")):
            self.connection.execute(f"delete from {table} where {column} = ?", (n,))
        self.connection.execute("update acl set live = live - 1 where n = ?", (acl,))

    def _link(self, entry: Entry) -> tuple[str, ...]:
        """Bring the links of an entry in line with what it says, and settle those it touches."""
        before = {old for (old,) in self.connection.execute("select old from link where new = ?", (entry.id,))}
        after = {old for old in entry.supersedes if old != entry.id}
        if not before and not after:
            return ()
        self.connection.executemany("delete from link where old = ? and new = ?", [(old, entry.id) for old in before - after])
        self.connection.executemany(_SQL["put_link"], [(old, entry.id) for old in after])
        return self._settle(sorted(before | after))

    def _settle(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Bring the status of entries in line with their successors; return those whose words must be put again."""
        again: list[str] = []
        for entry_id in ids:
            row = self.connection.execute(
                "select n, status, acl, mark, domain, series, turn from entry where id = ?", (entry_id,)
            ).fetchone()
            if row is None or row[3] != _ACTIVE:  # a file that says superseded or demoted needs nobody to confirm it
                continue
            n, status, acl, _, domain, series, turn = row
            successor = self._successor(entry_id, domain)
            if successor and status == _ACTIVE:
                again += self._beside(series, turn, acl)
                self._withdraw(n, status, acl)
                self.connection.execute("update entry set status = ?, superseded_by = ? where n = ?", (_SUPERSEDED, successor, n))
            elif successor:
                self.connection.execute("update entry set superseded_by = ? where n = ?", (successor, n))
            elif status != _ACTIVE:
                again.append(entry_id)
        return tuple(again)


def place(relative: str, found: os.stat_result, digest: str) -> Place:
    """Where a file is, as the index keeps it; `relative` is below `record/`."""
    folder, _, name = relative.rpartition("/")
    return Place(folder or ".", name, seal(found), digest)


_STATUS = 10
"""Where the status is in a row of `put_entry`."""


def _row(
    n: int | None,
    entry: Entry,
    label: int,
    successor: str | None,
    acl: int,
    folder: int,
    place: Place,
    series: int | None,
    turn: int | None,
) -> tuple[Any, ...]:
    """The values of `put_entry`."""
    status = _SUPERSEDED if entry.status is Status.ACTIVE and successor else entry.status.value
    return (
        n, entry.id, entry.version, entry.type.value, entry.title, entry.summary, entry.domain, label, entry.tier.rank,
        entry.status.value, status, entry.author, entry.written_at, entry.session, entry.task, entry.left_by, entry.owner,
        entry.review_by, _list(entry.sources), _list(entry.supersedes), entry.superseded_by or successor, entry.basis,
        entry.valid_from_at, entry.valid_to_at, entry.lineage.rank if entry.lineage else None, tokens(entry.body), acl, folder,
        place.name, place.seal, place.digest, series, turn,
    )  # fmt: skip


def _words(n: int, entry: Entry, acl: int, near: str) -> tuple[Any, ...]:
    """The values of `put_words`."""
    title, summary, body = prepared(entry.title), prepared(entry.summary), prepared(entry.body)
    grams = f"{title.grams} {summary.grams} {body.grams}".strip()
    return n, title.spaced, summary.spaced, body.spaced, grams, near, f"{acl_token(acl)} {type_token(entry.type.value)}"


def _cover(n: int, entry: Entry, series: int | None) -> tuple[Any, ...]:
    """The values of `put_cover`."""
    body = entry.body[:COVER_CHARACTERS]
    text = f"{entry.title}\n{entry.summary}\n{body}"
    return n, series, len(text), beginnings(text), fold(body) if series is not None else None


def _list(items: tuple[str, ...]) -> str:
    return json.dumps(items, ensure_ascii=False) if items else "[]"

"""The index of the record: what is there, who may read it, and which entries answer a question.

Owns `state/index.sqlite`, which can be deleted and built again at any time. It decides nothing about a reader: it is given a `Filter`
and shows nothing outside it. What it serves, it first compares with the file by stat, and with the file's digest when the stat
differs; so a hand edit is never served stale, and never under a label lower than the entry had.

One thread at a time uses an Index; many processes may have one open on the same root.
"""

import json
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from amem.errors import NotFoundError, UnavailableError
from amem.model import clock as clocks
from amem.model.clock import Clock
from amem.model.entry import RAW_DUE_DAYS, Entry, EntryType, Status, Tier
from amem.model.label import Label, lowest
from amem.record import search, survey, tables
from amem.record.blocks import blocks
from amem.record.markdown import Malformed
from amem.record.rows import Filter, Found, Hit, Listing, Problem, Report, Row
from amem.record.store import Loaded, Store
from amem.record.tables import Tables
from amem.settings import database
from amem.settings.root import Root
from amem.typed import Any, NamedTuple

WIDE_FROM = 0.2
"""From this share of the active entries on, a reader's filter is cheaper beside the match than inside it.

Measured on 10,000 sections, ms inside and beside: 12 % 3.7 and 4.1, 25 % 5.2 and 4.9, 50 % 8.6 and 6.0, 88 % 13.7 and 7.8 (2026-11).
"""
_LABELS = tuple(Label)
_TIERS = tuple(Tier)
_SQL = blocks("index.sql")
_SELECT = f"select e.n, {_SQL['entry_columns']} from entry e join folder d on d.n = e.folder"
_ORDERS = {"written": "e.written_at desc, e.n desc", "title": "e.title collate nocase, e.n"}


class Read(NamedTuple):
    """An entry with its body and what the index knows of it. The entry's classification is the one it is served under."""

    row: Row
    entry: Entry


class Index:
    """The index of one root."""

    def __init__(self, root: Root, connection: database.Connection, clock: Clock) -> None:
        self.root = root
        self._record = str(root.record)
        self.store = Store(root)
        self.tables = Tables(connection)
        self.clock = clock
        self._connection = connection

    @classmethod
    def open(cls, root: Root, *, clock: Clock = clocks.now) -> "Index":
        """Open the index of a root, making an empty one when there is none (or one of another version). Raises UnavailableError."""
        connection = survey.opened(root)
        index = cls(root, connection, clock)
        if connection.execute("pragma user_version").fetchone()[0] != tables.VERSION:
            with index.tables.transaction():
                if connection.execute("pragma user_version").fetchone()[0] != tables.VERSION:
                    index.tables.create()
        return index

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    # -------------------------------------------------------------- writing

    def upsert(self, path: Path, *, lowers: bool = False) -> None:
        """Index the entry that was just written to `path`.

        The file is read again inside the transaction, so that of two processes that wrote two versions the index ends with the
        one on disk. `lowers` is for the owner's logged act alone: without it the label in the index never falls.
        """
        with self.tables.transaction():
            self._put(self.store.load(path), lowers=lowers)

    def note(self, path: Path) -> None:
        """Bring the index in line with one file, whatever became of it."""
        with self.tables.transaction():
            survey.look(self.tables, self.store, path)

    def refresh(self, store: Store | None = None, *, full: bool = False) -> Report:
        """Notice what changed behind amem: see `survey.refresh`."""
        return survey.refresh(self.tables, store or self.store, self.root, full=full)

    def rebuild(self, store: Store | None = None) -> Report:
        """Build the index anew from the files: see `survey.rebuild`."""
        try:
            return survey.rebuild(self.tables, store or self.store, self.root)
        except database.Error as error:
            if isinstance(error, database.OperationalError):
                raise
        # The old index is damaged: what it knew beside the files is in the log of writes.
        self._connection.close()
        with survey.locked(self.root):
            survey.discard(self.root)
        fresh = Index.open(self.root, clock=self.clock)
        self._connection, self.tables = fresh._connection, fresh.tables
        return survey.rebuild(self.tables, store or self.store, self.root)

    def scrub(self) -> None:
        """Leave nothing in the file of what was taken out: no segment of words, no free page, no log of writes. Raises database.Error."""
        for table in self.tables.word_tables():
            self._connection.execute(f"insert into {table}({table}) values ('optimize')")
        self._connection.execute("vacuum")
        busy, *_ = self._connection.execute("pragma wal_checkpoint(truncate)").fetchone()
        if busy:
            raise UnavailableError("the index is in use, and keeps what was taken out until it is not", hint="give the command again")

    # -------------------------------------------------------------- reading

    def search(
        self,
        query: str,
        filter: Filter,
        *,
        type: Collection[EntryType] = (),
        tier: Tier | None = None,
        label: Label | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> Found:
        """The active entries that answer a question, best first: of these types, from this tier up, up to this label. Never an error."""
        asked = search.question(query)
        within = _within(filter, tier, label)
        if not asked.match:
            return Found(hits=(), total=0, more=False, mode="any")
        while True:
            with self.tables.snapshot():
                order = search.ranked(self._matches(asked.match, within, type), asked.stems)
                page = order.order[offset : offset + limit]
                shown = self._connection.execute(_SQL["hits"].format(rows=_marks(page)), page).fetchall()
            if all([self._fresh(_path(folder, name), seal) for *_, folder, name, seal in shown]) and len(shown) == len(page):
                break
        today, rows = self._today(), {row[0]: row for row in shown}
        hits = tuple(_hit(rows[n], rank, today) for rank, n in enumerate(page, start=offset))
        mode = "all" if order.whole else "any"
        return Found(hits=hits, total=len(order.order), more=len(order.order) > offset + len(page), mode=mode)

    def get(self, entry_id: str) -> Row | None:
        """The row of an entry as its file is now, or None when there is none. Its status and label are for the caller to judge."""
        while (found := self._one(entry_id)) is not None and not self._fresh(found[0].path, found[1]):
            continue
        return found[0] if found else None

    def read(self, entry_id: str) -> Read | None:
        """An entry with its body, its row in step with exactly these bytes, or None."""
        while (row := self.get(entry_id)) is not None:
            loaded: Loaded | None = None
            with suppress(NotFoundError, Malformed):
                loaded = self.store.load(self.root.record / row.path)
            if loaded and loaded.digest == row.digest:
                label, status, successor = row.classification, row.status, row.superseded_by
                return Read(row, replace(loaded.entry, classification=label, status=status, superseded_by=successor))
            self.note(self.root.record / row.path)
        return None

    def list(
        self,
        filter: Filter,
        *,
        type: Collection[EntryType] = (),
        tier: Tier | None = None,
        status: Status | None = Status.ACTIVE,
        author: str | None = None,
        session: str | None = None,
        task: str | None = None,
        due: bool = False,
        since: str | None = None,
        cites: str | None = None,
        sort: str = "written",
        limit: int = 50,
        offset: int = 0,
    ) -> Listing:
        """Rows in the order asked for: `written` (newest first) or `title`. `limit` 0 is all; `since` is an instant; status None is any.

        `cites`: only entries one of whose sources has this in it.
        """
        values: Any = []
        wheres = ["e.acl in ({acls})"]
        if type:
            wheres.append(f"e.type in ({','.join('?' * len(type))})")
            values += [item.value for item in type]
        for column, value in (("status", status), ("author", author), ("session", session), ("task", task)):
            if value is not None:
                wheres.append(f"e.{column} = ?")
                values.append(value)
        if since is not None:
            wheres.append("e.written_at >= ?")
            values.append(since)
        if cites is not None:
            wheres.append("instr(e.sources, ?)")
            values.append(cites)
        if due:
            today = self._today()
            wheres.append("e.status = 'active' and (e.review_by < ? or (e.review_by is null and e.tier = 0 and e.written_at < ?))")
            values += [today.date, today.raw_before]
        where = "where " + " and ".join(wheres)
        within = _within(filter, tier)
        while True:
            with self.tables.snapshot():
                mine = where.format(acls=",".join(map(str, self._acls(within))))
                total = self._connection.execute(f"select count(*) from entry e {mine}", values).fetchone()[0]
                rows = self._rows(f"{mine} order by {_ORDERS[sort]} limit {limit or -1} offset {offset}", values)
            if all([self._fresh(row.path, seal) for row, seal in rows.values()]):
                break
        return Listing(rows=tuple(row for row, _ in rows.values()), total=total, more=total > offset + len(rows))

    def resolve(self, entry_id: str) -> str | None:
        """The end of an entry's chain of successors, itself when it has none; None without such an entry, or when the chain is a circle."""
        row = self._connection.execute(_SQL["chain"], (entry_id,)).fetchone()
        return row[0] if row and self._one(entry_id) else None

    def counts(self, filter: Filter) -> dict[EntryType, int]:
        """How many active entries of each type the reader may read."""
        with self.tables.snapshot():
            acls = ",".join(map(str, self._acls(filter)))
            rows = self._connection.execute(
                f"select type, count(*) from entry where status = 'active' and acl in ({acls}) group by type"
            ).fetchall()
        return {EntryType(name): count for name, count in rows}

    def problems(self) -> tuple[Problem, ...]:
        """The files that are not served as they stand."""
        return tuple(Problem(*row) for row in self._connection.execute("select path, kind, why from problem order by path"))

    # -------------------------------------------------------------- within

    def _matches(self, match: str, filter: Filter, types: Collection[EntryType]) -> Sequence[tuple[int, float, int | None, int, str]]:
        """The best matches that the reader may read, asked in the way that costs least for how much that is."""
        live = self._connection.execute("select n, domain, label, tier, live from acl where live > 0").fetchall()
        mine = filter.admitted(live)
        if not mine:
            return []
        tables = dict(self._connection.execute("select domain, 'f' || n from words").fetchall())
        best: dict[int, float] = {}
        for domain in dict.fromkeys(row[1] for row in mine):
            here, there = ([row for row in rows if row[1] == domain] for rows in (mine, live))
            best |= self._best(tables[domain], match, here, there, types)
        if len(tables) > 1:
            best = dict(sorted(best.items(), key=lambda item: (item[1], item[0]))[: search.WINDOW])
        covers = self._connection.execute(_SQL["covers"].format(rows=_marks(best)), tuple(best)).fetchall()
        texts = {n: (series, length, said) for n, series, length, said in covers}
        return [(n, score, *texts[n]) for n, score in best.items()]

    def _best(
        self, words: str, match: str, mine: Sequence[tuple[Any, ...]], live: Sequence[tuple[Any, ...]], types: Collection[EntryType]
    ) -> dict[int, float]:
        """The scores of the best matches in a domain's table, best first; `mine` of the combinations that live there may be read."""
        acls = [row[0] for row in mine]
        sql = _SQL["ranked"].format(words=words)
        within: Sequence[int] = ()
        if len(mine) < len(live):
            if sum(row[4] for row in mine) >= WIDE_FROM * sum(row[4] for row in live):
                sql = _SQL["ranked_wide"].format(words=words, acls=",".join(map(str, acls)))
            else:
                within = acls
        asked = search.narrowed(match, within, [item.value for item in types])
        return dict(self._connection.execute(sql, (asked, search.WINDOW)).fetchall())

    def _acls(self, filter: Filter) -> tuple[int, ...]:
        return tuple(row[0] for row in filter.admitted(self._connection.execute("select n, domain, label, tier from acl").fetchall()))

    def _one(self, entry_id: str) -> tuple[Row, str] | None:
        return next(iter(self._rows("where e.id = ?", (entry_id,)).values()), None)

    def _rows(self, where: str, values: Collection[Any] = ()) -> dict[int, tuple[Row, str]]:
        """Rows with their seals, by number, in the order of the query."""
        today = self._today()
        found = self._connection.execute(f"{_SELECT} {where}", tuple(values))
        return {item[0]: (_row(item[1:], today), item[-1]) for item in found}

    def _fresh(self, path: str, seal: str) -> bool:
        """Say whether a file below `record/` is as it was indexed; if not, index it as it is."""
        try:
            if tables.seal(os.stat(f"{self._record}/{path}", follow_symlinks=False)) == seal:
                return True
        except (FileNotFoundError, NotADirectoryError):
            pass
        self.note(self.root.record / path)
        return False

    def _put(self, loaded: Loaded, *, lowers: bool = False) -> None:
        survey.put(self.tables, self.store, loaded, lowers=lowers)

    def _today(self) -> "_Today":
        at = self.clock()
        return _Today(clocks.stamp(at)[:10], clocks.stamp(at - timedelta(days=RAW_DUE_DAYS)))


class _Today(NamedTuple):
    date: str
    raw_before: str


def _within(filter: Filter, tier: Tier | None, label: Label | None = None) -> Filter:
    """What is asked for within what may be read."""
    if tier is None and label is None:
        return filter
    low = max(filter.min_tier, tier or filter.min_tier, key=lambda item: item.rank)
    return replace(filter, min_tier=low, max_label=lowest(filter.max_label, label or filter.max_label))


def _due(status: str, review_by: str | None, tier: int, written_at: str, today: _Today) -> bool:
    if status != "active":
        return False
    return review_by < today.date if review_by else tier == 0 and written_at < today.raw_before


def _row(item: tuple[Any, ...], today: _Today) -> Row:
    (
        entry_id, version, kind, title, summary, domain, label, tier, status, author, written_at, session, task, left_by, owner, review_by,
        sources, supersedes, superseded_by, basis, valid_from_at, valid_to_at, lineage, tokens, digest, folder, name, _,
    ) = item  # fmt: skip
    return Row(
        id=entry_id, version=version, type=EntryType(kind), title=title, summary=summary, domain=domain, classification=_LABELS[label],
        tier=_TIERS[tier], status=Status(status), author=author, written_at=written_at, session=session, task=task, left_by=left_by,
        owner=owner, review_by=review_by, sources=_texts(sources), supersedes=_texts(supersedes), superseded_by=superseded_by, basis=basis,
        valid_from_at=valid_from_at, valid_to_at=valid_to_at, lineage=None if lineage is None else _TIERS[lineage],
        due=_due(status, review_by, tier, written_at, today), tokens=tokens, path=_path(folder, name),
        digest=digest,
    )  # fmt: skip


def _texts(column: str) -> tuple[str, ...]:
    return tuple(json.loads(column)) if column != "[]" else ()


def _hit(item: tuple[Any, ...], rank: int, today: _Today) -> Hit:
    _, entry_id, kind, title, summary, domain, label, tier, lineage, status, review_by, written_at, tokens, *_ = item
    return Hit(
        id=entry_id, type=EntryType(kind), title=title, summary=summary, domain=domain, classification=_LABELS[label], tier=_TIERS[tier],
        lineage=None if lineage is None else _TIERS[lineage], due=_due(status, review_by, tier, written_at, today),
        score=round(10 / (10 + rank), 2), tokens=tokens,
    )  # fmt: skip


def _marks(values: Collection[object]) -> str:
    """A mark for each value: a statement whose numbers stand in its text would be read anew each time."""
    return ",".join("?" * len(values))


def _path(folder: str, name: str) -> str:
    """A path below `record/`."""
    return name if folder == "." else f"{folder}/{name}"

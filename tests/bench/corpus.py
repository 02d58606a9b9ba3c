"""What the search benchmarks share: real text, entries on disk, and the engines they are compared with."""

import ast
import importlib
import itertools
import random
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from amem.model.entry import Entry, EntryType, Status, Tier
from amem.model.ids import draw
from amem.model.label import Label
from amem.record import markdown
from amem.settings.database import Connection, connect
from amem.settings.root import Root

PEERS = Path(__file__).resolve().parents[2] / "build" / "peers"
TEXTS = ("/usr/share/doc", "/usr/share/vim", "/usr/share/cmake-3.25/Help", "/usr/lib/node_modules", sys.base_prefix)
"""Where a machine keeps prose: manuals, read-me files, changelogs, the documentation of Python packages."""


class Section(NamedTuple):
    """A piece of a document."""

    title: str
    body: str


def sections(wanted: int) -> list[Section]:
    """As many different real sections as the machine has, up to `wanted`, in a fixed order; docstrings where there is hardly any prose."""
    found: dict[str, str] = {}
    for source, enough in ((_prose, wanted), (_docstrings, min(wanted, 2_000))):
        for title, body in source():
            if len(found) >= enough:
                break
            if 150 <= len(body) <= 12_000:
                found.setdefault(body, title)
    return [Section(title, body) for body, title in found.items()]


def mixed(real: Sequence[Section], count: int, chance: random.Random) -> Iterator[Section]:
    """As many sections as asked for: the real ones, then halves of two real ones joined."""
    pool = list(real)
    chance.shuffle(pool)
    yield from pool[:count]
    for _ in range(count - len(pool)):
        first, second = chance.choice(pool), chance.choice(pool)
        one, two = first.body.split(". "), second.body.split(". ")
        yield Section(first.title, ". ".join(one[: len(one) // 2] + two[len(two) // 2 :]))


def made(title: str, body: str, domain: str = "dom-me", label: Label = Label.INTERNAL, tier: Tier = Tier.CURATED, **fields: Any) -> Entry:
    """An entry with a text; no summary, as none of the peers has one."""
    return Entry(
        id=draw("entry", domain), version=1, type=EntryType.FACT, title=title, summary="", domain=domain, classification=label, tier=tier,
        status=Status.ACTIVE, author="human:bench:owner", written_at="2026-11-30T07:25:57.123Z", body=body, **fields,
    )  # fmt: skip


def write(root: Root, entries: Iterable[Entry]) -> None:
    """Lay entries down as files, without waiting for the disk: how fast files are written is not what is measured."""
    for entry in entries:
        folder = root.record / entry.domain / "2026" / "11"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{entry.id}.md").write_bytes(markdown.format(entry))


class Bare:
    """FTS5 as one would write it in an afternoon: SQLite's own settings, two columns, OR, `bm25()`, the first ten, no filter."""

    def __init__(self, folder: Path, tokenizer: str = "porter unicode61 remove_diacritics 2", weights: str = "10, 1") -> None:
        self.db: Connection = connect(folder / "bare.sqlite", durable=True)
        self.weights = weights
        self.db.execute(f"create virtual table f using fts5(title, body, content='', contentless_delete=1, tokenize='{tokenizer}')")

    def fill(self, items: Iterable[Section]) -> None:
        """Index many in one transaction."""
        self.db.execute("begin immediate")
        self.db.executemany("insert into f (title, body) values (?, ?)", items)
        self.db.execute("commit")

    def add(self, item: Section) -> None:
        """Index one, in a transaction of its own."""
        self.db.execute("begin immediate")
        self.db.execute("insert into f (title, body) values (?, ?)", item)
        self.db.execute("commit")

    def search(self, words: Sequence[str]) -> list[int]:
        """The numbers of the best ten, from 0."""
        match = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
        sql = f"select rowid - 1 from f where f match ? order by bm25(f, {self.weights}) limit 10"
        return [row[0] for row in self.db.execute(sql, (match,))]


class Tantivy:
    """tantivy, unfiltered, where `make bench-peers` installed it for this Python."""

    def __init__(self, items: Sequence[Section]) -> None:
        place = PEERS / "tantivy" / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        if place.is_dir():
            sys.path.append(str(place))
        t = importlib.import_module("tantivy")  # ImportError: the caller says that it is absent
        builder = t.SchemaBuilder().add_unsigned_field("n", stored=True)
        for name in ("title", "body"):
            builder.add_text_field(name, tokenizer_name="en_stem")
        self.index = t.Index(builder.build())
        writer = self.index.writer(heap_size=100_000_000, num_threads=1)
        for n, (title, body) in enumerate(items):
            writer.add_document(t.Document(n=n, title=title, body=body))
        writer.commit()
        self.index.reload()
        self.searcher = self.index.searcher()

    def search(self, words: Sequence[str]) -> list[int]:
        """The numbers of the best ten."""
        query = self.index.parse_query(" ".join(f'"{word}"' for word in words), ["title", "body"], field_boosts={"title": 10.0})
        return [self.searcher.doc(at)["n"][0] for _, at in self.searcher.search(query, 10).hits]


def _prose() -> Iterator[Section]:
    for folder in map(Path, TEXTS):
        for path in sorted(itertools.chain.from_iterable(folder.rglob(f"*.{end}") for end in ("md", "rst", "txt"))):
            try:
                text = path.read_text("utf-8") if path.stat().st_size < 400_000 else ""
            except (OSError, UnicodeDecodeError):
                continue
            text = re.sub(r"(?m)^(\S[^\n]{2,80})\n([=\-~^\"*+#])\2{2,}\s*$", r"# \1", text)
            for part in map(str.strip, re.split(r"(?m)^(?=#{1,4} )", text)):
                yield Section(part.split("\n", 1)[0].strip("# `*")[:120], part)


def _docstrings() -> Iterator[Section]:
    for path in sorted(Path(sys.base_prefix).rglob("*.py")):
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (text := ast.get_docstring(node)):
                yield Section(f"{path.stem} {getattr(node, 'name', '')}".strip(), text)

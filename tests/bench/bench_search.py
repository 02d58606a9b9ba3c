"""P6: search over real sections for readers of little, much and all, beside unfiltered FTS5; building and one write.

    python -m tests.bench.bench_search [SIZE …]      (1000 10000 100000)

Each entry belongs to one of 8 domains, 3 labels and 3 tiers. The narrow reader may read 11 % of them, the wide one 75 %, the third all.
A question is two to four words of one entry the reader may read. Ours is the whole of `Index.search`: the read filter, the
recipe (prefixes, 100 matches reordered), ten rows and a stat of each of their ten files. Bare is FTS5 alone: the same
words, no filter, the first ten. Rounds are interleaved; a figure is the median round's. Building is from the files, read and checked,
to the whole index in its place. Where the goal of 15,000 a second is missed, the row beside says what the same work costs FTS5 alone.
"""

import random
import re
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from amem.model.entry import Entry, Tier
from amem.model.label import Label
from amem.record.index import Index
from amem.record.rows import Filter
from amem.record.search import STOP
from amem.settings.root import Root
from tests.bench.corpus import Bare, Section, Tantivy, made, mixed, sections, write
from tests.bench.rows import Row, table

SIZES = (1_000, 10_000, 100_000)
QUESTIONS, ROUNDS = 80, 3
READERS = {
    "narrow": (Filter(domains=("dom-b1", "dom-b4"), max_label=Label.INTERNAL, min_tier=Tier.CURATED), 0.8),
    "wide": (Filter(domains=tuple(f"dom-b{n}" for n in range(6)), max_label=Label.RESTRICTED), 1.5),
    "all": (Filter(max_label=Label.RESTRICTED), 1.1),
}
"""Each reader's filter, and how many times the unfiltered a search may take."""


def run(sizes: Sequence[int] = SIZES) -> list[Row]:
    """Build, ask and add at each size."""
    real = sections(max(sizes))
    rows: list[Row] = []
    p99: dict[int, float] = {}
    for size in sizes:
        chance = random.Random(size)
        items = list(islice(mixed(real, size, chance), size))
        entries = [
            made(title, body, f"dom-b{chance.randrange(8)}", chance.choice(list(Label)), chance.choice(list(Tier))) for title, body in items
        ]
        print(f"P6 {size} sections, {min(1.0, len(real) / size):.0%} real", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            found, p99[size] = _measured(Root(Path(folder)), items, entries, chance)
            rows += found
    if 10_000 in p99 and 100_000 in p99:
        growth = p99[100_000] / p99[10_000]
        rows.append(Row("P6", "p99 all, 100k to 10k", p99[100_000], "10k", p99[10_000], "ms", "<= 15 x", growth <= 15))
    return rows


def _measured(root: Root, items: Sequence[Section], entries: Sequence[Entry], chance: random.Random) -> tuple[list[Row], float]:
    size = len(items)
    name = f"{size // 1000}k"
    write(root, entries)
    index = Index.open(root)
    began = time.perf_counter()
    assert index.rebuild().entries == size
    rebuilt = size / (time.perf_counter() - began)
    bare = Bare(root.path)
    began = time.perf_counter()
    bare.fill(items)
    filled = size / (time.perf_counter() - began)
    rows = [Row("P6", f"{name} index built", rebuilt, "bare FTS5", filled, "1/s", ">= 15000/s", rebuilt >= 15_000)]
    engines: dict[str, Callable[[Sequence[str], Filter], Any]] = {
        "ours": lambda words, reader: index.search(" ".join(words), reader).hits,
        "bare": lambda words, reader: bare.search(words),
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tantivy = Tantivy(items)
        engines["tantivy"] = lambda words, reader: tantivy.search(words)
    except ImportError:
        pass
    tail = 0.0
    for who, (reader, goal) in READERS.items():
        pool = [entry for entry in entries if reader.admits(entry.domain, entry.classification, entry.tier)]
        asked = _questions(pool, chance)
        times: dict[str, list[list[float]]] = {engine: [] for engine in engines}
        for _ in range(ROUNDS):
            for engine, search in engines.items():
                times[engine].append([_timed(search, words, reader) for words in asked])
        middle = {engine: sorted(rounds, key=statistics.median)[ROUNDS // 2] for engine, rounds in times.items()}
        ours, peer = statistics.median(middle["ours"]), statistics.median(middle["bare"])
        rows.append(Row("P6", f"{name} search p50, {who}", ours, "bare FTS5", peer, "ms", f"<= {goal} x", ours <= goal * peer))
        if who == "all":
            tail = _p99(middle["ours"])
            rows.append(Row("P6", f"{name} search p99, all", tail, "bare FTS5", _p99(middle["bare"]), "ms", "-", None))
            fast = statistics.median(middle["tantivy"]) if "tantivy" in middle else None
            rows.append(Row("P6", f"{name} search p50, all", ours, "tantivy", fast, "ms", "-", None))
    added: list[tuple[float, float]] = []
    for item in items[:40]:
        entry = made(*item, domain="dom-b1")
        path = index.store.put(entry)
        added.append((_timed(lambda: index.upsert(path)), _timed(lambda: bare.add(item))))  # noqa: B023
    one, plain = (statistics.median(column) for column in zip(*added, strict=True))
    rows.append(Row("P6", f"{name} one write indexed", one, "bare insert", plain, "ms", "<= 2 x", one <= 2 * plain))
    index.close()
    return rows, tail


def _questions(pool: Sequence[Entry], chance: random.Random) -> list[list[str]]:
    found: list[list[str]] = []
    while len(found) < QUESTIONS:
        body = chance.choice(pool).body.lower()
        words = [word for word in dict.fromkeys(re.findall(r"[a-z]{3,}", body)) if word not in STOP]
        count = chance.choice((2, 3, 4))
        if len(words) > count:
            found.append(chance.sample(words, count))
    return found


def _timed(call: Callable[..., Any], *arguments: Any) -> float:
    began = time.perf_counter()
    call(*arguments)
    return (time.perf_counter() - began) * 1000


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))]


if __name__ == "__main__":
    print(table(run([int(size) for size in sys.argv[1:]] or SIZES)))

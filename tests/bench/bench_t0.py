"""P11: what the opening page costs as the record grows: its tokens beside the corpus, its time beside a bare list of ten.

    python -m tests.bench.bench_t0

The record is made of real sections: the Markdown and reStructuredText of installed packages and of /usr/share/doc, under
1k, 10k and (with AMEM_BENCH_LARGE in the environment) 100k entries. Files and index are made by the record's own code.
"""

import itertools
import os
import random
import re
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from amem.memory.session import Memory, agent_session, open_memory
from amem.memory.t0 import BUDGET_TOKENS, Page, t0
from amem.model import ids
from amem.model.entry import Entry, EntryType, Status, Tier, tokens
from amem.model.label import Label
from amem.record.rows import Filter
from amem.settings import grants
from amem.settings.root import Root
from tests.bench.rows import Row, table

SIZES = (1_000, 10_000, *((100_000,) if os.environ.get("AMEM_BENCH_LARGE") else ()))
ROUNDS = 15
GRANTS = """
owner = "human:bench:owner"
[grants.dom-me.principals."agent:*"]
read = "internal"
write = true
"""
_TYPES = (EntryType.FACT, EntryType.DECISION, EntryType.CONVENTION, EntryType.METHOD, EntryType.QUESTION, EntryType.HANDOFF)


def sections() -> Iterator[tuple[str, str]]:
    """Title and text of sections, over and over when there are too few."""
    found = []
    for folder in (Path(sysconfig.get_path("purelib")), Path("/usr/share/doc")):
        for path in itertools.chain(folder.rglob("*.md"), folder.rglob("*.rst"), folder.rglob("METADATA"), folder.rglob("README*")):
            if path.is_file() and path.suffix != ".gz":
                text = path.read_text("utf-8", "replace")
                parts = re.split(r"\n(?=#{1,4} )|\n(?=[^\n]+\n[=~^-]{4,}\n)", text)
                found += [(part.strip().splitlines()[0].strip("# ")[:120], part[:4000]) for part in parts if len(part.strip()) > 80]
    for turn in itertools.count():
        for title, text in found:
            yield (f"{title or 'untitled'} ({turn})", text)


def record(root: Root, size: int) -> None:
    """Write a record of `size` entries as files."""
    from amem.record import markdown

    draw = random.Random(7)
    for n, (title, text) in zip(range(size), sections(), strict=False):
        day = f"{2024 + n % 2}-{1 + n % 12:02d}-{1 + n % 28:02d}"
        entry = Entry(
            id=ids.draw("entry", "dom-me"), version=1, type=draw.choices(_TYPES, (60, 10, 5, 10, 5, 10))[0],
            title=re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]", " ", title), summary=" ".join(text.split())[:240], domain="dom-me",
            classification=draw.choice((Label.PUBLIC, Label.INTERNAL, Label.RESTRICTED)),
            tier=draw.choices((Tier.RAW, Tier.CURATED, Tier.VERIFIED), (90, 8, 2))[0], status=Status.ACTIVE,
            author="agent:bench", written_at=f"{day}T12:00:00.000Z", body=text.replace("\0", ""),
        )  # fmt: skip
        path = root.record / "dom-me" / day[:4] / day[5:7] / f"{entry.id}.md"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_bytes(markdown.format(entry))


def run() -> list[Row]:
    """Measure; two rows a size, and how the time grows."""
    rows, times = [], []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            root = Root(Path(folder))
            root.grants.write_text(GRANTS)
            record(root, size)
            memory = open_memory(root, grants.load(root.grants))
            page, page_ms, list_ms, corpus = _measure(memory)
            memory.close()
        times.append(page_ms)
        rows.append(Row("P11", f"t0 tokens, {size:,}", page.tokens, "the corpus", corpus, "tokens", "< 2,000", page.tokens < BUDGET_TOKENS))
        rows.append(Row("P11", f"t0 time, {size:,}", page_ms, "list of ten", list_ms, "ms", "-", None))
    rows.append(Row("P11", f"t0 time, {SIZES[-1] // SIZES[0]} x the entries", times[-1], f"at {SIZES[0]:,}", times[0], "ms", "-", None))
    return rows


def _measure(memory: Memory) -> tuple[Page, float, float, int]:
    session = agent_session(memory, id=ids.draw("session"), principal="agent:bench", domain="dom-me")
    filter = Filter(domains=("dom-me",), max_label=Label.INTERNAL)
    page = t0(memory, session)
    assert isinstance(page, Page)
    pages, lists = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        t0(memory, session)
        pages.append(time.perf_counter() - start)
        start = time.perf_counter()
        memory.index.list(filter, limit=10)
        lists.append(time.perf_counter() - start)
    corpus = sum(tokens(path.read_text()) for path, _ in memory.store.walk())
    return page, statistics.median(pages) * 1e3, statistics.median(lists) * 1e3, corpus


if __name__ == "__main__":
    print(table(run()))

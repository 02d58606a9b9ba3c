"""P7: how well a search finds the entries that answer a question, on five conversations (LoCoMo); no model judges anything.

    python -m tests.bench.bench_retrieval

An entry is a turn or a session; a record is one conversation ("alone") or all five ("one record"). `with order`: each turn
names its place in its session (`transcript:…#n`). Ours goes through files, `rebuild` and `Index.search`. Figures are recall
at 5 and 10 (the share of a question's evidence among the first hits) and the mean reciprocal rank, beside the best peer's. The
goals are for text that nobody tuned on; these five were looked at, so a goal only just reached here may be missed there. Peers:
damped word counting, as a good `grep` would, plain FTS5 with OR, tantivy; basic-memory was measured elsewhere, on five others:
.69/.73/.65 (session, one record).
"""

import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from json import loads
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from amem.model.label import Label
from amem.record.index import Index
from amem.record.rows import Filter
from amem.record.search import content
from amem.settings.root import Root
from tests.bench.corpus import Bare, Section, Tantivy, made, write
from tests.bench.rows import Row, table

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "locomo-dev.json"
EVERYTHING = Filter(max_label=Label.RESTRICTED)
NAMES = ("R@5", "R@10", "MRR")
GOALS = {
    ("session", "one record"): (0.86, 0.91, 0.79),
    ("session", "alone"): (0.82, 0.91, 0.78),
    ("turn", "alone"): (0.56, 0.64, 0.49),
    ("turn with order", "alone"): (0.64, 0.72, 0.55),
}


class Part(NamedTuple):
    """A turn or a session."""

    id: str
    text: Section
    source: str | None


class Question(NamedTuple):
    """A question, and the parts that answer it."""

    text: str
    evidence: frozenset[str]


Search = Callable[[str], Sequence[int]]
Engine = Callable[[Sequence[Part], Path], Search]


def run() -> list[Row]:
    """Each grain and record, ours beside the peers."""
    if not DATA.exists():
        print("P7 skipped: the conversations are not on this machine", file=sys.stderr)
        return []
    samples = loads(DATA.read_text())
    rows: list[Row] = []
    for (grain, record), goals in GOALS.items():
        alone = [(list(_parts(sample, grain)), sample) for sample in samples]
        records = alone if record == "alone" else [([part for parts, _ in alone for part in parts], None)]
        corpora = [(parts, _questions(parts, samples if sample is None else [sample], grain)) for parts, sample in records]
        ours = _score(_ours, corpora)
        peers = {name: _score(engine, corpora) for name, engine in PEERS.items()}
        best = {name: figures for name, figures in peers.items() if figures}
        for at, measure in enumerate(NAMES):
            assert ours is not None
            name, figure = max(((name, figures[at]) for name, figures in best.items()), key=lambda item: item[1])
            rows.append(
                Row("P7", f"{grain}, {record} {measure}"[:40], ours[at], name, figure, "", f">= {goals[at]}", ours[at] >= goals[at])
            )
    return rows


def _score(engine: Engine, corpora: Sequence[tuple[list[Part], list[Question]]]) -> tuple[float, ...] | None:
    """The three measures over all questions; None when the engine is absent."""
    figures: list[tuple[float, float, float]] = []
    for parts, questions in corpora:
        with tempfile.TemporaryDirectory() as folder:
            try:
                search = engine(parts, Path(folder))
            except ImportError:
                return None
            for question in questions:
                found = [parts[n].id for n in search(question.text)]
                ranks = [rank for rank, part in enumerate(found, start=1) if part in question.evidence]
                count = len(question.evidence)
                figures.append((sum(rank <= 5 for rank in ranks) / count, len(ranks) / count, 1 / ranks[0] if ranks else 0.0))
    return tuple(fmean(column) for column in zip(*figures, strict=True))


def _ours(parts: Sequence[Part], folder: Path) -> Search:
    root = Root(folder)
    entries = [made(part.text.title, part.text.body, sources=(part.source,) if part.source else ()) for part in parts]
    write(root, entries)
    index = Index.open(root)
    index.rebuild()
    number = {entry.id: n for n, entry in enumerate(entries)}
    return lambda question: [number[hit.id] for hit in index.search(question, EVERYTHING).hits]


def _grep(parts: Sequence[Part], folder: Path) -> Search:
    texts = [f"{part.text.title}\n{part.text.body}".lower() for part in parts]

    def search(question: str) -> list[int]:
        wanted = content(question)
        scores = []
        for n, text in enumerate(texts):
            if counts := [count for word in wanted if (count := text.count(word))]:
                scores.append((-sum(1 + math.log(count) for count in counts) * (len(counts) / len(wanted)) ** 2, n))
        return [n for _, n in sorted(scores)[:10]]

    return search


def _bare(parts: Sequence[Part], folder: Path) -> Search:
    bare = Bare(folder, "unicode61", "1, 1")
    bare.fill(part.text for part in parts)
    return lambda question: bare.search(re.findall(r"\w+", question))


def _tantivy(parts: Sequence[Part], folder: Path) -> Search:
    tantivy = Tantivy([part.text for part in parts])
    return lambda question: tantivy.search(content(question))


PEERS: dict[str, Engine] = {"grep": _grep, "FTS5": _bare, "tantivy": _tantivy}


def _parts(sample: dict, grain: str) -> Iterator[Part]:  # type: ignore[type-arg]
    name = sample["sample"]
    for session in sample["sessions"]:
        number, day = session["session"], session["date_time"].split(" on ")[-1]
        if grain == "session":
            speakers = " and ".join(sorted({turn["speaker"] for turn in session["turns"]}))
            body = "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in session["turns"])
            yield Part(f"{name}/D{number}", Section(f"{speakers}, {day}", body), None)
            continue
        for n, turn in enumerate(session["turns"], start=1):
            source = f"transcript:{name}-{number}#{n}" if grain == "turn with order" else None
            yield Part(f"{name}/{turn['id']}", Section(f"{turn['speaker']}, {day}", turn["text"]), source)


def _questions(parts: Sequence[Part], samples: Sequence[dict], grain: str) -> list[Question]:  # type: ignore[type-arg]
    known = {part.id for part in parts}
    found = []
    for sample in samples:
        for asked in sample["qa"]:
            ids = re.findall(r"D:?(\d+):(\d+)", " ".join(asked["evidence"]))  # several in one text, odd zeros: `D8:6; D9:017`
            turns = {f"D{int(session)}" if grain == "session" else f"D{int(session)}:{int(turn)}" for session, turn in ids}
            if evidence := {f"{sample['sample']}/{turn}" for turn in turns} & known:
                found.append(Question(asked["question"], frozenset(evidence)))
    return found


if __name__ == "__main__":
    print(table(run()))

"""P10: what the scan finds, what it flags wrongly, and its time per KB, against agent-memory-guard and detect-secrets.

    python -m tests.bench.bench_scan

Rows: the development set (external, read in place), and this project's own documents as prose that quotes no attack. Texts for
timing are the rows, half of them attacks, joined to 1, 10, 100 and 1,000 KB, and the documents; in interleaved rounds, processor
time, the best of several. Corpora that nobody here has seen are judged with the same function by other drivers.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from amem.policy.scan import scan
from tests.bench.rows import Row, table
from tests.policy.test_scan import HARD
from tests.shared import _ROOT as SHARED

PROJECT = Path(__file__).resolve().parents[2]
PEER = "memory-guard"
ROUNDS = 8
QUOTING = (
    "benign_security_discussion", "detector_code_fixture", "docs_code_comment", "owasp_ncsc_guidance", "quoted_injection_example",
    "research_blog_excerpt", "security_changelog", "security_training_material",
)  # fmt: skip
"""Classes of benign rows that quote an attack: held as a class of their own, so they are no false positives."""


def peer() -> Callable[[str], Any] | None:
    """agent-memory-guard's own scan, where `make bench-peers` put it."""
    for found in sorted((PROJECT / "build" / "peers" / "scanners" / "lib").glob("python*/site-packages")):
        sys.path.append(str(found))
    try:
        from agent_memory_guard.scan import scan as guard  # type: ignore[import-not-found]
    except ImportError:
        return None
    return lambda text: guard(text).threats


def share(found: Callable[[str], Any], texts: list[str]) -> float:
    """The share of texts, in percent, in which something is found."""
    return 100 * sum(bool(found(text)) for text in texts) / len(texts)


def us_per_kb(found: Callable[[str], Any], text: str) -> float:
    """Microseconds of processor time for a KB of a text."""
    repeats = max(1, 20_000 // len(text))
    start = time.process_time()
    for _ in range(repeats):
        found(text)
    return (time.process_time() - start) / repeats * 1e6 / (len(text.encode()) / 1024)


def once(name: str) -> float:
    """Microseconds of processor time for a KB of the documents, each read once: by a process that has seen none of their words."""
    found = scan if name == "ours" else peer()
    assert found is not None
    parts = _prose()
    found("It was read.")
    start = time.process_time()
    for part in parts:
        found(part)
    return (time.process_time() - start) * 1e6 / (sum(len(part.encode()) for part in parts) / 1024)


def _in_a_new_process(name: str) -> float:
    told = [subprocess.check_output([sys.executable, "-m", "tests.bench.bench_scan", name], text=True, cwd=PROJECT) for _ in range(3)]
    return min(map(float, told))


def _prose() -> list[str]:
    return [
        part for path in sorted(PROJECT.glob("**/*.md")) if "build" not in path.parts and ".venv" not in path.parts for part in _parts(path)
    ]


def run() -> list[Row]:
    """Measure; recall and false positives first, then time by size."""
    other = peer()
    rows: list[Row] = []

    def add(what: str, ours: float, theirs: float | None, unit: str, goal: str, holds: bool | None) -> None:
        rows.append(Row("P10", what, ours, PEER, theirs, unit, goal, holds))

    prose = _prose()
    flagged = share(scan, prose)
    add(f"documents, {len(prose)} parts", flagged, share(other, prose) if other else None, "% flagged", "<= 0.5 %", flagged <= 0.5)
    source = SHARED / "data" / "injection-dev.jsonl"
    if source.exists():
        dev = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
        attacks = [row["text"] for row in dev if row["label"] == "attack"]
        benign = [row["text"] for row in dev if row["label"] != "attack" and row["class"] not in QUOTING]
        recall, wrong = share(scan, attacks), share(scan, benign)
        add("dev recall", recall, share(other, attacks) if other else None, "% found", ">= 90 %", recall >= 90)
        add("dev benign, quoting none", wrong, share(other, benign) if other else None, "% flagged", "<= 2 %", wrong <= 2)
        texts = [row["text"] for row in dev]
    else:
        texts = prose
    joined = "\n\n".join(texts)
    while len(joined) < 1 << 20:
        joined += "\n\n" + joined
    sizes = {f"{n} KB": joined[: n * 1024] for n in (1, 10, 100, 1000)}
    sizes |= {f"{n} KB of documents": "\n\n".join(prose)[: n * 1024] for n in (1, 10)}
    best: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        for size, text in sizes.items():
            for name, found in (("ours", scan), ("peer", other)):
                if found is not None:
                    best[name, size] = min(best.get((name, size), float("inf")), us_per_kb(found, text))
    for size in sizes:
        ours, theirs = best["ours", size], best.get(("peer", size))
        add(f"time at {size}", ours, theirs, "us/KB", "<= 1 x", None if theirs is None else ours <= theirs)
    add("time of documents in a new process", _in_a_new_process("ours"), _in_a_new_process("peer") if other else None, "us/KB", "", None)
    growth = best["ours", "1000 KB"] / best["ours", "100 KB"]
    add("growth, 100 KB to 1 MB", growth, None, "x", "<= 1.2 x", growth <= 1.2)
    worst = max(_growth(unit) for unit in HARD)
    add(f"growth, 20 to 200 KB, worst of {len(HARD)} hard texts", worst, None, "x", "<= 2 x", worst <= 2)
    return rows


def _growth(unit: str) -> float:
    """How many times as much a KB of a text of one repeated unit costs in 200 KB as in 20; what is not linear costs ten times."""
    short, long = ((unit * size)[:size] for size in (20_000, 200_000))
    us_per_kb(scan, short)
    return us_per_kb(scan, long) / us_per_kb(scan, short)


def _parts(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return [part for part in text.split("\n## ") if part.strip()]


if __name__ == "__main__":
    print(once(sys.argv[1]) if len(sys.argv) > 1 else table(run()))

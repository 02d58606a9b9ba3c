#!/usr/bin/env python3
"""Run the benchmarks of tests/bench and print one table: ours, peer, ratio, goal.

    scripts/bench.py [--only P4,P6]        (a number of the budget, or a module's name without bench_)

Each `tests/bench/bench_*.py` runs in a process of its own, one after another, through its `run() -> list[Row]`; one that
fails is reported as failed and the others go on. Progress goes to stderr, the table to stdout, the figures with the
machine they were taken on to bench/out/<date>.json, where those of benchmarks not run again that day stay. Goals gate
nothing: the exit code is 1 only when a benchmark failed.
"""

import argparse
import ast
import compileall
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = ("amem", "egress", "harnesses", "ledger", "policy", "sandbox")
OUT = PROJECT / "bench" / "out"
CHILD = """
import importlib, json, sys
rows = importlib.import_module(sys.argv[1]).run()
with open(sys.argv[2], "w") as file:
    json.dump([row._asdict() for row in rows], file)
"""


class Bench(NamedTuple):
    """One module: its name without `bench_`, and the numbers of the budget that its docstring's first line names."""

    name: str
    numbers: tuple[str, ...]


class Outcome(NamedTuple):
    """The rows of a benchmark, or why there are none."""

    rows: list[dict[str, Any]]
    failed: str | None


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the benchmarks and print one table.")
    parser.add_argument("--only", default="", help="numbers or names, with commas between (P4,P6 or policy)")
    wanted = {word.strip().lower() for word in parser.parse_args().only.split(",") if word.strip()}
    known = benches()
    unknown = wanted - {word.lower() for bench in known for word in (bench.name, *bench.numbers)}
    if unknown:
        there = ", ".join(f"{bench.name} ({' '.join(bench.numbers) or '-'})" for bench in known)
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are: {there}")
    compile_packages()
    outcomes: dict[str, Outcome] = {}
    for bench in known:
        if not wanted or wanted & {word.lower() for word in (bench.name, *bench.numbers)}:
            note(f"{' '.join(bench.numbers) or bench.name}: {bench.name} …")
            began = time.monotonic()
            outcomes[bench.name] = run(bench)
            note(f"  {outcomes[bench.name].failed or 'done'} ({time.monotonic() - began:.0f} s)")
    sys.path.insert(0, str(PROJECT))
    from tests.bench.rows import Row, table

    rows = [Row(**row) for outcome in outcomes.values() for row in outcome.rows]
    if rows:
        print(table(sorted(rows, key=lambda row: (int(re.sub(r"\D", "", row.bench) or 0), row.bench))))
    failures = {name: outcome.failed for name, outcome in outcomes.items() if outcome.failed}
    for name, why in failures.items():
        print(f"failed: {name}: {why}")
    print(f"written to {keep(outcomes).relative_to(PROJECT)}", file=sys.stderr)
    return 1 if failures else 0


def compile_packages() -> None:
    """As an installer leaves them: with PYTHONDONTWRITEBYTECODE set, each start would compile what it imports."""
    for name in PACKAGES:
        if (PROJECT / name).is_dir() and not compileall.compile_dir(PROJECT / name, quiet=1):
            raise SystemExit(f"a module of {name} does not compile")


def benches() -> list[Bench]:
    """The modules there are; read, not imported."""
    found = []
    for path in sorted((PROJECT / "tests" / "bench").glob("bench_*.py")):
        first = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")[0]
        found.append(Bench(path.stem.removeprefix("bench_"), tuple(re.findall(r"\bP\d+\b", first))))
    return sorted(found, key=lambda bench: [int(number[1:]) for number in bench.numbers] or [99])


def run(bench: Bench) -> Outcome:
    """Run one in a child: what it leaks, breaks or imports is gone with it."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "rows.json")
        command = [sys.executable, "-c", CHILD, f"tests.bench.bench_{bench.name}", str(result)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))}
        last = ""
        with subprocess.Popen(
            command,
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as child:
            assert child.stderr is not None
            for line in child.stderr:
                sys.stderr.write(line)
                last = line.strip() or last
        if child.returncode == 0:
            return Outcome(json.loads(result.read_text()), None)
        return Outcome([], f"exit {child.returncode}: {last}"[:300])


def keep(outcomes: dict[str, Outcome]) -> Path:
    """Write the day's file, with what was not run again as it was."""
    now = datetime.now(UTC)
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{now.date()}.json"
    day: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    day["machine"] = machine()
    day.setdefault("benchmarks", {}).update(
        {
            name: {"at": now.isoformat(timespec="seconds"), **({"failed": outcome.failed} if outcome.failed else {"rows": outcome.rows})}
            for name, outcome in outcomes.items()
        }
    )
    half = path.with_suffix(".part")
    half.write_text(json.dumps(day, indent=1) + "\n")
    half.replace(path)
    return path


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    cpu = next(
        (line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), ""
    )
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=PROJECT, capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "cpu": cpu, "cores": os.cpu_count(), "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(), "python": platform.python_version(), "commit": commit,
    }  # fmt: skip


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""P2: how long a command takes to start, beside the bare interpreter and `git status`, measured in turn in one run."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.rows import Row

PROJECT = Path(__file__).resolve().parents[2]
ROUNDS = 15
ENTRIES, TASKS = 10_000, 50
GOALS = {"--version": 1.5, "--help": 4.0, "task list": 5.0}
"""At most so many times `python -c pass`; a search has no goal and is shown."""


def run() -> list[Row]:
    """Measure each command and its peers, interleaved."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        program = str(Path(sys.executable).with_name("amem"))  # as a person types it
        amem = [program, "--root", str(root)]
        _seed(amem, root)
        commands = {
            "pass": [sys.executable, "-c", "pass"],
            "git status": ["git", "-C", str(PROJECT), "status", "--short"],
            "--version": [program, "--version"],
            "--help": [program, "--help"],
            "task list": [*amem, "task", "list"],
            "search": [*amem, "search", "label ceiling"],
            "list": [*amem, "list"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for round_ in range(ROUNDS + 1):
            for name, command in commands.items():
                began = time.perf_counter()
                subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
                if round_:  # the first round fills the caches
                    times[name].append((time.perf_counter() - began) * 1000)
    middle = {name: statistics.median(found) for name, found in times.items()}
    rows = []
    for name in ("--version", "--help", "task list", "search", "list"):
        goal = GOALS.get(name)
        holds = None if goal is None else middle[name] <= goal * middle["pass"]
        shown = f"amem {name}" + (f", {ENTRIES:,} entries" if name in ("search", "list") else "")
        rows.append(Row("P2", shown, middle[name], "python -c pass", middle["pass"], "ms", f"<= {goal} x" if goal else "shown", holds))
    rows.append(Row("P2", "amem task list", middle["task list"], "git status", middle["git status"], "ms", "shown", None))
    return rows


def _seed(amem: list[str], root: Path) -> None:
    """A root with entries and tasks."""
    subprocess.run([*amem, "init", "--owner", "human:bench:you"], check=True, stdout=subprocess.DEVNULL)
    for number in range(TASKS):
        subprocess.run([*amem, "task", "create", f"Task number {number}"], check=True, stdout=subprocess.DEVNULL)
    folder = root / "record" / "dom-me" / "2026" / "11"
    folder.mkdir(parents=True)
    for number in range(ENTRIES):
        id = f"mem-me-{number:012d}"
        front = {
            "id": f'"{id}"', "version": 1, "type": '"fact"', "title": f'"Section {number}"', "summary": f'"What section {number} says."',
            "domain": '"dom-me"', "classification": '"internal"', "tier": '"raw"', "status": '"active"', "author": '"human:bench:you"',
            "written_at": '"2026-11-30T07:00:00.000Z"',
        }  # fmt: skip
        head = "".join(f"{key}: {value}\n" for key, value in front.items())
        (folder / f"{id}.md").write_text(
            f"---\n{head}---\nThe label of section {number} is checked against a ceiling before a call leaves.\n"
        )
    subprocess.run([*amem, "reindex"], check=True, stdout=subprocess.DEVNULL)

"""Several processes on one root, and processes that are killed: real ones, for a thread shares what a process does not."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from amem.record.index import Index
from amem.settings.root import Root
from tests.record.made import EVERYTHING, entry
from tests.record.test_index import dump

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def started(role: str, root: Path, name: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.record.processes", role, str(root), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def _ends(process: "subprocess.Popen[str]") -> str:
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return output


def test_eight_processes_write_and_read_one_record(tmp_path: Path) -> None:
    root = Root(tmp_path)
    processes = [started("write", tmp_path, f"writer{n}") for n in range(8)]
    entered = [process.__enter__() for process in processes]
    written = [line for process in entered for line in _ends(process).split()]
    for process in processes:
        process.__exit__(None, None, None)
    assert len(set(written)) == 400
    index = Index.open(root)
    assert {row.id for row in index.list(EVERYTHING, status=None, limit=0).rows} == set(written)
    assert {path.stem for path, _ in index.store.walk()} == set(written)
    assert index.list(EVERYTHING).total == 400 - 8 * 9
    before = dump(index)
    report = index.rebuild()
    assert (report.entries, report.problems, report.repaired) == (400, (), ())
    assert dump(index) == before
    index.close()


def test_of_versions_written_at_once_none_is_lost(tmp_path: Path) -> None:
    index = Index.open(Root(tmp_path))
    made = entry(body="0")
    index.upsert(index.store.put(made))
    processes = [started("contend", tmp_path, made.id) for _ in range(4)]
    for process in [process.__enter__() for process in processes]:
        _ends(process)
    for context in processes:
        context.__exit__(None, None, None)
    row = index.tables.connection.execute("select version from entry").fetchone()  # as indexed: nothing has looked at the file since
    assert row == (81,)
    assert index.store.read(made.id).body == "80"
    index.close()


@pytest.mark.parametrize("seed", range(6))
def test_a_writer_killed_at_any_moment_leaves_a_whole_record(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    done: list[str] = []
    with started("forever", tmp_path, "doomed") as process:
        assert process.stdout is not None
        for _ in range(draw.randrange(1, 6)):
            done.append(process.stdout.readline().strip())
        for _ in range(draw.randrange(200_000)):
            pass  # a moment that no line of output marks
        process.kill()
        done += process.stdout.read().split()
    index = Index.open(Root(tmp_path))
    report = index.refresh()
    assert report.problems == ()
    for path, _ in index.store.walk():
        read = index.read(path.stem)
        assert read is not None and read.entry.body == "harbour " * 2000
    for entry_id in done:  # what was said to be written is there
        row = index.get(entry_id)
        assert row is not None and row.version == 2
    before = dump(index)
    index.rebuild()
    assert dump(index) == before
    index.close()

"""scripts/bench.py in a project of its own with three benchmarks, one of which fails."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
GOOD = '''"""P{n}: {what}."""
from tests.bench.rows import Row
def run():
    import os; os.write(2, b"half way\\n")
    return [Row("P{n}", "{what}", {n}.0, "peer", 2.0, "ms", "<= 1 x", {n} <= 2)]
'''
BAD = '"""P9: broken."""\ndef run():\n    raise RuntimeError("no such peer")\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    bench = tmp_path / "tests" / "bench"
    bench.mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    shutil.copy(PROJECT / "scripts" / "bench.py", tmp_path / "scripts")
    for name in ("__init__.py", "rows.py"):
        shutil.copy(PROJECT / "tests" / "bench" / name, bench)
    (tmp_path / "tests" / "__init__.py").touch()
    (bench / "bench_slow.py").write_text(GOOD.format(n=12, what="slow"))
    (bench / "bench_fast.py").write_text(GOOD.format(n=2, what="fast"))
    (bench / "bench_broken.py").write_text(BAD)
    return tmp_path


def bench(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(project / "scripts" / "bench.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def kept(project: Path) -> dict[str, dict[str, object]]:
    (path,) = (project / "bench" / "out").iterdir()
    benchmarks: dict[str, dict[str, object]] = json.loads(path.read_text())["benchmarks"]
    return benchmarks


def test_one_that_fails_is_reported_and_the_others_go_on(project: Path) -> None:
    ran = bench(project)
    lines = ran.stdout.splitlines()
    assert ran.returncode == 1
    assert [line.split()[:2] for line in lines[1:3]] == [["P2", "fast"], ["P12", "slow"]]
    assert "holds" in lines[1] and "MISSED" in lines[2]
    assert lines[3] == "failed: broken: exit 1: RuntimeError: no such peer"
    assert "half way" in ran.stderr
    assert set(kept(project)) == {"fast", "slow", "broken"} and "no such peer" in str(kept(project)["broken"]["failed"])


@pytest.mark.parametrize("only", ["P2", "fast", "p2,FAST"])
def test_only_runs_what_is_named_and_keeps_the_days_other_figures(project: Path, only: str) -> None:
    assert bench(project, "--only", "P12").returncode == 0
    ran = bench(project, "--only", only)
    assert ran.returncode == 0 and "slow" not in ran.stdout and "fast" in ran.stdout
    assert set(kept(project)) == {"fast", "slow"}


def test_a_number_that_is_not_there_names_those_that_are(project: Path) -> None:
    ran = bench(project, "--only", "P3")
    assert ran.returncode == 2 and "fast (P2), broken (P9), slow (P12)" in ran.stderr

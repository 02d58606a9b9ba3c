"""`amem erase` as the owner types it."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from amem.cli.main import run
from amem.settings.root import Root

CANARY = "zebra7QuartzCanary19"


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(tmp_path / "root")


@pytest.fixture
def amem(root: Root, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: str) -> tuple[int, Any, str]:
        code = run(["--root", str(root.path), "--json", *words])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else None, err

    assert call("init", "--owner", "human:asf:you")[0] == 0
    return call


def carrying(root: Root) -> list[str]:
    return [path.name for path in root.path.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


def test_several_entries_in_one_act_with_a_receipt(amem: Any, root: Root) -> None:
    first = amem("write", "--type", "fact", "--title", f"T {CANARY}", "--body", "Known.")[1]["id"]
    second = amem("write", "--type", "fact", "--title", "Other", "--body", f"It is {CANARY}.")[1]["id"]
    assert amem("erase", first, "--why", "w")[0] == 2
    assert amem("erase", "../x", "--why", "w", "--yes")[0] == 2
    code, planned, _ = amem("erase", first, "--why", "w", "--dry-run")
    assert code == 0
    assert {trace["how"] for trace in planned["removed"]} == {"masked"}
    assert len(carrying(root)) == len(planned["left"])
    code, receipt, _ = amem("erase", first, second, "--reason", "asked for", "--yes")
    assert (code, receipt["act"], receipt["entries"], receipt["why"], receipt["by"]) == (
        0,
        "erase",
        [first, second],
        "asked for",
        "human:asf:you",
    )
    assert receipt["searched"][0]["files"] > 8
    assert carrying(root) == []
    assert amem("get", second)[1] == {"id": second, "status": "gone"}
    assert amem("verify")[0] == 0
    assert amem("erase", first, second, "--why", "again", "--yes")[0] == 1


def test_what_cannot_be_taken_out_is_named_and_exits_3(amem: Any, root: Root) -> None:
    entry = amem("write", "--type", "fact", "--title", f"T {CANARY}", "--body", "Known.")[1]["id"]
    with root.grants.open("a") as grants:
        grants.write(f"# {CANARY}\n")
    code, receipt, err = amem("erase", entry, "--why", "asked for", "--yes")
    assert (code, receipt["left"]) == (3, ["grants.toml"])
    assert "grants.toml" in err


def test_the_doctor_names_one_that_was_cut_short(amem: Any, root: Root) -> None:
    entry = amem("write", "--type", "fact", "--title", f"T {CANARY}", "--body", "Known.")[1]["id"]
    child = os.fork()
    if child == 0:
        from amem.record.index import Index

        Index.scrub = lambda self: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
        run(["--root", str(root.path), "erase", entry, "--why", "asked for", "--yes"])
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    told = [line for line in amem("doctor")[1]["checks"] if line["name"] == "erasure"]
    assert [entry in line["why"] for line in told] == [True]
    assert amem("erase", entry, "--why", "asked for", "--yes")[0] == 0
    assert not [line for line in amem("doctor")[1]["checks"] if line["name"] == "erasure"]
    assert carrying(root) == []

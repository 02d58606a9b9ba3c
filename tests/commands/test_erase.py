"""`amem erase` as the owner types it."""

import fcntl
import json
import os
import signal

from amem.cli.main import run
from amem.launch import presence
from amem.settings.root import Root

from .conftest import Amem

CANARY = "zebra7QuartzCanary19"


def carrying(root: Root) -> list[str]:
    return [path.name for path in root.path.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


def test_several_entries_in_one_act_with_a_receipt(amem: Amem, root: Root) -> None:
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


def test_what_cannot_be_taken_out_is_named_and_exits_3(amem: Amem, root: Root) -> None:
    entry = amem("write", "--type", "fact", "--title", f"T {CANARY}", "--body", "Known.")[1]["id"]
    with root.grants.open("a") as grants:
        grants.write(f"# {CANARY}\n")
    code, receipt, err = amem("erase", entry, "--why", "asked for", "--yes")
    assert (code, receipt["left"]) == (3, ["grants.toml"])
    assert "grants.toml" in err


def test_an_export_of_nothing_is_no_hindrance_and_a_name_is_told_without_it(amem: Amem, root: Root) -> None:
    entry = amem("write", "--type", "fact", "--title", f"T {CANARY}", "--body", "Known.")[1]["id"]
    assert amem("export", str(root.path.parent / "empty.tar"), "--label", "public")[0] == 0
    (root.state / "homes" / "ses-0123abcd" / CANARY.encode().hex()).mkdir(parents=True)
    code, receipt, _ = amem("erase", entry, "--why", "asked for", "--yes")
    assert code == 0
    assert {"path": "state/homes/ses-0123abcd/[erased]", "how": "masked"} in receipt["removed"]


def test_a_session_that_read_it_and_still_runs_is_named(amem: Amem, root: Root) -> None:
    entry = amem("write", "--type", "fact", "--title", f"T {CANARY}", "--body", "Known.")[1]["id"]
    wrote = json.loads((root.state / "writes.jsonl").read_text().splitlines()[-1])["session"]
    mark = presence.mark(root, wrote)
    mark.parent.mkdir(parents=True)
    descriptor = os.open(mark, os.O_RDWR | os.O_CREAT)
    os.write(descriptor, b"1")
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        code, _, err = amem("erase", entry, "--why", "asked for", "--yes")
    finally:
        os.close(descriptor)
    assert code == 0
    assert f"amem session stop {wrote}" in err


def test_the_doctor_names_one_that_was_cut_short(amem: Amem, root: Root) -> None:
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

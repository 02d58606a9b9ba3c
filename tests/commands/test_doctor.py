"""What `amem doctor` finds out about a root and a machine, row by row."""

import os
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from amem.harnesses import registry
from amem.launch import backends
from amem.record.sealed import Sealer
from tests.acceptance.conftest import Done, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path)
    found.environment["HOME"] = str(tmp_path / "me")
    (tmp_path / "me").mkdir()
    assert found.amem("init", "--owner", "human:asf:you").code == 0
    return found


def rows(done: Done) -> dict[tuple[str, str], dict[str, str]]:
    return {(row["area"], row["name"]): row for row in done.json["checks"]}


def test_every_backend_has_a_row_and_every_layer(place: Place) -> None:
    found = rows(place.amem("doctor", "--json"))
    named = {name for area, name in found if area == "backend"}
    assert named >= {*backends.BACKENDS} - {"namespaces"} | {
        "kernel", "user namespaces", "AppArmor", "namespace limit", "seccomp", "Landlock", "cgroup", "subordinate ids",
    }  # fmt: skip
    assert {found["backend", name]["state"] for name in ("seatbelt", "wslc")} == {"not_proven"}
    assert found["backend", "unconfined"]["state"] == "ok" and "never picks" in found["backend", "unconfined"]["why"]
    assert {found["root", "modes"]["state"], found["machine", "clock"]["state"], found["machine", "disk"]["state"]} == {"ok"}


def test_what_it_says_is_never_cut_short(place: Place) -> None:
    checks, said = rows(place.amem("doctor", "--json")), place.amem("doctor").out
    assert all(len(line) <= 80 for line in said.partition("\n\n")[0].splitlines())
    plain = "".join(said.split())
    whole = ("kernel", "AppArmor", "subordinate ids", "cgroup", "seatbelt", "wslc")
    assert [name for name in whole if "".join(checks["backend", name]["why"].split()) not in plain] == []


@pytest.mark.parametrize("backend", ["seatbelt", "wslc", "image"])
def test_a_backend_that_is_asked_for_and_cannot_be_had_fails_the_check(place: Place, backend: str) -> None:
    done = place.amem("doctor", "--backend", backend, "--json")
    assert done.code == 1 and rows(done)["backend", backend]["state"] == "missing" and rows(done)["backend", backend]["fix"]
    assert rows(place.amem("doctor", "--json"))["backend", backend]["state"] != "missing"


def test_an_image_that_a_launch_would_refuse_is_missing(place: Place) -> None:
    (place.root / "state/image/img-00000000").mkdir(parents=True)
    (place.root / "state/image/current").symlink_to("img-00000000")
    row = rows(place.amem("doctor", "--json"))["backend", "image"]
    assert (row["state"], row["fix"]) == ("missing", "make unpack") and "is not whole" in row["why"]
    (place.root / "state/image/img-00000000/usr").mkdir()
    (place.root / "state/image/img-00000000.lock").touch()
    assert rows(place.amem("doctor", "--json"))["backend", "image"]["state"] == "ok"


def test_what_others_may_read_and_a_clock_that_went_back_are_weak(place: Place) -> None:
    place.root.chmod(0o755)
    log = place.root / "state/decisions.jsonl"
    log.touch()
    os.utime(log, (time.time() + 3600,) * 2)
    found = rows(place.amem("doctor", "--json"))
    assert found["root", "modes"]["state"] == "weak" and found["root", "modes"]["fix"] == f"chmod go= {place.root}"
    assert found["machine", "clock"]["state"] == "weak" and "after that" in found["machine", "clock"]["why"]


def test_a_harness_of_this_machine_says_its_version_and_cannot_forge_a_row(place: Place, tmp_path: Path) -> None:
    folder, known = tmp_path / "bin", registry.pins()["claude"].version
    folder.mkdir()
    for name, body in (
        ("claude", f"echo '{known} (Claude Code)'"),
        ("codex", "printf 'codex 0.0.1\\n\\033[2Jok  backend / kernel'"),
        ("pi", "exit 3"),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    done = place.amem("doctor", "--json", PATH=f"{folder}:/usr/bin:/bin", XDG_CACHE_HOME=str(tmp_path / "empty"))
    found = rows(done)
    assert found["harness", "claude"]["why"].startswith(f"{known} (Claude Code): ")
    assert "\x1b" not in found["harness", "codex"]["why"] and "\n" not in found["harness", "codex"]["why"]
    assert "does not say its version" in found["harness", "pi"]["why"]
    assert list((tmp_path / "me").iterdir()) == []


def test_a_program_that_a_session_put_on_the_owners_search_path_is_asked_in_a_sandbox(place: Place, tmp_path: Path) -> None:
    """As where the owner works in an active `.venv` of a tree."""
    folder, ran = tmp_path / "tree/.venv/bin", tmp_path / "ran"
    folder.mkdir(parents=True)
    (folder / "codex").write_text(f"#!/bin/sh\necho x > {ran}\necho 1.2.3 on $(hostname)\n")
    (folder / "codex").chmod(0o755)
    done = place.amem("doctor", "--json", PATH=f"{folder}:/usr/bin:/bin", XDG_CACHE_HOME=str(tmp_path / "empty"))
    assert "1.2.3 on amem" in rows(done)["harness", "codex"]["why"]
    assert not ran.exists()


def test_logins_of_the_home_are_found(place: Place, tmp_path: Path) -> None:
    assert rows(place.amem("doctor", "--json"))["harness", "logins"]["why"].startswith("none")
    (tmp_path / "me/.claude").mkdir()
    (tmp_path / "me/.claude/.credentials.json").write_text("{}")
    assert rows(place.amem("doctor", "--json"))["harness", "logins"]["why"] == "found for claude"


def test_the_profile_is_for_a_script_and_not_for_python_m(place: Place, tmp_path: Path) -> None:
    done = place.amem("doctor", "--apparmor")
    assert done.code == 1 and "python -m amem" in done.err and done.out == ""


def test_what_cannot_be_looked_at_is_a_row_and_hides_no_other(place: Place) -> None:
    assert place.amem("write", "--type", "fact", "--title", "t", "--body", "b").code == 0
    (place.root / "state/usage.sqlite").write_bytes(b"no database" * 500)
    done = place.amem("doctor", "--json")
    found = rows(done)
    assert done.code == 1
    assert "not a database" in found["backends", "look"]["why"] and found["backends", "look"]["fix"]
    assert "not a database" in found["root", "usage.sqlite"]["why"]
    assert found["machine", "disk"]["state"] == "ok" and ("harness", "logins") in found
    for command in ("usage", "cost", "session list"):
        failed = place.amem(*command.split())
        assert (failed.code, failed.out) == (1, "") and "not a database\ntry: " in failed.err


@pytest.mark.parametrize("where", ["state", "state/running", "record"])
def test_a_folder_of_the_root_that_is_none_is_named_with_what_mends_it(place: Place, where: str) -> None:
    path = place.root / where
    if path.exists():
        path.rename(place.root / "was")
    path.write_text("")
    done = place.amem("doctor", "--json")
    row = rows(done)["root", "access"]
    assert (done.code, row["state"], row["why"]) == (1, "missing", f"{path} is no folder")
    assert not any(name == "look" for _, name in rows(done))
    subprocess.run(row["fix"], shell=True, check=True)
    assert ("root", "access") not in rows(place.amem("doctor", "--json"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
@pytest.mark.parametrize(
    ("where", "mode"), [("state", 0o500), ("state", 0), ("state/index.sqlite", 0o400), ("record", 0o500), ("grants.toml", 0)]
)
def test_what_of_the_root_may_not_be_used_is_no_damage(place: Place, where: str, mode: int) -> None:
    assert place.amem("reindex").code == 0
    (place.root / where).chmod(mode)
    done = place.amem("doctor", "--json")
    row = rows(done)["root", "access"]
    assert done.code == 1 and str(place.root / where) in row["why"] and "damaged" not in done.out
    subprocess.run(row["fix"], shell=True, check=True)
    assert ("root", "access") not in rows(place.amem("doctor", "--json"))


def test_a_umask_that_leaves_nothing_of_use_is_named(place: Place) -> None:
    before = os.umask(0o777)
    try:
        done = place.amem("doctor", "--json")
        launched = place.launch("--", "true")
    finally:
        os.umask(before)
    assert launched.code == 125 and "umask 0777" in launched.err, launched.err
    assert not (place.root / "state" / "running").exists()
    row = rows(done)["backend", "user namespaces"]
    assert (row["state"], row["fix"]) == ("missing", "umask 022") and "umask 0777" in row["why"]


def test_what_it_prints_to_mend_mends_what_is_missing_or_weak(place: Place) -> None:
    place.root.chmod(0o755)
    checks = rows(place.amem("doctor", "--json")).values()
    printed = place.amem("doctor", "--fix").out.splitlines()
    assert f"chmod go= {place.root}" in printed and len(printed) == len(set(printed))
    assert set(printed) == {row["fix"] for row in checks if row["state"] in ("missing", "weak") and row.get("fix")}


def test_a_damaged_ledger_leads_to_what_mends_it(place: Place, tmp_path: Path) -> None:
    entry = place.amem("write", "--type", "fact", "--title", "Doors", "--body", "Green.").out.strip()
    assert place.amem("task", "create", "Open it", "--body", "Now.").code == 0
    ledger = place.root / "state" / "ledger.sqlite"
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    backup = ledger.read_bytes()
    ledger.write_bytes(backup[:4096] + b"\xff" * (len(backup) - 4096))
    for words in (["task", "list"], ["reindex", "--ledger"], ["export", str(tmp_path / "o.tar"), "--label", "internal"]):
        done = place.amem(*words)
        assert done.code == 1 and done.err.splitlines()[-1] == f"try: amem --root {place.root} doctor"
    assert place.amem("get", entry).code == 0
    row = rows(place.amem("doctor", "--json"))["root", "ledger.sqlite"]
    assert row["state"] == "missing" and row["fix"] == f"restore {ledger} from a backup, and remove {ledger}-wal and {ledger}-shm"
    for part in ("", "-wal", "-shm"):
        Path(f"{ledger}{part}").unlink(missing_ok=True)
    assert place.amem("task", "list").err == "no such tasks\n"  # moved away: they begin anew
    for part in ("-wal", "-shm"):
        Path(f"{ledger}{part}").unlink(missing_ok=True)
    ledger.write_bytes(backup)
    assert "Open it" in place.amem("task", "list").out
    assert rows(place.amem("doctor", "--json"))["root", "ledger.sqlite"]["state"] == "ok"


def test_a_key_of_seals_that_is_gone_is_named_until_it_is_back(place: Place) -> None:
    state = place.root / "state"
    kept = Sealer(state).masked(b"ghp_16C7e42F292c6912E7710c838347Ae178B4a")
    (state / "seal.key").rename(place.root / "backup")
    row = rows(place.amem("doctor", "--json"))["root", "seal.key"]
    assert (row["state"], row["fix"]) == ("missing", f"restore {state / 'seal.key'} from a backup")
    (place.root / "backup").rename(state / "seal.key")
    assert ("root", "seal.key") not in rows(place.amem("doctor", "--json"))
    assert Sealer(state).unmasked(kept).startswith(b"ghp_")

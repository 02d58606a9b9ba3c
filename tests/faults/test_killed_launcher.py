"""`kill -9` of the launcher at ten moments: nothing of the sandbox is left, the record is whole, the next launch works."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from amem.logs import reader
from amem.record.markdown import parse
from amem.testing.demo import MODEL, PROMPT, SCRIPT
from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place, confinement, place, provider

__all__ = ["confinement", "place", "provider"]  # fixtures

MOMENTS = 10


def descendants(pid: int) -> set[int]:
    """Every process below `pid` that is there now."""
    found = {pid}
    waiting = [pid]
    while waiting:
        try:
            for task in Path(f"/proc/{waiting.pop()}/task").iterdir():
                children = {int(child) for child in (task / "children").read_text().split()} - found
                found |= children
                waiting += children
        except OSError:
            continue
    return found - {pid}


def alive(pids: set[int]) -> set[int]:
    """Those that still run; one that only waits to be reaped is gone."""
    return {pid for pid in pids if _state(pid) not in ("", "Z", "X")}


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def gone(pids: set[int]) -> bool:
    """Wait until none of them runs, for as long as a busy machine may need to end what was told to."""
    until = time.monotonic() + 20
    while alive(pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def whole(place: Place) -> None:
    """Every entry parses, every log links, the index equals a rebuild."""
    for path in (place.root / "record").rglob("mem-*.md"):
        parse(path.read_bytes())
    for log in ("decisions.jsonl", "reads.jsonl", "writes.jsonl"):
        assert [broken for broken in reader.verify(place.root / "state" / log) if broken.kind == "changed"] == []
    before = place.amem("list", "--limit", "0", "--json").json["entries"]
    assert place.amem("reindex").code == 0
    assert place.amem("list", "--limit", "0", "--json").json["entries"] == before


def test_a_killed_launcher_leaves_nothing_and_the_next_launch_works(place: Place, provider: Running) -> None:
    provider.load(SCRIPT)
    place.destination(provider.url)
    known = place.amem(
        "write", "--type", "fact", "--title", "How a model call leaves", "--body", "Through the egress, under a label and a ceiling."
    )
    assert known.code == 0, known.err
    shutil.copy(PROJECT / "examples" / "agent.py", place.tree)
    words = place.command("launch", "--harness", "command", *place.launch_flags(), "--model", MODEL, "--prompt", PROMPT,
                          "--", sys.executable, "agent.py")  # fmt: skip
    began = time.monotonic()
    assert subprocess.run(words, cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
    whole_run_s = time.monotonic() - began
    for moment in range(MOMENTS):
        launcher = subprocess.Popen(
            words, cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + whole_run_s * (moment + 0.5) / MOMENTS
        seen: set[int] = set()
        while time.monotonic() < until and launcher.poll() is None:
            seen |= descendants(launcher.pid)
            time.sleep(0.002)
        seen |= descendants(launcher.pid)
        launcher.kill()
        launcher.wait()
        assert gone(seen), f"moment {moment}: {alive(seen)} are left"
    whole(place)
    running = place.amem("session", "list", "--state", "running", "--json").json["sessions"]
    assert running == [], "a session whose launcher died is not running"
    again = place.launch("--model", MODEL, "--prompt", PROMPT, "--", sys.executable, "agent.py")
    assert again.code == 0, again.err


@pytest.mark.parametrize("flag", ["one", "all"])
def test_stop_ends_a_session_and_what_ignores_the_signal(place: Place, provider: Running, flag: str) -> None:
    place.destination(provider.url)
    words = place.command("launch", "--harness", "command", *place.launch_flags(), "--", "sh", "-c", "trap '' TERM; touch up; sleep 600")
    launcher = subprocess.Popen(
        words, cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 60
    while not (place.tree / "up").exists():
        assert time.monotonic() < until and launcher.poll() is None
        time.sleep(0.01)
    inside = descendants(launcher.pid)
    session = place.amem("session", "list", "--state", "running", "--json").json["sessions"][0]["id"]
    asked = place.amem("session", "stop", *(["--all"] if flag == "all" else [session]), "--grace", "0s", "--why", "enough", "--json")
    assert (asked.code, asked.json) == (0, {"stopped": [session]}), asked.err
    _, err = launcher.communicate(timeout=30)
    assert launcher.returncode == 137, err
    assert "the session was stopped: enough" in err
    assert gone(inside)
    assert place.amem("session", "show", session, "--json").json["reason"] == "stopped"
    kept = [{key: line.get(key) for key in ("event", "session", "principal", "why", "grace_s")} for line in place.log("sessions.jsonl")]
    assert kept == [{"event": "session.stop", "session": session, "principal": "human:asf:you", "why": "enough", "grace_s": 0.0}]
    assert "session.stop by human:asf:you enough" in place.amem("session", "show", session, "--log").out
    assert place.amem("session", "stop", session).code == 3
    assert len(place.log("sessions.jsonl")) == 1, "what stopped nothing is no event"

"""An erasure while a session that was served the entry is at work: a real launch, whose harness reads, quotes, keeps, and asks again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import zstandard

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place

CANARY = "zebra7QuartzCanary19"
READS = """
import base64, os, pathlib, sys, time
import agent
entry, tree, said = sys.argv[1], pathlib.Path.cwd(), []
memory = agent.Memory(os.environ["MEMORY_MCP_URL"], os.environ.get("MEMORY_MCP_TOKEN"))
said.append(memory.call("get", {"id": entry})[0])
body = said[0]
memory.call("write", {"type": "fact", "title": "Doors", "body": "The door is green. Its code: " + body[body.index("zebra"):][:20] + "."})
memory.call("search", {"query": "vault"})
(pathlib.Path.home() / "notes.b85").write_bytes(base64.b85encode(body.encode()))
(pathlib.Path.home() / "notes.txt").write_text(body)
model = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": body}]}
agent.post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", model, {"x-api-key": os.environ["ANTHROPIC_API_KEY"]})
(tree / "ready").touch()
while not (tree / "go").exists():
    time.sleep(0.05)
again = [memory.call("get", {"id": entry})[0], memory.call("search", {"query": "vault zebra7QuartzCanary19"})[0], memory.call("t0", {})[0]]
home = [path.name for path in pathlib.Path.home().iterdir() if path.name.startswith("notes")]
inside = [path.name for path in pathlib.Path("/memory").iterdir()]
memory.call("handoff", {"body": "I looked at a door."})
print("served:", any("zebra" in text.replace("zebra7QuartzCanary19 ", "") for text in again), "gone:", "gone" in again[0], home, inside)
"""


def carrying(root: Path) -> list[str]:
    found = []
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            data += zstandard.ZstdDecompressor().decompressobj().decompress(data) if path.suffix == ".zst" else b""
            found += [str(path.relative_to(root))] if CANARY.lower().encode() in data.lower() else []
    return found


@pytest.mark.parametrize("killed", [False, True], ids=["whole", "killed and resumed"])
def test_nothing_of_it_is_left_or_served_while_a_session_that_read_it_runs(place: Place, provider: Running, killed: bool) -> None:
    provider.load({"steps": [{"text": "A fine code."}]})
    place.destination(provider.url)
    body = f"We open the vault with {CANARY} on Mondays."
    entry = place.amem("write", "--type", "fact", "--title", "The vault", "--body", body).out.strip()
    shutil.copy(PROJECT / "examples" / "agent.py", place.tree)
    (place.tree / "reads.py").write_text(READS)
    words = [
        *place.launch_flags(),
        "--harness",
        "command",
        "--model",
        "m",
        "--prompt",
        "x",
        "--json",
        "--",
        sys.executable,
        "reads.py",
        entry,
    ]
    launched = subprocess.Popen(
        place.command("launch", *words), cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 120
        while not (place.tree / "ready").exists() and launched.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        assert (place.tree / "ready").exists(), launched.communicate() if launched.poll() is not None else "it never read"
        before = carrying(place.root)
        assert any("homes/" in path for path in before) and any("index.sqlite" in path for path in before), before
        if killed:
            cut_short(place, entry)
        erased = place.amem("erase", entry, "--why", "asked for", "--yes", "--json")
        assert erased.code == 0, erased.err + erased.out
        (running,) = [line.split()[1] for line in erased.err.splitlines() if "still runs" in line]
        assert carrying(place.root) == []
        (place.tree / "go").touch()
        out, err = launched.communicate(timeout=120)
    finally:
        launched.kill()
        launched.wait()
    assert launched.returncode == 0, err
    done = json.loads(out)
    assert done["id"] == running
    assert done["answer"] == "served: False gone: True [] []"
    assert carrying(place.root) == []
    assert place.amem("verify").code == 0
    told = place.amem("get", done["entries"][0], "--json").json
    assert told["body"] == "The door is green. [erased]"


def cut_short(place: Place, entry: str) -> None:
    """Begin to erase in a process that is killed when it has taken the first thing."""
    child = subprocess.Popen(
        place.command("erase", entry, "--why", "asked for", "--yes"), cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while child.poll() is None and not any(b"\n" in path.read_bytes() for path in (place.root / "state" / "erasing").glob("*.jsonl")):
            os.sched_yield()
        child.send_signal(signal.SIGKILL)
    finally:
        child.kill()
        assert child.wait() == -signal.SIGKILL, "it had ended before it could be killed"

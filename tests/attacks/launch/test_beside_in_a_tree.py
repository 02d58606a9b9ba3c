"""Two sessions in one tree at a time: what one was served and wrote down does not leave by the other's destination, nor by its entries."""

import json
import shutil
import subprocess
import sys
import time

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place, confinement, place, provider  # noqa: F401  (fixtures)

SECRET = "the okapi sleeps in the thicket behind the mill"
WAITS = """
import os, pathlib, time, urllib.error
import agent
memory = agent.Memory(os.environ["MEMORY_MCP_URL"], os.environ.get("MEMORY_MCP_TOKEN"))
def ask(text):
    model = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    try:
        agent.post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", model, {"x-api-key": os.environ["ANTHROPIC_API_KEY"]})
        return 200
    except urllib.error.HTTPError as error:
        return error.code
first = ask("hello")
pathlib.Path("ready").touch()
while not pathlib.Path("secret.txt").exists():
    time.sleep(0.05)
secret = pathlib.Path("secret.txt").read_text()
wrote, _ = memory.call("write", {"type": "fact", "title": "Found", "body": secret, "classification": "public"})
memory.call("handoff", {"body": "I found a file: " + secret})
print(first, ask(secret), '"code"' in wrote)
"""
READS = """
import os, pathlib, sys
import agent
memory = agent.Memory(os.environ["MEMORY_MCP_URL"], os.environ.get("MEMORY_MCP_TOKEN"))
body = memory.call("get", {"id": sys.argv[1]})[0]
memory.call("handoff", {"body": "I wrote a file."})
pathlib.Path(".secret").write_text(body[body.index("the okapi"):].split(".")[0])
os.rename(".secret", "secret.txt")
print("Done.")
"""


def test_what_one_session_wrote_into_the_tree_does_not_leave_by_another(place: Place, provider: Running) -> None:  # noqa: F811
    provider.load({"steps": [{"text": "Yes."}, {"text": "Yes."}]})
    place.destination(provider.url, ceiling="public")
    entry = place.amem("write", "--type", "fact", "--title", "Okapi", "--body", f"{SECRET}.", "--label", "internal").out.strip()
    shutil.copy(PROJECT / "examples" / "agent.py", place.tree)
    for name, text in (("waits.py", WAITS), ("reads.py", READS)):
        (place.tree / name).write_text(text)
    words = ["--harness", "command", "--auth", "key", "--workdir", str(place.tree), "--model", "m", "--prompt", "x"]
    waiting = subprocess.Popen(
        place.command("launch", *words, "--provider", "demo", "--json", "--", sys.executable, "waits.py"), cwd=PROJECT,
        env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 120
        while not (place.tree / "ready").exists() and waiting.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        assert (place.tree / "ready").exists(), waiting.communicate() if waiting.poll() is not None else "it never asked"
        reads = ["launch", *words, "--provider", "anthropic", "--", sys.executable, "reads.py", entry]
        read = place.amem(*reads, ANTHROPIC_API_KEY="planted-key-of-another")
        assert read.code == 0 and (place.tree / "secret.txt").read_text() == SECRET, read.err
        out, err = waiting.communicate(timeout=120)
    finally:
        waiting.kill()
        waiting.wait()
    done = json.loads(out)
    assert done["answer"] == "200 403 True", err
    assert done["label"] == "internal"
    assert not [exchange for exchange in provider.log if SECRET.encode() in exchange.body]
    labels = [line["classification"] for line in place.log("writes.jsonl") if line.get("session") == done["id"] and line.get("entry")]
    assert labels == ["internal"]

"""What leaves is what the harness sent, but for the declared shaping and the credential: every real harness, through a whole launch.

The egress runs in the launcher as always; a few lines before it write down what came in. What left is what the provider saw.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amem.egress.flow import CREDENTIALS, HOP
from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place, confinement, place, provider  # noqa: F401 - fixtures
from tests.harnesses.ways import WAYS as HARNESSES
from tests.testing.installed import installed

pytestmark = pytest.mark.real_harness

OURS = {"host", "content-length", "connection", "expect"}
RECORDING = """
import json, sys
from amem.egress import flow
kept, sys.argv = open(sys.argv[1], "w", buffering=1), ["amem", *sys.argv[2:]]
call, outgoing = flow.call, flow.outgoing

def seen_call(where, dialect, data):
    kept.write(json.dumps({"path": where.path, "body": data.decode("latin-1")}) + "\\n")
    return call(where, dialect, data)

def seen_headers(headers, **how):
    headers = list(headers)
    kept.write(json.dumps({"headers": headers}) + "\\n")
    return outgoing(headers, **how)

flow.call, flow.outgoing = seen_call, seen_headers
from amem.cli.main import main
main()
"""
# What each change of `shaping` may touch at the top of a body.
TOUCHES = {
    "fold_system": {"messages", "system"},
    "gateway_effort": {"output_config", "reasoning"},
    "cap_output": {"max_tokens", "max_output_tokens", "max_completion_tokens", "thinking", "generationConfig"},
    "fold_function_response": {"contents"},
    "muse_models": set(),
}  # fmt: skip


def recorded(place: Place, harness: str, *words: str, **environment: str) -> list[dict[str, Any]]:  # noqa: F811
    """A launch whose egress writes down what comes in."""
    kept = place.base / "came.jsonl"
    asked = ["launch", "--harness", harness, "--workdir", str(place.tree), "--model", HARNESSES[harness].model, "--no-handoff", *words]
    command = [sys.executable, "-c", RECORDING, str(kept), "--root", str(place.root), *asked, "--prompt", "do as the test says"]
    done = subprocess.run(
        command,
        cwd=PROJECT,
        env={**place.environment, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in kept.read_text().splitlines()]


@pytest.fixture(params=HARNESSES)
def harness(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    installed(name)
    return name


def script(harness: str) -> dict[str, Any]:
    way = HARNESSES[harness]
    return {"steps": [{"tool": way.shell, "args": {way.command: "echo ünïcode"} | way.more}, {"text": "Done as asked."}]}


def test_on_a_key_nothing_is_changed(place: Place, provider: Running, harness: str) -> None:  # noqa: F811
    provider.load(script(harness))
    place.destination(provider.url)
    came = recorded(place, harness, "--auth", "key", "--provider", "demo")
    bodies = [one["body"].encode("latin-1") for one in came if one.get("body")]
    left = [seen for seen in provider.log if seen.body]
    assert len(bodies) >= 2
    assert sorted(seen.body for seen in left) == sorted(bodies)
    # The headers of each call came as they left, in everything but the connection's own and the credential.
    sent = [{name.lower(): value for name, value in one["headers"]} for one in came if "headers" in one]
    dropped = OURS | HOP | CREDENTIALS
    plain = [{name: value for name, value in headers.items() if name not in dropped} for headers in sent]
    out = [{name: value for name, value in seen.headers.items() if name not in dropped} for seen in provider.log]
    assert sorted(map(str, map(sorted_pairs, out))) == sorted(map(str, map(sorted_pairs, plain)))
    assert not [seen for seen in left if f"amem-{place_session(place)}" in str(seen.headers)], "the placeholder stays here"


def test_on_a_gateway_only_what_is_declared_is_changed_and_each_change_is_named(place: Place, provider: Running, harness: str) -> None:  # noqa: F811
    provider.load(script(harness))
    came = recorded(place, harness, "--auth", "gateway", LLMAO_URL=provider.url, LLMAO_KEY="sk-the-gateway")
    bodies = [json.loads(one["body"].encode("latin-1")) for one in came if one.get("body")]
    left = [seen.json for seen in provider.log if seen.body]
    named = _shaping(place)
    allowed = set().union(*(TOUCHES[name] for name in named))
    assert len(left) == len(bodies) >= 2
    for was, became in zip(bodies, left, strict=True):
        changed = {name for name in was.keys() | became.keys() if was.get(name) != became.get(name)}
        assert changed <= allowed, (changed, named)
    assert all("sk-the-gateway" in seen.headers["authorization"] for seen in provider.log)


def sorted_pairs(headers: dict[str, str]) -> list[tuple[str, str]]:
    return sorted(headers.items())


def place_session(place: Place) -> str:  # noqa: F811
    session: str = place.amem("session", "list", "--json").json["sessions"][0]["id"]
    return session


def _shaping(place: Place) -> set[str]:  # noqa: F811
    """The changes that the session's contexts name."""
    [folder] = (place.root / "record" / "dom-me" / ".contexts").iterdir()
    lines = [json.loads(line) for line in Path(folder, "calls.jsonl").read_text().splitlines()]
    return {name for line in lines for name in line.get("shaping", [])}

"""The real Claude Code and the real Codex in what is theirs alone; what every harness must do is in `tests/harnesses/test_real.py`."""

import json
import subprocess
from typing import Any

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Done, Place
from tests.acceptance.network import Attempts
from tests.testing.installed import installed

pytestmark = pytest.mark.real_harness

FACT = {"type": "fact", "title": "The widget counts from one", "body": "Seen in the widget's own output."}
SHELL: dict[str, dict[str, Any]] = {
    "claude": {"tool": "Bash", "args": {"command": "echo made-by-$((40 + 2)) > made.txt; git --version", "description": "make it"}},
    "codex": {"tool": "exec_command", "args": {"cmd": "echo made-by-$((40 + 2)) > made.txt; git --version"}},
}
MODELS = {"claude": "claude-sonnet-5-5", "codex": "gpt-5.1-codex"}


def script(harness: str, **more: Any) -> dict[str, Any]:
    return {
        "reasoning": True,
        "steps": [
            {"tool": "memory.t0"},
            {"tool": "memory.write", "args": FACT},
            SHELL[harness],
            {"tool": "memory.handoff", "args": {"body": "The widget was counted; nothing is left to do."}},
            {"text": "Counted, written down and handed over."},
        ],
        **more,
    }


def launch(place: Place, harness: str, *words: str) -> tuple[Done, dict[str, int]]:
    """Launch headless, with the session's network watched from outside."""
    command = place.command("launch", "--harness", harness, *place.launch_flags(), "--model", MODELS[harness], "--json", *words)
    process = subprocess.Popen(
        command, cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watch = Attempts(process.pid)
    watch.start()
    out, err = process.communicate(timeout=180)
    return Done(process.returncode, out, err), watch.end()


@pytest.fixture(params=["claude", "codex"])
def harness(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    installed(name)
    return name


def test_a_session_over_the_ceiling_stops_in_seconds_and_says_why(place: Place, provider: Running, harness: str) -> None:
    provider.load(script(harness))
    place.destination(provider.url, ceiling="public")
    done, _ = launch(place, harness, "--label", "internal", "--prompt", "count the widget")
    assert done.code not in (0, 4)
    assert "ceiling" in done.err + done.out
    assert [exchange for exchange in provider.log if exchange.method == "POST"] == []
    denied = [line for line in place.log("decisions.jsonl") if line["action"] == "model_call"]
    assert len(denied) == 1, "a refused call is not tried again"
    assert not denied[0]["allow"]


@pytest.mark.parametrize("granted", [False, True])
def test_codex_offers_the_providers_search_only_under_a_grant(place: Place, provider: Running, granted: bool) -> None:
    installed("codex")
    provider.load({"steps": [{"tool": "memory.handoff", "args": {"body": "Nothing was searched."}}, {"text": "Done."}]})
    place.destination(provider.url)
    if granted:
        grants = place.root / "grants.toml"
        grants.write_text(grants.read_text().replace("server_tools = []", 'server_tools = ["web_search"]'))
    done, _ = launch(place, "codex", "--prompt", "look")
    assert done.code == 0, done.err + done.out
    requests = [json.loads(exchange.body) for exchange in provider.log if exchange.path.endswith("/responses")]
    offered = [any(tool["type"] == "web_search" for tool in request["tools"]) for request in requests]
    assert offered and set(offered) == {granted}
    decided = [(line["action"], line["allow"]) for line in place.log("decisions.jsonl") if line["action"] == "server_tool"]
    assert decided == [("server_tool", True)] * len(offered) if granted else decided == []

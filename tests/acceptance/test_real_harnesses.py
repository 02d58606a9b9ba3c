"""The real Claude Code and the real Codex, headless, each in the sandbox against the scripted provider."""

import json
import os
import subprocess
from pathlib import Path
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


def test_a_headless_session_does_the_whole_job(place: Place, provider: Running, harness: str) -> None:
    provider.load(script(harness))
    place.destination(provider.url)
    done, asked_for = launch(place, harness, "--prompt", "count the widget")
    assert done.code == 0, done.err + done.out
    session = done.json
    assert session["answer"] == "Counted, written down and handed over."
    assert (place.tree / "made.txt").read_text() == "made-by-42\n"
    entry = place.amem("get", session["entries"][0], "--json").json
    assert (entry["title"], entry["author"]) == (FACT["title"], f"agent:{harness}")
    handoff = place.amem("get", session["handoffs"][0], "--json").json
    assert handoff["left_by"] == "agent" and "counted" in handoff["body"]
    assert {line["tool"] for line in place.log("reads.jsonl") if line.get("session") == session["id"]} == {"t0"}

    sums = list(provider.totals().values())
    rows = place.amem("usage", "--session", session["id"], "--json").json["usage"]
    for part in ("input", "output", "cache_read", "cache_write"):
        assert sum(row[part] for row in rows) == sum(getattr(used, part) for used in sums), part
    assert all("status" not in row and "unmetered" not in row for row in rows)

    assert asked_for["TcpActiveOpens"] > 0, "the network was not watched"
    nothing = {name: count for name, count in asked_for.items() if name != "TcpActiveOpens"}
    assert nothing == {"UdpNoPorts": 0, "IpOutNoRoutes": 0, "Ip6OutNoRoutes": 0}


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


def test_a_session_that_wrote_no_handoff_leaves_the_hooks_note(place: Place, provider: Running, harness: str) -> None:
    provider.load({"steps": [{"tool": "memory.t0"}, {"text": "I looked around and stopped there."}]})
    place.destination(provider.url)
    done, _ = launch(place, harness, "--prompt", "look around")
    assert done.code == 0, done.err + done.out
    handoff = place.amem("handoff", "show", "--json").json
    assert handoff["left_by"] == "hook"
    assert "I looked around and stopped there." in handoff["body"]


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


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_a_failing_provider_ends_the_session_within_a_bound(place: Place, provider: Running, harness: str, status: int) -> None:
    provider.load(script(harness, errors=[{"path": "/v1/", "status": status}]))
    place.destination(provider.url)
    done, _ = launch(place, harness, "--prompt", "count the widget", "--timeout", "120s")
    assert done.code not in (0, 4, 124), done.err
    rows = json.loads(place.amem("usage", "--json").out)["usage"]
    assert sum(row["status"][str(status)] for row in rows) == sum(row["calls"] for row in rows)


def test_claude_on_its_own_login_passes_it_through_and_counts_as_plan(place: Place, provider: Running) -> None:
    installed("claude")
    token = "sk-ant-oat01-" + "a" * 40
    login = {"claudeAiOauth": {"accessToken": token, "refreshToken": "sk-ant-ort01-" + "b" * 40, "expiresAt": 1990000000000,
                               "scopes": ["user:inference", "user:profile"], "subscriptionType": "max"}}  # fmt: skip
    home = place.base / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / ".credentials.json").write_text(json.dumps(login))
    grants = place.root / "grants.toml"
    grants.write_text(grants.read_text().replace("[destinations.anthropic]", f'[destinations.anthropic]\nbase_url = "{provider.url}"'))
    provider.load({"steps": [{"tool": "memory.handoff", "args": {"body": "Looked around on the plan."}}, {"text": "Done on the plan."}]})
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    words = ("launch", "--harness", "claude", "--workdir", str(place.tree), "--prompt", "look", "--json")
    done = place.amem(*words, HOME=str(home), XDG_CACHE_HOME=cache)
    assert done.code == 0, done.err
    assert (done.json["auth"], done.json["answer"]) == ("subscription", "Done on the plan.")
    sent = [exchange for exchange in provider.log if exchange.path.endswith("/messages")]
    assert sent and all(exchange.headers["authorization"] == f"Bearer {token}" for exchange in sent)
    assert {row["billing"] for row in place.amem("usage", "--json").json["usage"]} == {"plan"}
    assert json.loads((home / ".claude" / ".credentials.json").read_text()) == login

    (home / ".claude" / ".credentials.json").unlink()
    missing = place.amem(*words, HOME=str(home), XDG_CACHE_HOME=cache)
    assert missing.code == 1 and "not logged in" in missing.err and "/login" in missing.err

"""Every harness that npm has, for real: headless in the sandbox, against the scripted provider, in every mode that it has."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amem.egress.silence import SILENCES
from amem.harnesses import compat, registry
from amem.harnesses.base import Auth
from amem.testing.provider import Running
from tests.acceptance.conftest import Place, confinement, place, provider  # noqa: F401 - fixtures
from tests.harnesses import lab, ways
from tests.harnesses.ways import WAYS, launch, memory, opening, set_up, shell, told
from tests.sandbox.test_tree import listing
from tests.testing.installed import installed

pytestmark = pytest.mark.real_harness

MODES = [(name, mode) for name in WAYS for mode in registry.load(name).auth]
FACT = {"type": "fact", "title": "The widget counts from one", "body": "Seen in the widget's own output."}
HANDOFF = "The widget was counted; nothing is left to do."
UNHEEDED = {"claude": {"api.anthropic.com"}}
"""Hosts that a login asks for and does well without: a tunnel there could carry model calls that nobody meters."""


@pytest.fixture
def login(tmp_path: Path, provider: Running) -> Iterator[lab.Lab]:  # noqa: F811
    folder = tmp_path / "lab"
    folder.mkdir()
    with lab.lab(folder, provider.url) as found:
        yield found


@pytest.fixture(params=WAYS)
def harness(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    installed(name)
    return name


def test_every_mode_that_is_said_to_be_shown_for_real_is_run_here() -> None:
    said = {(name, mode) for name, proof in compat.shown().items() for mode in Auth if proof.get(mode) == "real"}
    assert set(MODES) == said - {("command", Auth.KEY), ("command", Auth.GATEWAY)}  # which `make demo` and the acceptance tests run


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_the_whole_job_in_every_mode(place: Place, provider: Running, login: lab.Lab, name: str, mode: Auth) -> None:  # noqa: F811
    """Memory over MCP and by path, a shell command, the guard, a handoff; every token counted, and no other host asked for."""
    installed(name)
    known = place.amem("write", "--type", "fact", "--title", "How a model call leaves", "--body", "Through the egress.").out.strip()
    read = memory(name, "t0")
    steps = [
        *opening(name), read, memory(name, "write", **FACT), shell(name, "cat /memory/x"), shell(name, f"cat /memory/{known}.md"),
        shell(name, "echo made-42 > made.txt"), memory(name, "handoff", body=HANDOFF), {"text": "Done as asked."},
    ]  # fmt: skip
    title = {"match": "generating the session title", "steps": [{"text": "Count the widget"}]}
    provider.load({"steps": steps, "conversations": [title], "models": [WAYS[name].model]})
    flags = set_up(place, name, mode, provider.url, login if mode is Auth.SUBSCRIPTION else None)
    ran = launch(place, name, flags)
    done = ran.done
    assert done.code == 0, done.err + done.out
    session = done.json
    assert (session["auth"], session["answer"]) == (mode, "Done as asked.")
    assert "the guard was asked about" not in done.err
    assert (place.tree / "made.txt").read_text() == "made-42\n"
    entry = place.amem("get", session["entries"][0], "--json").json
    assert (entry["title"], entry["author"]) == (FACT["title"], f"agent:{name}")
    handoff = place.amem("get", session["handoffs"][0], "--json").json
    assert (handoff["left_by"], len(session["handoffs"])) == ("agent", 1) and HANDOFF in handoff["body"]
    assert [line["tool"] for line in place.log("reads.jsonl") if line.get("session") == session["id"]] == ["t0", "get"]
    sent = "\n".join(exchange.body.decode("utf-8", "replace") for exchange in provider.log)
    assert "is read with the memory tools" in sent, "the guard stopped the tool, and the model was told why"
    assert "Through the egress." in sent, "the entry was read by path"
    assert not re.search(r'"type": ?"(web_search|x_search|code_interpreter)', sent), "nothing is offered that would run at the provider"

    counted = [exchange.usage for exchange in provider.log if exchange.usage is not None]
    # OpenCode and Grok leave the call for the session's title out of their own account.
    aside = [exchange for exchange in provider.log if exchange.step == -1 or title["match"].encode() in exchange.body]
    own = told(place, name, session["id"])
    assert own == ways.added([exchange.usage for exchange in provider.log if exchange.usage is not None and exchange not in aside])
    assert len(aside) <= WAYS[name].title_retries
    rows = session["usage"]
    summed = sum(row["input"] + row["output"] + row["cache_read"] + row["cache_write"] for row in rows)
    if mode is Auth.SUBSCRIPTION and name not in ways.FORWARDED:
        assert {row["source"] for row in rows} == {"harness"} and summed == sum(own.values())
    else:
        assert {row["source"] for row in rows} == {"egress"} and summed == sum(used.total for used in counted)
        assert all("status" not in row and "unmetered" not in row for row in rows)

    assert {row["billing"] for row in rows} == {"plan" if mode is Auth.SUBSCRIPTION else "metered"}
    if (name, mode) == ("claude", Auth.SUBSCRIPTION):
        own_token = f"Bearer {ways.LOGINS['claude']['claudeAiOauth']['accessToken']}"
        assert {exchange.headers["authorization"] for exchange in provider.log if exchange.usage is not None} == {own_token}

    # Nothing but the egress was asked for: no name looked up, no address outside loopback; and of the egress, no other host.
    assert ran.asked_for["TcpActiveOpens"] > 0, "the network was not watched"
    assert [counter for counter, count in ran.asked_for.items() if count and counter != "TcpActiveOpens"] == []
    refused = {reason["host"] for line in place.log("decisions.jsonl") if not line["allow"] for reason in line["reasons"]}
    assert refused == (UNHEEDED.get(name, set()) if mode is Auth.SUBSCRIPTION else set())
    assert {f"{host}:443" for host, _, _ in login.asked} <= set(registry.load(name).tunnel_hosts)


OFF = '{"version": 1, "disableAllHooks": true, "env": {"MEMORY_MCP_URL": "http://127.0.0.1:1/mcp"}}'
CLAUDES = {".claude/settings.json": OFF, ".claude/settings.local.json": OFF}
SWITCHES: dict[str, dict[str, str]] = {
    "claude": CLAUDES,
    "codex": {".codex/config.toml": "[features]\nhooks = false\n", ".codex/hooks.json": '{"hooks": {}}'},
    "gemini": {".gemini/settings.json": '{"hooksConfig": {"enabled": false}, "tools": {"enableHooks": false}}'},
    "qwen": {".qwen/settings.json": OFF, ".qwen/settings.local.json": OFF},
    "grok": {".grok/config.toml": "[features]\nhooks = false\n", ".grok/hooks/off.json": '{"hooks": {}}', **CLAUDES},
    "copilot": {".github/copilot/settings.json": OFF, ".github/copilot/settings.local.json": OFF, ".github/hooks/off.json": OFF, **CLAUDES},
    "pi": {".pi/settings.json": '{"extensions": ["!**/amem.ts"]}'},
    "opencode": {name: '{"plugin": []}' for name in ("opencode.json", "opencode.jsonc", ".opencode/opencode.json")},
}
"""All that a repository can bring along to that end, at once."""


def test_a_work_tree_cannot_switch_the_guard_off_and_a_note_is_left(place: Place, provider: Running, harness: str) -> None:  # noqa: F811
    """In Claude Code, Codex and Qwen Code the settings that a repository brings along beat those of the home."""
    for path, settings in SWITCHES[harness].items():
        (place.tree / path).parent.mkdir(parents=True, exist_ok=True)
        (place.tree / path).write_text(settings)
    provider.load({"steps": [shell(harness, "cat /memory/x"), {"text": "Done as asked."}]})
    ran = launch(place, harness, set_up(place, harness, Auth.KEY, provider.url))
    assert ran.done.code == 0, ran.done.err + ran.done.out
    (note,) = [place.amem("get", id, "--json").json for id in ran.done.json["handoffs"]]
    assert note["left_by"] == ("launcher" if harness == "copilot" else "hook"), "Copilot ends its transcript after its last hook"
    assert "is read with the memory tools" in note["body"], "the guard stopped the tool, and the model was told why"
    assert "Done as asked." in note["body"]


FOLDERS = (".claude", ".codex", ".gemini", ".qwen", ".grok", ".pi", ".opencode", ".github/copilot", ".agents")


def test_a_harness_starts_where_its_folder_of_the_tree_is_read_only_and_leaves_it_as_it_was(
    place: Place, provider: Running, harness: str  # noqa: F811
) -> None:  # fmt: skip
    """In the folder where it starts too, and with what it would make there when it starts somewhere for the first time."""
    subprocess.run(["git", "init", "-q", str(place.tree)], check=True)
    for folder in (f"{above}{name}/{below}" for name in FOLDERS for above in ("", "sub/") for below in ("", "commands/")):
        (place.tree / folder).mkdir(parents=True)
        (place.tree / folder / "notes.md").write_text("Only a note.\n")
    os.utime(place.tree, ns=(0, 0))
    before = listing(place.tree)
    provider.load({"steps": [shell(harness, f"cat {FOLDERS[-1]}/notes.md"), {"text": "Done as asked."}]})
    flags = set_up(place, harness, Auth.KEY, provider.url)
    flags[flags.index("--workdir") + 1] += "/sub"
    ran = launch(place, harness, flags)
    assert ran.done.code == 0, ran.done.err + ran.done.out
    assert ran.done.json["answer"] == "Done as asked."
    assert "Only a note." in provider.log[-1].body.decode()
    assert listing(place.tree) == before


SAID = {
    "404": r"404|scripted trouble|not found|selected model .* may not exist",
    "500": r"500|scripted trouble|experiencing high demand",
    "refused": r"refused|502|unreachable|cannot be reached|failed|connection error",
    "silent": r"fell silent|timed? ?out|idle|closed|disconnect|incomplete|terminated|interrupt|network|decoding|reset|EOF|50[0-9]",
}


@pytest.mark.parametrize("fault", compat.FAULTS)
def test_a_failing_provider_ends_the_run_within_a_bound(place: Place, provider: Running, harness: str, fault: str) -> None:  # noqa: F811
    """The launch's exit and message say what happened, the usage line is there, and so is a handoff."""
    url = provider.url
    if fault == "refused":
        with socket.create_server(("127.0.0.1", 0)) as free:
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
    elif fault == "silent":
        provider.load({"by": "count", "steps": [{"text": "never finished " * 50, "fault": {"kind": "stall", "after": 3}}] * 20})
        place.environment |= {"LAB_IDLE_S": "4"}
    else:
        provider.load({"steps": [{"text": "never said"}], "errors": [{"path": "/v1", "status": int(fault), "message": "scripted trouble"}]})
    ran = launch(place, harness, set_up(place, harness, Auth.KEY, url))
    assert ran.done.code not in (0, 4, 124), ran.done.err
    session = ran.done.json
    assert session["reason"] in ("harness", "empty_answer", *(["upstream_silent"] if fault == "silent" else []))
    (note,) = [place.amem("get", id, "--json").json for id in session["handoffs"]]
    assert note["left_by"] in ("hook", "launcher")
    assert re.search(SAID.get(fault, rf"{fault}|scripted trouble"), ran.done.err, re.IGNORECASE), ran.done.err
    assert session["usage"] and session["calls"] == sum(row["calls"] for row in session["usage"])
    if fault == "silent":  # each lasts as long as an answer may be silent, ten minutes: so it is not asked on and on
        asked = [exchange for exchange in provider.log if exchange.step is not None]
        assert len(asked) <= SILENCES + WAYS[harness].title_retries
        refused = sum(row.get("status", {}).get("403", 0) for row in session["usage"])
        assert (session["reason"] == "upstream_silent") == (refused > 0), "the launch says whose fault it was"
    if fault not in ("refused", "silent"):
        assert sum(row["status"][fault] for row in session["usage"]) == session["calls"]
    assert session["calls"] <= compat.shown()[harness]["tries"][fault]
    assert fault != "403" or session["calls"] <= 1 + WAYS[harness].title_retries, "a refusal is not tried again"


COMPACTING: dict[str, tuple[int, tuple[int, ...], tuple[str, ...]]] = {
    "claude": (195_000, (0,), ("--", "--autocompact", "100000")),
    "codex": (190_000, (0,), ("--", "-c", "model_auto_compact_token_limit=100000")),
    "gemini": (900_000, (0,), ()),
    "qwen": (230_000, (0,), ()),
    "grok": (125_000, (0,), ()),
    "copilot": (120_000, (0,), ()),
    "opencode": (128_000, (1,), ()),  # the session's title is its first call
    "pi": (126_000, (3, 4), ()),  # it looks when a turn is over
}
"""What the provider says was used, by which of its answers, and how the harness is told of a small window where its own is too large."""


def test_a_compaction_leaves_exactly_one_note(place: Place, provider: Running, harness: str) -> None:  # noqa: F811
    used, big, words = COMPACTING[harness]
    # By count: a history that was compacted holds no results to count.
    # pi keeps the last 20,000 tokens as they are, so that there is something to compact only when more than that was said.
    look = shell(harness, "echo counted the left shelf" + ("; yes counted the left shelf | head -c 48000" if harness == "pi" else ""))
    steps: list[dict[str, Any]] = [*[look] * (4 if harness == "pi" else 2), {"text": "Done as asked."}]
    steps = [{**step, "usage": {"input": used}} if n in big else step for n, step in enumerate(steps)]
    provider.load({"by": "count", "steps": steps, "side_text": "The left shelf was counted."})
    ran = launch(place, harness, set_up(place, harness, Auth.KEY, provider.url), *words)
    assert ran.done.code == 0, ran.done.err + ran.done.out
    (note,) = [place.amem("get", id, "--json").json for id in ran.done.json["handoffs"]]
    kind = "session-end" if harness == "gemini" else "pre-compact"  # Gemini fires it before each call: one note, rewritten
    assert note["left_by"] == "hook" and f"- kind: {kind}\n" in note["body"]
    assert "counted the left shelf" in note["body"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_during_a_tool_call_leaves_a_handoff(place: Place, provider: Running, harness: str, number: signal.Signals) -> None:  # noqa: F811
    provider.load({"steps": [shell(harness, "echo counted the left shelf"), shell(harness, "touch began; sleep 600"), {"text": "Never."}]})
    ran = launch(place, harness, set_up(place, harness, Auth.KEY, provider.url), until=place.tree / "began", number=number)
    session = ran.done.json
    (note,) = [place.amem("get", id, "--json").json for id in session["handoffs"]]
    assert note["left_by"] in ("hook", "launcher") and "counted the left shelf" in note["body"]
    assert ran.done.code != 4 and session["state"] == "ended"


SPAWNS = {
    "claude": {
        "tool": "Agent",
        "args": {"description": "Left shelf", "prompt": "Count the left shelf.", "subagent_type": "general-purpose"},
    },
    "codex": {
        "any": [
            {"tool": "collaboration.spawn_agent", "args": {"message": "Count the left shelf.", "task_name": "left_shelf"}},
            {"tool": "spawn_agent", "args": {"message": "Count the left shelf.", "task_name": "left_shelf"}},
        ]
    },
    "gemini": {"tool": "invoke_agent", "args": {"agent_name": "generalist", "prompt": "Count the left shelf."}},
    "qwen": {"tool": "agent", "args": {"description": "Left shelf", "prompt": "Count the left shelf.", "subagent_type": "general-purpose"}},
    "grok": {"tool": "spawn_subagent", "args": {"description": "Left shelf", "prompt": "Count the left shelf."}},
    "copilot": {
        "tool": "task",
        "args": {"description": "Left shelf", "prompt": "Count the left shelf.", "agent_type": "general-purpose", "name": "left"},
    },
    "opencode": {"tool": "task", "args": {"description": "Left shelf", "prompt": "Count the left shelf.", "subagent_type": "general"}},
}


@pytest.mark.parametrize("name", SPAWNS)
def test_a_spawn_becomes_a_task(place: Place, provider: Running, name: str) -> None:  # noqa: F811
    installed(name)
    provider.load({"steps": [SPAWNS[name], {"text": "Left to others."}]})
    ran = launch(place, name, set_up(place, name, Auth.KEY, provider.url), "--subagents", "board")
    assert ran.done.code == 0, ran.done.err + ran.done.out
    (task,) = place.amem("task", "list", "--json").json["tasks"]
    assert task["status"] == "proposed"
    sent = "\n".join(exchange.body.decode("utf-8", "replace") for exchange in provider.log)
    assert f"subagents are tasks here; others run them. filed {task['id']}" in sent, "the model was told where its work is"
    assert place.amem("task", "show", task["id"], "--json").json["body"].strip() == "Count the left shelf."


def test_a_grok_login_can_be_forwarded_and_metered(place: Place, provider: Running, login: lab.Lab) -> None:  # noqa: F811
    installed("grok")
    provider.load({"steps": [shell("grok", "true"), {"text": "Done as asked."}], "models": ["grok-4.6"]})
    flags = set_up(place, "grok", Auth.SUBSCRIPTION, provider.url, login)
    place.destination(provider.url, name="grok")
    ran = launch(place, "grok", [*flags, "--provider", "grok"])
    assert ran.done.code == 0, ran.done.err + ran.done.out
    (row,) = ran.done.json["usage"]
    assert (row["source"], row["billing"], row["destination"]) == ("egress", "plan", "grok")
    counted = [exchange.usage for exchange in provider.log if exchange.usage is not None]
    assert sum(row[part] for part in ("input", "output", "cache_read", "cache_write")) == sum(used.total for used in counted)
    asked = [exchange for exchange in provider.log if exchange.path == "/v1/responses"]
    assert asked and all(exchange.headers["authorization"].startswith("Bearer xai-session-") for exchange in asked)
    assert [host for host, _, _ in login.asked if host != "auth.x.ai"] == [], "nothing of it is tunnelled"

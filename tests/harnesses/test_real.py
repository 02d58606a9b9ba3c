"""Every harness that npm has, for real: headless in the sandbox against the scripted provider, on a key."""

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from amem.harnesses import compat, registry, totals
from amem.hooks import turns
from amem.model.call import Usage
from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Done, Place, confinement, place, provider  # noqa: F401 - fixtures
from tests.acceptance.network import Attempts
from tests.testing.installed import installed

pytestmark = pytest.mark.real_harness


class Ways(NamedTuple):
    """How the provider's model asks this harness for things, and what its own account leaves out."""

    shell: str
    command: str
    model: str
    more: dict[str, Any]
    t0: dict[str, Any]
    side_calls: int = 0
    """Calls that the provider answers and the harness does not count."""


T0 = {"tool": "memory.t0"}
D = {"description": "x"}
HARNESSES = {
    "claude": Ways("Bash", "command", "claude-sonnet-5-5", D, T0),
    "codex": Ways("exec_command", "cmd", "gpt-5.1-codex", {}, T0),
    "gemini": Ways("run_shell_command", "command", "gemini-2.5-pro", D, T0),
    "qwen": Ways("run_shell_command", "command", "qwen3-coder", D | {"is_background": False}, T0),
    # Grok declares no MCP tool to the model, and starts before its servers have answered: `search_tool` is how it asks for them.
    "grok": Ways("run_terminal_command", "command", "fake-1", D, {"tool": "search_tool", "args": {"query": "memory"}}),
    "copilot": Ways("bash", "command", "fake-1", D, T0),
    "opencode": Ways("bash", "command", "fake-1", D, T0, side_calls=1),  # the session's title
    "pi": Ways("bash", "command", "fake-1", {}, T0),
}


@pytest.fixture(params=HARNESSES)
def harness(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    installed(name)
    return name


def test_every_harness_that_is_said_to_be_shown_for_real_is_run_here() -> None:
    said = {name for name, proof in compat.shown().items() if proof["key"] == "real"}
    assert set(HARNESSES) == said - {"command"}  # which `make demo` and the acceptance tests run


def test_a_session_reads_memory_works_is_guarded_and_leaves_a_note(place: Place, provider: Running, harness: str) -> None:  # noqa: F811
    way = HARNESSES[harness]
    shell = [{"tool": way.shell, "args": {way.command: command} | way.more} for command in ("cat /memory/x", "echo made-42 > made.txt")]
    provider.load({"steps": [way.t0, *shell, {"text": "Done as asked."}]})
    place.destination(provider.url)
    done, asked_for = launch(place, harness, way.model)
    assert done.code == 0, done.err + done.out
    assert done.json["answer"] == "Done as asked."
    assert (place.tree / "made.txt").read_text() == "made-42\n"

    note = place.amem("handoff", "show", "--json").json
    assert note["left_by"] == "hook"
    assert "is read with the memory tools" in note["body"], "the guard stopped the tool, and the model was told why"
    if harness != "copilot":  # 1.0.102 writes the last events of its transcript after it has run the hook
        assert "Done as asked." in note["body"]
    if way.t0 == T0:
        assert {line["tool"] for line in place.log("reads.jsonl") if line.get("session") == done.json["id"]} == {"t0"}

    # Nothing but the egress was asked for: no name looked up, no address outside loopback.
    assert asked_for["TcpActiveOpens"] > 0, "the network was not watched"
    assert [name for name, count in asked_for.items() if count and name != "TcpActiveOpens"] == []


SWITCHES = {
    "claude": (".claude/settings.json", '{"disableAllHooks": true, "env": {"MEMORY_MCP_URL": "http://127.0.0.1:1/mcp"}}'),
    "codex": (".codex/config.toml", "[features]\nhooks = false\n"),
    "qwen": (".qwen/settings.json", '{"disableAllHooks": true}'),
    "grok": (".grok/config.toml", "[features]\nhooks = false\n"),
    "copilot": (".github/copilot/settings.json", '{"disableAllHooks": true}'),
    "pi": (".pi/settings.json", '{"extensions": ["!**/amem.ts"]}'),
    "opencode": ("opencode.json", '{"plugin": []}'),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_work_tree_cannot_switch_the_guard_off(place: Place, provider: Running, name: str) -> None:  # noqa: F811
    """In Claude Code, Codex and Qwen Code the settings that a repository brings along beat those of the home."""
    installed(name)
    way, (path, settings) = HARNESSES[name], SWITCHES[name]
    (place.tree / path).parent.mkdir(parents=True, exist_ok=True)
    (place.tree / path).write_text(settings)
    provider.load({"steps": [{"tool": way.shell, "args": {way.command: "cat /memory/x"} | way.more}, {"text": "Done as asked."}]})
    place.destination(provider.url)
    done, _ = launch(place, name, way.model)
    assert done.code == 0, done.err + done.out
    assert "is read with the memory tools" in place.amem("handoff", "show", "--json").json["body"]


def test_what_a_harness_says_it_used_is_what_the_provider_counted(place: Place, provider: Running, harness: str) -> None:  # noqa: F811
    way = HARNESSES[harness]
    provider.load({"steps": [{"tool": way.shell, "args": {way.command: "true"} | way.more}, {"text": "Done as asked."}]})
    place.destination(provider.url)
    done, _ = launch(place, harness, way.model)
    assert done.code == 0, done.err + done.out
    told = _sum(list(totals.read(harness, _usage_files(place, done.json["id"], harness)).models.values()))
    counted = [exchange.usage for exchange in provider.log if exchange.usage is not None]
    main = [used for used in counted if used is not None][way.side_calls :]
    assert told == _sum(main)

    rows = place.amem("usage", "--json").json["usage"]
    assert sum(row["input"] + row["output"] for row in rows) == sum(used.input + used.output for used in counted)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_ends_the_run_and_is_not_tried_again(place: Place, provider: Running, harness: str, status: int) -> None:  # noqa: F811
    provider.load({"steps": [{"text": "never said"}], "errors": [{"path": "/v1", "status": status}]})
    place.destination(provider.url)
    done, _ = launch(place, harness, HARNESSES[harness].model, "--timeout", "120s")
    assert done.code not in (0, 4, 124), done.err
    if status == 403:
        calls = [exchange for exchange in provider.log if exchange.method == "POST"]
        assert len(calls) <= 1 + (harness in ("grok", "opencode")), "the session's title is one more"


def launch(place: Place, harness: str, model: str, *words: str) -> tuple[Done, dict[str, int]]:  # noqa: F811
    """Launch headless, the session's network watched from outside."""
    command = place.command(
        "launch", "--harness", harness, *place.launch_flags(), "--model", model, "--json", "--prompt", "do as the test says", *words
    )  # fmt: skip
    process = subprocess.Popen(
        command, cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watch = Attempts(process.pid)
    watch.start()
    out, err = process.communicate(timeout=240)
    return Done(process.returncode, out, err), watch.end()


def _usage_files(place: Place, session: str, harness: str) -> list[list[dict[str, Any]]]:  # noqa: F811
    home = place.root / "state" / "homes" / session
    paths = [path for pattern in registry.load(harness).usage for path in sorted(home.glob(pattern))]
    return [_events(path) for path in paths]


def _events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes())] if path.suffix == ".json" else list(turns.events(path.read_bytes().splitlines()))


def _sum(used: list[Usage]) -> dict[str, int]:
    """Not every harness tells a cache write from other fresh input."""
    return {
        "fresh": sum(one.input + one.cache_write for one in used),
        "output": sum(one.output for one in used),
        "cache_read": sum(one.cache_read for one in used),
    }

"""The real harness programs take the scripted provider for a real one: no sandbox, one prompt, a shell call and two MCP calls.

One program for each dialect: Claude Code (Messages), Codex (Responses), Gemini CLI (generateContent), Qwen Code (chat completions).

What the clients say they used is the oracle for the provider's own sums: they parse the streams with their own code.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from amem.model.call import Usage
from amem.testing.provider import Running, running

from .installed import installed
from .memory_stub import HIT, Stub, memory_stub

pytestmark = pytest.mark.real_harness

SHELL = "printf made-by-%d 42 | tee made.txt"
"""Its output is not in its own text, so that only a shell that ran it can have told the model."""
SCRIPT: dict[str, Any] = {
    "reasoning": True,
    "steps": [
        {"text": "I look.", "any": [
            {"tool": "Bash", "args": {"command": SHELL, "description": "say it"}},
            {"tool": "exec_command", "args": {"cmd": SHELL}},
            {"tool": "run_shell_command", "args": {"command": SHELL, "description": "say it", "is_background": False}},
        ]},
        {"tool": "memory.search", "args": {"query": "egress"}},
        {"tool": "memory.get", "args": {"id": "$results[-1].hits[0].id"}},
        {"text": "The last word: ${results[-1].title}."},
    ],
}  # fmt: skip
SEARCH_FIRST: dict[str, Any] = {
    **SCRIPT,
    "steps": [SCRIPT["steps"][0], {"tool": "tool_search", "args": {"query": "memory search"}}, *SCRIPT["steps"][1:]],
}
"""gpt-5.5 is offered a tool search in place of MCP tools (Codex 0.171)."""
CODE = f"text((await tools.exec_command({{cmd: '{SHELL}'}})).output)"
FIND = "text(JSON.stringify(await tools.mcp__memory__search({query: 'egress'})))"
CODE_MODE: dict[str, Any] = {
    "reasoning": True,
    "steps": [{"tool": "exec", "args": CODE}, {"tool": "exec", "args": FIND}, {"text": "The last word: doc.md: Egress."}],
}
"""The catalogue's own models reach every tool through code (Codex 0.171)."""


def run(command: list[str], home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    tree = home / "tree"
    tree.mkdir()
    here = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "dumb", **environment}
    return subprocess.run(command, env=here, cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)


def claude(home: Path, provider: Running, memory: Stub, model: str) -> subprocess.CompletedProcess[str]:
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"memory": {"type": "http", "url": memory.url, "alwaysLoad": True}}}))
    flags = [
        "--model",
        model,
        "--mcp-config",
        str(config),
        "--strict-mcp-config",
        "--dangerously-skip-permissions",
        "--output-format",
        "json",
    ]
    return run(
        [*installed("claude"), "-p", "what leaves?", *flags], home, ANTHROPIC_BASE_URL=provider.url, ANTHROPIC_API_KEY="placeholder",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", IS_SANDBOX="1",
    )  # fmt: skip


def codex(home: Path, provider: Running, memory: Stub, model: str) -> subprocess.CompletedProcess[str]:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(f"""
model_provider = "egress"
check_for_update_on_startup = false
web_search = "disabled"
[model_providers.egress]
name = "egress"
base_url = "{provider.url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
requires_openai_auth = false
stream_max_retries = 0
request_max_retries = 0
[mcp_servers.memory]
url = "{memory.url}"
required = true
[analytics]
enabled = false
[features]
plugins = false
apps = false
unbounded_connection_retries = false
""")
    flags = ["-m", model, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json"]
    return run([*installed("codex"), "exec", "what leaves?", *flags], home, OPENAI_API_KEY="placeholder")


def gemini(home: Path, provider: Running, memory: Stub, model: str) -> subprocess.CompletedProcess[str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 1},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "mcpServers": {"memory": {"httpUrl": memory.url, "trust": True}},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    flags = ["-m", model, "--skip-trust", "--yolo", "-o", "json"]
    return run(
        [*installed("gemini"), "-p", "what leaves?", *flags], home, GOOGLE_GEMINI_BASE_URL=provider.url, GEMINI_API_KEY="placeholder"
    )


def qwen(home: Path, provider: Running, memory: Stub, model: str) -> subprocess.CompletedProcess[str]:
    settings = {
        "$version": 4,
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
        "tools": {"toolSearch": {"enabled": False}},
        "model": {"generationConfig": {"maxRetries": 0}},
        "mcpServers": {"memory": {"httpUrl": memory.url, "trust": True}},
    }
    (home / ".qwen").mkdir()
    (home / ".qwen" / "settings.json").write_text(json.dumps(settings))
    flags = ["-m", model, "--yolo", "-o", "json", "--max-wall-time", "60s"]
    base = provider.url + "/v1"
    return run([*installed("qwen"), "what leaves?", *flags], home, OPENAI_BASE_URL=base, OPENAI_API_KEY="placeholder")


@pytest.mark.parametrize("encoding", ["identity", "negotiate"])  # it accepts gzip, deflate, br and zstd (2.1.332)
def test_claude_takes_the_stream_for_a_real_one(tmp_path: Path, encoding: str) -> None:
    with running({**SCRIPT, "encoding": encoding}) as provider, memory_stub() as memory:
        ran = claude(tmp_path, provider, memory, "claude-sonnet-5-5")
    said = json.loads(ran.stdout)
    assert (ran.returncode, said["result"]) == (0, "The last word: doc.md: Egress.")
    assert memory.calls == [("search", {"query": "egress"}), ("get", {"id": HIT["id"]})]
    assert "made-by-42" in provider.log[1].body.decode()
    assert [(e.path, e.step, e.outcome) for e in provider.log] == [("/v1/messages", step, "sent") for step in range(4)]
    used = said["modelUsage"]["claude-sonnet-5-5"]
    assert provider.totals() == {
        ("anthropic", "claude-sonnet-5-5"): Usage(
            input=used["inputTokens"], output=used["outputTokens"], cache_read=used["cacheReadInputTokens"],
            cache_write=used["cacheCreationInputTokens"], reasoning=used["thinkingTokens"],
        )
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model", "script", "calls"),
    [
        ("gpt-5.1-codex", SCRIPT, ["search", "get"]),  # not in the catalogue: tools in namespaces
        ("gpt-5.5", {**SEARCH_FIRST, "encoding": "negotiate"}, ["search", "get"]),  # it accepts zstd and gzip
        ("gpt-6.2-sol", CODE_MODE, ["search"]),  # tools as an input item, called from code
    ],
)
def test_codex_takes_the_stream_for_a_real_one(tmp_path: Path, model: str, script: dict[str, Any], calls: list[str]) -> None:
    with running(script) as provider, memory_stub() as memory:
        ran = codex(tmp_path, provider, memory, model)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [e["item"]["text"] for e in events if e.get("item", {}).get("type") == "agent_message"][-1] == "The last word: doc.md: Egress."
    assert [name for name, _arguments in memory.calls] == calls
    assert "made-by-42" in provider.log[1].body.decode()
    assert [(e.path, e.step, e.outcome) for e in provider.log] == [("/v1/responses", n, "sent") for n in range(len(script["steps"]))]
    used = next(e["usage"] for e in events if e["type"] == "turn.completed")
    read, written = used["cached_input_tokens"], used["cache_write_input_tokens"]
    assert provider.totals() == {
        ("responses", model): Usage(
            input=used["input_tokens"] - read - written, output=used["output_tokens"], cache_read=read, cache_write=written,
            reasoning=used["reasoning_output_tokens"],
        )
    }  # fmt: skip


def test_claude_does_not_retry_a_permission_error(tmp_path: Path) -> None:
    """The shape that a refusal will have: one request, and the sentence reaches the person."""
    told = {"errors": [{"path": "/v1/messages", "status": 403, "message": "over the ceiling"}]}
    with running(told) as provider, memory_stub() as memory:
        ran = claude(tmp_path, provider, memory, "claude-sonnet-5-5")
    assert (ran.returncode, len(provider.log)) == (1, 1)
    assert "over the ceiling" in json.loads(ran.stdout)["result"]


def test_gemini_takes_the_stream_for_a_real_one(tmp_path: Path) -> None:
    with running(SCRIPT) as provider, memory_stub() as memory:
        ran = gemini(tmp_path, provider, memory, "gemini-2.5-pro")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said = json.loads(ran.stdout)
    assert said["response"] == "The last word: doc.md: Egress."
    assert memory.calls == [("search", {"query": "egress"}), ("get", {"id": HIT["id"]})]
    assert "made-by-42" in provider.log[1].body.decode()
    assert [(e.kind, e.step, e.outcome) for e in provider.log] == [("gemini", step, "sent") for step in range(4)]
    used = said["stats"]["models"]["gemini-2.5-pro"]["tokens"]
    assert provider.totals() == {
        ("gemini", "gemini-2.5-pro"): Usage(
            input=used["prompt"] - used["cached"], output=used["candidates"] + used["thoughts"], cache_read=used["cached"],
            reasoning=used["thoughts"],
        )
    }  # fmt: skip


def test_qwen_takes_the_stream_for_a_real_one(tmp_path: Path) -> None:
    with running(SCRIPT) as provider, memory_stub() as memory:
        ran = qwen(tmp_path, provider, memory, "qwen3-coder")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said = json.loads(ran.stdout)[-1]
    assert said["result"] == "The last word: doc.md: Egress."
    assert memory.calls == [("search", {"query": "egress"}), ("get", {"id": HIT["id"]})]
    # Qwen Code 0.24.4 on a busy machine may hand its model an empty output of a quick command, so the file is looked at.
    assert (tmp_path / "tree" / "made.txt").read_text() == "made-by-42"
    assert [(e.kind, e.step, e.outcome) for e in provider.log] == [("chat", step, "sent") for step in range(4)]
    used, sums = said["stats"]["models"]["qwen3-coder"]["tokens"], provider.totals()[("chat", "qwen3-coder")]
    assert (used["prompt"], used["cached"]) == (sums.input + sums.cache_read + sums.cache_write, sums.cache_read)
    assert (used["candidates"], used["thoughts"]) == (sums.output, sums.reasoning)

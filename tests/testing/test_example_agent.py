"""examples/agent.py, run as a person would: against the scripted provider and a memory server, in both dialects and framings."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amem.testing.demo import PROMPT, SCRIPT
from amem.testing.provider import Running, running

from .memory_stub import HIT, Stub, memory_stub

AGENT = Path(__file__).resolve().parents[2] / "examples" / "agent.py"


def agent(
    provider: Running | None, memory: Stub | None, *prompt: str, openai: bool = False, **more: str
) -> subprocess.CompletedProcess[str]:
    here = {"PATH": os.environ["PATH"], **more}
    if provider is not None and openai:
        here |= {"OPENAI_BASE_URL": provider.url + "/v1", "OPENAI_API_KEY": "placeholder"}
    elif provider is not None:
        here |= {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "placeholder"}
    if memory is not None:
        here["MEMORY_MCP_URL"] = memory.url
    return subprocess.run([sys.executable, "-I", str(AGENT), *prompt], env=here, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("openai", [False, True])
@pytest.mark.parametrize("events", [False, True])
def test_the_demonstration_runs_to_its_end(events: bool, openai: bool) -> None:
    with running(SCRIPT) as provider, memory_stub(events=events) as memory:
        ran = agent(provider, memory, PROMPT, openai=openai)
    assert ran.returncode == 0, ran.stderr
    assert "mem-demo-ba9876543210" in ran.stdout  # the id that the memory gave to what was written
    assert [name for name, _ in memory.calls] == ["t0", "search", "search", "get", "write", "handoff"]
    by_name: dict[str, Any] = dict(memory.calls)
    assert by_name["get"] == {"id": HIT["id"]}
    assert by_name["write"]["sources"] == [HIT["id"]] and "doc.md: Egress" in by_name["write"]["body"]
    assert by_name["handoff"]["cites"] == ["mem-demo-ba9876543210"]
    assert [e.step for e in provider.log] == [0, 1, 2, 3, 4]
    assert provider.totals()[("chat" if openai else "anthropic", "demo-1")].output == 30 + 24 + 160 + 90 + 60


def test_it_shakes_hands_before_it_asks() -> None:
    with running() as provider, memory_stub() as memory:
        agent(provider, memory, "hello", AMEM_TOKEN="bearer-of-the-session")
    assert memory.methods[:3] == ["initialize", "notifications/initialized", "tools/list"]
    assert {h["mcp-protocol-version"] for h in memory.headers[1:]} == {"2025-06-18"}
    assert {h["authorization"] for h in memory.headers} == {"Bearer bearer-of-the-session"}


def test_the_model_is_offered_the_memory_and_told_what_it_holds() -> None:
    with running() as provider, memory_stub() as memory:
        agent(provider, memory, "what", "leaves?")
    asked = provider.log[0].json
    assert [tool["name"] for tool in asked["tools"]] == ["search", "get", "write", "handoff"]
    said = asked["messages"][0]["content"]
    assert said.startswith("what leaves?") and "You are agent:test" in said and HIT["id"] in said


def test_a_refused_tool_call_is_for_the_model_to_read() -> None:
    told = {"steps": [{"tool": "memory.write", "args": {"title": "x"}}, {"text": "so be it"}]}
    with running(told) as provider, memory_stub(refuse="write") as memory:
        ran = agent(provider, memory, "write it")
    assert (ran.returncode, ran.stdout) == (0, "so be it\n")
    assert provider.log[1].json["messages"][-1]["content"][0]["is_error"] is True


def test_a_refused_model_call_ends_it_with_the_reason() -> None:
    told = {"errors": [{"status": 403, "message": "the session's label exceeds the ceiling"}]}
    with running(told) as provider, memory_stub() as memory:
        ran = agent(provider, memory, "hello")
    assert (ran.returncode, ran.stdout, len(provider.log)) == (1, "", 1)
    assert "403" in ran.stderr and "exceeds the ceiling" in ran.stderr


def test_a_missing_variable_is_named() -> None:
    assert "MEMORY_MCP_URL" in agent(None, None).stderr


def test_a_model_that_never_ends_is_left() -> None:
    with running({"steps": [{"tool": "memory.search", "args": {"query": "x"}}]}) as provider, memory_stub() as memory:
        ran = agent(provider, memory, "hello")
    assert ran.returncode == 1 and "no answer after 20 turns" in ran.stderr

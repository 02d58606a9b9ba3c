"""Spawns of a harness become tasks: what is filed, and what the model is told in its harness's own shape."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amem.ledger.reading import Filter
from amem.ledger.task import Task
from amem.memory.session import Memory, Session
from amem.server import app, board
from tests.memory.seed import agent, seeded
from tests.server.serving import serving
from tests.server.test_task_tools import ADMITTING, done, filed


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with seeded(tmp_path, ADMITTING) as found:
        yield found


def event(tool: str, **given: Any) -> bytes:
    return json.dumps({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given, "cwd": "/work"}).encode()


def refused(memory: Memory, session: Session, harness: str, body: bytes) -> str:
    """Why the spawn does not run."""
    asked = board.spawn(body, harness)
    assert asked is not None
    answer = board.answer(memory, session, asked, harness)
    assert answer.status in (200, 403)
    text = answer.body.decode()
    if answer.status == 403:
        return text
    told = json.loads(text)
    told = told.get("hookSpecificOutput", told)
    assert told.get("permissionDecision", told.get("decision")) == "deny"
    return str(told.get("permissionDecisionReason", told.get("reason")))


def tasks(memory: Memory) -> list[Task]:
    return list(memory.ledger.list(Filter(("dom-me",))).tasks)


@pytest.mark.parametrize(
    ("harness", "tool", "given", "title"),
    [
        ("claude", "Agent", {"description": "Left", "prompt": "Count left.", "subagent_type": "x"}, "Left"),
        ("codex", "spawn_agent", {"message": "Count left.", "task_name": "left"}, "left"),
        ("codex", "collaborationspawn_agent", {"message": "Count left.", "task_name": "left"}, "left"),
        ("gemini", "invoke_agent", {"agent_name": "counter", "prompt": "Count left."}, "counter"),
        ("qwen", "agent", {"description": "Left", "prompt": "Count left.", "subagent_type": "x"}, "Left"),
        ("grok", "spawn_subagent", {"description": "Left", "prompt": "Count left."}, "Left"),
    ],
)
def test_a_spawn_under_a_held_task_is_a_child_and_a_continuation(
    memory: Memory, harness: str, tool: str, given: dict[str, Any], title: str
) -> None:
    held, session = filed(memory), agent(memory)
    done(memory, session, "task_claim")
    reason = refused(memory, session, harness, event(tool, **given))
    by_origin = {task.origin: task for task in tasks(memory)}
    child, resumed = by_origin[f"task:{held.id}"], by_origin[f"continues:{held.id}"]
    assert (child.title, memory.ledger.text("dom-me", child.body), child.status) == (title, "Count left.", "admitted")
    assert child.id in reason and resumed.id in reason and "task_complete" in reason
    again = refused(memory, session, harness, event(tool, **given))
    assert child.id in again and "was there already" in again and len(tasks(memory)) == 3


def test_a_workflow_is_one_task_for_each_agent_it_calls(memory: Memory) -> None:
    filed(memory)
    session = agent(memory)
    done(memory, session, "task_claim")
    script = """export const meta = {name: 'count'};
    const a = await agent('Count left.', {label: 'Left'}); const b = await agent("Count right.");"""
    refused(memory, session, "claude", event("Workflow", script=script))
    assert {task.title for task in tasks(memory)} >= {"Left", "Count right."}
    unread = "for (const shelf of shelves) await agent(`Count ${shelf}.`);"
    refused(memory, session, "claude", event("Workflow", script=unread))
    assert unread in {memory.ledger.text("dom-me", task.body) for task in tasks(memory)}


def test_outside_a_task_it_is_proposed_to_the_owner(memory: Memory) -> None:
    reason = refused(memory, agent(memory), "claude", event("Agent", prompt="Count left.", description="Left"))
    (task,) = tasks(memory)
    assert task.status == "proposed" and task.id in reason and "owner" in reason


def test_an_encrypted_prompt_sends_the_model_to_fan_out(memory: Memory) -> None:
    reason = refused(memory, agent(memory), "codex", event("collaborationspawn_agent", message="gAAAAAB" + "x" * 200, task_name="t"))
    assert "fan_out" in reason and "encrypted" in reason and tasks(memory) == []
    for tool in ("collaborationwait_agent", "collaborationsend_message"):
        assert "fan_out" in refused(memory, agent(memory), "codex", event(tool, id="x"))


def test_a_finished_part_is_told_by_its_handoff(memory: Memory) -> None:
    filed(memory)
    session, spawn = agent(memory), event("Agent", prompt="Count left.", description="Left")
    done(memory, session, "task_claim")
    refused(memory, session, "claude", spawn)
    done(memory, session, "task_complete", handoff="Split.")
    worker = agent(memory)
    done(memory, worker, "task_claim")
    left = done(memory, worker, "task_complete", handoff="Six.")["handoffs"][0]
    resumed = agent(memory)
    done(memory, resumed, "task_claim")
    assert left in refused(memory, resumed, "claude", spawn)


@pytest.mark.parametrize("prompt", ["the key is AKIAIOSFODNN7EXAMPLQ", "x" * (300 << 10), "\0", "\ud800"])
def test_what_cannot_be_filed_does_not_run_either(memory: Memory, prompt: str) -> None:
    reason = refused(memory, agent(memory), "claude", event("Agent", prompt=prompt, description="t"))
    assert "could not be filed" in reason and tasks(memory) == []


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'"x"', b"[" * 10**5, event("Read", file_path="/x"), event("mcp__memory__fan_out", tasks=[])]
)
def test_any_other_event_is_no_spawn(body: bytes) -> None:
    assert board.spawn(body, "claude") is None


@pytest.mark.parametrize("on", [True, False])
def test_the_hook_is_asked_and_answers_in_the_harnesss_shape(memory: Memory, on: bool) -> None:
    import urllib.request

    session = agent(memory)
    body = event("Agent", prompt="Count left.", description="Left")
    with serving(lambda: app.application(memory, session, board=on)) as url:
        request = urllib.request.Request(f"{url}/hook/pre-tool?harness=claude", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            status, text = answer.status, answer.read()
    assert status == (200 if on else 204)
    assert len(tasks(memory)) == int(on)
    if on:
        assert json.loads(text)["hookSpecificOutput"]["permissionDecision"] == "deny"

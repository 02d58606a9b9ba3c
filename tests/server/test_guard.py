import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.server import guard

ENTRY = "mem-me-0123456789ab"
FILE = f"/memory/dom-me/2026/11/{ENTRY}.md"


def answered(body: bytes, harness: str) -> guard.Answer:
    return guard.answer(guard.verdict(body, harness), harness)


def event(tool: str, given: Any, cwd: str = "/r/tree") -> dict[str, Any]:
    return {"session_id": "s", "cwd": cwd, "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given}


@pytest.mark.parametrize(
    ("harness", "tool", "given", "cwd"),
    [
        ("claude", "Read", {"file_path": FILE}, "/r/tree"),
        ("claude", "Read", {"file_path": f"/r/../memory/./x/{ENTRY}.md"}, "/r/tree"),
        ("claude", "Read", {"file_path": f"//memory/{ENTRY}.md"}, "/r/tree"),
        ("claude", "Read", {"file_path": f"{ENTRY}.md"}, "/memory/dom-me"),
        ("claude", "Grep", {"pattern": "secret", "path": "/memory"}, "/r/tree"),
        ("claude", "Grep", {"pattern": "secret"}, "/memory/dom-me"),
        ("claude", "Glob", {"pattern": "/memory/**/*.md"}, "/r/tree"),
        ("claude", "Glob", {"pattern": "/mem*/x"}, "/r/tree"),
        ("claude", "Edit", {"file_path": FILE, "old_string": "a", "new_string": "b"}, "/r/tree"),
        ("claude", "Bash", {"command": f"cat {FILE}"}, "/r/tree"),
        ("claude", "Bash", {"command": "grep -r token /memory"}, "/r/tree"),
        ("claude", "Bash", {"command": "cd /memory && cat dom-me/*"}, "/r/tree"),
        ("claude", "Bash", {"command": "cd / ; cd memory ; ls"}, "/r/tree"),
        ("claude", "Bash", {"command": "cat <'/memory/x'"}, "/r/tree"),
        ("claude", "Bash", {"command": "F=/memory/x; cat $F"}, "/r/tree"),
        ("claude", "Bash", {"command": 'sh -c "cat ../../memory/x; echo done"'}, "/r/tree"),
        ("claude", "Bash", {"command": "ls"}, "/memory"),
        ("codex", "Bash", {"command": "rg x /memory/dom-me"}, "/r/tree"),
        ("codex", "shell", {"command": ["cat", FILE]}, "/r/tree"),
        ("codex", "apply_patch", {"command": f"*** Begin Patch\n*** Update File: {FILE}\n@@\n-a\n+b\n*** End Patch"}, "/r/tree"),
        ("codex", "view_image", {"path": "/memory/x.png"}, "/r/tree"),
        ("unheard-of", "open_it", {"deep": [{"where": FILE}]}, "/r/tree"),
        ("gemini", "run_shell_command", {"command": "cd /memory; ls"}, "/r/tree"),
    ],
)  # fmt: skip
def test_tool_that_reaches_the_projection_is_denied(harness: str, tool: str, given: Any, cwd: str) -> None:
    verdict = guard.decide(event(tool, given, cwd), harness)
    assert not verdict.allow
    assert "memory" in verdict.reason


@pytest.mark.parametrize(
    ("harness", "tool", "given"),
    [
        ("claude", "Read", {"file_path": "/r/tree/memory/notes.md"}),
        ("claude", "Read", {"file_path": "/opt/memory/memory"}),
        ("claude", "Read", {"file_path": "/memoryx/notes.md"}),
        ("claude", "Grep", {"pattern": "/memory"}),
        ("claude", "Glob", {"pattern": "**/*.py"}),
        ("claude", "Write", {"file_path": "/r/tree/a.py", "content": "open('/memory/x')"}),
        ("claude", "Bash", {"command": "pytest tests/memory -q && ls -la /usr/*"}),
        ("claude", "Bash", {"command": "cat memory/README.md; echo 'unclosed"}),
        ("claude", "mcp__memory__get", {"id": FILE}),
        ("claude", "TodoWrite", {"todos": []}),
        ("codex", "Bash", {"command": "make test"}),
        ("codex", "apply_patch", {"command": "*** Begin Patch\n*** Add File: memory/x.md\n+/memory/x\n*** End Patch"}),
        ("unheard-of", "think", None),
    ],
)
def test_other_tools_run(harness: str, tool: str, given: Any) -> None:
    assert guard.decide(event(tool, given), harness) == guard.Verdict(True)


def test_read_of_an_entry_names_the_call_that_opens_it() -> None:
    verdict = guard.decide(event("Read", {"file_path": FILE}), "claude")
    assert f'{{"id": "{ENTRY}"}}' in verdict.reason
    assert verdict.entries == (FILE,)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Edit", {"file_path": FILE, "old_string": "a", "new_string": "b"}),
        ("Grep", {"pattern": "x", "path": FILE}),
        ("Bash", {"command": f"cat {FILE} /memory/other"}),
        ("Bash", {"command": f"cat {FILE} | grep x"}),
        ("Bash", {"command": f"ls /memory; cat {FILE}"}),
        ("Read", {"file_path": f"/memory/{'x/' * 9}{ENTRY}.md"}),
        ("Read", {"file_path": f"/memory/a\nb/{ENTRY}.md"}),
    ],
)  # fmt: skip
def test_only_a_plain_read_of_entries_can_be_served(tool: str, given: Any) -> None:
    verdict = guard.decide(event(tool, given), "claude")
    assert not verdict.allow and verdict.entries == ()


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b'{"tool_name": 3}', b'{"tool_name": "Read", "tool_input": [1]}', b"[" * 100_000]
)
def test_event_that_cannot_be_read_is_denied(body: bytes) -> None:
    assert answered(body, "claude").status == 200
    assert answered(body, "grok").status == 403


@pytest.mark.parametrize(
    ("harness", "keys"),
    [
        ("qwen", {"hookSpecificOutput"}),
        ("gemini", {"decision", "reason"}),
        ("copilot", {"permissionDecision", "permissionDecisionReason"}),
    ],
)
def test_other_harnesses_are_denied_in_their_own_shape(harness: str, keys: set[str]) -> None:
    raw = json.dumps({"toolName": "view", "toolArgs": {"path": FILE}, "cwd": "/r"}).encode()
    assert set(json.loads(answered(raw, harness).body)) == keys


@pytest.mark.parametrize("name", ["mcp__memory__get", "mcp_memory_get", "memory-get", "memory_get", "memory__get"])
def test_own_tools_answer_for_themselves(name: str) -> None:
    assert guard.decide(event(name, {"id": FILE}), "any").allow


def test_denial_has_the_shape_of_the_harness() -> None:
    raw = json.dumps(event("Read", {"file_path": FILE})).encode()
    told = json.loads(answered(raw, "codex").body)
    assert told["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert told["hookSpecificOutput"]["permissionDecisionReason"]
    assert answered(raw, "grok").status == 403
    assert answered(json.dumps(event("Read", {"file_path": "/r/a"})).encode(), "codex") == guard.Answer(204)


@given(
    st.sampled_from(["claude", "codex", "other"]), st.sampled_from(["Bash", "Grep", "apply_patch", "x"]), st.recursive(st.text(), st.lists)
)
def test_no_event_makes_the_guard_fail(harness: str, tool: str, value: Any) -> None:
    keys = {"command": value, "path": value, "pattern": value}
    assert isinstance(guard.decide(event(tool, keys), harness), guard.Verdict)

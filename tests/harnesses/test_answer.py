"""The answer of a headless run, read from hostile bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.harnesses.answer import Answer, read
from amem.harnesses.base import AnswerKind


def lines(*events: Any) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


CLAUDE_SAID = {"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "half"}]}}
CASES = [
    ("text", b"  plain\n", Answer(text="plain")),
    (
        "claude",
        lines({"type": "system", "subtype": "init"}, CLAUDE_SAID, {"type": "result", "result": "whole", "is_error": False}),
        Answer(text="whole"),
    ),
    (
        "claude",
        # 2.1.332 keeps `subtype: success` on an API error.
        lines({"type": "result", "subtype": "success", "is_error": True, "result": "API Error: 403 over the ceiling"}),
        Answer(text="", error="API Error: 403 over the ceiling"),
    ),
    ("claude", lines({"type": "system"}, CLAUDE_SAID) + b'{"type": "resu', Answer(text="half", error="the harness ended without a result")),
    ("claude", b"asked for text output\n", Answer(text="asked for text output")),
    (
        "codex",
        lines(
            {"type": "thread.started"},
            {"type": "item.completed", "item": {"type": "error", "message": "model metadata not found"}},
            {"type": "item.completed", "item": {"type": "agent_message", "text": "first"}},
            {"type": "error", "message": "Reconnecting... 1/5"},
            {"type": "item.completed", "item": {"type": "agent_message", "text": "last"}},
            {"type": "turn.completed", "usage": {}},
        ),
        Answer(text="last"),
    ),
    (
        "codex",
        lines(
            {"type": "turn.started"},
            {"type": "error", "message": "a"},
            {"type": "turn.failed", "error": {"message": "403 Forbidden: over the ceiling"}},
        ),
        Answer(text="", error="403 Forbidden: over the ceiling"),
    ),
    ("codex", lines({"type": "thread.started"}), Answer(text="", error="the harness ended without finishing its turn")),
    ("gemini", json.dumps({"session_id": "x", "response": "yes", "stats": {}}, indent=2).encode(), Answer(text="yes")),
    ("gemini", json.dumps({"error": {"type": "ApiError", "message": "refused", "code": 403}}).encode(), Answer(text="", error="refused")),
    ("qwen", json.dumps([{"type": "system"}, {"type": "result", "is_error": False, "result": "yes"}]).encode(), Answer(text="yes")),
    (
        "qwen",
        json.dumps([{"type": "result", "is_error": True, "subtype": "error_during_execution", "error": {"message": "403 no"}}]).encode(),
        Answer(text="", error="403 no"),
    ),
    ("grok", json.dumps({"type": "error", "message": "no key"}).encode(), Answer(text="", error="no key")),
    (
        "opencode",
        lines(
            {"type": "step_start", "part": {}},
            {"type": "text", "part": {"type": "text", "text": "pong"}},
            {"type": "step_finish", "part": {}},
        ),
        Answer(text="pong"),
    ),
    (
        "opencode",
        lines({"type": "error", "error": {"name": "APIError", "data": {"message": "Forbidden"}}}),
        Answer(text="", error="Forbidden"),
    ),
    (
        "muse",
        lines(
            {"payload": {"kind": "run_output_delta", "text": "po"}},
            {"payload": {"kind": "run_terminal", "terminal": "completed", "text": "pong"}},
        ),
        Answer(text="pong"),
    ),
    ("muse", lines({"payload": {"kind": "run_output_delta", "text": "po"}}), Answer(text="po", error="the harness ended without a result")),
    ("agy", json.dumps({"conversation_id": "c", "status": "SUCCESS", "response": "pong"}).encode(), Answer(text="pong")),
    ("agy", json.dumps({"status": "ERROR", "response": ""}).encode(), Answer(text="", error="ERROR")),
]


@pytest.mark.parametrize(("kind", "stdout", "answer"), CASES)
def test_the_final_text_and_the_failure_are_found(kind: str, stdout: bytes, answer: Answer) -> None:
    assert read(AnswerKind(kind), stdout) == answer


KEYS = st.sampled_from(
    ["type", "item", "message", "content", "text", "result", "error", "payload", "kind", "part", "status", "response", "is_error"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(KEYS, part, max_size=4),
    max_leaves=12,
)


@given(kind=st.sampled_from(AnswerKind), events=st.lists(JSON, max_size=5), cut=st.integers(min_value=0, max_value=40))
def test_no_output_makes_it_raise(kind: AnswerKind, events: list[Any], cut: int) -> None:
    stdout = lines(*events)
    answer = read(kind, stdout[: len(stdout) - cut])
    assert isinstance(answer.text, str) and (answer.error is None or answer.error)


@given(kind=st.sampled_from(AnswerKind), stdout=st.binary(max_size=200))
def test_bytes_that_are_no_events_are_passed_on(kind: AnswerKind, stdout: bytes) -> None:
    assert read(kind, b"not an event " + stdout).text.startswith("not an event")


@pytest.mark.parametrize("kind", AnswerKind)
def test_deep_nesting_does_not_overflow_the_stack(kind: AnswerKind) -> None:
    assert read(kind, b"[" * 100_000).text

"""What a request asks, in the shapes that the real harnesses send (Claude Code 2.1.332, Codex 0.171, Gemini CLI 0.61, Qwen Code 0.24)."""

import json
from typing import Any

import pytest

from amem.model.call import Dialect
from amem.testing.requests import Side, Tool, decode, kind, read

KINDS = [
    ("POST", "/v1/messages", Dialect.ANTHROPIC),
    ("POST", "/gateway/anthropic/v1/messages", Dialect.ANTHROPIC),
    ("POST", "/v1/messages/count_tokens", Side.COUNT_TOKENS),
    ("POST", "/v1/responses", Dialect.RESPONSES),
    ("POST", "/v1/chat/completions", Dialect.CHAT),
    ("POST", "/v1beta/models/gemini-2.5-pro:generateContent", Dialect.GEMINI),
    ("POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent", Dialect.GEMINI),
    ("POST", "/v1internal:streamGenerateContent", Dialect.GEMINI),
    ("POST", "/v1internal:loadCodeAssist", Side.CODE_ASSIST),
    ("POST", "/v1beta/models/g:countTokens", Side.GEMINI_COUNT),
    ("GET", "/v1/models", Side.MODELS),
    ("HEAD", "/api/hello", Side.ROOT),
    ("GET", "/", Side.ROOT),
    ("GET", "/v1/messages", Side.UNKNOWN),
    ("POST", "/v1/messages/batches", Side.UNKNOWN),
    ("POST", "/v1internal:somethingElse", Side.UNKNOWN),
]


@pytest.mark.parametrize(("method", "path", "expected"), KINDS)
def test_kind(method: str, path: str, expected: Dialect | Side) -> None:
    assert kind(method, path) == expected


TOOLS: list[tuple[Dialect, dict[str, Any], list[Tool]]] = [
    (
        Dialect.ANTHROPIC,
        {"tools": [{"name": "Bash"}, {"type": "web_search_20250305", "name": "web_search"}]},
        [Tool("Bash"), Tool("web_search")],
    ),
    (Dialect.CHAT, {"tools": [{"type": "function", "function": {"name": "a"}}]}, [Tool("a")]),
    (Dialect.GEMINI, {"tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}, {"googleSearch": {}}]}, [Tool("a"), Tool("b")]),
    (
        Dialect.RESPONSES,
        {
            "tools": [
                {"type": "function", "name": "exec_command"},
                {"type": "namespace", "name": "mcp__memory", "tools": [{"type": "function", "name": "t0"}]},
                {"type": "tool_search", "execution": "client"},
                {"type": "web_search"},
            ],
            "input": [
                {"type": "additional_tools", "tools": [{"type": "custom", "name": "exec"}]},
                {"type": "tool_search_output", "tools": [{"type": "namespace", "name": "mcp__x", "tools": [{"name": "y"}]}]},
            ],
        },
        [
            Tool("exec_command"),
            Tool("t0", "mcp__memory"),
            Tool("tool_search", form="tool_search"),
            Tool("exec", form="custom"),
            Tool("y", "mcp__x"),
        ],
    ),
    (Dialect.RESPONSES, {"input": "a plain text"}, []),
]


@pytest.mark.parametrize(("dialect", "body", "expected"), TOOLS)
def test_offered_tools(dialect: Dialect, body: dict[str, Any], expected: list[Tool]) -> None:
    assert list(read(dialect, "/v1beta/models/m:generateContent", {}, json.dumps(body)).tools) == expected


ANSWER = {"hits": [{"id": "mem-1"}]}
TEXT = json.dumps(ANSWER)
RESULTS: list[tuple[Dialect, dict[str, Any]]] = [
    (
        Dialect.ANTHROPIC,
        {"messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t"}]},
            {"role": "user", "content": [{"type": "tool_result", "content": TEXT}, {"type": "text", "text": TEXT}]},
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": t} for t in (TEXT, "page")]}]},
        ]},
    ),
    (
        Dialect.RESPONSES,
        {"input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "function_call", "call_id": "c"},
            {"type": "function_call_output", "output": f"Wall time: 0.0063 seconds\nOutput:\n{TEXT}"},
            {"type": "custom_tool_call_output", "output": [{"type": "input_text", "text": t} for t in ("Script completed\n", TEXT)]},
        ]},
    ),
    (Dialect.CHAT, {"messages": [{"role": "tool", "content": TEXT}, {"role": "user", "content": "x"}, {"role": "tool", "content": TEXT}]}),
    (
        Dialect.GEMINI,
        {"contents": [{"role": "user", "parts": [
            {"functionResponse": {"name": "a", "response": {"output": f"<untrusted_context>\n{TEXT}\n</untrusted_context>"}}},
            {"functionResponse": {"name": "a", "response": ANSWER}},
        ]}]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "body"), RESULTS)
def test_results_are_what_the_tools_returned_whatever_the_wrapping(dialect: Dialect, body: dict[str, Any]) -> None:
    assert read(dialect, "/v1beta/models/m:generateContent", {}, json.dumps(body)).results == (ANSWER, ANSWER)


@pytest.mark.parametrize(
    ("answer", "value"), [("plain", "plain"), ("", ""), ("a [b", "a [b"), ("1.5", 1.5), ([], []), ([{"type": "text", "text": "x"}], "x")]
)
def test_what_is_not_wrapped_stays(answer: Any, value: Any) -> None:
    assert decode(answer) == value


def test_code_assist_is_read_through_its_envelope() -> None:
    body = {"model": "gemini-2.5-pro", "project": "p", "request": {"tools": [{"functionDeclarations": [{"name": "a"}]}]}}
    call = read(Dialect.GEMINI, "/v1internal:streamGenerateContent", {"alt": "sse"}, json.dumps(body))
    assert (call.model, call.stream, call.tools, call.envelope, call.array) == ("gemini-2.5-pro", True, (Tool("a"),), True, False)


def test_gemini_names_its_model_in_the_path() -> None:
    call = read(Dialect.GEMINI, "/v1beta/models/gemini-2.5-pro:streamGenerateContent", {}, "{}")
    assert (call.model, call.stream, call.array) == ("gemini-2.5-pro", True, True)


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_a_body_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read(Dialect.CHAT, "/v1/chat/completions", {}, text)

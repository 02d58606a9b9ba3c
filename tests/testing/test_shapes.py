"""The wire shapes: a stream, put together by the rules of the real API, is the body that would have been sent in one piece."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.model.call import Dialect, Usage
from amem.testing import shapes
from amem.testing.requests import Tool
from amem.testing.script import Answer, Call

from ..shared import shared_path
from .readers import READERS, sse

SPENT = Usage(input=1000, output=30, cache_read=200, cache_write=50, reasoning=7)
TOOL = Tool("search", "mcp__memory")
ANSWERS = {
    "text": Answer(text="Hello, world: ünïcode 🐟."),
    "nothing": Answer(text=""),
    "thought and text": Answer(text="Hello", thought="Hm."),
    "two calls": Answer(calls=(Call(Tool("Bash"), {"command": 'echo "x"\n'}), Call(TOOL, {}))),
    "text and a call": Answer(text="I look.", calls=(Call(TOOL, {"query": "fish"}),), thought="Hm."),
    "free-form call": Answer(calls=(Call(Tool("exec", form="custom"), "text('x')\n"),)),
    "small pieces": Answer(text="abc", thought="def", calls=(Call(TOOL, {"a": [1, None]}),), chunk=1),
}


def streamed(dialect: Dialect, body: dict[str, Any], chunk: int) -> bytes:
    return b"".join(event.encode() for event in shapes.STREAM[dialect](body, chunk))


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("case", ANSWERS)
def test_stream_adds_up_to_the_body(dialect: Dialect, case: str) -> None:
    answer = ANSWERS[case]
    body = shapes.WHOLE[dialect](answer, SPENT, "m-1", 1_800_000_000)
    expected = json.loads(json.dumps(body))
    if case == "nothing" and dialect is Dialect.CHAT:
        expected["choices"][0]["message"]["content"] = None
    assert READERS[dialect](streamed(dialect, body, answer.chunk)) == expected


@given(text=st.text(min_size=1), thought=st.none() | st.text(min_size=1), chunk=st.integers(0, 5), dialect=st.sampled_from(Dialect))
def test_any_text_survives_any_cut(text: str, thought: str | None, chunk: int, dialect: Dialect) -> None:
    body = shapes.WHOLE[dialect](Answer(text=text, thought=thought), SPENT, "m", 0)
    assert READERS[dialect](streamed(dialect, body, chunk)) == json.loads(json.dumps(body))


USAGES: dict[Dialect, Any] = {
    Dialect.ANTHROPIC: {
        "input_tokens": 1000, "cache_creation_input_tokens": 50, "cache_read_input_tokens": 200, "output_tokens": 30,
        "output_tokens_details": {"thinking_tokens": 7},
    },
    Dialect.RESPONSES: {
        "input_tokens": 1250, "input_tokens_details": {"cached_tokens": 200, "cache_write_tokens": 50}, "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 7}, "total_tokens": 1280,
    },
    Dialect.CHAT: {
        "prompt_tokens": 1250, "completion_tokens": 30, "total_tokens": 1280,
        "prompt_tokens_details": {"cached_tokens": 200, "cache_write_tokens": 50}, "completion_tokens_details": {"reasoning_tokens": 7},
    },
    Dialect.GEMINI: {
        "promptTokenCount": 1200, "cachedContentTokenCount": 200, "candidatesTokenCount": 23, "thoughtsTokenCount": 7,
        "totalTokenCount": 1230,
    },
}  # fmt: skip


@pytest.mark.parametrize("dialect", Dialect)
def test_usage_counts_as_the_provider_counts(dialect: Dialect) -> None:
    """OpenAI and Google count the cached prompt into the prompt; Anthropic and amem do not. Google leaves thoughts out of its answer."""
    body = shapes.WHOLE[dialect](ANSWERS["text"], SPENT, "m", 0)
    assert body["usageMetadata" if dialect is Dialect.GEMINI else "usage"] == USAGES[dialect]


def test_anthropic_pings_between_events() -> None:
    """As the real API does, so that a reader which knows only the documented order is found out."""
    body = shapes.WHOLE[Dialect.ANTHROPIC](ANSWERS["text"], SPENT, "m", 0)
    assert [name for name, _text in sse(streamed(Dialect.ANTHROPIC, body, 0))][2] == "ping"


def test_what_a_dialect_cannot_say_is_not_in_its_sum() -> None:
    silent = Usage(input=1, output=2, cache_read=3, cache_write=4)
    assert {dialect: shapes.spoken(dialect, silent) for dialect in Dialect} == {
        Dialect.ANTHROPIC: silent,
        Dialect.RESPONSES: Usage(input=1, output=2, cache_read=3, cache_write=4, reasoning=0),
        Dialect.CHAT: Usage(input=1, output=2, cache_read=3, cache_write=4, reasoning=0),
        Dialect.GEMINI: Usage(input=1, output=2, cache_read=3),
    }


RECORDED = {
    Dialect.ANTHROPIC: ("anthropic--stream_tool.json", Answer(calls=(Call(Tool("get_weather"), {"location": "San Francisco"}),))),
    Dialect.RESPONSES: ("responses--stream-custom-tool.json", Answer(calls=(Call(Tool("exec", form="custom"), "const r = 1;"),))),
}


@pytest.mark.parametrize("dialect", RECORDED)
def test_shape_is_that_of_a_recorded_stream(dialect: Dialect) -> None:
    """Every event and key of a recording of the real API is in ours, in the recording's order."""
    name, answer = RECORDED[dialect]
    recorded = [json.loads(line[6:]) for line in _lines(name) if line.startswith("data: {")]
    body = shapes.WHOLE[dialect](answer, SPENT, "m", 0)
    ours = [json.loads(text) for _name, text in sse(streamed(dialect, body, 0))]
    order = list(dict.fromkeys(event["type"] for event in recorded))
    assert [kind for kind in dict.fromkeys(event["type"] for event in ours) if kind in order] == order
    for event in recorded:
        assert any(_covers(mine, event) for mine in ours), event


def _lines(name: str) -> list[str]:
    return shared_path(f"data/usage-fixtures/{name}").read_text().splitlines()


def _covers(ours: Any, theirs: Any) -> bool:
    if not isinstance(theirs, dict) or not isinstance(ours, dict):
        return isinstance(ours, dict) == isinstance(theirs, dict)
    return ours.get("type") == theirs.get("type") and all(key in ours and _covers(ours[key], value) for key, value in theirs.items())


def test_errors_have_the_dialects_shape() -> None:
    said = shapes.error("anthropic", 403, "no")
    assert (said["type"], said["error"]) == ("error", {"type": "permission_error", "message": "no"})
    assert shapes.error("gemini", 403, "no") == {"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}}
    assert shapes.error("chat", 403, "no")["error"]["type"] == "permission_error"

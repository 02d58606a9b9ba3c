"""Prompts in each dialect, and what is read of answers of every kind."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.egress import flow, prompt
from amem.egress.prompt import By, Prompt, Said, Stop, Turn
from amem.model.call import Dialect
from amem.testing import shapes
from amem.testing.script import DEFAULT_USAGE, Answer

PROMPT = Prompt("m-1", [Turn(By.USER, "one"), Turn(By.MODEL, "two"), Turn(By.USER, "three")], 64, system="be brief")


@pytest.mark.parametrize("dialect", Dialect)
def test_the_egress_reads_a_prompt_as_what_it_asks_for(dialect: Dialect) -> None:
    form = prompt.FORMS[dialect]
    where = flow.target("POST", form.path("m-1"))
    assert isinstance(where, flow.Target) and where.dialect is dialect
    call = flow.call(where, dialect, json.dumps(form.body(PROMPT)).encode())
    assert isinstance(call, flow.Call)
    assert (call.kind, call.model, call.stream, call.max_output) == (flow.Kind.CALL, "m-1", False, 64)
    assert call.body is not None
    places = [call.body.text.index(f'"{text}"') for text in ("one", "two", "three")]
    assert places == sorted(places) and '"be brief"' in call.body.text
    assert "be brief" not in json.dumps(form.body(PROMPT._replace(system=None)))


@pytest.mark.parametrize("dialect", Dialect)
def test_an_answer_is_its_text_without_thoughts(dialect: Dialect) -> None:
    body = shapes.WHOLE[dialect](Answer(text="ready", thought="hm"), DEFAULT_USAGE, "m-1", 0)
    assert prompt.read(dialect, body) == Said("ready", Stop.END)


def anthropic(reason: object, *blocks: Any) -> Any:
    return {"content": list(blocks), "stop_reason": reason}


def responses(status: str, *parts: Any, reason: object = None) -> Any:
    return {"status": status, "incomplete_details": {"reason": reason}, "output": [{"type": "message", "content": list(parts)}]}


def chat(reason: object, content: Any, **more: Any) -> Any:
    return {"choices": [{"message": {"content": content, **more}, "finish_reason": reason}]}


def gemini(reason: object, *parts: Any) -> Any:
    return {"candidates": [{"content": {"parts": list(parts)}, "finishReason": reason}]}


TEXT = {"type": "text", "text": "a"}
OUTPUT = {"type": "output_text", "text": "a"}


@pytest.mark.parametrize(
    ("dialect", "answer", "said"),
    [
        (Dialect.ANTHROPIC, anthropic("max_tokens", TEXT, TEXT), Said("aa", Stop.LENGTH)),
        (Dialect.ANTHROPIC, anthropic("refusal"), Said("", Stop.FILTERED)),
        (Dialect.ANTHROPIC, anthropic("tool_use", {"type": "tool_use", "text": "b"}, "junk", None), Said("", Stop.OTHER)),
        (Dialect.ANTHROPIC, anthropic(["end_turn"], {"type": "text", "text": 3}), Said("", Stop.OTHER)),
        (Dialect.RESPONSES, responses("completed", OUTPUT, OUTPUT), Said("aa", Stop.END)),
        (Dialect.RESPONSES, responses("completed", {"type": "refusal", "refusal": "no"}), Said("", Stop.FILTERED)),
        (Dialect.RESPONSES, responses("incomplete", OUTPUT, reason="max_output_tokens"), Said("a", Stop.LENGTH)),
        (Dialect.RESPONSES, responses("incomplete", reason="content_filter"), Said("", Stop.FILTERED)),
        (Dialect.RESPONSES, responses("failed"), None),
        (Dialect.RESPONSES, responses("incomplete") | {"incomplete_details": "gone"}, Said("", Stop.OTHER)),
        (Dialect.CHAT, chat("length", "a"), Said("a", Stop.LENGTH)),
        (Dialect.CHAT, chat("stop", [TEXT, {"type": "image"}, TEXT]), Said("aa", Stop.END)),
        (Dialect.CHAT, chat("stop", None, refusal="no"), Said("", Stop.FILTERED)),
        (Dialect.CHAT, chat("tool_calls", None), Said("", Stop.OTHER)),
        (Dialect.CHAT, {"choices": []}, None),
        (Dialect.CHAT, {"choices": [{"message": "a"}]}, None),
        (Dialect.GEMINI, gemini("MAX_TOKENS", {"text": "a"}, {"text": "b", "thought": True}), Said("a", Stop.LENGTH)),
        (Dialect.GEMINI, gemini("SAFETY"), Said("", Stop.FILTERED)),
        (Dialect.GEMINI, {"promptFeedback": {"blockReason": "SAFETY"}}, Said("", Stop.FILTERED)),
        (Dialect.GEMINI, {"candidates": [{"finishReason": "STOP"}]}, Said("", Stop.END)),
        (Dialect.GEMINI, {"candidates": []}, None),
        (Dialect.CHAT, {"error": {"message": "no"}}, None),
        (Dialect.CHAT, ["a"], None),
        (Dialect.CHAT, chat("stop", "half \ud800 of a pair"), Said("half \ufffd of a pair", Stop.END)),
        (Dialect.CHAT, chat("stop", "a \U0001f600 whole one"), Said("a \U0001f600 whole one", Stop.END)),
    ],
)
def test_what_is_read_of_an_answer(dialect: Dialect, answer: Any, said: Said | None) -> None:
    assert prompt.read(dialect, answer) == said


NAMES = st.sampled_from((
    "content", "text", "type", "stop_reason", "output", "status", "message", "choices", "finish_reason", "candidates", "parts",
    "promptFeedback", "blockReason", "finishReason", "incomplete_details", "reason", "completed", "incomplete", "output_text", "refusal",
))  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NAMES | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=24,
)


@given(st.sampled_from(Dialect), JSON)
def test_nothing_that_an_answer_says_raises(dialect: Dialect, answer: Any) -> None:
    said = prompt.read(dialect, answer)
    assert said is None or said.text.encode().decode() == said.text

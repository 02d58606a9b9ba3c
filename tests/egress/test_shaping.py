import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.egress import flow, shaping
from amem.egress.destinations import BEARER, DESTINATIONS
from amem.egress.flow import Call, Target
from amem.egress.routes import Auth, Route
from amem.egress.shaping import shape
from amem.model.call import Billing, Dialect
from amem.model.label import Label

PATHS = {
    Dialect.ANTHROPIC: "/v1/messages",
    Dialect.RESPONSES: "/v1/responses",
    Dialect.CHAT: "/v1/chat/completions",
    Dialect.GEMINI: "/v1beta/models/m:generateContent",
}


def route(*names: str, **more: Any) -> Route:
    return Route(
        destination="llmao",
        base_url="http://127.0.0.1:4000",
        ceiling=Label.INTERNAL,
        billing=Billing.METERED,
        auth=Auth.GATEWAY,
        header=BEARER,
        shaping=names,
        **more,
    )


def call(dialect: Dialect, body: dict[str, Any], path: str | None = None) -> Call:
    where = flow.target("POST", path or PATHS[dialect])
    assert isinstance(where, Target)
    made = flow.call(where, dialect, json.dumps({"model": "m", **body}, indent=1).encode())
    assert isinstance(made, Call)
    return made


def left(dialect: Dialect, body: dict[str, Any], *names: str, **more: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    shaped = shape(call(dialect, body), route(*names, **more))
    assert shaped.call.body is not None
    return json.loads(shaped.call.body.text), shaped.applied


def test_a_late_system_message_is_folded_into_the_system_member() -> None:
    user, late = {"role": "user", "content": "hi"}, {"role": "system", "content": [{"type": "text", "text": "# Environment"}]}
    body = {"system": "You are.", "messages": [user, late, {"role": "assistant", "content": "x"}, {"role": "system", "content": "more"}]}
    found, applied = left(Dialect.ANTHROPIC, body, "fold_system")
    assert applied == ("fold_system",)
    assert found["messages"] == [user, {"role": "assistant", "content": "x"}]
    assert found["system"] == [
        {"type": "text", "text": "You are."},
        {"type": "text", "text": "# Environment"},
        {"type": "text", "text": "more"},
    ]


@pytest.mark.parametrize(
    ("dialect", "member", "told", "leaves"),
    [
        (Dialect.ANTHROPIC, "output_config", {"effort": "high", "x": 1}, {"effort": "medium", "x": 1}),
        (Dialect.ANTHROPIC, "output_config", {"effort": "max"}, {"effort": "xhigh"}),
        (Dialect.ANTHROPIC, "output_config", {"effort": "medium"}, None),
        (Dialect.RESPONSES, "reasoning", {"effort": "high", "summary": "auto"}, {"effort": "medium", "summary": "auto"}),
        (Dialect.RESPONSES, "reasoning", None, None),
    ],
)
def test_an_effort_that_a_gateway_does_not_know_becomes_one_it_does(dialect: Dialect, member: str, told: Any, leaves: Any) -> None:
    found, applied = left(dialect, {member: told}, "gateway_effort")
    assert (found[member], applied) == ((leaves, ("gateway_effort",)) if leaves else (told, ()))


@pytest.mark.parametrize(
    ("dialect", "body", "leaves"),
    [
        (Dialect.ANTHROPIC, {"max_tokens": 128_000}, {"max_tokens": 32_768}),
        (
            Dialect.ANTHROPIC,
            {"max_tokens": 128_000, "thinking": {"type": "enabled", "budget_tokens": 100_000}},
            {"max_tokens": 32_768, "thinking": {"type": "enabled", "budget_tokens": 16_384}},
        ),
        (Dialect.RESPONSES, {"max_output_tokens": 128_000}, {"max_output_tokens": 32_768}),
        (Dialect.CHAT, {"max_tokens": 40_000, "max_completion_tokens": 50_000}, {"max_tokens": 32_768, "max_completion_tokens": 32_768}),
        (
            Dialect.GEMINI,
            {"generationConfig": {"maxOutputTokens": 65_536, "topP": 1}},
            {"generationConfig": {"maxOutputTokens": 32_768, "topP": 1}},
        ),
        (Dialect.CHAT, {"max_tokens": 32_768}, None),
        (Dialect.ANTHROPIC, {"max_tokens": True}, None),
        (Dialect.RESPONSES, {}, None),
    ],
)
def test_output_is_capped_where_it_is_over_and_nowhere_else(dialect: Dialect, body: dict[str, Any], leaves: dict[str, Any] | None) -> None:
    found, applied = left(dialect, body, "cap_output")
    assert (found, applied) == ({"model": "m", **(leaves or body)}, ("cap_output",) if leaves else ())


def test_tool_results_become_turns_of_the_user_before_the_text() -> None:
    result = {"functionResponse": {"name": "t0", "response": {"output": "x"}}}
    asked = {"role": "model", "parts": [{"functionCall": {"name": "t0", "args": {}}}]}
    body = {"contents": [asked, {"role": "function", "parts": [{"text": "note"}, result, result]}, {"role": "user", "parts": [result]}]}
    found, applied = left(Dialect.GEMINI, body, "fold_function_response")
    assert applied == ("fold_function_response",)
    assert found["contents"] == [
        asked,
        {"role": "user", "parts": [result, result]},
        {"role": "user", "parts": [{"text": "note"}]},
        {"role": "user", "parts": [result]},
    ]
    assert left(Dialect.GEMINI, {"contents": found["contents"]}, "fold_function_response")[1] == ()


def test_a_chat_stream_is_asked_for_its_figures() -> None:
    assert left(Dialect.CHAT, {"stream": True}, "ask_usage") == (
        {"model": "m", "stream": True, "stream_options": {"include_usage": True}},
        ("ask_usage",),
    )
    assert left(Dialect.CHAT, {"stream": True, "stream_options": {"include_usage": True}}, "ask_usage")[1] == ()
    assert left(Dialect.CHAT, {}, "ask_usage")[1] == ()


def test_muses_catalogue_is_the_list_of_models() -> None:
    where = flow.target("GET", "/muse-code/models")
    assert isinstance(where, Target)
    asked = flow.call(where, Dialect.RESPONSES, b"")
    assert isinstance(asked, Call)
    shaped = shape(asked, route("muse_models", "cap_output"))
    assert (shaped.call.path, shaped.applied) == ("/v1/models", ("muse_models",))


def test_an_obligation_is_set_and_named() -> None:
    found, applied = left(Dialect.ANTHROPIC, {"inference_geo": "eu"}, require={"inference_geo": "us"})
    assert (found["inference_geo"], applied) == ("us", ("require.inference_geo",))
    assert left(Dialect.ANTHROPIC, {"inference_geo": "us"}, require={"inference_geo": "us"})[1] == ()


def test_every_listed_change_exists() -> None:
    listed = {name for row in DESTINATIONS.values() for wire in row.wires.values() for name in wire.shaping}
    assert listed <= set(shaping.CHANGES)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "content", "parts", "effort", "functionResponse"]), inner)
    ),
    max_leaves=8,
)
MEMBERS = ("messages", "system", "contents", "reasoning", "output_config", "max_tokens", "generationConfig", "thinking", "stream_options")


@given(st.sampled_from(list(Dialect)), st.dictionaries(st.sampled_from(MEMBERS), json_values))
def test_no_body_makes_a_change_raise_and_a_second_pass_changes_nothing(dialect: Dialect, body: dict[str, Any]) -> None:
    every = route(*shaping.CHANGES)
    once = shape(call(dialect, body), every)
    assert shape(once.call, every).applied == ()


@given(st.sampled_from(list(Dialect)), st.dictionaries(st.sampled_from(MEMBERS), json_values))
def test_without_a_list_the_body_is_the_harnesss(dialect: Dialect, body: dict[str, Any]) -> None:
    asked = call(dialect, body)
    assert shape(asked, route()) == (asked, ())

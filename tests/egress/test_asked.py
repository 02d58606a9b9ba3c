import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.egress.asked import tools_asked
from amem.model.call import Dialect
from tests.shared import shared_path

A, R, C, G = Dialect.ANTHROPIC, Dialect.RESPONSES, Dialect.CHAT, Dialect.GEMINI


@pytest.mark.parametrize(
    ("dialect", "fixture", "names"),
    [
        (A, "anthropic--stream_tool", ["get_weather"]),
        (A, "anthropic--tool", ["get_weather"]),
        (A, "anthropic--thinking", []),
        (R, "responses--stream-custom-tool", ["exec"]),
        (R, "responses--reasoning", []),
        (C, "completions--stream_tool_empty_content", ["Bash"]),
        (G, "vertex-gemini--stream_tool", ["get_weather"]),
        (G, "vertex-gemini--tool", ["get_weather"]),
    ],
)
def test_the_tools_of_a_recorded_answer(dialect: Dialect, fixture: str, names: list[str]) -> None:
    body = shared_path(f"data/usage-fixtures/{fixture}.json").read_bytes()
    assert tools_asked(dialect, body) == names
    assert tools_asked(dialect, gzip.compress(body), "gzip") == names


def test_a_whole_answer_of_responses_and_an_envelope_of_code_assist() -> None:
    whole = {
        "object": "response",
        "output": [{"type": "function_call", "name": "a"}, {"type": "message"}, {"type": "custom_tool_call", "name": "b"}],
    }
    assert tools_asked(R, json.dumps(whole).encode()) == ["a", "b"]
    envelope = {"response": {"candidates": [{"content": {"parts": [{"functionCall": {"name": "c"}}, {"text": "x"}]}}]}}
    assert tools_asked(G, json.dumps(envelope).encode()) == ["c"]


json_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["content", "choices", "delta", "tool_calls", "item", "output", "candidates", "parts", "name", "type"]), inner
        )
    ),
    max_leaves=10,
)


@given(st.sampled_from(list(Dialect)), json_values, st.booleans())
def test_no_answer_makes_it_raise(dialect: Dialect, value: object, stream: bool) -> None:
    text = json.dumps(value)
    tools_asked(dialect, (f"data: {text}\n\n" if stream else text).encode())

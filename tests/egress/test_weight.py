import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.egress import flow, weight
from amem.egress.flow import Malformed
from amem.egress.members import short_members
from amem.egress.usage import UsageReader
from amem.egress.weight import Held, Share
from amem.model.call import Dialect, Usage

EMPTY = b"[]," * (weight.MAX_VALUES // 2 - 4) + b"0"

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_no_text_holds_more_values_than_are_counted(value: object) -> None:
    def count(one: object) -> int:
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        return 1 + sum(map(count, inner))

    text = json.dumps(value)
    assert weight.values(text) + 1 >= count(value)
    assert weight.values(text.encode()) == weight.values(text)


@given(st.dictionaries(st.sampled_from(["a", "usage", "model", "response", "é"]), values))
def test_the_short_members_of_an_object_are_as_json_has_them(value: dict[str, object]) -> None:
    assert short_members(json.dumps(value)) == value


def test_long_members_are_left_out_and_an_answer_in_a_member_is_looked_into() -> None:
    long = ["x" * 70_000]
    value = {"a": long, "b": "y" * 70_000, "response": {"output": long, "usage": {"n": 1}}, "other": {"output": long, "usage": 2}, "c": 3}
    assert short_members(json.dumps(value)) == {"response": {"usage": {"n": 1}}, "c": 3}


@pytest.mark.parametrize("text", ["", "[]", "[1]", "1", '"x"', "null", "{", '{"a":1', "[" * 2000])
def test_what_is_no_object_is_said(text: str) -> None:
    with pytest.raises(ValueError):
        short_members(text)


def test_a_request_with_too_many_values_is_refused_before_they_are_made() -> None:
    assert isinstance(flow.read_body(b'{"a":[' + EMPTY + b"]}"), flow.Body)  # as many as there may be
    found = flow.read_body(b'{"a":[' + EMPTY + b",[]" * 9 + b"]}")
    assert isinstance(found, Malformed)
    assert "values" in found.why


WHOLE = (
    b'{"type":"message","id":"msg_1","model":"m","content":[%s,[],[],[],[],[],[],[],[]],"usage":{"input_tokens":7,"output_tokens":3}}'
    % EMPTY
)
CASES: dict[str, tuple[Dialect, bytes]] = {
    "whole": (Dialect.ANTHROPIC, WHOLE),
    "an event": (
        Dialect.RESPONSES,
        b'data: {"type":"response.completed","response":{"id":"resp_1","model":"m","output":[%s,[],[],[],[],[],[],[],[]],'
        b'"usage":{"input_tokens":7,"output_tokens":3}}}\n\n' % EMPTY,
    ),
    "embeddings": (
        Dialect.CHAT,
        b'{"data":[{"embedding":[%s]}],"model":"m","id":"e","usage":{"prompt_tokens":7,"completion_tokens":3}}'
        % (b"0.1," * 600_000 + b"0"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_answer_with_too_many_values_is_metered_all_the_same(case: str) -> None:
    dialect, body = CASES[case]
    reader = UsageReader(dialect, short=short_members)
    reader.feed(body)
    told = reader.result()
    assert (told.usage, told.model, told.complete) == (Usage(input=7, output=3), "m", True)


def test_bytes_of_all_requests_together_have_a_bound_that_small_ones_do_not_feel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight, "MAX_HELD_BYTES", 4 << 20)
    held = Held()
    one, other, small = Share(held), Share(held), Share(held)
    assert one.holds(3 << 20)
    assert other.holds(1 << 20)
    assert not other.holds(1)
    other.free()
    assert small.holds(1 << 20)
    assert one.holds(0)
    assert not one.holds(1)
    small.free()
    one.free()
    assert held.all == 0
    assert Share(held).holds(4 << 20)

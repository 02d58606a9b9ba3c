import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.egress import flow, weight
from amem.egress.flow import Malformed
from amem.egress.weight import Held, Share

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


def test_a_request_with_too_many_values_is_refused_before_they_are_made() -> None:
    assert isinstance(flow.read_body(b'{"a":[' + EMPTY + b"]}"), flow.Body)  # as many as there may be
    found = flow.read_body(b'{"a":[' + EMPTY + b",[]" * 9 + b"]}")
    assert isinstance(found, Malformed)
    assert "values" in found.why


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

"""Members of long answers: the same as a reader of the whole text would find, in any split, and few steps whatever the text is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.egress import members
from amem.egress.members import SHORT_BYTES, MemberReader

WANTED, WRAPS = ("usage", "model", 'odd "é\\'), ("response",)

texts = st.text(st.sampled_from('a"\\{}[]:,é\u2028 \n'), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | st.sampled_from(WANTED + WRAPS), inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from((*WANTED, *WRAPS, "content", "a")) | texts, values, max_size=6)


def found(text: bytes, *cuts: int) -> tuple[list[object], bool]:
    reader, got, last = MemberReader(WANTED, WRAPS), list[object](), 0
    for cut in (*sorted(cuts), len(text)):
        got += reader.feed(text[last:cut])
        last = cut
    return got, reader.done


def expected(value: dict[str, object]) -> dict[str, object]:
    """What is wanted of an object; null says nothing."""
    told = {name: value[name] for name in (*WANTED, *WRAPS) if value.get(name) is not None}
    inner = value.get("response")
    if isinstance(inner, dict):
        told["response"] = {name: inner[name] for name in (*WANTED, *WRAPS) if inner.get(name) is not None}
    return told


@given(objects | st.lists(objects, max_size=4), st.booleans(), st.sampled_from([None, 1]), st.lists(st.integers(0, 400), max_size=5))
def test_what_is_found_is_what_the_whole_text_says(value: object, plain: bool, indent: int | None, cuts: list[int]) -> None:
    text = json.dumps(value, ensure_ascii=plain, indent=indent).encode()
    all_of_it = value if isinstance(value, list) else [value]
    assert found(text, *(cut for cut in cuts if cut < len(text))) == ([expected(one) for one in all_of_it], True)
    assert found(text, *range(len(text))) == found(text)


@given(objects, st.integers(1, 200))
def test_of_a_cut_object_nothing_is_told(value: dict[str, object], left: int) -> None:
    text = json.dumps(value).encode()
    assert found(text[:-left]) == ([], False)


@given(st.binary(max_size=200), st.text(st.sampled_from('{}[]:,"\\ a1'), max_size=60))
def test_whatever_comes_is_read_without_a_fault(data: bytes, marks: str) -> None:
    found(data)
    assert found(marks.encode()) == found(marks.encode(), *range(len(marks)))


def test_a_long_member_is_left_out_and_those_around_it_are_not() -> None:
    long = ["x" * SHORT_BYTES]
    value = {"model": "m", "content": long, "response": {"output": long, "usage": 1, "model": long}, "usage": 2}
    assert found(json.dumps(value).encode()) == ([{"model": "m", "response": {"usage": 1}, "usage": 2}], True)


def test_a_key_that_is_told_twice_counts_as_json_has_it() -> None:
    assert found(b'{"usage":1,"us\\u0061ge":2,"model":1,"model":null}') == ([{"usage": 2, "model": 1}], True)


@pytest.mark.parametrize("member", [b'"a":1,', b'"usage":{},', b",", b":", b"}{", b'"a":[[],{}],'])
def test_an_object_of_more_members_than_an_answer_has_is_given_up(member: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "MAX_MARKS", 1000)
    reader = MemberReader(WANTED, WRAPS)
    assert reader.feed(b"[{" + member * 1001) is not None
    assert (reader.given_up, reader.done) == (True, False)
    assert reader.feed(b'"usage":1}]') == []

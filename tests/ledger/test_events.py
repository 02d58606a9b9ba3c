"""Events as lines of JSON: what is written reads back, defaults stay out, no text gets in."""

from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, get_args, get_origin

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from amem.ledger import events as ev

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=20), int: st.integers(-(2**40), 2**40), float: st.floats(allow_nan=False, allow_infinity=False),
}  # fmt: skip


def _values(annotation: Any) -> st.SearchStrategy[Any]:
    if get_origin(annotation) is tuple:
        return st.lists(st.text(max_size=10), max_size=3).map(tuple)
    if isinstance(annotation, UnionType):
        return st.one_of(*(st.none() if one is type(None) else _values(one) for one in get_args(annotation)))
    return _PLAIN[annotation]


EVENTS = st.sampled_from(list(ev.KINDS.values())).flatmap(
    lambda kind: st.builds(kind, **{item.name: _values(item.type) for item in fields(kind)})
)


@settings(max_examples=50)
@given(EVENTS)
def test_what_is_written_reads_back(event: ev.Event) -> None:
    assert ev.read(event.kind, event.task, event.by, event.at_ms, event.fence, ev.data(event)) == event


def test_every_kind_of_the_command_line_has_one_record() -> None:
    assert set(ev.KINDS) == {
        "created", "admitted", "claimed", "heartbeat", "released", "handoff_left", "completed", "invalidated", "posted", "rescored",
        "blocked", "unblocked", "graded", "checked", "erased",
    }  # fmt: skip


def test_defaults_stay_out_and_needed_keys_do_not() -> None:
    assert ev.data(ev.Admitted(task="task-me-00000000", by="human:a:b", at_ms=1)) == "{}"
    assert ev.data(ev.Posted(task="task-me-00000000", by="human:a:b", at_ms=1, text="")) == '{"text":""}'
    assert ev.data(ev.Claimed(task="t", by="a", at_ms=1, fence=1, lease_ms=5)) == '{"lease_ms":5}'


@pytest.mark.parametrize(("kind", "error"), [("melted", KeyError), ("admitted", TypeError)])
def test_what_this_version_does_not_know_is_not_half_read(kind: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        ev.read(kind, "t", "a", 1, 0, '{"later": 1}')


def test_a_key_with_a_default_may_be_missing() -> None:
    """An event of an earlier amem lacks the keys that came since."""
    for kind in ev.KINDS.values():
        for item in fields(kind):
            if item.default is MISSING:
                assert item.name in {
                    "task", "by", "at_ms", "title", "priority", "rank", "chain", "lease_ms", "handoff", "text", "was", "why", "on", "state",
                    "verdict",
                }, (kind, item.name)  # fmt: skip

"""Labels, ids, principals, clock and tokens."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.model import clock, ids, principal
from amem.model.entry import tokens
from amem.model.label import Label, highest, lowest

labels = st.sampled_from(list(Label))


def test_the_order_of_labels_is_the_products() -> None:
    assert [label for label in sorted(Label, key=lambda each: each.rank)] == ["public", "internal", "restricted"]


@given(labels, labels)
def test_a_label_exceeds_only_what_is_below_it(first: Label, second: Label) -> None:
    order = ["public", "internal", "restricted"]
    assert first.exceeds(second) == (order.index(first) > order.index(second))


@given(st.lists(labels), labels)
def test_the_highest_is_at_least_every_one_and_the_floor(found: list[Label], floor: Label) -> None:
    top = highest(found, floor)
    assert top in (*found, floor)
    assert not any(each.exceeds(top) for each in (*found, floor))


@given(labels, st.lists(labels))
def test_the_lowest_exceeds_none(first: Label, others: list[Label]) -> None:
    assert not any(lowest(first, *others).exceeds(each) for each in (first, *others))


@pytest.mark.parametrize("kind", ["session", "held", "source", "decision", "call"])
def test_a_drawn_id_has_its_form(kind: str) -> None:
    assert ids.is_id(kind, ids.draw(kind))


@pytest.mark.parametrize("kind", ["entry", "task"])
@pytest.mark.parametrize("domain", ["dom-me", "dom-a-b-c", "dom-0"])
def test_an_entrys_id_names_its_domain(kind: str, domain: str) -> None:
    id = ids.draw(kind, domain)
    assert ids.is_id(kind, id)
    assert ids.domain_of(id) == domain


@pytest.mark.parametrize(
    "text",
    ["", "mem-me-", "mem-me-0123456789a", "mem-me-0123456789abc", "mem-me-0123456789aB", "mem-me-0123456789ai", "mem-../x-0123456789ab",
     "mem-me-0123456789ab\n", "mem--0123456789ab", "task-me-0123456789ab", "mem-me/0123456789ab"],
)  # fmt: skip
def test_what_is_no_entrys_id_is_refused(text: str) -> None:
    assert not ids.is_id("entry", text)


@given(st.text())
def test_no_text_with_a_separator_is_an_id(text: str) -> None:
    if any(mark in text for mark in "/\\.\0"):
        assert not any(ids.is_id(kind, text) for kind in ids.FORMS)


@pytest.mark.parametrize("text", ["human:asf:you", "agent:claude", "tap:fetch", "system:amem", "agent:stdio"])
def test_principals(text: str) -> None:
    assert principal.is_principal(text)
    assert principal.kind(text) == text.split(":")[0]


@pytest.mark.parametrize(
    "text", ["", "human:asf", "human:asf:", "agent:", "agent:a b", "system:root", "agent:../x", "agent:x\n", "human:a:b:c"]
)
def test_what_is_no_principal(text: str) -> None:
    assert not principal.is_principal(text)


def test_a_pattern_covers_by_case() -> None:
    assert principal.matches("agent:*", "agent:claude")
    assert not principal.matches("agent:*", "human:asf:agent")
    assert not principal.matches("agent:Claude", "agent:claude")


def test_instants_have_milliseconds_and_z() -> None:
    assert clock.stamp(datetime(2026, 11, 30, 7, 5, 1, 123999, tzinfo=UTC)) == "2026-11-30T07:05:01.123Z"


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_a_stamp_reads_back_to_the_millisecond(instant: datetime) -> None:
    assert clock.parse(clock.stamp(instant)) == instant.replace(microsecond=instant.microsecond // 1000 * 1000)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("15m", 900), ("2h", 7200), ("7d", 604800), ("4w", 2419200), ("30", 30), ("1.5h", 5400)]
)
def test_durations(text: str, seconds: float) -> None:
    assert clock.duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "5y", "-3s", "s", "nan", "inf", "infd", "1e400", "1e300w"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError):
        clock.duration_s(text)


def test_since_goes_back_or_names_an_instant() -> None:
    at = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert clock.since("36h", at) == at - timedelta(hours=36)
    assert clock.since("2026-11-01", at) == datetime(2026, 11, 1, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "nan", "inf", "9999999w", "1e300w"])
def test_since_that_names_no_instant_says_what_would(text: str) -> None:
    with pytest.raises(ValueError, match="expected a date"):
        clock.since(text, datetime(2026, 11, 30, 12, tzinfo=UTC))


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("ä" * 4, 2), ("日本", 2)])
def test_tokens_are_bytes_over_four_rounded_up(text: str, count: int) -> None:
    assert tokens(text) == count

"""What the memory saves, over lines as the logs have them."""

from typing import Any

from amem.model.call import ObservedBy
from amem.reports import savings
from amem.reports.savings import Funnel, Metrics, Share

A, B, C = "ses-0000000a", "ses-0000000b", "ses-0000000c"


def line(tool: str, *entries: str, session: Any = A, tokens: Any = 10, **more: Any) -> dict[str, Any]:
    at = "2026-11-30T10:00:00.000Z"
    return {
        "tool": tool,
        "entries": list(entries),
        "session": session,
        "domain": "dom-me",
        "principal": "agent:x",
        "tokens": tokens,
        "at": at,
        **more,
    }


def test_the_funnel_sets_what_was_served_beside_what_models_took_in() -> None:
    lines = [line("t0", tokens=166), line("search", "m1", "m2"), line("get", "m1", tokens=300), line("get", "m1", session=B, tokens=1000)]
    usage: list[dict[str, Any]] = [
        {"session": A, "source": "harness", "input": 1, "cache_read": 1, "cache_write": 1},
        {"session": A, "source": "egress", "input": 5000, "cache_read": 800, "cache_write": 100},
        {"session": B, "source": "harness", "input": 70, "cache_read": 30, "cache_write": 0},
    ]
    read = savings.reads(lines, (), ("dom-me",))
    assert savings.funnel(read, usage) == [
        Funnel(B, 1, 1000, {"get": 1000}, 100, 30, ObservedBy.HARNESS),
        Funnel(A, 3, 476, {"get": 300, "t0": 166, "search": 10}, 5900, 800, ObservedBy.EGRESS),
    ]
    assert savings.funnel(read, reversed(usage)) == savings.funnel(read, usage), "the egress's word holds, in any order"
    (row,) = savings.funnel(savings.reads(lines[:1], (), ("dom-me",)), [])
    assert row.shown() == {"session": A, "reads": 1, "served": 166, "by": {"t0": 166}}, "nobody counted what it took in"


def test_only_what_was_asked_for_counts() -> None:
    lines = [
        line("get", "m1", session=A, principal="human:a:b"), line("get", "m1", session=B, principal="human:a:b"),
        line("get", "m1", session=C),
        line("get", "m1", domain="dom-other"), line("get", "m1", session=None), line("get", "m1", at="2026-11-29T10:00:00.000Z"),
    ]  # fmt: skip
    assert set(savings.reads(lines, (B,), ("dom-me",), "2026-11-30")) == {B, C}, (
        "an owner's own reads on the command line are not a session's"
    )


def test_how_what_was_served_was_used() -> None:
    lines = [
        line("prefetch", "m1", "m2", "m3"), line("get", "m5"), line("search", "m4", "m5", "m6"), line("get", "m4"), line("get", "m4"),
        line("get", "m2"), line("search", "m2", "m4"), line("transcript_turn", "m9"),
    ]  # fmt: skip
    read = savings.reads(lines, (), ("dom-me",))[A]
    assert savings.metrics(read, "Done; see m4 and m3.", 2) == Metrics(
        fetch_through=Share(1, 4), prefetch_precision=Share(2, 3), wasted_reads=Share(2, 3), pulls=4, completed=2
    ), "m5 was opened before it was found, and m2 only found after"
    without = savings.metrics(read, None, 0)
    assert (without.wasted_reads, without.prefetch_precision) == (Share(), Share(1, 3)), "without a handoff nothing is called wasted"
    both = without.plus(savings.metrics(read, "", 1))
    assert both.shown() == {
        "fetch_through": {"count": 2, "of": 8, "rate": 0.25}, "prefetch_precision": {"count": 2, "of": 6, "rate": 0.3333},
        "wasted_reads": {"count": 3, "of": 3, "rate": 1.0}, "depth": {"pulls": 8, "completed": 1, "rate": 8.0},
    }  # fmt: skip


def test_lines_that_are_not_as_they_should_be_count_for_what_they_say() -> None:
    lines: list[dict[str, Any]] = [
        {},
        line("get", tokens=-5),
        line("get", tokens=None),
        line("get") | {"entries": "m1"},
        line("get") | {"entries": [7, "m1"]},
    ]
    read = savings.reads(lines, (), ("dom-me",))
    assert (read[A].count, read[A].served.total(), read[A].opened) == (4, 20, {"m1"})

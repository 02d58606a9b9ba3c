"""Seals of events: an edit behind amem shows, on both backends, and an erasure does not."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from amem.ledger import sealing
from amem.ledger.promotions import State
from amem.ledger.sealing import Edit, edits, seal
from tests.ledger.worlds import ME, World, admitted

Rows = list[tuple[Any, ...]]


def row(seq: int, kind: str = "claimed", task: str = "task-me-00000000", **data: Any) -> tuple[Any, ...]:
    return (seq, kind, task, "agent:a", 1000 + seq, 1, json.dumps(data))


THERE = [row(1, "created", title="One"), row(2, "released", why="no time"), row(4), row(7, "completed")]


def test_nothing_shows_where_nothing_was_changed() -> None:
    sealed = [sealing.read(seal(one).text()) for one in THERE]
    assert edits(sealed, THERE) == [] == edits(sealed, [*THERE, row(9)])


@pytest.mark.parametrize(
    ("change", "seq", "kind"),
    [
        (lambda rows: [rows[0], row(2, "released", why="because"), *rows[2:]], 2, "changed"),
        (lambda rows: [rows[0], row(2, "released", why="(erased)"), *rows[2:]], 2, "changed"),
        (lambda rows: [*rows[:2], row(4, task="task-me-00000001"), rows[3]], 4, "changed"),
        (lambda rows: [*rows[:2], row(4, lease_ms=5), rows[3]], 4, "changed"),
        (lambda rows: [rows[0], *rows[2:]], 2, "dropped"),
        (lambda rows: [*rows[:3], row(5), rows[3]], 5, "added"),
        (lambda rows: rows[:2], 4, "rolled_back"),
        (lambda rows: [], 1, "rolled_back"),
    ],
)
def test_an_edit_is_named(change: Callable[[Rows], Rows], seq: int, kind: str) -> None:
    found = edits(map(seal, THERE), change(THERE))
    assert [(one.seq, one.kind) for one in found] == [(seq, kind)]


def test_two_events_in_each_other_s_place_are_both_changed() -> None:
    swapped = [(2, *THERE[2][1:]), (4, *THERE[1][1:])]
    assert [one.kind for one in edits(map(seal, THERE), [THERE[0], *swapped, THERE[3]])] == ["changed", "changed"]


def test_words_may_go_with_an_erasure_alone() -> None:
    erased = [row(1, "created", title="(erased)"), row(2, "released", why="(erased)"), *THERE[2:], row(8, "erased")]
    assert edits(map(seal, THERE), erased) == []
    other = [row(1, "created", title="Two"), *erased[1:]]
    assert edits(map(seal, THERE), other) == [Edit("task-me-00000000", 1, "changed")]


def test_seals_of_the_first_form_still_hold_and_still_tell() -> None:
    there = [row(1, "created", title="One", requires=["code"]), row(2, "graded", verdict="failed", grader="model-a")]
    old = [sealing.read(seal(one, 1).text(), 1) for one in there]
    assert [one.fixed for one in old] != [seal(one).fixed for one in there]
    assert edits(old, there) == []
    assert [one.seq for one in edits(old, [there[0], row(2, "graded", verdict="failed", grader="model-b")])] == [2]
    erased = [row(1, "created", title="(erased)"), row(2, "graded", verdict="failed"), row(3, "erased")]
    assert edits(old, erased) == [] == edits(map(seal, there), erased)


def test_a_ledger_s_own_events(world: World) -> None:
    with world.open() as ledger:
        admitted(ledger, "One", body="The body.")
        sealed = [seal(one) for one in ledger.events_after("dom-me", 0)]
        assert len(sealed) == 2 and edits(sealed, ledger.events_after("dom-me", 0)) == []
        task = sealed[0].task
        assert not ledger.events_after("dom-me", sealed[-1].seq)
        ledger.erase(task, by=ME)
        assert edits(sealed, ledger.events_after("dom-me", 0)) == []
        assert not ledger.events_after("dom-other", 0)


def test_a_ledger_s_own_promotions(world: World) -> None:
    with world.open() as ledger:
        number = ledger.promotion("mem-me-0123456789ab", 1, "curated", by=ME, why="Checked.")
        ledger.promotion("mem-other-0123456789ab", 1, "curated", by=ME, why="Of another domain.")
        begun = {one.seq: sealing.note(one) for one in ledger.all_promotions("dom-me")}
        assert list(begun) == [number]
        assert sealing.read_note(begun[number].text()) == begun[number]
        ledger.landed("mem-me-0123456789ab", number)
        assert sealing.forged(begun, ledger.all_promotions("dom-me")) == []
        landed = {one.seq: sealing.note(one) for one in ledger.all_promotions("dom-me")}
        assert landed != begun
        assert ledger.erase_whys("dom-me", (), lambda why: why == "Checked.") == 1
        assert sealing.forged(landed, ledger.all_promotions("dom-me")) == []
        later = [one._replace(to="verified") for one in ledger.all_promotions("dom-me")]
        assert sealing.forged(landed, later) == [Edit("mem-me-0123456789ab", number, "changed")]
        assert sealing.forged(landed, []) == [Edit("mem-me-0123456789ab", number, "dropped")]
        again = [one._replace(state=State.BEGUN) for one in ledger.all_promotions("dom-me")]
        assert sealing.forged(landed, again) == [Edit("mem-me-0123456789ab", number, "changed")]

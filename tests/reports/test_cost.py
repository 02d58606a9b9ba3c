"""Cost: plan quota is never money, what is missing makes a floor, and a session's tasks share it."""

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from amem.reports.cost import Books, Closing, Cost, Reconciled, costs, reconcile, spend_log, task_costs
from amem.settings.prices import Price, Prices

PRICES = Prices({"m": Price(Decimal(2), Decimal(10), Decimal("0.2"), Decimal("2.5"))})


def row(session: str, model: str, **more: Any) -> dict[str, Any]:
    usual = {"billing": "metered", "input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
    return {"session": session, "model": model, **usual, **more}


def test_priced_unpriced_and_plan_stand_side_by_side() -> None:
    found = costs(
        [
            row("a", "m-2026", input=1_000_000, output=100_000, cache_read=10, cache_write=4),
            row("a", "m-2027", input=500_000),
            row("a", "other", input=7, cache_write=5),
            row("a", "m", billing="plan", input=11, cache_read=2),
        ],
        "session",
        PRICES,
    )
    assert found == {"a": Cost(Decimal("4.000012"), Counter({"other": 12}), plan_tokens=13)}
    assert found["a"].shown() == {
        "usd": 4.000012, "floor": True, "unpriced": [{"model": "other", "tokens": 12}], "plan_tokens": 13,
    }  # fmt: skip


def test_what_makes_a_floor() -> None:
    missing = {"unpriced": row("s", "x", input=1), "unmetered": row("s", "m", unmetered=1), "partial": row("s", "m", partial=2)}
    whole = {"priced": row("s", "m", input=9), "plan": row("s", "x", billing="plan", input=1, unmetered=1), "none": row("s", "x")}
    floors = {name: costs([one], "session", PRICES)["s"].floor for name, one in (missing | whole).items()}
    assert floors == dict.fromkeys(missing, True) | dict.fromkeys(whole, False)


def test_the_dearest_comes_first() -> None:
    rows = [row("a", "m", input=1), row("c", "m", input=2), row("b", "m", input=1), row("d", "x", input=99)]
    assert list(costs(rows, "session", PRICES)) == ["c", "a", "b", "d"]


def test_tasks_of_one_session_share_it_and_a_floor_is_each_ones() -> None:
    sessions = {"one": Cost(Decimal(3), Counter({"x": 1})), "two": Cost(Decimal(1))}
    closings = [Closing("t1", "T", "one"), Closing("t2", "T", "one"), Closing("t3", "T", "two"), Closing("t4", "T", None)]
    found = [(share.task, share.usd, share.floor) for share in task_costs(closings, sessions)]
    assert found == [("t1", Decimal("1.5"), True), ("t2", Decimal("1.5"), True), ("t3", 1, False), ("t4", 0, False)]


LOG = [
    {"model_group": "m", "prompt_tokens": 30, "completion_tokens": 5, "spend": 0.25, "startTime": "2026-11-30T10:00:00.000000Z"},
    {"model_group": "m", "prompt_tokens": 12, "completion_tokens": 1, "spend": None, "startTime": "2026-11-30 11:00:00"},
]
OURS = [{"model": "m", "calls": 3, "status": {"403": 1}, "input": 20, "cache_read": 20, "cache_write": 2, "output": 6}]


def test_the_gateways_books_agree_call_for_call() -> None:
    assert reconcile(OURS, spend_log(LOG)) == [Reconciled("m", Books(2, 42, 6), Books(2, 42, 6), Decimal("0.25"))]
    assert all(one.agrees for one in reconcile(OURS, spend_log({"data": LOG})))


def test_a_call_that_one_side_does_not_know_stands_out() -> None:
    other = {"model": "n", "prompt_tokens": 1, "completion_tokens": 1}
    found = reconcile(OURS, [*spend_log(LOG, "2026-11-30T10:30:00.000Z"), other])
    assert [(one.model, one.agrees, one.ours.calls, one.theirs.calls) for one in found] == [("m", False, 2, 1), ("n", False, 0, 1)]


@pytest.mark.parametrize("log", [None, {}, [1], [{}], [{"prompt_tokens": -1, "completion_tokens": 1}], [{"prompt_tokens": "1"}]])
def test_what_is_no_spend_log_is_said(log: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        spend_log(log)

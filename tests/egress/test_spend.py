import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from amem.egress import flow, spend
from amem.egress.flow import Call, Target
from amem.egress.spend import Over, Spent, day_bounds, over
from amem.model.call import Dialect
from amem.settings.grants import Spend


@pytest.mark.parametrize(("most", "expected"), [(100, 100), (None, spend.USUAL_OUTPUT_TOKENS)])
def test_a_call_is_reserved_at_its_bytes_and_the_output_it_may_ask_for(most: int | None, expected: int) -> None:
    where = flow.target("POST", "/v1/messages")
    assert isinstance(where, Target)
    body = json.dumps({"model": "m", "messages": ["é" * 100]} | ({"max_tokens": most} if most else {}), ensure_ascii=False).encode()
    call = flow.call(where, Dialect.ANTHROPIC, body)
    assert isinstance(call, Call)
    assert spend.estimate(call) == -(-len(body) // 4) + expected


@pytest.mark.parametrize(
    ("limits", "spent", "wanted", "code"),
    [
        (Spend(), Spent(session=10**9, day=10**9), 10**9, None),
        (Spend(session_tokens=100), Spent(session=60, day=0), 40, None),
        (Spend(session_tokens=100), Spent(session=60, day=0), 41, "spend_session"),
        (Spend(day_tokens=100), Spent(session=0, day=100), 1, "spend_day"),
        (Spend(session_tokens=10, day_tokens=10), Spent(session=10, day=10), 1, "spend_session"),
        (Spend(session_tokens=0), Spent(session=0, day=0), 1, "spend_session"),
    ],
)
def test_a_limit_holds_to_the_token(limits: Spend, spent: Spent, wanted: int, code: str | None) -> None:
    found = over(limits, "demo", spent, wanted)
    assert (found.code if found else None) == code


def test_the_harness_is_told_what_is_left() -> None:
    told = Over(code="spend_session", destination="demo", limit=100, spent=60, wanted=41).sentence()
    assert told == "this session has 40 of 100 tokens left at demo, and this call may use 41 (prompt and the most output it asks for)"


@pytest.mark.parametrize(
    ("at", "zone", "start", "end"),
    [
        ("2026-11-30T12:00:00Z", "UTC", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"),
        ("2026-11-30T23:30:00Z", "Europe/Berlin", "2026-11-30T23:00:00Z", "2026-12-01T23:00:00Z"),
        # the clocks go forward: 23 hours; and back: 25
        ("2026-03-29T10:00:00Z", "Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
        ("2026-10-25T10:00:00Z", "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
    ],
)
def test_a_day_is_the_owners(at: str, zone: str, start: str, end: str) -> None:
    assert day_bounds(datetime.fromisoformat(at), ZoneInfo(zone)) == (
        datetime.fromisoformat(start).astimezone(UTC),
        datetime.fromisoformat(end).astimezone(UTC),
    )

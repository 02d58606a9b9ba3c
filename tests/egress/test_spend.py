import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from amem.egress import flow, spend
from amem.egress.flow import Call, Target
from amem.egress.spend import day_bounds
from amem.model.call import Dialect


@pytest.mark.parametrize(("most", "expected"), [(100, 100), (None, spend.USUAL_OUTPUT_TOKENS)])
def test_a_call_is_reserved_at_its_bytes_and_the_output_it_may_ask_for(most: int | None, expected: int) -> None:
    where = flow.target("POST", "/v1/messages")
    assert isinstance(where, Target)
    body = json.dumps({"model": "m", "messages": ["é" * 100]} | ({"max_tokens": most} if most else {}), ensure_ascii=False).encode()
    call = flow.call(where, Dialect.ANTHROPIC, body)
    assert isinstance(call, Call)
    assert spend.estimate(call) == -(-(2 * (len(body) - 200) + 3 * 200) // 6) + expected


def test_a_prompt_in_a_dense_script_is_reserved_at_more_than_a_token_a_character() -> None:
    where = flow.target("POST", "/v1/messages")
    assert isinstance(where, Target)
    body = json.dumps({"model": "m", "messages": ["\u8bb0\u5fc6" * 5000], "max_tokens": 1}, ensure_ascii=False).encode()
    call = flow.call(where, Dialect.ANTHROPIC, body)
    assert isinstance(call, Call)
    assert 15_000 <= spend.estimate(call) < 15_100


CHAT, GEMINI = "/v1/chat/completions", "/v1beta/models/m:generateContent"


@pytest.mark.parametrize(
    ("path", "dialect", "more", "output"),
    [
        (CHAT, Dialect.CHAT, {"max_tokens": 50, "n": 20}, 1000),
        (CHAT, Dialect.CHAT, {"n": 20}, 20 * spend.USUAL_OUTPUT_TOKENS),
        (CHAT, Dialect.CHAT, {"max_completion_tokens": 1, "max_tokens": 5000}, 5000),
        (CHAT, Dialect.CHAT, {"max_tokens": 64e3, "n": 0}, 64_000),
        (CHAT, Dialect.CHAT, {"max_tokens": True, "n": -3}, spend.USUAL_OUTPUT_TOKENS),
        (GEMINI, Dialect.GEMINI, {"generation_config": {"max_output_tokens": 65_536, "candidate_count": 8}}, 8 * 65_536),
        (GEMINI, Dialect.GEMINI, {"generationConfig": {"maxOutputTokens": 1}, "generation_config": {"max_output_tokens": "90000"}}, 90_000),
    ],
)
def test_what_a_call_asks_for_in_another_way_is_reserved_too(path: str, dialect: Dialect, more: dict[str, object], output: int) -> None:
    where = flow.target("POST", path)
    assert isinstance(where, Target)
    body = json.dumps({"model": "m", **more}).encode()
    call = flow.call(where, dialect, body)
    assert isinstance(call, Call)
    assert spend.estimate(call) == -(-len(body) // 3) + output


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

"""What the meter keeps, as commands are told it."""

from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from amem.egress import meter, reading
from amem.model.call import Billing, ObservedBy
from amem.settings.root import Root
from tests.egress.test_meter import UNKNOWN, recorded, row


@pytest.fixture
def root(tmp_path: Path) -> Root:
    made = Root(tmp_path)
    made.state.mkdir()
    return made


def test_usage_is_added_up_by_destination_and_model(root: Root) -> None:
    recorded(
        root,
        row(1),
        row(2, reasoning=2),
        row(3, model="m-2"),
        row(4, status=403, refused="label_over_ceiling", **UNKNOWN),
        row(5, status=529, **UNKNOWN),
        row(6, unmetered_reason="no_usage", **UNKNOWN),
        row(7, partial=True),
        row(8, kind="count", **UNKNOWN),
        row(9, source=ObservedBy.HARNESS, billing=Billing.PLAN),
    )
    plain = {"destination": "demo", "source": "egress", "billing": "metered"}
    assert reading.report(root) == [
        {
            **plain,
            "model": "m-1",
            "calls": 6,
            "input": 30,
            "output": 15,
            "cache_read": 3,
            "cache_write": 6,
            "reasoning": 2,
            "unmetered": 1,
            "partial": 1,
            "status": {"403": 1, "529": 1},
        },
        {
            **plain,
            "model": "m-1",
            "source": "harness",
            "billing": "plan",
            "calls": 1,
            "input": 10,
            "output": 5,
            "cache_read": 1,
            "cache_write": 2,
        },
        {**plain, "model": "m-2", "calls": 1, "input": 10, "output": 5, "cache_read": 1, "cache_write": 2},
    ]


def test_what_a_harness_reports_is_kept_under_its_own_source(root: Root) -> None:
    recorded(root, row(1))
    meter.keep(root, [row(2, source=ObservedBy.HARNESS, billing=Billing.PLAN), row(1)])
    assert [(found["source"], found["billing"], found["calls"]) for found in reading.report(root)] == [
        ("egress", "metered", 1),
        ("harness", "plan", 1),
    ]


def test_a_day_is_the_owners_also_when_it_has_23_or_25_hours(root: Root) -> None:
    berlin, kathmandu = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kathmandu")
    instants = ("2026-03-28T22:59", "2026-03-28T23:00", "2026-03-29T21:59", "2026-03-29T22:00", "2026-10-24T22:00", "2026-10-25T22:59")
    recorded(root, *(row(n, at=f"{instant}:59.999Z", status=200 + n) for n, instant in enumerate(instants)), row(9, at="no instant"))

    def days(zone: tzinfo) -> dict[str, int]:
        return {found["day"]: found["calls"] for found in reading.report(root, ("day",), zone=zone)}

    assert days(berlin) == {"2026-03-28": 1, "2026-03-29": 2, "2026-03-30": 1, "2026-10-25": 2, "no instant": 1}
    assert days(UTC) == {"2026-03-28": 2, "2026-03-29": 2, "2026-10-24": 1, "2026-10-25": 1, "no instant": 1}
    assert days(kathmandu)["2026-03-29"] == 2 and days(kathmandu)["2026-03-30"] == 2


def test_usage_can_be_narrowed_and_grouped_otherwise(root: Root) -> None:
    recorded(root, row(1), row(11), row(12, session="ses-00000002"), row(13, source=ObservedBy.HARNESS))
    by_day = reading.report(root, ("day",), source=ObservedBy.EGRESS)
    assert [(found["day"], found["calls"]) for found in by_day] == [("2026-11-02", 2), ("2026-11-01", 1)]
    assert [found["calls"] for found in reading.report(root, ("session",), session="ses-00000002")] == [1]
    assert [found["calls"] for found in reading.report(root, since=datetime(2026, 11, 2, tzinfo=UTC), source=ObservedBy.EGRESS)] == [2]
    with pytest.raises(ValueError, match="by:"):
        reading.report(root, ("model; drop table calls",))


def test_a_root_without_calls_reports_nothing(root: Root) -> None:
    assert reading.report(root) == []
    assert reading.sessions(root) == []

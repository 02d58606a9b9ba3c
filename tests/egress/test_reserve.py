import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from amem.egress import meter, reserve
from amem.egress.meter import Meter, connect
from amem.egress.reserve import Reservations
from amem.egress.spend import Spent
from amem.errors import UnavailableError
from amem.settings.root import Root
from tests.egress.test_meter import UNKNOWN, row

SESSION, DAY = 1000, 1500
S1, S2 = "ses-00000001", "ses-00000002"


@pytest.fixture
def root(tmp_path: Path) -> Root:
    made = Root(tmp_path)
    made.state.mkdir()
    return made


class Clock:
    def __init__(self) -> None:
        self.at = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at


async def take(egress: Reservations, call: str, destination: str, session: str, wanted: int) -> str | None:
    def refused_at(spent: Spent) -> str | None:
        return "spend_session" if spent.session + wanted > SESSION else "spend_day" if spent.day + wanted > DAY else None

    return await egress.take(call, destination, session, wanted, refused_at)


def test_of_twenty_calls_at_once_on_four_egresses_with_room_for_one_exactly_one_is_taken(root: Root) -> None:
    async def run() -> None:
        egresses = [Reservations(root, UTC) for _ in range(4)]
        taken = await asyncio.gather(*(take(egresses[n % 4], f"call-{n}", "demo", S1, 600) for n in range(20)))
        assert sorted(refused or "taken" for refused in taken) == ["spend_session"] * 19 + ["taken"]
        for egress in egresses:
            await egress.close()

    asyncio.run(run())


def test_a_day_is_shared_by_all_sessions_and_a_session_is_its_own(root: Root) -> None:
    async def run() -> None:
        egress = Reservations(root, UTC)
        assert await take(egress, "a", "demo", S1, 1000) is None
        assert await take(egress, "b", "demo", S1, 1) == "spend_session"
        assert await take(egress, "c", "demo", S2, 501) == "spend_day"
        assert await take(egress, "d", "demo", S2, 500) is None
        assert await take(egress, "e", "other", S1, 1000) is None
        await egress.close()

    asyncio.run(run())


def test_a_row_takes_the_place_of_its_reservation(root: Root) -> None:
    async def run() -> None:
        clock = Clock()
        egress, meter = Reservations(root, UTC, clock), Meter(root)
        settled = row(1, at="2026-11-30T11:00:00.000Z", charged=18)
        assert await take(egress, settled.id, "demo", S1, 1000) is None
        meter.record(settled)
        await asyncio.to_thread(meter.flush)
        assert await take(egress, "b", "demo", S1, 982) is None
        assert await take(egress, "c", "demo", S1, 1) == "spend_session"
        await asyncio.to_thread(meter.close)
        await egress.close()

    asyncio.run(run())


def test_yesterday_is_another_day_and_the_same_session(root: Root) -> None:
    meter = Meter(root)
    meter.record(row(1, at="2026-11-29T23:59:59.999Z", session=S1, charged=900))
    meter.record(row(2, at="2026-11-30T00:00:00.000Z", session=S2, charged=900, **UNKNOWN))
    meter.close()

    async def run() -> None:
        egress = Reservations(root, UTC, Clock())
        assert await take(egress, "a", "demo", S1, 101) == "spend_session"
        assert await take(egress, "b", "demo", S1, 100) is None
        assert await take(egress, "c", "demo", "ses-00000003", 501) == "spend_day"
        await egress.close()

    asyncio.run(run())


def test_what_a_killed_egress_had_reserved_lapses(root: Root) -> None:
    async def run() -> None:
        clock = Clock()
        killed, other = Reservations(root, UTC, clock), Reservations(root, UTC, clock)
        assert await take(killed, "a", "demo", S1, 1000) is None
        await killed.close()  # with its reservation open
        clock.at += reserve.LEASE - timedelta(seconds=1)
        assert await take(other, "b", "demo", S1, 1000) == "spend_session"
        clock.at += timedelta(seconds=2)
        assert await take(other, "b", "demo", S1, 1000) is None
        await other.close()

    asyncio.run(run())


def test_what_lapsed_leaves_the_store_with_the_next_row(root: Root) -> None:
    async def run() -> None:
        long_ago = Clock()
        long_ago.at = datetime(2020, 1, 1, tzinfo=UTC)
        killed = Reservations(root, UTC, long_ago)
        assert await take(killed, "a", "demo", S1, 1000) is None
        await killed.close()
        meter = Meter(root)
        meter.record(row(1))
        await asyncio.to_thread(meter.close)
        connection = connect(root.usage)
        assert connection.execute("select count(*) from reservations").fetchone() == (0,)
        connection.close()

    asyncio.run(run())


def test_while_another_writes_to_the_store_a_call_waits_and_the_loop_does_not(root: Root) -> None:
    async def run() -> None:
        egress, other = Reservations(root, UTC), connect(root.usage)
        other.execute("begin immediate")
        taking = [asyncio.create_task(take(egress, call, "demo", S1, 600)) for call in "abc"]
        for _ in range(10):
            await asyncio.sleep(0)
        assert not any(each.done() for each in taking)
        other.execute("commit")  # by the loop, which the first one would else have stopped
        async with asyncio.timeout(60):
            assert sorted([await each or "taken" for each in taking]) == ["spend_session", "spend_session", "taken"]
        other.close()
        await egress.close()

    asyncio.run(run())


def test_a_call_that_goes_on_keeps_its_room(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        clock = Clock()
        egress = Reservations(root, UTC, clock)
        assert await take(egress, "a", "demo", S1, 1000) is None
        monkeypatch.setattr(reserve, "LEASE", timedelta(milliseconds=30))
        renewing = asyncio.create_task(egress.renew())
        connection = connect(root.usage)
        before = connection.execute("select until from reservations").fetchone()
        clock.at += timedelta(minutes=10)
        async with asyncio.timeout(20):
            while connection.execute("select until from reservations").fetchone() == before:
                await asyncio.sleep(0.01)
        connection.close()
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        await egress.close()

    asyncio.run(run())


def at(n: int) -> str:
    return f"2026-11-30T{n % 24:02}:{n % 60:02}:59.999Z"


def test_the_running_sums_are_the_sums_of_the_rows_whoever_writes_them_and_in_an_old_store_too(root: Root) -> None:
    rows = [
        row(
            n,
            session=(S1, S2)[n % 2],
            destination=("demo", "other")[n % 3 == 0],
            charged=n % 7,
            at=f"2026-11-30T{n % 24:02d}:{n % 60:02d}:59.999Z",
        )
        for n in range(200)
    ]
    meter.keep(root, rows[:120])
    connection = connect(root.usage)
    for name in ("charged_by_session", "charged_by_quarter"):  # as an older amem left it
        connection.execute(f"drop table {name}")
    connection.execute("drop trigger calls_charged")
    connection.execute("pragma user_version = 2")
    connection.close()
    meter.keep(root, rows)  # the first 120 are there already, and count once
    connection = connect(root.usage)
    try:
        for key, by in (("session", "session"), ("quarter", "substr(at, 1, 14) || printf('%02d', substr(at, 15, 2) / 15 * 15)")):
            kept = connection.execute(f"select destination, {key}, tokens from charged_by_{key} order by 1, 2").fetchall()
            summed = f"select destination, {by}, sum(charged) from calls where charged > 0 group by 1, 2 order by 1, 2"
            assert kept == connection.execute(summed).fetchall() != []
    finally:
        connection.close()


def test_what_was_spent_comes_with_whose_day_it_was_in(root: Root) -> None:
    async def run() -> Spent | None:
        egress = Reservations(root, ZoneInfo("Asia/Kathmandu"))
        told = await egress.take("a", "demo", S1, 99, lambda spent: spent)
        await egress.close()
        return told

    assert asyncio.run(run()) == Spent(session=0, day=0, zone="Asia/Kathmandu")


def test_a_store_of_a_newer_amem_is_left_alone(root: Root) -> None:
    connection = connect(root.usage)
    connection.execute("pragma user_version = 99")
    connection.close()
    with pytest.raises(UnavailableError, match="written by a newer amem"):
        connect(root.usage)

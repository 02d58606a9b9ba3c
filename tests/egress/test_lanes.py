import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amem.egress import flow
from amem.egress.admit import WAITING_PER_SLOT, Busy, Lane
from amem.egress.flow import Call, Target
from amem.egress.lanes import Lanes
from amem.egress.slots import Slots
from amem.model.call import Dialect
from tests.egress.support import call, routes_to, session

PATH, BODY = call(Dialect.ANTHROPIC)
ROUTE = routes_to("http://127.0.0.1:1", most_at_once={"harness": 1})[Dialect.ANTHROPIC]
WHERE = flow.target("POST", PATH)
assert isinstance(WHERE, Target)
CALL = flow.call(WHERE, Dialect.ANTHROPIC, BODY)
assert isinstance(CALL, Call)


async def one(lanes: Lanes, name: str, hold: asyncio.Event, entered: list[str]) -> Busy | None:
    """A call as the server makes it."""
    assert isinstance(CALL, Call)
    try:
        busy = await lanes.enter(name, CALL, ROUTE, Lane.HARNESS)
        if busy is None:
            entered.append(name)
            await hold.wait()
        return busy
    finally:
        lanes.leave(name)


def test_places_of_those_who_left_are_free_at_once() -> None:
    async def run() -> None:
        lanes, hold, entered = Lanes(), asyncio.Event(), []
        first = asyncio.create_task(one(lanes, "first", hold, entered))
        waiting = [asyncio.create_task(one(lanes, f"w{n}", hold, entered)) for n in range(WAITING_PER_SLOT)]
        await asyncio.sleep(0)
        assert isinstance(await one(lanes, "extra", hold, entered), Busy)
        waiting[0].cancel()
        await asyncio.gather(waiting[0], return_exceptions=True)
        assert entered == ["first"]  # one that left while it waited frees no slot
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        later = [asyncio.create_task(one(lanes, f"l{n}", hold, entered)) for n in range(WAITING_PER_SLOT)]
        await asyncio.sleep(0)
        hold.set()
        assert await asyncio.gather(first, *later) == [None] * (1 + WAITING_PER_SLOT)
        assert entered == ["first", *(f"l{n}" for n in range(WAITING_PER_SLOT))]

    asyncio.run(run())


def test_a_slot_that_frees_as_its_next_leaves_goes_to_the_one_after() -> None:
    async def run() -> None:
        lanes, hold, entered = Lanes(), asyncio.Event(), []
        first = asyncio.create_task(one(lanes, "first", hold, entered))
        second = asyncio.create_task(one(lanes, "second", asyncio.Event(), entered))
        third = asyncio.create_task(one(lanes, "third", hold, entered))
        await asyncio.sleep(0)
        hold.set()  # in one turn of the loop, the first ends ...
        second.cancel()  # ... and the second leaves
        async with asyncio.timeout(20):
            results = await asyncio.gather(first, second, third, return_exceptions=True)
        assert [type(result) for result in results] == [type(None), asyncio.CancelledError, type(None)]
        assert entered == ["first", "third"]

    asyncio.run(run())


def test_calls_over_the_limit_wait_their_turn_and_beyond_the_queue_are_told_when_to_come_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, {"steps": [{"text": "x", "wait": "all"}]}, route={"most_at_once": {"harness": 1}}) as s:
            tasks = [asyncio.create_task(s.post(PATH, BODY)) for _ in range(8)]
            busy = 0
            while busy < 3:  # one goes, four wait, three are told
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=20)
                busy = sum(task.result()[0] == 429 for task in done)
            await s.provider.until(lambda p: bool(p.log))
            assert len(s.provider.log) == 1
            s.provider.release("all")
            answers = [await task for task in tasks]
            assert sorted(status for status, _, _ in answers) == [200] * 5 + [429] * 3
            told = next(answer for answer in answers if answer[0] == 429)
            assert json.loads(told[1])["error"]["type"] == "rate_limit_error"
            assert int(told[2]["retry-after"]) > 0
            assert sorted(row["refused"] or "" for row in s.rows()) == [""] * 5 + ["busy"] * 3
            assert len(s.door.log) == 5

    asyncio.run(run())


def test_a_harness_that_leaves_while_it_waits_gives_up_its_place(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, {"steps": [{"text": "x", "wait": "all"}]}, route={"most_at_once": {"harness": 1}}) as s:
            first = asyncio.create_task(s.post(PATH, BODY))
            await s.provider.until(lambda p: bool(p.log))
            _, writer = await asyncio.open_connection("127.0.0.1", s.port)
            writer.write(f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(BODY)}\r\n\r\n".encode() + BODY)
            await writer.drain()
            third = asyncio.create_task(s.post(PATH, BODY))
            writer.transport.abort()
            await s.row()  # the one that left has its row
            s.provider.release("all")
            assert [(await first)[0], (await third)[0]] == [200, 200]
            assert len(s.provider.log) == 2

    asyncio.run(run())


def test_sessions_of_one_root_share_the_places_and_lanes_do_not(tmp_path: Path) -> None:
    """Two egresses with one place between them: the second's call leaves when the first's is over; amem's own has a lane of its own."""

    async def run() -> None:
        script = {"steps": [{"text": "x", "wait": "all"}]}
        shared: dict[str, Any] = {"slots": Slots(tmp_path / "lanes"), "route": {"most_at_once": {"harness": 1, "own": 1}}}
        for name in ("one", "two", "three"):
            (tmp_path / name).mkdir()
        async with session(tmp_path / "one", script, **shared) as one:
            url = one.provider.url
            async with (
                session(tmp_path / "two", base_url=url, **shared) as two,
                session(tmp_path / "three", base_url=url, lane=Lane.OWN, **shared) as own,
            ):
                first = asyncio.create_task(one.post(PATH, BODY))
                await one.provider.until(lambda p: len(p.log) == 1)
                second = asyncio.create_task(two.post(PATH, BODY))
                of_own = asyncio.create_task(own.post(PATH, BODY))
                await one.provider.until(lambda p: len(p.log) == 2)
                assert {seen.outcome for seen in one.provider.log} == {"held"} and not second.done()
                one.provider.release("all")
                assert [(await call)[0] for call in (first, of_own, second)] == [200, 200, 200]
                assert len(one.provider.log) == 3

    asyncio.run(run())


def test_a_place_is_free_when_its_process_is_gone(tmp_path: Path) -> None:
    code = "import sys, pathlib; from amem.egress.slots import Slots; print(Slots(pathlib.Path(sys.argv[1])).take('x', 1), flush=True)"
    words = [sys.executable, "-c", f"{code}; sys.stdin.read()", str(tmp_path)]
    slots = Slots(tmp_path)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None and int(holder.stdout.readline()) > 0
            assert slots.take("x", 1) is None
            other = slots.take("y", 1)
            assert other is not None
            slots.free(other)
        finally:
            holder.kill()
    place = slots.take("x", 1)
    assert place is not None and slots.take("x", 1) is None
    slots.free(place)


def test_a_call_that_waits_for_other_sessions_too_long_is_told_to_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amem.egress.lanes.LONGEST_WAIT_S", 0.1)
    slots = Slots(tmp_path / "lanes")

    async def run() -> None:
        async with session(tmp_path, slots=slots, route={"most_at_once": {"harness": 1}}) as s:
            place = slots.take("demo.harness", 1)
            assert place is not None
            status, _, headers = await s.post(PATH, BODY)
            assert (status, "retry-after" in headers, len(s.provider.log)) == (429, True, 0)
            slots.free(place)
            assert (await s.post(PATH, BODY))[0] == 200

    asyncio.run(run())

import asyncio
import json
from pathlib import Path

from amem.model.call import Dialect
from tests.egress.support import call, session

PATH, BODY = call(Dialect.ANTHROPIC)


def test_calls_over_the_limit_wait_their_turn_and_beyond_the_queue_are_told_when_to_come_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, {"steps": [{"text": "x", "wait": "all"}]}, route={"most_at_once": 1}) as s:
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
        async with session(tmp_path, {"steps": [{"text": "x", "wait": "all"}]}, route={"most_at_once": 1}) as s:
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

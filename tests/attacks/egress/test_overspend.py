"""A session that tries to get round its spend limit: by many calls at once, by breaking off, by an upstream that tells nothing."""

import asyncio
from datetime import UTC
from pathlib import Path
from typing import Any

from amem.egress.reserve import Reservations
from amem.logs.schema import PolicyDecision
from amem.model.call import Dialect
from amem.settings.grants import Spend
from amem.settings.root import Root
from tests.egress.support import call, session

MOST = 1000
PATH, BODY = call(Dialect.ANTHROPIC, max_tokens=MOST)
WANTED = MOST + -(-len(BODY) // 4)


def limited(tmp_path: Path, limit: int, notes: list[PolicyDecision]) -> dict[str, Any]:
    (tmp_path / "state").mkdir(exist_ok=True)
    reservations = Reservations(Root(tmp_path), UTC)
    return {"spend": {"demo": Spend(session_tokens=limit)}, "reservations": reservations, "note": notes.append}


def test_of_twenty_calls_at_once_against_room_for_one_exactly_one_leaves(tmp_path: Path) -> None:
    async def run() -> None:
        notes: list[PolicyDecision] = []
        async with session(tmp_path, {"steps": [{"text": "x", "wait": "all"}]}, **limited(tmp_path, WANTED + WANTED // 2, notes)) as s:
            tasks = [asyncio.create_task(s.post(PATH, BODY)) for _ in range(20)]
            await s.provider.until(lambda p: bool(p.log))
            while sum(task.done() for task in tasks) < 19:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=0.05)
            s.provider.release("all")
            statuses = sorted([(await task)[0] for task in tasks])
            assert statuses == [200] + [403] * 19
            assert len(s.provider.log) == 1
            assert [(note.action, note.allow, note.reasons[0]["code"]) for note in notes] == [("spend", False, "spend_session")] * 19
            assert sum(row["refused"] == "spend_session" for row in s.rows()) == 19

    asyncio.run(run())


def test_a_refusal_says_what_is_left_and_a_list_of_models_needs_no_room(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, **limited(tmp_path, 10, [])) as s:
            status, answer, _ = await s.post(PATH, BODY)
            assert status == 403
            assert b"this session has 10 of 10 tokens left at demo" in answer
            async with s.client.get(s.url + "/v1/models") as listed:
                assert listed.status == 200
            assert [seen.path for seen in s.provider.log] == ["/v1/models"]

    asyncio.run(run())


def test_what_a_call_used_is_settled_and_the_rest_is_free_again(tmp_path: Path) -> None:
    async def run() -> None:
        usage = {"input": 10, "output": 5, "cache_read": 0, "cache_write": 0}
        async with session(tmp_path, {"steps": [{"text": "x", "usage": usage}]}, **limited(tmp_path, WANTED + 30, [])) as s:
            for _ in range(2):
                assert (await s.post(PATH, BODY))[0] == 200
                await asyncio.to_thread(s.meter.flush)
            used = sum(row["charged"] for row in s.rows())
            assert used == sum(row["input"] + row["output"] for row in s.rows()) > 0

    asyncio.run(run())


def test_calls_that_are_broken_off_count_as_what_was_reserved(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, {"steps": [{"text": "x", "wait": "never"}]}, **limited(tmp_path, WANTED + WANTED // 2, [])) as s:
            _, writer = await asyncio.open_connection("127.0.0.1", s.port)
            writer.write(f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(BODY)}\r\n\r\n".encode() + BODY)
            await s.provider.until(lambda p: bool(p.log) and p.log[0].outcome == "held")
            writer.transport.abort()
            row = await s.row()
            assert (row["charged"], row["input"]) == (WANTED, None)
            assert (await s.post(PATH, BODY))[0] == 403
            assert len(s.provider.log) == 1

    asyncio.run(run())


def test_an_answer_that_tells_no_usage_counts_as_what_was_reserved(tmp_path: Path) -> None:
    async def run() -> None:
        script = {"steps": [{"text": "x", "fault": {"kind": "garbage", "after": 0}}]}
        path, body = call(Dialect.ANTHROPIC, stream=True, max_tokens=MOST)
        async with session(tmp_path, script, **limited(tmp_path, 2 * WANTED, [])) as s:
            await s.post(path, body)
            row = await s.row()
            assert row["input"] is None
            assert row["charged"] >= MOST

    asyncio.run(run())

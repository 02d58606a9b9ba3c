"""A session that tries to get round its spend limit: by many calls at once, by breaking off, by an upstream that tells nothing."""

import asyncio
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

from amem.egress import reading
from amem.egress.reserve import LEASE, Reservations
from amem.model import clock
from amem.model.call import Dialect
from amem.settings import database
from amem.settings.grants import Spend
from amem.settings.root import Root
from amem.testing.provider import running
from tests.egress.support import call, session

MOST = 1000
PATH, BODY = call(Dialect.ANTHROPIC, max_tokens=MOST)
WANTED = MOST + -(-len(BODY) // 3)


def limited(tmp_path: Path, limit: int) -> dict[str, Any]:
    (tmp_path / "state").mkdir(exist_ok=True)
    reservations = Reservations(Root(tmp_path), UTC)
    return {"spend": {"demo": Spend(session_tokens=limit)}, "reservations": reservations}


def test_of_twenty_calls_at_once_against_room_for_one_exactly_one_leaves(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, {"steps": [{"text": "x", "wait": "all"}]}, **limited(tmp_path, WANTED + WANTED // 2)) as s:
            tasks = [asyncio.create_task(s.post(PATH, BODY)) for _ in range(20)]
            await s.provider.until(lambda p: bool(p.log))
            while sum(task.done() for task in tasks) < 19:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=0.05)
            s.provider.release("all")
            statuses = sorted([(await task)[0] for task in tasks])
            assert statuses == [200] + [403] * 19
            assert len(s.provider.log) == 1
            spends = [allowed for request, allowed in s.door.log if request.action == "spend"]
            assert sorted(spends) == [False] * 19 + [True], "each was asked for, and the policy said no to nineteen"
            assert sum(row["refused"] == "spend_session" for row in s.rows()) == 19

    asyncio.run(run())


def test_a_refusal_says_what_is_left_and_a_list_of_models_needs_no_room(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, **limited(tmp_path, 10)) as s:
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
        async with session(tmp_path, {"steps": [{"text": "x", "usage": usage}]}, **limited(tmp_path, WANTED + 30)) as s:
            for _ in range(2):
                assert (await s.post(PATH, BODY))[0] == 200
                await asyncio.to_thread(s.meter.flush)
            used = sum(row["charged"] for row in s.rows())
            assert used == sum(row["input"] + row["output"] for row in s.rows()) > 0

    asyncio.run(run())


def test_calls_that_are_broken_off_count_as_what_was_reserved(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, {"steps": [{"text": "x", "wait": "never"}]}, **limited(tmp_path, WANTED + WANTED // 2)) as s:
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
        async with session(tmp_path, script, **limited(tmp_path, 2 * WANTED)) as s:
            await s.post(path, body)
            row = await s.row()
            assert row["input"] is None
            assert row["charged"] >= MOST

    asyncio.run(run())


PROJECT = Path(__file__).resolve().parents[3]


@contextmanager
def child(root: Root, base_url: str, limit: int) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """An egress in a process of its own, and where it takes calls."""
    words = [sys.executable, "-m", "tests.attacks.egress.egress_child", str(root.path), base_url, str(limit)]
    with subprocess.Popen(words, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, f"http://127.0.0.1:{int(process.stdout.readline())}{PATH}"
        finally:
            process.kill()


def post(url: str) -> int:
    """The status of one call; 0 when the connection broke off."""
    with suppress(ConnectionError):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data=BODY, method="POST"), timeout=120) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except urllib.error.URLError:
            return 0
    return 0


def settled(root: Root, calls: int, within_s: float = 60.0) -> None:
    """Wait until so many answered calls have their rows."""
    until = time.monotonic() + within_s
    while sum(row["calls"] - sum(row.get("status", {}).values()) for row in reading.report(root)) < calls:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_what_a_killed_egress_had_reserved_is_held_then_released_and_never_counted_twice(tmp_path: Path) -> None:
    """`kill -9` with three calls open: their room is taken until the lease ends, then all of it is there again."""
    root = Root(tmp_path)
    root.state.mkdir()
    limit = 3 * WANTED + 50
    usage = {"input": 30, "output": 15, "cache_read": 0, "cache_write": 0}
    script = {"steps": [{"text": "x", "usage": usage}], "conversations": [{"match": "hi", "steps": [{"text": "x", "wait": "all"}]}]}
    with running(script) as provider:
        with child(root, provider.url, limit) as (process, url), ThreadPoolExecutor(4) as pool:
            open_calls = [pool.submit(post, url) for _ in range(3)]
            provider.until(lambda p: sum(seen.outcome == "held" for seen in p.log) == 3)
            assert post(url) == 403
            process.kill()
            process.wait()
            assert [call.result() for call in open_calls] == [0, 0, 0]
        provider.release("all")
        with child(root, provider.url, limit) as (_, url):
            assert post(url) == 403, "what may have been used is not given out again before the lease ends"
        connection = database.connect(root.usage, durable=True)
        held = connection.execute("select count(*), sum(tokens) from reservations").fetchone()
        assert held == (3, 3 * WANTED)
        ended = clock.stamp(clock.now() - timedelta(seconds=1))
        assert clock.now() + LEASE > clock.parse(connection.execute("select max(until) from reservations").fetchone()[0])
        connection.execute("update reservations set until = ?", (ended,))  # the clock moves on
        connection.close()
        provider.load({"steps": [{"text": "x", "usage": usage}]})
        with child(root, provider.url, limit) as (_, url):
            assert [post(url) for _ in range(3)] == [200, 200, 200]
            settled(root, 3)
    connection = database.connect(root.usage, durable=True)
    try:
        assert connection.execute("select count(*) from reservations").fetchone() == (0,)
        # Refused calls have rows of their own; of the killed ones nobody knows what they used, and no row says so.
        answered = connection.execute("select count(*), sum(charged), sum(input) from calls where status = 200").fetchone()
        assert answered[0] == 3 and answered[1] < 3 * WANTED
    finally:
        connection.close()


def test_a_spend_limit_that_cannot_be_decided_lets_nothing_out(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, **limited(tmp_path, 10 * WANTED)) as s:

            def broken() -> None:
                if s.door.log[-1][0].action == "spend":
                    raise OSError("the log is full")

            s.door.on_decide = broken
            status, _, _ = await s.post(PATH, BODY)
            assert (status, s.provider.log) == (403, [])

    asyncio.run(run())

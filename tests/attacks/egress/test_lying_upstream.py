"""A provider that lies: the harness gets the bytes or an error, the call is recorded once, the next call is not touched."""

import asyncio
import contextlib
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from amem.egress import contexts
from amem.egress.contexts import Contexts
from amem.egress.sse import MAX_EVENT_BYTES
from amem.model.call import Dialect
from tests.egress.support import call, provider, session

PATH, BODY = call(Dialect.ANTHROPIC, stream=True)
START = b'data: {"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":7,"output_tokens":1}}}\n\n'
STOP = b'data: {"type":"message_delta","usage":{"output_tokens":3}}\n\ndata: {"type":"message_stop"}\n\n'
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@asynccontextmanager
async def upstream(answer: bytes, repeat: bytes = b"", times: int = 0) -> AsyncIterator[str]:
    """A server that reads a head and sends this, however wrong, then closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(answer)
        for _ in range(times):
            writer.write(repeat)
            await writer.drain()

    async with provider(serve) as url:
        yield url


LIES: dict[str, tuple[bytes, str]] = {
    "nothing at all": (b"", "502"),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n", "502"),
    "half a head": (b"HTTP/1.1 200 OK\r\ncontent-ty", "502"),
    "a status that is none": (b"HTTP/1.1 abc OK\r\n\r\n", "502"),
    "huge headers": (OK + b"x-a: " + b"a" * 100_000 + b"\r\n\r\n", "502"),
    "thousands of headers": (OK + b"".join(b"x-%d: 1\r\n" % n for n in range(5000)) + b"\r\n", "502"),
    "a header that splits the answer": (OK + b"x-a: 1\r\r\nx-b: 2\r\ncontent-length: 2\r\n\r\n{}", "502"),
    "two lengths": (OK + b"content-length: 2\r\ncontent-length: 20\r\n\r\n{}", "502"),
    "length and chunks": (OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "502"),
    "a length that is too long, whole": (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{}", "502"),
    "a length that is too long, stream": (OK + b"content-length: 99999999\r\n\r\n" + START, "cut"),
    "a bad chunk size": (CHUNKED + chunk(START) + b"zz\r\nxx\r\n", "cut"),
    "a chunk without its end": (CHUNKED + chunk(START) + b"5\r\nabcdefgh\r\n", "cut"),
    "chunks without an end": (CHUNKED + chunk(START), "cut"),
    "a negative chunk": (CHUNKED + chunk(START) + b"-5\r\nabcde\r\n", "cut"),
    "invalid UTF-8 in events": (CHUNKED + chunk(START) + chunk(b"data: \xff\xfe\n\n") + chunk(STOP) + b"0\r\n\r\n", "200"),
    "events that are no JSON": (CHUNKED + chunk(START) + chunk(b"data: {{{{\n\ndata:\n\n") + chunk(STOP) + b"0\r\n\r\n", "200"),
    "an encoding that it is not in": (
        OK + b"content-encoding: br\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(START) + b"0\r\n\r\n",
        "200",
    ),
    "an encoding nobody knows": (OK + b"content-encoding: xyz\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(START) + b"0\r\n\r\n", "200"),
    "a body without a length": (OK + b"connection: close\r\n\r\n" + START + STOP, "200"),
    "a switch of protocols": (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nxyz", "502"),
    "no content, with content": (b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello", "502"),
    "a length that comes after the chunks": (CHUNKED + chunk(START) + chunk(STOP) + b"0\r\ncontent-length: 7\r\n\r\n", "502"),
    "an answer before its answer": (b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + chunk(START) + chunk(STOP) + b"0\r\n\r\n", "200"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_becomes_an_error_or_passes_and_is_recorded_once(tmp_path: Path, lie: str) -> None:
    answer, outcome = LIES[lie]

    async def run() -> None:
        async with upstream(answer) as base, session(tmp_path, base_url=base) as s:
            try:
                status, got, _ = await s.post(PATH, BODY)
                # What is wrong may come in one piece with the head, and then nothing of it was passed on yet.
                seen = "cut" if outcome == "cut" and status == 502 else str(status)
            except aiohttp.ClientError:
                seen, got, status = "cut", b"", 200
            assert seen == outcome, got
            await s.row()
            [row] = s.rows()
            match outcome:
                case "cut" if status == 200:
                    assert (row["status"], row["partial"], row["input"]) == (200, 1, 7)
                case "cut" | "502":
                    assert (row["status"], row["input"]) == (502, None)
                case _:
                    assert row["input"] in (7, None)
                    assert (row["unmetered_reason"] is None) == (row["input"] == 7)

    asyncio.run(run())


NAMES = (rb"\ud800", rb"\udfff\ud800", rb"\u0000", rb"\u001b[2J", rb"\u202e", b"m" * 100_000)


@pytest.mark.parametrize("name", NAMES, ids=[ascii(name[:12]) for name in NAMES])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_name_that_no_file_takes_stops_neither_the_meter_nor_the_contexts(tmp_path: Path, name: bytes, stream: bool) -> None:
    """An answer names its model, its id and a tool with half a surrogate pair, a NUL, an escape, a megabyte; its type with odd bytes."""
    usage = b'"usage":{"input_tokens":7,"output_tokens":3}'
    tool = b'{"type":"tool_use","id":"t","name":"%s","input":{}}' % name
    if stream:
        start = b'data: {"type":"message_start","message":{"id":"%s","model":"%s",%s}}\n\n' % (name, name, usage)
        block = b'data: {"type":"content_block_start","index":0,"content_block":%s}\n\n' % tool
        body = chunk(start) + chunk(block) + chunk(STOP) + b"0\r\n\r\n"
        answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; x=\xff\xfe\r\ntransfer-encoding: chunked\r\n\r\n" + body
    else:
        body = b'{"type":"message","id":"%s","model":"%s","content":[%s],%s}' % (name, name, tool, usage)
        answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json; x=\xff\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)

    async def run() -> None:
        keeper = Contexts(tmp_path / "ctx")
        async with upstream(answer) as base, session(tmp_path, base_url=base, contexts=keeper) as s:
            for _ in range(3):
                assert (await s.post(*call(Dialect.ANTHROPIC, stream=stream)))[0] == 200
            async with asyncio.timeout(60):
                while len(rows := await asyncio.to_thread(s.rows)) < 3:  # a long answer is read after it went
                    await asyncio.sleep(0)
            assert [(row["input"], row["output"]) for row in rows] == [(7, 3)] * 3
            assert all(row["reported_model"].isprintable() and len(row["reported_model"]) <= 256 for row in rows)
            assert s.meter.fault is None
            await asyncio.to_thread(keeper.close)
        lines = contexts.read(tmp_path / "ctx")
        assert [line["n"] for line in lines] == [1, 2, 3]
        assert all("missed_before" not in line and contexts.body(tmp_path / "ctx", line["response"]) for line in lines)

    asyncio.run(run())


def test_a_stream_without_end_is_passed_on_with_flat_memory(tmp_path: Path) -> None:
    """128 MB in one event that never ends, then the harness leaves: the meter held no more than its bound of it."""

    async def run() -> None:
        tracemalloc.start()
        piece = chunk(b"x" * 65_536)
        async with upstream(CHUNKED + chunk(START) + chunk(b"data: "), piece, 4096) as base, session(tmp_path, base_url=base) as s:
            async with s.client.post(s.url + PATH, data=BODY) as answer:
                got = 0
                async for part in answer.content.iter_any():
                    got += len(part)
                    if got > 128 << 20:
                        break
                answer.close()
            row = await s.row()
            assert (row["partial"], row["input"], row["output"]) == (1, 7, 1)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak_bytes < MAX_EVENT_BYTES + (24 << 20)

    asyncio.run(run())


def test_other_calls_go_on_while_one_provider_stalls(tmp_path: Path) -> None:
    async def run() -> None:
        script: dict[str, Any] = {
            "conversations": [{"match": "stall", "steps": [{"text": "x " * 50, "chunk": 4, "fault": {"kind": "stall", "after": 2}}]}],
        }
        async with session(tmp_path, script) as s:
            path, body = call(Dialect.ANTHROPIC, stream=True, messages=[{"role": "user", "content": "stall"}])
            stalled = [asyncio.create_task(s.post(path, body)) for _ in range(20)]
            await s.provider.until(lambda p: sum(seen.outcome == "held" for seen in p.log) == 20)
            assert (await s.post(PATH, BODY))[0] == 200
            s.provider.release("stall")
            results = await asyncio.gather(*stalled, return_exceptions=True)
            assert all(isinstance(result, aiohttp.ClientError) for result in results)
            assert len(s.rows()) == 21

    asyncio.run(run())


@pytest.mark.parametrize("gap_s", [0.0, 0.05], ids=["in one piece", "a moment later"])
def test_bytes_after_an_answer_are_never_the_answer_of_the_next_call(tmp_path: Path, gap_s: float) -> None:
    """An upstream, or who can write into its connection, that sends two answers for one call."""
    true, forged = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
        for body in (b'{"id":"msg_true"}', b'{"id":"msg_forged"}')
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
                writer.write(true)
                if gap_s:
                    await writer.drain()
                    await asyncio.sleep(gap_s)
                writer.write(forged)
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with session(tmp_path, base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as s:
            answers = []
            for _ in range(5):
                answers.append((await s.post(PATH, BODY))[:2])
                await asyncio.sleep(2 * gap_s)
            assert {status for status, _ in answers} <= {200, 502}
            assert not [got for _, got in answers if b"forged" in got]
            assert (200, b'{"id":"msg_true"}') in answers
        server.close()

    asyncio.run(run())

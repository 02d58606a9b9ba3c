"""Forms of HTTP that are allowed and seldom seen, from inside and from the provider: each is a call, one call, or none."""

import asyncio
import contextlib
import re
from pathlib import Path

import pytest

from amem.egress import listener
from amem.model.call import Dialect
from tests.attacks.egress.test_floods import closed
from tests.attacks.egress.test_lying_upstream import CHUNKED, OK, START, STOP, chunk, upstream
from tests.attacks.egress.test_smuggling import BODY, INNER, PATH, N, head
from tests.egress.support import Session, call, provider, session


async def answers(s: Session, data: bytes, count: int) -> bytes:
    """So many answers of one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", s.port)
    writer.write(data)
    got = b""
    async with asyncio.timeout(30):
        while got.count(b"HTTP/1.1 ") < count or not got.endswith(b"}"):
            piece = await reader.read(65536)
            if not piece:
                break
            got += piece
    writer.close()
    return got


# ---- from inside -----------------------------------------------------------------------

HALF = N // 2
PIECES = b"%x%s\r\n%s\r\n%x\r\n%s\r\n0\r\n%s\r\n"


def pieces(extension: bytes = b"", trailers: bytes = b"") -> bytes:
    return head(b"transfer-encoding: chunked") + PIECES % (HALF, extension, BODY[:HALF], N - HALF, BODY[HALF:], trailers)


FORMS = {
    "a chunk extension": pieces(b";a=b"),
    "a quoted chunk extension": pieces(b';a="b;c"'),
    "trailers": pieces(trailers=b"x-late: 1\r\n"),
    "trailers that would be a credential and another host": pieces(
        trailers=b"x-api-key: attackers\r\nauthorization: Bearer a\r\nhost: evil.example\r\n"
    ),
    "a length that comes late": pieces(trailers=b"content-length: 0\r\n"),
    "it waits to be told to go on": head(b"expect: 100-continue", b"content-length: %d" % N) + BODY,
}


@pytest.mark.parametrize("form", FORMS)
def test_an_allowed_form_is_one_call_whose_body_is_what_was_sent_and_nothing_else_of_it_leaves(tmp_path: Path, form: str) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            got = await answers(s, FORMS[form], 1)
            if b" 200 " in got[:16] or b" 100 " in got[:16]:
                [seen] = s.provider.log
                assert seen.body == BODY
                assert b"attackers" not in repr(seen.headers).encode() and "x-late" not in seen.headers
                assert seen.headers["host"] != "evil.example" and "expect" not in seen.headers
            else:
                assert got[:7] + got[8:12] == b"HTTP/1. 400" and s.provider.log == [] and s.door.log == []
            assert (await s.post(PATH, BODY))[0] == 200

    asyncio.run(run())


def test_requests_sent_at_once_are_each_decided_and_answered_in_their_order(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            unknown = head(b"content-length: 0", target=b"/v1/evil")
            got = await answers(s, INNER + unknown + INNER, 3)
            assert re.findall(rb"HTTP/1\.1 (\d+)", got) == [b"200", b"404", b"200"]
            assert [seen.body for seen in s.provider.log] == [BODY, BODY]
            assert len(s.door.log) == 2

    asyncio.run(run())


def test_very_many_requests_sent_at_once_are_served_one_after_the_other(tmp_path: Path) -> None:
    """A connection is one call at a time, however many stand behind it: nothing of them is decided or sent ahead."""

    async def run() -> None:
        most = under_way = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal most, under_way
            while await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(N)
                under_way += 1
                most = max(most, under_way)
                await asyncio.sleep(0)
                under_way -= 1
                writer.write(OK + b"content-length: 2\r\n\r\n{}")

        async with provider(serve) as base, session(tmp_path, base_url=base) as s:
            assert (await answers(s, INNER * 200, 200)).count(b"HTTP/1.1 200") == 200
            assert most == 1

    asyncio.run(run())


@pytest.mark.parametrize(
    "data",
    [
        b"CONNECT api.anthropic.com:443 HTTP/1.1\r\nhost: api.anthropic.com:443\r\n\r\n",
        b"CONNECT 169.254.169.254:80 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"CONNECT /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % N + BODY,
        b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
        b"TRACE /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: a\r\n\r\n",
        b"POST //v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % N + BODY,
        b"POST http:///v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % N + BODY,
        b"POST x@evil.example/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % N + BODY,
    ],
    ids=lambda data: data.partition(b" HTTP")[0].decode(),
)
def test_another_method_or_target_form_is_no_way_out_of_a_session_without_tunnels(tmp_path: Path, data: bytes) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            got = await s.raw(data)
            assert got == b"" or got[:7] + got[8:10] == b"HTTP/1. 4", got[:80]
            assert s.provider.log == [] and s.door.log == []
            assert (await s.post(PATH, BODY))[0] == 200

    asyncio.run(run())


def test_a_head_that_grows_for_ever_ends_and_others_go_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            reader, writer = await asyncio.open_connection("127.0.0.1", s.port)
            writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\n")
            with contextlib.suppress(ConnectionError):
                for n in range(100_000):
                    writer.write(b"x-%d: %s\r\n" % (n, b"a" * 200))
                    await writer.drain()
                    if reader.at_eof() or writer.is_closing():
                        break
            answer = await closed(reader)
            assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.0 400", b"")
            writer.close()
            assert (await s.post(PATH, BODY))[0] == 200
            assert len(s.provider.log) == 1

    asyncio.run(run())


def test_connections_never_take_the_descriptors_that_calls_and_logs_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may open 420 files: 384 are left for logs and ports, and half of the others may each need one to the provider."""
    monkeypatch.setattr(listener.resource, "getrlimit", lambda what: (420, 420))

    async def run() -> None:
        async with session(tmp_path) as s:
            assert (await s.post(PATH, BODY))[0] == 200
            held = [await asyncio.open_connection("127.0.0.1", s.port) for _ in range(100)]
            ended = [asyncio.create_task(reader.read()) for reader, _ in held]
            async with asyncio.timeout(30):
                await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
                while sum(task.done() for task in ended) < 100 - 17:
                    await asyncio.sleep(0)
            assert (await s.post(PATH, BODY))[0] == 200
            assert sum(not task.done() for task in ended) == 17
            for task in ended:
                task.cancel()
            for _, writer in held:
                writer.close()
            await asyncio.gather(*ended, return_exceptions=True)

    asyncio.run(run())


# ---- from the provider -----------------------------------------------------------------


@pytest.mark.parametrize("keeps", [True, False], ids=["keeps the connection", "closes"])
def test_an_answer_before_the_whole_request_is_the_answer_and_the_next_call_has_a_clean_connection(tmp_path: Path, keeps: bool) -> None:
    """The provider refuses a long request by its head; what it did not read must not be read as the next request."""
    error = b'{"type":"error","error":{"type":"request_too_large","message":"no"}}'
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            first = await reader.readuntil(b"\r\n\r\n")
            seen.append(first[:18])
            length = int(first.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            if length == N:
                await reader.readexactly(N)
                writer.write(OK + b"content-length: 2\r\n\r\n{}")
                continue
            writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(error), error))
            await writer.drain()
            if not keeps:
                return
            await reader.readexactly(length)  # at its leisure

    async def run() -> None:
        async with provider(serve) as base, session(tmp_path, base_url=base) as s:
            for _ in range(3):
                status, got, _ = await s.post(*call(Dialect.ANTHROPIC, filler="POST / HTTP/1.1\r\n\r\n" * 500_000))
                assert (status, got) == (413, error) or (not keeps and status == 502)
                assert (await s.post(PATH, BODY))[0] == 200
            assert set(seen) == {b"POST /v1/messages "}
            assert len(s.rows()) == 6

    asyncio.run(run())


ANSWERS: dict[str, tuple[bytes, int, bytes | None]] = {
    "trailers": (
        CHUNKED + chunk(START) + chunk(STOP) + b"0\r\nset-cookie: a=b\r\nx-late: 1\r\n\r\n", 200, START + STOP,
    ),
    "chunk extensions": (CHUNKED + b"%x;a=b\r\n%s\r\n" % (len(START), START) + chunk(STOP) + b"0;last\r\n\r\n", 200, START + STOP),
    "many answers before the answer": (
        b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 1000 + CHUNKED + chunk(START) + chunk(STOP) + b"0\r\n\r\n", 200, START + STOP,
    ),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    "a length of none": (OK + b"content-length: 0\r\n\r\n", 200, b""),
    "one byte a chunk": (CHUNKED + b"".join(chunk(bytes([one])) for one in START + STOP) + b"0\r\n\r\n", 200, START + STOP),
    "a location and a refresh": (
        OK + b"location: http://169.254.169.254/\r\nrefresh: 0; url=http://evil.example\r\ncontent-length: 2\r\n\r\n{}", 200, b"{}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ANSWERS)
def test_an_odd_answer_arrives_as_it_is_and_is_recorded_once(tmp_path: Path, form: str) -> None:
    data, status, body = ANSWERS[form]

    async def run() -> None:
        async with upstream(data) as base, session(tmp_path, base_url=base) as s:
            got, told, headers = await s.post(PATH, BODY)
            assert (got, told) == (status, body)
            assert not headers.keys() & {"x-late", "set-cookie", "trailer"}
            assert len(s.rows()) == 1
            if body == START + STOP:
                assert [(row["input"], row["output"], row["partial"]) for row in s.rows()] == [(7, 3, 0)]

    asyncio.run(run())

"""A request that two parsers could read differently: refused, logged nowhere as a call, and nothing leaves."""

import asyncio
from pathlib import Path

import pytest

from amem.model.call import Dialect
from tests.egress.support import call, session

PATH, BODY = call(Dialect.ANTHROPIC)
N = len(BODY)
INNER = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % N + BODY


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)


def head(
    *lines: bytes, end: bytes = b"\r\n", method: bytes = b"POST", target: bytes = PATH.encode(), version: bytes = b"HTTP/1.1"
) -> bytes:
    return end.join((b"%s %s %s" % (method, target, version), b"host: x", *lines)) + end + end


SHAPES = {
    "both lengths": head(b"content-length: %d" % N, b"transfer-encoding: chunked") + chunked(BODY),
    "both lengths, the other way": head(b"transfer-encoding: chunked", b"content-length: 5") + chunked(BODY) + INNER,
    "two lengths that differ": head(b"content-length: 0", b"content-length: %d" % N) + BODY,
    "two lengths that agree": head(b"content-length: %d" % N, b"content-length: %d" % N) + BODY,
    "a list of lengths": head(b"content-length: %d, %d" % (N, N)) + BODY,
    "a signed length": head(b"content-length: +%d" % N) + BODY,
    "a negative length": head(b"content-length: -1") + BODY,
    "a length in hexadecimal": head(b"content-length: 0x%x" % N) + BODY,
    "a length with blanks inside": head(b"content-length: 1 %d" % N) + BODY,
    "an obsolete fold": head(b"x-a: 1", b" folded: yes", b"content-length: %d" % N) + BODY,
    "a folded length": head(b"content-length:", b" %d" % N) + BODY,
    "bare LF": head(b"content-length: %d" % N, end=b"\n") + BODY,
    "a bare CR in a value": head(b"x-a: 1\rcontent-length: 0", b"content-length: %d" % N) + BODY,
    "a NUL in a value": head(b"x-a: 1\x00", b"content-length: %d" % N) + BODY,
    "blank before the colon": head(b"content-length : %d" % N) + BODY,
    "blank before a name": head(b" content-length: %d" % N) + BODY,
    "chunked spelt otherwise": head(b"transfer-encoding: xchunked") + chunked(BODY),
    "chunked is not last": head(b"transfer-encoding: chunked, identity") + chunked(BODY),
    "chunked twice": head(b"transfer-encoding: chunked, chunked") + chunked(BODY),
    "transfer-encoding in HTTP/1.0": head(b"transfer-encoding: chunked", version=b"HTTP/1.0") + chunked(BODY),
    "a chunk size with a sign": head(b"transfer-encoding: chunked") + b"+%x\r\n%s\r\n0\r\n\r\n" % (N, BODY),
    "a chunk size with a blank": head(b"transfer-encoding: chunked") + b"%x x\r\n%s\r\n0\r\n\r\n" % (N, BODY),
    "a chunk size that overflows": head(b"transfer-encoding: chunked") + b"10000000000000000%x\r\n%s\r\n0\r\n\r\n" % (N, BODY),
    "a chunk that is longer than it says": head(b"transfer-encoding: chunked") + b"%x\r\n%sXX\r\n0\r\n\r\n" % (N, BODY),
    "bare LF after a chunk": head(b"transfer-encoding: chunked") + b"%x\n%s\n0\n\n" % (N, BODY),
    "a name that is no token": head(b"x(a): 1", b"content-length: %d" % N) + BODY,
    "no host": b"POST /v1/messages HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % N + BODY,
    "two hosts": head(b"host: y", b"content-length: %d" % N) + BODY,
    "an absolute target": head(b"content-length: %d" % N, target=b"http://evil.example/v1/messages") + BODY,
    "another version": head(b"content-length: %d" % N, version=b"HTTP/1.2") + BODY,
    "HTTP/2 by prior knowledge": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a method with a blank": head(b"content-length: %d" % N, method=b"PO ST") + BODY,
    "too many headers": head(*(b"x-%d: 1" % n for n in range(200)), b"content-length: %d" % N) + BODY,
    "a header too long": head(b"x-a: " + b"a" * 100_000, b"content-length: %d" % N) + BODY,
    "a target too long": head(b"content-length: %d" % N, target=b"/v1/messages?" + b"a" * 100_000) + BODY,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_request_of_two_readings_never_leaves(tmp_path: Path, shape: str) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            answer = await s.raw(SHAPES[shape])
            assert b" 200 " not in answer[:16], answer[:80]
            assert s.provider.log == []
            assert s.door.log == []
            # The next caller is not touched.
            assert (await s.post(PATH, BODY))[0] == 200

    asyncio.run(run())


def test_the_plain_forms_of_those_shapes_do_pass(tmp_path: Path) -> None:
    """The control: the same bytes without the trick are a call."""

    async def run() -> None:
        async with session(tmp_path) as s:
            for plain in (head(b"content-length: %d" % N) + BODY, head(b"transfer-encoding: chunked") + chunked(BODY)):
                assert (await s.raw(plain)).startswith(b"HTTP/1.1 200")
            assert [seen.body for seen in s.provider.log] == [BODY, BODY]

    asyncio.run(run())


def test_an_upgrade_is_never_granted_or_passed_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            lines = (b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-key: x", b"sec-websocket-version: 13")
            answer = await s.raw(head(*lines, method=b"GET", target=b"/v1/responses"))
            assert answer.startswith(b"HTTP/1.1 404")
            assert s.provider.log == []

    asyncio.run(run())


@pytest.mark.parametrize("rest", [b"zz\r\n{}\r\n0\r\n\r\n", b"-1\r\n{}\r\n", b"2\r\n{}XX0\r\n\r\n", b"ffffffffffffffffff\r\n{}"])
def test_a_body_that_goes_wrong_after_its_head_is_a_400_and_no_call(
    tmp_path: Path, rest: bytes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amem.egress.server.BODY_TIMEOUT_S", 1.0)

    async def run() -> None:
        async with session(tmp_path) as s:
            reader, writer = await asyncio.open_connection("127.0.0.1", s.port)
            writer.write(head(b"transfer-encoding: chunked") + b"2\r\n{ \r\n")
            await writer.drain()
            assert (await s.post(PATH, BODY))[0] == 200  # by now the egress waits for the rest
            writer.write(rest)
            async with asyncio.timeout(20):
                answer = await reader.read(65536)
            writer.close()
            assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.0 400", b""), answer[:200]
            assert len(s.provider.log) == 1
            assert not [record for record in caplog.records if record.exc_info]

    asyncio.run(run())

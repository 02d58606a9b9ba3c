"""Clients from inside that are slow, silent, many or large cost themselves and nobody else."""

import asyncio
import contextlib
import gzip
import socket
from pathlib import Path

import pytest

from amem.egress import listener, weight
from amem.model.call import Dialect
from tests.egress.support import call, session


async def closed(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(20):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
    return b""


def test_slow_heads_and_bodies_do_not_stop_others_and_end_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HEAD_TIMEOUT_S", 0.2)
    monkeypatch.setattr("amem.egress.server.BODY_TIMEOUT_S", 0.2)

    async def run() -> None:
        async with session(tmp_path) as s:
            silent = [await asyncio.open_connection("127.0.0.1", s.port) for _ in range(50)]
            for n, (_, writer) in enumerate(silent):
                writer.write(
                    [b"", b"POST /v1/messages HTTP/1.1\r\nhost:", b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{"][
                        n % 3
                    ]
                )
            assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 200
            answers = [await closed(reader) for reader, _ in silent]
            assert all(not answer or answer.startswith(b"HTTP/1.1 4") for answer in answers)
            assert len(s.provider.log) == 1
            for _, writer in silent:
                writer.close()

    asyncio.run(run())


def test_one_connection_too_many_is_closed_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 4)

    async def run() -> None:
        async with session(tmp_path) as s:
            assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 200  # the client's own connection, kept
            held = [await asyncio.open_connection("127.0.0.1", s.port) for _ in range(3)]
            await asyncio.sleep(0)
            reader, writer = await asyncio.open_connection("127.0.0.1", s.port)
            assert await closed(reader) == b""
            assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 200
            for _, other in [*held, (reader, writer)]:
                other.close()

    asyncio.run(run())


def test_a_body_beyond_the_limit_is_refused_before_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amem.egress.server.MAX_BODY_BYTES", 1000)

    async def run() -> None:
        async with session(tmp_path) as s:
            status, answer, _ = await s.post(*call(Dialect.ANTHROPIC, filler="x" * 5000))
            assert status == 413
            assert b"request_too_large" in answer
            assert s.provider.log == []

    asyncio.run(run())


def test_large_bodies_that_never_end_are_refused_together_and_small_calls_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection sends less than a request may have and then nothing more: together they would be the machine's memory."""
    monkeypatch.setattr(weight, "MAX_HELD_BYTES", 8 << 20)

    async def run() -> None:
        async with session(tmp_path) as s:
            held = []
            for _ in range(3):
                reader, writer = await asyncio.open_connection("127.0.0.1", s.port)
                writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 60000000\r\n\r\n" + b"x" * (4 << 20))
                held.append((reader, writer))
            async with asyncio.timeout(30):
                done, waiting = await asyncio.wait(
                    [asyncio.create_task(reader.readuntil(b"\r\n\r\n")) for reader, _ in held], return_when=asyncio.FIRST_COMPLETED
                )
            [head] = [task.result() for task in done]
            assert head.startswith(b"HTTP/1.1 429 ")
            assert b"retry-after" in head.lower()
            assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 200
            packed = gzip.compress(call(Dialect.ANTHROPIC, filler="x" * (9 << 20))[1])
            status, answer, _ = await s.post("/v1/messages", packed, {"content-encoding": "gzip"})
            assert (status, b"under way" in answer) == (429, True)
            for task in waiting:
                task.cancel()
            for _, writer in held:
                writer.close()
            await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(run())


def test_a_reader_that_stops_holds_the_provider_back_and_memory_stays_flat(tmp_path: Path) -> None:
    """Back-pressure reaches the provider: with the harness not reading, most of the answer has not been written there."""

    async def run() -> None:
        written = [0]
        blocked = asyncio.Event()

        async def provide(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % (1 << 30))
            try:
                while not writer.is_closing():
                    writer.write(b"data: x\n\n" * 7000)
                    written[0] += 63_000
                    drained = asyncio.create_task(writer.drain())
                    if not (await asyncio.wait([drained], timeout=1.0))[0]:
                        blocked.set()
                    await drained
            except ConnectionError:
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(provide, "127.0.0.1", 0)
        async with session(tmp_path, base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as s:
            path, body = call(Dialect.CHAT, stream=True)
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(sock, ("127.0.0.1", s.port))
            await loop.sock_sendall(sock, f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            async with asyncio.timeout(30):
                await blocked.wait()
            assert written[0] < 64 << 20
            sock.close()
        server.close()

    asyncio.run(run())

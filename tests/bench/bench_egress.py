"""P4: what the egress adds to a call, beside a bare aiohttp pass-through (the floor in Python), over one provider.

    python -m tests.bench.bench_egress

Four processes: a provider that answers from memory, the floor, the egress with the real policy, decision log (under a lock,
linked) and usage store, and the client that measures. Rows are interleaved and each figure is the median over the rounds;
"added" is a row's median less the direct call's in the same round. LiteLLM and Portkey's gateway are measured by their own
driver beside the same floor (their ratio to it: about 29 and 4.4 at one call at a time).
"""

import asyncio
import gc
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.bench.rows import Row, table

AT_ONCE = {1: 150, 8: 320, 64: 512, 256: 768}
"""Calls a round, by how many are under way at once."""
ROUNDS = 5
BODY = {"messages": [{"role": "user", "content": "What is two and two?"}], "max_tokens": 64}
SMALL = json.dumps({
    "id": "msg_1", "type": "message", "role": "assistant", "model": "small", "content": [{"type": "text", "text": "Four."}],
    "stop_reason": "end_turn", "usage": {"input_tokens": 12, "output_tokens": 2},
}).encode()  # fmt: skip
START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","model":"m",'
    b'"usage":{"input_tokens":12,"output_tokens":1}}}\n\n'
)
END = (
    b'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":20}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)


# ---- the provider ----------------------------------------------------------------------


class Provider(asyncio.Protocol):
    """Plays what the model's name says: `small`, or `bulk-<MB>` in events of 4 KB with back-pressure."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._buffer = b""
        self._writable = asyncio.Event()
        self._writable.set()
        self._task: asyncio.Task[None] | None = None

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            if len(self._buffer) < end + 4 + length:
                return
            body, self._buffer = self._buffer[end + 4 : end + 4 + length], self._buffer[end + 4 + length :]
            model = json.loads(body)["model"]
            if model == "small":
                self._write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(SMALL), SMALL))
            else:
                self._task = asyncio.get_running_loop().create_task(self._bulk(int(model.partition("-")[2])))

    def _write(self, data: bytes) -> None:
        assert isinstance(self._transport, asyncio.Transport)
        self._transport.write(data)

    async def _bulk(self, megabytes: int) -> None:
        event = b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"' + b"lorem ip" * 500 + b'"}}\n\n'
        chunk = b"%x\r\n%s\r\n" % (len(event), event)
        start = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n"
        self._write(start % (len(START), START))
        for _ in range(megabytes * 256):
            self._write(chunk)
            await self._writable.wait()
        self._write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(END), END))


async def provide(listener: socket.socket) -> None:
    """Serve as the provider until killed."""
    server = await asyncio.get_running_loop().create_server(Provider, sock=listener, backlog=1024)
    await server.serve_forever()


# ---- the floor and ours ----------------------------------------------------------------


async def floor(listener: socket.socket, upstream: str) -> None:
    """aiohttp in, aiohttp out, nothing looked at."""
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web

    timeout = ClientTimeout(total=None)
    async with ClientSession(
        connector=TCPConnector(limit=0), auto_decompress=False, cookie_jar=DummyCookieJar(), timeout=timeout
    ) as client:

        async def pass_on(request: web.Request) -> web.StreamResponse:
            headers = {
                name: value for name, value in request.headers.items() if name.lower() not in ("host", "content-length", "connection")
            }
            async with client.post(upstream + request.path_qs, headers=headers, data=await request.read()) as answer:
                kept = {"content-type": answer.headers["content-type"]}
                if answer.content_length is not None:
                    return web.Response(status=answer.status, headers=kept, body=await answer.read())
                out = web.StreamResponse(status=answer.status, headers=kept)
                await out.prepare(request)
                async for piece in answer.content.iter_any():
                    await out.write(piece)
                return out

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", pass_on)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.SockSite(runner, listener, backlog=1024).start()
        await asyncio.Event().wait()


async def ours(listener: socket.socket, upstream: str, folder: Path) -> None:
    """The egress of one session, with everything that a launch gives it."""
    from amem.egress import routes, server
    from amem.egress.meter import Meter
    from amem.logs.writer import Writer
    from amem.model.clock import now
    from amem.model.label import Label
    from amem.policy import engine
    from amem.policy.door import Door
    from amem.settings.credentials import Credentials, Secret
    from amem.settings.grants import DestinationGrant, DomainGrant, Grants
    from amem.settings.root import Root

    root = Root(folder)
    root.state.mkdir(parents=True)
    destinations = {"demo": DestinationGrant(ceiling=Label.INTERNAL, base_url=upstream)}
    grants = Grants(owner="human:bench:owner", domains={"dom-me": DomainGrant()}, destinations=destinations)
    door = Door(engine.load(root.policy, engine.grants_data(grants)), Writer(root.state).append, now)
    access = server.Access(
        session="ses-00000000", principal="agent:command", domain="dom-me", auth="key", credential=Secret("sk-bench"),
        routes=routes.table("demo", routes.Auth.KEY, grants, Credentials({}, {})), label=lambda: Label.PUBLIC, decide=door.decide,
    )  # fmt: skip
    await server.serve(server.application(access, Meter(root)), listener)
    gc.freeze()  # as a launch does
    await asyncio.Event().wait()


# ---- the client ------------------------------------------------------------------------


class Answer(NamedTuple):
    """One answer: seconds to the first byte of its body and to its end, its size, and whether it was whole."""

    first_s: float
    whole_s: float
    size: int
    good: bool


class Wire(asyncio.Protocol):
    """A client connection that makes one call at a time and keeps nothing but the end of a body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def call(self, request: bytes) -> "asyncio.Future[Answer]":
        self._done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._head, self._tail, self._size, self._length, self._first = b"", b"", 0, -1, 0.0
        self._began = time.perf_counter()
        assert isinstance(self.transport, asyncio.Transport)
        self.transport.write(request)
        return self._done

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        if not self._first:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0 or len(self._head) == end + 4:
                return
            length = self._head[:end].lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            self._length = int(length) if length else -1
            self._first, data = now, self._head[end + 4 :]
        self._size += len(data)
        self._tail = (self._tail + data)[-64:]
        if self._size == self._length or (self._length < 0 and self._tail.endswith(b"\r\n0\r\n\r\n")):
            good = self._head.startswith(b"HTTP/1.1 200") and (self._length >= 0 or b"message_stop" in self._tail)
            self._done.set_result(Answer(self._first - self._began, now - self._began, self._size, good))

    def connection_lost(self, exc: Exception | None) -> None:
        if hasattr(self, "_done") and not self._done.done():
            self._done.set_result(Answer(0, 0, self._size, False))


async def play(port: int, model: str, at_once: int, calls: int) -> list[Answer]:
    """Make so many calls, so many at once."""
    body = json.dumps({"model": model, **BODY, **({"stream": True} if model != "small" else {})}).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\nx-api-key: placeholder\r\n"
    request = f"{head}anthropic-version: 2023-06-01\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    answers: list[Answer] = []
    todo = iter(range(calls))

    async def worker() -> None:
        _, wire = await asyncio.get_running_loop().create_connection(Wire, "127.0.0.1", port)
        for _ in todo:
            answers.append(await wire.call(request))
        wire.transport.close()

    await asyncio.gather(*(worker() for _ in range(min(at_once, calls))))
    return answers


# ---- the run ---------------------------------------------------------------------------


@contextmanager
def children(folder: Path) -> Iterator[tuple[Mapping[str, int], Mapping[str, int]]]:
    """Start provider, floor and ours; yield their ports and process ids."""
    started: list[subprocess.Popen[bytes]] = []
    ports: dict[str, int] = {}
    try:
        for role in ("direct", "floor", "ours"):
            listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
            ports[role] = listener.getsockname()[1]
            upstream = f"http://127.0.0.1:{ports['direct']}"
            argv = [sys.executable, "-m", "tests.bench.bench_egress", role, str(listener.fileno()), upstream, str(folder)]
            started.append(subprocess.Popen(argv, pass_fds=[listener.fileno()]))
            listener.close()
        yield ports, dict(zip(ports, (child.pid for child in started), strict=True))
    finally:
        for child in started:
            child.kill()
            child.wait()


def cpu_s(pid: int) -> float:
    """Processor seconds of a process so far."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int, key: str = "VmRSS:") -> float:
    """Resident memory of a process, now or (`VmHWM:`) at its highest."""
    return next(int(line.split()[1]) / 1024 for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(key))


def run() -> list[Row]:
    """Measure; about a minute."""
    with tempfile.TemporaryDirectory() as folder, children(Path(folder) / "root") as (ports, pids):
        for port in ports.values():
            asyncio.run(play(port, "small", 8, 64))
            asyncio.run(play(port, "bulk-1", 1, 1))
        rows = [row for at_once in AT_ONCE for row in _small(ports, at_once)]
        rows += [row for at_once in (1, 64) for row in _first(ports, at_once)]
        return rows + _cpu(ports, pids) + _bulk(ports) + _memory(ports, pids)


def _median(answers: list[Answer], first: bool = False) -> float:
    return statistics.median((answer.first_s if first else answer.whole_s) for answer in answers) * 1000


def _small(ports: Mapping[str, int], at_once: int) -> list[Row]:
    added: dict[str, list[float]] = {"floor": [], "ours": []}
    bad = 0
    for _ in range(ROUNDS):
        found = {role: asyncio.run(play(port, "small", at_once, AT_ONCE[at_once])) for role, port in ports.items()}
        bad += sum(not answer.good for answer in found["ours"])
        for role, figures in added.items():
            figures.append(_median(found[role]) - _median(found["direct"]))
    mine, floor_ms = statistics.median(added["ours"]), statistics.median(added["floor"])
    rows = [Row("P4", f"call, {at_once} at once", mine, "pass-through", floor_ms, "ms p50 added", "<= 3 x", mine <= 3 * floor_ms)]
    if at_once == max(AT_ONCE):
        rows.append(Row("P4", f"errors, {at_once} at once", bad, "allowed", 0, "n", "= 0", bad == 0))
    return rows


def _first(ports: Mapping[str, int], at_once: int) -> list[Row]:
    added: dict[str, list[float]] = {"floor": [], "ours": []}
    for _ in range(ROUNDS):
        found = {role: asyncio.run(play(port, "bulk-0", at_once, 4 * at_once + 20)) for role, port in ports.items()}
        for role, figures in added.items():
            figures.append(_median(found[role], first=True) - _median(found["direct"], first=True))
    mine, floor_ms = statistics.median(added["ours"]), statistics.median(added["floor"])
    return [Row("P4", f"first event, {at_once} at once", mine, "pass-through", floor_ms, "ms p50 added", "<= 2 x", mine <= 2 * floor_ms)]


def _cpu(ports: Mapping[str, int], pids: Mapping[str, int]) -> list[Row]:
    used = {}
    for role in ("floor", "ours"):
        before = cpu_s(pids[role])
        asyncio.run(play(ports[role], "small", 8, 1000))
        used[role] = cpu_s(pids[role]) - before
    return [Row("P4", "CPU for 1,000 calls", used["ours"], "pass-through", used["floor"], "s", "reported", None)]


def _bulk(ports: Mapping[str, int]) -> list[Row]:
    speed: dict[str, list[float]] = {"floor": [], "ours": []}
    for _ in range(3):
        for role, figures in speed.items():
            [answer] = asyncio.run(play(ports[role], "bulk-20", 1, 1))
            figures.append(answer.size / answer.whole_s / (1 << 20) if answer.good else 0.0)
    mine, floor_speed = statistics.median(speed["ours"]), statistics.median(speed["floor"])
    return [Row("P4", "a 20 MB stream", mine, "pass-through", floor_speed, "MB/s", ">= 0.5 x", mine >= 0.5 * floor_speed)]


def _memory(ports: Mapping[str, int], pids: Mapping[str, int]) -> list[Row]:
    """Growth of the highest resident size from a stream of 20 MB to one ten times as long."""
    pid = pids["ours"]
    asyncio.run(play(ports["ours"], "bulk-20", 1, 1))
    before = resident_mb(pid, "VmHWM:")
    asyncio.run(play(ports["ours"], "bulk-200", 1, 1))
    grown = resident_mb(pid, "VmHWM:") - before
    return [Row("P4", "peak memory, 10 x the stream", grown, "allowed", 4.0, "MB grown", "<= 4", grown <= 4)]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        given = socket.socket(fileno=int(sys.argv[2]))
        given.setblocking(False)
        match sys.argv[1]:
            case "direct":
                asyncio.run(provide(given))
            case "floor":
                asyncio.run(floor(given, sys.argv[3]))
            case _:
                asyncio.run(ours(given, sys.argv[3], Path(sys.argv[4])))
    print(table(run()))

"""P4: what the egress adds to a call, beside a bare aiohttp pass-through (the floor in Python), over one provider.

    python -m tests.bench.bench_egress

Each in a process of its own: a provider that answers from memory, the floor, and the egress with the real policy, decision log (under
a lock, linked) and usage store; the same with contexts kept, as a launch does unless a grant says otherwise, and with a spend limit
besides; Portkey's gateway and LiteLLM, where they are installed (`make bench-peers`, `make gateway`); and the client that measures.
Rows are interleaved and each figure is the median over the rounds; "added" is a row's median less the direct call's in the same
round. The peers do more of another kind: both translate dialects, and LiteLLM counts cost.
"""

import asyncio
import gc
import itertools
import json
import os
import secrets
import shutil
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
SLOW = {1: 30, 8: 64, 64: 128, 256: 256}
"""The same for what takes a hundredth of a second and more for each."""
ROUNDS = 5
CPU_CALLS = 500
KEY = "sk-bench-" + secrets.token_urlsafe(30)
"""As long as one is: what an upstream repeats is searched for it."""
NULL = subprocess.DEVNULL
NUMBERS = itertools.count()
PROJECT = Path(__file__).resolve().parents[2]
BODY = {"messages": [{"role": "user", "content": "00000000: what is two and two?"}], "max_tokens": 64}
SMALL = json.dumps({
    "id": "msg_00000000", "type": "message", "role": "assistant", "model": "small", "content": [{"type": "text", "text": "Four."}],
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
                answer = SMALL.replace(b"00000000", b"%08d" % next(NUMBERS))  # no two alike: what keeps them keeps each
                self._write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(answer), answer))
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


async def ours(listener: socket.socket, upstream: str, folder: Path, role: str) -> None:
    """The egress of one session: `kept` with its contexts, `limited` with a spend limit too, which is all that a launch can ask of it;
    `bare` with neither decision nor row, which no launch does: what is left is a proxy that reads calls and answers."""
    from datetime import UTC

    from amem.egress import routes, server
    from amem.egress.contexts import Contexts
    from amem.egress.meter import Meter
    from amem.egress.reserve import Reservations
    from amem.logs.writer import Writer
    from amem.model.clock import now
    from amem.model.label import Label
    from amem.policy import engine
    from amem.policy.decision import Decision
    from amem.policy.door import Door
    from amem.settings.credentials import Credentials, Secret
    from amem.settings.grants import DestinationGrant, DomainGrant, Grants, Spend
    from amem.settings.root import Root

    root = Root(folder)
    root.state.mkdir(parents=True)
    destinations = {"demo": DestinationGrant(ceiling=Label.INTERNAL, base_url=upstream)}
    grants = Grants(owner="human:bench:owner", domains={"dom-me": DomainGrant()}, destinations=destinations)
    door = Door(engine.load(root.policy, engine.grants_data(grants)), Writer(root.state).append, now)
    meter = Meter(root)
    kept, limited = role in ("kept", "limited"), role == "limited"
    decide = door.decide
    if role == "bare":
        allowed = Decision(
            id="dec-0123456789ab", action="model_call", allow=True, reasons=(), policy_version="", input_digest="", result={}
        )
        decide = lambda request: allowed  # noqa: E731
        meter.record = lambda row: None  # type: ignore[method-assign]
    access = server.Access(
        session="ses-00000000", principal="agent:command", domain="dom-me", auth="key", credential=Secret(KEY),
        routes=routes.table("demo", routes.Auth.KEY, grants, Credentials({}, {})), label=lambda: Label.PUBLIC, decide=decide,
        contexts=Contexts(folder / "contexts") if kept else None, spend={"demo": Spend(day_tokens=1 << 40)} if limited else {},
        reservations=Reservations(root, UTC) if limited else None,
    )  # fmt: skip
    await server.serve(server.application(access, meter), listener)
    gc.freeze()  # as a launch does, and the next line as every command does
    gc.set_threshold(50_000, 20, 20)
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


async def play(port: int, model: str, at_once: int, calls: int, more: str = "") -> list[Answer]:
    """Make so many calls, so many at once; `more` are header lines."""
    body = json.dumps({"model": model, **BODY, **({"stream": True} if model != "small" else {})}).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\nx-api-key: placeholder\r\n"
    request = f"{head}{more}anthropic-version: 2023-06-01\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    answers: list[Answer] = []
    todo = iter(range(calls))

    async def worker() -> None:
        _, wire = await asyncio.get_running_loop().create_connection(Wire, "127.0.0.1", port)
        for _ in todo:
            answers.append(await wire.call(request.replace(b"00000000", b"%08d" % next(NUMBERS))))
        wire.transport.close()

    await asyncio.gather(*(worker() for _ in range(min(at_once, calls))))
    return answers


# ---- the run ---------------------------------------------------------------------------


class Target(NamedTuple):
    """Something that takes calls."""

    port: int
    pid: int
    more: str = ""
    """Header lines that it needs."""
    slow: bool = False

    def play(self, model: str, at_once: int, calls: int) -> list[Answer]:
        """Make calls there."""
        return asyncio.run(play(self.port, model, at_once, calls, self.more))

    def small(self, at_once: int) -> list[Answer]:
        """A round of short calls."""
        return self.play("small", at_once, (SLOW if self.slow else AT_ONCE)[at_once])


OURS = ("ours", "kept", "limited")
BARE = "bare"
"""Not measured but for its processor time: the evidence of what a decision in the log and a row cost."""


@contextmanager
def children(folder: Path) -> Iterator[Mapping[str, Target]]:
    """Start provider, floor, ours and the peers that are installed."""
    started: list[subprocess.Popen[bytes]] = []
    found: dict[str, Target] = {}
    try:
        for role in ("direct", "floor", *OURS, BARE):
            listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
            port = listener.getsockname()[1]
            upstream = f"http://127.0.0.1:{found['direct'].port if found else port}"
            argv = [sys.executable, "-m", "tests.bench.bench_egress", role, str(listener.fileno()), upstream, str(folder / role)]
            started.append(subprocess.Popen(argv, pass_fds=[listener.fileno()]))
            listener.close()
            found[role] = Target(port, started[-1].pid)
        for name, (argv, more) in _peers(folder, f"http://127.0.0.1:{found['direct'].port}").items():
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            words = [word.replace("{port}", str(port)) for word in argv]
            quiet = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION"}
            started.append(subprocess.Popen(words, env=quiet, stdin=NULL, stdout=NULL, stderr=NULL))
            if _answers(port, started[-1]):
                found[name] = Target(port, started[-1].pid, more, slow=name == "LiteLLM")
        yield found
    finally:
        for child in started:
            child.kill()
            child.wait()


def _peers(folder: Path, upstream: str) -> dict[str, tuple[list[str], str]]:
    """The gateways that are installed: how each is started, and the header lines that it wants."""
    found = {}
    script = PROJECT / "build" / "peers" / "portkey" / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    if script.exists() and (node := shutil.which("node")):
        more = f"x-portkey-provider: anthropic\r\nx-portkey-custom-host: {upstream}/v1\r\n"
        found["Portkey"] = ([node, str(script), "--port={port}", "--headless"], more)
    programs = [PROJECT / "build" / name / "bin" / "litellm" for name in ("peers/litellm", "gateway")]
    litellm = next((path for path in programs if path.exists()), None)
    if litellm is not None:
        routes = [
            {"model_name": name, "litellm_params": {"model": f"anthropic/{name}", "api_base": upstream, "api_key": "k"}}
            for name in ("small", "bulk-0")
        ]
        config = folder.parent / "litellm.yaml"  # YAML has all of JSON in it
        config.write_text(json.dumps({"model_list": routes, "general_settings": {"master_key": "placeholder"}}))
        words = ["--host", "127.0.0.1", "--port", "{port}", "--telemetry", "False"]
        found["LiteLLM"] = ([str(litellm), "--config", str(config), *words], "")
    return found


def _answers(port: int, child: "subprocess.Popen[bytes]") -> bool:
    until = time.monotonic() + 120
    while child.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return True
    return False


def cpu_s(pid: int) -> float:
    """Processor seconds of a process so far."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int, key: str = "VmRSS:") -> float:
    """Resident memory of a process, now or (`VmHWM:`) at its highest."""
    return next(int(line.split()[1]) / 1024 for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(key))


def run() -> list[Row]:
    """Measure; some six minutes on a quiet machine."""
    with tempfile.TemporaryDirectory() as folder, children(Path(folder) / "root") as targets:
        for name, target in list(targets.items()):
            warm = target.play("small", 8, 64)
            if name in ("Portkey", "LiteLLM"):
                if not all(answer.good for answer in warm):
                    print(f"P4: {name} does not answer as it should, and is left out", file=sys.stderr)
                    targets = {other: one for other, one in targets.items() if other != name}
            else:
                target.play("bulk-1", 1, 1)
        timed = {name: target for name, target in targets.items() if name != BARE}
        rows = [row for at_once in AT_ONCE for row in _small(timed, at_once)]
        rows += [row for at_once in AT_ONCE for row in _first(timed, at_once)]
        return rows + _cpu(targets) + _bulk(targets) + _memory(targets)


def _median(answers: list[Answer], first: bool = False) -> float:
    return statistics.median((answer.first_s if first else answer.whole_s) for answer in answers) * 1000


def _small(targets: Mapping[str, Target], at_once: int) -> list[Row]:
    added: dict[str, list[float]] = {name: [] for name in targets if name != "direct"}
    bad = 0
    for _ in range(ROUNDS):
        found = {name: target.small(at_once) for name, target in targets.items()}
        bad += sum(not answer.good for name in OURS for answer in found[name])
        for name, figures in added.items():
            figures.append(_median(found[name]) - _median(found["direct"]))
    ms = {name: statistics.median(figures) for name, figures in added.items()}
    mine, floor_ms = ms["ours"], ms["floor"]
    rows = [
        Row("P4", f"call, {at_once} at once", ms["ours"], "pass-through", floor_ms, "ms p50 added", "<= 3 x", ms["ours"] <= 3 * floor_ms)
    ]
    rows += [
        Row("P4", f"  {what}", ms[name], "pass-through", floor_ms, "ms p50 added", "reported", None)
        for name, what in (("kept", "contexts kept"), ("limited", "and a spend limit"))
    ]
    for name, goal, most in (("Portkey", "<= 0.5 x", 0.5), ("LiteLLM", "reported", None)):
        theirs = ms.get(name)
        holds = mine <= most * theirs if most is not None and theirs is not None else None
        rows.append(Row("P4", f"  beside {name}", mine, name, theirs, "ms p50 added", goal, holds))
    if at_once == max(AT_ONCE):
        rows.append(Row("P4", f"errors, {at_once} at once", bad, "allowed", 0, "n", "= 0", bad == 0))
    return rows


def _first(targets: Mapping[str, Target], at_once: int) -> list[Row]:
    added: dict[str, list[float]] = {name: [] for name in targets if name not in ("direct", "limited")}
    bad = dict.fromkeys(added, 0)
    for _ in range(ROUNDS):
        found = {name: target.play("bulk-0", at_once, at_once + 20) for name, target in targets.items() if name != "limited"}
        for name, figures in added.items():
            bad[name] += sum(not answer.good for answer in found[name])
            figures.append(_median(found[name], first=True) - _median(found["direct"], first=True))
    ms = {name: statistics.median(figures) for name, figures in added.items() if name in OURS or not bad[name]}
    mine, floor_ms = ms["ours"], ms["floor"]
    rows = [
        Row("P4", f"first event, {at_once} at once", mine, "pass-through", floor_ms, "ms p50 added", "<= 2 x", mine <= 2 * floor_ms),
        Row("P4", "  contexts kept", ms["kept"], "pass-through", floor_ms, "ms p50 added", "reported", None),
    ]
    rows += [Row("P4", f"  beside {name}", mine, name, ms.get(name), "ms p50 added", "reported", None) for name in ("Portkey", "LiteLLM")]
    if at_once == max(AT_ONCE):
        broken = bad["ours"] + bad["kept"]
        rows.append(Row("P4", f"streams not whole, {at_once} at once", broken, "allowed", 0, "n", "= 0", broken == 0))
    return rows


def _cpu(targets: Mapping[str, Target]) -> list[Row]:
    """Processor time of so many calls, which says the same on a machine that is busy with other things."""
    rows = []
    whats = {"ours": "", "kept": "  contexts kept", "limited": "  and a spend limit", BARE: "  neither decision nor row"}
    for model, kind, goal, most in (("small", "calls", "<= 3 x", 3), ("bulk-0", "streams", "<= 2 x", 2)):
        for at_once in AT_ONCE:
            used: dict[str, list[float]] = {name: [] for name in ("floor", *whats)}
            for _ in range(3):
                for name, figures in used.items():
                    before = cpu_s(targets[name].pid)
                    targets[name].play(model, at_once, CPU_CALLS)
                    figures.append(cpu_s(targets[name].pid) - before)
            s = {name: statistics.median(figures) for name, figures in used.items()}
            for name, what in whats.items():
                told = what or f"CPU: {kind}, {at_once} at once"
                holds = s[name] <= most * s["floor"] if name == "ours" else None
                rows.append(Row("P4", told, s[name], "pass-through", s["floor"], "s", goal if name == "ours" else "reported", holds))
    return rows


def _bulk(targets: Mapping[str, Target]) -> list[Row]:
    speed: dict[str, list[float]] = {"floor": [], "ours": []}
    for _ in range(3):
        for name, figures in speed.items():
            [answer] = targets[name].play("bulk-20", 1, 1)
            figures.append(answer.size / answer.whole_s / (1 << 20) if answer.good else 0.0)
    mine, floor_speed = statistics.median(speed["ours"]), statistics.median(speed["floor"])
    return [Row("P4", "a 20 MB stream", mine, "pass-through", floor_speed, "MB/s", ">= 0.5 x", mine >= 0.5 * floor_speed)]


def _memory(targets: Mapping[str, Target]) -> list[Row]:
    """Growth of the highest resident size from a stream of 20 MB to one ten times as long."""
    rows = []
    for name, what in (("ours", "peak memory, 10 x the stream"), ("limited", "  all kept and limited")):
        target = targets[name]
        target.play("bulk-20", 1, 1)
        before = resident_mb(target.pid, "VmHWM:")
        target.play("bulk-200", 1, 1)
        grown = resident_mb(target.pid, "VmHWM:") - before
        rows.append(Row("P4", what, grown, "allowed", 4.0, "MB grown", "<= 4", grown <= 4))
    return rows


if __name__ == "__main__":
    if len(sys.argv) > 1:
        given = socket.socket(fileno=int(sys.argv[2]))
        given.setblocking(False)
        match sys.argv[1]:
            case "direct":
                asyncio.run(provide(given))
            case "floor":
                asyncio.run(floor(given, sys.argv[3]))
            case role:
                asyncio.run(ours(given, sys.argv[3], Path(sys.argv[4]), role))
    print(table(run()))

"""A scripted model provider on loopback: four dialects, streamed or not, with faults on request.

    async with Provider({"steps": [{"text": "hello"}]}) as provider:
        ...                                   # call provider.url
        provider.totals()                     # what it says was used, per dialect and model

In a test without a loop of its own, `with running(script) as provider`. As a program:
`python -m amem.testing.provider --port 0 --port-file F --log F --script F`.

Owns the sockets and the log; what is answered is decided in `script`, how it looks in `shapes`. It answers 400 with the
reason when the script does not fit the request: a test fails there, not three steps later.
"""

import argparse
import asyncio
import itertools
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from amem.errors import ConfigError
from amem.model.call import Usage
from amem.testing import requests, script, shapes, sides
from amem.testing.exchanges import Exchange, totals
from amem.testing.requests import Request, Side
from amem.testing.script import Choice, Fault, Script, ScriptError, Step
from amem.typed import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from aiohttp import web

    from amem.testing.encodings import Encoder

GARBAGE = b'\x00\xff\xfe{"half": [\n\ndata data: event:\r\r\n\n<html>'
STALL_GATE = "stall"
SCRIPTED = "scripted by the provider"
ScriptLike = Script | Mapping[str, Any]
NOTHING_TOLD = Script()
"""Every answer is a short text."""


class Provider:
    """The provider in this event loop. Not a secret keeper: its log holds every header it was sent."""

    def __init__(self, told: ScriptLike = NOTHING_TOLD, *, port: int = 0, log: Path | None = None) -> None:
        """Prepare; `port` 0 lets the kernel choose. Raises ConfigError when the script is wrong."""
        self.log: list[Exchange] = []
        self.port = port
        self._log_path = log
        self._runner: web.AppRunner | None = None
        self._gates: dict[str, asyncio.Event] = {}
        self._changed = asyncio.Condition()
        self.load(told)

    @property
    def url(self) -> str:
        """The base URL, without a path: `http://127.0.0.1:40123`."""
        return f"http://127.0.0.1:{self.port}"

    def load(self, told: ScriptLike) -> None:
        """Take another script and start it from its first step; the log stays."""
        self.script = told if isinstance(told, Script) else script.parse(told)
        self._served = 0
        self._failures = [0] * len(self.script.errors)

    def totals(self) -> dict[tuple[str, str], Usage]:
        """What the whole answers so far say was used, per dialect and model."""
        return totals(self.log)

    def release(self, gate: str) -> None:
        """Let everything through that waits at a gate, now and later."""
        self._gate(gate).set()

    async def until(self, holds: Callable[["Provider"], bool], *, timeout_s: float = 30.0) -> None:
        """Wait until a sentence about this provider is true; it is asked again after each change. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: holds(self))

    async def __aenter__(self) -> Self:
        from aiohttp import web

        app = web.Application(client_max_size=256 << 20)
        app.router.add_route("*", "/{tail:.*}", self._serve)
        # Without cancellation a stalled answer would never learn that its client has gone.
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    # ---- one request -------------------------------------------------------------------

    async def _serve(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        body = await request.read()
        if request.path.startswith("/__ctl/"):
            return web.json_response(self._control(request.path.removeprefix("/__ctl/"), body))
        headers: dict[str, str] = {}
        for name, value in request.headers.items():
            headers[name.lower()] = f"{headers[name.lower()]}, {value}" if name.lower() in headers else value
        exchange = Exchange(
            n=len(self.log) + 1, at_s=round(time.time(), 3), method=request.method, path=request.path, query=request.query_string,
            headers=headers, body=body, kind=requests.kind(request.method, request.path).value,
        )  # fmt: skip
        self.log.append(exchange)
        await self._notify()
        try:
            return await self._answer(request, exchange)
        except (ConnectionError, asyncio.CancelledError):
            if exchange.outcome in ("open", "held"):
                exchange.outcome = "gone"
            raise
        finally:
            if self._log_path is not None:
                with self._log_path.open("a") as file:
                    file.write(json.dumps(exchange.line()) + "\n")
            await asyncio.shield(self._notify())

    def _control(self, act: str, body: bytes) -> dict[str, Any]:
        """`POST /__ctl/script`, `POST /__ctl/release {"gate"}`, `GET /__ctl/stats`: for a provider that runs as a program."""
        if act == "script":
            self.load(json.loads(body))
        elif act == "release":
            self.release(json.loads(body)["gate"])
        sums = [{"dialect": dialect, "model": model, **used._asdict()} for (dialect, model), used in self.totals().items()]
        return {"requests": len(self.log), "calls": self._served, "totals": sums}

    async def _answer(self, request: "web.Request", exchange: Exchange) -> "web.StreamResponse":
        failure = self._failure(exchange)
        if failure is not None:
            body = failure.body if failure.body is not None else shapes.error(exchange.kind, failure.status, failure.message)
            return await self._send_whole(request, exchange, failure.status, body, dict(failure.headers))
        kind = requests.kind(request.method, request.path)
        if isinstance(kind, Side):
            status, body = sides.answer(kind, exchange, self.script, request.path)
            return await self._send_whole(request, exchange, status, body)
        try:
            call = requests.read(kind, request.path, dict(request.query), exchange.body.decode())
            exchange.model = call.model
            choice = script.choose(self.script, call, self._served)
        except (ValueError, KeyError, TypeError, AttributeError, ScriptError) as exc:
            return await self._send_whole(request, exchange, 400, shapes.error(kind, 400, f"scripted provider: {exc}"))
        self._served += 1
        exchange.step = choice.index
        return await self._play(request, exchange, call, choice)

    def _failure(self, exchange: Exchange) -> script.Failure | None:
        key = self.script.key
        if key is not None and key not in sides.credentials(exchange):
            return script.Failure(status=401, message="invalid credential")
        for index, failure in enumerate(self.script.errors):
            if re.search(failure.path, exchange.path):
                self._failures[index] += 1
                past = self._failures[index] - failure.skip
                if past > 0 and (failure.times is None or past <= failure.times):
                    return failure
        return None

    async def _play(self, request: "web.Request", exchange: Exchange, call: Request, choice: Choice) -> "web.StreamResponse":
        step = choice.step or Step()
        if step.delay_s:
            await asyncio.sleep(step.delay_s)
        if step.wait is not None:
            await self._hold(exchange, step.wait)
        exchange.usage = shapes.spoken(call.dialect, choice.usage)
        body = shapes.WHOLE[call.dialect](choice.answer, choice.usage, call.model, int(time.time()))
        if call.stream:
            return await self._send_stream(request, exchange, call, shapes.STREAM[call.dialect](body, choice.answer.chunk), step.fault)
        if step.fault is not None and step.fault.kind == "error":
            return await self._send_whole(request, exchange, 503, shapes.error(exchange.kind, 503, SCRIPTED))
        whole = {"response": body, "traceId": exchange.n} if call.envelope else body
        return await self._send_whole(request, exchange, 200, whole, fault=step.fault)

    async def _hold(self, exchange: Exchange, gate: str) -> None:
        exchange.outcome = "held"
        await self._notify()
        await self._gate(gate).wait()
        exchange.outcome = "open"

    def _gate(self, name: str) -> asyncio.Event:
        return self._gates.setdefault(name, asyncio.Event())

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    # ---- onto the wire -----------------------------------------------------------------

    def _encoder(self, exchange: Exchange) -> "Encoder":
        from amem.testing.encodings import encoder

        return encoder(self.script.encoding, exchange.headers.get("accept-encoding", ""))

    async def _send_whole(
        self,
        request: "web.Request",
        exchange: Exchange,
        status: int,
        body: Any,
        headers: Mapping[str, str] | None = None,
        fault: Fault | None = None,
    ) -> "web.StreamResponse":
        from aiohttp import web

        encoder = self._encoder(exchange)
        exchange.status = status
        data = encoder.whole(shapes.compact(body).encode())
        response = web.StreamResponse(status=status, headers={"content-type": "application/json", **encoder.headers, **(headers or {})})
        response.content_length = len(data)
        await response.prepare(request)
        if fault is not None:
            # The length was promised: a body that ends early is a cut, one of other bytes is garbage.
            await response.write(data[: len(data) // 2] if fault.kind in ("cut", "stall") else (GARBAGE * len(data))[: len(data)])
            return await self._fail(request, exchange, response, fault)
        return await self._finish(exchange, response, data, "sent" if status < 400 else "failed")

    async def _send_stream(
        self, request: "web.Request", exchange: Exchange, call: Request, events: Iterator[shapes.Event], fault: Fault | None
    ) -> "web.StreamResponse":
        from aiohttp import web

        encoder = self._encoder(exchange)
        exchange.status = 200
        media = "application/json" if call.array else "text/event-stream; charset=utf-8"
        headers = {"content-type": media, "cache-control": "no-cache", "request-id": f"req_scripted_{exchange.n}", **encoder.headers}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for data in itertools.islice(_framed(call, events, exchange.n), fault.after if fault is not None else None):
            await response.write(encoder.part(data))
        if fault is None:
            return await self._finish(exchange, response, encoder.end(), "sent")
        if fault.kind in ("garbage", "error"):
            wrong = GARBAGE if fault.kind == "garbage" else shapes.error_event(call.dialect, SCRIPTED).encode()
            await response.write(encoder.part(wrong))
        return await self._fail(request, exchange, response, fault)

    async def _finish(self, exchange: Exchange, response: "web.StreamResponse", data: bytes, outcome: str) -> "web.StreamResponse":
        # Set before the bytes leave: a client that holds the last of them may ask for the totals at once.
        exchange.outcome = outcome
        try:
            await response.write(data)
        except (ConnectionError, asyncio.CancelledError):
            exchange.outcome = "gone"
            raise
        await response.write_eof()
        return response

    async def _fail(self, request: "web.Request", exchange: Exchange, response: "web.StreamResponse", fault: Fault) -> "web.StreamResponse":
        if fault.kind == "stall":
            await self._hold(exchange, STALL_GATE)
        if fault.kind in ("cut", "stall"):
            exchange.outcome = "cut"
            if request.transport is not None:
                request.transport.close()
        else:
            await response.write_eof()
            exchange.outcome = fault.kind
        return response


def _framed(call: Request, events: Iterator[shapes.Event], n: int) -> Iterator[bytes]:
    """The bytes of each event, in the envelope and the framing that the call asked for."""
    opened = False
    for event in events:
        data = event.data
        if isinstance(data, dict) and data.get("choices") == [] and not call.usage_chunk:
            continue
        if call.envelope:
            data = {"response": data, "traceId": n}
        if call.array:
            yield (("," if opened else "[") + shapes.compact(data) + "\n").encode()
            opened = True
        else:
            yield event._replace(data=data).encode()
    if call.array:
        yield b"]" if opened else b"[]"


# ---- without a loop of one's own -------------------------------------------------------


class Running:
    """A provider in a thread of its own, for callers without an event loop."""

    def __init__(self, provider: Provider, loop: asyncio.AbstractEventLoop) -> None:
        """Made by `running`."""
        self._provider, self._loop = provider, loop
        self.url, self.port, self.log = provider.url, provider.port, provider.log

    def totals(self) -> dict[tuple[str, str], Usage]:
        """As `Provider.totals`."""
        return self._provider.totals()

    def load(self, told: ScriptLike) -> None:
        """As `Provider.load`."""
        value = told if isinstance(told, Script) else script.parse(told)
        self._on_loop(lambda: self._provider.load(value))

    def release(self, gate: str) -> None:
        """As `Provider.release`."""
        self._on_loop(lambda: self._provider.release(gate))

    def until(self, holds: Callable[[Provider], bool], *, timeout_s: float = 30.0) -> None:
        """As `Provider.until`."""
        asyncio.run_coroutine_threadsafe(self._provider.until(holds, timeout_s=timeout_s), self._loop).result()

    def _on_loop(self, act: Callable[[], None]) -> None:
        async def run() -> None:
            act()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result()


@contextmanager
def running(told: ScriptLike = NOTHING_TOLD, *, port: int = 0, log: Path | None = None) -> Iterator[Running]:
    """Run a provider in a background thread while the block lasts. Raises ConfigError, or OSError when the port is taken."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="scripted-provider", daemon=True)
    thread.start()
    try:
        provider = asyncio.run_coroutine_threadsafe(_made(told, port, log), loop).result()
        try:
            yield Running(provider, loop)
        finally:
            asyncio.run_coroutine_threadsafe(provider.__aexit__(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _made(told: ScriptLike, port: int, log: Path | None) -> Provider:
    return await Provider(told, port=port, log=log).__aenter__()


# ---- as a program ----------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. The port is printed, and told through --port-file or --ready-fd, once it listens."""
    parser = argparse.ArgumentParser(prog="python -m amem.testing.provider", description="A scripted model provider on loopback.")
    parser.add_argument("--port", type=int, default=0, help="0 lets the kernel choose (the default)")
    parser.add_argument("--port-file", type=Path, help="write the port here once it listens")
    parser.add_argument("--ready-fd", type=int, help="write the port to this descriptor once it listens, and close it")
    parser.add_argument("--log", type=Path, help="append one JSON line for each exchange")
    parser.add_argument("--script", help="a JSON file, or `demo` for the script of make demo; without it every answer is a short text")
    options = parser.parse_args(argv)
    try:
        told = _told(options.script)
    except (OSError, ValueError, ConfigError) as exc:
        parser.error(f"{options.script}: {exc}")
    asyncio.run(_run(told, options))
    return 0


def _told(name: str | None) -> Script:
    if name is None:
        return Script()
    if name == "demo":
        from amem.testing.demo import SCRIPT

        return script.parse(SCRIPT)
    return script.parse(json.loads(Path(name).read_text()))


async def _run(told: Script, options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Provider(told, port=options.port, log=options.log) as provider:
        if options.port_file is not None:
            half = options.port_file.with_name(options.port_file.name + ".part")
            half.write_text(f"{provider.port}\n")
            half.replace(options.port_file)
        if options.ready_fd is not None:
            os.write(options.ready_fd, f"{provider.port}\n".encode())
            os.close(options.ready_fd)
        print(provider.port, flush=True)
        await stop.wait()


if __name__ == "__main__":
    raise SystemExit(main())

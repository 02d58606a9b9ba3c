"""Serve an application on a listener that was made elsewhere (in the sandbox's network namespace).

Owns the accepted connections and their limits: how many at once, how long one may take to say what it wants, how large its
head may be. A slow or silent client costs itself, never another.
"""

import asyncio
import logging
import resource
import socket

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from amem.egress.tunnel import HEAD_BYTES, Tunnels

MAX_CONNECTIONS = 1024
_KEPT_FILES = 384
"""Descriptors that connections leave to logs, stores, the loop and the ports that the owner opened."""
HEAD_TIMEOUT_S = 75.0
"""How long a connection may be open, or stay open after an answer, without a whole request head."""
BACKLOG = 1024
_AT_ONCE = 16
"""How many connections one turn of the loop takes: it counts them in the next, and would have taken all the backlog by then."""
TUNNELS = web.AppKey("tunnels", Tunnels)
"""Where an application whose session has a login keeps its tunnels."""
_CONNECT = b"CONNECT "
_MAX_LINE_BYTES = 8190
_MAX_FIELD_BYTES = 16384
"""Codex sends a header of turn metadata as JSON (2026-11)."""


def _is_ours(record: logging.LogRecord) -> bool:
    """A request that is none is its sender's affair and answered with 400: a session must not fill its owner's terminal with it."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_log = logging.getLogger(__name__)
_log.addFilter(_is_ours)


class Serving:
    """A running listener. `cleanup` ends what is open and settles it."""

    def __init__(self, runner: web.AppRunner, server: asyncio.Server, tunnelled: "set[asyncio.Task[None]]") -> None:
        self._runner = runner
        self._server = server
        self._tunnelled = tunnelled

    async def cleanup(self) -> None:
        """Take no more connections, end open tunnels and calls (each is recorded), then the application."""
        self._server.close()
        for task in self._tunnelled:
            task.cancel()
        await asyncio.gather(*self._tunnelled, return_exceptions=True)
        await self._runner.cleanup()


class _TooMany(asyncio.Protocol):
    """Closes a connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class _Front(asyncio.Protocol):
    """Looks at the first bytes of a connection, then gives it to the tunnels (CONNECT) or to HTTP, which never learns of it."""

    def __init__(self, handlers: web.Server, tunnels: Tunnels, tunnelled: "set[asyncio.Task[None]]", fronts: "set[_Front]") -> None:
        self._handlers = handlers
        self._tunnels = tunnels
        self._tunnelled = tunnelled
        self._fronts = fronts
        self._seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._fronts.add(self)
        self._timer = asyncio.get_running_loop().call_later(HEAD_TIMEOUT_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._fronts.discard(self)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if len(self._seen) < len(_CONNECT) and _CONNECT.startswith(self._seen):
            return
        self._timer.cancel()
        self._fronts.discard(self)
        if self._seen.startswith(_CONNECT):
            self._tunnel()
            return
        inner = self._handlers()
        self._transport.set_protocol(inner)
        inner.connection_made(self._transport)
        inner.data_received(self._seen)

    def _tunnel(self) -> None:
        reader = asyncio.StreamReader(limit=HEAD_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        writer = asyncio.StreamWriter(self._transport, protocol, reader, asyncio.get_running_loop())
        reader.feed_data(self._seen)
        task = asyncio.create_task(self._tunnels.run(reader, writer), name="tunnel")
        self._tunnelled.add(task)
        task.add_done_callback(self._tunnelled.discard)


def _most() -> int:
    """How many connections there may be: each may need a descriptor to the provider too, and many systems give a process 1024."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, max(1, (files - _KEPT_FILES) // 2))


async def serve(app: web.Application, listener: socket.socket) -> Serving:
    """Serve `app` on a bound socket until `cleanup`. Raises OSError."""
    runner = web.AppRunner(
        app, access_log=None, handler_cancellation=True, auto_decompress=False, keepalive_timeout=HEAD_TIMEOUT_S, shutdown_timeout=0.5,
        max_line_size=_MAX_LINE_BYTES, max_field_size=_MAX_FIELD_BYTES, lingering_time=1.0, logger=_log,
    )  # fmt: skip
    await runner.setup()
    handlers = runner.server
    assert handlers is not None
    most = _most()
    tunnels = app.get(TUNNELS)
    tunnelled: set[asyncio.Task[None]] = set()
    fronts: set[_Front] = set()

    def accepted() -> asyncio.Protocol:
        if len(handlers.connections) + len(tunnelled) + len(fronts) >= most:
            return _TooMany()
        return handlers() if tunnels is None else _Front(handlers, tunnels, tunnelled, fronts)

    server = await asyncio.get_running_loop().create_server(accepted, sock=listener, backlog=_AT_ONCE)
    listener.listen(BACKLOG)
    return Serving(runner, server, tunnelled)

"""Serve an application on a listener that was made elsewhere (in the sandbox's network namespace).

Owns the accepted connections and their limits: how many at once, how long one may take to say what it wants, how large its
head may be. A slow or silent client costs itself, never another.
"""

import asyncio
import socket

from aiohttp import web

MAX_CONNECTIONS = 1024
HEAD_TIMEOUT_S = 75.0
"""How long a connection may be open, or stay open after an answer, without a whole request head."""
BACKLOG = 1024
_MAX_LINE_BYTES = 8190
_MAX_FIELD_BYTES = 16384
"""Codex sends a header of turn metadata as JSON (2026-11)."""


class Serving:
    """A running listener. `cleanup` ends what is open and settles it."""

    def __init__(self, runner: web.AppRunner, server: asyncio.Server) -> None:
        self._runner = runner
        self._server = server

    async def cleanup(self) -> None:
        """Take no more connections, end the open calls (each is recorded as partial), then the application."""
        self._server.close()
        await self._runner.cleanup()


class _TooMany(asyncio.Protocol):
    """Closes a connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


async def serve(app: web.Application, listener: socket.socket, *, max_connections: int | None = None) -> Serving:
    """Serve `app` on a bound socket until `cleanup`. Raises OSError."""
    runner = web.AppRunner(
        app, access_log=None, handler_cancellation=True, auto_decompress=False, keepalive_timeout=HEAD_TIMEOUT_S, shutdown_timeout=0.5,
        max_line_size=_MAX_LINE_BYTES, max_field_size=_MAX_FIELD_BYTES, lingering_time=1.0,
    )  # fmt: skip
    await runner.setup()
    handlers = runner.server
    assert handlers is not None

    most = max_connections or MAX_CONNECTIONS

    def accepted() -> asyncio.Protocol:
        return handlers() if len(handlers.connections) < most else _TooMany()

    server = await asyncio.get_running_loop().create_server(accepted, sock=listener, backlog=BACKLOG)
    return Serving(runner, server)

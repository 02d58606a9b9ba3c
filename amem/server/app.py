"""Serve one session's memory over MCP, on a web application that is somebody else's: the egress's port, or a socket.

Owns the bridge between aiohttp and the MCP SDK. The SDK takes most of a second to import, so that happens in a thread:
the loop serves model calls meanwhile, and a request that comes first waits. What a tool does runs in a thread of its own
too, one call at a time for a session, because it syncs files.

The listener a call came in on names the session; nothing in a request does. Where the port is on the host, a bearer does
the same work and is checked before anything else is read.
"""

import asyncio
import contextlib
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web

from amem.errors import UnavailableError
from amem.memory.session import Memory, Session
from amem.server import board, grade_tools, guard, replies, tools
from amem.server.projection import Projection
from amem.settings.credentials import Secret
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

BODY_LIMIT_BYTES = 4 << 20
BODY_TIMEOUT_S = 30.0
_DISCONNECT_POLL_S = 0.5

Message = MutableMapping[str, Any]


class McpApp:
    """The memory server of one session. `start` and `stop` belong to the application's own start and clean-up.

    `token` is the bearer that every request must carry; None where the listener itself names the session. `left_by` is in whose name
    handoffs are left through it. `board`: a harness's own subagents become tasks. A session that is served through two of these has
    one `worker` for both, which is then the caller's to shut down. `grading`: it judges, and sees nothing of the memory. Without a
    `projection` no file of one may be read.
    """

    def __init__(
        self, memory: Memory, session: Session, *, token: Secret | None = None, left_by: str = "agent", board: bool = False,
        worker: ThreadPoolExecutor | None = None, grading: bool = False, projection: Projection | None = None,
    ) -> None:  # fmt: skip
        self.session = session
        self._memory = memory
        self._token = token
        self._left_by = left_by
        self._board = board
        self.table = grade_tools.TOOLS if grading else tools.TOOLS
        self.instructions = grade_tools.INSTRUCTIONS if grading else tools.INSTRUCTIONS
        self._projection = projection
        self._own_worker = worker is None
        self._worker = worker or new_worker()
        self.asked = 0
        """How many tool calls the guard was asked about."""
        self._stopping = asyncio.Event()
        self._listed = asyncio.Event()
        self.calls = 0
        """Memory tools that were called."""
        self._ready: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to import and serve; returns at once."""
        self._ready = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run(self._ready), name="mcp")

    async def stop(self) -> None:
        """End open answers and wait for the call under way."""
        self._stopping.set()
        try:
            if self._running is not None:
                await self._running
        finally:
            if self._own_worker:
                await asyncio.to_thread(self._worker.shutdown)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one POST."""
        if not self.admits(request):
            return _error(401, "a bearer token is needed", {"WWW-Authenticate": "Bearer"})
        if not _same_origin(request):
            return _error(403, "this server does not answer pages of other origins")
        if request.content_length is not None and request.content_length > BODY_LIMIT_BYTES:
            return _error(413, f"a request may have {BODY_LIMIT_BYTES} bytes")
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                body = await _body(request, BODY_LIMIT_BYTES)
        except TimeoutError:
            return _error(408, "the request's body did not come")
        if body is None:
            return _error(413, f"a request may have {BODY_LIMIT_BYTES} bytes")
        assert self._ready is not None, "start() comes before the first request"
        try:
            manager = await asyncio.shield(self._ready)
        except UnavailableError as error:
            return _error(503, error.message)
        if self._stopping.is_set():  # it waited while the server started, and the session ended meanwhile
            return _error(503, "the session is over")
        return await _bridge(manager.handle_request, request, body)

    async def until_listed(self, within_s: float) -> None:
        """Wait until the harness has been told which tools there are, or for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._listed.wait()

    def listed(self) -> None:
        """Take note that the harness was told."""
        self._listed.set()

    async def guard(self, request: web.Request) -> web.StreamResponse:
        """Answer a hook's question: POST /hook/pre-tool?harness=NAME with the raw event."""
        if not self.admits(request) or not _same_origin(request):
            return web.Response(status=403, text="amem: the hook carries no token of this session")
        async with asyncio.timeout(BODY_TIMEOUT_S):
            body = await _body(request, guard.EVENT_LIMIT_BYTES)
        if body is None:
            return web.Response(status=403, text=f"amem: the hook's event is above {guard.EVENT_LIMIT_BYTES} bytes")
        self.asked += 1
        harness = request.query.get("harness") or self.session.harness
        loop = asyncio.get_running_loop()
        verdict = guard.verdict(body, harness)
        if verdict.entries and self._projection is not None:
            verdict = await loop.run_in_executor(self._worker, self._projection.serve, self._memory, self.session, verdict)
        answer = guard.answer(verdict, harness)
        if self._board and verdict.allow and (asked := board.spawn(body, harness)) is not None:
            answer = await loop.run_in_executor(self._worker, board.answer, self._memory, self.session, asked, harness)
        if answer.status == 204:
            return web.Response(status=204)
        return web.Response(status=answer.status, body=answer.body, headers={"Content-Type": answer.content_type})

    def admits(self, request: web.Request) -> bool:
        """Say whether a request carries this session's token, where it needs one."""
        if self._token is None:
            return True
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(given, f"Bearer {self._token.reveal()}".encode())

    async def call(self, name: str, arguments: object) -> replies.Reply:
        """Run one tool in the memory thread."""
        self.calls += 1
        loop = asyncio.get_running_loop()

        def run() -> replies.Reply:
            return tools.call(self._memory, self.session, name, arguments, self._left_by, self.table)

        return await loop.run_in_executor(self._worker, replies.answer, run)

    async def _run(self, ready: "asyncio.Future[StreamableHTTPSessionManager]") -> None:
        # The manager's task group must be left by the task that entered it.
        try:
            build = await asyncio.to_thread(_import)
            manager = build(self, BODY_LIMIT_BYTES)
            async with manager.run():
                ready.set_result(manager)
                await self._stopping.wait()
        finally:
            if not ready.done():  # what went wrong is this task's; a request that waits is told so much
                ready.set_exception(UnavailableError("the memory server did not start", hint="amem doctor"))
                ready.exception()


def new_worker() -> ThreadPoolExecutor:
    """The thread that runs the tools of one session, one call after the other."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="memory")


def add_routes(app: web.Application, mcp: McpApp) -> None:
    """Mount the memory server and the guard, and tie their life to the application's."""

    async def lifespan(_: web.Application) -> Any:
        await mcp.start()
        yield
        await mcp.stop()

    async def refuse_method(request: web.Request) -> web.StreamResponse:
        # Without sessions there is no stream to open and none to delete.
        return _error(405, f"{request.method} is not taken here", {"Allow": "POST"})

    app.cleanup_ctx.append(lifespan)
    app.router.add_post("/mcp", mcp.handle)
    app.router.add_route("*", "/mcp", refuse_method)
    app.router.add_post("/hook/pre-tool", mcp.guard)


def application(memory: Memory, session: Session, **how: Any) -> web.Application:
    """A web application that is the memory server alone; `how` is as `McpApp` takes it."""
    app = web.Application(client_max_size=BODY_LIMIT_BYTES)
    add_routes(app, McpApp(memory, session, **how))
    return app


def _import() -> "Callable[[McpApp, int], StreamableHTTPSessionManager]":
    from amem.server import sdk

    return sdk.manager


def _same_origin(request: web.Request) -> bool:
    """Say whether a request comes from no page, or from one of this very address; the SDK checks that the address is this machine's."""
    origin = request.headers.get("Origin")
    return origin is None or origin == f"http://{request.headers.get('Host')}"


async def _body(request: web.Request, limit: int) -> bytes | None:
    """The request's body, or None when it is longer than `limit`."""
    pieces, size = [], 0
    async for piece in request.content.iter_any():
        size += len(piece)
        if size > limit:
            return None
        pieces.append(piece)
    return b"".join(pieces)


async def _bridge(
    asgi: Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]],
    request: web.Request,
    body: bytes,
) -> web.StreamResponse:
    """Run an ASGI application on an aiohttp request whose body was read."""
    scope: Message = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.raw_path.encode("utf-8", "surrogateescape"),
        "query_string": request.query_string.encode("utf-8", "surrogateescape"),
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.raw_headers if name.lower() != b"origin"],  # checked by now
        "client": None,
        "server": None,
    }
    pending = [{"type": "http.request", "body": body, "more_body": False}]
    start: Message = {}
    response: web.StreamResponse | None = None

    async def receive() -> Message:
        if pending:
            return pending.pop()
        while request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(_DISCONNECT_POLL_S)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal response
        if message["type"] == "http.response.start":
            start.update(message)
            return
        more = message.get("more_body", False)
        if response is None:
            headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"] if name != b"content-length"]
            if not more:  # an answer in one piece: one write
                response = web.Response(status=start["status"], headers=headers, body=message.get("body", b""))
                return
            response = web.StreamResponse(status=start["status"], headers=headers)
            await response.prepare(request)
        if piece := message.get("body", b""):
            await response.write(piece)
        if not more:
            await response.write_eof()

    await asgi(scope, receive, send)
    return response if response is not None else _error(500, "no answer")


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    told = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": message}}
    return web.Response(status=status, body=json.dumps(told).encode(), headers={"Content-Type": "application/json", **(headers or {})})

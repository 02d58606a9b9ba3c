"""A session's egress on loopback in front of the scripted provider, with a door that decides by the label alone."""

import asyncio
import contextlib
import io
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from amem.egress import routes, server
from amem.egress.meter import Meter
from amem.egress.routes import Auth, Route
from amem.egress.server import Access
from amem.model.call import Dialect
from amem.model.label import Label
from amem.policy.decision import Decision, Reason
from amem.policy.engine import PolicyEngine, builtin
from amem.policy.request import Request
from amem.settings import database
from amem.settings.credentials import Credentials, Secret
from amem.settings.grants import DestinationGrant, Grants
from amem.settings.root import Root
from amem.testing.provider import Provider

KEY = "sk-planted-7f3a91-never-shown"
SESSION = "ses-0123456z"

CALLS: dict[Dialect, tuple[str, dict[str, Any]]] = {
    Dialect.ANTHROPIC: ("/v1/messages", {"model": "m-1", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}),
    Dialect.RESPONSES: ("/v1/responses", {"model": "m-1", "input": "hi"}),
    Dialect.CHAT: ("/v1/chat/completions", {"model": "m-1", "messages": [{"role": "user", "content": "hi"}]}),
    Dialect.GEMINI: ("/v1beta/models/m-1:generateContent", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
}


def call(dialect: Dialect, *, stream: bool = False, **more: Any) -> tuple[str, bytes]:
    """A path and body that ask for one short answer."""
    path, body = CALLS[dialect]
    body = {**body, **more}
    if stream and dialect is Dialect.GEMINI:
        path = path.replace(":generateContent", ":streamGenerateContent?alt=sse")
    elif stream:
        body["stream"] = True
        if dialect is Dialect.CHAT:
            body["stream_options"] = {"include_usage": True}
    return path, json.dumps(body).encode()


_SPEND = PolicyEngine(builtin(), {"grants": {}})


@dataclass
class Door:
    """Decides as the built-in policy does for a label and a ceiling, and keeps what it decided."""

    log: list[tuple[Request, bool]] = field(default_factory=list)
    fault: Exception | None = None
    on_decide: Callable[[], None] = lambda: None

    def decide(self, request: Request) -> Decision:
        if self.fault is not None:
            raise self.fault
        if request.action == "spend":
            found = _SPEND.decide(request)
            self.log.append((request, found.allow))
            self.on_decide()
            return found
        asked = request.input
        over = asked["ceiling"] is None or Label(asked["label"]).exceeds(Label(asked["ceiling"]))
        reasons = (Reason("label_over_ceiling", {key: asked[key] for key in ("label", "ceiling", "destination")}),) if over else ()
        self.log.append((request, not over))
        self.on_decide()
        return Decision(
            id="dec-0123456789ab",
            action=request.action,
            allow=not over,
            reasons=reasons,
            policy_version="test",
            input_digest="sha256:0",
            result={},
        )


@dataclass
class Session:
    """What a test has in hand."""

    url: str
    provider: Provider
    door: Door
    meter: Meter
    root: Root
    client: aiohttp.ClientSession
    label: list[Label]
    port: int

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[int, bytes, Mapping[str, str]]:
        """One call, read to its end."""
        async with self.client.post(
            self.url + path, data=io.BytesIO(body), headers={"content-type": "application/json", **(headers or {})}
        ) as answer:
            return answer.status, await answer.read(), {name.lower(): value for name, value in answer.headers.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Every row of the usage store, in order."""
        self.meter.flush()
        return self.kept()

    def kept(self) -> list[dict[str, Any]]:
        """The rows that are in the usage store, when the meter is closed too."""
        connection = database.connect(self.root.usage, durable=False)
        try:
            cursor = connection.execute("select * from calls order by rowid")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        finally:
            connection.close()

    async def row(self, *, timeout_s: float = 20.0) -> dict[str, Any]:
        """The first row, once it is there."""
        async with asyncio.timeout(timeout_s):
            while not (found := await asyncio.to_thread(self.rows)):
                await asyncio.sleep(0)
        return found[0]

    async def raw(self, data: bytes, *, timeout_s: float = 20.0) -> bytes:
        """What comes back on a connection of its own, until the egress closes it or falls silent after an answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            await writer.drain()
            async with asyncio.timeout(timeout_s):
                head = await reader.read(65536)
            return head
        finally:
            writer.close()


@asynccontextmanager
async def provider(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """A server of one's own making on loopback, which closes each connection once it was served: its address."""

    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(quietly, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def routes_to(
    base_url: str | None, *, row: str = "demo", auth: Auth = Auth.KEY, ceiling: Label = Label.INTERNAL, **changes: Any
) -> Mapping[Dialect, Route]:
    """The routes of a session whose destination is `row` at this base."""
    grants = Grants(owner="human:o:n", destinations={row: DestinationGrant(ceiling=ceiling, base_url=base_url)})
    table = routes.table(row, auth, grants, Credentials({}, {}))
    return {dialect: route._replace(**changes) for dialect, route in table.items()}


@asynccontextmanager
async def session(
    tmp_path: Path,
    script: Mapping[str, Any] | None = None,
    *,
    base_url: str | None = None,
    extra: Callable[[web.Application], None] | None = None,
    route: Mapping[str, Any] | None = None,
    **access: Any,
) -> AsyncIterator[Session]:
    """The egress of one session, its provider and a client that sends nothing of its own accord."""
    root = Root(tmp_path)
    root.state.mkdir(exist_ok=True)
    door, label = Door(), [Label.PUBLIC]
    meter = Meter(root)
    async with Provider(script or {}) as provider:
        made = Access(**{
            "session": SESSION, "principal": "agent:command", "domain": "dom-me", "auth": "key",
            "routes": routes_to(base_url or provider.url, **(route or {})), "credential": Secret(KEY), "label": lambda: label[0],
            "decide": door.decide, **access,
        })  # fmt: skip
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        serving = await server.serve(server.application(made, meter, extra=extra), listener)
        client = aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"))
        try:
            yield Session(f"http://127.0.0.1:{port}", provider, door, meter, root, client, label, port)
        finally:
            await client.close()
            await serving.cleanup()
            meter.close()

"""amem's own model calls: the one client for them, and it goes through an egress like any harness.

So each call is decided and logged before it leaves, held to ceilings and spend limits, shaped, metered and kept as a context. The
egress of these calls listens on loopback with a token that only this client has. A client has one role, which stands on each row.
"""

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode

import aiohttp

from amem.egress import routes, server
from amem.egress.access import Access, granted
from amem.egress.access import Role as Role
from amem.egress.admit import Lane as Lane
from amem.egress.breaker import FAILURES, Breaker
from amem.egress.meter import Meter
from amem.egress.way import Way as Way
from amem.egress.way import way as way
from amem.errors import RefusedError, UpstreamError
from amem.logs.writer import Writer
from amem.model import ids
from amem.model.call import Dialect
from amem.model.clock import now
from amem.model.label import Label
from amem.model.principal import SYSTEM
from amem.policy.door import Door
from amem.policy.reasons import visible
from amem.record import policies
from amem.settings.credentials import Credentials, Secret
from amem.settings.grants import Grants
from amem.settings.root import Root

MAX_ANSWER_BYTES = 32 << 20
_MAX_PAGES = 50


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body, decoded. Raises UpstreamError."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise UpstreamError("the answer is not JSON") from error


class _List(NamedTuple):
    """How a dialect lists its models, page by page."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    rows: str
    name: str
    cursor: str
    """The member of an answer that says where the next page begins."""
    after: str
    """The query parameter that takes it."""


_OPENAI = _List("/v1/models", {}, {}, "data", "id", "", "")
_LISTS = {
    Dialect.ANTHROPIC: _List("/v1/models", {"limit": "1000"}, {"anthropic-version": "2023-06-01"}, "data", "id", "last_id", "after_id"),
    Dialect.RESPONSES: _OPENAI,
    Dialect.CHAT: _OPENAI,
    Dialect.GEMINI: _List("/v1beta/models", {"pageSize": "1000"}, {}, "models", "name", "nextPageToken", "pageToken"),
}


class Own:
    """A client of one destination, in one role."""

    def __init__(self, access: Access, client: aiohttp.ClientSession, url: str) -> None:
        self._access = access
        self._client = client
        self._url = url
        self._breaker = Breaker()

    @property
    def session(self) -> str:
        """The session that the calls are on."""
        return self._access.session

    @property
    def _destination(self) -> str:
        return next(iter(self._access.routes.values())).destination

    async def call(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        """One model call, sent once. An error of the upstream is an answer.

        Raises RefusedError when it was not let out, UpstreamError, also without sending it while the destination rests from failures.
        """
        destination, loop = self._destination, asyncio.get_running_loop()
        if (resting := self._breaker.ask(loop.time())) is not None:
            why = f"{destination} failed {FAILURES} times running, and is left alone for {resting.seconds:.0f} s more"
            raise UpstreamError(why, destination=destination)
        try:
            answer = await self._ask("POST", path, body, {"content-type": "application/json", **(headers or {})})
        except UpstreamError:
            self._breaker.told(False, loop.time())
            raise
        except BaseException:
            self._breaker.left()
            raise
        # A 429 is a destination that has enough; another 4xx is this request's own fault.
        self._breaker.told(answer.status < 500 and answer.status != 429, loop.time())
        return answer

    async def models(self) -> tuple[str, ...]:
        """The models that the destination offers, in its order; nothing is spent. Raises RefusedError, UpstreamError."""
        dialect, route = next(iter(self._access.routes.items()))  # the first is the one a destination speaks best
        how, found, after = _LISTS[dialect], dict[str, None](), None
        for _ in range(_MAX_PAGES):
            query = urlencode({**how.query, **({how.after: after} if after else {})})
            answer = await self._ask("GET", f"{how.path}?{query}" if query else how.path, None, how.headers)
            if answer.status != 200:
                raise UpstreamError(f"{route.destination} answered {answer.status}: {_told(answer.body)}", destination=route.destination)
            page = answer.json()
            rows = page.get(how.rows) if isinstance(page, dict) else None
            if not isinstance(rows, list):
                raise UpstreamError(f"{route.destination} answered with no list of models", destination=route.destination)
            names = [row[how.name] for row in rows if isinstance(row, dict) and isinstance(row.get(how.name), str)]
            found |= dict.fromkeys(name.removeprefix("models/") for name in names)
            further = page.get(how.cursor) if how.cursor and page.get("has_more", True) else None
            if not isinstance(further, str) or not further or further == after:
                break
            after = further
        return tuple(found)

    async def _ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        assert self._access.token is not None
        sent = {**headers, "authorization": f"Bearer {self._access.token.reveal()}"}
        destination = self._destination
        try:
            async with self._client.request(method, self._url + path, data=body, headers=sent, allow_redirects=False) as answer:
                data = await answer.content.read(MAX_ANSWER_BYTES + 1)
                while not answer.content.at_eof() and len(data) <= MAX_ANSWER_BYTES:
                    data += await answer.content.read(MAX_ANSWER_BYTES + 1 - len(data))
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamError(f"{destination} broke off its answer: {type(error).__name__}", destination=destination) from error
        if len(data) > MAX_ANSWER_BYTES:
            raise UpstreamError(f"{destination} answered with more than {MAX_ANSWER_BYTES >> 20} MB", destination=destination)
        told = _told(data)
        if answer.status == 403 and told.startswith("amem: "):
            raise RefusedError(told.removeprefix("amem: "), destination=destination)
        return Answer(answer.status, data)


@asynccontextmanager
async def client(access: Access, meter: Meter) -> AsyncIterator[Own]:
    """Serve an egress on loopback for as long as the client is used. `access` has a token."""
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        serving = await server.serve(server.application(access, meter), listener)
        stack.push_async_callback(serving.cleanup)
        # No limit in total: a model may think for long, and the egress ends what is silent.
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), trust_env=False))
        yield Own(access, http, f"http://127.0.0.1:{listener.getsockname()[1]}")


@asynccontextmanager
async def opened(
    root: Root,
    grants: Grants,
    credentials: Credentials,
    way: Way,
    *,
    role: Role,
    domain: str,
    label: Label = Label.PUBLIC,
    lane: Lane = Lane.OWN,
    session: str | None = None,
) -> AsyncIterator[Own]:
    """A client for a command; `label` is that of what it will send.

    It is on a session of its own, or counts towards `session`, whose limits then hold for both. Calls in bulk go in the lane for
    curation. Raises ConfigError, UnavailableError (no key, or a destination that is not granted), IntegrityError.
    """
    table = routes.table(way.destination, way.auth, grants, credentials)
    key = routes.credential(way.destination, way.auth, credentials)
    session = session or ids.draw("session")
    async with AsyncExitStack() as stack:
        root.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        logs = Writer(root.state)
        stack.callback(logs.close)
        door = Door(policies.engine(root, grants), logs.append, now)
        meter = Meter(root)
        stack.callback(meter.close)
        access = Access(
            session=session, principal=SYSTEM, domain=domain, auth=way.auth, routes=table, credential=key, label=lambda: label,
            decide=door.decide, asks=lambda action: door.concerns(action, domain),
            note=logs.append, token=Secret(secrets.token_urlsafe(32)), role=role, lane=lane,
            **granted(root, grants, destination=way.destination, auth=way.auth, domain=domain, session=session),
        )  # fmt: skip
        yield await stack.enter_async_context(client(access, meter))


def _told(body: bytes) -> str:
    """The message of an error answer in any dialect, short and inert."""
    try:
        found = json.loads(body)
    except ValueError:
        return visible(body[:200].decode("utf-8", "replace"))
    error = found.get("error") if isinstance(found, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return visible(message[:1000]) if isinstance(message, str) else visible(body[:200].decode("utf-8", "replace"))

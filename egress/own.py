"""amem's own model calls: the one client for them, and it goes through an egress like any harness.

So each call is decided and logged before it leaves, held to ceilings and spend limits, shaped, metered and kept as a context. The
egress of these calls listens on loopback with a token that only this client has. A client has one role, which stands on each row,
and one label: that of whatever its prompts hold.
"""

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from urllib.parse import urlencode

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Handler

from amem.egress import answers, prompt, routes, server
from amem.egress.access import Access, granted
from amem.egress.admit import Lane as Lane
from amem.egress.answers import AGAIN, OURS, Answer, CallError, Spoken, Why
from amem.egress.breaker import FAILURES, Breaker
from amem.egress.destinations import DESTINATIONS
from amem.egress.meter import CallRow, Meter
from amem.egress.prompt import By, Prompt, Turn
from amem.egress.way import NONE as NONE
from amem.egress.way import Way as Way
from amem.egress.way import way as way
from amem.errors import RefusedError, UpstreamError
from amem.logs.writer import Writer
from amem.model import ids
from amem.model.call import Dialect, Usage
from amem.model.call import Role as Role
from amem.model.clock import now
from amem.model.label import Label
from amem.model.principal import SYSTEM
from amem.policy.door import Door
from amem.policy.live import Live
from amem.record import policies
from amem.settings.credentials import Credentials, Secret
from amem.settings.grants import Grants
from amem.settings.root import Root
from amem.typed import NamedTuple

MAX_ANSWER_BYTES = 32 << 20
TRIES = 3
WITHIN_S = 600.0
"""For an answer, all tries and waits together."""
FIRST_WAIT_S = 1.0
"""Before the second try, where nobody said how long; doubled before each further one."""
_MAX_PAGES = 50
_ASKED = "amem-asked"
"""A header of this client's connection to its own egress; it goes no further."""
_row: ContextVar[asyncio.Future[CallRow | None] | None] = ContextVar("row", default=None)


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
    Dialect.ANTHROPIC: _List("/v1/models", {"limit": "1000"}, prompt.VERSION, "data", "id", "last_id", "after_id"),
    Dialect.RESPONSES: _OPENAI,
    Dialect.CHAT: _OPENAI,
    Dialect.GEMINI: _List("/v1beta/models", {"pageSize": "1000"}, {}, "models", "name", "nextPageToken", "pageToken"),
}


class Own:
    """A client of one destination, in one role."""

    def __init__(
        self,
        access: Access,
        client: aiohttp.ClientSession,
        url: str,
        rows: dict[str, asyncio.Future[CallRow | None]],
    ) -> None:
        self._access = access
        self._client = client
        self._url = url
        self._rows = rows
        self._pause: Callable[[float], Awaitable[object]] = asyncio.sleep
        self._asked = 0
        self._breaker = Breaker()

    @property
    def session(self) -> str:
        """The session that the calls are on."""
        return self._access.session

    @property
    def destination(self) -> str:
        """Where the calls go."""
        return next(iter(self._access.routes.values())).destination

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """What the destination speaks, what a prompt is put in first at the front."""
        spoken = tuple(self._access.routes)
        # A gateway translates, and chat completions are what every one of its models is translated from.
        return tuple(sorted(spoken, key=Dialect.CHAT.__ne__)) if DESTINATIONS[self.destination].gateway else spoken

    async def ask(
        self,
        turns: str | Sequence[Turn],
        *,
        model: str,
        max_tokens: int,
        system: str | None = None,
        dialect: Dialect | None = None,
        tries: int = TRIES,
        within_s: float = WITHIN_S,
    ) -> Spoken:
        """Put a prompt to a model and wait for what it says; a text is one turn of the user's.

        What may be better the next time (`AGAIN`) is tried again, `tries` times in all: after as long as the provider says, if that is
        still within `within_s`. Each try is a call of its own, decided, reserved and metered. Raises RefusedError when it is not let out,
        and CallError when there is no answer to use.
        """
        asked = Prompt(model, [Turn(By.USER, turns)] if isinstance(turns, str) else turns, max_tokens, system)
        spoken = dialect or self.dialects[0]
        loop = asyncio.get_running_loop()
        until, wait_s = loop.time() + within_s, FIRST_WAIT_S
        try:
            async with asyncio.timeout_at(until):
                for last in [False] * (tries - 1) + [True]:
                    try:
                        return await self._spoken(spoken, asked)
                    except CallError as error:
                        pause_s = wait_s if error.retry_after_s is None else error.retry_after_s
                        if last or error.why not in AGAIN or loop.time() + pause_s >= until:
                            raise
                    await self._pause(pause_s)
                    wait_s *= 2
        except TimeoutError:
            pass
        why = f"{self.destination} gave no answer within {within_s:.0f} s"
        raise CallError(Why.LATE, why, destination=self.destination)

    async def _spoken(self, dialect: Dialect, asked: Prompt) -> Spoken:
        form = prompt.FORMS[dialect]
        began_s = asyncio.get_running_loop().time()
        answer = await self.call(form.path(asked.model), json.dumps(form.body(asked)).encode(), form.headers)
        row = answer.row
        if row is None or not 200 <= answer.status < 300:
            raise answers.failed(answer, self.destination)
        try:
            said = prompt.read(dialect, answer.json())
        except UpstreamError:
            said = None
        if said is None:
            why = f"{self.destination} answered with what is no answer of its dialect: {answers.message(answer.body)}"
            raise CallError(Why.UNREADABLE, why, destination=self.destination, status=answer.status, call=row.id)
        usage = None
        if row.input is not None and row.output is not None:
            usage = Usage(row.input, row.output, row.cache_read or 0, row.cache_write or 0, row.reasoning)
        ms = round((asyncio.get_running_loop().time() - began_s) * 1000)
        return Spoken(said.text, said.stop, row.id, asked.model, row.reported_model, usage, ms)

    async def call(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        """One model call as it is, sent once. An error of the upstream is an answer.

        Raises RefusedError when it was not let out, CallError when the answer broke off, also without sending anything while the
        destination rests from failures.
        """
        destination, loop = self.destination, asyncio.get_running_loop()
        if (resting := self._breaker.ask(loop.time())) is not None:
            why = f"{destination} failed {FAILURES} times running, and is left alone for {resting.seconds:.0f} s more"
            raise CallError(Why.RESTING, why, destination=destination, retry_after_s=resting.seconds)
        try:
            answer = await self._ask("POST", path, body, {"content-type": "application/json", **(headers or {})})
        except UpstreamError:
            self._breaker.told(False, loop.time())
            raise
        except BaseException:
            self._breaker.left()
            raise
        if answer.row is None or answer.row.refused is not None:
            self._breaker.left()
        else:
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
                raise answers.failed(answer, route.destination)
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
        self._asked += 1
        mine, destination = str(self._asked), self.destination
        marks = {"authorization": f"Bearer {self._access.token.reveal()}", _ASKED: mine, "connection": f"keep-alive, {_ASKED}"}
        fault: Exception | None = None
        status, data, told = 0, b"", dict[str, str]()
        try:
            async with self._client.request(
                method, self._url + path, data=body, headers={**headers, **marks}, allow_redirects=False
            ) as answer:
                status, told = answer.status, {name.lower(): value for name, value in answer.headers.items()}
                data = await answer.content.read(MAX_ANSWER_BYTES + 1)
                while not answer.content.at_eof() and len(data) <= MAX_ANSWER_BYTES:
                    data += await answer.content.read(MAX_ANSWER_BYTES + 1 - len(data))
        except (aiohttp.ClientError, OSError) as error:
            fault = error
        finally:
            kept = self._rows.pop(mine, None)
        # The egress has its row soon after the last byte is out, or the connection is closed.
        row = await kept if kept is not None else None
        call = row.id if row is not None else None
        if fault is not None:
            why = answers.REASONS.get(row.unmetered_reason or "", Why.CUT) if row is not None else Why.CUT
            message = f"{destination} broke off its answer: {type(fault).__name__}"
            raise CallError(why, message, destination=destination, call=call) from fault
        if len(data) > MAX_ANSWER_BYTES:
            message = f"{destination} answered with more than {MAX_ANSWER_BYTES >> 20} MB"
            raise CallError(Why.UNREADABLE, message, destination=destination, status=status, call=call)
        refused = row.refused if row is not None else None
        message = answers.message(data)
        if status == 403 and message.startswith(OURS) and (refused is not None or row is None):
            facts = {"reason": refused, "call": call} if refused is not None else {}
            raise RefusedError(message.removeprefix(OURS), destination=destination, **facts)
        return Answer(status, data, told, row)


class _Telling(Meter):
    """A meter that also tells whoever asked what is kept of a call."""

    def record(self, row: CallRow) -> None:
        super().record(row)
        if (asked := _row.get()) is not None and not asked.done():
            asked.set_result(row)


@asynccontextmanager
async def _served(access: Access, meter: Meter) -> AsyncIterator[Own]:
    """Serve an egress on loopback for as long as the client is used. `access` has a token."""
    rows: dict[str, asyncio.Future[CallRow | None]] = {}

    @web.middleware
    async def told(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = rows[request.headers.get(_ASKED, "")] = asyncio.get_running_loop().create_future()
        _row.set(asked)
        rowless = True
        try:
            answer = await handler(request)
            # A good answer to a call has a row, which may come later: when it was read to its end for what it used.
            rowless = request.method != "POST" or not 200 <= answer.status < 300
            return answer
        finally:
            if rowless and not asked.done():
                asked.set_result(None)

    async with AsyncExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        app = server.application(access, meter)
        app.middlewares.append(told)
        serving = await server.serve(app, listener)
        stack.push_async_callback(serving.cleanup)
        # No limit in total: a model may think for long, and the egress ends what is silent.
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), trust_env=False))
        yield Own(access, http, f"http://127.0.0.1:{listener.getsockname()[1]}", rows)


@asynccontextmanager
async def opened(
    root: Root,
    grants: Grants,
    credentials: Credentials,
    way: Way,
    *,
    role: Role,
    domain: str,
    label: Label,
    lane: Lane = Lane.OWN,
    session: str | None = None,
) -> AsyncIterator[Own]:
    """A client for a command; `label` is that of whatever it will send, and what the ceiling of the destination is held against.

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
        record = policies.Policies(root)
        stack.callback(record.close)
        live = Live(root, grants, record)  # before the policy is read: what changes meanwhile is noticed
        door = Door(policies.engine(root, grants), logs.append, now)
        door.watch(live.look)
        meter = _Telling(root)
        stack.callback(meter.close)
        access = Access(
            session=session, principal=SYSTEM, domain=domain, auth=way.auth, routes=table, credential=key, label=lambda: label,
            decide=door.decide, asks=lambda action: door.concerns(action, domain),
            note=logs.append, token=Secret(secrets.token_urlsafe(32)), role=role, lane=lane,
            **granted(root, grants, destination=way.destination, auth=way.auth, domain=domain, session=session),
        )  # fmt: skip
        yield await stack.enter_async_context(_served(access, meter))

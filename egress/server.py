"""The egress of one session: every model call is read, decided, sent, streamed back and recorded here.

The order is the security argument. A request is brought to one reading; the decision is made, and logged, with the label of
that moment; only then is the credential put on a copy, and the copy leaves. An answer's bytes pass as they come while the
meter reads a decoded copy. Whatever fails before the send means that nothing is sent.

The listener names the session: one application serves one session, and nothing in a request says which.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator

from aiohttp import ClientError, ClientResponse, ConnectionTimeoutError, HttpVersion11, web
from aiohttp.typedefs import Handler

from amem.egress import encodings, flow, replies, routes, scrub, shaping, weight
from amem.egress.access import Access as Access
from amem.egress.access import granted as granted
from amem.egress.attempt import GONE, Attempt
from amem.egress.contexts import Context
from amem.egress.flow import Headers, Kind, Malformed, Target
from amem.egress.gate import Gate, Refusal, Room
from amem.egress.identity import REQUIRE_BROKEN
from amem.egress.lanes import Lanes
from amem.egress.listener import TUNNELS
from amem.egress.listener import Serving as Serving
from amem.egress.listener import serve as serve
from amem.egress.meter import Meter
from amem.egress.replies import Reply
from amem.egress.routes import Route
from amem.egress.tunnel import Tunnels
from amem.egress.upstream import InwardAddressError, Upstream, why_unreached
from amem.egress.usage import UsageReader
from amem.egress.weight import Held, Share
from amem.egress.whose import TOO_MANY, UNSURE, Whose
from amem.model import ids
from amem.model.call import Dialect
from amem.model.clock import stamp

MAX_BODY_BYTES = 64 << 20
BODY_TIMEOUT_S = 30.0
"""For the whole body: it comes over loopback. A body whose chunks go wrong ends here too, as aiohttp waits on (3.14)."""
_OFTEN = ("/v1/messages", "/v1/responses", "/v1/chat/completions")
"""Paths that aiohttp finds at once; for any other it tries the pattern after each of their parts."""
SETTLE_S = 5.0
"""At the end of a session, for answers that are still being read for what they used; what was read by then is a floor."""
_DECODED_BYTES = 1 << 16
"""Of an encoded body, at a time."""
WHOLE_BYTES = 1 << 20
"""An answer up to this length goes out in one write."""

_log = logging.getLogger(__name__)


def application(access: Access, meter: Meter, *, extra: Callable[[web.Application], None] | None = None) -> web.Application:
    """The web application of one session. `extra` mounts what is not a model call (the memory server) before the rest."""
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_to_the_end])
    egress = _Egress(access, meter)
    app.cleanup_ctx.append(egress.life)
    if extra is not None:
        extra(app)
    for path in (*_OFTEN, "/{path:.*}"):
        app.router.add_route("*", path, egress.serve)
    if access.tunnels:
        app[TUNNELS] = Tunnels(access, meter)
    return app


@web.middleware
async def _to_the_end(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A client that goes away ends a model call; a memory write under way is not torn by it."""
    if getattr(request.match_info.handler, "__func__", None) is _Egress.serve:
        return await handler(request)
    return await asyncio.shield(handler(request))


class _Egress:
    def __init__(self, access: Access, meter: Meter) -> None:
        self._access = access
        self._meter = meter
        self._gate = Gate(access, meter)
        self._whose = Whose(access, self._gate)
        self._lanes = Lanes(access.slots)
        self._upstream: Upstream | None = None
        self._held = Held()
        self._settling: set[asyncio.Task[None]] = set()
        self._key = access.credential.reveal().encode() if access.credential is not None else None

    async def life(self, _: web.Application) -> AsyncIterator[None]:
        """The client lives as long as the application."""
        self._upstream = Upstream(self._access.routes.values(), idle_s=self._access.idle_s)
        reservations = self._access.reservations
        renewing = asyncio.create_task(reservations.renew()) if reservations is not None else None
        yield
        await self._whose.close()
        if self._settling:
            await asyncio.wait(self._settling, timeout=SETTLE_S)
            for settling in self._settling:
                settling.cancel()
            await asyncio.gather(*self._settling, return_exceptions=True)
        await self._upstream.close()
        if reservations is not None and renewing is not None:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await reservations.close()
        if self._access.contexts is not None:
            await asyncio.to_thread(self._access.contexts.close)

    # ---- one request -------------------------------------------------------------------

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one request of the harness."""
        where = flow.target(request.method, request.raw_path)
        if request.version < HttpVersion11 and "transfer-encoding" in request.headers:
            where = Malformed("HTTP/1.0 has no transfer-encoding")  # RFC 9112, section 6.1
        if isinstance(where, Malformed):
            _log.warning("session %s: malformed request: %s", self._access.session, where.why)
            return _answer(replies.error(flow.guess(request.path), 400, "malformed", where.why))
        if isinstance(where, flow.Unknown):
            _log.warning("session %s: no such path: %s %.200s", self._access.session, request.method, where.path)
            return _answer(replies.error(where.dialect, 404, "unknown_path", f"{request.method} {where.path} is not served here"))
        if where.kind is Kind.PROBE:
            return web.Response()
        found = routes.resolve(where, self._access.routes, request.headers)
        dialect = found[0] if found is not None else where.dialect or flow.guess(where.path)
        if (stranger := await self._stranger(request, dialect, found[1] if found is not None else None)) is not None:
            return _answer(stranger)
        if found is None:
            _log.warning("session %s: no destination for %s %.200s", self._access.session, request.method, where.path)
            return _answer(replies.error(dialect, 404, "no_destination", f"this session has no destination for {where.path}"))
        share = Share(self._held)
        try:
            body = await self._body(request, dialect, share.holds)
            if isinstance(body, Reply):
                return _answer(body)
            plain = await _decoded(body, request.headers.get("content-encoding", ""))
            if isinstance(plain, Malformed):
                return _answer(replies.error(dialect, 400, "malformed", plain.why))
            if plain is not body and not share.holds(len(plain)):
                return _answer(_full(dialect))
            return await self._call(request, where, dialect, found[1], body, plain)
        except Exception:  # the outer edge: a fault of ours becomes an answer, told once
            _log.exception("session %s: the egress failed on a call", self._access.session)
            return _answer(replies.error(dialect, 500, "internal", "the egress failed; nothing was sent twice"))
        finally:
            share.free()

    async def _call(
        self, request: web.Request, where: Target, dialect: Dialect, route: Route, body: bytes, plain: bytes
    ) -> web.StreamResponse:
        call = flow.call(where, dialect, plain)
        if isinstance(call, Malformed):
            return _answer(replies.error(dialect, 400, "malformed", call.why))
        attempt = Attempt(ids.draw("call"), stamp(self._access.clock()), asyncio.get_running_loop().time(), call, route)
        try:
            busy = await self._lanes.enter(attempt.id, call, route, self._access.lane)
            if busy is not None:
                attempt.refused, attempt.status = "busy", 429
                return _answer(replies.busy(dialect, busy.sentence, busy.retry_after_s))
            room = await self._gate.room(attempt.id, call, route)
            # Nothing is awaited between the decision and the send: the label it was made with is the label of that moment.
            refusal = room if isinstance(room, Refusal) else self._gate.refusal(call, route, asyncio.get_running_loop().time())
            if isinstance(room, Room):
                attempt.reserved = room.tokens
            if refusal is not None:
                attempt.refused = refusal.code
                reply = replies.refusal(dialect, refusal.code, refusal.sentence)
                attempt.status = reply.status
                return _answer(reply)
            shaped = shaping.shape(call, route)
            attempt.call, attempt.shaping = shaped.call, shaped.applied
            data: bytes | None = body
            if shaped.call.body is None:
                data = None
            elif shaped.call.body is not call.body:
                data = shaped.call.body.text.encode()
            headers = self._outgoing(request, route, plain=data is not body)
            self._begin_context(attempt, data)
            # What was read of the body may be many times its size, and nobody looks at it from here on.
            attempt.call = attempt.call.sent()
            del call, shaped
            return await self._forward(request, attempt, headers, data)
        except asyncio.CancelledError:
            # The harness went first: leaving the answer's block closed the connection to the provider.
            attempt.partial = True
            attempt.status = attempt.status or GONE
            raise
        finally:
            self._lanes.leave(attempt.id)
            now_s = asyncio.get_running_loop().time()
            if attempt.heard_s is not None and attempt.call.kind is Kind.CALL:
                self._gate.ended(attempt.call, attempt.route, now_s, whole=attempt.whole, silent_s=now_s - attempt.heard_s)
            if attempt.counted:
                self._settle(attempt, now_s)

    def _settle(self, attempt: Attempt, ended_s: float) -> None:
        """Record a call that is over: at once, unless much of its answer is still to be read, for which the others do not wait."""
        left = attempt.to_read()
        for _ in left:
            settling = asyncio.create_task(self._settled(attempt, ended_s, left), name="settling")
            self._settling.add(settling)
            settling.add_done_callback(self._settling.discard)
            return
        self._record(attempt, ended_s)

    async def _settled(self, attempt: Attempt, ended_s: float, left: Iterator[None]) -> None:
        try:
            for _ in left:
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            attempt.partial = True
            raise
        finally:
            self._record(attempt, ended_s)

    def _record(self, attempt: Attempt, ended_s: float) -> None:
        row = attempt.row(self._access, ended_s)
        if row.alarm == REQUIRE_BROKEN:
            self._gate.broken(attempt.route)
        self._meter.record(row)
        if self._access.reservations is not None:
            self._access.reservations.left(attempt.id)

    # ---- before anything leaves --------------------------------------------------------

    async def _stranger(self, request: web.Request, dialect: Dialect, route: Route | None) -> Reply | None:
        """What a caller hears that is not of this session; None for one that is."""
        if self._access.pinned and flow.several(request.headers.items()):
            return replies.refusal(dialect, "not_this_session", "the call carries more than one credential")
        presented = flow.presented(request.headers, request.query_string)
        if (why := self._gate.stranger(presented)) is None:
            return None
        refused = Refusal("not_this_session", why)
        if self._access.pinned and presented is not None and route is not None and "authorization" in request.headers:
            assert self._upstream is not None
            found = await self._whose.refusal(presented, route, dialect, self._upstream)
            if found is None:
                return None
            refused = found
        if refused.code in (UNSURE, TOO_MANY):  # a harness may well come again
            return replies.error(dialect, 503, refused.code, refused.sentence)
        return replies.refusal(dialect, refused.code, refused.sentence)

    async def _body(self, request: web.Request, dialect: Dialect, holds: Callable[[int], bool]) -> bytes | Reply:
        pieces, size = [], 0
        try:
            # One that came with its head, as most do, needs no limit in time.
            async with contextlib.nullcontext() if request.content.is_eof() else asyncio.timeout(BODY_TIMEOUT_S):
                while piece := await request.content.readany():
                    pieces.append(piece)
                    size += len(piece)
                    if size > MAX_BODY_BYTES:
                        return replies.error(dialect, 413, "too_large", f"a request may have {MAX_BODY_BYTES >> 20} MB")
                    if not holds(len(piece)):
                        return _full(dialect)
        except TimeoutError:
            return replies.error(dialect, 400, "malformed", "the request's body did not come")
        except (web.HTTPException, web.RequestPayloadError):
            return replies.error(dialect, 400, "malformed", "the request's body cannot be read")
        return b"".join(pieces)

    def _outgoing(self, request: web.Request, route: Route, *, plain: bool) -> Headers:
        """The headers that leave, the credential among them; this copy is the only place where the key stands in the clear."""
        login = route.auth is routes.Auth.SUBSCRIPTION
        headers = flow.outgoing(request.headers.items(), own_credentials=login, plain=plain)
        if self._access.credential is not None and not login:
            headers.append((route.header.name, route.header.value(self._access.credential.reveal())))
        return headers

    def _begin_context(self, attempt: Attempt, data: bytes | None) -> None:
        contexts, call = self._access.contexts, attempt.call
        if contexts is None or call.kind is not Kind.CALL or data is None:
            return
        attempt.context = Context(
            call=attempt.id, at=attempt.at, dialect=call.dialect, model=call.model, label=self._access.label(), shaping=attempt.shaping,
            path=f"{call.path}?{call.query}" if call.query else call.path, request=data,
        )  # fmt: skip
        contexts.begin(attempt.context)

    # ---- there and back ----------------------------------------------------------------

    async def _forward(self, request: web.Request, attempt: Attempt, headers: Headers, body: bytes | None) -> web.StreamResponse:
        assert self._upstream is not None
        call, route = attempt.call, attempt.route
        attempt.heard_s = asyncio.get_running_loop().time()
        try:
            answer = await self._upstream.send(request.method, route.url(call.path, call.query), headers, body)
        except ConnectionTimeoutError:
            return _answer(self._failed(attempt, 504, "upstream_failed", f"{route.destination} could not be reached in time"))
        except TimeoutError:
            return _answer(self._failed(attempt, 504, "upstream_silent", f"{route.destination} did not answer in time"))
        except InwardAddressError as error:
            return _answer(self._failed(attempt, 502, "upstream_inward", str(error)))
        except (ClientError, OSError) as error:
            why = f"{route.destination} could not be reached: {why_unreached(error)}"
            return _answer(self._failed(attempt, 502, "upstream_failed", why))
        async with answer:
            attempt.status = answer.status
            if attempt.context is not None:
                attempt.context.content_type = answer.headers.get("content-type", "")
                attempt.context.content_encoding = answer.headers.get("content-encoding", "")
            attempt.request_id = _short(answer.headers.get("request-id") or answer.headers.get("x-request-id"))
            if answer.status < 200 or (300 <= answer.status < 400 and answer.status != 304):
                what = "redirects" if answer.status >= 300 else "switches"
                why = f"{route.destination} {what}, and that is not followed (status {answer.status})"
                return _answer(self._failed(attempt, 502, f"upstream_{what}", why))
            if call.kind is Kind.CALL and answer.status < 300:
                attempt.reader = UsageReader(
                    call.dialect, answer.headers.get("content-type", ""), answer.headers.get("content-encoding", "")
                )
            length = answer.content_length
            if answer.status >= 400 or (length is not None and length <= WHOLE_BYTES):
                return await self._whole(request, attempt, answer)
            return await self._stream(request, attempt, answer)

    def _failed(self, attempt: Attempt, status: int, code: str, why: str) -> Reply:
        attempt.status, attempt.reason = status, code
        return replies.error(attempt.call.dialect, status, code, why)

    async def _whole(self, request: web.Request, attempt: Attempt, answer: ClientResponse) -> web.StreamResponse:
        """Pass an answer in one write: a short one, or an error. It is out before it is read for what it used."""
        name = attempt.route.destination
        try:
            body = await answer.content.read(WHOLE_BYTES + 1) if answer.status >= 400 else await answer.read()
            while answer.status >= 400 and not answer.content.at_eof() and len(body) <= WHOLE_BYTES:
                body += await answer.content.read(WHOLE_BYTES + 1 - len(body))
        except TimeoutError:
            return _answer(self._failed(attempt, 504, "upstream_silent", f"{name} stopped in the middle of its answer"))
        except (ClientError, OSError):
            return _answer(self._failed(attempt, 502, "upstream_cut", f"{name} broke off its answer"))
        attempt.first_s = asyncio.get_running_loop().time()
        headers, out_body = await self._scrubbed(flow.incoming(answer.headers.items()), body)
        out = web.Response(status=answer.status, reason=answer.reason, headers=headers, body=out_body)
        try:
            with contextlib.suppress(ConnectionError):  # the harness went; what it asked for was used all the same
                await out.prepare(request)
                await out.write_eof()
        finally:
            if attempt.context is not None:
                attempt.context.content_encoding = _header(headers, "content-encoding")
            attempt.passed(out_body, body)
        return out

    async def _scrubbed(self, headers: Headers, body: bytes) -> tuple[Headers, bytes]:
        """Without the key, which some upstreams repeat in an error; everything else stays as it came."""
        if self._key is None:
            return headers, body
        plain = await _decoded(body, _header(headers, "content-encoding"))
        if isinstance(plain, bytes) and self._key in plain:
            body = scrub.scrubbed(plain, self._key)
            headers = [(name, value) for name, value in headers if name.lower() != "content-encoding"]
        key = self._key.decode()
        return [(name, value.replace(key, "*" * len(key))) for name, value in headers], body

    async def _stream(self, request: web.Request, attempt: Attempt, answer: ClientResponse) -> web.StreamResponse:
        """Pass an answer as it comes: each piece out before the next is read, so a slow harness holds the provider back."""
        headers, _ = await self._scrubbed(flow.incoming(answer.headers.items()), b"")
        out = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
        if answer.content_length is not None:
            out.content_length = answer.content_length
        scrubber = scrub.Scrubber(self._key) if self._key and not answer.headers.get("content-encoding") else None
        try:
            await out.prepare(request)
            async for piece in answer.content.iter_any():
                if attempt.first_s is None:
                    attempt.first_s = asyncio.get_running_loop().time()
                ended = answer.content.at_eof()
                if scrubber is not None:
                    piece = scrubber.feed(piece) + (scrubber.end() if ended else b"")
                steps = attempt.passed(piece)
                if ended:  # the end goes out with what it came with
                    await out.write_eof(piece)
                    break
                if piece:
                    await out.write(piece)
                attempt.heard_s = asyncio.get_running_loop().time()
                for _ in steps:
                    await asyncio.sleep(0)
            else:
                rest = scrubber.end() if scrubber is not None else b""
                attempt.passed(rest)
                await out.write_eof(rest)
        except (ClientError, OSError) as error:
            # Either side broke off. What is out cannot be taken back; cutting the connection tells the harness that more was to come.
            attempt.partial = True
            attempt.reason = "upstream_silent" if isinstance(error, TimeoutError) else None
            if request.transport is not None:
                request.transport.abort()
            answer.close()
        return out


def _full(dialect: Dialect) -> Reply:
    most = f"{weight.MAX_HELD_BYTES >> 20} MB"
    return replies.busy(dialect, f"requests of {most} are under way, which is the most that one session may hold", weight.AGAIN_S)


async def _decoded(body: bytes, content_encoding: str) -> bytes | Malformed:
    """A body without its encoding, in bounded memory, and others have their turn meanwhile."""
    if not content_encoding:
        return body
    decoder = encodings.decoder(content_encoding)
    if decoder is None:
        return Malformed(f"content-encoding {content_encoding[:40]!r} is not one that can be read here")
    pieces, size = [], 0
    try:
        for start in range(0, len(body), _DECODED_BYTES):
            for piece in decoder.feed(body[start : start + _DECODED_BYTES]):
                size += len(piece)
                if size > MAX_BODY_BYTES:
                    return Malformed("the body expands beyond what a request may have")
                pieces.append(piece)
                await asyncio.sleep(0)
    except encodings.DecodeError:
        return Malformed("the body is not in the encoding it names")
    return b"".join(pieces)


def _header(headers: Headers, wanted: str) -> str:
    return next((value for name, value in headers if name.lower() == wanted), "")


def _short(text: str | None) -> str | None:
    return text[:128] if text and text.isprintable() else None


def _answer(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, body=reply.body, headers=reply.headers)

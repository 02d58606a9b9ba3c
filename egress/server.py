"""The egress of one session: every model call is read, decided, sent, streamed back and recorded here.

The order is the security argument. A request is brought to one reading; the decision is made, and logged, with the label of
that moment; only then is the credential put on a copy, and the copy leaves. An answer's bytes pass as they come while the
meter reads a decoded copy. Whatever fails before the send means that nothing is sent.

The listener names the session: one application serves one session, and nothing in a request says which.
"""

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import ClientError, ClientResponse, ConnectionTimeoutError, HttpVersion11, web
from aiohttp.typedefs import Handler

from amem.egress import encodings, flow, replies, routes, shaping, spend
from amem.egress.flow import Call, Headers, Kind, Malformed, Target
from amem.egress.listener import Serving as Serving
from amem.egress.listener import serve as serve
from amem.egress.meter import CallRow, Meter, response_id_class
from amem.egress.replies import Reply
from amem.egress.reserve import Reservations
from amem.egress.routes import Route
from amem.egress.spend import Over
from amem.egress.upstream import InwardAddressError, Upstream
from amem.egress.usage import Metered, UsageReader
from amem.logs.schema import PolicyDecision
from amem.model import ids
from amem.model.call import Dialect
from amem.model.clock import Clock, now, stamp
from amem.model.label import Label
from amem.policy import request as requests
from amem.policy.decision import Decision
from amem.policy.request import Request
from amem.settings.credentials import Secret
from amem.settings.grants import Spend

MAX_BODY_BYTES = 64 << 20
BODY_TIMEOUT_S = 120.0
IDLE_S = 600.0
"""Reasoning models have been silent for minutes before the first event; a stream has no limit in total."""
WHOLE_BYTES = 1 << 20
"""An answer up to this length goes out in one write."""

_PERHAPS_USED = frozenset(("upstream_silent", "upstream_cut"))

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Access:
    """What one listener, which is one session, may do. Holds the key; its repr does not."""

    session: str
    principal: str
    domain: str
    task: str | None = None
    auth: str
    """`key`, `gateway` or `subscription`; see `routes.Auth`."""
    routes: Mapping[Dialect, Route]
    credential: Secret | None
    """What goes on the outgoing copy; None on a subscription, and where none is needed."""
    label: Callable[[], Label]
    """The session's label at this moment."""
    decide: Callable[[Request], Decision]
    """The policy's door: it logs the decision before it returns it."""
    token: Secret | None = None
    """What a caller must present where the port is on the host; None where the listener itself names the session."""
    pinned: tuple[Secret, ...] = ()
    """On a subscription: the account's credentials that were copied in. Another one is another account, and refused (B14)."""
    stopped: Callable[[], str | None] = lambda: None
    """Why no more calls are let out (the kill switch); None while they are."""
    spend: Mapping[str, Spend] = field(default_factory=dict)
    """Token limits by destination; `reservations` holds them."""
    reservations: Reservations | None = None
    note: Callable[[PolicyDecision], None] | None = None
    """Logs a refusal that is the egress's own (a spend limit); raises when it cannot."""
    clock: Clock = field(default=now, repr=False)
    idle_s: float = IDLE_S


def application(access: Access, meter: Meter, *, extra: Callable[[web.Application], None] | None = None) -> web.Application:
    """The web application of one session. `extra` mounts what is not a model call (the memory server) before the rest."""
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_to_the_end])
    egress = _Egress(access, meter)
    app.cleanup_ctx.append(egress.life)
    if extra is not None:
        extra(app)
    app.router.add_route("*", "/{path:.*}", egress.serve)
    return app


@web.middleware
async def _to_the_end(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A client that goes away ends a model call; a memory write under way is not torn by it."""
    if getattr(request.match_info.handler, "__func__", None) is _Egress.serve:
        return await handler(request)
    return await asyncio.shield(handler(request))


@dataclass(slots=True)
class _Attempt:
    """One call under way, and what its row will say."""

    id: str
    at: str
    began: float
    call: Call
    route: Route
    status: int = 0
    refused: str | None = None
    first_at: float | None = None
    partial: bool = False
    reason: str | None = None
    reader: UsageReader | None = None
    request_id: str | None = None
    shaping: tuple[str, ...] = ()
    reserved: int | None = None


class _Egress:
    def __init__(self, access: Access, meter: Meter) -> None:
        self._access = access
        self._meter = meter
        self._upstream: Upstream | None = None
        self._key = access.credential.reveal().encode() if access.credential is not None else None

    async def life(self, _: web.Application) -> AsyncIterator[None]:
        """The client lives as long as the application."""
        self._upstream = Upstream(self._access.routes.values(), idle_s=self._access.idle_s)
        reservations = self._access.reservations
        renewing = asyncio.create_task(reservations.renew()) if reservations is not None else None
        yield
        await self._upstream.close()
        if reservations is not None and renewing is not None:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await reservations.close()

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
        if (why := self._stranger(request)) is not None:
            return _answer(replies.refusal(dialect, "not_this_session", why))
        if found is None:
            _log.warning("session %s: no destination for %s %.200s", self._access.session, request.method, where.path)
            return _answer(replies.error(dialect, 404, "no_destination", f"this session has no destination for {where.path}"))
        body = await self._body(request, dialect)
        if isinstance(body, Reply):
            return _answer(body)
        try:
            return await self._call(request, where, dialect, found[1], body)
        except Exception:  # the outer edge: a fault of ours becomes an answer, told once
            _log.exception("session %s: the egress failed on a call", self._access.session)
            return _answer(replies.error(dialect, 500, "internal", "the egress failed; nothing was sent twice"))

    async def _call(self, request: web.Request, where: Target, dialect: Dialect, route: Route, body: bytes) -> web.StreamResponse:
        plain = _decoded(body, request.headers.get("content-encoding", ""))
        call = plain if isinstance(plain, Malformed) else flow.call(where, dialect, plain)
        if isinstance(call, Malformed):
            return _answer(replies.error(dialect, 400, "malformed", call.why))
        attempt = _Attempt(ids.draw("call"), stamp(self._access.clock()), asyncio.get_running_loop().time(), call, route)
        try:
            refusal = self._refusal(call, route) or await self._no_room(attempt)
            if refusal is not None:
                attempt.refused, sentence = refusal
                reply = replies.refusal(dialect, attempt.refused, sentence)
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
            return await self._forward(request, attempt, headers, data)
        except asyncio.CancelledError:
            # The harness went first: leaving the answer's block closed the connection to the provider.
            attempt.partial = True
            attempt.status = attempt.status or 499
            raise
        finally:
            self._record(attempt)

    # ---- before anything leaves --------------------------------------------------------

    def _stranger(self, request: web.Request) -> str | None:
        """Why a caller is not this session's harness; None when it is."""
        presented = flow.presented(request.headers, request.query_string)
        if self._access.token is not None and not _same(presented, self._access.token):
            return "the call does not carry this session's token"
        if self._access.pinned and not any(_same(presented, secret) for secret in self._access.pinned):
            return "the call carries another account than the one this session was given"
        return None

    async def _body(self, request: web.Request, dialect: Dialect) -> bytes | Reply:
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                return await request.read()
        except web.HTTPRequestEntityTooLarge:
            return replies.error(dialect, 413, "too_large", f"a request may have {MAX_BODY_BYTES >> 20} MB")
        except TimeoutError:
            return replies.error(dialect, 400, "malformed", "the request's body did not come")
        except web.HTTPException as error:
            return replies.error(dialect, 400, "malformed", f"the request's body cannot be read: {error.reason}")

    def _refusal(self, call: Call, route: Route) -> tuple[str, str] | None:
        """The code and sentence of why this call does not leave; None when it does. The decision is in the log either way."""
        if (why := self._access.stopped()) is not None:
            return "stopped", why
        if self._meter.fault is not None:
            return "usage_unwritable", self._meter.fault
        if call.kind is Kind.CONTROL and route.auth is not routes.Auth.SUBSCRIPTION:
            return "not_on_a_login", f"{call.path} is for a login, and this session has a key"
        access = self._access
        try:
            asked = requests.model_call(
                principal=access.principal, domain=access.domain, session=access.session, task=access.task, label=access.label(),
                destination=route.destination, ceiling=route.ceiling, dialect=call.dialect, model=call.model, billing=route.billing,
            )  # fmt: skip
            decision = access.decide(asked)
        except Exception:  # an outer edge: whatever goes wrong in a decision means no
            _log.exception("session %s: the policy could not decide", access.session)
            return "policy_error", "the policy could not decide, so the answer is no"
        if not decision.allow:
            hint = f" (try: {decision.hint})" if decision.hint else ""
            return decision.code or "denied", decision.sentence() + hint
        return None

    async def _no_room(self, attempt: _Attempt) -> tuple[str, str] | None:
        """Reserve what a call may use; the code and sentence of the limit that has no room for it."""
        access, call, destination = self._access, attempt.call, attempt.route.destination
        limits = access.spend.get(destination)
        if call.kind is not Kind.CALL or limits is None or access.reservations is None:
            return None
        wanted = spend.estimate(call)
        try:
            refused = await access.reservations.take(attempt.id, destination, access.session, wanted, limits)
            if refused is not None and access.note is not None:
                access.note(self._spend_refused(refused))
        except Exception:  # an outer edge: what cannot be counted is not spent
            _log.exception("session %s: a spend limit could not be held", access.session)
            return "usage_unwritable", "the spend limit cannot be held, so the answer is no"
        if refused is not None:
            return refused.code, refused.sentence()
        attempt.reserved = wanted
        return None

    def _spend_refused(self, refused: Over) -> PolicyDecision:
        facts = {
            "code": refused.code,
            "destination": refused.destination,
            "limit": refused.limit,
            "spent": refused.spent,
            "wanted": refused.wanted,
        }
        access = self._access
        digest = "sha256:" + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        return PolicyDecision(
            at=stamp(access.clock()), id=ids.draw("decision"), session=access.session, domain=access.domain, principal=access.principal,
            task=access.task, action="spend", allow=False, reasons=(facts,), policy_version="host", input_digest=digest,
        )  # fmt: skip

    def _outgoing(self, request: web.Request, route: Route, *, plain: bool) -> Headers:
        """The headers that leave, the credential among them; this copy is the only place where the key stands in the clear."""
        login = route.auth is routes.Auth.SUBSCRIPTION
        headers = flow.outgoing(request.headers.items(), own_credentials=login, plain=plain)
        if self._access.credential is not None and not login:
            headers.append((route.header.name, route.header.value(self._access.credential.reveal())))
        return headers

    # ---- there and back ----------------------------------------------------------------

    async def _forward(self, request: web.Request, attempt: _Attempt, headers: Headers, body: bytes | None) -> web.StreamResponse:
        assert self._upstream is not None
        call, route = attempt.call, attempt.route
        try:
            answer = await self._upstream.send(request.method, route.url(call.path, call.query), headers, body)
        except ConnectionTimeoutError:
            return _answer(self._failed(attempt, 504, "upstream_failed", f"{route.destination} could not be reached in time"))
        except TimeoutError:
            return _answer(self._failed(attempt, 504, "upstream_silent", f"{route.destination} did not answer in time"))
        except InwardAddressError as error:
            return _answer(self._failed(attempt, 502, "upstream_inward", str(error)))
        except (ClientError, OSError) as error:
            # The exception's text can hold a URL or header; its class says enough.
            kind = type(error).__name__
            return _answer(self._failed(attempt, 502, "upstream_failed", f"{route.destination} could not be reached: {kind}"))
        async with answer:
            attempt.status = answer.status
            attempt.request_id = _short(answer.headers.get("request-id") or answer.headers.get("x-request-id"))
            if 300 <= answer.status < 400 and answer.status != 304:
                why = f"{route.destination} answered with a redirect, which is not followed"
                return _answer(self._failed(attempt, 502, "upstream_redirects", why))
            if call.kind is Kind.CALL and answer.status < 300:
                attempt.reader = UsageReader(
                    call.dialect, answer.headers.get("content-type", ""), answer.headers.get("content-encoding", "")
                )
            length = answer.content_length
            if answer.status >= 400 or (length is not None and length <= WHOLE_BYTES):
                return await self._whole(attempt, answer)
            return await self._stream(request, attempt, answer)

    def _failed(self, attempt: _Attempt, status: int, code: str, why: str) -> Reply:
        attempt.status, attempt.reason = status, code
        return replies.error(attempt.call.dialect, status, code, why)

    async def _whole(self, attempt: _Attempt, answer: ClientResponse) -> web.StreamResponse:
        """Pass an answer in one write: a short one, or an error."""
        name = attempt.route.destination
        try:
            body = await answer.content.read(WHOLE_BYTES + 1) if answer.status >= 400 else await answer.read()
            while answer.status >= 400 and not answer.content.at_eof() and len(body) <= WHOLE_BYTES:
                body += await answer.content.read(WHOLE_BYTES + 1 - len(body))
        except TimeoutError:
            return _answer(self._failed(attempt, 504, "upstream_silent", f"{name} stopped in the middle of its answer"))
        except (ClientError, OSError):
            return _answer(self._failed(attempt, 502, "upstream_cut", f"{name} broke off its answer"))
        attempt.first_at = asyncio.get_running_loop().time()
        if attempt.reader is not None:
            attempt.reader.feed(body)
        headers, body = self._scrubbed(flow.incoming(answer.headers.items()), body)
        return web.Response(status=answer.status, reason=answer.reason, headers=headers, body=body)

    def _scrubbed(self, headers: Headers, body: bytes) -> tuple[Headers, bytes]:
        """Without the key, which some upstreams repeat in an error; everything else stays as it came."""
        if self._key is None:
            return headers, body
        encoding = next((value for name, value in headers if name.lower() == "content-encoding"), "")
        plain = _decoded(body, encoding)
        if isinstance(plain, bytes) and self._key in plain:
            body = plain.replace(self._key, b"***")
            headers = [(name, value) for name, value in headers if name.lower() != "content-encoding"]
        key = self._key.decode()
        return [(name, value.replace(key, "***")) for name, value in headers], body

    async def _stream(self, request: web.Request, attempt: _Attempt, answer: ClientResponse) -> web.StreamResponse:
        """Pass an answer as it comes: each piece out before the next is read, so a slow harness holds the provider back."""
        headers, _ = self._scrubbed(flow.incoming(answer.headers.items()), b"")
        out = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
        if answer.content_length is not None:
            out.content_length = answer.content_length
        reader = attempt.reader
        try:
            await out.prepare(request)
            async for piece in answer.content.iter_any():
                if attempt.first_at is None:
                    attempt.first_at = asyncio.get_running_loop().time()
                await out.write(piece)
                if reader is not None:
                    reader.feed(piece)
        except (ClientError, OSError) as error:
            # Either side broke off. What is out cannot be taken back; cutting the connection tells the harness that more was to come.
            attempt.partial = True
            attempt.reason = "upstream_silent" if isinstance(error, TimeoutError) else None
            if request.transport is not None:
                request.transport.abort()
            answer.close()
            return out
        await out.write_eof()
        return out

    # ---- afterwards --------------------------------------------------------------------

    def _record(self, attempt: _Attempt) -> None:
        call, route, access = attempt.call, attempt.route, self._access
        if call.kind not in (Kind.CALL, Kind.COUNT):
            return
        told: Metered | None = attempt.reader.result() if attempt.reader is not None else None
        usage = told.usage if told is not None else None
        ended = asyncio.get_running_loop().time()
        charged = usage.total if usage is not None else 0
        if attempt.reserved is not None:
            assert access.reservations is not None
            access.reservations.left(attempt.id)
            # A call that was sent and did not say what it used counts as reserved: by breaking calls off, or by an upstream that
            # tells nothing, no limit is got round.
            if usage is None and (attempt.status < 300 or attempt.partial or attempt.reason in _PERHAPS_USED):
                charged = attempt.reserved
        unmetered = attempt.reason
        if unmetered is None and told is not None and usage is None:
            unmetered = told.unmetered_reason
        self._meter.record(CallRow(
            id=attempt.id, at=attempt.at, session=access.session, domain=access.domain, principal=access.principal, task=access.task,
            kind=call.kind, destination=route.destination, model=call.model, dialect=call.dialect, status=attempt.status,
            billing=route.billing,
            input=usage.input if usage else None, output=usage.output if usage else None,
            cache_read=usage.cache_read if usage else None, cache_write=usage.cache_write if usage else None,
            reasoning=usage.reasoning if usage else None,
            partial=attempt.partial or (told is not None and usage is not None and not told.complete),
            unmetered_reason=unmetered, refused=attempt.refused,
            ms=round((ended - attempt.began) * 1000),
            first_ms=round((attempt.first_at - attempt.began) * 1000) if attempt.first_at is not None else None,
            response_id_class=response_id_class(told.response_id) if told else None,
            reported_model=told.model if told else None, request_id=attempt.request_id, shaping=",".join(attempt.shaping) or None,
            charged=charged,
        ))  # fmt: skip


def _decoded(body: bytes, content_encoding: str) -> bytes | Malformed:
    """A request's body without its encoding, in bounded memory."""
    if not content_encoding:
        return body
    decoder = encodings.decoder(content_encoding)
    if decoder is None:
        return Malformed(f"content-encoding {content_encoding[:40]!r} is not one that can be read here")
    pieces, size = [], 0
    try:
        for piece in decoder.feed(body):
            size += len(piece)
            if size > MAX_BODY_BYTES:
                return Malformed("the body expands beyond what a request may have")
            pieces.append(piece)
    except encodings.DecodeError:
        return Malformed("the body is not in the encoding it names")
    return b"".join(pieces)


def _same(presented: str | None, secret: Secret) -> bool:
    return presented is not None and hmac.compare_digest(presented.encode("utf-8", "surrogateescape"), secret.reveal().encode())


def _short(text: str | None) -> str | None:
    return text[:128] if text and text.isprintable() else None


def _answer(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, body=reply.body, headers=reply.headers)

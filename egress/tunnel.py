"""A login's tunnel: CONNECT to a listed host, pinned to it, without metering.

Owns the tunnelled connections. In order: the request is read strictly; host and port are on the list; the policy decides and
the decision is logged; the client's hello is read whole and names exactly that host, in the open; then the name is resolved,
no address of it is inward, and the very address that was looked at is dialled. While it is open, the label, the kill switch and
the generation of the policy are looked at before each piece that goes out.
"""

import asyncio
import base64
import contextlib
import logging
import re
import socket
from collections.abc import Coroutine
from dataclasses import dataclass

from amem.egress.access import Access
from amem.egress.clienthello import AfterHello, ClientHello, HelloReader, Malformed, NeedMore, refusal
from amem.egress.gate import Gate, Refusal, denied
from amem.egress.meter import CallRow, Meter
from amem.egress.routes import Way
from amem.model import ids
from amem.model.addresses import is_inward
from amem.model.call import Billing
from amem.model.clock import stamp
from amem.typed import Any

HEAD_BYTES = 8192
HELLO_TIMEOUT_S = 15.0
DIAL_TIMEOUT_S = 20.0
PORT = 443
_PIECE_BYTES = 1 << 16
_REQUEST = re.compile(rb"CONNECT ([A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?):([0-9]{1,5}) HTTP/1\.[01]")
_HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_log = logging.getLogger(__name__)


class TunnelError(Exception):
    """A tunnel that is not opened, or not kept open: the status, a code and why."""

    def __init__(self, status: int, code: str, why: str) -> None:
        super().__init__(why)
        self.status, self.code, self.why = status, code, why


async def dial_public(host: str, port: int) -> Streams:
    """Connect to a public address of `host`, the one that was looked at. Raises TunnelError or OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(item[4][0]) for item in found]
    if not addresses or any(is_inward(address) for address in addresses):
        raise TunnelError(502, "upstream_inward", f"{host} leads to an inward address")
    fault: OSError | None = None
    for address in dict.fromkeys(addresses):
        try:
            return await asyncio.open_connection(address, port, limit=_PIECE_BYTES)
        except OSError as error:
            fault = error
    assert fault is not None
    raise fault


@dataclass(slots=True)
class _Open:
    """A tunnel under way."""

    host: str
    way: Way
    generation: int
    up_bytes: int = 0
    down_bytes: int = 0


class Tunnels:
    """The tunnels of one session."""

    def __init__(self, access: Access, meter: Meter) -> None:
        self._access = access
        self._meter = meter
        self._gate = Gate(access, meter)

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection that began with CONNECT, to its end."""
        began, at = asyncio.get_running_loop().time(), stamp(self._access.clock())
        opened: _Open | None = None
        status, refused = 200, None
        try:
            opened = await self._admit(reader)
            await self._serve(opened, reader, writer)
        except TunnelError as error:
            status, refused = error.status, error.code
            level = logging.INFO if error.code == "tunnel_no_hello" and error.status == 400 else logging.WARNING  # Copilot opens spare ones
            _log.log(level, "session %s: tunnel: %s", self._access.session, error.why)
            if opened is None:  # else the client is inside TLS, and only sees the end
                writer.write(_answer(error))
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError) as error:
            status, refused = 502, "upstream_failed"
            _log.info("session %s: tunnel: %s", self._access.session, type(error).__name__)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            if opened is not None:
                self._record(opened, at, status, refused, asyncio.get_running_loop().time() - began)

    # ---- before it opens ---------------------------------------------------------------

    async def _admit(self, reader: asyncio.StreamReader) -> _Open:
        async with asyncio.timeout(HELLO_TIMEOUT_S):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError:
                raise TunnelError(431, "malformed", "the head of a CONNECT is too long") from None
        host, port, token = _request(head)
        if (why := self._gate.outsider(token)) is not None:
            raise TunnelError(403, "not_this_session", why)
        way = self._access.tunnels.get(host)
        if way is None or port != PORT:
            self._note({"code": "tunnel_not_listed", "host": host, "port": port})
            raise TunnelError(403, "tunnel_not_listed", f"{host}:{port} is not a host this session may tunnel to")
        refused = self._gate.tunnel(way)
        if isinstance(refused, Refusal):
            raise TunnelError(403, refused.code, refused.sentence)
        return _Open(host, way, self._access.generation())

    def _note(self, facts: dict[str, object]) -> None:
        if self._access.note is not None:
            self._access.note(denied(self._access, "tunnel", facts))

    async def _serve(self, opened: _Open, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        first, after = await self._hello(opened, reader)
        async with asyncio.timeout(DIAL_TIMEOUT_S):
            far_reader, far_writer = await dial_public(opened.host, PORT)
        try:
            far_writer.write(first)
            opened.up_bytes += len(first)
            await self._relay(opened, after, (reader, writer), (far_reader, far_writer))
        finally:
            far_writer.close()
            with contextlib.suppress(OSError):
                await far_writer.wait_closed()

    async def _hello(self, opened: _Open, reader: asyncio.StreamReader) -> tuple[bytes, AfterHello]:
        """The bytes of the client's whole hello, which names this host and no other, and the watch over what follows."""
        hello, sent = HelloReader(), b""
        async with asyncio.timeout(HELLO_TIMEOUT_S):
            while True:
                piece = await reader.read(_PIECE_BYTES)
                if not piece:
                    raise TunnelError(400, "tunnel_no_hello", "the client left before its hello was whole")
                sent += piece
                match hello.feed(piece):
                    case NeedMore():
                        continue
                    case Malformed(why):
                        self._note({"code": "tunnel_no_hello", "host": opened.host})
                        raise TunnelError(403, "tunnel_no_hello", f"this is no TLS for {opened.host}: {why}")
                    case ClientHello() as whole:
                        if (why_not := refusal(whole, opened.host)) is not None:
                            facts: dict[str, object] = {"code": "tunnel_other_name", "host": opened.host, "hidden": whole.hidden}
                            self._note(facts | ({"named": whole.server_name} if whole.server_name else {}))
                            raise TunnelError(403, "tunnel_other_name", why_not)
                        after = AfterHello(opened.host)
                        return sent[: len(sent) - len(hello.rest)] + self._passed(opened, after, hello.rest), after

    def _passed(self, opened: _Open, after: AfterHello, piece: bytes) -> bytes:
        match after.feed(piece):
            case Malformed(why):
                self._note({"code": "tunnel_other_name", "host": opened.host})
                raise TunnelError(403, "tunnel_other_name", why)
            case passed:
                return passed

    # ---- while it is open --------------------------------------------------------------

    async def _relay(self, opened: _Open, after: AfterHello, near: Streams, far: Streams) -> None:
        """Both directions until one side ends, or nothing moves for the idle limit."""
        idle = asyncio.timeout(self._access.idle_s)

        async def up() -> None:
            while piece := await near[0].read(_PIECE_BYTES):
                self._still(opened)
                piece = self._passed(opened, after, piece)
                opened.up_bytes += len(piece)
                await _write(far[1], piece)
                touch()
            if far[1].can_write_eof():
                far[1].write_eof()

        async def down() -> None:
            while piece := await far[0].read(_PIECE_BYTES):
                opened.down_bytes += len(piece)
                await _write(near[1], piece)
                touch()

        def touch() -> None:
            idle.reschedule(asyncio.get_running_loop().time() + self._access.idle_s)

        with contextlib.suppress(TimeoutError):  # a tunnel that fell silent has ended
            await self._both(idle, up(), down())

    async def _both(self, idle: asyncio.Timeout, up: Coroutine[Any, Any, None], down: Coroutine[Any, Any, None]) -> None:
        """Run both directions. Raises TimeoutError when idle, and what stopped either of them."""
        async with idle:
            upward = asyncio.create_task(up)
            downward = asyncio.create_task(down)
            try:
                # The provider's end ends the tunnel; the client's end is passed on and the rest of the answer awaited.
                done, _ = await asyncio.wait({upward, downward}, return_when=asyncio.FIRST_COMPLETED)
                if upward in done:
                    upward.result()
                    await downward
            finally:
                for task in (upward, downward):
                    task.cancel()
                await asyncio.gather(upward, downward, return_exceptions=True)

    def _still(self, opened: _Open) -> None:
        """Raise TunnelError when what let the tunnel open no longer holds."""
        access = self._access
        if (why := access.stopped()) is not None:
            raise TunnelError(403, "stopped", why)
        if access.generation() != opened.generation:
            self._note({"code": "tunnel_older_policy", "host": opened.host})
            raise TunnelError(403, "tunnel_older_policy", "the policy changed since this tunnel opened")
        label = access.label()
        if label.exceeds(opened.way.ceiling):
            facts: dict[str, object] = {"code": "label_over_ceiling", "label": label, "ceiling": opened.way.ceiling}
            self._note({**facts, "destination": opened.way.destination})
            raise TunnelError(403, "label_over_ceiling", f"the session's label rose to {label} while the tunnel was open")

    # ---- afterwards --------------------------------------------------------------------

    def _record(self, opened: _Open, at: str, status: int, refused: str | None, took_s: float) -> None:
        access = self._access
        self._meter.record(CallRow(
            id=ids.draw("call"), at=at, session=access.session, domain=access.domain, principal=access.principal, task=access.task(),
            kind="tunnel", destination=opened.way.destination, model=opened.host, dialect="tls", status=status, billing=Billing.PLAN,
            refused=refused, unmetered_reason="tunnel", ms=round(took_s * 1000),
        ))  # fmt: skip


def _answer(error: TunnelError) -> bytes:
    body = f"amem: {error.why}\n".encode()
    head = f"HTTP/1.1 {error.status} Refused\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + body


async def _write(writer: asyncio.StreamWriter, piece: bytes) -> None:
    writer.write(piece)
    await writer.drain()


def _password(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("latin-1").partition(":")[2]
    except ValueError:
        raise TunnelError(400, "malformed", "the Proxy-Authorization of a CONNECT cannot be read") from None


def _request(head: bytes) -> tuple[str, int, str | None]:
    """Host in lower case, port, and the bearer of `Proxy-Authorization` (or the password, which is how a proxy's address carries it),
    from the head of a CONNECT. Raises TunnelError."""
    first, *headers = head[:-4].split(b"\r\n")
    match = _REQUEST.fullmatch(first)
    if match is None:
        raise TunnelError(400, "malformed", "not CONNECT host:port HTTP/1.1")
    token = None
    for line in headers:
        if _HEADER.fullmatch(line) is None:
            raise TunnelError(400, "malformed", "a header of the CONNECT cannot be read in one way")
        name, _, value = line.partition(b":")
        if name.lower() in (b"content-length", b"transfer-encoding"):
            raise TunnelError(400, "malformed", "a CONNECT has no body")
        if name.lower() == b"proxy-authorization":
            scheme, _, token = value.strip().decode("latin-1").partition(" ")
            if scheme.lower() == "basic":
                token = _password(token)
    host = match[1].decode().lower()
    port = int(match[2])
    if ".." in host or not 0 < port < 65536:
        raise TunnelError(400, "malformed", "no such host or port")
    return host, port, token

"""The one client that speaks to providers.

Owns the connections out. TLS is verified against the system's authorities, redirects are not followed, a POST is sent once, no
cookie is kept, nothing is decompressed, and no proxy of the environment is used. A name that leads inward is not dialled
unless grants.toml put that base there.
"""

import io
import os
import socket
from collections.abc import Iterable

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientResponse,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    ThreadedResolver,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from amem.egress.flow import Headers
from amem.egress.routes import Route
from amem.model.addresses import is_inward
from amem.typed import Any

CONNECT_TIMEOUT_S = 20.0
KEEPALIVE_S = 15.0
"""Less than what providers keep a connection: a POST on one that they just closed would fail, and is not sent again."""
_LARGE_BYTES = 1 << 20
_NOT_ADDED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class InwardAddressError(OSError):
    """A public name led to an inward address."""


def why_unreached(error: Exception) -> str:
    """Why a destination was not reached, in words of ours: the exception's own text can hold a URL or a header."""
    match error:
        case ClientConnectorDNSError():
            return "its name cannot be resolved from here"
        case ClientConnectorCertificateError():
            return "its certificate is not from an authority that this machine trusts, or is not for this name"
        case ClientSSLError():
            return "it does not speak TLS as is due"
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number)
    return type(error).__name__


class _Resolver(AbstractResolver):
    """Resolves, and gives no inward address for a name that is not let inward."""

    def __init__(self, inward_hosts: frozenset[str]) -> None:
        self._inner = ThreadedResolver()
        self._inward_hosts = inward_hosts

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if host.lower() not in self._inward_hosts and any(is_inward(result["host"]) for result in found):
            raise InwardAddressError(f"{host} leads to an inward address")
        return found

    async def close(self) -> None:
        await self._inner.close()


class _Connector(TCPConnector):
    """Gives out no kept connection on which something came that nobody asked for: it would pass for the next call's answer."""

    async def _get(self, key: Any, traces: Any) -> Any:
        while (found := await super()._get(key, traces)) is not None:
            if found.protocol is not None and not found.protocol.should_close:
                return found
            found.close()
        return None


class Upstream:
    """A client for the routes of one session."""

    def __init__(self, routes: Iterable[Route], *, idle_s: float) -> None:
        """Make the client, inside the loop that will use it. `idle_s` is how long an answer may be silent."""
        inward = frozenset(host for route in routes if route.inward and (host := URL(route.base_url).host))
        self._session = ClientSession(
            connector=_Connector(limit=0, keepalive_timeout=KEEPALIVE_S, resolver=_Resolver(inward)),
            timeout=ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=idle_s),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=_NOT_ADDED,
        )

    async def send(self, method: str, url: str, headers: Headers, body: bytes | None) -> ClientResponse:
        """Send a request once and return its answer, whose body is still to be read.

        Raises InwardAddressError, aiohttp.ClientError or another OSError.
        """
        data: Any = body
        if body is not None and len(body) > _LARGE_BYTES:
            data = io.BytesIO(body)  # written in pieces, so that other streams go on meanwhile
        try:
            return await self._session.request(method, URL(url, encoded=True), headers=headers, data=data, allow_redirects=False)
        except ClientConnectorDNSError as error:
            if isinstance(error.os_error, InwardAddressError):
                raise error.os_error from None
            raise

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

"""Where amem's own model calls go, and on whose credential (SERVER_AUTH, SERVER_PROVIDER). Pure.

By default they go where the harness's go. A login belongs to its harness alone: beside one, amem makes no calls of its own unless
they are given a key or a gateway.
"""

from amem.egress.destinations import DESTINATIONS
from amem.errors import UsageError
from amem.model.call import Auth
from amem.typed import NamedTuple

GATEWAY = "llmao"
NONE = "none"
"""No calls of amem's own."""


class Way(NamedTuple):
    """A destination and the credential for it."""

    destination: str
    auth: Auth


def way(auth: str | None, destination: str | None, *, flags: tuple[str, str] = ("--auth", "--provider"), hint: str = "amem models") -> Way:
    """Settle the way of own calls. Raises UsageError: a login belongs to its harness alone, and a key needs a destination."""
    auth_flag, provider_flag = flags
    gateway_hint = f"{hint} {auth_flag} gateway"
    if destination is not None and destination not in DESTINATIONS:
        raise UsageError(f"{provider_flag} {destination}: expected one of {', '.join(DESTINATIONS)}", hint=gateway_hint)
    if auth is None:
        auth = Auth.GATEWAY if destination in (None, GATEWAY) else Auth.KEY
    if auth == Auth.SUBSCRIPTION:
        raise UsageError("a login belongs to its harness alone; amem's own calls need a key or a gateway", hint=gateway_hint)
    if auth not in (Auth.KEY, Auth.GATEWAY):
        raise UsageError(f"{auth_flag} {auth}: expected key or gateway")
    if auth == Auth.GATEWAY:
        if destination not in (None, GATEWAY):
            raise UsageError(f"the gateway is one destination and takes no provider, not {destination!r}", hint=gateway_hint)
        return Way(GATEWAY, Auth.GATEWAY)
    if destination is None:
        raise UsageError(
            f"which destination? {provider_flag} takes {', '.join(DESTINATIONS)}", hint=f"{hint} {auth_flag} key {provider_flag} anthropic"
        )
    return Way(destination, Auth.KEY)


def of_session(asked: str | None, provider: str | None, *, auth: Auth, destination: str) -> Way | None:
    """The way of own calls beside a harness that has `auth` and `destination`; None where none are made. Raises UsageError."""
    if asked == NONE:
        if provider is not None:
            raise UsageError("--server-auth none makes no calls, so it takes no --server-provider", hint="amem launch --help")
        return None
    if asked is None and provider is None:
        return None if auth is Auth.SUBSCRIPTION else Way(destination, auth)
    if asked == Auth.KEY and provider is None and auth is Auth.KEY:
        provider = destination
    return way(asked, provider, flags=("--server-auth", "--server-provider"), hint="amem launch")

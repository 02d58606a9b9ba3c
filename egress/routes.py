"""Where a session's calls go: the table made once at its start, and the look-up for each call.

Pure. `table` is the only place that decides a base URL. Nothing that a harness says can change one: a call picks a row by its
dialect, and where no row is, it is refused.
"""

from collections.abc import Mapping
from types import MappingProxyType

from amem.egress.destinations import CODE_ASSIST_URL, DESTINATIONS, Destination, Header, Identity, Wire
from amem.errors import ConfigError, UnavailableError
from amem.model.call import Auth as Auth
from amem.model.call import Billing, Dialect
from amem.model.label import Label
from amem.settings.credentials import Credentials, Secret
from amem.settings.grants import DestinationGrant, Grants
from amem.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amem.egress.flow import Target

KEY_LENGTH = 8
"""The least. Every key of a known provider has more than twice as many."""


class Route(NamedTuple):
    """Where the calls of one dialect go, and on what terms."""

    destination: str
    base_url: str
    """Scheme, host and path, without a slash at the end."""
    ceiling: Label | None
    billing: Billing
    auth: Auth
    header: Header
    shaping: tuple[str, ...] = ()
    require: Mapping[str, str] = MappingProxyType({})
    """Obligations (B18) set on each request and looked for in its answer: member -> value."""
    inward: bool = False
    """The base is on this machine or its network because grants.toml says so; else an inward address is refused."""
    cut: str = ""
    identity: Identity | None = None
    """Who says whose a token is, on a subscription."""
    most_at_once: Mapping[str, int] = MappingProxyType({})
    """How many calls of each lane (`admit.Lane`) may be under way there (B11); a lane that is not in it has no limit."""

    def url(self, path: str, query: str) -> str:
        """The URL of a call: the base, then the path, `/v1` not twice."""
        if self.cut:
            path = path.removeprefix(self.cut)
        elif path.startswith("/v1/") and self.base_url.endswith("/v1"):
            path = path.removeprefix("/v1")
        return f"{self.base_url}{path}?{query}" if query else self.base_url + path


class Way(NamedTuple):
    """What stands behind a host that a login may tunnel to."""

    destination: str
    ceiling: Label


def table(destination: str, auth: Auth, grants: Grants, credentials: Credentials) -> Mapping[Dialect, Route]:
    """The routes of a session with one destination, by dialect. Raises ConfigError, or UnavailableError for what is not granted."""
    auth = Auth(auth)
    row = DESTINATIONS.get(destination)
    if row is None:
        raise ConfigError(f"destination {destination!r}: not one amem knows; it knows {', '.join(DESTINATIONS)}")
    grant = grants.destinations.get(destination)
    if grant is None:
        raise UnavailableError(
            f"destination {destination}: grants.toml has no [destinations.{destination}] with a ceiling, so nothing may be sent there",
            hint="amem doctor --config",
        )
    if auth is Auth.GATEWAY and not row.gateway:
        raise ConfigError(f"destination {destination}: is no gateway; use --auth key")
    told = grant.base_url or (credentials.text(row.base_url_env) if row.base_url_env else None)
    base = told or row.base_url
    if base is None:
        raise ConfigError(f"destination {destination}: has no base URL; set base_url in [destinations.{destination}] of grants.toml")
    inward = _check_base(destination, base)
    unknown = [name for name in grant.require if name not in row.obligations]
    if unknown:
        raise ConfigError(f"grants.toml: destinations.{destination}.require.{unknown[0]}: not an obligation {destination} can be asked for")
    identity = _identity(row, told) if auth is Auth.SUBSCRIPTION else None
    return {
        dialect: _route(row, wire, auth, _base_of(wire, base, own=told is None), inward, grant)._replace(identity=identity)
        for dialect, wire in row.wires.items()
    }


def credential(destination: str, auth: Auth, credentials: Credentials, virtual_key: Secret | None = None) -> Secret | None:
    """The key that goes on calls; None on a subscription, and where none is needed.

    `virtual_key` is a gateway's, from its file; it counts before the names. Raises UnavailableError when there is none, ConfigError for
    one that cannot be kept out of answers.
    """
    row = DESTINATIONS[destination]
    if auth is Auth.SUBSCRIPTION:
        return None
    if auth is Auth.GATEWAY and virtual_key is not None:
        return _fit(virtual_key, "the gateway's virtual key")
    names = (row.key_env, *row.key_env_also)
    for name in names:
        found = credentials.find(name)
        if found is not None:
            return _fit(found, name)
    if not row.needs_key:
        return None
    raise UnavailableError(
        f"no key for {destination}: {' or '.join(names)} is neither in the environment nor in credentials.env",
        hint=f"export {row.key_env}=…",
    )


def _fit(key: Secret, name: str) -> Secret:
    """The key, long enough that masking it where an upstream repeats it masks nothing else, and one that a header can carry."""
    text = key.reveal()
    if len(text) < KEY_LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(
            f"{name}: is no key: one has at least {KEY_LENGTH} printable characters and no space, so that it can be taken out of what an "
            "upstream repeats without taking out anything else",
            hint="for a server that wants none, export any word of that length",
        )
    return key


def tunnels(destination: str, auth: Auth, grants: Grants) -> Mapping[str, Way]:
    """The hosts that a session's login may tunnel to; none without a login. Raises UnavailableError for what is not granted."""
    if Auth(auth) is not Auth.SUBSCRIPTION:
        return {}
    grant = grants.destinations.get(destination)
    if grant is None:
        raise UnavailableError(f"destination {destination}: is not in grants.toml", hint="amem doctor --config")
    return {host: Way(destination, grant.ceiling) for host in DESTINATIONS[destination].tunnel_hosts}


def resolve(target: "Target", routes: Mapping[Dialect, Route], headers: Mapping[str, str]) -> tuple[Dialect, Route] | None:
    """The row for a request; None where the session has no destination for it."""
    from amem.egress.flow import Kind  # a launch plans its routes before it needs to read a request

    if target.kind is Kind.MODELS and target.dialect is None:
        # Anthropic and OpenAI list models at one path; only Anthropic's clients send its version header.
        order = [Dialect.CHAT, Dialect.RESPONSES, Dialect.ANTHROPIC, Dialect.GEMINI]
        if "anthropic-version" in headers or "x-api-key" in headers:
            order.insert(0, Dialect.ANTHROPIC)
        candidates = order
    else:
        candidates = [target.dialect] if target.dialect is not None else []
    for dialect in candidates:
        if (route := routes.get(dialect)) is not None:
            if target.path.startswith("/v1internal"):
                return _code_assist(dialect, route)
            return dialect, route
    return None


def _code_assist(dialect: Dialect, route: Route) -> tuple[Dialect, Route] | None:
    """Code Assist takes a login only. A base from grants.toml serves both APIs (a private relay, or a test)."""
    if route.auth is not Auth.SUBSCRIPTION and not route.inward:
        return None
    public = DESTINATIONS["google"].base_url
    return dialect, route._replace(base_url=CODE_ASSIST_URL) if route.base_url == public else route


def _base_of(wire: Wire, base: str, *, own: bool) -> tuple[str, str]:
    """The base and the cut of one dialect; a base that somebody set serves every dialect at the paths they came with."""
    if not own:
        return base.rstrip("/"), ""
    return (wire.base_url or base).rstrip("/"), wire.cut


def _identity(row: Destination, told: str | None) -> Identity | None:
    """Who is asked whose a token is: never another host than the one that gets the token with each call, where somebody set the base."""
    if row.identity is None or told is None:
        return row.identity
    from urllib.parse import urlsplit

    return row.identity._replace(url=told.rstrip("/") + urlsplit(row.identity.url).path)


def _route(row: Destination, wire: Wire, auth: Auth, base: tuple[str, str], inward: bool, grant: DestinationGrant) -> Route:
    return Route(
        destination=row.name, base_url=base[0], cut=base[1], ceiling=grant.ceiling, billing=auth.billing, auth=auth, header=wire.header,
        shaping=wire.shaping, require=dict(grant.require), inward=inward, most_at_once=dict(grant.concurrency),
    )  # fmt: skip


def _is_of_this_machine(base: str) -> bool:
    """Say of the plainest bases on this machine that they are; of any other nothing. A launch waits for what reads the rest."""
    host, _, port = base.removeprefix("http://").partition("/")[0].partition(":")
    plain = base.isascii() and base.isprintable() and not set(base) & set("?#@\\ ")
    return plain and base.startswith("http://") and host in ("127.0.0.1", "localhost") and (port.isdigit() or not port)


def _check_base(destination: str, base: str) -> bool:
    """Say whether a base is inward. Raises ConfigError for clear text to another machine."""
    if _is_of_this_machine(base):
        return True
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    parts = urlsplit(base)
    host = (parts.hostname or "").rstrip(".").lower()
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.query or parts.fragment:
        raise ConfigError(f"destination {destination}: base URL {base!r} is not http(s)://host[:port][/path]")
    try:
        address = ip_address(host)
        loopback, inward = address.is_loopback, not address.is_global
    except ValueError:
        loopback = host == "localhost" or host.endswith(".localhost")
        # A name without a public suffix is somebody's own network; where a public name leads is checked when it is dialled.
        inward = loopback or "." not in host or host.endswith((".internal", ".local", ".lan", ".home.arpa"))
    if parts.scheme == "http" and not loopback:
        raise ConfigError(f"destination {destination}: {base} would send keys and prompts in clear text; use https, or loopback")
    return inward

"""What one session may do through its egress: the value that the launcher makes and the server obeys."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from amem.egress import routes
from amem.egress.admit import Lane
from amem.egress.contexts import Contexts
from amem.egress.reserve import Reservations
from amem.egress.routes import Auth, Route, Way
from amem.egress.slots import Slots
from amem.logs.schema import PolicyDecision
from amem.model.call import Dialect, Role
from amem.model.clock import Clock, now
from amem.model.label import Label
from amem.policy.decision import Decision
from amem.policy.request import Request
from amem.record.sealed import Sealer
from amem.settings.credentials import Secret
from amem.settings.grants import Grants, Spend
from amem.settings.root import Root
from amem.typed import Any

IDLE_S = 600.0
"""Reasoning models have been silent for minutes before the first event; a stream has no limit in total."""


@dataclass(frozen=True)
class Account:
    """Whose login a session was given."""

    facts: Mapping[str, str]
    """What the host's login says of it, by the names of `destinations.Identity.tells`."""
    tokens: set[bytes] = field(default_factory=set, repr=False)
    """Digests of the tokens that the provider said are of it (`whose`)."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """What one listener, which is one session, may do. Holds the key; its repr does not."""

    session: str
    principal: str
    domain: str
    task: Callable[[], str | None] = lambda: None
    """The task the session holds at this moment."""
    auth: str
    """`key`, `gateway` or `subscription`; see `routes.Auth`."""
    routes: Mapping[Dialect, Route]
    credential: Secret | None
    """What goes on the outgoing copy; None on a subscription, and where none is needed."""
    label: Callable[[], Label]
    """The session's label at this moment."""
    decide: Callable[[Request], Decision]
    """The policy's door: it logs the decision before it returns it."""
    asks: Callable[[str], bool] = lambda action: False
    """Whether anything but the built-in policy has a word in an action; where not, a call that no limit binds is not counted first."""
    token: Secret | None = None
    """What a caller must present where the port is on the host; None where the listener itself names the session."""
    pinned: tuple[Secret, ...] = ()
    """On a subscription: the account's credentials that were copied in. Another one is refused (B14) unless `account` has it."""
    account: Account | None = None
    """Whose login was copied in, where the host says so: tokens that a refresh brought can be told from another account's."""
    tunnels: Mapping[str, Way] = field(default_factory=dict)
    """Hosts, in lower case, that the session's login may tunnel to; empty without one."""
    generation: Callable[[], int] = lambda: 0
    """Rises when grants or policy change; a tunnel opened under an older one is closed."""
    stopped: Callable[[], str | None] = lambda: None
    """Why no more calls are let out (the kill switch); None while they are."""
    spend: Mapping[str, Spend] = field(default_factory=dict)
    """Token limits by destination; `reservations` holds them."""
    reservations: Reservations | None = None
    note: Callable[[PolicyDecision], None] | None = None
    """Logs a refusal that is the egress's own (a tunnel), and alarms; raises when it cannot."""
    contexts: Contexts | None = None
    """Keeps each call's request and answer; None where the domain's grant says not to."""
    clock: Clock = field(default=now, repr=False)
    idle_s: float = IDLE_S
    silent: Callable[[str], None] = lambda sentence: None
    """Told when a harness's call is refused because its destination fell silent again and again."""
    role: Role | None = None
    """Of amem's own calls; None for a harness's."""
    slots: Slots | None = None
    """The places at once that the sessions of a root share; None where there is no limit."""
    lane: Lane = Lane.HARNESS
    """Whose limit of calls at once holds (B11)."""


def granted(root: Root, grants: Grants, *, destination: str, auth: str, domain: str, session: str) -> Mapping[str, Any]:
    """What the grants add to the access of a session with one destination: its spend limits, contexts and tunnels.

    To be passed on as keywords: `Access(..., **granted(...))`. Raises UnavailableError for a destination that is not granted.
    """
    limits = {destination: limit} if (limit := grants.spend.get(destination)) is not None else {}
    kept = grants.domains[domain].contexts
    grant = grants.destinations.get(destination)
    return {
        "spend": limits,
        "reservations": Reservations(root, ZoneInfo(grants.spend_zone)),
        "contexts": Contexts(root.record / domain / ".contexts" / session, Sealer(root.state).masked) if kept else None,
        "slots": Slots(root.state / "lanes") if grant is not None and grant.concurrency else None,
        "tunnels": routes.tunnels(destination, Auth(auth), grants),
    }

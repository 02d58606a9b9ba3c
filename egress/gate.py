"""What must hold before a call leaves, in order: whose it is, whether anything may leave, the policy, the spend limit.

Every refusal is logged before it is told, the policy's by its door and the egress's own by `Access.note`. Whatever goes wrong
here means no.
"""

import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Sequence
from functools import lru_cache

from amem.egress import routes, spend, vendor
from amem.egress.access import Access
from amem.egress.admit import Lane
from amem.egress.flow import Call, Kind
from amem.egress.identity import REQUIRE_BROKEN
from amem.egress.meter import Meter
from amem.egress.routes import Route, Way
from amem.egress.silence import SILENCES, Silences
from amem.egress.spend import Spent
from amem.logs.schema import PolicyDecision
from amem.model import ids
from amem.model.call import Billing, Dialect
from amem.model.clock import stamp
from amem.model.label import Label
from amem.policy import request as requests
from amem.policy.request import Request
from amem.settings.credentials import Secret
from amem.settings.grants import Spend
from amem.typed import NamedTuple

_log = logging.getLogger(__name__)
_model_call = lru_cache(maxsize=64)(requests.model_call)
"""The calls of a session differ in little: a request that was made and checked once is put again."""


SILENT = "upstream_silent"


class Refusal(NamedTuple):
    """Why a call does not leave."""

    code: str
    sentence: str


STRANGER = (
    "the call carries another account than the one this session was given, or a login that was refreshed since, and nobody can be asked "
    "whose it is; the refreshed login comes home when the session ends, and the next one works with it"
)


class Room(NamedTuple):
    """What was reserved for a call; 0 where no limit holds."""

    tokens: int


class Gate:
    """The gate of one session."""

    def __init__(self, access: Access, meter: Meter) -> None:
        self._access = access
        self._meter = meter
        self._broken: set[str] = set()
        self._silences = Silences(access.idle_s)

    def broken(self, route: Route) -> None:
        """An answer said that its destination did not keep what is required of it: nothing more of this session goes there (B18)."""
        self._broken.add(route.destination)
        _log.warning("session %s: %s did not keep what grants.toml requires of it", self._access.session, route.destination)

    def ended(self, call: Call, route: Route, now_s: float, *, whole: bool, silent_s: float) -> None:
        """A call that had left is over: its answer came whole, or nothing of it came for so long at its end."""
        self._silences.ended((route.destination, call.model), now_s, whole=whole, silent_s=silent_s)

    def stranger(self, presented: str | None) -> str | None:
        """Why a caller with this credential is not this session's harness; None when it is."""
        access = self._access
        if access.pinned:  # a login's own credential, which nobody else has either
            known = any(_same(presented, secret) for secret in access.pinned)
            if not known and access.account is not None and presented is not None:
                known = digest(presented) in access.account.tokens
            return None if known else STRANGER
        return self.outsider(presented)

    def outsider(self, presented: str | None) -> str | None:
        """Why a caller with this bearer is not of this session, where the port is on the host; None when it is."""
        token = self._access.token
        return None if token is None or _same(presented, token) else "the call does not carry this session's token"

    def refusal(self, call: Call, route: Route, now_s: float) -> Refusal | None:
        """Why this call may not leave with the label of this moment; None when it may. The decision is in the log either way."""
        if call.kind is Kind.CONTROL and route.auth is not routes.Auth.SUBSCRIPTION:
            return Refusal("not_on_a_login", f"{call.path} is for a login, and this session has a key")
        if route.destination in self._broken:
            return self._unkept(route)
        if self._access.lane is Lane.HARNESS and self._silences.resting((route.destination, call.model), now_s):
            return self._silent(call, route)
        if (tools := vendor.server_tools(call)) and (refused := self._around(route.destination, tools)) is not None:
            return refused
        return self._decided(
            destination=route.destination, ceiling=route.ceiling, dialect=call.dialect, model=call.model, billing=route.billing
        )

    def _unkept(self, route: Route) -> Refusal:
        self._log_refusal({"code": REQUIRE_BROKEN, "destination": route.destination, "require": dict(route.require)})
        wanted = ", ".join(f"{member} {value}" for member, value in route.require.items())
        return Refusal(REQUIRE_BROKEN, f"{route.destination} answered an earlier call outside of what grants.toml requires: {wanted}")

    def _silent(self, call: Call, route: Route) -> Refusal:
        self._log_refusal({"code": SILENT, "destination": route.destination, "model": call.model})
        sentence = (
            f"{call.model} at {route.destination} fell silent in {SILENCES} answers one after another, so it is not asked again for now"
        )
        self._access.silent(sentence)
        return Refusal(SILENT, sentence)

    def _log_refusal(self, facts: dict[str, object]) -> None:
        try:
            if self._access.note is not None:
                self._access.note(denied(self._access, "model_call", facts))
        except Exception:  # an outer edge: it is refused either way
            _log.exception("session %s: a refusal could not be logged", self._access.session)

    def tunnel(self, way: Way) -> Refusal | None:
        """Why a tunnel may not open with the label of this moment. What goes through it is not seen, so any model may be called."""
        dialect = next(iter(self._access.routes), Dialect.CHAT)
        return self._decided(destination=way.destination, ceiling=way.ceiling, dialect=dialect, model="", billing=Billing.PLAN)

    def asking(self, route: Route, dialect: Dialect) -> Refusal | None:
        """Why the provider may not be asked whose a token is: its text is the session's, and leaves like a call's."""
        return self._decided(destination=route.destination, ceiling=route.ceiling, dialect=dialect, model="", billing=route.billing)

    def _around(self, destination: str, tools: Sequence[str]) -> Refusal | None:
        """Why a call may not have tools run at the provider, where the sandbox does not hold them; None when the grant has them all."""
        access = self._access
        return self._asked(
            lambda: requests.server_tool(
                principal=access.principal, domain=access.domain, session=access.session, task=access.task(), destination=destination,
                tools=tools,
            )
        )  # fmt: skip

    def _decided(self, *, destination: str, ceiling: Label | None, dialect: Dialect, model: str, billing: Billing) -> Refusal | None:
        access = self._access
        if (why := access.stopped()) is not None:
            return Refusal("stopped", why)
        if self._meter.fault is not None:
            return Refusal("usage_unwritable", self._meter.fault)
        return self._asked(
            lambda: _model_call(
                principal=access.principal, domain=access.domain, session=access.session, task=access.task(), label=access.label(),
                destination=destination, ceiling=ceiling, dialect=dialect, model=model, billing=billing, role=access.role,
            )
        )  # fmt: skip

    def _asked(self, request: Callable[[], Request]) -> Refusal | None:
        """The policy's answer, which is in the log by then; a request that cannot be made is refused too."""
        access = self._access
        try:
            decision = access.decide(request())
        except Exception:  # an outer edge: whatever goes wrong in a decision means no
            _log.exception("session %s: the policy could not decide", access.session)
            return Refusal("policy_error", "the policy could not decide, so the answer is no")
        if decision.allow:
            return None
        hint = f" (try: {decision.hint})" if decision.hint else ""
        return Refusal(decision.code or "denied", decision.sentence() + hint)

    async def room(self, call_id: str, call: Call, route: Route) -> Room | Refusal:
        """Reserve what a call may use, where its destination has a limit or a rule of somebody's has a word in it."""
        access = self._access
        limits = access.spend.get(route.destination)
        if call.kind is not Kind.CALL or access.reservations is None or (limits is None and not access.asks(requests.SPEND)):
            return Room(0)
        wanted, most = spend.estimate(call), limits or Spend()

        def refused_at(spent: Spent) -> Refusal | None:
            return self._asked(
                lambda: requests.spend(
                    principal=access.principal, domain=access.domain, session=access.session, task=access.task(),
                    destination=route.destination, wanted=wanted, spent={"session": spent.session, "day": spent.day},
                    limits={"session": most.session_tokens, "day": most.day_tokens}, zone=spent.zone,
                )
            )  # fmt: skip

        try:
            refused = await access.reservations.take(call_id, route.destination, access.session, wanted, refused_at)
        except Exception:  # an outer edge: what cannot be counted is not spent
            _log.exception("session %s: a spend limit could not be held", access.session)
            return Refusal("usage_unwritable", "the spend limit cannot be held, so the answer is no")
        return Room(wanted) if refused is None else refused


def denied(access: Access, action: str, facts: dict[str, object]) -> PolicyDecision:
    """The log's record of a refusal that the egress made itself."""
    return judged(access, action, facts, allow=False)


def judged(access: Access, action: str, facts: dict[str, object], *, allow: bool) -> PolicyDecision:
    """The log's record of a judgement that the egress made itself."""
    about = "sha256:" + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return PolicyDecision(
        at=stamp(access.clock()), id=ids.draw("decision"), session=access.session, domain=access.domain, principal=access.principal,
        task=access.task(), action=action, allow=allow, reasons=(facts,), policy_version="host", input_digest=about,
    )  # fmt: skip


def digest(credential: str) -> bytes:
    """By which a credential is known again without being kept."""
    return hashlib.sha256(credential.encode("utf-8", "surrogateescape")).digest()


def _same(presented: str | None, secret: Secret) -> bool:
    return presented is not None and hmac.compare_digest(presented.encode("utf-8", "surrogateescape"), secret.reveal().encode())

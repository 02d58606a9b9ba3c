"""Whose a token is that a harness presents and nobody gave it: a login that it refreshed, or an attacker's own account (B14).

Owns the question, which goes to the provider itself over a connection of the egress's own, and how often it may be put. Only a
plain answer that names the account of the host's login makes a token the session's; whatever else comes back, late, large,
elsewhere or unreadable, does not. No token is logged or kept, only its digest.
"""

import asyncio
import json
import logging
import re
from collections import OrderedDict, deque
from collections.abc import Mapping

from aiohttp import ClientError

from amem.egress.access import Access
from amem.egress.destinations import Identity
from amem.egress.gate import STRANGER, Gate, Refusal, digest, judged
from amem.egress.routes import Route
from amem.egress.upstream import Upstream
from amem.model.call import Dialect
from amem.typed import Any, NamedTuple

ASK_S = 15.0
MOST_BYTES = 1 << 16
MOST_NEW, PER_S = 6, 60.0
"""How many tokens may be new within a time: a login is refreshed once in an hour or in eight."""
AGAIN_S = 10.0
"""How long it is not asked again where no answer came."""
KEPT = 256
"""How many tokens of others are remembered."""
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{20,4096}=*")
"""RFC 6750, section 2.1, in a length that nobody is asked about twice."""
OTHER, UNSURE, TOO_MANY = "another_account", "account_unknown", "too_many_accounts"

_log = logging.getLogger(__name__)


class Verdict(NamedTuple):
    """What asking came to."""

    same: bool | None
    """None: nobody said."""
    why: str
    lasting: bool = False
    """It stays so, and is not asked again."""


class Whose:
    """The judgement over one session's tokens."""

    def __init__(self, access: Access, gate: Gate) -> None:
        self._access = access
        self._gate = gate
        self._asked: OrderedDict[bytes, asyncio.Task[Refusal | None]] = OrderedDict()
        self._again: dict[bytes, float] = {}
        self._times: deque[float] = deque()

    async def refusal(self, token: str, route: Route, dialect: Dialect, upstream: Upstream) -> Refusal | None:
        """Why a call with a token that is not known may not pass; None when the provider says that it is the account's."""
        account, identity = self._access.account, route.identity
        if account is None or identity is None or not account.facts.keys() >= identity.tells.keys():
            return Refusal("not_this_session", STRANGER)
        if _TOKEN.fullmatch(token) is None:
            return Refusal("not_this_session", "the call carries something that is no login's token")
        key, now = digest(token), asyncio.get_running_loop().time()
        found = self._asked.get(key)
        if found is None or now >= self._again.get(key, now + 1):
            while self._times and now - self._times[0] >= PER_S:
                self._times.popleft()
            if len(self._times) >= MOST_NEW:
                return Refusal(TOO_MANY, f"the session presents more new tokens than a login can have: {MOST_NEW} in {PER_S:.0f} seconds")
            self._times.append(now)
            self._again.pop(key, None)
            found = self._asked[key] = asyncio.create_task(self._judge(key, token, route, identity, dialect, upstream))
            while len(self._asked) > KEPT and next(iter(self._asked.values())).done():
                self._again.pop(self._asked.popitem(last=False)[0], None)
        return await asyncio.shield(found)  # others wait for the same answer; a client that leaves does not take it from them

    async def close(self) -> None:
        """End what is still being asked."""
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)

    async def _judge(
        self, key: bytes, token: str, route: Route, identity: Identity, dialect: Dialect, upstream: Upstream
    ) -> Refusal | None:
        account, name = self._access.account, route.destination
        assert account is not None
        if (refused := self._gate.asking(route, dialect)) is not None:
            self._later(key)
            return refused
        found = await ask(upstream, identity, account.facts, token)
        facts: dict[str, object] = {"code": "same_account" if found.same else OTHER if found.same is False else UNSURE, "destination": name}
        try:
            if self._access.note is not None:
                self._access.note(judged(self._access, "model_call", facts, allow=found.same is True))
        except Exception:  # an outer edge: what cannot be logged does not pass
            _log.exception("session %s: a judgement over a login could not be logged", self._access.session)
            self._later(key)
            return Refusal("policy_error", "the judgement could not be logged, so the answer is no")
        _log.info("session %s: a token that is new: %s: %s", self._access.session, facts["code"], found.why)
        if found.same:
            account.tokens.add(key)
            return None
        if not found.lasting:
            self._later(key)
        if found.same is None:
            return Refusal(UNSURE, f"{name} was asked whose the new token is, and did not say: {found.why}")
        return Refusal(OTHER, f"{name} does not take the new token for one of the account this session was given: {found.why}")

    def _later(self, key: bytes) -> None:
        self._again[key] = asyncio.get_running_loop().time() + AGAIN_S


async def ask(upstream: Upstream, identity: Identity, facts: Mapping[str, str], token: str) -> Verdict:
    """Put the question once. Raises nothing for whatever the other side does."""
    headers = [
        ("authorization", f"Bearer {token}"),
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
        ("user-agent", "amem"),
    ]
    body = None
    if identity.method == "POST":
        headers.append(("content-type", "application/x-www-form-urlencoded;charset=UTF-8"))
        body = b""
    try:
        async with asyncio.timeout(ASK_S), await upstream.send(identity.method, identity.url, headers, body) as answer:
            if answer.status in (400, 401, 403):
                return Verdict(False, f"status {answer.status}")
            if answer.status != 200:
                return Verdict(None, f"status {answer.status}")
            if answer.headers.get("content-encoding", "identity").lower() != "identity":
                return Verdict(None, "an answer in an encoding")
            data = b""
            while piece := await answer.content.read(MOST_BYTES + 1 - len(data)):
                data += piece
                if len(data) > MOST_BYTES:
                    return Verdict(None, "an answer without an end")
    except TimeoutError:
        return Verdict(None, "no answer in time")
    except (ClientError, OSError, ValueError) as error:  # its text could hold the token
        return Verdict(None, type(error).__name__)
    return _compare(data, identity, facts)


def _compare(data: bytes, identity: Identity, facts: Mapping[str, str]) -> Verdict:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        return Verdict(None, "an answer that is no JSON")
    told = {name: _at(answer, path) for name, path in identity.tells.items()}
    if not told or not all(isinstance(value, str) and value for value in told.values()):
        return Verdict(None, "an answer that names no account")
    same = all(value == facts.get(name) for name, value in told.items())
    return Verdict(same, "it is the host's" if same else "it is another's", lasting=True)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def ask_now(access: Access, gate: Gate, token: str) -> str | None:
    """Why a token that a session left is not its account's, asked where no loop runs any more; None when it is."""

    async def run() -> Refusal | None:
        whose, upstream = Whose(access, gate), Upstream(access.routes.values(), idle_s=ASK_S)
        try:
            dialect, route = next(iter(access.routes.items()))
            return await whose.refusal(token, route, dialect, upstream)
        finally:
            await whose.close()
            await upstream.close()

    if gate.stranger(token) is None:
        return None
    refused = asyncio.run(run())
    return None if refused is None else refused.sentence

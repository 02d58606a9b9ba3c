"""The engine's self-test: golden requests over the built-in policy, with the answers they must have.

It is the engine that is tested, not the root's policy: another library under the same module name, a changed default of
the language or a broken build answers at least one of these in another way. A few milliseconds, once a process.
"""

from collections.abc import Iterator, Mapping
from functools import cache

from amem.model.label import Label
from amem.policy import request as ask
from amem.policy.decision import Decision
from amem.policy.engine import PolicyEngine, builtin
from amem.policy.request import Request
from amem.typed import Any, NamedTuple

_OWNER = "human:golden:owner"
_BOB = "human:golden:bob"
_HEAVY = 200
DATA: Mapping[str, Any] = {
    "grants": {
        "owner": _OWNER,
        "domains": {
            "dom-golden": {
                "admit_own": True,
                "principals": {
                    "agent:*": {"read": "public", "write": False},
                    _BOB: {"read": "internal", "write": True},
                    "agent:writer": {"read": "internal", "write": True, "server_tools": ["web_search"]},
                },
            },
            "dom-by-hand": {"principals": {"agent:*": {"read": "public", "write": False}}},
        },
        "destinations": {"provider": {"ceiling": "internal"}, "closed": {"ceiling": None}},
    }
}


class Golden(NamedTuple):
    """A request and what must be decided."""

    name: str
    request: Request
    allow: bool
    hold: bool = False
    codes: tuple[str, ...] = ()
    result: Mapping[str, Any] = {}

    def holds(self, found: Decision) -> bool:
        """Say whether a decision is the one that must be."""
        codes = tuple(reason.code for reason in found.reasons)
        return (found.allow, found.hold, codes, found.result) == (self.allow, self.hold, self.codes, self.result)


def _who(principal: str = "agent:writer", domain: str = "dom-golden") -> dict[str, Any]:
    return {"principal": principal, "domain": domain, "session": "ses-00000000", "task": None}


def _call(label: Label, destination: str = "provider", ceiling: Label | None = Label.INTERNAL) -> Request:
    return ask.model_call(
        **_who(), label=label, destination=destination, ceiling=ceiling, dialect="anthropic", model="m", billing="metered"
    )


def _tools(*tools: str, principal: str = "agent:writer", domain: str = "dom-golden") -> Request:
    return ask.server_tool(**_who(principal, domain), destination="provider", tools=tools)


def _read(principal: str, handling: Label, domain: str = "dom-golden") -> Request:
    return ask.read(**_who(principal, domain), handling=handling)


def _write(principal: str = "agent:writer", label: Label = Label.PUBLIC, **changed: Any) -> Request:
    usual: dict[str, Any] = {"supersedes": (), "findings": (), "superseded_so_far": 0, "max_supersedes": 2}
    return ask.write(
        **_who(principal), owner=_OWNER, type="fact", classification=Label.INTERNAL, label=label, **(usual | changed)
    )  # fmt: skip


def _act(action: str, principal: str = _OWNER, domain: str = "dom-golden") -> Request:
    return ask.owner_act(action, **_who(principal, domain), owner=_OWNER, subject="mem-golden-000000000000")


def _promote(to: str, principal: str = "agent:writer", **changed: Any) -> Request:
    usual: dict[str, Any] = {
        "subject": "mem-golden-000000000000", "author": "agent:other", "tier": "raw", "why": True, "classification": Label.INTERNAL,
        "label": Label.INTERNAL,
    }  # fmt: skip
    return ask.promote(**_who(principal), to=to, **(usual | changed))


def _judge(action: str, principal: str = _OWNER, **changed: Any) -> Request:
    usual: dict[str, Any] = {"subject": "mem-golden-000000000000", "type": "fact", "proposer": "agent:writer", "proposed": 1, "version": 1}
    return ask.judge(action, **_who(principal), **(usual | changed))


def _admit(
    *requires: str, held: tuple[str, ...] | None = ("code", "web"), principal: str = "agent:writer", domain: str = "dom-golden"
) -> Request:
    return ask.admit(**_who(principal, domain), requires=requires, held=held)


def _fetch(url: str = "https://docs.example.org/a", *addresses: str, label: Label = Label.PUBLIC, **changed: Any) -> Request:
    usual: dict[str, Any] = {"tool": True, "hosts": (("*.example.org", Label.PUBLIC), ("docs.example.org", Label.INTERNAL))}
    method = changed.pop("method", "GET")
    granted = ask.Reach(**(usual | changed))
    return ask.fetch(**_who(), label=label, tap="web", granted=granted, method=method, url=url, addresses=addresses or ("93.184.216.34",))


def _spend(wanted: int, session: int | None = 100, day: int | None = 1000) -> Request:
    return ask.spend(
        **_who(),
        destination="provider",
        wanted=wanted,
        spent={"session": 60, "day": 600},
        limits={"session": session, "day": day},
    )


def _entry(tier: str, domain: str = "dom-golden") -> Mapping[str, str]:
    return {"id": "mem-golden-000000000000", "tier": tier, "author": "agent:other", "domain": domain}


def _served(label: str) -> Mapping[str, Any]:
    return {"domains": ["dom-golden"], "max_label": label, "min_tier": "raw"}


def cases() -> Iterator[Golden]:
    """All golden requests."""
    yield from probes()
    yield from acts()
    yield from ways()


def probes() -> Iterator[Golden]:
    """Those that the self-test asks: each construct of the language that the policy uses, in as few as that takes."""
    raw, verified, other = _entry("raw"), _entry("verified"), _entry("raw", "dom-other")
    yield Golden("a call under the ceiling", _call(Label.INTERNAL), True)
    yield Golden("a call over the ceiling", _call(Label.RESTRICTED), False, codes=("label_over_ceiling",))
    yield Golden("a call over the route's ceiling", _call(Label.INTERNAL, ceiling=Label.PUBLIC), False, codes=("label_over_ceiling",))
    yield Golden("a call without a ceiling", _call(Label.PUBLIC, ceiling=None), False, codes=("no_ceiling",))
    yield Golden("a call to a closed destination", _call(Label.PUBLIC, "closed"), False, codes=("no_ceiling",))
    yield Golden("a call to nowhere", _call(Label.PUBLIC, "nowhere"), False, codes=("unknown_destination",))
    yield Golden("a granted tool at the provider", _tools("web_search"), True)
    yield Golden("another tool at the provider", _tools("web_search", "web_fetch"), False, codes=("server_tool",))
    yield Golden("a tool at the provider without a grant", _tools("web_search", principal="agent:any"), False, codes=("server_tool",))
    yield Golden("a tool at the provider in no domain", _tools("mcp", domain="dom-none"), False, codes=("server_tool",))
    yield Golden("the longest grant reads", _read("agent:writer", Label.RESTRICTED), True, result=_served("internal"))
    yield Golden("handling bounds a read", _read("agent:writer", Label.PUBLIC), True, result=_served("public"))
    yield Golden("a pattern reads", _read("agent:any", Label.RESTRICTED), True, result=_served("public"))
    yield Golden("the owner reads all", _read(_OWNER, Label.RESTRICTED), True, result=_served("restricted"))
    yield Golden("a stranger", _read("tap:any", Label.PUBLIC), False, codes=("no_read_grant",))
    yield Golden("no such domain", _read(_OWNER, Label.PUBLIC, "dom-none"), False, codes=("unknown_domain",))
    yield Golden("a write", _write(supersedes=(raw, raw)), True)
    yield Golden("a write without a grant", _write("agent:any"), False, codes=("no_write_grant",))
    yield Golden("a write below the session", _write(label=Label.RESTRICTED), False, codes=("label_below_session",))
    yield Golden("a write with findings", _write(findings=("secret",)), False, hold=True, codes=("scan_findings",))
    yield Golden("a write over verified", _write(supersedes=(verified,)), False, True, ("supersede_verified",))
    yield Golden("a write past the gate", _write(supersedes=(raw,), superseded_so_far=2), False, True, ("too_many_superseded",))
    yield Golden("a write into another domain", _write(supersedes=(other,)), False, codes=("supersede_other_domain",))
    yield Golden("the owner passes the gates", _write(_OWNER, findings=("secret",), supersedes=(verified,), superseded_so_far=9), True)
    yield Golden("a part that asks for what its filer holds", _admit("code"), True)
    yield Golden("a part that asks for more", _admit("code", "deploy"), False, codes=("requires_more",))
    yield Golden("a call within its limits", _spend(40), True)
    yield Golden("a call over the session's limit", _spend(41), False, codes=("spend_session",))
    yield Golden("a tool's request within reach", _fetch(label=Label.INTERNAL), True)
    yield Golden("a tool's request turned inward", _fetch("https://docs.example.org", "::ffff:127.0.0.1"), False, codes=("inward_address",))
    yield Golden("an unknown action", Request("nothing", {"principal": _OWNER, "domain": "dom-golden"}), False, codes=("unknown_action",))


def acts() -> Iterator[Golden]:
    """The golden requests about what people do to entries."""
    yield Golden("a promotion to curated", _promote("curated"), True)
    yield Golden("a promotion by the author", _promote("curated", author="agent:writer"), False, codes=("promote_own",))
    yield Golden("a promotion without a why", _promote("curated", why=False), False, codes=("no_why",))
    yield Golden("a promotion without a grant", _promote("verified", "agent:any"), False, codes=("no_write_grant",))
    yield Golden("a promotion of what is curated", _promote("curated", tier="curated"), False, codes=("tier_not_lower",))
    yield Golden("a promotion below the session", _promote("curated", label=Label.RESTRICTED), False, codes=("why_below_session",))
    yield Golden("a proposal below the session", _promote("verified", classification=Label.PUBLIC), False, codes=("why_below_session",))
    yield Golden("a promotion below the owner", _promote("curated", _OWNER, label=Label.RESTRICTED), True)
    yield Golden("a proposal to verified", _promote("verified", tier="curated"), True)
    yield Golden("a proposal of what is verified", _promote("verified", tier="verified"), False, codes=("tier_not_lower",))
    yield Golden("an approval", _judge("approve"), True)
    yield Golden("an approval by an agent", _judge("approve", "agent:writer", proposer="agent:other"), False, codes=("person_only",))
    yield Golden("an approval by the proposer", _judge("approve", proposer=_OWNER), False, codes=("own_proposal",))
    yield Golden("an approval of another version", _judge("approve", version=2), False, codes=("version_changed",))
    yield Golden("a policy that the owner approves", _judge("approve", type="policy"), True)
    yield Golden("a policy that the owner proposed", _judge("approve", _BOB, type="policy", proposer=_OWNER), True)
    yield Golden("a policy without the owner", _judge("approve", _BOB, type="policy"), False, codes=("policy_by_owner",))
    yield Golden("a fact without the owner", _judge("approve", _BOB), True)
    yield Golden("a decline by the proposer", _judge("decline", proposer=_OWNER), True)
    yield Golden("a decline by an agent", _judge("decline", "agent:writer"), False, codes=("person_only",))
    for act in sorted(ask.OWNER_ACTS):
        yield Golden(f"{act}, by the owner", _act(act), True)
        yield Golden(f"{act}, by another", _act(act, "human:golden:other"), False, codes=("owner_only",))
        yield Golden(f"{act}, in no domain", _act(act, domain="dom-none"), False, codes=("unknown_domain",))


def ways() -> Iterator[Golden]:
    """The golden requests about tasks, tools and spend."""
    yield Golden("a person's own task", _admit("irreversible", principal=_OWNER, held=None), True)
    yield Golden("a person without a grant", _admit(principal="human:golden:other"), False, codes=("no_write_grant",))
    yield Golden("a task of amem's own", _admit("human", principal="system:amem", held=None), True)
    yield Golden("a task of amem's own, by hand", _admit(principal="system:amem", domain="dom-by-hand"), False, codes=("admits_by_hand",))
    yield Golden("an irreversible task of amem's", _admit("irreversible", principal="system:amem"), False, codes=("irreversible",))
    yield Golden("a task on its own account", _admit(held=None), False, codes=("holds_no_task",))
    yield Golden("a part that asks for nothing", _admit(held=()), True)
    yield Golden("a part where a person admits", _admit(domain="dom-by-hand"), False, codes=("admits_by_hand",))
    yield Golden("an irreversible part", _admit("irreversible", held=("irreversible",)), False, codes=("irreversible",))
    yield Golden("what a tap files", _admit(principal="tap:mail"), False, codes=("filed_by_tap",))
    yield Golden("a task in no domain", _admit(domain="dom-none"), False, codes=("unknown_domain",))
    yield Golden("no limit", _spend(10**9, None, None), True)
    yield Golden("over the day's limit", _spend(401, None), False, codes=("spend_day",))
    yield Golden("over both limits", _spend(401), False, codes=("spend_session", "spend_day"))
    yield Golden("a limit that was lowered", _spend(0, session=10), False, codes=("spend_session",))
    yield Golden("plain http", _fetch("http://docs.example.org"), False, codes=("not_https",))
    yield Golden("a host under a pattern", _fetch("https://a.b.example.org:8443/x?y"), True)
    yield Golden("the name that a pattern is under", _fetch("https://example.org"), False, codes=("host_not_granted",))
    yield Golden("a name that ends like a host", _fetch("https://evildocs.example.org.evil.org"), False, codes=("host_not_granted",))
    yield Golden(
        "more than a host may be told", _fetch("https://www.example.org", label=Label.INTERNAL), False, codes=("label_over_reach",)
    )
    yield Golden("more than any host may be told", _fetch(label=Label.RESTRICTED), False, codes=("label_over_reach",))
    yield Golden("a method that is not granted", _fetch(method="POST"), False, codes=("method_not_granted",))
    yield Golden("a tap that is no tool", _fetch(tool=False), False, codes=("not_a_tool",))
    yield Golden("one of two addresses inward", _fetch("https://docs.example.org", "1.1.1.1", "10.0.0.1"), False, codes=("inward_address",))
    yield Golden("the metadata address", _fetch("https://docs.example.org", "169.254.169.254"), False, codes=("inward_address",))
    yield Golden("a fake on loopback", _fetch("http://docs.example.org", "127.0.0.1", loopback=True), True)
    yield Golden(
        "loopback opens nothing else", _fetch("http://docs.example.org", "10.0.0.1", loopback=True), False,
        codes=("not_https", "inward_address"),
    )  # fmt: skip


def heavy() -> Iterator[Golden]:
    """Requests as large as they come: a rule that takes long takes long over one of these."""
    entries = [{**_entry("verified"), "id": f"mem-golden-{number:012d}"} for number in range(_HEAVY)]
    yield Golden("a write that replaces much", _write(supersedes=entries, findings=ask.FINDINGS), False)
    many = tuple(f"word{number}" for number in range(_HEAVY))
    yield Golden("a task that requires much", _admit(*many, held=many), True)
    yield Golden("a call with many tools", _tools(*many[:64]), False)
    addresses = [f"10.0.{number}.1" for number in range(_HEAVY)]
    hosts = tuple((f"docs{number}.example.org", Label.PUBLIC) for number in range(_HEAVY))
    yield Golden("a fetch with much reach", _fetch("https://docs1.example.org", *addresses, hosts=hosts), False)


@cache
def mismatches() -> tuple[str, ...]:
    """The golden requests that this process' engine decides wrongly, by name; empty when all is well."""
    engine = PolicyEngine(builtin(), DATA, whole=True)
    return tuple(case.name for case in probes() if not case.holds(engine.decide(case.request)))

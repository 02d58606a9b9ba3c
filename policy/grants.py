"""What the policy sees of the grants, and the line it cannot cross.

The host resolves the one grant that answers a request (the longest pattern wins), so that rules see a fact instead of
matching patterns again in another way; and it checks what a policy allowed against that grant, because a root's own
policy may narrow the grants and never widen them. Pure.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from amem.model.label import Label
from amem.model.principal import SYSTEM, matches
from amem.policy.request import OWNER_ACTS
from amem.typed import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from amem.settings.grants import Grants

NOBODY: Mapping[str, Any] = {"known": False, "owner": False, "read": "none", "write": False, "server_tools": [], "admit_own": False}
"""The grant of whoever has none, in a domain that does not exist. `none` is no label: every comparison with it fails."""


def grants_data(grants: "Grants") -> Mapping[str, Any]:
    """The grants as the policy's data, under `data.grants`: labels as words, nothing secret, no addresses."""
    return {
        "grants": {
            "owner": grants.owner,
            "domains": {
                name: {
                    "default": str(domain.default),
                    "admit_own": domain.admit_own,
                    "principals": {
                        pattern: {
                            "read": str(granted.read),
                            "write": granted.write,
                            "capabilities": list(granted.capabilities),
                            "server_tools": list(granted.server_tools),
                        }
                        for pattern, granted in domain.principals.items()
                    },
                }
                for name, domain in grants.domains.items()
            },
            "destinations": {
                name: {"ceiling": None if found.ceiling is None else str(found.ceiling)} for name, found in grants.destinations.items()
            },
            "gates": {"max_supersedes_per_session": grants.gates.max_supersedes_per_session},
        }
    }


def resolver(data: Mapping[str, Any]) -> Callable[..., Mapping[str, Any]]:
    """Who says which grant answers for a principal in a domain: `input.grant`, `{known, owner, read, write, server_tools, admit_own}`.

    It is one value for all that a pattern matches, and is kept. The third argument is who is the owner by the request, if it names one:
    where that is another one than in the grants, nobody is.
    """
    grants = data.get("grants", {})
    domains = grants.get("domains", {})
    known: dict[str, _Domain] = {}

    def resolve(domain: str, principal: str, owner: str | None = None) -> Mapping[str, Any]:
        found = domains.get(domain)
        if found is None:
            return NOBODY
        if domain not in known:
            known[domain] = _domain(found)
        here = known[domain]
        if principal == grants.get("owner"):
            return here.owner if owner in (None, principal) else here.whole
        if principal == SYSTEM:
            return here.whole
        for beginning, pattern, granted in here.patterns:
            if principal.startswith(beginning) and (pattern == f"{beginning}*" or matches(pattern, principal)):
                return granted
        return here.nobody

    return resolve


class _Domain(NamedTuple):
    owner: Mapping[str, Any]
    whole: Mapping[str, Any]
    """The same for who is not the owner: amem itself."""
    nobody: Mapping[str, Any]
    patterns: Sequence[tuple[str, str, Mapping[str, Any]]]
    """The longest first, each behind what all that it matches begins with: most are ruled out by that."""


def _domain(found: Mapping[str, Any]) -> _Domain:
    whose: Mapping[str, Any] = {"known": True, "owner": False, "admit_own": found.get("admit_own") is True}
    principals = found.get("principals", {})
    whole = {**whose, "read": str(Label.RESTRICTED), "write": True, "server_tools": []}
    return _Domain(
        {**whole, "owner": True},
        whole,
        {**NOBODY, **whose},
        [
            (re.split(r"[*?[]", one, maxsplit=1)[0], one, _granted(principals[one], whose))
            for one in sorted(principals, key=len, reverse=True)
        ],
    )


def _granted(granted: Mapping[str, Any], whose: Mapping[str, Any]) -> Mapping[str, Any]:
    tools = list(granted.get("server_tools", ()))
    return {**whose, "read": granted["read"], "write": granted["write"] is True, "server_tools": tools}


def beyond(action: str, asked: Mapping[str, Any], grant: Mapping[str, Any], data: Mapping[str, Any]) -> str | None:
    """Say in what way an allowed request goes beyond the grants, or None when it stays within them."""
    match action:
        case "model_call":
            ceilings = (asked["ceiling"], _ceiling(data, asked["destination"]))
            return None if all(_within(asked["label"], ceiling) for ceiling in ceilings) else "a call above the destination's ceiling"
        case "read":
            return None if grant["known"] and grant["read"] in _LABELS else "a read without a grant"
        case "server_tool":
            return None if set(asked["tools"]) <= set(grant["server_tools"]) else "a tool at the provider without a grant"
        case "write":
            if not grant["write"]:
                return "a write without a grant"
            return None if _within(asked["label"], asked["classification"]) else "a classification below the session's label"
        case "promote":
            if not grant["write"]:
                return "a promotion without a grant"
            if asked["principal"] != data.get("grants", {}).get("owner") and not _within(asked["label"], asked["classification"]):
                return "a promotion below the session's label"
            return "a promotion by the author" if asked["to"] == "curated" and asked["author"] == asked["principal"] else None
        case "approve" | "decline":
            if not grant["write"] or asked["kind"] != "human":
                return "a judgement that no person with a grant makes"
            own = action == "approve" and (asked["proposer"] == asked["principal"] or asked["version"] != asked["proposed"])
            if own:
                return "an approval by the proposer, or of another version"
            owner = data.get("grants", {}).get("owner")
            alone = action == "approve" and asked["type"] == "policy" and owner not in (asked["principal"], asked["proposer"])
            return "a policy approved without the owner" if alone else None
        case "admit":
            return None if _admits(asked, grant) else "an admission that no grant gives"
        case "fetch":
            return _astray(asked, grant)
        case "spend":
            return None if all(_room(asked, scope) for scope in ("session", "day")) else "a call over a spend limit"
        case action if action in OWNER_ACTS:
            owner = data.get("grants", {}).get("owner")
            return None if grant["known"] and owner is not None and asked["principal"] == owner else "an owner's act by somebody else"
        case _:
            return None


def _admits(asked: Mapping[str, Any], grant: Mapping[str, Any]) -> bool:
    """Whether the grants admit what is filed: a person's word, or the domain's, for no more than the filer holds."""
    if asked["filer"] == "human":
        return grant["write"] is True
    held = asked["requires"] if asked["filer"] == "system" else asked["held"]
    within = held is not None and set(asked["requires"]) <= set(held)
    return grant["admit_own"] is True and within and "irreversible" not in asked["requires"] and asked["filer"] != "tap"


def _astray(asked: Mapping[str, Any], grant: Mapping[str, Any]) -> str | None:
    """In what way a tool's request goes where no grant lets it; the hard rules first, which nothing lifts."""
    found = asked["addresses"]
    outward = asked["scheme"] == "https" and not any(one["inward"] for one in found)
    if not found or not (outward or (asked["loopback"] and all(one["loopback"] for one in found))):
        return "a request that is not https, or turned inward"
    if not (grant["known"] and asked["tool"] and asked["method"] in asked["methods"]):
        return "a tool or a method that is not granted"
    return None if any(_within(asked["label"], ceiling) for ceiling in asked["reach"]) else "a host out of the tool's reach"


def _room(asked: Mapping[str, Any], scope: str) -> bool:
    limit = asked["limits"][scope]
    return limit is None or bool(asked["spent"][scope] + asked["wanted"] <= limit)


def narrow(found: Mapping[str, Any], asked: Mapping[str, Any], grant: Mapping[str, Any]) -> Mapping[str, Any]:
    """The policy's read filter, cut down to the domain asked for, the grant and the handling. Raises ValueError."""
    domains, label, tier = found["domains"], found["max_label"], found["min_tier"]
    if not isinstance(domains, list) or label not in _LABELS or tier not in _TIERS:
        raise ValueError("a read filter is {domains: [...], max_label, min_tier}")
    return {
        "domains": [asked["domain"]] if asked["domain"] in domains else [],
        "max_label": min(label, grant["read"], asked["handling"], key=_RANKS.__getitem__),
        "min_tier": tier,
    }


_RANKS = {str(label): label.rank for label in Label}
_LABELS = frozenset(_RANKS)
_TIERS = frozenset(("raw", "curated", "verified"))


def _ceiling(data: Mapping[str, Any], destination: str) -> str | None:
    found = data.get("grants", {}).get("destinations", {}).get(destination)
    return None if found is None else found.get("ceiling")


def _within(label: str, ceiling: str | None) -> bool:
    return ceiling is not None and _RANKS[label] <= _RANKS.get(ceiling, -1)

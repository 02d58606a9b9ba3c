"""Requests to the policy: one builder per action, which checks the shape before anything is asked.

A condition over a missing field denies nothing in Rego, so no request leaves here with a field missing, of another
type, or outside its form. A builder raises ValueError, and the caller denies. Pure.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from amem.model.call import Billing, Dialect, Role
from amem.model.entry import EntryType, Tier
from amem.model.ids import is_id
from amem.model.label import Label
from amem.model.principal import is_principal, kind
from amem.typed import Any, NamedTuple

MODEL_CALL = "model_call"
READ = "read"
SERVER_TOOL = "server_tool"
WRITE = "write"
RELEASE = "release"
DROP = "drop"
DEMOTE = "demote"
CONTAIN = "contain"
ERASE = "erase"
DECLASSIFY = "declassify"
IMPORT = "import"
ADMIT = "admit"
FETCH = "fetch"
SPEND = "spend"
PROMOTE = "promote"
APPROVE = "approve"
DECLINE = "decline"
OWNER_ACTS = frozenset({RELEASE, DROP, DEMOTE, CONTAIN, ERASE, DECLASSIFY, IMPORT})
"""What the owner alone does, to one thing: the `subject`."""

FINDINGS = ("instruction", "broadcast", "tool_syntax", "hidden", "payload", "secret", "quotes")
"""The classes of the scan's findings."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MODEL = re.compile(r"[\x21-\x7e]{0,256}")
"""Model names come from the harness: `anthropic/claude-x:free`, `models/gemini…`; empty where a call names none."""
_TOOL = re.compile(r"[a-z0-9_]{1,64}")
_THING = re.compile(r"(?:worktree|bundle):[0-9a-f]{12}")
"""What an act is about that has no id: the start of the digest of a tree's path, or of a bundle's manifest."""
TOOLS_LIMIT = 64
_CAPABILITY = re.compile(r"[a-z0-9][a-z0-9_.:+-]{0,63}")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*|[0-9a-f:.]{2,45}")
_METHOD = re.compile(r"[A-Z]{1,16}")
_ZONE = re.compile(r"[A-Za-z0-9+_/-]{1,64}")
MANY = 256
_COUNT_LIMIT = 1 << 31
_TOKENS_LIMIT = 1 << 53
"""Past it a number is not exact in every engine."""
SUPERSEDES_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """One question to the policy: an action and its input, whose shape was checked."""

    action: str
    input: Mapping[str, Any]


def model_call(
    *,
    principal: str,
    domain: str,
    session: str,
    task: str | None,
    label: Label,
    destination: str,
    ceiling: Label | None,
    dialect: str,
    model: str,
    billing: str,
    role: str | None = None,
) -> Request:
    """Ask whether a session with this label may send a call to a destination; `ceiling` is the route's. Raises ValueError.

    `role` is what a call of amem's own is for; None for a harness's.
    """
    return _request(
        MODEL_CALL,
        principal=_principal(principal),
        domain=_id("domain", domain),
        session=_id("session", session),
        task=_task(task),
        label=_label("label", label),
        destination=_form("destination", destination, _NAME),
        ceiling=None if ceiling is None else _label("ceiling", ceiling),
        dialect=_word("dialect", dialect, _DIALECTS),
        model=_form("model", model, _MODEL),
        billing=_word("billing", billing, _BILLINGS),
        role=None if role is None else _word("role", role, _ROLES),
    )


def server_tool(*, principal: str, domain: str, session: str, task: str | None, destination: str, tools: Sequence[str]) -> Request:
    """Ask whether a call may have these tools run at its destination, outside the sandbox. Raises ValueError."""
    if not tools or len(tools) > TOOLS_LIMIT:
        raise ValueError(f"tools: expected 1 to {TOOLS_LIMIT}, found {len(tools)}")
    return _request(
        SERVER_TOOL,
        principal=_principal(principal),
        domain=_id("domain", domain),
        session=_id("session", session),
        task=_task(task),
        destination=_form("destination", destination, _NAME),
        tools=tuple(sorted({_form("tools", tool, _TOOL) for tool in tools})),
    )


def read(*, principal: str, domain: str, session: str, handling: Label, task: str | None = None) -> Request:
    """Ask for the read filter of a session, once a generation; `handling` is the most it may be served. Raises ValueError."""
    return _request(
        READ,
        principal=_principal(principal),
        domain=_id("domain", domain),
        session=_id("session", session),
        task=_task(task),
        handling=_label("handling", handling),
    )


def write(
    *,
    principal: str,
    owner: str,
    domain: str,
    session: str,
    task: str | None,
    type: str,
    classification: Label,
    label: Label,
    supersedes: Sequence[Mapping[str, Any]],
    findings: Sequence[str],
    superseded_so_far: int,
    max_supersedes: int,
) -> Request:
    """Ask whether an entry may go into the record, with what the scan found and what it would supersede.

    `owner` is the root's owner; `label` the session's; each of `supersedes` is exactly `{id, tier, author, domain}`.
    Raises ValueError.
    """
    if len(supersedes) > SUPERSEDES_LIMIT:
        raise ValueError(f"supersedes: more than {SUPERSEDES_LIMIT} entries")
    return _request(
        WRITE,
        principal=_principal(principal),
        owner=_principal(owner),
        domain=_id("domain", domain),
        session=_id("session", session),
        task=_task(task),
        type=_word("type", type, _TYPES),
        classification=_label("classification", classification),
        label=_label("label", label),
        supersedes=tuple(_superseded(entry) for entry in supersedes),
        findings=tuple(sorted({_word("findings", found, FINDINGS) for found in findings})),
        superseded_so_far=_count("superseded_so_far", superseded_so_far),
        max_supersedes=_count("max_supersedes", max_supersedes),
    )


def owner_act(action: str, *, principal: str, owner: str, domain: str, session: str, subject: str, task: str | None = None) -> Request:
    """Ask whether a person may do one of `OWNER_ACTS` to `subject`: an entry, held write, session, tree or bundle. Raises ValueError."""
    return _request(
        _word("action", action, OWNER_ACTS),
        principal=_principal(principal),
        owner=_principal(owner),
        domain=_id("domain", domain),
        session=_id("session", session),
        task=_task(task),
        subject=_checked("subject", subject, _is_subject),
    )


def promote(
    *, principal: str, domain: str, session: str, subject: str, author: str, tier: str, to: str, why: bool, classification: Label,
    label: Label, task: str | None = None,
) -> Request:  # fmt: skip
    """Ask whether an entry (the `subject`) may be marked curated, or proposed as verified. Raises ValueError.

    `why` says that a why was given, which whoever reads the entry may read; `label` is the session's.
    """
    return _request(
        PROMOTE,
        principal=_principal(principal),
        domain=_id("domain", domain),
        session=_id("session", session),
        task=_task(task),
        subject=_id("entry", subject),
        author=_principal(author),
        tier=_word("tier", tier, _TIERS),
        to=_word("to", to, _TARGETS),
        why=_flag("why", why),
        classification=_label("classification", classification),
        label=_label("label", label),
    )


def judge(
    action: str, *, principal: str, domain: str, session: str, subject: str, type: str, proposer: str, proposed: int, version: int,
    task: str | None = None,
) -> Request:  # fmt: skip
    """Ask whether a proposal may be approved or declined: of version `proposed` of an entry that stands at `version`. Raises ValueError."""
    return _request(
        _word("action", action, (APPROVE, DECLINE)),
        principal=_principal(principal),
        kind=kind(principal),
        domain=_id("domain", domain),
        session=_id("session", session),
        task=_task(task),
        subject=_id("entry", subject),
        type=_word("type", type, _TYPES),
        proposer=_principal(proposer),
        proposed=_count("proposed", proposed),
        version=_count("version", version),
    )


def admit(
    *, principal: str, domain: str, session: str, requires: Sequence[str], held: Sequence[str] | None, task: str | None = None,
    subject: str | None = None,
) -> Request:  # fmt: skip
    """Ask whether what `principal` files may be claimed without a person's word. Raises ValueError.

    `requires` is what the new task requires, `held` what the filer's held task (`task`) does, None where it holds none;
    `subject` is a task that is there already.
    """
    return _request(
        ADMIT,
        principal=_principal(principal),
        filer=kind(principal),
        domain=_id("domain", domain),
        session=_id("session", session),
        task=_task(task),
        subject=_task(subject),
        requires=_capabilities("requires", requires),
        held=None if held is None else _capabilities("held", held),
    )


class Reach(NamedTuple):
    """What the grants give a tool: whether the tap is one, the methods, and the hosts by pattern with their ceiling."""

    tool: bool
    hosts: Sequence[tuple[str, Label]]
    """`name` or `*.name`, which is any name under it."""
    methods: Sequence[str] = ("GET",)
    loopback: bool = False
    """Whether this machine's loopback is open to it, for a fake in development."""


def fetch(
    *, principal: str, domain: str, session: str, task: str | None, label: Label, tap: str, granted: Reach, method: str, url: str,
    addresses: Sequence[str],
) -> Request:  # fmt: skip
    """Ask whether a tool may send one request, a redirect's hop included; `addresses` is what the host resolves to. Raises ValueError.

    The path and the query are not part of the question: they are what leaves, under the session's label.
    """
    from urllib.parse import urlsplit  # few processes decide on a fetch

    found = urlsplit(_text("url", url))
    if found.username is not None or found.password is not None:
        raise ValueError("url: names a user")
    host = _form("url", (found.hostname or "").removesuffix("."), _HOST)
    if len(addresses) > MANY or len(granted.hosts) > MANY:
        raise ValueError(f"addresses, hosts: more than {MANY}")
    return _request(
        FETCH,
        principal=_principal(principal),
        domain=_id("domain", domain),
        session=_id("session", session),
        task=_task(task),
        label=_label("label", label),
        tap=_form("tap", tap, _NAME),
        tool=_flag("tool", granted.tool),
        method=_form("method", method, _METHOD),
        methods=tuple(sorted({_form("methods", one, _METHOD) for one in granted.methods})),
        scheme=_form("scheme", found.scheme, _NAME),
        host=host,
        port=found.port,
        loopback=_flag("loopback", granted.loopback),
        addresses=tuple(_address(one) for one in addresses),
        reach=tuple(sorted({_label("reach", ceiling) for pattern, ceiling in granted.hosts if _covers(pattern, host)})),
    )


def spend(
    *, principal: str, domain: str, session: str, task: str | None, destination: str, wanted: int, spent: Mapping[str, int],
    limits: Mapping[str, int | None], zone: str = "UTC",
) -> Request:  # fmt: skip
    """Ask whether there is room for a call of `wanted` tokens. Raises ValueError.

    `spent` and `limits` are `{session, day}`; the day is the zone's.
    """
    return _request(
        SPEND,
        principal=_principal(principal),
        domain=_id("domain", domain),
        session=_id("session", session),
        task=_task(task),
        destination=_form("destination", destination, _NAME),
        zone=_form("zone", zone, _ZONE),
        wanted=_count("wanted", wanted, _TOKENS_LIMIT),
        spent={scope: _count(f"spent.{scope}", spent[scope], _TOKENS_LIMIT) for scope in _SCOPES},
        limits={scope: None if limits[scope] is None else _count(f"limits.{scope}", limits[scope], _TOKENS_LIMIT) for scope in _SCOPES},
    )


def replaced(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the `supersedes` of a write comes to, as facts beside it. Raises KeyError or TypeError when it is not of its form.

    `superseding` is how many entries the session will have superseded with these, 0 where there are none; `guarded` are the ids of those
    that are neither raw nor curated, and `elsewhere` has `{entry, other}` of each that is in another domain.
    """
    entries = asked["supersedes"]
    return {
        "superseding": asked["superseded_so_far"] + len(entries) if entries else 0,
        "guarded": [entry["id"] for entry in entries if entry["tier"] not in _REPLACEABLE],
        "elsewhere": [{"entry": entry["id"], "other": entry["domain"]} for entry in entries if entry["domain"] != asked["domain"]],
    }


def exceeded(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a call's `wanted` comes to beside its limits. Raises KeyError or TypeError when it is not of its form.

    `over` has `{scope, limit, left}` of each limit that it would go beyond.
    """
    spent, limits, wanted = asked["spent"], asked["limits"], asked["wanted"]
    return {
        "over": [
            {"scope": scope, "limit": limits[scope], "left": max(0, limits[scope] - spent[scope])}
            for scope in _SCOPES
            if limits[scope] is not None and spent[scope] + wanted > limits[scope]
        ]
    }


FACTS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {WRITE: replaced, SPEND: exceeded}
"""What the host says of an action's request beside its fields: what differs in each comes to few facts, which a policy can ask about."""
BUILDERS: Mapping[str, Callable[..., Request]] = {
    MODEL_CALL: model_call,
    READ: read,
    SERVER_TOOL: server_tool,
    WRITE: write,
    PROMOTE: promote,
    APPROVE: partial(judge, APPROVE),
    DECLINE: partial(judge, DECLINE),
    ADMIT: admit,
    SPEND: spend,
    FETCH: fetch,
    **{action: partial(owner_act, action) for action in sorted(OWNER_ACTS)},
}
"""The builder of each action, called with the fields of its input."""
_DIALECTS = frozenset(map(str, Dialect))
_BILLINGS = frozenset(map(str, Billing))
_ROLES = frozenset(map(str, Role))
_TYPES = frozenset(map(str, EntryType))
_TIERS = frozenset(map(str, Tier))
_REPLACEABLE = (str(Tier.RAW), str(Tier.CURATED))
_SCOPES = ("session", "day")
_TARGETS = frozenset((str(Tier.CURATED), str(Tier.VERIFIED)))


def _request(action: str, **values: Any) -> Request:
    return Request(action, MappingProxyType(values))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected text, found {type(value).__name__}")
    return str(value)


def _checked(name: str, value: object, holds: Callable[[str], object]) -> str:
    text = _text(name, value)
    if not holds(text):
        raise ValueError(f"{name}: not of the expected form: {text[:80]!r}")
    return text


def _form(name: str, value: object, form: re.Pattern[str]) -> str:
    return _checked(name, value, form.fullmatch)


def _word(name: str, value: object, words: Collection[str]) -> str:
    return _checked(name, value, words.__contains__)


def _id(kind: str, value: object) -> str:
    return _checked(kind, value, lambda text: is_id(kind, text))


def _is_subject(text: str) -> bool:
    return any(is_id(kind, text) for kind in ("entry", "held", "session")) or _THING.fullmatch(text) is not None


def _principal(value: object) -> str:
    return _checked("principal", value, is_principal)


def _task(value: object) -> str | None:
    return None if value is None else _id("task", value)


def _label(name: str, value: object) -> str:
    """A plain string, not a Label: a word of the request is what is serialised and compared."""
    return str(Label(_word(name, value, _LABELS)))


_LABELS = frozenset(map(str, Label))


def _capabilities(name: str, values: Sequence[str]) -> tuple[str, ...]:
    if len(values) > MANY:
        raise ValueError(f"{name}: more than {MANY}")
    return tuple(sorted({_form(name, one, _CAPABILITY) for one in values}))


def _covers(pattern: str, host: str) -> bool:
    """Whether a pattern of the grants covers a host: by whole parts of the name, and `*.` stands for one or more of them."""
    name = pattern.lower().removesuffix(".")
    return host.endswith(name[1:]) and len(host) > len(name) - 1 if name.startswith("*.") else host == name


def _address(text: object) -> Mapping[str, Any]:
    from ipaddress import ip_address

    from amem.model.addresses import is_inward

    plain = _text("addresses", text).partition("%")[0]
    address = ip_address(plain)
    mapped = getattr(address, "ipv4_mapped", None) or address
    return {"address": plain, "inward": is_inward(plain), "loopback": mapped.is_loopback}


def _count(name: str, value: object, limit: int = _COUNT_LIMIT) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        raise ValueError(f"{name}: expected a count, found {value!r}")
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name}: expected true or false, found {value!r}")
    return value


def _superseded(entry: Mapping[str, Any]) -> Mapping[str, str]:
    if set(entry) != {"id", "tier", "author", "domain"}:
        raise ValueError(f"supersedes: expected id, tier, author, domain, found {sorted(map(str, entry))}")
    return {
        "id": _id("entry", entry["id"]),
        "tier": _word("supersedes.tier", entry["tier"], _TIERS),
        "author": _principal(entry["author"]),
        "domain": _id("domain", entry["domain"]),
    }

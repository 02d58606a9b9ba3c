"""What another policy would have decided, and what would have allowed what was denied (B50, B51). Pure: the caller has the log.

The log keeps what was asked, so that it can be decided again at the instant it was decided at. A proposal is text for a person: nothing
here changes what is in force.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from amem.model.clock import Clock, now, stamp
from amem.policy.decision import Decision
from amem.policy.door import SAID
from amem.policy.engine import PolicyEngine, Rule
from amem.policy.entries import Policy, Standing
from amem.policy.outline import fields_of
from amem.policy.request import Request
from amem.typed import Any, NamedTuple

EXCEPTION_DAYS = 7
_SINGLE = re.compile(r"(deny contains .*?\}) if (?!\{)(.+)")
_OPENED = re.compile(r"deny contains .*\bif \{\s*")

Line = Mapping[str, Any]
"""A decision, as its line in the log."""


class Changed(NamedTuple):
    """A recorded decision, and what would be decided now."""

    line: Line
    now: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of deciding again."""

    decisions: int
    agree: int
    allow_to_deny: tuple[Changed, ...]
    deny_to_allow: tuple[Changed, ...]
    broken: tuple[Changed, ...]
    """Made by the same version over the same grants, and not the same: an engine that cannot be relied on, or a changed log."""
    not_kept: int
    """Lines that do not say what was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What would have allowed a denied act."""

    kind: str
    """`grant`, `exception` or `rule`."""
    text: str
    """Lines of grants.toml, or the body of a policy entry."""
    widens: tuple[str, ...]
    """What else it would allow, in sentences."""
    policy: str | None = None
    """The id of the policy in `text`."""


def asked(line: Line) -> Request | None:
    """The request of a recorded decision; None where the line does not hold it."""
    if not isinstance(line.get("input"), dict) or not isinstance(line.get("action"), str):
        return None
    return Request(line["action"], {**{name: line.get(name) for name in SAID if name in line or name == "task"}, **line["input"]})


def replay(lines: Iterable[Line], made: Callable[[Clock], PolicyEngine]) -> Replayed:
    """Decide each recorded decision again, at its own instant, by the engine that `made` makes with a clock."""
    instant = [now()]
    engine = made(lambda: instant[0])
    count = agree = not_kept = 0
    changed: dict[str, list[Changed]] = {"allow_to_deny": [], "deny_to_allow": [], "broken": []}
    for line in lines:
        request = asked(line)
        if request is None:
            not_kept += 1
            continue
        count += 1
        instant[0] = datetime.fromisoformat(line["at"])
        found = engine.decide(request)
        same = (line.get("policy_version"), line.get("data_version")) == (engine.version, engine.data_version)
        if same and _answer(line) != (found.allow, found.hold, [reason.code for reason in found.reasons]):
            changed["broken"].append(Changed(line, found))
        elif bool(line["allow"]) != found.allow:
            changed["allow_to_deny" if line["allow"] else "deny_to_allow"].append(Changed(line, found))
        else:
            agree += 1
    return Replayed(decisions=count, agree=agree, not_kept=not_kept, **{name: tuple(each) for name, each in changed.items()})


def suggest(
    line: Line, standings: Sequence[Standing], granted: Mapping[str, Any], made: Callable[[Sequence[Rule]], PolicyEngine], *,
    exception: bool = False, at: datetime,
) -> Proposal | str:  # fmt: skip
    """The narrowest thing that would have allowed a denied act, or why there is none.

    `granted` is the grant of its principal as in grants.toml: `{read, write, capabilities, server_tools}`; `made` makes an engine over
    other rules of the record, to see whether the proposal does it.
    """
    request = asked(line)
    if request is None:
        return "the log does not say what was asked"
    if line["allow"]:
        return "it was allowed"
    known = {one.policy.id: one.policy for one in standings if one.policy is not None and one.status == "in_force"}
    refused = [known[id] for id in line.get("citations", ()) if id in known and known[id].exception_to is None]
    others = [reason for reason in line.get("reasons", ()) if reason.get("policy") not in line.get("citations", ())]
    if refused and others:
        return f"more than the record's policies refused it: {', '.join(sorted({str(one['code']) for one in others}))}"
    if len(refused) > 1:
        return f"several policies refused it: {', '.join(policy.id for policy in refused)}; each needs a proposal of its own"
    if refused:
        if exception or line.get("task"):
            return _exception(refused[0], line, standings, at)
        return _narrowed(refused[0], request, standings, made)
    return _grant(line, request, granted)


def _answer(line: Line) -> tuple[bool, bool, list[str]]:
    return bool(line["allow"]), bool(line.get("hold")), [str(reason.get("code")) for reason in line.get("reasons", ())]


def _exception(policy: Policy, line: Line, standings: Sequence[Standing], at: datetime) -> Proposal | str:
    if policy.layer == 0:
        return f"{policy.id} is of layer 0: there is no exception to it"
    task = line.get("task")
    if task is None:
        return "an exception is for a task, and the session held none"
    id = _free(policy.layer, standings)
    expires_at = stamp(at + timedelta(days=EXCEPTION_DAYS))
    text = _block(
        id=id, layer=policy.layer, rule=f"{policy.id} does not bind {task}.", intent=f"It refused {line['action']}, which the task needs.",
        owner=policy.owner, exception_to=policy.id, task=task, expires_at=expires_at,
    )  # fmt: skip
    widens = (f"whoever holds {task} may do what {policy.id} refuses, until {expires_at[:10]}",)
    return Proposal(kind="exception", text=f"An exception to {policy.id}.\n\n{text}", widens=widens, policy=id)


def _narrowed(
    policy: Policy, request: Request, standings: Sequence[Standing], made: Callable[[Sequence[Rule]], PolicyEngine]
) -> Proposal | str:
    """The policy with this request let off: whoever asks the same again in all that the rule looks at."""
    domain = request.input.get("domain")
    assert policy.rego is not None
    read = fields_of(policy.rego) or frozenset(request.input)
    looked = {name: request.input[name] for name in sorted({*read, "principal"}) if isinstance(request.input.get(name), (str, bool, int))}
    spared = "".join(f"\tinput.{name} == {_word(value)}\n" for name, value in looked.items())
    name = "_spared"
    while name in policy.rego:
        name += "_more"
    head = f'\n{name} if {{\n\tinput.action == "{request.action}"\n{spared}}}\n'
    text = _let_off(policy.rego, name) + head
    rules = [
        Rule(one.policy.id, text if one.policy.id == policy.id else one.policy.rego, one.domain)
        for one in standings
        if one.status == "in_force" and one.policy is not None and one.policy.rego is not None and one.domain == domain
    ]
    try:
        does = made(rules).decide(request).allow
    except Exception as error:  # a text that was put together: whatever is wrong with it, it is no proposal
        return f"{policy.id} could not be narrowed: {error}"
    if not does:
        return f"{policy.id} could not be narrowed to let this through: write it anew"
    block = _block(
        id=policy.id, layer=policy.layer, rule=policy.rule, intent=policy.intent, owner=policy.owner, implements=policy.implements
    )  # fmt: skip
    body = (
        f"{policy.id}, narrowed: {request.input['principal']} is let off for one kind of {request.action}.\n\n{block}\n```rego\n{text}```\n"
    )
    told = ", ".join(f"{name} {value}" for name, value in looked.items())
    return Proposal(kind="rule", text=body, widens=(f"{request.action} with {told}",), policy=policy.id)


def _let_off(rego: str, name: str) -> str:
    """A rule's text with `not <name>` in each denial: second, because the first statement may be the one that names its action."""
    lines: list[str] = []
    opened = False
    for line in rego.rstrip().splitlines():
        single = _SINGLE.fullmatch(line)
        lines += [f"{single[1]} if {{", f"\t{single[2]}", f"\tnot {name}", "}"] if single else [line]
        if opened:
            lines.append(f"\tnot {name}")
        opened = _OPENED.fullmatch(line) is not None
    return "\n".join(lines) + "\n"


def _grant(line: Line, request: Request, granted: Mapping[str, Any]) -> Proposal | str:
    texts: list[str] = []
    widens: list[str] = []
    for reason in line.get("reasons", ()):
        row = _GRANTS.get(str(reason.get("code")))
        if row is None:
            return f"nothing in grants.toml or the record allows it: {reason.get('code')}"
        text, widened = row(reason, request.input, granted)
        if text not in texts:
            texts.append(text)
            widens.append(widened)
    if not texts:
        return "the decision names no reason"
    return Proposal(kind="grant", text="\n".join(texts), widens=tuple(widens))


_Told = tuple[str, str]


def _principal(asked: Mapping[str, Any], granted: Mapping[str, Any], **changed: Any) -> str:
    values = {**{key: granted[key] for key in ("read", "write", "capabilities", "server_tools") if granted.get(key)}, **changed}
    return f"[grants.{asked['domain']}.principals.{_word(asked['principal'])}]\n" + "".join(
        f"{key} = {_word(values[key])}\n" for key in values
    )


def _may_write(reason: Line, asked: Mapping[str, Any], granted: Mapping[str, Any]) -> _Told:
    return _principal(asked, granted, write=True), f"{asked['principal']} may write in {asked['domain']}, and promote and decide there"


def _may_read(reason: Line, asked: Mapping[str, Any], granted: Mapping[str, Any]) -> _Told:
    return _principal(asked, granted, read="public"), f"{asked['principal']} may read what is public in {asked['domain']}"


def _ceiling(reason: Line, asked: Mapping[str, Any], granted: Mapping[str, Any]) -> _Told:
    name, label = asked["destination"], asked["label"]
    return f'[destinations.{name}]\nceiling = "{label}"\n', f"every session that has read up to {label} may send to {name}"


def _tools(reason: Line, asked: Mapping[str, Any], granted: Mapping[str, Any]) -> _Told:
    tools = sorted({*granted.get("server_tools", ()), *asked["tools"]})
    text = _principal(asked, granted, server_tools=tools)
    return text, f"{asked['principal']} may have {', '.join(asked['tools'])} run at the provider, outside the sandbox"


def _admit_own(reason: Line, asked: Mapping[str, Any], granted: Mapping[str, Any]) -> _Told:
    return f"[grants.{asked['domain']}]\nadmit_own = true\n", f"what sessions file in {asked['domain']} from a held task is admitted"


def _supersedes(reason: Line, asked: Mapping[str, Any], granted: Mapping[str, Any]) -> _Told:
    limit = asked["superseded_so_far"] + len(asked["supersedes"])
    return f"[gates]\nmax_supersedes_per_session = {limit}\n", f"every session may replace {limit} entries without a look"


def _tokens(reason: Line, asked: Mapping[str, Any], granted: Mapping[str, Any]) -> _Told:
    scope = str(reason["code"]).removeprefix("spend_")
    limit = asked["spent"][scope] + asked["wanted"]
    name = asked["destination"]
    return f"[spend.{name}]\n{scope}_tokens = {limit}\n", f"{limit} tokens a {scope} may be spent at {name}"


_GRANTS: Mapping[str, Callable[[Line, Mapping[str, Any], Mapping[str, Any]], _Told]] = {
    "no_write_grant": _may_write, "no_read_grant": _may_read, "label_over_ceiling": _ceiling, "no_ceiling": _ceiling,
    "unknown_destination": _ceiling, "server_tool": _tools, "admits_by_hand": _admit_own, "too_many_superseded": _supersedes,
    "spend_session": _tokens, "spend_day": _tokens,
}  # fmt: skip


def _free(layer: int, standings: Sequence[Standing]) -> str:
    taken = {one.id for one in standings}
    return next(id for number in range(1, 1000) if (id := f"pol-L{layer}-{number:03}") not in taken)


def _block(**values: Any) -> str:
    lines = "".join(f"{key} = {_word(value)}\n" for key, value in values.items() if value is not None)
    return f"```policy\n{lines}```\n"


def _word(value: Any) -> str:
    """A value as TOML and Rego both write it."""
    return json.dumps(value, ensure_ascii=False)

"""The reasons a decision can have: code -> how grave it is and the sentence a person is told.

Rows are in the order in which reasons are told. A root's own policy may use codes that are not here; they follow the
known ones and are told by their name. Pure.
"""

from collections.abc import Mapping
from functools import cache
from string import Formatter

from amem.typed import Any, NamedTuple


class Row(NamedTuple):
    """What is known about a reason."""

    sentence: str
    """A template over the reason's facts; an absent fact shows as `?`."""
    hint: str | None = None
    """One command, or None where there is nothing to do."""


REASONS: Mapping[str, Row] = {
    # The host's own: nothing in a policy can remove these.
    "bad_request": Row("the request does not have the shape its action needs: {why}"),
    "policy_error": Row("the policy could not be evaluated ({why}), so the answer is no", "amem policy show"),
    "policy_undefined": Row("the policy gives no decision for {action}, so the answer is no", "amem policy show"),
    "beyond_grant": Row("the policy allows more than grants.toml does: {why}", "amem policy show --diff-builtin"),
    "unknown_action": Row("the policy knows no action {action}", "amem policy show"),
    # Grants.
    "unknown_domain": Row("there is no domain {domain} in grants.toml", "amem doctor"),
    "no_read_grant": Row("{principal} may not read in {domain}", "amem doctor"),
    "no_write_grant": Row("{principal} may not write in {domain}", "amem doctor"),
    "unknown_destination": Row("{destination} is not a destination of grants.toml", "amem doctor"),
    "no_ceiling": Row("{destination} has no ceiling, so nothing may be sent there", "amem doctor"),
    "owner_only": Row("only the owner may {act}, not {principal}"),
    # Labels.
    "label_over_ceiling": Row("the session's label {label} is above the ceiling {ceiling} of {destination}"),
    "label_below_session": Row("{classification} is below the session's label {label}: write it as {label}, or leave it out"),
    # What would go around the sandbox.
    "server_tool": Row(
        "{tool} would run at {destination}, outside the sandbox; server_tools in the grant of {principal} does not have it",
        "amem doctor --config",
    ),
    # The gates on writes.
    "supersede_other_domain": Row("{entry} is in {other}, not in {domain}: an entry is superseded in its own domain"),
    "scan_findings": Row("the text has what only the owner may put into the record: {findings}", "amem quarantine list"),
    "supersede_verified": Row("{entry} is verified: only the owner replaces it", "amem quarantine list"),
    "supersede_hides": Row(
        "in the place of {entry}, which is {was}, it would be {classification}: whoever may not read as high would lose it",
        "amem quarantine list",
    ),
    "too_many_superseded": Row("the session has superseded {so_far} entries; {limit} is the most without a look", "amem quarantine list"),
    # Trust.
    "person_only": Row("only a person approves or declines, not {principal}"),
    "own_proposal": Row("{principal} proposed it: another person approves it"),
    "policy_by_owner": Row("{entry} is a policy: it comes into force when the owner approves it, or proposed it"),
    "version_changed": Row("the proposal is of version {proposed} of {entry}, which is at {version} now: propose it as it stands"),
    "why_below_session": Row("{entry} is {classification} and this session {label}: what it has read may be in the why", "handoff"),
    "promote_own": Row("{principal} wrote {entry}: somebody else promotes it"),
    "tier_not_lower": Row("{entry} is {tier} already"),
    "no_why": Row("say why: what was checked"),
    # Tasks.
    "filed_by_tap": Row("{principal} files what it found: a person admits it", "amem task admit"),
    "irreversible": Row("what is irreversible is admitted by a person, whoever files it", "amem task admit"),
    "requires_more": Row("it asks for {requires}, which the task that {principal} holds does not: a person admits it", "amem task admit"),
    "holds_no_task": Row("{principal} filed it on its own account, holding no task: a person admits it", "amem task admit"),
    "admits_by_hand": Row("in {domain} a person admits each task (admit_own is not set)", "amem task admit"),
    # Tools.
    "not_https": Row("a tool sends over https only, not over {scheme}"),
    "not_a_tool": Row("{tap} is not granted as a tool", "amem doctor --config"),
    "method_not_granted": Row("the grant of {tap} does not name {method}", "amem doctor --config"),
    "no_address": Row("{host} has no address"),
    "inward_address": Row("{host} is at {address}, which is turned inward: no tool goes there"),
    "host_not_granted": Row("{host} is none of the hosts of {tap}", "amem doctor --config"),
    "label_over_reach": Row("the session's label {label} is above what {tap} may send to {host}"),
    # Spend.
    "spend_session": Row(
        "this session has {left} of {limit} tokens left at {destination}, and this call may use {wanted} "
        "(prompt and the most output it asks for)"
    ),
    "spend_day": Row(
        "today ({zone}) has {left} of {limit} tokens left at {destination}, and this call may use {wanted} "
        "(prompt and the most output it asks for)"
    ),
    # Rules that live in the record.
    "record_rule": Row("policy {policy} refuses it"),
}  # fmt: skip

_ORDER = {code: place for place, code in enumerate(REASONS)}


@cache
def _named(code: str) -> tuple[str, ...]:
    """The facts that the sentence of a reason names."""
    row = REASONS.get(code)
    return tuple(name for _, name, _, _ in Formatter().parse(row.sentence) if name) if row else ()


def told(code: str, facts: Mapping[str, Any], asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """The facts of a reason. What its sentence names and a policy leaves out is taken from the request."""
    left = {name: asked[name] for name in _named(code) if name not in facts and name in asked}
    return {**left, **facts} if left else facts


def place(code: str) -> int:
    """Where a reason of this code stands among others."""
    return _ORDER.get(code, len(_ORDER))


def hint(code: str) -> str | None:
    """The command that helps with a reason, or None."""
    row = REASONS.get(code)
    return row.hint if row else None


def sentence(code: str, facts: Mapping[str, Any]) -> str:
    """The sentence of a reason. Facts may come from a hostile request: their control characters are shown as escapes."""
    row = REASONS.get(code)
    if row is not None:
        return _FORMATTER.vformat(row.sentence, (), _Facts(facts))
    told = ", ".join(f"{visible(key)} {_show(value)}" for key, value in facts.items())
    return f"the policy says {visible(code)}" + (f" ({told})" if told else "")


def visible(text: str) -> str:
    """`text` with everything that does not print (controls, bidirectional marks, zero widths) as escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _Facts(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


class _Formatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return _show(value)


_FORMATTER = _Formatter()


def _show(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_show, value))
    return visible(str(value))

"""Policy entries: the rules of the record as values, which of them are in force, and what does not fit among them. Pure.

An entry's body has a fenced `policy` block in TOML and, where a machine can check the rule, a fenced `rego` block that adds denials.
Only what a person approved is in force; an exception is for one task and ends by itself, and there is none to a rule of layer 0.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from amem.model.clock import stamp
from amem.model.entry import Tier
from amem.model.ids import is_id
from amem.model.label import Label
from amem.policy.engine import Exemption, Rule
from amem.typed import Any, NamedTuple

LAYERS = range(4)
_ID = re.compile(r"pol-L([0-3])-\d{3}")
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([A-Za-z]*)[ \t]*")
_TEXT_LIMIT = 4000
_KEYS = frozenset({"id", "layer", "rule", "intent", "owner", "implements", "exception_to", "task", "expires_at", "rubric"})
_WEIGHTS = ("unblock", "day", "curation_floor")
_WEIGHT_LIMIT = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What one entry lays down."""

    id: str
    layer: int
    rule: str
    intent: str
    owner: str
    implements: str | None = None
    """The policy of a higher layer (a smaller number) that this one carries out."""
    exception_to: str | None = None
    """The policy that an exception lifts, for `task` and until `expires_at`."""
    task: str | None = None
    expires_at: str | None = None
    """An instant; a date counts to its end."""
    rubric: Mapping[str, Any] | None = None
    """Weights of the ranking: `origins` by prefix, `unblock`, `day`, `curation_floor`; of layer 1."""
    rego: str | None = None


class Status(StrEnum):
    """Where a policy entry stands."""

    IN_FORCE = "in_force"
    WAITING = "waiting"
    """Not approved, so that it has no effect."""
    EXPIRED = "expired"
    LEFT_OUT = "left_out"
    """Approved, and not fit to be in force; `why` says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A policy entry, and where it stands."""

    entry: str
    domain: str
    tier: Tier
    label: Label
    policy: Policy | None
    """None when the body lays down nothing that can be read."""
    approved_ms: int | None = None
    """When a person approved it."""
    status: Status = Status.WAITING
    why: str | None = None

    @property
    def id(self) -> str:
        """The policy's id, or the entry's where it has none."""
        return self.policy.id if self.policy else self.entry


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """The record's policies as they stand at one moment."""

    standings: tuple[Standing, ...] = ()
    rules: tuple[Rule, ...] = ()
    exemptions: tuple[Exemption, ...] = ()
    rubrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By domain: the last that was approved, with its policy's id as `name`."""


class Finding(NamedTuple):
    """What does not fit."""

    kind: str
    """`implements`, `l0_exception`, `expired`, `unverified` or `refused`."""
    policy: str
    why: str
    against: str | None = None


def parse(body: str) -> Policy:
    """Read the blocks of an entry's body. Raises ValueError that says what is wrong."""
    blocks = _blocks(body)
    found = [text for kind, text in blocks if kind == "policy"]
    rules = [text for kind, text in blocks if kind == "rego"]
    if len(found) != 1 or len(rules) > 1:
        raise ValueError(f"expected one policy block and at most one rego block, found {len(found)} and {len(rules)}")
    try:
        values = tomllib.loads(found[0])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"the policy block is no TOML: {error}") from error
    if unknown := sorted(values.keys() - _KEYS):
        raise ValueError(f"{unknown[0][:40]}: no such key; there are {', '.join(sorted(_KEYS))}")
    id = _text(values, "id")
    if (form := _ID.fullmatch(id)) is None:
        raise ValueError(f"id: expected pol-L<0-3>-<3 digits>, found {id[:40]!r}")
    if values.get("layer", int(form[1])) != int(form[1]):
        raise ValueError(f"layer: {values['layer']!r} is not the one in {id}")
    policy = Policy(
        id=id,
        layer=int(form[1]),
        rule=_text(values, "rule"),
        intent=_text(values, "intent"),
        owner=_text(values, "owner"),
        implements=_other(values, "implements"),
        exception_to=_other(values, "exception_to"),
        task=values.get("task"),
        expires_at=_instant(values.get("expires_at")),
        rubric=_rubric(values.get("rubric"), int(form[1])),
        rego=rules[0] if rules else None,
    )
    excepts = (policy.exception_to, policy.task, policy.expires_at)
    if any(excepts) and not all(excepts):
        raise ValueError("an exception names all of exception_to, task and expires_at")
    if policy.task is not None and not (isinstance(policy.task, str) and is_id("task", policy.task)):
        raise ValueError(f"task: expected a task's id, found {str(policy.task)[:60]!r}")
    if policy.exception_to is not None and (policy.rego is not None or policy.rubric is not None):
        raise ValueError("an exception adds no rule and no rubric")
    return policy


def stand(found: Iterable[Standing], loadable: Callable[[Sequence[Rule]], Mapping[str, str]], at: datetime) -> InForce:
    """Say where each entry stands, given its approval; `loadable` says why rules of one domain may not be loaded, by policy."""
    taken: set[tuple[str, str]] = set()
    standings: list[Standing] = []
    for one in sorted(found, key=lambda one: (one.approved_ms or 0, one.entry), reverse=True):
        standing = _standing(one, taken, at)
        if standing.status is Status.IN_FORCE:
            taken.add((standing.domain, standing.id))
        standings.append(standing)
    rules: list[Rule] = []
    for domain in dict.fromkeys(one.domain for one in standings):
        mine = [rule for one in standings[::-1] if one.domain == domain and (rule := _rule(one)) is not None]
        refused = loadable(mine) if mine else {}
        rules += [rule for rule in mine if rule.policy not in refused]
        standings = [
            replace(one, status=Status.LEFT_OUT, why=refused[one.id])
            if one.domain == domain and one.status is Status.IN_FORCE and one.id in refused
            else one
            for one in standings
        ]
    active = [(one, one.policy) for one in standings if one.status is Status.IN_FORCE and one.policy is not None]
    return InForce(
        standings=tuple(sorted(standings, key=lambda one: (one.domain, one.id, one.entry))),
        rules=tuple(rules),
        exemptions=tuple(
            Exemption(policy.id, one.domain, policy.exception_to, policy.task, policy.expires_at)
            for one, policy in active
            if policy.exception_to is not None and policy.task is not None and policy.expires_at is not None
        ),
        rubrics={one.domain: {**policy.rubric, "name": policy.id} for one, policy in active[::-1] if policy.rubric is not None},
    )


def lint(standings: Sequence[Standing]) -> tuple[Finding, ...]:
    """The conflicts among the policies of a record; each lies on the lower layer, the larger number."""
    known = {(one.domain, one.policy.id): one.policy for one in standings if one.policy is not None}
    return tuple(finding for one in standings for finding in _findings(one, known))


def _findings(one: Standing, known: Mapping[tuple[str, str], Policy]) -> Iterable[Finding]:
    policy = one.policy
    if policy is None:
        yield Finding("refused", one.id, one.why or "lays down nothing that can be read")
        return
    if policy.implements is not None:
        above = known.get((one.domain, policy.implements))
        if above is None:
            yield Finding("implements", one.id, f"implements {policy.implements}, which is not there", policy.implements)
        elif above.layer >= policy.layer:
            why = f"implements {above.id}, which is of layer {above.layer}, not above its own"
            yield Finding("implements", one.id, why, above.id)
    if _of_layer_0(policy.exception_to):
        yield Finding("l0_exception", one.id, f"is an exception to {policy.exception_to}: there is none to layer 0", policy.exception_to)
    match one.status:
        case Status.EXPIRED:
            yield Finding("expired", one.id, f"expired at {policy.expires_at}", policy.exception_to)
        case Status.WAITING:
            yield Finding("unverified", one.id, f"is {one.tier}, so it has no effect")
        case Status.LEFT_OUT if not _of_layer_0(policy.exception_to):
            yield Finding("refused", one.id, one.why or "is not in force")


def _standing(one: Standing, taken: Iterable[tuple[str, str]], at: datetime) -> Standing:
    if one.policy is None:
        return replace(one, status=Status.LEFT_OUT)
    if one.tier is not Tier.VERIFIED:
        return replace(one, status=Status.WAITING)
    if one.approved_ms is None:
        return replace(one, status=Status.LEFT_OUT, why="verified by its file alone: no person approved it as it stands")
    if (one.domain, one.policy.id) in taken:
        return replace(one, status=Status.LEFT_OUT, why="another entry of this id was approved later")
    if _of_layer_0(one.policy.exception_to):
        return replace(one, status=Status.LEFT_OUT, why="there is no exception to a rule of layer 0")
    if one.policy.expires_at is not None and one.policy.expires_at <= stamp(at):
        return replace(one, status=Status.EXPIRED)
    return replace(one, status=Status.IN_FORCE)


def _rule(one: Standing) -> Rule | None:
    if one.status is not Status.IN_FORCE or one.policy is None or one.policy.rego is None:
        return None
    return Rule(one.policy.id, one.policy.rego, one.domain)


def _of_layer_0(policy: str | None) -> bool:
    return policy is not None and policy.startswith("pol-L0-")


def _blocks(body: str) -> list[tuple[str, str]]:
    """The fenced blocks of a Markdown text, by the word after the fence, in one pass."""
    blocks: list[tuple[str, str]] = []
    fence, kind, lines = "", "", list[str]()
    for line in body.splitlines():
        if not fence:
            if (opened := _FENCE.fullmatch(line)) is not None:
                fence, kind, lines = opened[1], opened[2], []
        elif line.rstrip() == fence[0] * max(len(fence), len(line.rstrip())):
            blocks.append((kind, "\n".join(lines) + "\n"))
            fence = ""
        else:
            lines.append(line)
    return blocks


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if not isinstance(value, str) or not 0 < len(value.strip()) <= _TEXT_LIMIT:
        raise ValueError(f"{key}: expected a text of 1 to {_TEXT_LIMIT} characters")
    return value.strip()


def _other(values: Mapping[str, Any], key: str) -> str | None:
    value = values.get(key)
    if value is None or (isinstance(value, str) and _ID.fullmatch(value)):
        return value
    raise ValueError(f"{key}: expected pol-L<0-3>-<3 digits>, found {str(value)[:40]!r}")


def _instant(value: Any) -> str | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value) if len(value) > len("2026-01-01") else date.fromisoformat(value)
        except ValueError:
            raise ValueError(f"expires_at: expected a date or an instant, found {value[:40]!r}") from None
    match value:
        case None:
            return None
        case datetime():
            return stamp(value.replace(tzinfo=UTC) if value.tzinfo is None else value)
        case date():
            return stamp(datetime(value.year, value.month, value.day, tzinfo=UTC) + timedelta(days=1))
        case _:
            raise ValueError("expires_at: expected a date or an instant")


def _rubric(value: Any, layer: int) -> Mapping[str, Any] | None:
    if value is None:
        return None
    if layer != 1:
        raise ValueError("rubric: stands in a policy of layer 1")
    if not isinstance(value, dict) or (unknown := sorted(value.keys() - {"origins", *_WEIGHTS})):
        raise ValueError(
            f"rubric: expected origins, {', '.join(_WEIGHTS)}" + (f", not {unknown[0][:40]}" if isinstance(value, dict) else "")
        )
    origins = value.get("origins", {})
    if not isinstance(origins, dict):
        raise ValueError("rubric.origins: expected weights by the beginning of an origin")
    weights = {key: _weight(key, value[key]) for key in _WEIGHTS if key in value}
    if weights.get("curation_floor", 0.0) > 1 or min(weights.values(), default=0.0) < 0:
        raise ValueError("rubric: unblock and day are from 0, curation_floor from 0 to 1")
    return {**weights, "origins": {str(key): _weight(f"origins.{key}", weight) for key, weight in origins.items()}}


def _weight(key: str, value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not -_WEIGHT_LIMIT <= value <= _WEIGHT_LIMIT:
        raise ValueError(f"rubric.{key}: expected a number of at most {_WEIGHT_LIMIT:g}")
    return float(value)

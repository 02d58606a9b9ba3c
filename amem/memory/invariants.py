"""What must hold of a curation before it lands, whatever a model said (B53), and what is kept of what a model said (B52).

A rule looks at entries and at the names of models alone, so it holds against any writer. A curation that breaks one is refused with the
names of the rules, and nothing is written.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from amem.errors import RefusedError
from amem.logs.schema import ModelDecision
from amem.memory.session import Memory, Session
from amem.model.clock import stamp
from amem.model.entry import Entry, Tier
from amem.model.label import highest
from amem.typed import NamedTuple

ROLES: Mapping[str, bool] = {"decider": True, "recommender": False, "evaluator": False, "generator": False, "router": True}
"""What a judgement is in the role of, and whether code alone may be in it (B52)."""


class Kind(StrEnum):
    """What a curation does."""

    RESUMMARISE = "resummarise"
    MERGE = "merge"
    SPLIT = "split"
    CORRECT = "correct"


KINDS: Mapping[str, Kind] = {
    "librarian:resummarise": Kind.RESUMMARISE,
    "librarian:merge": Kind.MERGE,
    "librarian:split": Kind.SPLIT,
    "librarian:": Kind.CORRECT,
    "check:": Kind.CORRECT,
    "reconcile:": Kind.CORRECT,
}
"""What a session does that holds a task whose origin begins so: the first that fits. Only amem sets an origin."""


class Curation(NamedTuple):
    """A change that a curation proposes: `after` in the place of `before`."""

    kind: Kind
    before: tuple[Entry, ...]
    after: tuple[Entry, ...]
    writer: str | None = None
    """The model that wrote `after`; None where no model did."""
    checker: str | None = None
    """The model that checked it; None where nobody did."""


class Invariant(NamedTuple):
    """A rule: the kinds that it is about, and what says whether it holds."""

    sentence: str
    kinds: frozenset[Kind]
    holds: Callable[[Curation], bool]


_ALL = frozenset(Kind)
INVARIANTS: Mapping[str, Invariant] = {
    "something_changes": Invariant("there is something before and after", _ALL, lambda one: bool(one.before and one.after)),
    "one_domain": Invariant(
        "all of it is of one domain", _ALL, lambda one: len({entry.domain for entry in (*one.before, *one.after)}) == 1
    ),
    "body_identical": Invariant(
        "a re-summary leaves the body byte for byte",
        frozenset({Kind.RESUMMARISE}),
        lambda one: len(one.before) == len(one.after) == 1 and one.before[0].body == one.after[0].body,
    ),
    "type_kept": Invariant(
        "a re-summary or split keeps the type",
        frozenset({Kind.RESUMMARISE, Kind.SPLIT}),
        lambda one: {entry.type for entry in one.before} == {entry.type for entry in one.after},
    ),
    "label_of_all": Invariant(
        "the label is that of the highest of what it is made from, or above",
        _ALL,
        lambda one: not any(highest(old.classification for old in one.before).exceeds(entry.classification) for entry in one.after),
    ),
    "no_tier_rises": Invariant(
        "no tier rises, but that what a curation makes is curated", _ALL, lambda one: all(e.tier is not Tier.VERIFIED for e in one.after)
    ),
    "verified_stays": Invariant(
        "no verified entry is replaced", _ALL, lambda one: all(entry.tier is not Tier.VERIFIED for entry in one.before)
    ),
    "all_replaced": Invariant(
        "what is replaced is named", _ALL, lambda one: all(old.id in entry.supersedes for entry in one.after[:1] for old in one.before)
    ),
    "other_checker": Invariant(
        "the model that checks is another than the one that wrote", _ALL, lambda one: one.checker is None or one.checker != one.writer
    ),
}


def kind(origin: str | None) -> Kind | None:
    """What is curated under a task of this origin; None where its holder is no curator."""
    return next((found for prefix, found in KINDS.items() if (origin or "").startswith(prefix)), None)


def broken(curation: Curation) -> tuple[str, ...]:
    """The names of the rules that a curation breaks."""
    return tuple(name for name, rule in INVARIANTS.items() if curation.kind in rule.kinds and not rule.holds(curation))


def checked(curation: Curation) -> dict[str, bool]:
    """Each rule that is about a curation, and whether it holds: as a model's decision is logged."""
    failed = broken(curation)
    return {name: name not in failed for name, rule in INVARIANTS.items() if curation.kind in rule.kinds}


def require(curation: Curation) -> None:
    """Raise RefusedError, naming the rules that a curation breaks."""
    if failed := broken(curation):
        why = "; ".join(INVARIANTS[name].sentence for name in failed)
        raise RefusedError(f"the {curation.kind} is not made: {why}", reason="invariant", invariants=list(failed))


def decided(
    memory: Memory, session: Session, role: str, verdict: str, *, call: str | None = None, model: str | None = None,
    rubric: str | None = None, rubric_version: str | None = None, confidence: float | None = None, alternatives: Sequence[str] = (),
    curation: Curation | None = None, escalated: bool = False, gate: str | None = None,
) -> None:  # fmt: skip
    """Log what came of a model call of amem's own. Raises RefusedError (a model in a role that is code's), ValueError, OSError."""
    if role not in ROLES:
        raise ValueError(f"role: expected one of {', '.join(ROLES)}, found {role!r}")
    if ROLES[role] and model is not None:
        raise RefusedError(f"a {role} is code, never a model ({model})", reason="invariant", invariants=["code_decides"])
    if confidence is not None and not 0 <= confidence <= 1:
        raise ValueError(f"confidence: expected 0 to 1, found {confidence}")
    memory.append(
        ModelDecision(
            at=stamp(memory.clock()), session=session.id, domain=session.domain, principal=session.principal, role=role, verdict=verdict,
            call=call, model=model, rubric=rubric, rubric_version=rubric_version, confidence=confidence, alternatives=tuple(alternatives),
            invariants=checked(curation) if curation else {}, escalated=escalated or None, gate=gate,
        )
    )  # fmt: skip

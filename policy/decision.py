"""A decision of the policy, as a value. Pure: it is made in `engine` and logged by `door`."""

from collections.abc import Mapping

from amem.policy import reasons
from amem.typed import Any, NamedTuple


class Reason(NamedTuple):
    """Why: a code of `reasons.REASONS` (or a root policy's own) and its facts."""

    code: str
    facts: Mapping[str, Any]

    def sentence(self) -> str:
        """What a person is told."""
        return reasons.sentence(self.code, self.facts)


class Decision(NamedTuple):
    """What the policy says about one request. `allow` is never true beside a reason."""

    id: str
    action: str
    allow: bool
    policy_version: str
    input_digest: str
    result: Mapping[str, Any]
    """Of an allowed read: the filter `{domains, max_label, min_tier}`. Else empty."""
    hold: bool = False
    """Of a write that is not allowed: it goes to the quarantine rather than back to its writer."""
    review: str | None = None
    """Who must look at it: `human`, or None."""
    reasons: tuple[Reason, ...] = ()
    """In the order of `reasons.REASONS`, the gravest first."""
    citations: tuple[str, ...] = ()
    """Ids of the record's policies that refused."""
    data_version: str = ""
    """Of the grants that it was made over."""

    @property
    def code(self) -> str | None:
        """The code of the first reason, or None."""
        return self.reasons[0].code if self.reasons else None

    @property
    def hint(self) -> str | None:
        """The command that helps, or None."""
        return next((found for reason in self.reasons if (found := reasons.hint(reason.code))), None)

    def sentence(self) -> str:
        """What a person is told: `allowed`, or held or refused and why."""
        if self.allow:
            return "allowed"
        why = "; ".join(reason.sentence() for reason in self.reasons) or "no rule allows it"
        return f"{'held' if self.hold else 'refused'}: {why}"

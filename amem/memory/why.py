"""Why an entry is, or is not, served to a principal: each rule in the order in which it is applied.

Nothing is served here and nothing logged.
"""

from amem.model.entry import Status
from amem.model.label import Label, lowest
from amem.policy import request
from amem.policy.engine import PolicyEngine
from amem.record.rows import Row
from amem.settings.grants import Grants
from amem.typed import NamedTuple


class Step(NamedTuple):
    """One rule, what it looked at, and the bound."""

    rule: str
    passes: bool
    value: str
    limit: str


def steps(
    row: Row, principal: str, grants: Grants, engine: PolicyEngine, *, domain: str, handling: Label | None = None
) -> tuple[Step, ...]:
    """Every rule for a principal at work in `domain`; `handling` is its session's, where it has one."""
    grant = grants.grant(row.domain, principal)
    found = [
        Step("grant", grant is not None, principal, f"a grant in {row.domain}"),
        Step("domain", row.domain == domain or grant is not None, row.domain, domain),
    ]
    if grant is None:
        return (*found, _status(row))
    most = lowest(grant.read, *([handling] if handling else []))
    found.append(Step("grant.read", not row.classification.exceeds(grant.read), row.classification, grant.read))
    if handling is not None:
        found.append(Step("session.handling", not row.classification.exceeds(handling), row.classification, handling))
    decision = engine.decide(request.read(principal=principal, domain=row.domain, session="ses-00000000", handling=most))
    found.append(Step("policy", decision.allow, decision.sentence(), decision.policy_version))
    if decision.allow:
        asked = decision.result
        found += [
            Step("policy.domains", row.domain in asked["domains"], row.domain, ", ".join(asked["domains"])),
            Step("policy.max_label", not row.classification.exceeds(Label(asked["max_label"])), row.classification, asked["max_label"]),
            Step("policy.min_tier", row.tier.rank >= type(row.tier)(asked["min_tier"]).rank, row.tier, asked["min_tier"]),
        ]
    return (*found, _status(row))


def _status(row: Row) -> Step:
    said = f"{row.status} by {row.superseded_by}" if row.superseded_by else str(row.status)
    return Step("status", row.status is Status.ACTIVE, said, str(Status.ACTIVE))

"""What sessions, days and completed tasks cost: metered tokens at the owner's prices, everything else in tokens.

Pure over rows that the meter and the ledger gave. Nothing is guessed: a model without a price stays in tokens, plan quota is
never money, and a figure that something is missing from is a floor and says so.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from amem.model.call import Billing
from amem.settings.prices import KINDS, Prices


@dataclass(slots=True)
class Cost:
    """What one session, or one day, cost."""

    usd: Decimal = Decimal(0)
    unpriced: Counter[str] = field(default_factory=Counter)
    """Metered tokens without a price, by model."""
    plan_tokens: int = 0
    uncounted: int = 0
    """Metered calls that were answered and did not say, or not to the end, what they used."""

    @property
    def floor(self) -> bool:
        """Whether there is more to it than `usd`."""
        return bool(self.unpriced) or self.uncounted > 0

    def shown(self) -> dict[str, Any]:
        """The JSON of it."""
        unpriced = [{"model": model, "tokens": tokens} for model, tokens in self.unpriced.most_common()]
        return {"usd": float(self.usd), "floor": self.floor, "unpriced": unpriced, "plan_tokens": self.plan_tokens}


class Closing(NamedTuple):
    """A completed task and the session that wrote its closing handoff; None when no session did."""

    task: str
    title: str
    session: str | None


class TaskCost(NamedTuple):
    """A completed task's share of the session that closed it."""

    task: str
    title: str
    usd: Decimal
    floor: bool

    def shown(self) -> dict[str, Any]:
        """The JSON of it."""
        return {"task": self.task, "title": self.title, "usd": float(self.usd), "floor": self.floor}


def costs(rows: Iterable[Mapping[str, Any]], by: str, prices: Prices) -> dict[str, Cost]:
    """Costs by `session` or `day`, from the meter's rows by that and model; dearest first, then by name."""
    found: dict[str, Cost] = defaultdict(Cost)
    for row in rows:
        cost = found[row[by]]
        tokens = {kind: int(row[kind]) for kind in KINDS}
        if row["billing"] == Billing.PLAN:
            cost.plan_tokens += sum(tokens.values())
            continue
        cost.uncounted += row.get("unmetered", 0) + row.get("partial", 0)
        price = prices.find(row["model"])
        if price is None:
            unpriced = sum(tokens.values())
        else:
            usd, unpriced = price.of(tokens)
            cost.usd += usd
        if unpriced:
            cost.unpriced[row["model"]] += unpriced
    return dict(sorted(found.items(), key=lambda item: (-item[1].usd, item[0])))


def task_costs(closings: Iterable[Closing], sessions: Mapping[str, Cost]) -> list[TaskCost]:
    """The cost of each completed task, in the order given: its session's, shared evenly among the tasks that session completed."""
    known = list(closings)
    shared = Counter(closing.session for closing in known)
    found = []
    for closing in known:
        cost = sessions.get(closing.session or "", Cost())
        found.append(TaskCost(closing.task, closing.title, cost.usd / shared[closing.session], cost.floor))
    return found

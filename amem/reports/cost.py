"""What sessions, days and completed tasks cost: metered tokens at the owner's prices, everything else in tokens.

Pure over rows that the meter and the ledger gave. Nothing is guessed: a model without a price stays in tokens, plan quota is
never money, and a figure that something is missing from is a floor and says so.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from amem.model.call import Billing
from amem.settings.prices import KINDS, Prices
from amem.typed import Any, NamedTuple


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


# ---- beside the gateway's books --------------------------------------------------------


class Books(NamedTuple):
    """What one side says of a model: answered calls, tokens in (cache included) and out."""

    calls: int = 0
    input: int = 0
    output: int = 0


class Reconciled(NamedTuple):
    """A model in both books."""

    model: str
    ours: Books
    theirs: Books
    usd: Decimal
    """What the gateway says it cost."""

    @property
    def agrees(self) -> bool:
        """Whether the two say the same."""
        return self.ours == self.theirs

    def shown(self) -> dict[str, Any]:
        """The JSON of it."""
        return {
            "model": self.model, "agrees": self.agrees, "ours": self.ours._asdict(), "theirs": self.theirs._asdict(),
            "usd": float(self.usd),
        }  # fmt: skip


def spend_log(value: Any, since: str | None = None) -> list[Mapping[str, Any]]:
    """The rows of a gateway's spend log (LiteLLM's `/spend/logs`) that are not older than `since`. Raises ValueError."""
    rows = value.get("data") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise ValueError("expected a list of calls")
    found = []
    for number, row in enumerate(rows, start=1):
        counts = [row.get(name) for name in ("prompt_tokens", "completion_tokens")] if isinstance(row, dict) else []
        if not counts or not all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts):
            raise ValueError(f"row {number}: expected prompt_tokens and completion_tokens")
        if since is None or str(row.get("startTime") or row.get("at") or since)[:19].replace(" ", "T") >= since[:19]:
            found.append(row)
    return found


def reconcile(rows: Iterable[Mapping[str, Any]], log: Iterable[Mapping[str, Any]]) -> list[Reconciled]:
    """Set the meter's rows of a gateway (by model) beside its spend log; what differs first, then by name."""
    ours: dict[str, Books] = defaultdict(Books)
    theirs: dict[str, Books] = defaultdict(Books)
    usd: dict[str, Decimal] = defaultdict(Decimal)
    for row in rows:
        answered = row["calls"] - sum(row.get("status", {}).values())
        if answered:
            taken = row["input"] + row["cache_read"] + row["cache_write"]
            ours[row["model"]] = _added(ours[row["model"]], Books(answered, taken, row["output"]))
    for told in log:
        model = str(told.get("model_group") or told.get("model") or "")
        theirs[model] = _added(theirs[model], Books(1, told["prompt_tokens"], told["completion_tokens"]))
        usd[model] += Decimal(str(told.get("spend", told.get("usd")) or 0))
    found = [Reconciled(model, ours[model], theirs[model], usd[model]) for model in ours.keys() | theirs.keys()]
    return sorted(found, key=lambda one: (one.agrees, one.model))


def _added(one: Books, other: Books) -> Books:
    return Books(*(mine + more for mine, more in zip(one, other, strict=True)))

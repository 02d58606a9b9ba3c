"""What the scripted provider saw: one exchange a request, its JSON line, and the provider's own sum of usage.

The sum is what tests hold `amem usage` against, so it is made here from the answers alone and shares no code with the meter.
"""

import base64
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from amem.model.call import Usage
from amem.typed import Any


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request and what became of it."""

    n: int
    at_s: float
    method: str
    path: str
    query: str
    headers: dict[str, str]
    """Names in lower case; a name given twice has its values joined by a comma."""
    body: bytes
    kind: str
    """A dialect, or what else it is (`models`, `count_tokens`, `unknown`, …)."""
    model: str | None = None
    step: int | None = None
    """The index of the step that answered; -1 for a side call."""
    status: int | None = None
    usage: Usage | None = None
    """What the answer says it used, when there is one."""
    outcome: str = "open"
    """`open`, `held` (at a gate, or stalled), then for good: `sent`, `failed` (an HTTP error), `cut`, `garbage`, `error` or
    `gone` (the client went first)."""

    @property
    def json(self) -> Any:
        """The request's body, decoded. Raises ValueError when it is not JSON."""
        return json.loads(self.body)

    def line(self) -> dict[str, Any]:
        """The exchange as one JSON line of the log; absent rather than null."""
        values = {key: value for key, value in asdict(self).items() if value is not None and key != "body"}
        if self.usage is not None:
            values["usage"] = self.usage._asdict()
        try:
            return values | {"body": self.body.decode()}
        except UnicodeDecodeError:
            return values | {"body_b64": base64.b64encode(self.body).decode()}


def read_log(path: Path) -> list[Exchange]:
    """Read the log of a provider that ran as a program."""
    exchanges = []
    for line in path.read_text().splitlines():
        values = json.loads(line)
        body = base64.b64decode(values.pop("body_b64")) if "body_b64" in values else values.pop("body").encode()
        usage = Usage(**values.pop("usage")) if "usage" in values else None
        exchanges.append(Exchange(**values, body=body, usage=usage))
    return exchanges


def totals(exchanges: Iterable[Exchange]) -> dict[tuple[str, str], Usage]:
    """Sum the usage of the answers that were sent whole, per dialect and model."""
    sums: dict[tuple[str, str], Usage] = {}
    for exchange in exchanges:
        if exchange.outcome == "sent" and exchange.usage is not None:
            key, used = (exchange.kind, exchange.model or ""), exchange.usage
            sums[key] = _add(sums[key], used) if key in sums else used
    return sums


def _add(a: Usage, b: Usage) -> Usage:
    return Usage(
        input=a.input + b.input,
        output=a.output + b.output,
        cache_read=a.cache_read + b.cache_read,
        cache_write=a.cache_write + b.cache_write,
        reasoning=None if a.reasoning is None and b.reasoning is None else (a.reasoning or 0) + (b.reasoning or 0),
    )

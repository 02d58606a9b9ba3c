"""`prices.toml` as frozen values: US dollars per million tokens, by model.

Nothing is guessed. A model that no row names has no price, and neither have tokens of a kind that its row leaves out.
"""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from amem.settings.toml import Table, read
from amem.typed import NamedTuple

KINDS = ("input", "output", "cache_read", "cache_write")
_MILLION = Decimal(1_000_000)


class Priced(NamedTuple):
    """What tokens came to: exact dollars, and how many tokens had no price."""

    usd: Decimal
    unpriced: int


class Price(NamedTuple):
    """Dollars per million tokens of each kind; None where the owner did not say."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None

    def of(self, tokens: Mapping[str, int]) -> Priced:
        """What tokens of each of `KINDS` come to."""
        usd, unpriced = Decimal(0), 0
        for kind, price in zip(KINDS, self, strict=True):
            count = tokens[kind]
            if price is None:
                unpriced += count
            else:
                usd += price * count / _MILLION
        return Priced(usd, unpriced)


class Prices(NamedTuple):
    """The whole table."""

    models: Mapping[str, Price]

    def find(self, model: str) -> Price | None:
        """The price of a model: its exact name, else the longest name that it starts with, else None."""
        exact = self.models.get(model)
        if exact is not None:
            return exact
        matching = [name for name in self.models if model.startswith(name)]
        return self.models[max(matching, key=len)] if matching else None


def load(path: Path) -> Prices:
    """Read and check `prices.toml`; no file is an empty table. Raises ConfigError: `file: key: why`."""
    if not path.exists():
        return Prices({})
    top = read(path)
    models = {name: _price(top, name, table) for name, table in top.table("models").tables()}
    top.finish()
    return Prices(models)


def _price(top: Table, name: str, table: Table) -> Price:
    if not name:
        raise top.error('models.""', "a price needs a model's name: an empty one would price every model")
    read, written = _dollars(table, "cache_read"), _dollars(table, "cache_write")
    price = Price(_needed(table, "input"), _needed(table, "output"), read, written)
    table.finish()
    return price


def _needed(table: Table, key: str) -> Decimal:
    value = _dollars(table, key)
    if value is None:
        raise table.error(key, "is required")
    return value


def _dollars(table: Table, key: str) -> Decimal | None:
    value = table.number(key)
    if value is None:
        return None
    # By its shortest text: 0.1 is then a tenth, not the nearest binary fraction.
    dollars = Decimal(repr(value))
    if not dollars.is_finite() or dollars < 0:
        raise table.error(key, f"expected dollars per million tokens, found {value!r}")
    return dollars

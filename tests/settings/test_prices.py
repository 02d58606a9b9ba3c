"""Prices: which row prices a model, exact money, and that a wrong table is refused by name."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.errors import ConfigError
from amem.settings import prices
from amem.settings.prices import Price, Prices

TABLE = """\
[models."claude-sonnet-5"]
input = 3
output = 15.00
cache_read = 0.30
cache_write = 3.75
[models."claude-sonnet-5-5"]
input = 2.5
output = 10
[models."claude"]
input = 100
output = 100
"""


def load(tmp_path: Path, text: str) -> Prices:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    return prices.load(path)


def test_the_exact_name_wins_then_the_longest_that_the_model_starts_with(tmp_path: Path) -> None:
    table = load(tmp_path, TABLE)
    inputs = {
        name: found.input if (found := table.find(name)) else None
        for name in ("claude-sonnet-5", "claude-sonnet-5-20261101", "claude-sonnet-5-5-x", "claude-opus", "gpt-5", "my-claude", "")
    }
    assert inputs == {
        "claude-sonnet-5": 3, "claude-sonnet-5-20261101": 3, "claude-sonnet-5-5-x": Decimal("2.5"), "claude-opus": 100,
        "gpt-5": None, "my-claude": None, "": None,
    }  # fmt: skip


def test_money_is_exact_and_a_kind_without_a_price_stays_in_tokens() -> None:
    price = Price(Decimal("0.1"), Decimal("0.2"), cache_read=Decimal("0.05"))
    used = {"input": 3, "output": 1, "cache_read": 2, "cache_write": 7}
    assert price.of(used) == (Decimal("0.0000006"), 7)


@given(st.lists(st.text("ab", min_size=1, max_size=5)), st.text("ab", max_size=8))
def test_the_match_is_the_longest_prefix(names: list[str], model: str) -> None:
    table = Prices({name: Price(Decimal(len(name)), Decimal(0)) for name in names})
    lengths = [len(name) for name in names if model[: len(name)] == name]
    found = table.find(model)
    assert (found.input if found else None) == (max(lengths) if lengths else None)


def test_no_file_prices_nothing(tmp_path: Path) -> None:
    assert prices.load(tmp_path / "prices.toml") == Prices({})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[models."m"]\ninput = 1', r"models\.m\.output: is required"),
        ('[models."m"]\ninput = 1\noutput = 2\ncach_read = 1', r"models\.m\.cach_read: unknown key; did you mean cache_read\?"),
        ('[models."m"]\ninput = "1"\noutput = 2', r"models\.m\.input: expected a number, found '1'"),
        ('[models."m"]\ninput = true\noutput = 2', r"models\.m\.input: expected a number, found True"),
        ('[models."m"]\ninput = -1\noutput = 2', r"models\.m\.input: expected dollars per million tokens, found -1"),
        ('[models."m"]\ninput = nan\noutput = 2', r"models\.m\.input: expected dollars"),
        ('[models."m"]\ninput = 1\noutput = inf', r"models\.m\.output: expected dollars"),
        ('[models.""]\ninput = 1\noutput = 2', r"an empty one would price every model"),
        ("[model.m]\ninput = 1", r"model: unknown key; did you mean models\?"),
    ],
)
def test_a_wrong_table_is_refused_by_name(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=rf"prices\.toml: .*{why}"):
        load(tmp_path, text)

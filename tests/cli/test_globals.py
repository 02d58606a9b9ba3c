"""The flags that may stand anywhere before `--`."""

import pytest

from amem.cli.globals import Globals, split
from amem.errors import UsageError


@pytest.mark.parametrize(
    ("argv", "flags", "rest"),
    [
        (["list"], Globals(), ["list"]),
        (["--root", "/r", "list", "--json"], Globals(root="/r", json=True), ["list"]),
        (["list", "--root=/r", "--limit", "3"], Globals(root="/r"), ["list", "--limit", "3"]),
        (["--as", "human:a:b", "--no-color", "get", "x"], Globals(principal="human:a:b", color=False), ["get", "x"]),
        (["launch", "--", "prog", "--json", "--root", "x"], Globals(), ["launch", "--", "prog", "--json", "--root", "x"]),
        (["search", "--", "--json"], Globals(), ["search", "--", "--json"]),
    ],
)
def test_they_are_taken_off_and_the_rest_keeps_its_order(argv: list[str], flags: Globals, rest: list[str]) -> None:
    assert split(argv) == (flags, rest)


@pytest.mark.parametrize("argv", [["list", "--root"], ["--as="], ["--root", ""]])
def test_one_without_its_value_is_refused(argv: list[str]) -> None:
    with pytest.raises(UsageError, match="needs a value"):
        split(argv)

"""Flags that several commands share."""

import pytest

from tests.commands.conftest import Amem

ENTRY = "mem-me-0123456789ab"


@pytest.mark.parametrize(
    "words",
    [
        ("erase", ENTRY, "--yes", "--why"), ("contain", ENTRY, "--yes", "--why"), ("demote", ENTRY, "--why"),
        ("declassify", "entry", ENTRY, "--to", "public", "--yes", "--why"),
        ("transcript", "erase", "ses-01234567", "--yes", "--reason"),
    ],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
@pytest.mark.parametrize("why", ["", " \t"])
def test_an_act_that_is_logged_has_a_reason_in_words(amem: Amem, words: tuple[str, ...], why: str) -> None:
    code, out, err = amem(*words, why)
    assert code == 2 and out is None and "an empty reason" in err

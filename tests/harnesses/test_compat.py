"""The compatibility table says what the tables and the tests say."""

from pathlib import Path

import pytest

from amem.harnesses import compat, registry

DOCUMENT = Path(__file__).parents[2] / "docs" / "harnesses.md"


def test_the_document_is_what_the_tables_say() -> None:
    assert DOCUMENT.read_text() == compat.document(), "run: python -m amem.harnesses.compat > docs/harnesses.md"


@pytest.mark.parametrize("name", registry.names())
def test_every_mode_says_how_it_was_shown_and_no_other(name: str) -> None:
    proof = {key: value for key, value in compat.shown()[name].items() if key not in ("notes", "tries")}
    assert set(proof) == set(registry.load(name).auth)
    assert set(proof.values()) <= {"real", "golden", "not proven here"}


@pytest.mark.parametrize("name", sorted(registry.pins().keys() - {"node"}))
def test_every_program_that_can_be_run_says_how_often_it_tries(name: str) -> None:
    assert tuple(compat.shown()[name]["tries"]) == compat.FAULTS


def test_no_harness_is_shown_that_there_is_not() -> None:
    assert set(compat.shown()) == set(registry.names())

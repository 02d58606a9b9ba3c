"""A session that runs into a limit: ended, and told which, in words, in `--json` and in its row."""

import sys

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import Place
from tests.sandbox.test_limits import FORKS, HOLDS

CASES = [
    ("memory", 137, ("--max-memory", "256M"), (sys.executable, "-c", HOLDS, "60", "8"), "used up its memory (256M"),
    ("processes", 7, ("--max-procs", "40"), (sys.executable, "-c", FORKS, "200"), "used up its processes (40"),
    ("file_size", 153, ("--max-file-size", "1M"), ("sh", "-c", "exec cat /dev/zero > big"), "wrote a file beyond the limit (1M"),
    ("timeout", 124, ("--timeout", "1s"), ("sleep", "600"), "ended by its time limit"),
]


@pytest.mark.parametrize(("reason", "code", "flags", "program", "words"), CASES, ids=[case[0] for case in CASES])
def test_the_limit_is_named(
    place: Place, provider: Running, reason: str, code: int, flags: tuple[str, ...], program: tuple[str, ...], words: str
) -> None:
    place.destination(provider.url)
    done = place.launch(*flags, "--json", "--", *program)
    assert done.code == code, done.err
    assert words in done.err
    assert done.json["reason"] == reason
    row = place.amem("session", "show", done.json["id"], "--json").json
    assert (row["reason"], row["exit"]) == (reason, code)


def test_limits_of_the_root_hold_where_no_flag_says_otherwise(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    grants = place.root / "grants.toml"
    grants.write_text(grants.read_text().replace('file_size = "8G"', 'file_size = "1M"'))
    program = ("sh", "-c", "exec head -c 2000000 /dev/zero > big")
    assert place.launch("--json", "--", *program).json["reason"] == "file_size"
    assert place.launch("--max-file-size", "1G", "--", *program).code == 0


def test_a_harness_that_fails_for_reasons_of_its_own_ran_into_no_limit(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    assert place.launch("--json", "--", "sh", "-c", "exit 9").json["reason"] == "harness"
    assert place.launch("--json", "--", "sh", "-c", "kill -KILL $$").json["reason"] == "harness"


def test_a_limit_below_what_a_program_needs_is_a_usage_error(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    done = place.launch("--max-memory", "1M", "--", "true")
    assert done.code == 2 and "--max-memory 1M" in done.err

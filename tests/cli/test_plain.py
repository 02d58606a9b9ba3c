"""Plain command lines: what is read without click is what click reads, and whatever is odd is left to click."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.cli import plain
from amem.commands import launch, launch_line


def by_click(words: list[str]) -> dict[str, object] | None:
    """What click makes of a launch's words; None where it complains or shows help."""
    try:
        return launch_line.command.make_context("launch", list(words)).params
    except (click.ClickException, click.exceptions.Exit):
        return None


def plainly(words: list[str]) -> dict[str, object] | None:
    return plain.read(launch.FLAGS, words, launch.REST)


NAMES = [name for flag in launch.FLAGS for name in (flag.name, flag.off) if name is not None]
VALUES = [
    "claude", "auto", "ro", "rw", "restricted", "0", "1", "16", "8080", "65536", "4G", "90s", "2h", ".", "/a b", "",
    "-", "--", "-x", "ü", "٣",
]  # fmt: skip
WORDS = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(VALUES),
    st.builds("=".join, st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES))),
    st.sampled_from(["--help", "-h", "--harn", "--no-such", "sub"]),
    st.text(max_size=4),
)
PAIRS = st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)).map(list)


@given(st.lists(st.one_of(WORDS.map(lambda word: [word]), PAIRS), max_size=8))
def test_what_is_read_plainly_click_reads_the_same(parts: list[list[str]]) -> None:
    words = [word for part in parts for word in part]
    found = plainly(words)
    assert found is None or found == by_click(words)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--harness command -- true",
        "--harness=command --workdir=. -- sh -c 'true' -- --harness x",
        "--harness codex --auth key --prompt do --port 80 --port 81 --host-port 5432 --ro a --ro b --rw c",
        "--harness claude --snapshot --timeout 15m --max-procs 7 --max-memory 2G --max-tmp 64M --label internal --backend namespaces",
        "--harness claude --snapshot --no-snapshot --unconfined --dry-run --git-config rw --git-config ro --model a=b",
    ],
)
def test_usual_lines_are_plain(line: str) -> None:
    words = line.split()
    assert plainly(words) == by_click(words) is not None


@pytest.mark.parametrize(
    "line",
    [
        "--help", "-h", "--harn command", "--no-such", "--harness", "--prompt -", "--prompt -x", "--snapshot=yes", "stray",
        "--harness command stray -- true", "--port 0", "--port 65536", "--port x", "--port ٣", "--max-files 15", "--max-memory lots",
        "--timeout soon", "--backend none", "--label secret", "--harness -- true",
    ],
)  # fmt: skip
def test_what_is_odd_is_left_to_click(line: str) -> None:
    assert plainly(line.split()) is None

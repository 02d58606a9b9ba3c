"""What is printed: 80 columns, control characters visible, errors with the command that helps."""

import json

import pytest

from amem.cli import output
from amem.errors import UnavailableError


def test_a_table_fits_80_columns_and_numbers_stand_right() -> None:
    text = output.table(["id", "calls", "title"], [["mem-1", 7, "t" * 200], ["mem-2", 1200, "short"]])
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].startswith("mem-1      7  ttt") and lines[1].endswith("…")
    assert lines[2].startswith("mem-2   1200  short")


@pytest.mark.parametrize("title", ["標題" * 60, "é" * 90, "e\u0301" * 90, "標e\u0301a" * 50])
def test_a_table_fits_80_columns_in_any_script(title: str) -> None:
    lines = output.table(["id", "title", "n"], [["mem-1", title, 7], ["mem-2", "short", 12]], stretch=1).splitlines()
    assert [output._columns(line) for line in lines] == [80, 80, 80]
    assert "…" in lines[1]


def test_a_row_that_is_shown_whole_goes_on_below_in_its_column() -> None:
    why = f"not needed: {'a word and ' * 12}/{'long' * 20}/file 標{'題' * 40}"
    heading, *lines = output.table(["state", "why"], [["ok", why], ["weak", why], ["ok", "short"]], whole={0, 2}).splitlines()
    assert heading == "state  why" and all(output._columns(line) <= 80 for line in lines)
    first, cut, last = "ok     ", "weak   ", "ok     short"
    at = next(at for at, line in enumerate(lines) if line.startswith(cut))
    assert lines[0].startswith(first) and all(line.startswith(" " * 7) for line in lines[1:at])
    assert "".join(line[7:] for line in lines[:at]).replace(" ", "") == why.replace(" ", "")
    assert lines[at].endswith("…") and lines[at + 1 :] == [last]


def test_an_empty_table_is_its_heading() -> None:
    assert output.table(["id", "title"], []) == "id  title"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï 日本", "plain ünï 日本"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("bell\x07 del\x7f c1\x9b", "bell\\x07 del\\x7f c1\\x9b"),
        ("line\n\ttab", "line\n\ttab"),
    ],
)
def test_control_characters_are_made_visible(text: str, shown: str) -> None:
    assert output.visible(text) == shown


def test_a_title_cannot_break_the_line_of_a_table() -> None:
    assert output.one_line("a\nb\r\x1b]0;x\x07") == "a b \\x1b]0;x\\x07"


def test_an_error_names_the_command_that_helps(capsys: pytest.CaptureFixture[str]) -> None:
    output.fail(UnavailableError("no key for anthropic", hint="export ANTHROPIC_API_KEY=…", destination="anthropic"), as_json=False)
    assert capsys.readouterr() == ("", "amem: no key for anthropic\ntry: export ANTHROPIC_API_KEY=…\n")


def test_an_error_as_json_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    output.fail(UnavailableError("no key", hint="x", destination="anthropic"), as_json=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err) == {"error": {"code": "unavailable", "message": "no key", "hint": "x", "destination": "anthropic"}}

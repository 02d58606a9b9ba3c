"""docs/commands.md is what the commands say of themselves."""

from pathlib import Path

import click

from amem.cli import reference
from tests.cli.test_main import leaves

DOCUMENT = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_document_is_the_commands() -> None:
    assert DOCUMENT.read_text() == reference.document(), "run: python -m amem.cli.reference > docs/commands.md"


def test_every_flag_of_every_command_is_in_it() -> None:
    text = DOCUMENT.read_text()
    for words, command in leaves():
        if isinstance(command, click.Group) or command.hidden:
            continue
        section = text.partition(f"### `{' '.join(['amem', *words])}")[2].partition("\n### ")[0]
        assert section, words
        if words == ("work",):
            section += text.partition("### `amem launch")[2].partition("\n### ")[0]
        shown = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
        assert [flag for one in shown for flag in one.opts if flag not in section] == [], words

"""The reference of docs/commands.md, written from the commands themselves: `python -m amem.cli.reference`."""

from collections.abc import Iterator

import click

from amem.cli.group import ROOT_GROUP
from amem.cli.table import COMMANDS

INTRODUCTION = """\
# Commands

Written by `python -m amem.cli.reference` from the commands themselves; a test fails when it is stale. `amem COMMAND --help` says the same,
with examples.

Everywhere: `--root PATH` (else `AMEM_ROOT`, else `~/.amem`), `--json` (one document on stdout; of an error, one line on stderr and nothing
on stdout), `--no-color`, `--as PRINCIPAL`, `--version`, `--help`. An exit code is 0 when it is done, 1 for what is not there or in the way,
2 for a wrong command line or setting, 3 when the answer is no, 130 for Ctrl-C; `launch` and `work` have [more](launch.md#how-it-ends).
"""


def document() -> str:
    """The whole of docs/commands.md."""
    parts = [INTRODUCTION]
    for group in dict.fromkeys(row.group for row in COMMANDS.values()):
        parts.append(f"## {group}\n")
        parts += [_section(context) for name, row in COMMANDS.items() if row.group == group for context in _leaves(name)]
    return "\n".join(parts)


def _leaves(name: str) -> Iterator[click.Context]:
    """The command of that name, or each command of the group."""
    context = click.Context(ROOT_GROUP, info_name="amem")
    command = ROOT_GROUP.get_command(context, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=context)
    if not isinstance(command, click.Group):
        yield context
        return
    for each in command.commands.values():
        if not each.hidden:
            yield click.Context(each, info_name=each.name, parent=context)


def _section(context: click.Context) -> str:
    command = context.command
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    lines = [f"### `{' '.join([context.command_path, *pieces])}`\n", *(f"{part}\n" for part in _paragraphs(command.help or ""))]
    flags = [line for parameter in command.params if (line := _flag(context, parameter)) is not None]
    if context.command_path == "amem work":
        launch = next(_leaves("launch"))
        of_launch = {_flag(launch, parameter) for parameter in launch.command.params}
        flags = [
            "- the flags of [`amem launch`](#amem-launch----args) but for `--prompt`",
            *(line for line in flags if line not in of_launch),
        ]
    return "\n".join([*lines, *flags]) + ("\n" if flags else "")


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def _flag(context: click.Context, parameter: click.Parameter) -> str | None:
    """A flag in one line; None for what is no flag, or is hidden."""
    if not isinstance(parameter, click.Option) or parameter.hidden:
        return None
    record = parameter.get_help_record(context)
    assert record is not None
    names, text = record
    return f"- `{' '.join(names.split())}`: {' '.join(text.split())}"


if __name__ == "__main__":
    print(document(), end="")

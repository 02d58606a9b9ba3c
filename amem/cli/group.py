"""The lazy click group: a command's module is imported when the command is called, and no sooner."""

import importlib

import click

from amem import __version__, exits
from amem.cli.context import Context, of_command
from amem.cli.globals import Globals
from amem.cli.table import COMMANDS, overview
from amem.errors import AmemError, UsageError
from amem.settings.root import check_environment, near
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.sandbox.child import Stage


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        command: click.Command = getattr(importlib.import_module(row.module), row.attribute)
        for each in (command, *(command.commands.values() if isinstance(command, click.Group) else ())):
            each.epilog = _laid_out(each.epilog)
        return command

    def get_help(self, ctx: click.Context) -> str:
        return overview(__version__)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UsageError(f"{args[0]}: no such command{near(args[0], tuple(COMMANDS))}", hint="amem --help")
        return super().resolve_command(ctx, args)


def _laid_out(epilog: str | None) -> str | None:
    """Examples, written in one line with four spaces between, each on a line of its own: click would break them in the middle."""
    if epilog is None or "\b" in epilog:
        return epilog
    head, _, examples = epilog.partition(": ")
    return "\b\n" + "\n  ".join([f"{head}:", *examples.split("    ")])


ROOT_GROUP = _Group(name="amem", help="AI coding harnesses in a sandbox, with metered egress and one shared memory.")


def invoke(flags: Globals, argv: list[str], stage: "Stage | None") -> int:
    """Run a command line whose global flags were taken off. Raises AmemError; a command's return value is the exit code."""
    import os

    if flags.version:
        click.echo(f"amem {__version__}")
        return exits.DONE
    check_environment(os.environ)
    context = Context(flags, os.environ, stage)
    try:
        with of_command(_path(argv)):
            code: Any = ROOT_GROUP.main(argv, prog_name="amem", standalone_mode=False, obj=context)
    except click.exceptions.Abort:
        return exits.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        assert error.ctx is not None and isinstance(error.ctx.command, click.Group)
        if flags.json and error.ctx.parent is not None:  # a help text is no document
            known = ", ".join(error.ctx.command.list_commands(error.ctx))
            raise UsageError(
                f"{error.ctx.command_path}: which command? there are {known}", hint=f"{error.ctx.command_path} --help"
            ) from error
        click.echo(error.format_message())
        return exits.DONE
    except click.ClickException as error:
        raise _usage(error, _path(argv)) from error
    return code if isinstance(code, int) else exits.DONE


def _path(argv: list[str]) -> str:
    """The command that a command line names."""
    words = [] if not argv or argv[0] not in COMMANDS else argv[: 2 if COMMANDS[argv[0]].attribute == "group" else 1]
    return " ".join(["amem", *(word for word in words if not word.startswith("-"))])


def _usage(error: click.ClickException, path: str) -> AmemError:
    """Click's complaint in our words: what is wrong, and the command that shows what is right."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        path = error.ctx.command_path
    return UsageError(" ".join(error.format_message().rstrip(".").split()), hint=f"{path} --help")

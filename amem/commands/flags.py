"""The flags that many commands share, each read into its value once."""

import sys
from collections.abc import Callable, Iterable
from datetime import datetime

import click

from amem.cli.context import Context
from amem.cli.output import one_line
from amem.cli.plain import DOMAIN, Flag
from amem.errors import RefusedError, UsageError
from amem.model import clock
from amem.model.ids import is_id
from amem.model.label import Label
from amem.settings.grants import size_bytes
from amem.typed import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


FC = TypeVar("FC", bound="Callable[..., Any] | click.Command")


class Parsed(click.ParamType[Any]):
    """A value read by a function whose ValueError is the reason."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the value."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _instant(text: str) -> datetime:
    return clock.since(text, clock.now())


DURATION = Parsed("duration", clock.duration_s)
SIZE = Parsed("size", size_bytes)
LABELS = click.Choice([each.value for each in Label])


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("an empty reason tells nobody anything")
    return text


REASON = Parsed("text", _said)
"""Of an act that is logged: some words."""


def entry_id(text: str) -> str:
    """The text, if it has the form of an entry's id. Raises UsageError."""
    if not is_id("entry", text):
        raise UsageError(f"{text[:60]}: expected an entry's id, mem-<domain>-<12 letters or digits>", hint="amem list")
    return text


entry = click.argument("id", callback=lambda _context, _argument, value: value if value is None else entry_id(value))


def option(flag: Flag) -> Callable[[FC], FC]:
    """A row of a table of flags as click's option."""
    how: dict[str, Any] = {"metavar": flag.metavar, "help": flag.help, "hidden": flag.hidden, "show_default": flag.shows_default or None}
    if flag.switch:
        names = flag.name if flag.off is None else f"{flag.name}/{flag.off}"
        return click.option(names, flag.value_name, is_flag=True, default=flag.initial, **how)
    if flag.choices:
        how["type"] = click.Choice(flag.choices)
    elif flag.numbers is not None:
        how["type"] = click.IntRange(*flag.numbers)
    elif flag.parse is not None:
        how["type"] = Parsed(flag.kind, flag.parse)
    return click.option(flag.name, flag.value_name, multiple=flag.many, default=None if flag.many else flag.default, **how)


def from_table(table: Iterable[Flag]) -> Callable[[FC], FC]:
    """All options of a table, in its order."""

    def declared(command: FC) -> FC:
        for flag in reversed(tuple(table)):
            command = option(flag)(command)
        return command

    return declared


domain = option(DOMAIN)
since = click.option("--since", type=Parsed("when", _instant), metavar="WHEN", help="2026-11-01, an instant, or 90m 36h 7d 4w back.")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):  # what a database still takes as a number
        raise ValueError(f"expected a whole number from 0 to 999999999, found {text[:40]!r}")
    return int(text)


COUNT = Parsed("number", _count)
limit = click.option("--limit", type=COUNT, metavar="N", default=50, show_default=True, help="0 is all.")
dry_run = click.option("--dry-run", is_flag=True, help="Say what would change; change nothing.")
yes = click.option("--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, yes: bool) -> None:
    """Ask on the terminal before something is changed that is not easily undone. Raises UsageError without a yes."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{question} There is no terminal to ask on", hint="add --yes")
    if not click.confirm(one_line(question), default=False, err=True):
        raise UsageError("not done: it was not confirmed", hint="")


def owner_alone(context: Context, what: str) -> None:
    """Keep what the owner alone may see from other persons. Raises RefusedError."""
    if context.principal != context.grants.owner:
        raise RefusedError(f"{what} is shown to the owner alone, not to {context.principal}")


def zone(context: Context) -> "ZoneInfo":
    """Whose midnight starts a day in what is shown."""
    from zoneinfo import ZoneInfo

    return ZoneInfo(context.grants.spend_zone)

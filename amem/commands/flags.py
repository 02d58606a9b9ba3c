"""The flags that many commands share, each read into its value once."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from amem.model import clock
from amem.model.entry import EntryType, Tier
from amem.model.label import Label
from amem.settings.grants import size_bytes


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
TYPES = click.Choice([each.value for each in EntryType])
TIERS = click.Choice([each.value for each in Tier])
LABELS = click.Choice([each.value for each in Label])

domain = click.option("--domain", metavar="DOM", help="Default: the root's only one, else default_domain.")
since = click.option("--since", type=Parsed("when", _instant), metavar="WHEN", help="2026-11-01, an instant, or 90m 36h 7d 4w back.")
limit = click.option("--limit", type=click.IntRange(0), default=50, show_default=True, help="0 is all.")

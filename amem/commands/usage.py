"""`amem usage`: tokens by destination and model, as the egress or the harness counted them."""

import sys
from collections import Counter
from datetime import datetime

import click

from amem.cli.context import Context
from amem.cli.output import print_json, table
from amem.commands import flags
from amem.model.call import ObservedBy

BY = ("destination", "model", "session", "day")


@click.command(epilog="Examples: amem usage --since 7d    amem usage --by session --json")
@click.option("--by", "by", multiple=True, type=click.Choice(BY), help="What to add up by; default: destination and model.")
@click.option("--session", metavar="ID")
@click.option("--source", type=click.Choice(["egress", "harness"]))
@flags.since
@click.pass_obj
def command(context: Context, by: tuple[str, ...], session: str | None, source: str | None, since: datetime | None) -> int:
    """Show the tokens of model calls; input excludes cache.

    Refused calls stand under their HTTP status. `source` says who counted: the egress, or the harness where a login's tunnel shows
    nothing. An alarm is an answer from another model or backend than was asked for: amem doctor names them.
    """
    from amem.egress.meter import report

    flags.owner_alone(context, "what was used")
    rows = report(
        context.root, by=by or ("destination", "model"), since=since, session=session, source=ObservedBy(source) if source else None
    )
    if context.flags.json:
        print_json({"usage": rows})
        return 0
    if not rows:
        print("no model calls yet", file=sys.stderr)
        return 0
    keys = [key for key in BY if any(key in row for row in rows)]
    print(
        table(
            [*keys, "source", "billing", "calls", "input", "output", "cached", "written", "not as usual"],
            [
                [
                    *(row.get(key, "") for key in keys), row["source"], row["billing"], row["calls"], row["input"],
                    row["output"], row["cache_read"], row["cache_write"], _unusual(row),
                ]
                for row in rows
            ],
            stretch=len(keys) - 1,
        )
    )  # fmt: skip
    if sys.stdout.isatty():
        from amem.reports import spark

        tokens: Counter[str] = Counter()
        for row in report(context.root, by=("day",), since=since, session=session, source=ObservedBy(source) if source else None):
            tokens[row["day"]] += row["input"] + row["output"] + row["cache_read"] + row["cache_write"]
        if bars := spark.days(tokens, "tokens"):
            print("\n" + bars)
    return 0


def _unusual(row: dict[str, object]) -> str:
    """`403:2 unmetered:1 alarms:1`, or nothing."""
    status = row.get("status")
    parts = [f"{code}:{count}" for code, count in status.items()] if isinstance(status, dict) else []
    parts += [f"{name}:{row[name]}" for name in ("unmetered", "partial", "alarms") if row.get(name)]
    return " ".join(parts)

"""`amem usage`: tokens by destination and model, as the egress or the harness counted them."""

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
    """Show the tokens of model calls. Refused calls stand under their HTTP status; input excludes cache."""
    from amem.egress.meter import report

    rows = report(
        context.root, by=by or ("destination", "model"), since=since, session=session, source=ObservedBy(source) if source else None
    )
    if context.flags.json:
        print_json({"usage": rows})
        return 0
    if not rows:
        print("no model calls yet")
        return 0
    keys = [key for key in BY if any(key in row for row in rows)]
    print(
        table(
            [*keys, "source", "calls", "input", "output", "cached", "written", "refused"],
            [
                [
                    *(row.get(key, "") for key in keys), row["source"], row["calls"], row["input"], row["output"],
                    row["cache_read"], row["cache_write"], _refused(row),
                ]
                for row in rows
            ],
            stretch=len(keys) - 1,
        )
    )  # fmt: skip
    return 0


def _refused(row: dict[str, object]) -> str:
    """`403:2 unmetered:1`, or nothing."""
    status = row.get("status")
    parts = [f"{code}:{count}" for code, count in status.items()] if isinstance(status, dict) else []
    if row.get("unmetered"):
        parts.append(f"unmetered:{row['unmetered']}")
    return " ".join(parts)

"""`amem usage`: tokens by destination and model, as the egress or the harness counted them."""

import sys
from collections import Counter
from datetime import datetime
from textwrap import wrap

import click

from amem.cli.context import Context
from amem.cli.output import WIDTH, one_line, print_json, table
from amem.commands import flags
from amem.model.call import ObservedBy
from amem.typed import Any

BY = ("destination", "model", "session", "day")


@click.command(epilog="Examples: amem usage --since 7d    amem usage --by session --json")
@click.option("--by", "by", multiple=True, type=click.Choice(BY), help="What to add up by; default: destination and model.")
@click.option("--session", metavar="ID", help="Only the calls of this session.")
@click.option("--source", type=click.Choice(["egress", "harness"]), help="Only what the egress counted, or only what a harness said.")
@flags.since
@click.pass_obj
def command(context: Context, by: tuple[str, ...], session: str | None, source: str | None, since: datetime | None) -> int:
    """Show the tokens of model calls; input excludes cache.

    Refused calls stand under their HTTP status. `source` says who counted: the egress, or the harness where a login's tunnel shows
    nothing. An alarm is an answer from another model or backend than was asked for: amem doctor names them. A day is one of the zone
    in grants.toml ([spend] zone, else UTC).
    """
    from amem.egress.reading import report

    flags.owner_alone(context, "what was used")
    zone = flags.zone(context)
    narrowed: Any = {"since": since, "session": session, "source": ObservedBy(source) if source else None, "zone": zone}
    rows = report(context.root, by or ("destination", "model"), **narrowed)
    if context.flags.json:
        print_json({"usage": rows, **({"zone": str(zone)} if "day" in by else {})})
        return 0
    if not rows:
        print("no model calls yet", file=sys.stderr)
        return 0
    keys = [key for key in BY if any(key in row for row in rows)]
    told: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        told.setdefault((row["source"], row["billing"]), []).append(row)
    print("\n\n".join(_section(keys, *who, some) for who, some in told.items()))
    if sys.stdout.isatty():
        from amem.reports import spark

        tokens: Counter[str] = Counter()
        for row in report(context.root, ("day",), **narrowed):
            tokens[row["day"]] += row["input"] + row["output"] + row["cache_read"] + row["cache_write"]
        if bars := spark.days(tokens, "tokens"):
            print("\n" + bars)
    return 0


def _section(keys: list[str], source: str, billing: str, rows: list[dict[str, Any]]) -> str:
    """What one side counted, and below it what is not as usual: statuses, and answers that did not say, or not all."""
    lines = [f"source {source}, billing {billing}"]
    headers = [*keys, "calls", "input", "output", "cached", "written"]
    counts = ("calls", "input", "output", "cache_read", "cache_write")
    stretch = keys.index("model") if "model" in keys else 0
    lines.append(table(headers, [[*(row[key] for key in keys), *(row[name] for name in counts)] for row in rows], stretch=stretch))
    for row in rows:
        if unusual := _unusual(row):
            what = one_line(" ".join(str(row[key]) for key in keys))
            lines += wrap(f"{what}: {unusual}", WIDTH, subsequent_indent="  ", break_long_words=True)
    return "\n".join(lines)


def _unusual(row: dict[str, Any]) -> str:
    """`403:2 unmetered:1 alarms:1`, or nothing."""
    parts = [f"{code}:{count}" for code, count in row.get("status", {}).items()]
    parts += [f"{name}:{row[name]}" for name in ("unmetered", "partial", "alarms") if row.get(name)]
    return " ".join(parts)

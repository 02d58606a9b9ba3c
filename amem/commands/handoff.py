"""`amem handoff list` and `show`: what sessions left for the next one."""

import sys
from datetime import datetime

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import print_json, table
from amem.commands import flags
from amem.commands.memory import refused, show_entry
from amem.errors import NotFoundError
from amem.memory import outcomes, rows
from amem.model import clock
from amem.model.entry import EntryType
from amem.typed import Any


@click.group(epilog="Examples: amem handoff list --since 7d    amem handoff show")
def group() -> None:
    """What sessions left for the next one."""


@group.command("list", epilog="Example: amem handoff list --since 7d --limit 5")
@flags.domain
@click.option("--session", metavar="ID", help="Only what this session left.")
@click.option("--task", metavar="ID", help="Only what was left on this task.")
@flags.limit
@flags.since
@click.pass_obj
def list_(context: Context, domain: str | None, session: str | None, task: str | None, limit: int, since: datetime | None) -> int:
    """List handoffs, newest first."""
    found = _handoffs(context, domain, session, task, since, limit)
    shown = [rows.entry(row) for row in found.rows]
    if context.flags.json:
        print_json({"handoffs": shown, "total": found.total, "more": found.more})
        return exits.DONE
    if shown:
        cells = [[row["id"], row.get("session", ""), row.get("left_by", ""), row["written_at"][:16], _title(row)] for row in shown]
        print(table(["id", "session", "left by", "written at", "title"], cells))
    print(f"{len(shown)} of {found.total}" if shown else "no session has left one yet", file=sys.stderr)
    return exits.DONE


@group.command("show", epilog="Examples: amem handoff show    amem handoff show mem-me-0123abcd4567")
@click.argument("id", required=False, callback=lambda _context, _argument, value: value and flags.entry_id(value))
@flags.domain
@click.option("--session", metavar="ID", help="Only what this session left.")
@click.option("--task", metavar="ID", help="Only what was left on this task.")
@click.pass_obj
def show(context: Context, id: str | None, domain: str | None, session: str | None, task: str | None) -> int:
    """Print a handoff: the one named, else the latest."""
    from amem.memory import read

    if id is None:
        found = _handoffs(context, domain, session, task, None, 1)
        if not found.rows:
            raise NotFoundError("no session has left a handoff yet", hint="amem handoff list")
        id = found.rows[0].id
    return show_entry(read.get(context.memory, context.owner_session(domain), id), context.flags.json)


def _title(row: dict[str, Any]) -> str:
    """What tells one handoff from another: each title begins with the same word."""
    return str(row["title"]).removeprefix("Handoff: ")


def _handoffs(
    context: Context, domain: str | None, session: str | None, task: str | None, since: datetime | None, limit: int
) -> outcomes.Entries:
    from amem.memory import read

    found = read.entries(
        context.memory, context.owner_session(domain), type=[EntryType.HANDOFF], by_session=session, task=task,
        since=clock.stamp(since) if since else None, limit=limit,
    )  # fmt: skip
    if isinstance(found, outcomes.Refused):
        refused(found)
    return found

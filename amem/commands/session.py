"""`amem session list`, `show` and `stop`: who is at work, what became of it, and the kill switch."""

import sys
from datetime import datetime
from typing import Any

import click

from amem.cli import exits
from amem.cli.context import Context
from amem.cli.output import note, one_line, print_json, table
from amem.commands import flags
from amem.errors import NotFoundError, UsageError
from amem.logs import reader
from amem.model.ids import is_id

LOGS = {"decisions": "decisions.jsonl", "reads": "reads.jsonl", "writes": "writes.jsonl"}


@click.group(epilog="Examples: amem session list --state running    amem session stop --all")
def group() -> None:
    """Sessions: who is at work, what became of it, and the kill switch."""


@group.command("list")
@click.option("--state", type=click.Choice(["running", "ended"]))
@click.option("--harness", metavar="NAME")
@flags.limit
@flags.since
@click.pass_obj
def list_(context: Context, state: str | None, harness: str | None, limit: int, since: datetime | None) -> int:
    """List sessions, newest first."""
    found = [
        row
        for row in sessions(context, since=since)
        if state in (None, row["state"]) and harness in (None, row["harness"])
    ]  # fmt: skip
    shown = found[:limit] if limit else found
    if context.flags.json:
        print_json({"sessions": shown, "total": len(found), "more": len(shown) < len(found)})
        return exits.DONE
    if shown:
        columns = ("id", "harness", "state", "label", "calls", "tokens", "exit", "started_at", "reason")
        print(table(columns, [[row.get(key, "") for key in columns] for row in shown]))
    print(f"{len(shown)} of {len(found)}" if shown else "no session yet", file=sys.stderr)
    return exits.DONE


@group.command("show")
@click.argument("id")
@click.option("--log", is_flag=True, help="Its decisions, reads and writes too, in time order.")
@click.pass_obj
def show(context: Context, id: str, log: bool) -> int:
    """Show one session. Exits 3 when there is none."""
    document = _one(context, id)
    logs = {
        key: [event for event in reader.events(context.root.state / name) if event.get("session") == id]
        for key, name in LOGS.items()
        if log
    }  # fmt: skip
    if context.flags.json:
        print_json({**document, **logs})
        return exits.DONE
    for key, value in document.items():
        print(f"{key}: {one_line(str(value))}")
    events = sorted((event for found in logs.values() for event in found), key=lambda event: str(event["at"]))
    for event in events:
        what = event.get("action") or event.get("tool") or event.get("type") or ""
        said = {True: "allowed", False: "denied"}.get(event.get("allow"), "")  # type: ignore[arg-type]
        rest = " ".join([*map(str, event.get("entries", ())), str(event.get("entry", "")), *(r["code"] for r in event.get("reasons", ()))])
        print(one_line(f"{event['at']}  {event['event']}  {what} {said} {rest}"))
    return exits.DONE


@group.command("stop")
@click.argument("ids", nargs=-1, metavar="ID…")
@click.option("--all", "everything", is_flag=True, help="Every running session of this root.")
@click.option("--why", default="", metavar="TEXT")
@click.option(
    "--grace", type=flags.DURATION, default="5s", show_default=True, metavar="DUR", help="Between SIGTERM and the end of everything inside."
)
@click.pass_obj
def stop(context: Context, ids: tuple[str, ...], everything: bool, why: str, grace: float) -> int:
    """Stop sessions: no further call leaves, then SIGTERM, then SIGKILL."""
    from amem.launch.presence import Stop, ask_to_stop

    if everything == bool(ids):
        raise UsageError("name the sessions to stop, or --all", hint="amem session list --state running")
    wanted = [row["id"] for row in sessions(context) if row["state"] == "running"] if everything else list(ids)
    for id in wanted:
        _one(context, id)
    asked = Stop(by=context.principal, why=why, grace_s=grace)
    stopped = [id for id in wanted if ask_to_stop(context.root, id, asked)]
    if context.flags.json:
        print_json({"stopped": stopped})
    else:
        for id in wanted:
            note(f"{id}: {'is being stopped' if id in stopped else 'does not run'}")
    return exits.DONE if len(stopped) == len(wanted) else exits.ANSWER_IS_NO


def sessions(context: Context, *, session: str | None = None, since: datetime | None = None) -> list[dict[str, Any]]:
    """Sessions, newest first. One whose launcher died without a word is `ended`, with the reason `lost`."""
    from amem.egress import meter
    from amem.launch.presence import is_running

    found = meter.sessions(context.root, session=session, since=since)
    for row in found:
        if row["state"] == "running" and not is_running(context.root, row["id"]):
            row["state"], row["reason"] = "ended", "lost"
    return found


def _one(context: Context, id: str) -> dict[str, Any]:
    found = sessions(context, session=id) if is_id("session", id) else []
    if not found:
        raise NotFoundError(f"{id}: no such session", hint="amem session list")
    return found[0]

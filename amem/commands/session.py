"""`amem session list`, `show`, `stop`, `diff` and `undo`: who is at work, what became of it, the kill switch, and the way back."""

import os
import shlex
import sys
import time
from datetime import datetime

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, one_line, print_json, table, visible
from amem.commands import flags
from amem.errors import NotFoundError, UnavailableError, UsageError
from amem.model import clock
from amem.model.ids import is_id
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.launch.presence import Stop
    from amem.launch.snapshot import Change, Store

LOGS = {"decisions": "decisions.jsonl", "reads": "reads.jsonl", "writes": "writes.jsonl", "events": "sessions.jsonl"}


@click.group(epilog="Examples: amem session list --state running    amem session stop --all")
def group() -> None:
    """Sessions: who is at work, what became of it, and the kill switch."""


@group.command("list", epilog="Example: amem session list --state running --since 4h")
@click.option("--state", type=click.Choice(["running", "ended"]), help="Only those that run, or only those that ended.")
@click.option("--harness", metavar="NAME", help="Only those of this harness.")
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
        columns = ("id", "harness", "backend", "label", "tokens", "started", "state")
        print(
            table(
                columns,
                [[row.get(key, "") for key in columns[:5]] + [row["started_at"][5:16].replace("T", " "), _state(row)] for row in shown],
            )
        )
    narrowed = state or harness or since
    print(f"{len(shown)} of {len(found)}" if shown else "no such session" if narrowed else "no session yet", file=sys.stderr)
    return exits.DONE


@group.command("show", epilog="Example: amem session show ses-0123abcd --json")
@click.argument("id")
@click.option("--log", is_flag=True, help="Its decisions, reads and writes too, in time order.")
@click.pass_obj
def show(context: Context, id: str, log: bool) -> int:
    """Show one session. Exits 3 when there is none."""
    if log:
        flags.owner_alone(context, "the decision log")
    document = row_of(context, id)
    logs = _logs(context, id) if log else {}
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
        if event["event"] == "session.stop":
            what, rest = f"by {event['principal']}", event.get("why", "")
        if event["event"] == "session.port":
            what = f"{event['port']} of the {'session' if event['of'] == 'inside' else 'host'}"
        print(one_line(f"{event['at']}  {event['event']}  {what} {said} {rest}"))
    return exits.DONE


@group.command("stop", epilog="Examples: amem session stop ses-0123abcd    amem session stop --all")
@click.argument("ids", nargs=-1, metavar="ID…")
@click.option("--all", "everything", is_flag=True, help="Every running session of this root.")
@click.option("--why", default="", metavar="TEXT", help="The reason, which its end names.")
@click.option(
    "--grace", type=flags.DURATION, default="5s", show_default=True, metavar="DUR", help="Between SIGTERM and the end of everything inside."
)
@click.pass_obj
def stop(context: Context, ids: tuple[str, ...], everything: bool, why: str, grace: float) -> int:
    """Stop sessions: no further call leaves, then SIGTERM, then SIGKILL."""
    from amem.launch.presence import Stop, ask_to_stop, is_running

    if everything == bool(ids):
        raise UsageError("name the sessions to stop, or --all", hint="amem session list --state running")
    wanted = [row["id"] for row in sessions(context) if row["state"] == "running"] if everything else list(ids)
    rows = [row_of(context, id) for id in wanted]
    if not wanted:
        print("no session is running", file=sys.stderr)
    asked = Stop(by=context.principal, why=why, grace_s=grace)
    for row in rows:
        if is_running(context.root, row["id"]):
            _log_stop(context, row, asked)
    stopped: list[str] = []
    for id in wanted:
        said = "does not run"
        try:
            if ask_to_stop(context.root, id, asked):
                stopped.append(id)
                said = "is being stopped"
        except (UnavailableError, PermissionError) as error:  # the others are stopped all the same
            said = error.message if isinstance(error, UnavailableError) else f"its launcher is another user's ({error.strerror})"
        if not context.flags.json:
            note(f"{id}: {said}")
    if context.flags.json:
        print_json({"stopped": stopped})
    return exits.DONE if len(stopped) == len(wanted) else exits.ANSWER_IS_NO


def _log_stop(context: Context, row: dict[str, Any], asked: "Stop") -> None:
    """Keep who stopped a session, and why, before it is. A disk without room for that holds up no kill switch."""
    from amem.logs import writer
    from amem.logs.schema import SessionStop

    event = SessionStop(
        at=clock.stamp(clock.now()),
        session=row["id"],
        domain=row["domain"],
        principal=asked.by,
        why=asked.why or None,
        grace_s=asked.grace_s,
    )
    try:
        writer.append(context.root.state, event)
    except OSError as error:
        note(f"{row['id']}: that it is stopped could not be logged: {error.strerror or error}")


PATHS = click.option("--path", "paths", multiple=True, metavar="P", help="Only this path of the tree, or what is below it.")


@group.command("diff", epilog="Example: amem session diff ses-0123abcd --stat")
@click.argument("id")
@click.option("--stat", is_flag=True, help="A line a file.")
@PATHS
@click.pass_obj
def diff(context: Context, id: str, stat: bool, paths: tuple[str, ...]) -> int:
    """Show what a session changed in its tree. Exits 3 without a snapshot from before and after it."""
    store = _snapshots(context, id)
    paths = _below(store.workdir, paths)
    if context.flags.json:
        found = store.changes(id, paths)
        print_json({"files": [_row(change) for change in found], "total": len(found), "more": False})
    else:
        sys.stdout.write(visible(store.text(id, paths, stat=stat)))
    return exits.DONE


@group.command("undo", epilog="Example: amem session undo ses-0123abcd --path src --dry-run")
@click.argument("id")
@PATHS
@click.option("--force", is_flag=True, help="Take back what changed again since the session, too.")
@click.option("--dry-run", is_flag=True, help="Say what would be taken back; change nothing.")
@flags.yes
@click.pass_obj
def undo(context: Context, id: str, paths: tuple[str, ...], force: bool, dry_run: bool, yes: bool) -> int:
    """Take back what a session changed in its tree. Exits 3 when something had to be kept."""
    from amem.launch import trees
    from amem.launch import undo as undoing

    store = _snapshots(context, id)
    paths = _below(store.workdir, paths)
    changes = store.changes(id, paths)
    kept: dict[str, str] = {}
    if dry_run:
        reverted = [change.path for change in changes]
    else:
        flags.confirm(f"take back {len(changes)} changes in {store.workdir}?", yes)
        undo_ns = time.time_ns()
        reverted, kept = undoing.take_back(store, id, changes, force=force)
        if not kept and not paths and store.workdir in trees.carried(context.root, session=id):
            if (left := undoing.remainder(store, id, reverted, undo_ns)) is not None:
                note(f"{left} was touched since {id} began and is in no snapshot: {store.workdir} carries what it did")
            elif (label := trees.undone(context.root, store.workdir, id)) is not None:
                note(f"nothing of {id} is left in {store.workdir}: it carries {label} again")
    if context.flags.json:
        print_json({"reverted": reverted, "kept": [{"path": path, "why": why} for path, why in kept.items()]})
    else:
        for path in reverted:
            print(one_line(path))
        for path, why in kept.items():
            note(f"kept {path}: {why}")
        if undoing.CHANGED_SINCE in kept.values():
            asked = [word for path in paths for word in ("--path", path)]
            print(f"try: {shlex.join(['amem', 'session', 'undo', id, *asked, '--force'])}", file=sys.stderr)
    for path in undoing.repositories(store.workdir, reverted):
        note(f"{path} is git's own and is as the session left it: read its config and hooks before you use git there")
    return exits.ANSWER_IS_NO if kept else exits.DONE


def _logs(context: Context, id: str) -> dict[str, list[dict[str, Any]]]:
    """What the logs say of a session."""
    from amem.logs import reader  # with what it loads, a third of what the other commands here take to start

    return {key: [event for event in reader.events(context.root.state / name) if event.get("session") == id] for key, name in LOGS.items()}


def _state(row: dict[str, Any]) -> str:
    """`running`, `ended`, the word for what ended it, or the exit code; a sentence about a sandbox that could not be made is for `show`."""
    reason, code = row.get("reason"), row.get("exit")
    if reason and reason != "harness" and " " not in reason:
        return str(reason)
    return f"exit {code}" if code else str(row["state"])


def _snapshots(context: Context, id: str) -> "Store":
    from amem.launch.snapshot import Store

    row = row_of(context, id)
    store = Store(context.root, row["workdir"])
    if row["state"] == "running" and store.has(id, "before"):
        raise NotFoundError(f"{id} still runs: what it changed is known when it has ended", hint=f"amem session stop {id}")
    if row["state"] == "ended" and store.has(id, "before") and not store.has(id, "after"):
        note(f"{id} ended without a word: compared with the tree as it is now")
        store.take(id, "after")
    return store


def _below(workdir: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """These paths, from the top of the tree; none stands for all of it. Raises UsageError for one that is not in the tree."""
    found = [os.path.relpath(os.path.join(workdir, path), workdir) if path else ".." for path in paths]
    for path, below in zip(paths, found, strict=True):
        if below == ".." or below.startswith("../"):
            raise UsageError(
                f"--path {path}: not in {workdir}", hint="name it from the top of the tree, as `amem session diff --stat` does"
            )
    return () if "." in found else tuple(found)


def _row(change: "Change") -> dict[str, Any]:
    before, after = change.before, change.after
    sides = {side: file._asdict() for side, file in (("before", before), ("after", after)) if file is not None and file.mode}
    return {"path": change.path, "change": change.change, **sides}


def sessions(context: Context, *, session: str | None = None, since: datetime | None = None) -> list[dict[str, Any]]:
    """Sessions, newest first; a person other than the owner sees those of the domains with a grant.

    One whose launcher died without a word is `ended`, with the reason `lost`."""
    from amem.egress import reading
    from amem.launch.presence import is_running

    found = reading.sessions(context.root, session=session, since=since)
    if context.principal != context.grants.owner:
        found = [row for row in found if context.grants.grant(row["domain"], context.principal) is not None]
    for row in found:
        if row["state"] == "running" and not is_running(context.root, row["id"]):
            row["state"], row["reason"] = "ended", "lost"
    return found


def row_of(context: Context, id: str) -> dict[str, Any]:
    """The row of one session. Raises NotFoundError."""
    found = sessions(context, session=id) if is_id("session", id) else []
    if not found:
        raise NotFoundError(f"there is no session {id[:40]}", hint="amem session list")
    return found[0]

"""`amem context list` and `show`: what each model call of a session sent and got, as the egress kept it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, one_line, print_json, table, visible
from amem.commands import flags
from amem.errors import NotFoundError, UsageError
from amem.model.ids import is_id
from amem.typed import Any

_WIDEST = 24
"""Of a model's name in the table; it is whatever the harness asked for."""
_BODIES = ("request", "response")


@click.group(epilog="Examples: amem context list    amem context show ses-0123abcd --turn 3")
def group() -> None:
    """Decision contexts: what model calls sent and got."""


@group.command("list", epilog="Examples: amem context list    amem context list ses-0123abcd --limit 0 --json")
@click.argument("session", required=False)
@flags.limit
@click.pass_obj
def list_(context: Context, session: str | None, limit: int) -> int:
    """List the kept calls of a session, or of all, newest first. Exits 3 when the session has none."""
    flags.owner_alone(context, "what model calls sent")
    found = [{"session": folder.name, **call} for folder in _folders(context, session) for call in _calls(folder)]
    found.sort(key=lambda call: (call["at"], call["n"]), reverse=True)
    shown = found[:limit] if limit else found
    if context.flags.json:
        print_json({"contexts": [_told(call) for call in shown], "total": len(found), "more": len(shown) < len(found)})
        return exits.DONE
    if shown:
        columns = ("session", "n", "model", "label", "status", "tools")
        print(table(columns, [[_cell(call, key) for key in columns] for call in shown]))
    print(f"{len(shown)} of {len(found)}" if shown else "no model call was kept yet", file=sys.stderr)
    return exits.DONE


@group.command(epilog="Examples: amem context show ses-0123abcd --turn 3    amem context show --unmask --json")
@click.argument("session", required=False)
@click.option("--turn", type=click.IntRange(1), metavar="N", help="Only this call of the session.")
@click.option("--unmask", is_flag=True, help="Show credentials in it as they were, which is logged.")
@flags.limit
@click.pass_obj
def show(context: Context, session: str | None, turn: int | None, unmask: bool, limit: int) -> int:
    """Show what the calls of a session sent and got, in order. Without SESSION, of the newest that has any.

    A request stands as it left, an answer as it came, without encoding. Exits 3 when there is no such call.
    """
    flags.owner_alone(context, "what model calls sent")
    folder = _one(context, session)
    found = [call for call in _calls(folder) if turn in (None, call["n"])]
    if not found:
        raise NotFoundError(f"{folder.name} has no kept call {turn}", hint=f"amem context list {folder.name}")
    shown = found[:limit] if limit else found
    if unmask:
        _log(context, folder.name, turn)
    told = [{"session": folder.name, **_told(call), **_bodies(context, folder, call, unmask)} for call in shown]
    if context.flags.json:
        print_json({"contexts": told, "total": len(found), "more": len(shown) < len(found)})
        return exits.DONE
    for call in told:
        for key, value in call.items():
            if key not in _BODIES:
                print(one_line(f"{key}: {', '.join(map(str, value)) or 'none' if isinstance(value, list) else value}"))
        for key in _BODIES:
            print(f"{key}:\n{visible(call[key])}" if key in call else f"{key}: not kept")
        print()
    if len(shown) < len(found):
        print(f"{len(shown)} of {len(found)}", file=sys.stderr)
    return exits.DONE


def _folders(context: Context, session: str | None) -> list[Path]:
    """Where the calls of a session are, or of every one. Raises NotFoundError, UsageError."""
    if session is not None and not is_id("session", session):
        raise UsageError(f"{session[:40]}: not the id of a session", hint="amem session list")
    places = [context.root.record / domain / ".contexts" for domain in context.domains]
    found = [folder for place in places for folder in sorted(place.glob(session or "*")) if is_id("session", folder.name)]
    if session is not None and not found:
        raise NotFoundError(f"no call of {session} was kept", hint="amem context list")
    return found


def _one(context: Context, session: str | None) -> Path:
    found = [(calls[-1]["at"], folder) for folder in _folders(context, session) if (calls := _calls(folder))]
    if not found:
        raise NotFoundError("no model call was kept yet" if session is None else f"no call of {session} was kept", hint="amem context list")
    return max(found)[1]


def _calls(folder: Path) -> list[dict[str, Any]]:
    """The kept calls that can be told: each has its number and its instant."""
    from amem.egress import contexts

    return [
        call
        for call in contexts.read(folder)
        if isinstance(call, dict) and isinstance(call.get("n"), int) and isinstance(call.get("at"), str)
    ]


def _told(call: dict[str, Any]) -> dict[str, Any]:
    """A call without the names of its bodies; what it asked for and how it was changed is always said, also when it was nothing."""
    told = {key: value for key, value in call.items() if key not in _BODIES}
    return told if "erased" in call else {**told, "tools": call.get("tools", []), "shaping": call.get("shaping", [])}


def _bodies(context: Context, folder: Path, call: dict[str, Any], unmask: bool) -> dict[str, str]:
    """The request and the answer as text. Raises IntegrityError where one was changed."""
    return dict(_texts(context, folder, call, unmask))


def _texts(context: Context, folder: Path, call: dict[str, Any], unmask: bool) -> Iterator[tuple[str, str]]:
    from amem.egress import contexts
    from amem.record.sealed import Sealer

    for key in _BODIES:
        try:
            data = contexts.body(folder, str(call.get(key)))
        except (FileNotFoundError, ValueError):
            continue  # none came, or it was taken out
        if key == "response":
            data = contexts.plain(data, str(call.get("content_encoding") or "")) or data
        if unmask:
            data, broken = Sealer(context.root.state).opened(data)
            for error in broken:
                note(f"{folder.name}, call {call['n']}, {key}: {error.message}; it is shown as it stands")
        yield key, data.decode("utf-8", "backslashreplace")


def _log(context: Context, session: str, turn: int | None) -> None:
    """Say in the log that the owner looked at what was sealed, before it is shown."""
    from amem.logs.schema import MemoryAct
    from amem.logs.writer import append
    from amem.model.clock import now, stamp

    subject = f"context:{session}" + (f"#{turn}" if turn is not None else "")
    act = MemoryAct(at=stamp(now()), principal=context.principal, act="unmask", subject=subject, entries=(), why="")
    append(context.root.state, act)


def _cell(call: dict[str, Any], key: str) -> object:
    value = call.get(key, "erased" if key == "tools" and "erased" in call else "")
    text = ", ".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, int) else str(value)
    return text if key != "model" or not isinstance(text, str) or len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"

"""`amem quarantine …`: what the perimeter held, for the owner to judge."""

import sys
from datetime import datetime

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, one_line, print_json, table, visible
from amem.commands import flags
from amem.model import clock
from amem.record import quarantine
from amem.record.quarantine import HeldWrite
from amem.typed import Any

_IDS = click.argument("ids", nargs=-1, required=True, metavar="ID…")
_WHY = click.option("--why", metavar="TEXT", help="The reason, for whoever asks later.")


@click.group(epilog="Examples: amem quarantine list    amem quarantine show held-0123abcd")
def group() -> None:
    """Writes that were held: nothing of them is indexed or served until the owner says so."""


@group.command("list", epilog="Example: amem quarantine list --since 7d --json")
@flags.domain
@flags.limit
@flags.since
@click.pass_obj
def list_(context: Context, domain: str | None, limit: int, since: datetime | None) -> int:
    """List what is held, oldest first."""
    flags.owner_alone(context, "what is held")
    where, start = context.domain(domain), clock.stamp(since) if since else ""
    found = [held for held in quarantine.listed(context.root) if held.entry.domain == where and held.held_at >= start]
    shown = found[:limit] if limit else found
    filed = _tasks(context, (where,)) if shown else {}
    for id, why in quarantine.broken(context.root):
        note(f"{id}: cannot be read: {why}")
    if context.flags.json:
        print_json({"held": [_shape(held, filed) for held in shown], "total": len(found), "more": len(shown) < len(found)})
        return exits.DONE
    if shown:
        print(
            table(
                ["id", "held at", "author", "why", "title"],
                [[held.id, held.held_at, held.entry.author, _why(held), held.entry.title] for held in shown],
            )
        )
    print(f"{len(shown)} of {len(found)}" if found else "nothing is held", file=sys.stderr)
    return exits.DONE


@group.command(epilog="Example: amem quarantine show held-0123abcd")
@click.argument("id")
@click.option("--raw", is_flag=True, help="The body as it is, its control characters too.")
@click.pass_obj
def show(context: Context, id: str, raw: bool) -> int:
    """Show one held write with its body. It is what somebody wrote, not a word of it to be followed."""
    flags.owner_alone(context, "what is held")
    held = quarantine.show(context.root, id)
    shape = _shape(held, _tasks(context, (held.entry.domain,), id))
    if context.flags.json:
        print_json({**shape, "body": held.entry.body})
        return exits.DONE
    for key in ("id", "kind", "author", "session", "held_at", "gate", "task"):
        if key in shape:
            print(f"{key}: {one_line(str(shape[key]))}")
    print(f"title: {one_line(held.entry.title)}")
    for finding in held.findings:
        print(one_line(f"found: {finding.get('class')}: {finding.get('excerpt')}"))
    print()
    print(held.entry.body if raw else visible(held.entry.body))
    return exits.DONE


@group.command(epilog="Example: amem quarantine release held-0123abcd --why 'a quotation' --yes")
@_IDS
@_WHY
@flags.dry_run
@flags.yes
@click.pass_obj
def release(context: Context, ids: tuple[str, ...], why: str | None, dry_run: bool, yes: bool) -> int:
    """Write held entries into the record. They are as they were written, each with its author."""
    from amem.memory import held as holding

    found = _asked(context, ids, "Release", dry_run, yes)
    done = []
    for held in found:
        entry = held.entry if dry_run else holding.release(context.memory, context.owner_session(held.entry.domain), held.id, why).entry
        done.append({"held": held.id, "entry": entry.id})
    if context.flags.json:
        print_json({"released": done})
    else:
        for one in done:
            print(f"{'would release' if dry_run else 'released'} {one['held']} as {one['entry']}")
    return exits.DONE


@group.command(epilog="Example: amem quarantine drop held-0123abcd --yes")
@_IDS
@_WHY
@flags.dry_run
@flags.yes
@click.pass_obj
def drop(context: Context, ids: tuple[str, ...], why: str | None, dry_run: bool, yes: bool) -> int:
    """Delete held writes for good. Nothing goes into the record."""
    from amem.memory import held as holding

    found = _asked(context, ids, "Drop", dry_run, yes)
    for held in found:
        if not dry_run:
            holding.drop(context.memory, context.owner_session(held.entry.domain), held.id, why)
    if context.flags.json:
        print_json({"dropped": [held.id for held in found]})
    else:
        for held in found:
            print(f"{'would drop' if dry_run else 'dropped'} {held.id}")
    return exits.DONE


def _asked(context: Context, ids: tuple[str, ...], verb: str, dry_run: bool, yes: bool) -> list[HeldWrite]:
    """What an act is about, all of it there before any is touched, and the person's yes."""
    flags.owner_alone(context, "what is held")
    found = [quarantine.show(context.root, id) for id in dict.fromkeys(ids)]
    if not dry_run:
        flags.confirm(f"{verb} {', '.join(held.id for held in found)}?", yes)
    return found


def _tasks(context: Context, domains: tuple[str, ...], held: str = "") -> Any:
    from amem.ledger.opening import open_reading
    from amem.memory.owner_tasks import tasks

    with open_reading(context.root, context.grants) as ledger:
        return tasks(ledger, domains, held)


def _shape(held: HeldWrite, tasks: Any) -> dict[str, Any]:
    findings = [{"class": one.get("class"), "excerpt": one.get("excerpt")} for one in held.findings]
    shape = {
        "id": held.id, "kind": held.kind, "author": held.entry.author, "session": held.entry.session, "type": held.entry.type,
        "title": held.entry.title, "findings": findings, "gate": held.gate, "task": tasks.get(held.id), "held_at": held.held_at,
    }  # fmt: skip
    return {key: value for key, value in shape.items() if value is not None}


def _why(held: HeldWrite) -> str:
    return ", ".join(dict.fromkeys(str(one.get("class")) for one in held.findings)) or held.gate or "held"

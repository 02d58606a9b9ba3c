"""`amem taint`, `why` and `demote`: how far an entry reached, who is served it, and how it is taken out of service."""

import sys
from datetime import datetime

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, one_line, print_json, table
from amem.commands import flags
from amem.errors import NotFoundError, UsageError
from amem.logs import reader
from amem.logs.schema import MemoryRead, MemoryWrite
from amem.model import clock
from amem.model.ids import domain_of
from amem.model.label import Label
from amem.model.principal import is_principal
from amem.typed import Any


@click.command(epilog="Example: amem taint mem-me-0123456789ab --depth 1")
@flags.entry
@click.option("--depth", type=flags.COUNT, metavar="N", default=0, show_default=True, help="How many steps to follow it; 0 is all.")
@flags.since
@click.pass_obj
def taint(context: Context, id: str, depth: int, since: datetime | None) -> int:
    """Follow an entry: the sessions that were served it, and what they wrote and filed after that. For entries that are gone too."""
    from amem.ledger.opening import open_reading
    from amem.memory import taint as tracing

    flags.owner_alone(context, "who read what")
    reads, writes = (reader.events(context.root.state / log) for log in (MemoryRead.log, MemoryWrite.log))
    found = tracing.reach(id, reads, writes, depth=depth, since=clock.stamp(since) if since else "")
    if not found.readers and not _known(context, id):
        raise NotFoundError(f"nothing is known of {id}", hint="amem list")
    with open_reading(context.root, context.grants) as ledger:
        tasks = tracing.tasks(found, lambda one: ledger.filed_by(one.domain, one.session, since_ms=one.since_ms))
    if context.flags.json:
        shown = [
            {"session": one.session, "principal": one.principal, "read_at": one.read_at, "wrote": list(one.wrote)} for one in found.readers
        ]
        print_json({"entry": id, "readers": shown, "entries": list(found.entries), "tasks": list(tasks)})
        return exits.DONE
    rows = [[one.depth, one.session, one.principal, one.read_at, len(one.wrote)] for one in found.readers]
    if rows:
        print(table(["step", "session", "principal", "read at", "wrote"], rows, stretch=2))
    else:
        print("no session was served it", file=sys.stderr)
    for what in (*found.entries, *tasks):
        print(what)
    return exits.DONE


@click.command(epilog="Example: amem why mem-me-0123456789ab --principal agent:codex")
@flags.entry
@click.option("--principal", metavar="P", help="Who would read it; default: the owner.")
@click.option("--session", metavar="ID", help="In this session: its principal, domain and handling.")
@click.pass_obj
def why(context: Context, id: str, principal: str | None, session: str | None) -> int:
    """Say why an entry is, or is not, served to somebody. Exits 3 when it is not."""
    from amem.memory import why as asking
    from amem.record import policies

    flags.owner_alone(context, "who may read what")
    domain, handling, who = domain_of(id), None, principal or context.grants.owner
    if session is not None:
        from amem.commands.session import row_of

        found = row_of(context, session)
        domain, handling = str(found["domain"]), Label(found["handling"])
        who = principal or f"agent:{found['harness']}"
    if not is_principal(who):
        raise UsageError(
            f"--principal: {who[:60]!r} is no principal: expected agent:<harness> or human:<org>:<name>",
            hint=f"amem why {id} --principal agent:codex",
        )
    row = context.memory.index.get(id)
    if row is None:
        raise NotFoundError(f"there is no entry {id}", hint="amem list")
    policy = policies.engine(context.root, context.grants)
    steps = asking.steps(row, who, context.grants, policy, domain=domain, handling=handling)
    served = all(step.passes for step in steps)
    if context.flags.json:
        print_json({"id": id, "served": served, "steps": [step._asdict() for step in steps]})
    else:
        print(f"{id} is {'' if served else 'not '}served to {who}")
        print(
            table(
                ["rule", "passes", "value", "limit"],
                [[one.rule, "yes" if one.passes else "no", one.value, one.limit] for one in steps],
                stretch=2,
            )
        )
    return exits.DONE if served else exits.ANSWER_IS_NO


@click.command(epilog="Example: amem demote mem-me-0123456789ab --why 'the vendor changed the interface' --yes")
@flags.entry
@click.option("--why", "reason", type=flags.REASON, required=True, metavar="TEXT", help="For whoever asks later.")
@click.option("--successor", metavar="ID", help="The entry that stands in its place.")
@flags.dry_run
@flags.yes
@click.pass_obj
def demote(context: Context, id: str, reason: str, successor: str | None, dry_run: bool, yes: bool) -> int:
    """Take an entry out of service. The file stays and says so; readers are told that the entry is gone."""
    from amem.memory.claims import same_elsewhere
    from amem.memory.demote import demote as take_out

    if not dry_run:
        flags.confirm(f"Demote {id}?", yes)
    domain = domain_of(id)
    session = context.owner_session(domain if domain in context.domains else None)
    entry = take_out(context.memory, session, id, reason, successor=successor, dry_run=dry_run)
    same = () if dry_run else same_elsewhere(context.memory, session, (id,), successor)
    document: dict[str, Any] = {"id": id, "status": entry.status, "version": entry.version}
    if context.flags.json:
        print_json(document | ({"same_claim": list(same)} if same else {}))
    else:
        print(one_line(f"{id} {'would be' if dry_run else 'is'} {entry.status}"))
        if same:
            note(f"these still say what it said, and wait to be reconciled: {', '.join(same)}")
    return exits.DONE


def _known(context: Context, id: str) -> bool:
    from amem.record.store import Store

    try:
        Store(context.root).path(id)
    except NotFoundError:
        return False
    return True

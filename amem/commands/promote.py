"""`amem promote`, `approve`, `decline`, `promotions`: how far an entry is trusted, and who said so."""

import sys
from dataclasses import replace

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, one_line, print_json, visible
from amem.commands import flags
from amem.commands.memory import refused
from amem.commands.task import mine
from amem.errors import UsageError
from amem.memory import outcomes
from amem.model.entry import Tier
from amem.model.ids import domain_of, is_id
from amem.typed import Any

_TASK = click.argument("task", callback=mine)


@click.command(epilog="Example: amem promote mem-me-0123456789ab --to curated --why 'ran the steps on a clean checkout'")
@click.argument("id")
@click.option(
    "--to",
    required=True,
    type=click.Choice([Tier.CURATED.value, Tier.VERIFIED.value]),
    help="curated takes effect at once; verified waits for a person's approval.",
)
@click.option("--why", required=True, metavar="TEXT", help="What you checked.")
@click.pass_obj
def promote(context: Context, id: str, to: str, why: str) -> int:
    """Mark an entry of somebody else's curated, or propose it as verified: then another person approves it."""
    from amem.memory.promote import Promoted
    from amem.memory.promote import promote as raise_tier

    done = raise_tier(context.memory, context.owner_session(_domain(context, "entry", id)), id, Tier(to), why)
    if not isinstance(done, Promoted):
        refused(replace(done, hint=f"amem promote {id} --to verified --why …") if done.code == "promote_own" else done)
    entry = done.entry
    document: dict[str, Any] = {"id": entry.id, "version": entry.version, "to": done.to, "landed": done.landed}
    document |= {key: value for key, value in (("task", done.task), ("lineage", entry.lineage)) if value is not None}
    if context.flags.json:
        print_json(document)
    elif done.landed:
        print(f"{entry.id} is {done.to} (version {entry.version})")
    else:
        print(done.task)
        note(f"version {entry.version} of {entry.id} is proposed; another person approves it: amem approve {done.task}")
    if entry.lineage is Tier.RAW:
        note(f"the session that wrote {entry.id} had read entries that nobody vouches for")
    return exits.DONE


@click.command(epilog="Example: amem --as human:asf:bob approve task-me-0123abcd")
@_TASK
@flags.yes
@click.pass_obj
def approve(context: Context, task: str, yes: bool) -> int:
    """Let a proposal land. Whoever proposed it cannot, and no agent can; a changed entry is proposed again as it stands."""
    from amem.memory import promote as promoting

    session = context.owner_session(_domain(context, "task", task))
    flags.confirm(f"Approve {context.memory.ledger.show(task).title!r}?", yes)
    done = promoting.approve(context.memory, session, task)
    if not isinstance(done, promoting.Promoted):
        refused(replace(done, hint=_who_else(context, task)) if done.code == "own_proposal" else done)
    entry = done.entry
    if context.flags.json:
        left_out = {"left_out": done.left_out} if done.left_out else {}
        print_json({"task": task, "entry": entry.id, "version": entry.version, "tier": entry.tier, "landed": True, **left_out})
    else:
        print(f"{entry.id} is {entry.tier} (version {entry.version})")
        if done.left_out:
            note(f"it is not in force: {done.left_out}")
    return exits.DONE


@click.command(epilog="Example: amem decline task-me-0123abcd --why 'true of version 2 only'")
@_TASK
@click.option("--why", metavar="TEXT", help="The reason, for whoever asks later.")
@click.pass_obj
def decline(context: Context, task: str, why: str | None) -> int:
    """Say no to a proposal. This version is not proposed again."""
    from amem.memory import promote as promoting

    done = promoting.decline(context.memory, context.owner_session(_domain(context, "task", task)), task, why)
    if isinstance(done, outcomes.Refused):
        refused(done)
    if context.flags.json:
        print_json({"task": task, "entry": done.entry, "version": done.version, "declined": True})
    else:
        print(f"version {done.version} of {done.entry} is declined")
    return exits.DONE


@click.command(epilog="Example: amem promotions mem-me-0123456789ab")
@click.argument("id")
@click.pass_obj
def promotions(context: Context, id: str) -> int:
    """Show who promoted which version of an entry, to which tier, and why."""
    from amem.memory import promote as promoting

    found = promoting.promotions(context.memory, context.owner_session(_domain(context, "entry", id)), id)
    if isinstance(found, outcomes.Refused):
        refused(found)
    shown = [promoting.shape(one) for one in found]
    if context.flags.json:
        print_json({"promotions": shown})
        return exits.DONE
    for one in shown:
        state = next((word for word in ("landed", "declined", "closed") if one.get(word)), "not landed")
        print(one_line(f"version {one['version']} to {one['to']} by {one['by']} at {one['at']}: {state}"))
        if "why" in one:
            print("  " + visible(one["why"]).replace("\n", "\n  "))
    if not shown:
        print("nobody has promoted it", file=sys.stderr)
    return exits.DONE


def _who_else(context: Context, task: str) -> str:
    """What lets another person approve: whom grants.toml lists, as far as the owner asks."""
    if context.principal != context.grants.owner:
        return f"amem task show {task}"
    others = [name for name in context.grants.people if name != context.principal]
    return f"amem --as {others[0]} approve {task}" if others else f"edit {context.root.grants}: [people]"


def _domain(context: Context, kind: str, id: str) -> str:
    """The domain that an id names, where it is one of the root's. Raises UsageError."""
    if not is_id(kind, id):
        raise UsageError(f"{id[:60]}: no {kind}'s id", hint="amem list" if kind == "entry" else "amem task list --human")
    domain = domain_of(id)
    return domain if domain in context.domains else context.domain(None)

"""`amem contain`: take an entry and everything it reached out of service in one act, or put all of it back."""

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, print_json
from amem.commands import flags
from amem.errors import UsageError
from amem.model.ids import domain_of


@click.command(
    epilog="Examples: amem contain mem-me-0123456789ab --why 'poisoned' --dry-run    amem contain mem-me-0123456789ab --why 'right' --undo"
)
@flags.entry
@click.option("--why", type=flags.REASON, required=True, metavar="TEXT", help="For whoever asks later.")
@click.option("--undo", is_flag=True, help="Put everything back as it was; exits 3 when it leaves something.")
@flags.dry_run
@flags.yes
@click.pass_obj
def command(context: Context, id: str, why: str, undo: bool, dry_run: bool, yes: bool) -> int:
    """Take an entry out of the record with everything that the sessions it reached wrote after that."""
    from amem.memory import contain as containing

    if undo and dry_run:
        raise UsageError("--undo and --dry-run exclude each other", hint=f"amem contain {id} --why … --dry-run")
    flags.owner_alone(context, "what an entry reached") if dry_run else flags.confirm(f"{'Put back' if undo else 'Contain'} {id}?", yes)
    domain = domain_of(id)
    session = context.owner_session(domain if domain in context.domains else None)
    if undo:
        found = containing.undo(context.memory, session, id, why)
    else:
        found = containing.contain(context.memory, session, id, why, dry_run=dry_run)
    if context.flags.json:
        shape = {"act": found.act, "entry": id, "held": list(found.held), "tasks": list(found.tasks)}
        more = {"contexts": len(found.contexts), "prefetches": 0} | ({"left": list(found.left)} if found.left else {})
        print_json({key: value for key, value in shape.items() if value != ""} | more)
        return exits.ANSWER_IS_NO if found.left else exits.DONE
    verb = "would take" if dry_run else "put back" if undo else "took"
    print(f"{verb} {len(set(found.held) - set(found.left))} entries, {len(found.tasks)} tasks, {len(found.contexts)} contexts")
    for one in (*(one for one in found.held if one not in found.left), *found.tasks):
        print(f"  {one}")
    if found.left:
        note(f"still contained, changed there or their place taken: {', '.join(found.left)}")
    return exits.ANSWER_IS_NO if found.left else exits.DONE

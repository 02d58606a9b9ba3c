"""`amem erase`: take entries, and what quotes them, out of the root for good."""

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, one_line, print_json
from amem.commands import flags
from amem.model.ids import domain_of


@click.command(epilog="Example: amem erase mem-me-0123456789ab --why 'asked for by the person it is about' --dry-run")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option(
    "--why", "--reason", "why", type=flags.REASON, required=True, metavar="TEXT", help="For the receipt; not a word of what is erased."
)
@flags.dry_run
@flags.yes
@click.pass_obj
def command(context: Context, ids: tuple[str, ...], why: str, dry_run: bool, yes: bool) -> int:
    """Erase entries and every passage of them in the root: entries that quote them, contexts, transcripts, held writes, exports, index.

    Prints a receipt. Exits 3 when something of them is left. An act that was cut short goes on when the same ids are given again.
    """
    from amem.launch import presence
    from amem.memory import erase

    ids = tuple(dict.fromkeys(map(flags.entry_id, ids)))
    flags.owner_alone(context, "where an entry's text stands")
    if not dry_run:
        flags.confirm(f"Erase {', '.join(ids)} for good?", yes)
    domain = domain_of(ids[0])
    session = context.owner_session(domain if domain in context.domains else None)
    receipt = erase.erase(context.memory, session, ids, why, dry_run=dry_run)
    left = receipt.searched.left
    running = [session for session in receipt.readers if presence.is_running(context.root, session)]
    if context.flags.json:
        print_json(erase.shape(receipt))
    elif dry_run:
        print("\n".join(one_line(f"carries it: {path}") for path in left) or "nothing carries it")
    else:
        print("\n".join([one_line(f"{one.how}: {one.path}") for one in receipt.removed]))
        size = f"{receipt.searched.files} files, {receipt.searched.bytes} bytes"
        note(f"{size} searched after that; the receipt is state/erased/{receipt.id}.json")
    if receipt.exported:
        note(f"it was exported to {', '.join(receipt.exported)}: a copy that is not below the root is not reached")
    if receipt.also_in:
        note(f"left as they are, though they share words with it: {', '.join(receipt.also_in)}")
    if running:
        note(f"{', '.join(running)} read it and still runs: what it writes from now on may say it again: amem session stop {running[0]}")
    if left and not dry_run:
        note(f"still there, for you to look at: {', '.join(left)}")
        return exits.ANSWER_IS_NO
    return exits.DONE

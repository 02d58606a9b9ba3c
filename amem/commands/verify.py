"""`amem verify`: whether record and logs are as amem wrote them."""

import sys
from datetime import datetime

import click

from amem.cli import exits
from amem.cli.context import Context
from amem.cli.output import one_line, print_json
from amem.commands import flags
from amem.model import clock


@click.command(epilog="Examples: amem verify    amem verify --anchor")
@click.option("--anchor", is_flag=True, help="Remember how far each log goes, so that a cut shows later.")
@flags.since
@click.pass_obj
def command(context: Context, anchor: bool, since: datetime | None) -> int:
    """Check the links of the logs, and every entry against what the logs say was written. Exits 3 when something was changed."""
    from amem.ledger.opening import open_reading
    from amem.logs import writer
    from amem.logs.schema import Anchor
    from amem.memory import contain, verify
    from amem.record.store import Store

    flags.owner_alone(context, "what was changed")
    root, start = context.root, clock.stamp(since) if since else ""
    with open_reading(root, context.grants) as ledger:
        found = verify.verify(root.state, Store(root), ledger.promotions, contain.contained(root), since=start)
    if anchor and not found.broken:
        heads = {name: head._asdict() for name, head in found.heads.items()}
        writer.append(root.state, Anchor(at=clock.stamp(clock.now()), principal=context.principal, heads=heads))
    head = verify.total(found.heads)
    if context.flags.json:
        print_json(
            {"checked": {"entries": found.entries, "lines": found.lines}, "broken": [one._asdict() for one in found.broken], "head": head}
        )
    else:
        for one in found.broken:
            print(one_line(f"{one.where}: {one.kind}"))
        print(f"{found.entries} entries, {found.lines} lines: {len(found.broken)} not as written; head {head}", file=sys.stderr)
    return exits.ANSWER_IS_NO if found.broken else exits.DONE

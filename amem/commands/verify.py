"""`amem verify`: whether record and logs are as amem wrote them."""

import re
import sys
from datetime import datetime
from functools import partial

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import one_line, print_json
from amem.commands import flags
from amem.errors import UsageError
from amem.model import clock


@click.command(epilog="Examples: amem verify    amem verify --anchor    amem verify --head sha256:…")
@click.option("--anchor", is_flag=True, help="Remember how far each log goes, so that a cut shows later.")
@click.option("--head", metavar="HEAD", help="What `--anchor` printed, kept elsewhere: shows a root that was put back as it was before.")
@flags.since
@click.pass_obj
def command(context: Context, anchor: bool, head: str | None, since: datetime | None) -> int:
    """Check the links of the logs, and every entry and event against what the logs say was written. Exits 3 when something was changed."""
    from amem.ledger.opening import open_reading
    from amem.logs import writer
    from amem.logs.schema import Anchor
    from amem.memory import contain, sealing, verify
    from amem.record.store import Store

    flags.owner_alone(context, "what was changed")
    if head is not None and not re.fullmatch(r"sha256:[0-9a-f]{64}", head):
        raise UsageError(f"--head {head[:80]}: expected what `amem verify --anchor` printed, sha256:…")
    root, start = context.root, clock.stamp(since) if since else ""
    with open_reading(root, context.grants) as ledger:
        found = verify.verify(root, Store(root), context.grants, ledger, contain.contained(root), since=start, anchor=head or "")
        if anchor and not found.broken:
            at = clock.stamp(clock.now())
            sealing.seal(root, context.grants, ledger, partial(writer.append, root.state), at)
            ends = {name: end._asdict() for name, end in verify.heads(root).items()}
            writer.append(root.state, Anchor(at=at, principal=context.principal, heads=ends))
    kept = verify.last_anchor(root)
    if context.flags.json:
        checked = {"entries": found.entries, "events": found.events, "lines": found.lines}
        document = {"checked": checked, "broken": [one._asdict() for one in found.broken]}
        print_json(document | ({"head": kept} if kept else {}))
    else:
        for one in found.broken:
            print(one_line(f"{one.where}: {one.kind}"))
        print(f"{found.entries} entries, {found.events} events, {found.lines} lines: {len(found.broken)} not as written", file=sys.stderr)
        if kept:
            print(kept)
    return exits.ANSWER_IS_NO if found.broken else exits.DONE

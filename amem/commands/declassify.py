"""`amem declassify`: lower a label, and see first what is lowered."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterable

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import print_json, table
from amem.commands import flags
from amem.errors import ConflictError
from amem.memory.declassify import Lowered
from amem.model.ids import domain_of, is_id
from amem.model.label import Label
from amem.typed import Any

_ID = click.argument("id")
_TO = click.option("--to", required=True, type=flags.LABELS, help="The label that it is to have.")
_WHY = click.option("--why", type=flags.REASON, required=True, metavar="TEXT", help="For whoever asks later.")


def _command(function: Callable[..., int]) -> click.Command:
    example = {"entry": "mem-me-0123456789ab", "session": "ses-0123abcd", "worktree": "."}[function.__name__]
    for option in (_ID, _TO, _WHY, flags.dry_run, flags.yes, click.pass_obj)[::-1]:
        function = option(function)
    return group.command(epilog=f"Example: amem declassify {function.__name__} {example} --to public --why 'reviewed' --dry-run")(function)


@click.group(epilog="Examples: amem declassify worktree . --to public --why 'reviewed'    amem declassify entry --help")
def group() -> None:
    """Lower the label of an entry, a session or a work tree: the owner's act, logged. Nothing else lowers one."""


@_command
def entry(context: Context, id: str, to: str, why: str, dry_run: bool, yes: bool) -> int:
    """Lower an entry. From then on it is served to whoever may read up to that label."""
    from amem.memory import declassify

    flags.entry_id(id)
    flags.owner_alone(context, "a label")
    return _act(context, id, id, domain_of(id), [declassify.entry(context.memory, id, Label(to))], Label(to), why, dry_run, yes)


@_command
def session(context: Context, id: str, to: str, why: str, dry_run: bool, yes: bool) -> int:
    """Lower a session that has ended. What it wrote follows, and its part in what its work trees carry."""
    from amem.commands.session import row_of
    from amem.egress import meter
    from amem.launch import trees
    from amem.memory import declassify

    flags.owner_alone(context, "a label")
    label = Label(to)
    row = row_of(context, id)
    if row["state"] == "running":
        raise ConflictError(f"{id} is running: what it has read it still has", hint=f"amem session stop {id}")
    entries = declassify.written_by(context.memory, id, label)
    carried = trees.carried(context.root, session=id)
    now = trees.without(context.root, carried, label, id)
    lowered = [*entries, *(Lowered(tree, was, now[tree]) for tree, was in carried.items() if was.exceeds(now[tree]))]
    if Label(row["label"]).exceeds(label):
        lowered.insert(0, Lowered(id, Label(row["label"]), label))

    def apply() -> None:
        trees.lower(context.root, carried, label, id)
        meter.lower_label(context.root, id, label)

    return _act(context, id, id, str(row["domain"]), lowered, label, why, dry_run, yes, apply)


@_command
def worktree(context: Context, id: str, to: str, why: str, dry_run: bool, yes: bool) -> int:
    """Lower a work tree and those below it. The next session in it starts there. ID is its path."""
    from amem.launch import trees

    flags.owner_alone(context, "a label")
    path, label = os.path.realpath(id), Label(to)
    lowered = [Lowered(tree, was, label) for tree, was in trees.carried(context.root, path).items() if was.exceeds(label)]
    subject = f"worktree:{hashlib.sha256(path.encode()).hexdigest()[:12]}"
    names = [one.id for one in lowered]
    if at_work := trees.writers(context.root, names, label):
        raise ConflictError(f"{at_work[0]} runs and may write it: what it has read it still has", hint=f"amem session stop {at_work[0]}")
    return _act(
        context, path, subject, context.domain(None), lowered, label, why, dry_run, yes, lambda: trees.lower(context.root, names, label)
    )


def _act(
    context: Context, id: str, subject: str, domain: str, lowered: Iterable[Lowered], to: Label, why: str, dry_run: bool, yes: bool,
    apply: Callable[[], None] = lambda: None,
) -> int:  # fmt: skip
    """Show what is lowered, ask, decide, log, do it."""
    from amem.memory import declassify
    from amem.memory.held import act
    from amem.policy import request

    found = list(lowered)
    if not found:
        raise ConflictError(f"{id} is not above {to}: nothing to lower", hint="amem session list")
    rows = table(["what", "from", "to"], [[one.id, one.was, one.to] for one in found], stretch=0)
    decision = ""
    if not dry_run:
        if not yes:
            print(rows, file=sys.stderr)
        flags.confirm(f"Lower {len(found)} of these to {to}?", yes)
        session = context.owner_session(domain if domain in context.domains else None)
        decision = act(context.memory, session, request.DECLASSIFY, session.domain, subject).id
        apply()
        declassify.lower(context.memory, session, [one for one in found if is_id("entry", one.id)], why, subject=id)
    if context.flags.json:
        shown: list[dict[str, Any]] = [{"id": one.id, "from": one.was, "to": one.to} for one in found]
        print_json({"id": id, "from": found[0].was, "to": to, "lowered": shown} | ({"decision": decision} if decision else {}))
    elif dry_run or yes:
        print(rows)
    return exits.DONE

"""`amem reindex`: rebuild what can be rebuilt, or say what a rebuild would change."""

import sys
from dataclasses import asdict

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, one_line, print_json
from amem.commands import flags
from amem.typed import Any


@click.command(epilog="Examples: amem reindex    amem reindex --check    amem reindex --ledger")
@click.option("--index", "only_index", is_flag=True, help="The search index alone.")
@click.option("--ledger", "only_ledger", is_flag=True, help="The ledger's projection alone.")
@click.option("--check", is_flag=True, help="Compare by stat and digest, rebuild nothing. Exits 3 on a difference.")
@click.pass_obj
def command(context: Context, only_index: bool, only_ledger: bool, check: bool) -> int:
    """Rebuild what can be rebuilt: the search index from the record, the tasks from their events.

    Malformed files are reported and kept.
    """
    flags.owner_alone(context, "what the whole root holds")
    if not check and sys.stderr.isatty():
        note("reading everything …")
    code = exits.DONE
    document: dict[str, Any] = {}
    if not only_ledger or only_index:
        code, found = _index(context, check)
        document |= found
    if not only_index or only_ledger:
        differs, found = _ledger(context, check)
        document |= found
        code = code or differs
    if context.flags.json:
        print_json(document)
    return code


def _ledger(context: Context, check: bool) -> tuple[int, dict[str, Any]]:
    """Replay the events of every domain."""
    from amem.ledger.opening import open_ledger

    if context.grants.ledger_url is None and not context.root.ledger.exists():
        return exits.DONE, {"tasks": 0}
    with open_ledger(context.root, context.grants) as ledger:
        found = {domain: ledger.reindex(domain, check=check) for domain in context.grants.domains}
    repaired = [id for each in found.values() for id in each.repaired]
    tasks = sum(each.tasks for each in found.values())
    if not context.flags.json:
        print(f"{tasks} task{'' if tasks == 1 else 's'} in the ledger")
        for id in repaired:
            print(f"{'differs' if check else 'repaired'}: {id} was not what its events come to")
    return exits.ANSWER_IS_NO if check and repaired else exits.DONE, {"tasks": tasks, "repaired_tasks": repaired}


def _index(context: Context, check: bool) -> tuple[int, dict[str, Any]]:
    """Rebuild the index, or compare it with the files."""
    from amem.record.index import Index

    context.root.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    index = Index.open(context.root)
    try:
        report = index.refresh(full=True) if check else index.rebuild()
    finally:
        index.close()
    changes = {name: getattr(report, name) for name in ("added", "changed", "moved", "removed")} if check else {}
    document = {
        "entries": report.entries,
        **{name: count for name, count in changes.items() if count},
        "repaired": list(report.repaired),
        "raised": list(report.raised),
        "malformed": [asdict(problem) for problem in report.problems],
    }
    if not context.flags.json:
        print(f"{report.entries} {'entry' if report.entries == 1 else 'entries'} in the index")
        for name, count in changes.items():
            if count:
                print(f"{count} {name} behind amem; the index now follows the files")
        for entry in report.repaired:
            print(f"repaired: {entry} lacked the mark of what replaced it")
        for entry in report.raised:
            print(f"kept: {entry} says a lower label than it had; it is served under the old one")
        for problem in report.problems:
            print(f"{problem.kind}: {one_line(str(problem.path))}: {one_line(problem.why)}")
    return exits.ANSWER_IS_NO if check and (any(changes.values()) or report.problems) else exits.DONE, document

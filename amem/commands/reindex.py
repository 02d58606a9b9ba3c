"""`amem reindex`: rebuild what can be rebuilt, or say what a rebuild would change."""

import sys
from dataclasses import asdict

import click

from amem.cli import exits
from amem.cli.context import Context
from amem.cli.output import note, one_line, print_json


@click.command(epilog="Examples: amem reindex    amem reindex --check")
@click.option("--check", is_flag=True, help="Compare with the files by stat and digest, rebuild nothing. Exits 3 on a difference.")
@click.pass_obj
def command(context: Context, check: bool) -> int:
    """Rebuild the search index from the record. Malformed files are reported and kept."""
    from amem.record.index import Index

    context.root.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    index = Index.open(context.root)
    try:
        if not check and sys.stderr.isatty():
            note("reading every entry …")
        report = index.refresh(full=True) if check else index.rebuild()
    finally:
        index.close()
    changes = {name: getattr(report, name) for name in ("added", "changed", "moved", "removed")} if check else {}
    if context.flags.json:
        print_json(
            {
                "entries": report.entries,
                **{name: count for name, count in changes.items() if count},
                "repaired": list(report.repaired),
                "raised": list(report.raised),
                "malformed": [asdict(problem) for problem in report.problems],
            }
        )
    else:
        print(f"{report.entries} entries in the index")
        for name, count in changes.items():
            if count:
                print(f"{count} {name} behind amem; the index now follows the files")
        for entry in report.repaired:
            print(f"repaired: {entry} lacked the mark of what replaced it")
        for entry in report.raised:
            print(f"kept: {entry} says a lower label than it had; it is served under the old one")
        for problem in report.problems:
            print(f"{problem.kind}: {one_line(str(problem.path))}: {one_line(problem.why)}")
    return exits.ANSWER_IS_NO if check and (any(changes.values()) or report.problems) else exits.DONE

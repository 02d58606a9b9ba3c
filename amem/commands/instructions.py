"""`amem instructions list` and `approve`: the files of a work tree that a harness obeys."""

import os

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, print_json, table
from amem.errors import NotFoundError
from amem.launch import instructions
from amem.launch.plan import place_of

WORKDIR = click.option("--workdir", default=".", show_default=True, metavar="PATH", help="The work tree.")


@click.group(epilog="Examples: amem instructions list    amem instructions approve AGENTS.md")
def group() -> None:
    """Instruction files of a work tree: AGENTS.md, CLAUDE.md and their like, which a harness obeys like its user."""


@group.command("list", epilog="Example: amem instructions list --workdir ~/project")
@WORKDIR
@click.pass_obj
def list_(context: Context, workdir: str) -> int:
    """List them, with what you have said about each."""
    place = place_of(workdir, context.root, context.environment)
    found = instructions.find(context.root, place, whole=True)
    if context.flags.json:
        rows = [
            {"path": each.name, "digest": instructions.digest(place.workdir, each.name), "state": each.state} for each in found
        ]  # fmt: skip
        print_json({"files": rows, "total": len(rows), "more": False})
    elif found:
        print(table(("state", "path"), [(each.state, each.name) for each in found]))
    else:
        note(f"{place.workdir} has no instruction files")
    return exits.DONE


@group.command("approve", epilog="Examples: amem instructions approve    amem instructions approve AGENTS.md")
@click.argument("paths", nargs=-1, metavar="[PATH…]")
@WORKDIR
@click.pass_obj
def approve(context: Context, paths: tuple[str, ...], workdir: str) -> int:
    """Approve them as they are now: all of the tree, or those named. Exits 3 for a path that is none."""
    place = place_of(workdir, context.root, context.environment)
    known = [each.name for each in instructions.find(context.root, place, whole=True)]
    wanted = []
    for path in paths:
        # Not `realpath`: a name that is a link is approved under its own name.
        name = os.path.relpath(
            os.path.join(os.path.realpath(os.path.dirname(os.path.join(place.cwd, path))), os.path.basename(path)), place.workdir
        )
        if name not in known:
            raise NotFoundError(f"{path}: not an instruction file of {place.workdir}", hint="amem instructions list")
        wanted.append(name)
    names = tuple(wanted) if paths else tuple(known)
    instructions.approve(context.root, place.workdir, names)
    if context.flags.json:
        rows = [{"path": name, "digest": instructions.digest(place.workdir, name), "state": instructions.State.APPROVED} for name in names]
        print_json({"files": rows, "total": len(rows), "more": False})
    else:
        note(f"approved: {', '.join(names)}" if names else f"{place.workdir} has no instruction files")
    return exits.DONE

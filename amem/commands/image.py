"""`amem image list`, `unpack` and `remove`: the harness images under a root."""

import sys

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import one_line, print_json, table
from amem.commands import flags


@click.group(epilog="Examples: make image unpack HARNESS=claude    amem image list    amem image remove img-0123456789ab")
def group() -> None:
    """Harness images: root file systems whose programs a session is shown in place of this machine's."""


@group.command("list", epilog="Example: amem image list --json")
@click.pass_obj
def list_(context: Context) -> int:
    """List the unpacked images, the newest first."""
    from amem.launch import images

    rows = [
        {"id": image.id, "digest": image.digest, "harnesses": image.harnesses, "current": image.current, "in_use": image.in_use}
        for image in images.images(context.root)
    ]
    if context.flags.json:
        print_json({"images": rows, "total": len(rows), "more": False})
    elif rows:
        columns = ("id", "current", "in_use", "harnesses")
        print(table(columns, [[row["id"], _yes(row["current"]), _yes(row["in_use"]), _versions(row["harnesses"])] for row in rows]))
    else:
        print("no image was unpacked yet", file=sys.stderr)
    return exits.DONE


@group.command("unpack", epilog="Examples: amem image unpack --from build/image/amem-image.tar    amem image unpack --from podman")
@click.option("--from", "source", metavar="wslc|podman|docker|FILE", help="An archive, or the runtime that holds amem-harness.")
@click.pass_obj
def unpack(context: Context, source: str | None) -> int:
    """Unpack a harness image for sessions to come. Running ones keep theirs."""
    from amem.launch import images

    found = images.unpack(context.root, source)
    if context.flags.json:
        print_json({"id": found.id, "digest": found.digest, "harnesses": found.harnesses})
    else:
        print(one_line(f"{found.id}: {_versions(found.harnesses) or 'no harness of amem is in it'}"))
    return exits.DONE


@group.command("remove", epilog="Example: amem image remove img-0123456789ab")
@click.argument("id")
@flags.yes
@click.pass_obj
def remove(context: Context, id: str, yes: bool) -> int:
    """Remove an image. Exits 3 when there is none, 1 while a running session shows it."""
    from amem.launch import images

    flags.confirm(f"Remove {id}?", yes)
    images.remove(context.root, id)
    if context.flags.json:
        print_json({"removed": [id]})
    return exits.DONE


def _versions(harnesses: object) -> str:
    return ", ".join(f"{name} {version}" for name, version in harnesses.items()) if isinstance(harnesses, dict) else ""


def _yes(value: object) -> str:
    return "yes" if value else ""

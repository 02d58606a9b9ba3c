"""`amem export` and `amem import`: entries from one root to another."""

import shlex
from datetime import datetime
from pathlib import Path

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, one_line, print_json
from amem.commands import flags
from amem.commands.memory import TYPES
from amem.errors import UsageError
from amem.model import clock
from amem.model.entry import EntryType
from amem.model.label import Label

_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.command(epilog="Examples: amem export notes.tar    amem export all.tar --label internal --type decision --since 30d")
@_FILE
@flags.domain
@click.option("--label", type=flags.LABELS, default=Label.PUBLIC.value, show_default=True, help="No entry above it.")
@click.option("--type", "types", multiple=True, type=TYPES, help="Only entries of this type.")
@flags.since
@click.pass_obj
def export(context: Context, file: Path, domain: str | None, label: str, types: tuple[str, ...], since: datetime | None) -> int:
    """Write a domain's entries into a bundle: a plain tar with a manifest of digests, and who promoted what."""
    from amem.memory import bundles

    flags.owner_alone(context, "a whole domain")
    where = context.domain(domain)
    if not (folder := file.absolute().parent).is_dir():
        raise UsageError(f"{folder}: there is no such folder", hint=f"mkdir -p {shlex.quote(str(folder))}")
    done = bundles.export(
        context.memory, context.owner_session(where), file.absolute(), bundles.owner_key(_folder(context)), domains=(where,),
        label=Label(label), types=tuple(map(EntryType, types)), since=clock.stamp(since) if since else None,
    )  # fmt: skip
    if context.flags.json:
        print_json(done._asdict())
    else:
        print(one_line(f"{done.entries} entries, {done.promotions} promotions in {done.file}"))
        note(f"manifest {done.manifest_digest}; whoever has the file has them")
    return exits.DONE


@click.command(epilog="Example: amem import notes.tar --label internal --dry-run")
@_FILE
@flags.domain
@click.option("--label", type=flags.LABELS, default=Label.PUBLIC.value, show_default=True, help="No entry below it.")
@flags.dry_run
@flags.yes
@click.pass_obj
def import_(context: Context, file: Path, domain: str | None, label: str, dry_run: bool, yes: bool) -> int:
    """Take a bundle in. Your own keeps its tiers; another owner's lands raw, and what the scan finds in it waits for you."""
    from amem.memory import bundles

    flags.owner_alone(context, "a bundle")
    where = context.domain(domain)
    if not file.exists():
        raise UsageError(f"{file}: there is no such file", hint="amem export --help")
    if not dry_run:
        flags.confirm(f"Take {file} into {where}?", yes)
    key = bundles.known_key(_folder(context))
    done = bundles.land(context.memory, context.owner_session(where), file, key, domain=where, floor=Label(label), dry_run=dry_run)
    if context.flags.json:
        skipped = [{"id": id, "why": why} for id, why in done.skipped]
        print_json({**done._asdict(), "skipped": skipped})
        return exits.DONE
    whose = "your own" if done.same_owner else "another owner's: its entries are raw"
    print(f"{whose}; {'would land' if dry_run else 'landed'} {len(done.landed)}, held {len(done.held)}, skipped {len(done.skipped)}")
    for id in (*done.landed, *done.held):
        print(id)
    for id, why in done.skipped:
        note(f"{id[:60]}: {why}")
    return exits.DONE


def _folder(context: Context) -> Path:
    """Where a person's own configuration of amem stands, whatever the root."""
    base = context.environment.get("XDG_CONFIG_HOME") or str(Path(context.environment.get("HOME") or Path.home()) / ".config")
    return Path(base) / "amem"

"""`amem transcript list`, `show`, `sweep` and `erase`: what harnesses say that their sessions were, turn by turn."""

import re
import sys
from datetime import datetime

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, print_json, table, visible
from amem.commands import flags
from amem.errors import NotFoundError, UsageError
from amem.model import clock
from amem.model.call import ObservedBy
from amem.model.ids import is_id
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.record.transcripts import Kept

_TURNS = re.compile(r"([1-9][0-9]{0,6})(?:-([1-9][0-9]{0,6}))?", re.ASCII)


def _turns(text: str) -> tuple[int, int]:
    found = _TURNS.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if first > last:
        raise ValueError(f"{text!r}: expected a turn (3) or turns (3-5)")
    return first, last


@click.group(epilog="Examples: amem transcript list    amem transcript show ses-0123abcd --turn 3-5")
def group() -> None:
    """Transcripts: a harness's own account of a session, which can leave out, reorder or invent."""


@group.command("list", epilog="Examples: amem transcript list    amem transcript list --since 7d --json")
@flags.domain
@click.option("--session", metavar="ID", help="Only this session's.")
@flags.limit
@flags.since
@click.pass_obj
def list_(context: Context, domain: str | None, session: str | None, limit: int, since: datetime | None) -> int:
    """List what is kept, newest first, and when its time is up. A sweep then leaves the turns that entries cite."""
    from amem.memory.transcripts import cited_by, listed

    _checked(session)
    domains = (context.domain(domain),) if domain else context.domains
    after = clock.stamp(since) if since is not None else ""
    reader = context.owner_session(domains[0])
    found = [kept for kept in listed(context.memory, reader, domains, session) if kept.kept_at >= after]
    rows = [_row(context, kept, len(cited_by(context.memory, reader, kept))) for kept in found[: limit or None]]
    if context.flags.json:
        print_json({"transcripts": rows, "total": len(found), "more": len(rows) < len(found)})
        return exits.DONE
    if rows:
        columns = ("session", "harness", "classification", "turns", "bytes", "cited", "expires_at")
        print(table(columns, [[_cell(row, key) for key in columns] for row in rows]))
    print(f"{len(rows)} of {len(found)}" if rows else "no transcript is kept", file=sys.stderr)
    return exits.DONE


@group.command(epilog="Examples: amem transcript show ses-0123abcd --turn 3    amem transcript show ses-0123abcd --turn 1-9 --json")
@click.argument("session")
@click.option(
    "--turn", "span", type=flags.Parsed("turns", _turns), required=True, metavar="N|A-B", help="A turn, or the first and last of several."
)
@click.option("--uncited", is_flag=True, help="Turns that nothing cites too, which is logged.")
@click.option("--unmask", is_flag=True, help="Show credentials in it as they were, which is logged.")
@click.pass_obj
def show(context: Context, session: str, span: tuple[int, int], uncited: bool, unmask: bool) -> int:
    """Show turns of a session. They are those that an entry cites which you may read. Exits 3 when there is none."""
    from amem.memory.transcripts import text, turns

    _checked(session)
    if uncited or unmask:
        flags.owner_alone(context, "what nothing cites, or was sealed,")
    found = turns(context.memory, context.owner_session(context.domains[0]), session, *span, uncited=uncited, unmask=unmask)
    if context.flags.json:
        document = {"session": session, "turns": found.rows, "cited_by": found.cited_by, "observed_by": ObservedBy.HARNESS}
        print_json(document | ({"uncited": found.uncited} if found.uncited else {}))
        return exits.DONE
    for row in found.rows:
        print(visible(text(row)) + "\n")
    print(f"{found.kept.harness}'s own account; cited by {', '.join(found.cited_by) or 'nothing'}", file=sys.stderr)
    if found.uncited:
        note(f"{len(found.uncited)} more turns are cited by nothing that you may read (--uncited)")
    return exits.DONE


@group.command(epilog="Examples: amem transcript sweep --dry-run    amem transcript sweep --domain dom-me --json")
@flags.domain
@click.option("--at", type=flags.Parsed("when", clock.parse), metavar="WHEN", help="As if it were then; default: now.")
@flags.dry_run
@click.pass_obj
def sweep(context: Context, domain: str | None, at: datetime | None, dry_run: bool) -> int:
    """Drop transcripts, contexts and private homes whose time is up. Turns that active entries cite stay as their excerpts."""
    from amem.launch.presence import is_running
    from amem.memory.transcripts import sweep as swept

    domains = (context.domain(domain),) if domain else context.domains
    flags.owner_alone(context, "what would be swept")
    found = swept(
        context.memory,
        context.owner_session(domains[0]),
        domains,
        at or clock.now(),
        lambda id: is_running(context.root, id),
        dry_run=dry_run,
    )
    kept = [{"session": session, "turn": n, "entry": entry} for session, n, entry in found.kept]
    dropped = {"transcripts": list(found.transcripts), "contexts": list(found.contexts), "homes": list(found.homes), "sources": []}
    if context.flags.json:
        print_json({"kept": kept, "dropped": dropped})
        return exits.DONE
    would = "would be " if dry_run else ""
    for what, called in (("transcripts", "transcript"), ("contexts", "decision contexts"), ("homes", "private home")):
        for id in dropped[what]:
            print(f"{id}: its {called} {would}dropped")
    for one in kept:
        print(f"{one['session']}#{one['turn']}: {'would stay' if dry_run else 'stays'}, cited by {one['entry']}")
    if not any(dropped.values()):
        print("nothing is past its time", file=sys.stderr)
    return exits.DONE


@group.command(epilog="Example: amem transcript erase ses-0123abcd --reason 'names of customers' --yes")
@click.argument("session")
@click.option("--reason", "--why", "why", type=flags.REASON, required=True, metavar="TEXT", help="Why, for whoever asks later.")
@flags.dry_run
@flags.yes
@click.pass_obj
def erase(context: Context, session: str, why: str, dry_run: bool, yes: bool) -> int:
    """Erase a transcript before its time. A stub and a receipt stay; the entries that cite it are named. Exits 3 when there is none."""
    from amem.memory import transcripts

    _checked(session)
    flags.owner_alone(context, "an erasure")
    reader = context.owner_session(context.domains[0])
    if dry_run:
        found = transcripts.listed(context.memory, reader, context.domains, session)
        if not found:
            raise NotFoundError(f"no transcript of {session} was kept", hint="amem transcript list")
        receipt: dict[str, Any] = {"transcript": session, "citing": transcripts.cited_by(context.memory, reader, found[0])}
    else:
        flags.confirm(f"erase the transcript of {session}? Nothing brings it back.", yes)
        receipt = transcripts.erase(context.memory, reader, session, why)
    if context.flags.json:
        print_json(receipt)
        return exits.DONE
    print(f"{session}: its transcript {'would be' if dry_run else 'is'} erased" + (f" ({receipt['id']})" if "id" in receipt else ""))
    for id in receipt["citing"]:
        note(f"{id} cites it")
    return exits.DONE


def _checked(session: str | None) -> None:
    if session is not None and not is_id("session", session):
        raise UsageError(f"{session[:40]}: not the id of a session", hint="amem transcript list")


def _row(context: Context, kept: "Kept", cited: int) -> dict[str, Any]:
    days = context.grants.domains[kept.domain].transcript_retention_days
    row: dict[str, Any] = {
        "session": kept.session, "harness": kept.harness, "domain": kept.domain, "classification": kept.classification,
        "turns": kept.turns, "bytes": kept.path.stat().st_size, "kept_at": kept.kept_at,
        "expires_at": clock.stamp(kept.expires_at(days)), "cited": cited, "observed_by": ObservedBy.HARNESS,
    }  # fmt: skip
    if kept.bad_lines:
        row["bad_lines"] = kept.bad_lines
    return row | {key: value for key in ("swept_at", "erased_at") if (value := getattr(kept, key)) is not None}


def _cell(row: dict[str, Any], key: str) -> object:
    if key != "expires_at":
        return row[key]
    return "erased" if "erased_at" in row else "swept" if "swept_at" in row else row[key][:10]

"""`amem t0`, `search`, `get`, `list`, `write`: the record, as the acting person may see it."""

import re
import sys
from datetime import datetime
from typing import Any, NoReturn

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import note, one_line, print_json, table, visible
from amem.cli.streams import given
from amem.cli.table import COMMANDS
from amem.commands import flags
from amem.commands.flags import LABELS
from amem.errors import ConflictError, RefusedError, UsageError
from amem.memory import outcomes, rows
from amem.model import clock
from amem.model.entry import EntryType, Status, Tier
from amem.model.label import Label

TYPES = click.Choice([each.value for each in EntryType])
TIERS = click.Choice([each.value for each in Tier])


@click.command(epilog="Example: amem t0 --budget 1000")
@flags.domain
@click.option("--budget", type=click.IntRange(200), default=2000, show_default=True, metavar="TOKENS", help="How long the page may be.")
@click.pass_obj
def t0(context: Context, domain: str | None, budget: int) -> int:
    """Print the opening page of a session."""
    from amem.memory.t0 import t0 as page_of

    page = page_of(context.memory, context.owner_session(domain), budget_tokens=budget)
    if isinstance(page, outcomes.Refused):
        refused(page)
    if context.flags.json:
        print_json({"text": page.text, "tokens": page.tokens, "entries": list(page.entries)})
    else:
        print(visible(page.text))
    return exits.DONE


@click.command(epilog="Examples: amem search import retries    amem search --type decision egress --json")
@click.argument("query", nargs=-1, required=True, metavar="QUERY…")
@flags.domain
@click.option("--all-domains", is_flag=True, help="Search every domain of the root.")
@click.option("--type", "types", multiple=True, type=TYPES, help="Only entries of this type.")
@click.option("--tier", type=TIERS, help="This tier or above.")
@click.option("--label", type=LABELS, help="This label or below.")
@click.option("--limit", type=flags.COUNT, metavar="N", default=10, show_default=True, help="0 is all.")
@click.option("--offset", type=flags.COUNT, metavar="N", default=0, help="How many to skip, for the next page.")
@click.pass_obj
def search(
    context: Context, query: tuple[str, ...], domain: str | None, all_domains: bool, types: tuple[str, ...],
    tier: str | None, label: str | None, limit: int, offset: int,
) -> int:  # fmt: skip
    """Search the record: summaries, best first."""
    from amem.memory import read

    found = read.search(
        context.memory, context.owner_session(domain), " ".join(query), type=[EntryType(each) for each in types],
        tier=Tier(tier) if tier else None, label=Label(label) if label else None,
        domains=context.domains if all_domains else (), limit=limit or sys.maxsize, offset=offset,
    )  # fmt: skip
    if isinstance(found, outcomes.Refused):
        refused(found)
    if context.flags.json:
        print_json({"hits": [rows.hit(hit) for hit in found.hits], "total": found.total, "more": found.more, "mode": found.mode})
        return exits.DONE
    for hit in found.hits:
        print(f"{hit.id}  {hit.type} · {hit.tier} · {hit.classification} · {hit.tokens} tokens")
        print(f"  {one_line(hit.title)}")
        if hit.summary and hit.summary != hit.title:
            print(f"  {one_line(hit.summary)}")
    print(f"{len(found.hits)} of {found.total}" if found.hits else "nothing found", file=sys.stderr)
    return exits.DONE


@click.command(epilog="Example: amem get mem-me-0123456789ab")
@click.argument("ids", nargs=-1, required=True, metavar="ID[@VERSION]…")
@click.option("--redirect/--no-redirect", default=True, show_default=True, help="Serve the entry that replaced it.")
@click.option("--meta", is_flag=True, help="The front matter alone.")
@click.pass_obj
def get(context: Context, ids: tuple[str, ...], redirect: bool, meta: bool) -> int:
    """Read entries. Exits 3 when one is not there, gone or not readable."""
    from amem.memory import read
    from amem.model.ids import domain_of, is_id

    code = exits.DONE
    for asked in ids:
        id, _, version = asked.partition("@")
        if not is_id("entry", id) or (version and not re.fullmatch(r"[1-9]\d{0,8}", version)):
            raise UsageError(f"{asked}: expected mem-<domain>-<12 letters or digits>, with @<version> or without", hint="amem list")
        domain = domain_of(id)
        known = domain if domain in context.domains else context.domain(None)
        session = context.owner_session(known)
        found = read.get(context.memory, session, id, version=int(version) if version else None, redirect=redirect)
        code = show_entry(found, context.flags.json, meta=meta) or code
    return code


def show_entry(found: outcomes.Served | outcomes.Moved | outcomes.Gone | outcomes.NotFound, as_json: bool, *, meta: bool = False) -> int:
    """Print what came of a `get`, and return the exit code."""
    match found:
        case outcomes.Served(row=row, body=body, redirected_from=redirected_from):
            shape = rows.entry(row) | ({} if meta else {"body": body}) | ({"redirected_from": redirected_from} if redirected_from else {})
            if as_json:
                print_json(shape)
            else:
                _print_entry(shape)
            return exits.DONE
        case outcomes.Moved(id, location):
            status: dict[str, Any] = {"id": id, "status": "moved", "location": location}
        case outcomes.Gone(id):
            status = {"id": id, "status": "gone"}
        case outcomes.NotFound(id):
            status = {"id": id, "status": "not_found"}
    if as_json:
        print_json(status)
    else:
        words = {"moved": f"moved to {status.get('location')}", "gone": "gone", "not_found": "not found"}
        note(f"{status['id']}: {words[status['status']]}")
    return exits.ANSWER_IS_NO


def _print_entry(shape: dict[str, Any]) -> None:
    body = shape.pop("body", None)
    if "redirected_from" in shape:
        note(f"{shape['redirected_from']} was replaced; this is its current version")
    for key, value in shape.items():
        print(f"{key}: {one_line(', '.join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))}")
    if body is not None:
        print()
        print(visible(body))


@click.command("list", epilog="Examples: amem list --type handoff --since 7d    amem list --sort title --limit 0")
@flags.domain
@click.option("--all-domains", is_flag=True, help="Of all domains.")
@click.option("--type", "types", multiple=True, type=TYPES, help="Only entries of this type.")
@click.option("--tier", type=TIERS, help="Only entries of this tier or a higher one.")
@click.option("--status", type=click.Choice([each.value for each in Status]), default="active", show_default=True, help="Which entries.")
@click.option("--author", metavar="PRINCIPAL", help="Only what this principal wrote, such as agent:claude.")
@click.option("--due", is_flag=True, help="Only what is due for review.")
@click.option("--sort", type=click.Choice(["written", "title"]), default="written", show_default=True, help="Newest first, or by title.")
@flags.limit
@flags.since
@click.pass_obj
def list_(
    context: Context, domain: str | None, all_domains: bool, types: tuple[str, ...], tier: str | None, status: str,
    author: str | None, due: bool, sort: str, limit: int, since: datetime | None,
) -> int:  # fmt: skip
    """List entries, newest first."""
    from amem.memory import read

    found = read.entries(
        context.memory, context.owner_session(domain), type=[EntryType(each) for each in types], tier=Tier(tier) if tier else None,
        status=Status(status), author=author, due=due, since=clock.stamp(since) if since else None,
        domains=context.domains if all_domains else (), sort=sort, limit=limit,
    )  # fmt: skip
    if isinstance(found, outcomes.Refused):
        refused(found)
    if context.flags.json:
        print_json({"entries": [rows.entry(row) for row in found.rows], "total": found.total, "more": found.more})
        return exits.DONE
    if found.rows:
        print(
            table(
                ["id", "type", "tier", "label", "title"],
                [[row.id, row.type, row.tier, row.classification, row.title] for row in found.rows],
            )
        )
    print(f"{len(found.rows)} of {found.total}" if found.rows else "nothing there yet", file=sys.stderr)
    return exits.DONE


@click.command(epilog="Example: amem write --type fact --title 'The build needs make 4' --body -  < note.md")
@click.option("--type", "type_", required=True, type=TYPES, help="What it is.")
@click.option("--title", required=True, metavar="TEXT", help="One line that says it.")
@click.option("--body", required=True, metavar="TEXT|-", help="The Markdown body; - reads stdin.")
@click.option("--summary", metavar="TEXT", help="One sentence; default: the body's first.")
@click.option("--label", type=LABELS, help="Default: the domain's.")
@click.option("--supersedes", multiple=True, metavar="ID", help="An entry that this one replaces.")
@click.option("--source", "sources", multiple=True, metavar="REF", help="What it rests on: an entry, file:PATH, transcript:SESSION#TURN.")
@click.option("--review-by", metavar="DATE", help="When somebody should check it, YYYY-MM-DD; a fact has 90 days.")
@click.option("--owner-of", metavar="PRINCIPAL", help="A convention's owner.")
@click.option("--basis", type=click.Choice(["stated", "observed", "inferred"]), help="How it is known.")
@click.option("--valid-from", metavar="WHEN", help="Since when it holds.")
@click.option("--valid-to", metavar="WHEN", help="Until when it held.")
@flags.domain
@click.pass_obj
def write(context: Context, /, type_: str, body: str, label: str | None, owner_of: str | None, domain: str | None, **rest: Any) -> int:
    """Write an entry into the record."""
    from amem.memory.draft import draft
    from amem.memory.write import write as write_entry

    drafted = draft(type=type_, body=given(body), classification=label, owner=owner_of, **rest)
    return print_outcome(write_entry(context.memory, context.owner_session(domain), drafted), context.flags.json)


def print_outcome(outcome: outcomes.Written | outcomes.Held | outcomes.Refused, as_json: bool) -> int:
    """Say what came of a write. A refusal is raised."""
    match outcome:
        case outcomes.Written(entry, same):
            document: dict[str, Any] = {"id": entry.id, "version": entry.version, "tier": entry.tier}
            print_json(document | ({"same_claim": list(same)} if same else {})) if as_json else print(entry.id)
            if same and not as_json:
                note(f"these still say what it replaced, and wait to be reconciled: {', '.join(same)}")
            return exits.DONE
        case outcomes.Held():
            document = {"held": outcome.id, "reasons": [outcome.reason]} | ({"task": outcome.task} if outcome.task else {})
            print_json(document) if as_json else note(f"held in the quarantine as {outcome.id}: {outcome.reason}")
            return exits.ANSWER_IS_NO
        case outcomes.Refused():
            refused(outcome)


def refused(outcome: outcomes.Refused) -> NoReturn:
    """The policy's or the grants' no, as the command's answer; where somebody was quicker, a conflict. A tool's name is its command's."""
    tool, *given = (outcome.hint or "").split() or [""]
    hint = " ".join(["amem", tool, *(given or ["--help"])]) if tool in COMMANDS else outcome.hint
    if outcome.code == "conflict":
        raise ConflictError(outcome.reason, hint=hint)
    raise RefusedError(outcome.reason, hint=hint, reason=outcome.code)

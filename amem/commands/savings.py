"""`amem savings`: what the memory saves, measured on this root's own record and logs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import WIDTH, one_line, print_json, table
from amem.commands import flags
from amem.model import clock
from amem.model.entry import EntryType, tokens
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.record.rows import Filter, Row
    from amem.reports.savings import Funnel, Metrics, Reads

PAGE = 10
TOP = 3
MOST_KNOWN = 200
"""Entries that are searched by their own title."""
SHOWN = 20


@click.command(epilog="Examples: amem savings    amem savings --query 'why retries are off' --since 7d --json    make savings QUERY='…'")
@click.option("--query", metavar="TEXT", help="What the retrieval is measured with; default: a title of the record.")
@flags.domain
@flags.since
@click.pass_obj
def command(context: Context, query: str | None, domain: str | None, since: datetime | None) -> int:
    """Measure what the memory saves: recovery, retrieval, the funnel from what was served to what models took in, and its use.

    Recovery sets the opening page and the latest handoff beside the transcripts that sessions here left; retrieval a page of ten hits
    beside the bodies that they stand for and the whole corpus. Tokens of amem's own texts are bytes / 4.
    """
    from amem.memory.outcomes import Refused
    from amem.memory.read import reader

    flags.owner_alone(context, "what was read")
    domains = (context.domain(domain),) if domain else context.domains
    within = reader(context.memory, context.owner_session(domains[0]), domains)
    if isinstance(within, Refused):
        raise click.ClickException(within.reason)
    live = list(context.memory.index.list(within, limit=0).rows)
    recovery = _recovery(context, domains, live, since)
    retrieval = _retrieval(context, within, live, query)
    funnel, by_session = _logs(context, domains, since)
    total = _total(by_session)
    if context.flags.json:
        per = [{"session": session, **found.shown()} for session, found in by_session.items()]
        print_json({
            "recovery": recovery, "retrieval": retrieval, "funnel": [row.shown() for row in funnel],
            "metrics": total.shown() | {"sessions": per},
        })  # fmt: skip
        return exits.DONE
    parts = (_measured(recovery, retrieval), _funnelled(funnel, retrieval["corpus"]), _used(total) if by_session else "")
    print("\n\n".join(filter(None, parts)))
    return exits.DONE


def _recovery(context: Context, domains: Sequence[str], live: "list[Row]", since: datetime | None) -> dict[str, Any]:
    """Tokens of the opening page, of the latest handoff, and of a transcript on average."""
    from amem.memory.t0 import Page, t0
    from amem.record import transcripts

    page = t0(context.memory, context.owner_session(domains[0]), domain=domains[0])
    handoffs = [row.tokens for row in live if row.type is EntryType.HANDOFF]
    after = clock.stamp(since) if since is not None else ""
    sizes = [
        sum(tokens(row["text"]) + sum(tokens(call["arguments"]) for call in row.get("tools", ())) for row in transcripts.rows(kept))
        for kept in transcripts.all_kept(context.root, domains)
        if kept.swept_at is None and kept.erased_at is None and kept.kept_at >= after
    ]
    found: dict[str, Any] = {"t0": page.tokens if isinstance(page, Page) else 0, "handoff": handoffs[0] if handoffs else 0}
    return found | {"transcripts": {"sessions": len(sizes), "tokens": round(sum(sizes) / len(sizes)) if sizes else 0}}


def _retrieval(context: Context, within: "Filter", live: "list[Row]", query: str | None) -> dict[str, Any]:
    """Tokens of a page of hits, of their bodies and of everything; and how many entries their own title finds among the first three."""
    index = context.memory.index
    asked = query or (live[0].title if live else "")
    hits = index.search(asked, within, limit=PAGE).hits
    step = max(1, len(live) // MOST_KNOWN)
    tried = live[::step][:MOST_KNOWN]
    top = sum(row.id in [hit.id for hit in index.search(row.title, within, limit=TOP).hits] for row in tried)
    return {
        "query": asked, "hits": len(hits), "page": tokens("".join(hit.title + hit.summary for hit in hits)),
        "bodies": sum(hit.tokens for hit in hits), "corpus": sum(row.tokens for row in live), "entries": len(live),
        "known": {"tried": len(tried), "top3": top},
    }  # fmt: skip


def _logs(context: Context, domains: Sequence[str], since: datetime | None) -> "tuple[list[Funnel], dict[str, Metrics]]":
    from amem.egress import reading
    from amem.logs import reader
    from amem.logs.schema import MemoryRead
    from amem.reports import savings

    launched = {row["id"] for row in reading.sessions(context.root)}
    after = clock.stamp(since) if since is not None else ""
    read = savings.reads(reader.events(context.root.state / MemoryRead.log), launched, domains, after)
    rows = savings.funnel(read, reading.report(context.root, ("session",)))
    handoffs, completed = _handoffs(context, read), Counter(_completed(context, domains)) if read else Counter[str]()
    return rows, {row.session: savings.metrics(read[row.session], handoffs.get(row.session), completed[row.session]) for row in rows}


def _handoffs(context: Context, read: "dict[str, Reads]") -> dict[str, str]:
    """The text of the handoffs that each session left."""
    from amem.logs import reader
    from amem.logs.schema import MemoryWrite

    found: dict[str, str] = {}
    for line in reader.events(context.root.state / MemoryWrite.log):
        session, entry = line.get("session"), line.get("entry")
        if line.get("type") == EntryType.HANDOFF and session in read and isinstance(entry, str):
            loaded = context.memory.index.read(entry)
            if loaded is not None:
                found[session] = "\n".join((found.get(session, ""), loaded.entry.body, *loaded.entry.sources))
    return found


def _completed(context: Context, domains: Sequence[str]) -> Iterator[str]:
    """The session of each completed task that a session completed."""
    from amem.ledger.opening import open_reading
    from amem.ledger.reading import Filter
    from amem.ledger.task import Status

    with open_reading(context.root, context.grants) as ledger:
        for task in ledger.list(Filter(domains=tuple(domains), statuses=(Status.COMPLETED,), limit=0)).tasks:
            if task.session is not None:
                yield task.session


def _total(by_session: "dict[str, Metrics]") -> "Metrics":
    from amem.reports.savings import Metrics

    total = Metrics()
    for found in by_session.values():
        total = total.plus(found)
    return total


def _measured(recovery: dict[str, Any], retrieval: dict[str, Any]) -> str:
    sessions, mean, corpus = recovery["transcripts"]["sessions"], recovery["transcripts"]["tokens"], retrieval["corpus"]
    rows: list[tuple[str, int, str]] = [
        ("T0, the opening page", recovery["t0"], _share(recovery["t0"], corpus, "the corpus")),
        ("the latest handoff", recovery["handoff"], ""),
        ("both, to go on from", recovery["t0"] + recovery["handoff"], _share(recovery["t0"] + recovery["handoff"], mean, "a transcript")),
        (f"a transcript, mean of {sessions}", mean, ""),
        (f"a page of {retrieval['hits']} hits", retrieval["page"], _share(retrieval["page"], corpus, "the corpus")),
        ("their bodies", retrieval["bodies"], _share(retrieval["bodies"], corpus, "the corpus")),
        (f"all {retrieval['entries']} entries", corpus, ""),
    ]
    known = f"found by their own title, among the first {TOP}: {retrieval['known']['top3']} of {retrieval['known']['tried']}"
    asked = f"asked: {one_line(retrieval['query'])[: WIDTH - 7]}"
    return "\n".join((table(["measured", "tokens", ""], rows), known, *([asked] if retrieval["query"] else [])))


def _funnelled(rows: "list[Funnel]", corpus: int) -> str:
    if not rows:
        return "funnel: no session has read anything yet"
    shown = [
        (
            row.session, row.reads, row.by.get("t0", 0), row.by.get("search", 0), row.by.get("get", 0), row.served,
            row.ingested if row.source else "", row.cached if row.source else "", row.source or "",
        )
        for row in rows[:SHOWN]
    ]  # fmt: skip
    served = sum(row.served for row in rows)
    more = f", {len(rows) - SHOWN} not shown" if len(rows) > SHOWN else ""
    said = f"served in {len(rows)} sessions{more}: {served} tokens, against a corpus of {corpus}"
    return table(["session", "reads", "t0", "search", "get", "served", "ingested", "cached", "source"], shown, stretch=0) + f"\n{said}"


def _used(total: "Metrics") -> str:
    depth = f"{total.pulls / total.completed:.1f} bodies" if total.completed else "-"
    rows = [
        ("fetch-through", total.fetch_through, "search hits that the session opened later"),
        ("retrieval depth", depth, "opened for each completed task"),
        ("prefetch precision", total.prefetch_precision, "prefetched, and opened or cited later"),
        ("wasted reads", total.wasted_reads, "bodies opened that the handoff does not cite"),
    ]
    return table(["metric", "", "what it counts"], rows)


def _share(some: int, of: int, what: str) -> str:
    return f"{100 * some / of:.1f} % of {what}" if of else ""

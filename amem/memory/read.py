"""Serve what a session may read: search, get, list. Summaries first, bodies one at a time.

The order everywhere: the read filter of the policy goes into the query, so that what is denied is never scored or counted;
then the session's label rises by what was found, hits included, since a summary is content; then the read is logged;
only then does the answer leave. When any of these fails nothing is served.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from amem.logs.schema import MemoryRead
from amem.memory.outcomes import Entries, Gone, Hits, Moved, NotFound, Refused, Served
from amem.memory.session import Memory, Session
from amem.model.clock import stamp
from amem.model.entry import EntryType, Status, Tier, tokens
from amem.model.ids import domain_of, is_id
from amem.model.label import Label, lowest
from amem.policy import request
from amem.record.rows import Filter, Hit, Row

REDIRECT_LIMIT = 8
READ_WITH = 2
"""Summaries that come with a body, unasked."""


def reader(memory: Memory, session: Session, domains: Sequence[str] = ()) -> Filter | Refused:
    """The session's read filter for these domains (its own when none is named), under policy, grants and handling."""
    wanted = tuple(dict.fromkeys(domains)) or (session.domain,)
    found = [_one(memory, session, domain) for domain in wanted]
    filters = [each for each in found if isinstance(each, Filter)]
    if not filters:
        return next(each for each in found if isinstance(each, Refused))
    if len(filters) == 1:
        return filters[0]
    return Filter(
        domains=tuple(domain for each in filters for domain in each.domains or ()),
        max_label=lowest(*(each.max_label for each in filters)),
        min_tier=max((each.min_tier for each in filters), key=lambda tier: tier.rank),
    )


def search(
    memory: Memory,
    session: Session,
    query: str,
    *,
    type: Sequence[EntryType] = (),
    tier: Tier | None = None,
    label: Label | None = None,
    domains: Sequence[str] = (),
    limit: int = 10,
    offset: int = 0,
) -> Hits | Refused:
    """Find entries by words: a page of hits, best first."""
    filter = reader(memory, session, domains)
    if isinstance(filter, Refused):
        return filter
    with memory.lock:
        found = memory.index.search(query, filter, type=type, tier=tier, label=label, limit=limit, offset=offset)
    log(memory, session, "search", found.hits, tokens("".join(hit.title + hit.summary for hit in found.hits)))
    return Hits(hits=found.hits, total=found.total, more=found.more, mode=found.mode)


def entries(
    memory: Memory,
    session: Session,
    *,
    type: Sequence[EntryType] = (),
    tier: Tier | None = None,
    status: Status | None = Status.ACTIVE,
    author: str | None = None,
    by_session: str | None = None,
    task: str | None = None,
    due: bool = False,
    since: str | None = None,
    domains: Sequence[str] = (),
    sort: str = "written",
    limit: int = 20,
    offset: int = 0,
) -> Entries | Refused:
    """List entries without their bodies, newest first (`written`) or by `title`. `since` is an instant; `limit` 0 is all."""
    filter = reader(memory, session, domains)
    if isinstance(filter, Refused):
        return filter
    with memory.lock:
        found = memory.index.list(
            filter, type=type, tier=tier, status=status, author=author, session=by_session, task=task, due=due, since=since,
            sort=sort, limit=limit, offset=offset,
        )  # fmt: skip
    log(memory, session, "list", found.rows, tokens("".join(row.title + row.summary for row in found.rows)))
    return Entries(rows=tuple(_told(memory, session, row) for row in found.rows), total=found.total, more=found.more)


def get(
    memory: Memory, session: Session, id: str, *, version: int | None = None, redirect: bool = True
) -> Served | Moved | Gone | NotFound:
    """Serve one entry with its body, the one that replaced it where it was replaced.

    What may not be read is `NotFound`, like what is not there. A body never changes in place, so that any version up
    to the current one is served by it.
    """
    with memory.lock:
        found = _find(memory, session, id, version, redirect)
    if isinstance(found, Served):
        log(memory, session, "get", (found.row,), tokens(found.body))
    return found


def _find(memory: Memory, session: Session, id: str, version: int | None, redirect: bool) -> Served | Moved | Gone | NotFound:
    row = visible(memory, session, id)
    if row is None or (version is not None and version > row.version):
        return NotFound(id)
    for _ in range(REDIRECT_LIMIT):
        if row.status is not Status.SUPERSEDED:
            break
        current = visible(memory, session, memory.index.resolve(row.id) or "")
        if current is None or current.id == row.id:
            return Gone(id)
        if not redirect:
            return Moved(id, current.id)
        row = current
    else:
        return Moved(id, row.id)
    if row.status is not Status.ACTIVE:
        return Gone(id)
    read = memory.index.read(row.id)
    if read is None or not _admits(memory, session, read.row):
        return NotFound(id)  # it changed in this moment
    return Served(row=_told(memory, session, read.row), body=read.entry.body, redirected_from=id if row.id != id else None)


def read_with(memory: Memory, session: Session, served: Row) -> tuple[Row, ...]:
    """Entries that were often searched up with one that was just served, for their summaries; logged as a read.

    Nobody asked for them, so they are none of a label that the session does not have already.
    """
    if served.domain != session.domain:
        return ()
    found: list[Row] = []
    for id in memory.together.beside(session.domain, (served.id,)):
        row = visible(memory, session, id)
        if row is not None and row.status is Status.ACTIVE and not row.classification.exceeds(session.label):
            found.append(row)
        if len(found) == READ_WITH:
            break
    if found:
        log(memory, session, "read_with", found, tokens("".join(row.title + row.summary for row in found)))
    return tuple(found)


def log(memory: Memory, session: Session, tool: str, served: Iterable[Hit | Row], size_tokens: int) -> None:
    """Raise the session's label by what is about to be served, and log the read. Raises when either cannot be kept."""
    found = tuple(served)
    label = session.served((each.classification for each in found), (each.tier for each in found))
    memory.append(
        MemoryRead(
            at=stamp(memory.clock()),
            session=session.id,
            domain=session.domain,
            principal=session.principal,
            tool=tool,
            entries=tuple(each.id for each in found),
            tokens=size_tokens,
            label=label,
            task=session.task,
        )
    )


def _one(memory: Memory, session: Session, domain: str) -> Filter | Refused:
    """The filter of one domain: the policy is asked once, its answer cut down to the grant and the handling."""
    task = memory.bound(session)
    known = (domain, memory.door.generation(), task)
    if known in session.filters:
        return session.filters[known]
    grant = memory.grants.grant(domain, session.principal)
    if grant is None and domain != session.domain:
        # The same words for a domain that is not there: which ones exist is not told.
        return Refused(code="refused", reason=f"{session.principal} was granted no domain {domain[:40]!r}")
    decision = memory.door.decide(
        request.read(principal=session.principal, domain=domain, session=session.id, handling=session.handling, task=task)
    )
    if not decision.allow or grant is None:
        return Refused(code=decision.code or "refused", reason=decision.sentence(), hint=decision.hint, decision=decision.id)
    filter = Filter(
        domains=tuple(each for each in decision.result["domains"] if each == domain),
        max_label=lowest(Label(decision.result["max_label"]), session.handling, grant.read),
        min_tier=Tier(decision.result["min_tier"]),
    )
    session.filters[known] = filter
    return filter


def _told(memory: Memory, session: Session, row: Row) -> Row:
    """The row without the ids of entries that may not be read: of what replaced it, what it replaced and what it rests on."""

    def shown(reference: str) -> bool:
        id = reference.partition("@")[0]
        return not is_id("entry", id) or visible(memory, session, id) is not None

    after = row.superseded_by if row.superseded_by and shown(row.superseded_by) else None
    return replace(row, superseded_by=after, supersedes=tuple(filter(shown, row.supersedes)), sources=tuple(filter(shown, row.sources)))


def visible(memory: Memory, session: Session, id: str) -> Row | None:
    """The row of an entry that the session may read, as its file now says; None for any other."""
    # A domain that may not be read is not looked into: how long the answer takes tells nothing of what is there.
    if not is_id("entry", id) or isinstance(reader(memory, session, (domain_of(id),)), Refused):
        return None
    with memory.lock:
        row = memory.index.get(id)
    return row if row is not None and _admits(memory, session, row) else None


def _admits(memory: Memory, session: Session, row: Row) -> bool:
    filter = reader(memory, session, (row.domain,))
    if isinstance(filter, Refused) or (filter.domains is not None and row.domain not in filter.domains):
        return False
    return not row.classification.exceeds(filter.max_label) and row.tier.rank >= filter.min_tier.rank

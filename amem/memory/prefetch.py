"""Prefetch: the summaries of the entries that a task likely needs, never their bodies.

The hits of a search on the task's words, and what the read log shows found together with those. All of it under the session's read filter,
so a policy that narrows reads narrows this too; the log has it as one read.
"""

from collections.abc import Collection
from dataclasses import dataclass

from amem.memory.outcomes import Refused
from amem.memory.read import log, reader, visible
from amem.memory.session import Memory, Session
from amem.model.entry import Status, tokens
from amem.record.rows import Row

HITS = 5
MOST_ENTRIES, MOST_TOKENS = 8, 600
QUERY_CHARACTERS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetched:
    """What was served: the lines, and the entries that they name."""

    lines: tuple[str, ...]
    entries: tuple[str, ...]


def prefetch(memory: Memory, session: Session, words: str, without: Collection[str] = ()) -> Prefetched | Refused:
    """The entries that a task with these words likely needs, but for those that its reader has before it already."""
    filter = reader(memory, session)
    if isinstance(filter, Refused):
        return filter
    with memory.lock:
        hits = [hit.id for hit in memory.index.search(words[:QUERY_CHARACTERS], filter, limit=HITS).hits] if words.strip() else []
    rows: list[Row] = []
    lines: list[str] = []
    left = MOST_TOKENS
    for id in dict.fromkeys((*hits, *memory.together.beside(session.domain, hits))):
        row = visible(memory, session, id) if id not in without else None
        if row is None or row.status is not Status.ACTIVE or row.domain != session.domain:
            continue
        line = f"- {row.id} ({row.type}, {row.tier}) {row.title}: {row.summary}"
        size = tokens(line + "\n")
        if len(rows) == MOST_ENTRIES or size > left:
            continue
        rows.append(row)
        lines.append(line)
        left -= size
    if rows:
        log(memory, session, "prefetch", rows, MOST_TOKENS - left)
    return Prefetched(lines=tuple(lines), entries=tuple(row.id for row in rows))

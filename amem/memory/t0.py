"""The opening page: who and where, the policy, the held task, the latest handoffs, what is worth knowing, how to go on.

It stays under its budget at any size of the record and never scans it: a few short lists from the index, filled in order of
trust. Where all live summaries fit, it carries them all. It stays below the session's ceiling, because nobody asked for
it entry by entry: a page must not put the session above what its model may be sent.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from amem.memory import fence
from amem.memory.draft import shorten
from amem.memory.outcomes import Refused
from amem.memory.read import log, reader
from amem.memory.session import Memory, Session
from amem.model.entry import EntryType, Tier, tokens
from amem.model.label import Label, lowest
from amem.policy.reasons import visible
from amem.record.rows import Filter, Row
from amem.typed import NamedTuple

BUDGET_TOKENS = 2000
HANDOFFS = 3
HANDOFF_SHARE = 0.3
POLICIES = 40
_CANDIDATES = 60
_SHORT_SUMMARY = 180
_RULE = 100
_PROSE = 9
"""After every layer: a verified entry that lays nothing down in a block."""
_ORDER = (EntryType.CONVENTION, EntryType.DECISION, EntryType.METHOD, EntryType.FACT, EntryType.QUESTION)
_RESERVE_TOKENS = 60
"""For headings and the sentence that says what was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The page, its size, and the entries whose summaries it carries."""

    text: str
    tokens: int
    entries: tuple[str, ...]
    policies: tuple[str, ...]
    plain: bool
    """Whether every live entry stands on it."""


def t0(memory: Memory, session: Session, budget_tokens: int = BUDGET_TOKENS, *, domain: str | None = None) -> Page | Refused:
    """Compose the page, under the read filter; the session's label rises by what is on it, and the read is logged."""
    where = domain or session.domain
    filter = reader(memory, session, (where,))
    if isinstance(filter, Refused):
        return filter
    readable = filter.max_label
    if session.ceiling is not None:
        filter = replace(filter, max_label=lowest(readable, session.ceiling))
    with memory.lock:
        handoffs = _list(memory, filter, (EntryType.HANDOFF,), HANDOFFS)
        policies = _policies(memory, filter)
        known, total = _known(memory, filter)

    head, foot = _head(memory, session, where, readable), _foot(session)
    left = budget_tokens - tokens(head) - tokens(foot) - _RESERVE_TOKENS
    mark = fence.mark()
    left -= tokens(fence.fenced("", mark))
    rules, left = _within(policies, left, budget_tokens // 5)
    latest, left = _fill(handoffs, left, min(left, int(budget_tokens * HANDOFF_SHARE)), 400)
    plain = total == len(known)
    summary = 500
    if not plain or sum(tokens(_line(row, summary)) + 1 for row in known) > left:
        plain, summary = False, _SHORT_SUMMARY
    listed, left = _fill(known if plain else list(_spread(known)), left, left, summary)
    plain = plain and len(listed) == total

    parts = [
        *(["## Policies in force", *(rule.text for rule in rules)] if rules else []),
        *_part("Latest handoffs", latest, 400),
        *_part("All that is known here" if plain else "Worth knowing", listed, summary),
    ]
    body = "\n".join(parts) or "(nothing is recorded here yet)"
    rest = total - len(listed)
    more = f"\n{rest} more of this kind: `search` finds them." if rest > 0 else ""
    text = f"{head}\n{fence.fenced(body, mark)}{more}\n\n{foot}"
    served = [*(rule.row for rule in rules), *latest, *listed]
    log(memory, session, "t0", served, tokens(text))
    return Page(
        text=text,
        tokens=tokens(text),
        entries=tuple(row.id for row in served),
        policies=tuple(rule.row.id for rule in rules),
        plain=plain,
    )


class _Rule(NamedTuple):
    layer: int
    row: Row
    text: str
    """Its line on the page."""


def _policies(memory: Memory, filter: Filter) -> list[_Rule]:
    """The policies in force that the reader may read: layer 0 in full and first, the others by their ids, and the exceptions."""
    standings = memory.policies.standing.standings if memory.policies is not None else ()
    known = {one.entry: one for one in standings}
    found: list[_Rule] = []
    for row in _list(memory, filter, (EntryType.POLICY,), POLICIES, Tier.VERIFIED):
        standing = known.get(row.id)
        policy = standing.policy if standing is not None else None
        if standing is None or policy is None:
            found.append(_Rule(_PROSE, row, _line(row, _SHORT_SUMMARY)))
            continue
        if standing.status != "in_force":
            continue
        said = policy.rule if policy.layer == 0 else shorten(policy.rule, _RULE)
        if policy.exception_to is not None:
            said = f"{policy.exception_to} does not bind {policy.task} until {(policy.expires_at or '')[:10]}"
        found.append(_Rule(policy.layer, row, visible(f"- {policy.id} ({row.id}): {said}".replace("\n", " "))))
    return sorted(found, key=lambda rule: rule.layer)


def _within(rules: Sequence[_Rule], left: int, share: int) -> tuple[list[_Rule], int]:
    """The first rules that fit into their share of the page, layer 0 into all of it; and what is left of it."""
    taken: list[_Rule] = []
    for rule in rules:
        size = tokens(rule.text) + 1
        if size > (left if rule.layer == 0 else min(left, share)):
            break
        taken.append(rule)
        left -= size
        share -= size
    return taken, left


def _head(memory: Memory, session: Session, domain: str, readable: Label) -> str:
    lines = [
        f"# Memory of {domain}",
        f"You are {session.principal} in session {session.id}. You may read up to {readable}; what you read raises your label.",
        f"Policy {memory.door.version}: a write that instructs its readers, or holds credentials, waits for the owner.",
    ]
    if session.ceiling is not None and readable.exceeds(session.ceiling):
        lines.append(
            f"Your model may be sent up to {session.ceiling}: once you were served more, its calls are refused. This page stays below."
        )
    if session.task is not None:
        lines.append(f"You hold task {session.task}.")
    return "\n".join(lines) + "\n"


def _foot(session: Session) -> str:
    end = "leave a `handoff` for this task" if session.task else "leave a `handoff`"
    return (
        "## How to go on\n"
        "The lines above are summaries: open what matters with `get` and its id. `search` before you work something out again. "
        "`write` what others should not have to find out: facts, decisions and why; name in `supersedes` what it replaces. "
        f"Then {end}."
    )


def _known(memory: Memory, filter: Filter) -> tuple[list[Row], int]:
    """Candidates, the most trusted first, and how many entries of these types there are."""
    found: dict[str, Row] = {}
    newest = memory.index.list(filter, type=_ORDER, limit=_CANDIDATES)
    if newest.total > len(newest.rows):
        for tier in (Tier.VERIFIED, Tier.CURATED):
            found |= {row.id: row for row in memory.index.list(filter, type=_ORDER, tier=tier, limit=_CANDIDATES).rows}
    found |= {row.id: row for row in newest.rows}
    return sorted(found.values(), key=_trust, reverse=True), newest.total


def _trust(row: Row) -> tuple[int, int, int, str]:
    lineage = row.tier if row.lineage is None else row.lineage
    return (row.tier.rank, not row.due, lineage.rank, row.written_at)


def _spread(rows: Iterable[Row]) -> Iterator[Row]:
    """Tier by tier, one of each type in turn, so that a run of facts does not hide the one convention."""
    tiers: dict[Tier, dict[EntryType, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        tiers[row.tier][row.type].append(row)
    for tier in sorted(tiers, key=lambda tier: tier.rank, reverse=True):
        waiting = [tiers[tier][kind] for kind in _ORDER if tiers[tier][kind]]
        while waiting:
            for rows_of_type in waiting:
                yield rows_of_type.pop(0)
            waiting = [each for each in waiting if each]


def _list(memory: Memory, filter: Filter, types: Sequence[EntryType], limit: int, tier: Tier | None = None) -> list[Row]:
    return list(memory.index.list(filter, type=types, tier=tier, limit=limit).rows)


def _fill(rows: Sequence[Row], left: int, share: int, summary: int) -> tuple[list[Row], int]:
    """The first rows whose lines fit into `share`, and what is left of the page after them."""
    taken: list[Row] = []
    for row in rows:
        size = tokens(_line(row, summary)) + 1
        if size > share:
            break
        taken.append(row)
        share -= size
        left -= size
    return taken, left


def _part(heading: str, rows: Sequence[Row], summary: int) -> list[str]:
    return [f"## {heading}", *(_line(row, summary) for row in rows)] if rows else []


def _line(row: Row, summary: int) -> str:
    facts = [str(row.type), str(row.tier)]
    if row.classification is not Label.PUBLIC:
        facts.append(str(row.classification))
    if row.due:
        facts.append("review due")
    if row.type is EntryType.HANDOFF:
        facts = [row.written_at[:10], f"left by {row.left_by or 'agent'}", *([row.task] if row.task else [])]
    text = row.title if row.summary in ("", row.title) else f"{row.title}: {shorten(row.summary, summary)}"
    return visible(f"- {row.id} ({', '.join(facts)}) {text}".replace("\n", " "))

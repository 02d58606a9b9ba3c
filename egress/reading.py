"""Read what the meter keeps in `state/usage.sqlite`: sessions, what a task has spent, alarms, and calls added up.

Everything here is what was kept, never an estimate; a root where nothing was metered yet has none of it.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from amem.egress.meter import QUARTER, opened
from amem.model.call import ObservedBy
from amem.model.clock import stamp
from amem.settings.root import Root
from amem.typed import Any, NamedTuple

_TOKENS = "coalesce(sum(coalesce(input, 0) + coalesce(output, 0) + coalesce(cache_read, 0) + coalesce(cache_write, 0)), 0)"
"""Tokens of any kind that calls used."""
_BY = {"destination": "destination", "model": "model", "session": "session", "day": QUARTER.format(at="at")}
_SUMS = ("calls", "input", "output", "cache_read", "cache_write", "reasoning", "unmetered", "partial", "alarms")
_SHOWN = frozenset(("calls", "input", "output", "cache_read", "cache_write"))
"""Of those: what a row has also when it is zero."""


def sessions(root: Root, *, session: str | None = None, since: datetime | None = None) -> list[dict[str, Any]]:
    """Sessions as the **Session** shape of the command line, the newest first; absent rather than null."""
    if not root.usage.is_file():
        return []
    with opened(root) as connection:
        cursor = connection.execute(
            f"""select s.*, (select count(*) from calls c where c.session = s.id and c.kind = 'call') as calls,
                 (select {_TOKENS} from calls c where c.session = s.id) as tokens,
                 exists(select 1 from calls c where c.session = s.id and c.kind = 'call' and source = 'egress') as metered
               from sessions s where (? is null or s.id = ?) and (? is null or s.started_at >= ?)
               order by s.started_at desc, s.rowid desc""",
            (session, session, *_twice(since)),
        )
        found = _rows(cursor)
    for row in found:
        row["metered"] = bool(row["metered"])
        row["state"] = "ended" if "ended_at" in row else "running"
    return found


def spent(root: Root, task: str) -> int:
    """The tokens of any kind that sessions used while they held this task; an answer that broke off counts as far as it came."""
    if not root.usage.is_file():
        return 0
    with opened(root) as connection:
        row = connection.execute(f"select {_TOKENS} from calls where task = ?", (task,)).fetchone()
    return int(row[0])


class Alarms(NamedTuple):
    """Calls that raised the same alarm."""

    destination: str
    model: str
    alarm: str
    calls: int


def alarms(root: Root, since: datetime | None = None, session: str | None = None) -> list[Alarms]:
    """The alarms that calls raised, by destination, model and code; the most frequent first."""
    if not root.usage.is_file():
        return []
    with opened(root) as connection:
        found = connection.execute(
            """select destination, model, alarm, count(*) from calls
               where alarm is not null and (? is null or at >= ?) and (? is null or session = ?)
               group by destination, model, alarm order by count(*) desc, destination, model, alarm""",
            (*_twice(since), session, session),
        ).fetchall()
    return [Alarms(*row) for row in found]


def report(
    root: Root,
    by: Iterable[str] = ("destination", "model"),
    *,
    since: datetime | None = None,
    session: str | None = None,
    source: ObservedBy | None = None,
    destination: str | None = None,
    zone: tzinfo = UTC,
) -> list[dict[str, Any]]:
    """Usage rows as the **Usage** shape of the command line, by any of `destination model session day`, largest first.

    A day is that of `zone`. `calls` counts every model call that was asked for; `status` counts those that got another status than 2xx,
    refused ones under the egress's 403; `unmetered` those that were answered and did not say what they used. `input` excludes cache.
    """
    keys = list(by)
    if not keys or any(key not in _BY for key in keys):
        raise ValueError(f"by: expected any of {', '.join(_BY)}, found {keys}")
    if not root.usage.is_file():
        return []
    groups = ", ".join(_BY[key] for key in keys)
    narrowed = " and ".join(f"(? is null or {name} = ?)" for name in ("session", "source", "destination"))
    where = f"where kind = 'call' and (? is null or at >= ?) and {narrowed}"
    chosen = str(source) if source is not None else None
    arguments = (*_twice(since), session, session, chosen, chosen, destination, destination)
    with opened(root) as connection:
        rows = connection.execute(
            f"""select {groups}, source, billing, status, count(*), coalesce(sum(input), 0), coalesce(sum(output), 0),
                  coalesce(sum(cache_read), 0), coalesce(sum(cache_write), 0), sum(reasoning),
                  sum(status between 200 and 299 and input is null), sum(partial), count(alarm)
                from calls {where} group by {groups}, source, billing, status order by status""",
            arguments,
        ).fetchall()
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    names = (*keys, "source", "billing")
    for row in rows:
        told, status, sums = dict(zip(names, row, strict=False)), row[len(names)], zip(_SUMS, row[len(names) + 1 :], strict=True)
        if "day" in told:
            told["day"] = _day(zone, told["day"])
        one = found.setdefault(tuple(told.values()), told)
        for name, value in sums:
            if value or name in _SHOWN or (name == "reasoning" and value is not None):
                one[name] = one.get(name, 0) + value
        if not 200 <= status <= 299:
            by_status = one.setdefault("status", {})
            by_status[str(status)] = by_status.get(str(status), 0) + row[len(names) + 1]
    return sorted(found.values(), key=lambda one: (-one["input"] - one["output"], *(one[key] for key in keys)))


@lru_cache(maxsize=1 << 16)
def _day(zone: tzinfo, quarter: str) -> str:
    """The date that a quarter of an hour is of; of a row that was damaged, what stands there."""
    try:
        return datetime.fromisoformat(quarter).replace(tzinfo=UTC).astimezone(zone).date().isoformat()
    except (ValueError, OverflowError):
        return quarter[:-2]


def _twice(since: datetime | None) -> tuple[str | None, str | None]:
    text = stamp(since) if since is not None else None
    return text, text


def _rows(cursor: Any) -> list[dict[str, Any]]:
    names = [column[0] for column in cursor.description]
    return [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in cursor.fetchall()]

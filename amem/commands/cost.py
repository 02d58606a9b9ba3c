"""`amem cost`: what sessions, days and completed tasks cost, at the prices of `prices.toml`."""

import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import print_json, table
from amem.commands import flags
from amem.errors import UsageError
from amem.model import clock
from amem.model.call import ObservedBy
from amem.settings import prices as price_table
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.reports.cost import Closing, Cost, TaskCost

BY = ("session", "task", "day")


@click.command(epilog="Examples: amem cost    amem cost --by day --since 4w    make local-spend | amem cost --reconcile")
@click.option("--by", "by", multiple=True, type=click.Choice(BY), help="What to show; default: session and task.")
@flags.since
@flags.limit
@click.option("--reconcile", is_flag=True, help="Set calls through the gateway beside its spend log, JSON on stdin; 3 when they differ.")
@click.pass_obj
def command(context: Context, by: tuple[str, ...], since: datetime | None, limit: int, reconcile: bool) -> int:
    """Show what was spent. A + marks a floor: something was used that has no price or was not counted.

    Metered calls of models that prices.toml names are in US dollars, the dearest first; other models and plan quota are in tokens. A
    completed task costs what the session cost that wrote its closing handoff, shared among the tasks which that session completed. A
    day is one of the zone in grants.toml ([spend] zone, else UTC).
    """
    flags.owner_alone(context, "what was spent")
    if reconcile:
        return _reconcile(context, since)
    from amem.egress import reading
    from amem.reports import cost

    chosen = by or ("session", "task")
    prices = price_table.load(context.root.prices)
    most, zone = limit or None, flags.zone(context)
    sections: dict[str, Any] = {}
    for key in ("session", "day"):
        if key in chosen:
            rows = reading.report(context.root, (key, "model"), since=since, zone=zone)
            sections[key] = list(cost.costs(rows, key, prices).items())[:most]
    if "task" in chosen:
        # A task's session may have begun before `--since`, and its cost is the whole of it.
        sessions = cost.costs(reading.report(context.root, ("session", "model")), "session", prices)
        closings = list(_closings(context))
        shares = cost.task_costs([closing for closing, _ in closings], sessions)
        after_ms = since.timestamp() * 1000 if since is not None else 0
        sections["task"] = [share for share, (_, closed_ms) in zip(shares, closings, strict=True) if closed_ms >= after_ms][:most]
    if context.flags.json:
        print_json({**_document(sections), **({"zone": str(zone)} if "day" in sections else {})})
        return 0
    told = [text for text in (_costs(sections, "session"), _costs(sections, "day"), _tasks(sections)) if text]
    if told and sys.stdout.isatty():
        from amem.reports import spark

        daily = cost.costs(reading.report(context.root, ("day", "model"), since=since, zone=zone), "day", prices)
        told += filter(None, [spark.days({day: float(found.usd) for day, found in daily.items()}, "dollars")])
    print("\n\n".join(told)) if told else print("nothing was spent yet", file=sys.stderr)
    return 0


def _reconcile(context: Context, since: datetime | None) -> int:
    import json

    from amem.egress import reading
    from amem.egress.way import GATEWAY
    from amem.reports import cost

    try:
        log = cost.spend_log(json.load(sys.stdin), clock.stamp(since) if since is not None else None)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--reconcile: stdin is no spend log: {error}", hint="make local-spend | amem cost --reconcile") from error
    ours = reading.report(context.root, ("model",), since=since, source=ObservedBy.EGRESS, destination=GATEWAY)
    found = cost.reconcile(ours, log)
    if context.flags.json:
        print_json({"reconciled": [one.shown() for one in found]})
    elif not found:
        print("no call went through the gateway", file=sys.stderr)
    else:
        rows = [(one.model, "" if one.agrees else "differs", *one.ours, *one.theirs, f"{one.usd:.4f}") for one in found]
        print(table(["model", "", "calls", "in", "out", "its calls", "its in", "its out", "its usd"], rows))
    return exits.DONE if all(one.agrees for one in found) else exits.ANSWER_IS_NO


def _document(sections: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key in ("session", "day"):
        if key in sections:
            document[f"{key}s"] = [{key: name, **found.shown()} for name, found in sections[key]]
    if "task" in sections:
        document["tasks"] = [share.shown() for share in sections["task"]]
    return document


def _costs(sections: Mapping[str, Any], key: str) -> str:
    found: list[tuple[str, Cost]] = sections.get(key, [])
    if not found:
        return ""
    rows = [
        (name, _dollars(one.usd, one.floor), one.plan_tokens, ", ".join(f"{model} {count}" for model, count in one.unpriced.most_common()))
        for name, one in found
    ]
    return table([key, "usd", "plan tokens", "unpriced tokens"], rows)


def _tasks(sections: Mapping[str, Any]) -> str:
    found: list[TaskCost] = sections.get("task", [])
    return table(["task", "usd", "title"], [(one.task, _dollars(one.usd, one.floor), one.title) for one in found]) if found else ""


def _dollars(usd: Decimal, floor: bool) -> str:
    return f"{usd:.4f}{'+' if floor else ''}"


def _closings(context: Context) -> "Iterator[tuple[Closing, int]]":
    """Every completed task, the session of the claim it was completed under, and when (milliseconds since the epoch); the latest first.

    A completion needs a handoff of that claim, so its session is the one that wrote it. A person's has none.
    """
    from amem.ledger.opening import open_reading
    from amem.ledger.reading import Filter
    from amem.ledger.task import Status
    from amem.reports.cost import Closing

    with open_reading(context.root, context.grants) as ledger:
        page = ledger.list(Filter(domains=tuple(context.grants.domains), statuses=(Status.COMPLETED,), limit=0))
    for task in sorted(page.tasks, key=lambda task: -(task.closed_ms or 0)):
        yield Closing(task.id, task.title, task.session), task.closed_ms or 0

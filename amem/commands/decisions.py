"""`amem decisions …`: what the policy decided, for whom and why."""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import one_line, print_json, table
from amem.commands import flags
from amem.errors import NotFoundError
from amem.logs import reader
from amem.logs.schema import PolicyDecision
from amem.model import clock
from amem.model.principal import kind
from amem.policy import reasons
from amem.typed import Any

_NOT_TOLD = ("v", "event", "observed_by", "prev")
_NEEDED = {"id", "at", "action", "allow"}


@click.group(epilog="Examples: amem decisions list --deny    amem decisions stats --since 7d")
def group() -> None:
    """The decisions of the policy: each was logged before it took effect."""


@group.command("list", epilog="Examples: amem decisions list --deny --since 7d    amem decisions list --action write --json")
@click.option("--action", metavar="A", help="write, read, model_call, release, …")
@click.option("--deny", is_flag=True, help="Only what was not allowed.")
@click.option("--session", metavar="ID", help="Only those about this session.")
@click.option("--task", metavar="ID", help="Only those about this task.")
@click.option("--code", metavar="C", help="Only decisions with this reason.")
@flags.limit
@flags.since
@click.pass_obj
def list_(
    context: Context, action: str | None, deny: bool, session: str | None, task: str | None, code: str | None, limit: int,
    since: datetime | None,
) -> int:  # fmt: skip
    """List decisions, newest first."""
    wanted = {key: value for key, value in (("action", action), ("session", session), ("task", task)) if value is not None}
    found = [
        decision
        for decision in _decisions(context, since)
        if all(decision.get(key) == value for key, value in wanted.items())
        and not (deny and decision["allow"])
        and (code is None or code in _codes(decision))
    ][::-1]
    shown = found[:limit] if limit else found
    if context.flags.json:
        print_json({"decisions": shown, "total": len(found), "more": len(shown) < len(found)})
        return exits.DONE
    if shown:
        columns = ["id", "at", "action", "principal", "answer"]
        print(table(columns, [[one["id"], one["at"][:19], one["action"], one.get("principal", ""), _answer(one)] for one in shown]))
    print(f"{len(shown)} of {len(found)}" if found else "no decisions", file=sys.stderr)
    return exits.DONE


@group.command(epilog="Example: amem decisions show dec-0123456789ab")
@click.argument("id")
@click.pass_obj
def show(context: Context, id: str) -> int:
    """Show one decision with its reasons and what was asked."""
    found = next((decision for decision in _decisions(context, None) if decision["id"] == id), None)
    if found is None:
        raise NotFoundError(f"no decision {id[:40]} in the log", hint="amem decisions list")
    if context.flags.json:
        print_json(found)
        return exits.DONE
    for key, value in found.items():
        if key not in ("reasons", "input"):
            print(one_line(f"{key}: {', '.join(map(str, value)) if isinstance(value, list) else value}"))
    for key, value in found.get("input", {}).items():
        print(one_line(f"asked: {key} {json.dumps(value)}"))
    for reason in found.get("reasons", ()):
        facts = {key: value for key, value in reason.items() if key != "code"}
        print(one_line(f"because: {reasons.sentence(reason['code'], facts)} ({reason['code']})"))
    return exits.DONE


@group.command(epilog="Example: amem decisions stats --since 30d --json")
@flags.since
@click.pass_obj
def stats(context: Context, since: datetime | None) -> int:
    """Count decisions by action, reason and policy. The record's policies count what they refused, exceptions what they let through."""
    by_action: defaultdict[str, Counter[str]] = defaultdict(Counter)
    by_code: Counter[str] = Counter()
    denied: Counter[str] = Counter()
    excepted: Counter[str] = Counter()
    for decision in _decisions(context, since):
        by_action[decision["action"]][_word(decision)] += 1
        by_code.update(dict.fromkeys(_codes(decision), 1))
        (excepted if decision["allow"] else denied).update(decision.get("citations", ()))
    if context.flags.json:
        policies = {policy: {"denied": denied[policy], "excepted": excepted[policy]} for policy in sorted({*denied, *excepted})}
        print_json({"by_action": by_action, "by_code": by_code, "by_policy": policies})
        return exits.DONE
    words = ("allowed", "held", "refused")
    print(table(["action", *words], [[action, *(count[word] for word in words)] for action, count in sorted(by_action.items())], stretch=0))
    if by_code:
        print()
        print(table(["reason", "times"], by_code.most_common(), stretch=0))
    if cited := sorted({*denied, *excepted}):
        print()
        print(table(["policy", "denied", "excepted"], [[policy, denied[policy], excepted[policy]] for policy in cited], stretch=0))
    return exits.DONE


def _decisions(context: Context, since: datetime | None) -> Iterator[dict[str, Any]]:
    """The decisions since then, oldest first. They name sessions and entries of every domain: the owner's alone."""
    flags.owner_alone(context, "the decision log")
    start = clock.stamp(since) if since else ""
    for event in reader.events(context.root.state / PolicyDecision.log):
        if event.get("event") == PolicyDecision.event and event.keys() >= _NEEDED and str(event["at"]) >= start:
            shown = {key: value for key, value in event.items() if key not in _NOT_TOLD}
            yield shown | {"class": kind(str(shown.get("principal", "")))}


def _codes(decision: dict[str, Any]) -> list[str]:
    return [str(reason.get("code")) for reason in decision.get("reasons", ())]


def _word(decision: dict[str, Any]) -> str:
    return "allowed" if decision["allow"] else "held" if decision.get("hold") else "refused"


def _answer(decision: dict[str, Any]) -> str:
    return " ".join([_word(decision), *([f"({', '.join(_codes(decision))})"] if decision.get("reasons") else [])])

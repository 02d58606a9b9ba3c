"""`amem policy …`: the rules in force, and what they say to a request. Nothing here logs a decision or changes a rule."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from amem.cli import exits
from amem.cli.context import Context
from amem.cli.output import one_line, print_json, visible
from amem.errors import UsageError
from amem.policy import engine, golden, request
from amem.policy.decision import Decision
from amem.policy.engine import Module, PolicyEngine


@click.group(epilog="Examples: amem policy show    amem policy eval request.json")
def group() -> None:
    """The rules in force, in Rego."""


@group.command(epilog="Examples: amem policy show    amem policy show --diff-builtin")
@click.option("--diff-builtin", is_flag=True, help="What the root's own policy drops of the built-in one, and decides otherwise.")
@click.pass_obj
def show(context: Context, diff_builtin: bool) -> int:
    """Print the policy in force and its version."""
    modules, own = engine.sources(context.root.policy), engine.builtin()
    version = PolicyEngine(modules, engine.grants_data(context.grants)).version
    document: dict[str, Any] = {
        "version": version,
        "source": "builtin" if modules == own else "root",
        "files": [name for name, _ in modules],
        "text": engine.text(modules),
    }
    if diff_builtin:
        document |= {"dropped": _dropped(modules, own), "differs": _differs(modules)}
    if context.flags.json:
        print_json(document)
        return exits.DONE
    if not diff_builtin:
        print(visible(document["text"]))
    print(f"{document['source']} policy {version}: {', '.join(map(one_line, document['files']))}", file=sys.stderr)
    for name in document.get("dropped", ()):
        print(f"dropped: {one_line(name)}")
    for name in document.get("differs", ()):
        print(f"decides otherwise: {name}")
    if diff_builtin and not document["dropped"] and not document["differs"]:
        print("drops nothing of the built-in policy", file=sys.stderr)
    return exits.DONE


@group.command("eval", epilog="""Example: echo '{"action": "read", "handling": "internal"}' | amem policy eval -""")
@click.argument("file", default="-")
@click.option("--principal", metavar="P", help="Who asks; default: the owner.")
@click.option("--session", default="ses-00000000", metavar="ID")
@click.pass_obj
def evaluate(context: Context, file: str, principal: str | None, session: str) -> int:
    """Decide a request given as JSON: its action and the fields of its input. Nothing is logged. Exits 3 when it is denied."""
    asked = _asked(context, file, principal, session)
    decision = PolicyEngine(engine.sources(context.root.policy), engine.grants_data(context.grants)).decide(asked)
    if context.flags.json:
        print_json(_shape(decision))
    else:
        print(one_line(decision.sentence()))
        if decision.result:
            print(one_line(json.dumps(decision.result)))
    return exits.DONE if decision.allow else exits.ANSWER_IS_NO


def _asked(context: Context, file: str, principal: str | None, session: str) -> request.Request:
    """The request in a file. What it does not say of who asks is the owner's. Raises UsageError."""
    try:
        values = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file}: no JSON request: {error}") from error
    if not isinstance(values, dict) or (action := values.pop("action", None)) not in tuple(request.BUILDERS):
        raise UsageError(f"{file}: expected an object with an action: {', '.join(request.BUILDERS)}")
    who = {"principal": principal or context.grants.owner, "domain": values.get("domain") or context.domain(None), "session": session}
    usual: dict[str, Any] = who | {"task": None}
    if action not in (request.MODEL_CALL, request.READ):
        usual["owner"] = context.grants.owner
    try:
        return request.BUILDERS[action](**(usual | values | ({"principal": principal} if principal else {})))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{file}: {error}") from error


def _dropped(modules: tuple[Module, ...], own: tuple[Module, ...]) -> list[str]:
    """The rules of the built-in policy that have no namesake in the one in force."""
    kept = frozenset[str]().union(*(engine.outline(*module).rules for module in modules))
    return sorted(frozenset[str]().union(*(engine.outline(*module).rules for module in own)) - kept)


def _differs(modules: tuple[Module, ...]) -> list[str]:
    """The golden requests that the policy in force decides otherwise than the built-in one, by name."""
    asked = PolicyEngine(modules, golden.DATA)
    return [case.name for case in golden.cases() if not case.holds(asked.decide(case.request))]


def _shape(decision: Decision) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "action": decision.action, "allow": decision.allow, "hold": decision.hold or None, "review": decision.review,
        "reasons": [{"code": reason.code, **reason.facts} for reason in decision.reasons], "citations": list(decision.citations),
        "policy_version": decision.policy_version, "input_digest": decision.input_digest, "filter": dict(decision.result) or None,
    }  # fmt: skip
    return {key: value for key, value in shape.items() if value is not None}

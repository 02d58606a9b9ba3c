"""`amem policy …`: the rules in force, those of the record, what they say to a request, and what others would say.

Nothing here logs a decision or changes a rule; a proposal is written as any entry is, and waits for a person.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from inspect import signature
from pathlib import Path

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import one_line, print_json, table, visible
from amem.cli.streams import given
from amem.commands import flags
from amem.errors import NotFoundError, RefusedError, UsageError
from amem.logs import reader
from amem.logs.schema import PolicyDecision
from amem.model import clock, ids
from amem.model.entry import EntryType, Tier
from amem.model.principal import SYSTEM
from amem.policy import engine, entries, golden, request, whatif
from amem.policy.decision import Decision
from amem.policy.engine import Module, PolicyEngine, Rule
from amem.policy.entries import Finding, InForce, Standing, Status
from amem.policy.outline import outline
from amem.policy.whatif import Proposal
from amem.record import policies
from amem.typed import Any

_POLICY = re.compile(r'"policy": *"(pol-L[0-3]-[0-9]{3})"')


@click.group(epilog="Examples: amem policy show    amem policy list    amem policy replay --policy new.rego")
def group() -> None:
    """The rules in force: in Rego, and in the record as entries of type policy."""


@group.command(epilog="Examples: amem policy show    amem policy show --diff-builtin    amem policy show --modules")
@click.option("--diff-builtin", is_flag=True, help="What the root's own policy drops of the built-in one, and decides otherwise.")
@click.option("--modules", "with_rules", is_flag=True, help="The rules of the record that are in force as well.")
@click.pass_obj
def show(context: Context, diff_builtin: bool, with_rules: bool) -> int:
    """Print the policy in force and its version."""
    modules, own = engine.sources(context.root.policy), engine.builtin()
    found = policies.standing(context.root, context.grants)
    version = PolicyEngine(modules, engine.grants_data(context.grants), found.rules, found.exemptions).version
    if with_rules:
        told = {(one.id, one.domain) for one in found.standings if _readable(context, one)}
        modules = (*modules, *((f"{rule.policy} ({rule.domain})", rule.text) for rule in found.rules if (rule.policy, rule.domain) in told))
    left_out = [
        {"policy": one.id, "why": one.why or ""} for one in found.standings if one.status is Status.LEFT_OUT and _readable(context, one)
    ]
    document: dict[str, Any] = {
        "version": version,
        "source": "builtin" if engine.sources(context.root.policy) == own else "root",
        "files": [name for name, _ in modules],
        "text": engine.text(modules),
    }
    if left_out:
        document["left_out"] = left_out
    if diff_builtin:
        document |= {"dropped": _dropped(modules, own), "differs": _differs(modules)}
    if context.flags.json:
        print_json(document)
        return exits.DONE
    if not diff_builtin:
        print(visible(document["text"]))
    print(f"{document['source']} policy {version}: {', '.join(map(one_line, document['files']))}", file=sys.stderr)
    for one in left_out:
        print(one_line(f"left out: {one['policy']}: {one['why']}"), file=sys.stderr)
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
@click.option("--session", default="ses-00000000", metavar="ID", help="The session that asks, where a rule looks at it.")
@click.pass_obj
def evaluate(context: Context, file: str, principal: str | None, session: str) -> int:
    """Decide a request given as JSON. It has its action and the fields of its input. Nothing is logged. Exits 3 when it is denied."""
    flags.owner_alone(context, "what the policy would decide")
    asked = _asked(context, file, principal, session)
    decision = policies.engine(context.root, context.grants).decide(asked)
    if context.flags.json:
        print_json(_shape(decision))
    else:
        print(one_line(decision.sentence()))
        if decision.result:
            print(one_line(json.dumps(decision.result)))
    return exits.DONE if decision.allow else exits.ANSWER_IS_NO


@group.command("list", epilog="Examples: amem policy list    amem policy list --layer 2 --tier raw --json")
@click.option("--layer", type=click.IntRange(0, 3), metavar="N", help="Only of this layer.")
@click.option("--tier", type=click.Choice([each.value for each in Tier]), help="Only of this trust tier.")
@flags.domain
@click.pass_obj
def list_(context: Context, layer: int | None, tier: str | None, domain: str | None) -> int:
    """List the record's policies. Each is in force, waits for approval, has expired or is left out."""
    found = [
        one
        for one in _standings(context, domain)
        if (layer is None or (one.policy is not None and one.policy.layer == layer)) and tier in (None, one.tier)
    ]
    if context.flags.json:
        print_json({"policies": [_listed(one) for one in found]})
        return exits.DONE
    if found:
        rows = [[one.id, one.domain, one.tier, one.status, one.policy.rule if one.policy else one.why or ""] for one in found]
        print(table(["id", "domain", "tier", "status", "rule"], rows, stretch=4))
    for one in found:
        if one.status is Status.LEFT_OUT:
            print(one_line(f"left out: {one.id} ({one.entry}): {one.why}"), file=sys.stderr)
    print(f"{len(found)} policies" if found else "the record has no policies", file=sys.stderr)
    return exits.DONE


@group.command(epilog="Examples: amem policy lint    amem policy lint --file")
@click.option("--file", "filing", is_flag=True, help="File a task for the owner about each finding.")
@flags.domain
@click.pass_obj
def lint(context: Context, filing: bool, domain: str | None) -> int:
    """Find what does not fit among the record's policies. Exits 3 when something does not.

    A policy that carries out one which is not there or not of a higher layer; an exception to layer 0; one that expired; a rule that nobody
    approved, or that may not be loaded.
    """
    standings = _standings(context, domain)
    found = (*entries.lint(standings), *_waiting(standings))
    tasks = _filed(context, found, standings) if filing and found else {}
    if context.flags.json:
        rows = [{**one._asdict(), "task": tasks.get(one)} for one in found]
        print_json({"findings": [{key: value for key, value in row.items() if value is not None} for row in rows]})
    else:
        for one in found:
            print(one_line(f"{one.policy}: {one.why} ({one.kind})" + (f": {tasks[one]}" if one in tasks else "")))
        if not found:
            print("nothing found", file=sys.stderr)
    return exits.ANSWER_IS_NO if found else exits.DONE


@group.command(epilog="Examples: amem policy replay    amem policy replay --policy stricter.rego --since 30d")
@click.option("--policy", "file", metavar="FILE", help="Another policy, or a rule of package amem.rules; default: the one in force.")
@flags.since
@click.option("--limit", type=flags.COUNT, metavar="N", default=0, help="Only the newest so many; 0 is all.")
@click.pass_obj
def replay(context: Context, file: str | None, since: datetime | None, limit: int) -> int:
    """Decide each recorded decision again. Exits 3 when one would be decided otherwise.

    What the same version decided over the same grants must be decided the same; of another version it is shown which allows become denies
    and the reverse.
    """
    flags.owner_alone(context, "the decision log")
    found = policies.standing(context.root, context.grants)
    modules, rules = _candidate(context, file, found)
    data = engine.grants_data(context.grants)
    start = clock.stamp(since) if since else ""
    lines = [line for line in reader.events(context.root.state / PolicyDecision.log) if _decided(line) and str(line["at"]) >= start]
    done = whatif.replay(lines[-limit:] if limit else lines, lambda at: PolicyEngine(modules, data, rules, found.exemptions, clock=at))
    version = PolicyEngine(modules, data, rules, found.exemptions).version
    changed = {"allow_to_deny": done.allow_to_deny, "deny_to_allow": done.deny_to_allow, "broken": done.broken}
    if context.flags.json:
        told = {name: [{**_recorded(one.line), "now": _shape(one.now)} for one in each] for name, each in changed.items()}
        print_json({"decisions": done.decisions, "agree": done.agree, **told, "not_kept": done.not_kept, "version": version})
    else:
        for name, each in changed.items():
            for one in each:
                who = f"{one.line['at'][:19]} {one.line['action']} by {one.line.get('principal', '?')}"
                print(one_line(f"{name.replace('_', ' ')}: {one.line['id']} {who}: {one.now.sentence()}"))
        print(f"{done.agree} of {done.decisions} decided the same by {version}", file=sys.stderr)
        if done.not_kept:
            print(f"{done.not_kept} older decisions do not say what was asked", file=sys.stderr)
    return exits.ANSWER_IS_NO if any(changed.values()) else exits.DONE


@group.command(epilog="Examples: amem policy suggest dec-0123456789ab    amem policy suggest dec-0123456789ab --propose")
@click.argument("id", metavar="DECISION")
@click.option("--exception", is_flag=True, help="An exception for the held task, not a narrower rule.")
@click.option("--propose", is_flag=True, help="Write it as a policy entry that waits for a person, and file the approval task.")
@click.pass_obj
def suggest(context: Context, id: str, exception: bool, propose: bool) -> int:
    """Say the least that would have allowed a denied act. It is lines for grants.toml, an exception, or a narrower rule.

    Exits 3 when nothing would. Nothing changes: a proposal has no effect until a person approves it.
    """
    flags.owner_alone(context, "the decision log")
    line = next((line for line in reader.events(context.root.state / PolicyDecision.log) if _decided(line) and line["id"] == id), None)
    if line is None:
        raise NotFoundError(f"no decision {id[:40]} in the log", hint="amem decisions list --deny")
    domain = str(line.get("domain"))
    modules, data = engine.sources(context.root.policy), engine.grants_data(context.grants)
    granted = context.grants.grant(domain, str(line.get("principal")))
    found = whatif.suggest(
        line, _standings(context, domain if domain in context.grants.domains else None), granted._asdict() if granted else {},
        lambda rules: PolicyEngine(modules, data, rules), exception=exception, at=clock.now(),
    )  # fmt: skip
    if isinstance(found, str):
        raise RefusedError(found, hint=f"amem decisions show {id}")
    task = _propose(context, found, domain, line) if propose else None
    if context.flags.json:
        document = {"kind": found.kind, "text": found.text, "widens": list(found.widens), "policy": found.policy, "task": task}
        print_json({key: value for key, value in document.items() if value is not None})
        return exits.DONE
    print(visible(found.text.rstrip()))
    for widened in found.widens:
        print(one_line(f"this allows: {widened}"), file=sys.stderr)
    where = (
        f"amem approve {task}" if task else "put it into grants.toml" if found.kind == "grant" else f"amem policy suggest {id} --propose"
    )
    print(f"try: {where}", file=sys.stderr)
    return exits.DONE


def _standings(context: Context, domain: str | None) -> list[Standing]:
    """The policies of a domain, or of all that the acting person may read in."""
    flags.owner_alone(context, "the policies of every domain")
    wanted = None if domain is None else context.domain(domain)
    return [one for one in policies.standing(context.root, context.grants).standings if wanted in (None, one.domain)]


def _waiting(standings: Sequence[Standing]) -> Iterator[Finding]:
    """What would leave a rule out once it is approved: better known before."""
    from amem.policy.lint import check

    rules = [(one, one.policy.id, one.policy.rego) for one in standings if one.policy is not None and one.policy.rego is not None]
    for one, id, text in rules:
        beside = [
            (other, its) for each, other, its in rules if each.status is Status.IN_FORCE and each.domain == one.domain and other != id
        ]
        if one.status is Status.WAITING and (why := check(id, text, beside)) is not None:
            yield Finding("refused", id, why)


def _listed(one: Standing) -> dict[str, Any]:
    policy = one.policy
    shape: dict[str, Any] = {"id": one.id, "entry": one.entry, "domain": one.domain, "tier": one.tier, "status": one.status, "why": one.why}
    if policy is not None:
        shape |= {
            "layer": policy.layer, "rule": policy.rule, "intent": policy.intent, "owner": policy.owner, "implements": policy.implements,
            "exception_to": policy.exception_to, "task": policy.task, "expires_at": policy.expires_at,
        }  # fmt: skip
    return {key: value for key, value in shape.items() if value is not None}


def _filed(context: Context, found: Sequence[Finding], standings: Sequence[Standing]) -> dict[Finding, str]:
    """The owner's task about each finding, filed once: on the lower layer's policy."""
    from amem.ledger.draft import Draft
    from amem.ledger.store import Filed

    entries_of = {one.id: one for one in standings}
    tasks = {}
    for one in found:
        about = entries_of[one.policy]
        draft = Draft(
            domain=about.domain, title=f"Mend {one.policy}: {one.kind}", body=f"{about.entry} {one.why}.\n\n    amem get {about.entry}\n",
            requires=("human",), label=about.label, origin=f"lint:{one.policy}", subject=f"{about.entry} {one.kind}",
        )  # fmt: skip
        filed = context.memory.ledger.create(draft, by=SYSTEM, admit=True)
        if isinstance(filed, Filed):
            tasks[one] = filed.task.id
    return tasks


def _candidate(context: Context, file: str | None, found: InForce) -> tuple[tuple[Module, ...], tuple[Rule, ...]]:
    """The modules and rules to decide by: those in force, or with a file in place of the policy, or beside the rules."""
    modules = engine.sources(context.root.policy)
    if file is None:
        return modules, found.rules
    text = _text(file)
    if not any(line.split() == ["package", "amem.rules"] for line in text.splitlines()):
        return ((Path(file).name, text),), found.rules
    from amem.policy.lint import check

    named = _POLICY.search(text)
    id = named[1] if named else Path(file).stem
    if (why := check(id, text)) is not None:
        raise UsageError(f"{file}: {why}")
    return modules, (*(rule for rule in found.rules if rule.policy != id), Rule(id, text))


def _propose(context: Context, found: Proposal, domain: str, line: Mapping[str, Any]) -> str:
    """Write a proposal as a raw entry in amem's own name and propose it; the approval task. Raises RefusedError, UsageError."""
    from amem.memory.draft import Draft
    from amem.memory.outcomes import Written
    from amem.memory.promote import Promoted, promote
    from amem.memory.session import agent_session
    from amem.memory.write import write

    if found.kind == "grant":
        raise UsageError("grants.toml is the owner's to change: nothing is proposed", hint="amem doctor --config")
    session = agent_session(context.memory, id=ids.draw("session"), principal=SYSTEM, domain=domain, harness="cli")
    draft = Draft(type=EntryType.POLICY, title=f"{found.policy}: after {line['id']}", summary=found.text.splitlines()[0], body=found.text)
    written = write(context.memory, session, draft)
    if not isinstance(written, Written):
        raise RefusedError(f"the proposal was not taken: {getattr(written, 'reason', written)}")
    done = promote(
        context.memory, session, written.entry.id, Tier.VERIFIED, f"It would have allowed {line['id']}: {'; '.join(found.widens)}"
    )
    if not isinstance(done, Promoted) or done.task is None:
        raise RefusedError(f"the proposal was not taken: {getattr(done, 'reason', done)}")
    return done.task


def _decided(line: Mapping[str, Any]) -> bool:
    return (
        line.get("event") == PolicyDecision.event
        and {"id", "at", "action", "allow"} <= line.keys()
        and line.get("policy_version") != "host"
    )


def _recorded(line: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in ("v", "event", "observed_by", "prev")}


def _text(file: str) -> str:
    """What is in a file, or came on stdin. Raises UsageError."""
    try:
        return given(file) if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8: {error.reason}") from error


def _asked(context: Context, file: str, principal: str | None, session: str) -> request.Request:
    """The request in a file. What it does not say of who asks is the owner's. Raises UsageError."""
    try:
        values = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: no JSON request: {error}") from error
    if not isinstance(values, dict) or (action := values.pop("action", None)) not in tuple(request.BUILDERS):
        raise UsageError(f"{file}: expected an object with an action: {', '.join(request.BUILDERS)}")
    who = {"principal": principal or context.grants.owner, "domain": values.get("domain") or context.domain(None), "session": session}
    usual: dict[str, Any] = who | {"task": None}
    if action not in (request.MODEL_CALL, request.READ):
        usual["owner"] = context.grants.owner
    given, builder = usual | values | ({"principal": principal} if principal else {}), request.BUILDERS[action]
    fields = signature(builder).parameters
    if missing := [name for name, field in fields.items() if field.default is field.empty and name not in given]:
        raise UsageError(f"{file}: {action} needs {', '.join(missing)}")
    if unknown := [name[:40] for name in given if name not in fields]:
        raise UsageError(f"{file}: {action} has no {', '.join(unknown)}")
    try:
        return builder(**given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{file}: {error}") from error


def _readable(context: Context, one: Standing) -> bool:
    """Whether the person at work may read the entry that lays a policy down."""
    if context.principal == context.grants.owner:
        return True
    grant = context.grants.grant(one.domain, context.principal)
    return grant is not None and not one.label.exceeds(grant.read)


def _dropped(modules: tuple[Module, ...], own: tuple[Module, ...]) -> list[str]:
    """The rules of the built-in policy that have no namesake in the one in force."""
    kept = frozenset[str]().union(*(outline(engine.syntax(*module)).rules for module in modules))
    return sorted(frozenset[str]().union(*(outline(engine.syntax(*module)).rules for module in own)) - kept)


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

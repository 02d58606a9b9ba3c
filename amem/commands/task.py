"""`amem task …`: the ledger from the command line, as the acting person."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import inert, note, one_line, print_json, table, visible
from amem.cli.streams import given
from amem.commands import flags
from amem.commands.flags import DURATION, LABELS
from amem.errors import ConflictError, RefusedError, UsageError
from amem.model.ids import is_id
from amem.model.label import Label
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.ledger.reading import Reading
    from amem.ledger.store import Ledger, Refused
    from amem.ledger.task import Task

STATUSES = click.Choice(["proposed", "admitted", "claimed", "blocked", "completed", "invalidated"])
COUNTED = 1000
"""How far a listing on a terminal counts: a page of 100,000 tasks then takes as long as one of a few."""


def mine(click_context: click.Context, _: click.Parameter, value: Any) -> Any:
    """The ids, if the acting person may read the tasks they name. Raises NotFoundError in the words for one that is not there."""
    context: Context = click_context.obj
    if context.principal != context.grants.owner:
        ids = [value] if isinstance(value, str) else list(value or ())
        readable = [_readable(context, id) for id in ids]
        with _reading(context) as ledger:
            found = ledger.tasks(readable)
        for id in ids:
            if id not in found or (found[id].label or "") in _withheld(context, found[id].domain):
                from amem.ledger.task import not_found

                raise not_found(id)
    return value


_ONE = click.argument("id", callback=mine)
_WHY = click.option("--why", metavar="TEXT", help="The reason, for whoever asks later.")
_FENCE = click.option("--fence", type=int, metavar="N", help="The number of the claim; default: yours.")


@click.group(epilog="Examples: amem task create 'Finish the import' --body 'Steps 3 to 5.' --admit    amem task list")
def group() -> None:
    """Tasks: what is to be done, who holds it, what became of it."""


@group.command(epilog="Example: amem task create 'Finish the import' --body 'Steps 3 to 5.' --priority 5")
@click.argument("title")
@click.option("--body", default="", metavar="TEXT|-", help="What is to be done; - reads stdin.")
@click.option("--priority", type=click.IntRange(0, 9), metavar="N", default=3, show_default=True, help="Higher first.")
@click.option("--requires", multiple=True, metavar="R", help="What a claimer must hold: code, human, irreversible, …")
@click.option("--depends", multiple=True, metavar="ID", help="A task that must be completed first.")
@click.option("--check", multiple=True, metavar="CMD", help="A command that must succeed before it counts as done.")
@click.option("--budget-tokens", type=click.IntRange(1), metavar="N", help="Blocked when its sessions have used so many.")
@click.option("--label", type=LABELS, help="A floor for the label of its sessions.")
@click.option("--admit", is_flag=True, help="Admit it at once (never what is irreversible).")
@flags.domain
@click.pass_obj
def create(
    context: Context, title: str, body: str, priority: int, requires: tuple[str, ...], depends: tuple[str, ...], check: tuple[str, ...],
    budget_tokens: int | None, label: str | None, admit: bool, domain: str | None,
) -> int:  # fmt: skip
    """File a task."""
    from amem.ledger.draft import Draft

    draft = Draft(
        domain=context.domain(domain), title=title, body=given(body), priority=priority, requires=requires, depends_on=depends,
        check=check, budget_tokens=budget_tokens, label=Label(label) if label else None,
    )  # fmt: skip
    if admit:
        _may_admit(context, draft.domain, draft.requires)
    with _opened(context) as ledger:
        filed = _done(ledger.create(draft, by=context.principal, admit=admit))
        if admit and filed.task.status == "proposed":
            note(f"{filed.task.id} is irreversible, so filing does not admit it: amem task admit {filed.task.id}")
        return _print_task(context, filed.task, draft.body or None)


@group.command(epilog="Example: amem task admit task-me-0123abcd")
@click.argument("ids", nargs=-1, required=True, metavar="ID…", callback=mine)
@click.pass_obj
def admit(context: Context, ids: tuple[str, ...]) -> int:
    """Let tasks be claimed. What they wait on rises above them."""
    from amem.ledger import views

    with _opened(context) as ledger:
        for found in ledger.tasks([id for id in ids if is_id("task", id)]).values():
            _may_admit(context, found.domain, found.requires, found.id)
        done = _done(ledger.admit(ids, by=context.principal))
    if context.flags.json:
        raised = [{"id": move.id, "from": move.was, "to": move.rank, "serves": move.serves} for move in done.raised]
        print_json({"tasks": [views.shown(task) for task in done.tasks], "raised": raised})
        return exits.DONE
    for task in done.tasks:
        print(f"{task.id}  {task.status}  {one_line(task.title)}")
    for move in done.raised:
        print(f"{move.id}  rank {move.was:g} → {move.rank:g}: {move.why}")
    return exits.DONE


@group.command("list", epilog="Examples: amem task list --human    amem task list --status completed --since 7d --json")
@click.option("--status", "statuses", multiple=True, type=STATUSES, help="Default: every open one.")
@click.option("--requires", metavar="R", help="Only what requires this of a claimer.")
@click.option("--human", is_flag=True, help="Only what a person must take.")
@click.option("--origin", metavar="PREFIX", help="Only what was filed from there: a beginning, such as task: or session:ses-0123.")
@click.option("--parent", metavar="ID", help="Only the parts of this task.")
@click.option("--all-domains", is_flag=True, help="Of all domains.")
@flags.domain
@flags.limit
@flags.since
@click.pass_obj
def list_(
    context: Context, statuses: tuple[str, ...], requires: str | None, human: bool, origin: str | None, parent: str | None,
    all_domains: bool, domain: str | None, limit: int, since: datetime | None,
) -> int:  # fmt: skip
    """List tasks, the highest rank first."""
    from amem.ledger.reading import Filter
    from amem.ledger.task import HUMAN, OPEN, Status, known

    if parent is not None:
        known(parent)
    if human and requires not in (None, HUMAN):
        raise UsageError("--human and --requires exclude each other", hint="amem task list --human")
    domains = context.domains if all_domains else (context.domain(domain),)
    wanted = Filter(
        domains=domains, without=tuple({label for one in domains for label in _withheld(context, one)}),
        statuses=tuple(map(Status, statuses)) or OPEN, requires=HUMAN if human else requires, origin=origin, parent=parent,
        since_ms=_ms(since), limit=limit, count_to=0 if context.flags.json else COUNTED,
    )  # fmt: skip
    with _reading(context) as ledger:
        page = ledger.list(wanted)
    if context.flags.json:
        from amem.ledger import views

        more = len(page.tasks) < page.total
        print_json({"tasks": [views.shown(task) for task in page.tasks], "total": page.total, "more": more})
        return exits.DONE
    if page.tasks:
        print(table(["id", "status", "rank", "title"], [[task.id, _state(task), task.rank, task.title] for task in page.tasks]))
    of = f"more than {COUNTED}" if page.total >= COUNTED > len(page.tasks) else f"{max(page.total, len(page.tasks))}"
    print(f"{len(page.tasks)} of {of}" if page.tasks else "no such tasks", file=sys.stderr)
    return exits.DONE


@group.command(epilog="Example: amem task show task-me-0123abcd --events")
@_ONE
@click.option("--events", "with_events", is_flag=True, help="Everything that happened to it.")
@click.pass_obj
def show(context: Context, id: str, with_events: bool) -> int:
    """Show a task."""
    from amem.ledger import views

    with _reading(context) as ledger:
        task = ledger.show(_readable(context, id))
        body = ledger.text(task.domain, task.body)
        events = [views.shown_event(n, event) for n, event in enumerate(ledger.events(id), 1)] if with_events else []
        for event in events:
            if event["event"] == "posted":
                event["text"] = ledger.text(task.domain, event["text"])
    stale = False
    if task.checked_tree is not None:
        from amem.commands import attempts

        stale = attempts.stale(context, task)
    if context.flags.json:
        shown = views.shown(task, body)
        if stale:
            shown["check"]["stale"] = True
        print_json({**shown, **({"events": events} if with_events else {})})
        return exits.DONE
    _print_task(context, task, body, stale=stale)
    for event in events:
        rest = ", ".join(f"{key} {_words(value)}" for key, value in event.items() if key not in ("n", "at", "event", "by"))
        print(one_line(f"{event['at']}  {event['event']} by {event['by']}{': ' if rest else ''}{rest}"))
    return exits.DONE


@group.command(epilog="Examples: amem task claim    amem task claim task-me-0123abcd --lease 4h")
@click.argument("id", required=False, callback=mine)
@click.option("--capability", "capabilities", multiple=True, metavar="C", help="Claim as one who holds only these; default: a person.")
@click.option("--lease", type=DURATION, default="10m", show_default=True, metavar="DUR", help="Back in the pool after this.")
@flags.domain
@click.pass_obj
def claim(context: Context, id: str | None, capabilities: tuple[str, ...], lease: float, domain: str | None) -> int:
    """Take a task: the one named, else the first by rank. Exits 3 when there is none to take."""
    from amem.ledger.task import ANYTHING

    held = capabilities or ANYTHING
    lease_ms = round(lease * 1000)
    with _opened(context) as ledger:
        if id is None:
            where = context.domain(domain)
            task = ledger.claim(where, by=context.principal, capabilities=held, lease_ms=lease_ms)
            if task is None:
                raise RefusedError(f"no task of {where} can be claimed now", hint="amem task list")
        else:
            task = _yes(ledger.claim_one(_readable(context, id), by=context.principal, capabilities=held, lease_ms=lease_ms))
        return _print_task(context, task, ledger.text(task.domain, task.body))


@group.command(epilog="Example: amem task release task-me-0123abcd --why 'no time today'")
@_ONE
@_FENCE
@click.option("--handoff", metavar="TEXT|-", help="Where it stands, for the next one; - reads stdin.")
@_WHY
@click.pass_obj
def release(context: Context, id: str, fence: int | None, handoff: str | None, why: str | None) -> int:
    """Give a task back to the pool."""
    with _opened(context) as ledger:
        number = _holding(context, ledger, id, fence)
        entry = _handoff(context, id, handoff) if handoff is not None else None
        return _print_task(context, _done(ledger.release(id, by=context.principal, fence=number, why=why, handoff=entry)))


@group.command(epilog="Example: amem task complete task-me-0123abcd --handoff 'Imported; 3 rows were skipped, see the log.'")
@_ONE
@_FENCE
@click.option("--handoff", required=True, metavar="TEXT|-", help="What was done; - reads stdin.")
@_WHY
@click.pass_obj
def complete(context: Context, id: str, fence: int | None, handoff: str, why: str | None) -> int:
    """Say that a task you hold is done."""
    with _opened(context) as ledger:
        number = _holding(context, ledger, id, fence)
        checked = context.grants.gates.complete_requires == "check" and bool(ledger.show(id).check)
        entry = _handoff(context, id, handoff)
        if why:
            ledger.post(id, by=context.principal, text=why)
        return _print_task(context, _done(ledger.complete(id, by=context.principal, fence=number, handoff=entry, check=checked)))


@group.command(epilog="Example: amem task handoff task-me-0123abcd --body 'The key is in the vault now.'")
@_ONE
@click.option("--body", required=True, metavar="TEXT|-", help="What the next one should know; - reads stdin.")
@click.option("--cite", "cites", multiple=True, metavar="REF", help="What it rests on: an entry, file:PATH, transcript:SESSION#TURN.")
@click.pass_obj
def handoff(context: Context, id: str, body: str, cites: tuple[str, ...]) -> int:
    """Leave a handoff on a task."""
    from amem.ledger import views

    with _opened(context) as ledger:
        found = ledger.show(_readable(context, id))
        entry = _handoff(context, id, body, cites)
        fence = found.fence if found.holder == context.principal and found.status == "claimed" else None
        task = _done(ledger.handoff_left(id, by=context.principal, handoff=entry, fence=fence))
    if context.flags.json:
        print_json({"handoff": entry, "task": views.shown(task)})
    else:
        print(f"{entry} on {task.id}")
    return exits.DONE


@group.command(epilog="Example: amem task post task-me-0123abcd 'The vendor answers on Monday.'")
@_ONE
@click.argument("text")
@click.pass_obj
def post(context: Context, id: str, text: str) -> int:
    """Add a remark to a task."""
    with _opened(context) as ledger:
        return _print_task(context, ledger.post(_readable(context, id), by=context.principal, text=given(text)))


@group.command(epilog="Example: amem task tree task-me-0123abcd --open")
@_ONE
@click.option("--open", "open_only", is_flag=True, help="Leave out what is closed.")
@click.pass_obj
def tree(context: Context, id: str, open_only: bool) -> int:
    """Show a task and everything filed from it, with who holds what."""
    from amem.ledger import views

    with _reading(context) as ledger:
        top = views.shown_tree(ledger.tree(_readable(context, id)), open_only=open_only)
    if context.flags.json:
        print(inert(views.tree_text(top)))
        return exits.DONE
    rest = [(0, top)]  # a stack, because a tree may be of any depth
    while rest:
        depth, node = rest.pop()
        holder = f" {node['holder']}" if "holder" in node else _ran_out(node["status"], node.get("reason"))
        origin = f" ({node['origin']})" if "origin" in node else ""
        print("  " * depth + one_line(f"{node['id']}  {node['status']}{holder}  {node['title']}{origin}"))
        rest += [(depth + 1, child) for child in reversed(node["children"])]
    return exits.DONE


@group.command(epilog="Example: amem task invalidate task-me-0123abcd --why 'the plan changed' --dry-run")
@_ONE
@_WHY
@click.option("--dry-run", is_flag=True, help="Say what would be closed; close nothing.")
@click.pass_obj
def invalidate(context: Context, id: str, why: str | None, dry_run: bool) -> int:
    """Close a task and every open one filed from it."""
    with _opened(context) as ledger:
        closing = ledger.invalidate(_readable(context, id), by=context.principal, why=why, dry_run=dry_run)
    if context.flags.json:
        print_json({"closed": list(closing.closed), "left": [{"id": one, "why": reason} for one, reason in closing.left.items()]})
        return exits.DONE
    for one in closing.closed:
        print(f"{'would close' if dry_run else 'closed'} {one}")
    for one, reason in closing.left.items():
        print(f"left {one}: {reason}")
    return exits.DONE


@group.command(epilog="Example: amem task retry task-me-0123abcd --why 'with the new key'")
@_ONE
@_WHY
@click.pass_obj
def retry(context: Context, id: str, why: str | None) -> int:
    """File a closed task again. The handoffs of its chain are its lessons."""
    from amem.ledger import views

    with _opened(context) as ledger:
        known = _readable(context, id)
        for found in ledger.tasks([known]).values():
            _may_admit(context, found.domain, found.requires, found.id)
        task = _done(ledger.retry(known, by=context.principal, why=why))
    if context.flags.json:
        print_json({**views.shown(task), "lessons": list(task.lessons)})
        return exits.DONE
    return _print_task(context, task)


@group.command(epilog="Example: amem task rescore --dry-run")
@flags.domain
@click.option("--dry-run", is_flag=True, help="Say what would move; move nothing.")
@click.pass_obj
def rescore(context: Context, domain: str | None, dry_run: bool) -> int:
    """Rank the open tasks of a domain anew. Each starts from the priority that it was filed with."""
    from amem.ledger import rank, views
    from amem.record import policies

    where = context.domain(domain)
    with _opened(context) as ledger:
        moves = ledger.rescore(where, by=context.principal, dry_run=dry_run)
    if context.flags.json:
        moved = [views.shown_move(move) for move in moves]
        print_json({"moved": moved, "rubric": rank.rubric(policies.rubric(context.root, context.grants, where)).name})
        return exits.DONE
    for move in moves:
        print(one_line(f"{move.id}  {move.was:g} → {move.rank:g}  {move.why}"))
    print(f"{len(moves)} {'would move' if dry_run else 'moved'}", file=sys.stderr)
    return exits.DONE


@group.command(epilog="Example: amem task stats --since 30d --json")
@flags.domain
@flags.since
@click.pass_obj
def stats(context: Context, domain: str | None, since: datetime | None) -> int:
    """Show how the tasks of a domain fare."""
    with _reading(context) as ledger:
        found = ledger.stats(context.domain(domain), since_ms=_ms(since) or 0)
    if context.flags.json:
        print_json(
            {
                "by_status": dict(found.by_status), "by_family": {family: dict(counts) for family, counts in found.by_family.items()},
                "invalidated": dict(found.invalidated), "capability_gaps": list(found.capability_gaps), "inflation": dict(found.inflation),
            }
        )  # fmt: skip
        return exits.DONE
    statuses = list(found.by_status)
    if not statuses:
        print("no tasks yet", file=sys.stderr)
        return exits.DONE
    rows = [[family, *(counts.get(status, 0) for status in statuses)] for family, counts in sorted(found.by_family.items())]
    print(table(["filed by", *statuses], rows, stretch=0))
    for reason, count in found.invalidated.items():
        print(one_line(f"{count} invalidated: {reason}"))
    for word in found.capability_gaps:
        print(f"no completed task ever required {word}, and one waits")
    for creator, count in found.inflation.items():
        print(f"{creator} asked for more than it holds {count} times")
    return exits.DONE


@group.command(epilog="Example: amem task why task-me-0123abcd --capability code")
@_ONE
@click.option("--capability", "capabilities", multiple=True, metavar="C", help="As one who holds these; default: what agents are granted.")
@click.pass_obj
def why(context: Context, id: str, capabilities: tuple[str, ...]) -> int:
    """Say why a task cannot be claimed, and what helps."""
    from amem.ledger import views

    with _reading(context) as ledger:
        task = ledger.show(_readable(context, id))
        held = capabilities or _agents(context, task.domain)
        found = views.blockers(task, ledger.tasks(task.depends_on), held, ledger.now_ms())
    if context.flags.json:
        print_json({"runnable": not found, "blockers": [{"kind": one.kind, "what": one.what, "fix": one.fix} for one in found]})
        return exits.DONE
    if not found:
        print("it can be claimed now")
    for one in found:
        print(one_line(f"{one.kind}: {one.what}"))
        print(f"  try: {one_line(one.fix)}")
    return exits.DONE


@group.command(epilog="Example: amem task timeline task-me-0123abcd --tree")
@_ONE
@click.option("--tree", "whole", is_flag=True, help="Of everything filed from it too.")
@click.pass_obj
def timeline(context: Context, id: str, whole: bool) -> int:
    """Show the attempts at a task. Who, how long, what it took, what came of it."""
    from amem.commands import attempts
    from amem.ledger import views

    with _reading(context) as ledger:
        tasks = ledger.tree(_readable(context, id)) if whole else (ledger.show(id),)
        found = [(task.id, one) for task in tasks for one in views.attempts(ledger.events(task.id))]
    found.sort(key=lambda pair: pair[1].claimed_ms)
    domain = tasks[0].domain
    rows = [
        {**({"task": task} if whole else {}), **views.shown_attempt(one), **attempts.metered(context, domain, one.session)}
        for task, one in found
    ]
    if context.flags.json:
        print_json({"attempts": rows})
        return exits.DONE
    if not rows:
        print("nobody has claimed it yet", file=sys.stderr)
        return exits.DONE
    for row in rows:
        attempts.show(row)
    return exits.DONE


@group.command(epilog="Example: amem task unblock task-me-0123abcd --why 'the key is there'")
@_ONE
@_WHY
@click.pass_obj
def unblock(context: Context, id: str, why: str | None) -> int:
    """Let a blocked task be claimed again."""
    with _opened(context) as ledger:
        return _print_task(context, _yes(ledger.unblock(_readable(context, id), by=context.principal, why=why)))


@contextmanager
def _reading(context: Context) -> "Iterator[Reading]":
    from amem.ledger.opening import open_reading

    with open_reading(context.root, context.grants) as ledger:
        yield ledger


def _may_admit(context: Context, domain: str, requires: Sequence[str], task: str | None = None) -> None:
    """Ask the policy whether the acting person admits a task. Raises RefusedError."""
    from amem.model import ids
    from amem.policy import request
    from amem.record import policies

    asked = request.admit(
        principal=context.principal, domain=domain, session=ids.draw("session"), requires=requires, held=None, subject=task
    )  # fmt: skip
    with policies.door(context.root, context.grants) as door:
        decision = door.decide(asked)
    if not decision.allow:
        raise RefusedError(decision.sentence(), hint=decision.hint, decision=decision.id)


@contextmanager
def _opened(context: Context) -> "Iterator[Ledger]":
    from amem.ledger.opening import open_ledger
    from amem.memory.notice import observer

    def rubric(domain: str) -> "Mapping[str, Any] | None":
        from amem.record import policies

        return policies.rubric(context.root, context.grants, domain)

    with open_ledger(context.root, context.grants, observer(context.root, context.grants), rubric) as ledger:
        yield ledger


def _readable(context: Context, id: str) -> str:
    """A task's id, if its domain is one of this root's. Raises NotFoundError, which does not say which."""
    from amem.ledger.task import known, not_found
    from amem.model.ids import domain_of

    if domain_of(known(id)) not in context.domains:
        raise not_found(id)
    return id


def _withheld(context: Context, domain: str) -> tuple[str, ...]:
    """The labels of a domain's tasks that the acting person may not read; an empty one stands for tasks without."""
    grant, known = context.grants.grant(domain, context.principal), context.grants.domains.get(domain)
    if grant is None or known is None:
        return ("", *Label)
    return tuple(label for label in Label if label.exceeds(grant.read)) + (("",) if known.default.exceeds(grant.read) else ())


def _done(answer: "Refused | Any") -> Any:
    """The answer, or its refusal as an error: a conflict is exit 1, a gate that is not met exit 3."""
    from amem.ledger.store import Refused, Why

    if not isinstance(answer, Refused):
        return answer
    if answer.code is Why.REFUSED:
        raise RefusedError(answer.reason, hint=answer.hint)
    raise ConflictError(answer.reason, hint=answer.hint, reason=answer.code.value)


def _yes(answer: "Refused | Any") -> Any:
    """The answer, or its refusal as the command's no: exit 3."""
    from amem.ledger.store import Refused

    if isinstance(answer, Refused):
        raise RefusedError(answer.reason, hint=answer.hint)
    return answer


def _holding(context: Context, ledger: "Ledger", id: str, fence: int | None) -> int:
    """The number of the claim to act under: the one named, else the acting person's. Raises ConflictError before anything is written."""
    task = ledger.show(_readable(context, id))
    if fence is None and (task.status != "claimed" or task.holder != context.principal):
        holder = f"{task.holder} holds it under fence {task.fence}" if task.status == "claimed" else f"it is {_state(task)}"
        raise ConflictError(
            f"{id}: you do not hold it: {holder}", hint=f"amem task {'claim' if task.status == 'admitted' else 'show'} {id}"
        )
    number = task.fence if fence is None else fence
    if not task.held(number, ledger.now_ms(), None):
        raise ConflictError(
            f"{id}: claim {number} is over: the task is {task.status}, its latest claim {task.fence}",
            hint=f"amem task show {id}",
            reason="stale_fence",
        )
    return number


def _handoff(context: Context, id: str, text: str, cites: Iterable[str] = ()) -> str:
    """Write a handoff entry about a task and return its id. The entry stands before the ledger names it."""
    from amem.memory import handoff as leave
    from amem.memory import outcomes
    from amem.model.ids import domain_of

    body = given(text)
    if not body.strip():
        raise UsageError("the handoff is empty: say what was done, and what is open", hint="amem task handoff --help")
    session = context.owner_session(domain_of(id))
    session.task = id
    outcome = leave.handoff(context.memory, session, body, cites=cites)
    match outcome:
        case outcomes.Written(entry):
            return entry.id
        case outcomes.Held():
            what = f"the handoff is held in the quarantine as {outcome.id}: {outcome.reason}"
            raise RefusedError(what, hint=f"amem quarantine show {outcome.id}", held=outcome.id)
        case outcomes.Refused():
            raise RefusedError(outcome.reason, hint=outcome.hint, reason=outcome.code)


def _agents(context: Context, domain: str) -> tuple[str, ...]:
    """What the agents of a domain may hold at most."""
    grant = context.grants.domains.get(domain)
    return tuple({word for one in grant.principals.values() for word in one.capabilities}) if grant else ()


def _state(task: "Task") -> str:
    if task.status == "admitted" and task.open_needs:
        return f"waits on {task.open_needs}"
    if task.status == "claimed":
        return f"held by {task.holder}"
    return f"{task.status}{_ran_out(task.status, task.reason)}"


def _ran_out(status: str, reason: str | None) -> str:
    from amem.ledger.task import LEASE_ENDED

    return " (lease ran out)" if status == "admitted" and reason == LEASE_ENDED else ""


def _print_task(context: Context, task: "Task", body: str | None = None, *, stale: bool = False) -> int:
    from amem.ledger import views

    if context.flags.json:
        print_json(views.shown(task, body))
        return exits.DONE
    print(f"{task.id}  {one_line(task.title)}")
    print(f"  {_state(task)} · rank {task.rank:g} · priority {task.priority}")
    for name, value in _facts(task):
        print("  " + one_line(f"{name}: {value}"))
    if task.check:
        changed = ", and the tree has changed since" if stale else ""
        print("  " + one_line(f"checks: {task.checked or 'not run yet'}{changed}: {'; '.join(task.check)}"))
    if body:
        print("\n" + visible(body))
    return exits.DONE


def _facts(task: "Task") -> Sequence[tuple[str, str]]:
    from amem.ledger import views

    keys = views.shown(task)
    names = (
        "requires", "depends_on", "origin", "parent", "fence", "lease_ends_at", "review", "blocked_on", "reason", "label", "budget_tokens",
        "handoffs", "lessons",
    )  # fmt: skip
    shown = [(name, keys[name]) for name in names if keys.get(name)]
    return [(name.replace("_", " "), _words(value)) for name, value in shown]


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _ms(instant: datetime | None) -> int | None:
    return None if instant is None else round(instant.timestamp() * 1000)

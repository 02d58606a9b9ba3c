"""How tasks come from tasks: filing, admission and what it lifts, the parts of a fan-out, its continuation, a retry.

The same spawn twice in a chain is one task. Work that a session files never outranks the task it holds, and is admitted only when it asks
for no more than that task did; what is irreversible is admitted by a person alone.
"""

from collections.abc import Collection, Sequence

from amem.ledger import events as ev
from amem.ledger import rank, rows
from amem.ledger.draft import DEFAULT_PRIORITY, MAX_DEPENDENCIES, MAX_TITLE, Draft, digest
from amem.ledger.rank import Move
from amem.ledger.store import Filed, Refused, Spawn, Why
from amem.ledger.task import IRREVERSIBLE, Status, Task, covers
from amem.ledger.work import Work
from amem.model import ids
from amem.model.label import Label
from amem.model.principal import SYSTEM


def file(
    work: Work, draft: Draft, *, by: str, under: Task | None, session: str | None, origin: str | None, twin: str | None, review: str | None,
    replaces: str | None = None,
) -> Task:  # fmt: skip
    """File one task under a held one or on its own; proposed."""
    priority, value = rank.filed(draft.priority, under)
    name = ids.draw("task", draft.domain)
    body = None
    if draft.body:
        body = digest(draft.body)
        work.keep(draft.body, body)
    return work.do(
        ev.Created(
            task=name, by=by, at_ms=work.at(*work.load(draft.depends_on)), title=draft.title, priority=priority, rank=value,
            requires=draft.requires, depends_on=draft.depends_on, body=body, origin=origin, parent=under.id if under else None,
            chain=under.chain if under else name, twin=twin, check=draft.check, budget_tokens=draft.budget_tokens,
            label=draft.label.value if draft.label else None, review=review, session=session, replaces=replaces,
        )
    )  # fmt: skip


def admit_task(work: Work, task: Task, by: str) -> tuple[Move, ...]:
    """Admit a proposed task; the rises of what it waits on."""
    task = work.do(ev.Admitted(task=task.id, by=by, at_ms=work.at(task)))
    if not task.depends_on:
        return ()
    moves = _rises(work, task, upstream(work, task.depends_on))
    move(work, moves, SYSTEM)
    return moves


def _rises(work: Work, task: Task, waits_on: Sequence[Task]) -> tuple[Move, ...]:
    return rank.raised(task, waits_on, work.rubric, work.get(task.parent) if task.parent else None)


def lift(work: Work, task: Task) -> None:
    """Raise a task that took another's place above what waits on it by now, as the other one was raised."""
    waiting = [one for one in work.tasks.values() if task.id in one.depends_on and one.status.open and one.status is not Status.PROPOSED]
    if waiting:
        top = max(waiting, key=lambda one: one.rank)
        move(work, _rises(work, top, [task, *upstream(work, task.depends_on)]), SYSTEM)


def upstream(work: Work, needs: Sequence[str]) -> list[Task]:
    """The open tasks among `needs` and whatever they wait on, directly or not, those just filed included."""
    near = [one for one in work.load(needs) if one.status.open]
    return [*near, *(one for one in work.load(work.ids("upstream", ids=[one.id for one in near])) if one not in near)]


def move(work: Work, moves: Sequence[Move], by: str) -> None:
    """Change ranks, each with its reason."""
    for one in moves:
        at_ms = work.at(work.tasks[one.id])
        work.do(ev.Rescored(task=one.id, by=by, at_ms=at_ms, was=one.was, rank=one.rank, why=one.why, serves=one.serves))


def spawn(
    work: Work, part: Spawn, held: Task | None, by: str, session: str | None, admit_own: bool, capabilities: Collection[str] | None,
    label: Label | None,
) -> Filed:  # fmt: skip
    """File one part, or find the one with the same body in the chain."""
    requires = part.needs(held.requires if held else ())
    draft = Draft(
        domain=work.tx.domain, title=part.title, body=part.body, requires=requires, priority=held.priority if held else DEFAULT_PRIORITY,
        label=label,
    )  # fmt: skip
    limit = held.requires if held else capabilities
    review = "human" if limit is not None and not covers(limit, draft.requires) else None
    if held is None:
        origin = f"session:{session}" if session else None
        return Filed(file(work, draft, by=by, under=None, session=session, origin=origin, twin=None, review=review))
    twin = digest(part.body)
    same = [one.id for one in work.tasks.values() if one.twin == twin and one.chain == held.chain]
    same = same or work.ids("twin", twin=twin, chain=held.chain)
    if same:
        return Filed(work.get(same[-1]), existed=True)
    task = file(work, draft, by=by, under=held, session=session, origin=f"task:{held.id}", twin=twin, review=review)
    if admit_own and part.admit and review is None and IRREVERSIBLE not in task.requires:
        admit_task(work, task, by)
    return Filed(work.tasks[task.id])


def resume(
    work: Work, held: Task, children: Sequence[Filed], by: str, session: str | None, text: str | None, admit_own: bool,
    label: Label | None,
) -> Task | Refused | None:  # fmt: skip
    """File the task that resumes the held one, or widen the one that is there: it takes its place and waits on all."""
    parts = dict.fromkeys(one.task.id for one in children if one.task.status is not Status.INVALIDATED and one.task.id != held.id)
    origin = f"continues:{held.id}"
    prior = work.load(work.ids("continuation", parent=held.id, origin=origin))
    if not any(work.tasks[one].status.open for one in parts):
        return prior[0] if prior else None
    if prior and parts.keys() <= {*prior[0].depends_on}:
        return prior[0]
    # No circle can come of it: parts wait on nothing, and what the held task waited on is done.
    needs = tuple(dict.fromkeys([*(prior[0].depends_on if prior else ()), *parts, held.id]))
    if len(needs) > MAX_DEPENDENCIES:
        many = f"{held.id} would be resumed after {len(needs)} tasks: at most {MAX_DEPENDENCIES} are allowed"
        return Refused(Why.REFUSED, many, f"amem task tree {held.id}")
    body = text or f"Resume {held.id} ({held.title}) from the handoffs of its parts and its own."
    draft = Draft(
        domain=work.tx.domain, title=f"Resume: {held.title}"[:MAX_TITLE], body=body, priority=held.priority, requires=held.requires,
        depends_on=needs, label=label,
    )  # fmt: skip
    replaces = prior[0].id if prior else None
    work.load(needs)
    new = file(work, draft, by=by, under=held, session=session, origin=origin, twin=None, review=None, replaces=replaces)
    if prior:
        work.do(ev.Invalidated(task=prior[0].id, by=SYSTEM, at_ms=work.at(prior[0]), why=f"{new.id} resumes instead"))
    if admit_own and IRREVERSIBLE not in new.requires:
        admit_task(work, new, by)
    lift(work, work.tasks[new.id])
    return work.tasks[new.id]


def again(work: Work, task: str, by: str, why: str | None) -> Task | Refused:
    """File a closed task once more, with the handoffs of its chain; what waited on it waits on the new one."""
    work.tx.serialise()
    old = work.get(task)
    if old.status.open:
        return Refused(Why.CONFLICT, f"{task} is still {old.status}: close it first", f"amem task invalidate {task}")
    for later in work.load(work.ids("retried", origin=f"retry:{task}")):
        if later.status.open:
            return Refused(Why.CONFLICT, f"{task} was filed again as {later.id}, which is {later.status}", f"amem task show {later.id}")
    chain = [rows.task(one) for one in work.tx.rows("tree", {"id": old.chain})]
    lessons = tuple(dict.fromkeys([*old.lessons, *(one for part in chain for one in part.handoffs)]))
    parent = work.get(old.parent) if old.parent else None
    priority, value = rank.filed(old.priority, parent)
    needs = tuple(dict.fromkeys(standing(work, one) for one in old.depends_on))
    work.load(needs)
    name = ids.draw("task", work.tx.domain)
    new = work.do(
        ev.Created(
            task=name, by=by, at_ms=work.at(old), title=old.title, priority=priority, rank=value, requires=old.requires,
            depends_on=needs, body=old.body, origin=f"retry:{old.id}", parent=old.parent,
            chain=old.chain if old.parent else name, twin=old.twin, check=old.check, budget_tokens=old.budget_tokens,
            label=old.label, replaces=old.id, lessons=lessons,
        )
    )  # fmt: skip
    if why:
        work.keep(why, digest(why))
        work.do(ev.Posted(task=name, by=by, at_ms=new.created_ms, text=digest(why)))
    if IRREVERSIBLE not in new.requires:
        admit_task(work, new, by)
    lift(work, work.tasks[name])
    return work.tasks[name]


def standing(work: Work, need: str) -> str:
    """The task that stands for a need by now: the latest retry of one that was invalidated, else the need itself."""
    while work.get(need).status is Status.INVALIDATED and (later := work.ids("retried", origin=f"retry:{need}")):
        need = later[0]
    return need

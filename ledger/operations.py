"""What may happen to tasks: each operation decides on the tasks it has locked and appends the events that follow.

The rules are here once for both databases. A database adds how a transaction is made, and may do the three operations
that every worker repeats (claim, heartbeat, complete) in one statement of its own, with the same outcome.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from amem.errors import NotFoundError, UsageError
from amem.ledger import events as ev
from amem.ledger import promotions, rank, rows
from amem.ledger.backend import Backend, Tx
from amem.ledger.draft import MAX_DEPENDENCIES, Draft, digest, prose
from amem.ledger.filing import admit_task, again, file, move, resume, spawn, standing
from amem.ledger.holding import give_back, held, judged, repeated, sweep
from amem.ledger.projection import BLOCKER_RUNS
from amem.ledger.rank import DEFAULT, Move, Rubric
from amem.ledger.reading import Reading
from amem.ledger.store import (
    LEASE_MS,
    MAX_LEASE_MS,
    Admission,
    Closing,
    FannedOut,
    Filed,
    Holding,
    Observe,
    Refused,
    Spawn,
    Why,
)
from amem.ledger.task import IRREVERSIBLE, Status, Task, covers, known
from amem.ledger.work import Work
from amem.model import ids
from amem.model.label import Label
from amem.model.principal import SYSTEM
from amem.typed import TypeVar

T = TypeVar("T")
CHECK_STATES = ("verified", "failed", "unchecked")
_INSTEAD = {Status.BLOCKED: "unblock", Status.COMPLETED: "retry", Status.INVALIDATED: "retry"}
"""What lets a task be claimed that is past its admission."""
VERDICTS = ("satisfied", "needs_revision", "max_iterations_reached", "failed", "interrupted")


class Operations(Reading):
    """The operations of `store.Ledger` over any backend."""

    def __init__(self, backend: Backend, observe: Observe | None = None, rubric: Callable[[str], Rubric] = lambda domain: DEFAULT) -> None:
        super().__init__(backend)
        self._observe = observe
        self._rubric = rubric
        """The rubric in force in a domain; asked before a transaction begins, since it may have to look into the ledger itself."""

    def create(
        self, draft: Draft, *, by: str, under: Holding | None = None, session: str | None = None, admit: bool = False,
        admit_own: bool = False, capabilities: Collection[str] | None = None,
    ) -> Filed | Refused:  # fmt: skip
        """See `store.Ledger`."""

        def act(work: Work) -> Filed | Refused:
            parent: Task | None = None
            if under is not None or draft.depends_on or draft.subject is not None:
                work.tx.serialise()
            if under is not None:
                found = held(work, under.task, under.fence, under.session)
                if isinstance(found, Refused):
                    return found
                parent = found
            needs = work.load(draft.depends_on)
            if missing := {*draft.depends_on} - {one.id for one in needs}:
                name = min(missing)
                raise NotFoundError(f"{name}: the task it would wait on is not there", hint="amem task list", task=name)
            for need in needs:
                if need.status is Status.INVALIDATED:
                    later = standing(work, need.id)
                    hint = f"amem task retry {need.id}" if later == need.id else f"wait on its retry {later}"
                    return Refused(Why.CONFLICT, f"{need.id} was invalidated: what waits on it could never be claimed", hint)
            twin = None
            if draft.subject is not None:
                twin = digest(f"{draft.origin or ''}\0{draft.subject}")
                if same := work.ids("subject", twin=twin):
                    return Filed(work.get(same[0]), existed=True)
            origin = draft.origin or (f"task:{parent.id}" if parent else f"session:{session}" if session else None)
            limit = parent.requires if parent else capabilities
            exceeds = limit is not None and not covers(limit, draft.requires)
            task = file(work, draft, by=by, under=parent, session=session, origin=origin, twin=twin, review="human" if exceeds else None)
            own = admit_own and parent is not None and not exceeds
            if (admit or own) and IRREVERSIBLE not in task.requires:
                admit_task(work, task, by)
            return Filed(work.tasks[task.id])

        return self._change(draft.domain, act, new=True, ranks=True)

    def admit(self, ids: Sequence[str], *, by: str) -> Admission | Refused:
        """See `store.Ledger`."""
        domains = {ids_domain(one) for one in ids}
        if len(domains) != 1:
            raise UsageError("which tasks? name some, all of one domain", hint="amem task list --status proposed")

        def act(work: Work) -> Admission | Refused:
            work.tx.serialise()
            found = [work.get(one) for one in dict.fromkeys(ids)]
            for task in found:
                if task.status not in (Status.PROPOSED, Status.ADMITTED):
                    hint = f"amem task {_INSTEAD.get(task.status, 'show')} {task.id}"
                    return Refused(Why.CONFLICT, f"{task.id} is {task.status}: only a proposed task can be admitted", hint)
            fresh = [task.id for task in found if task.status is Status.PROPOSED]
            moves = [one for task in fresh for one in admit_task(work, work.tasks[task], by)]
            return Admission(tuple(work.tasks[one.id] for one in found), tuple(moves))

        return self._change(domains.pop(), act, ranks=True)

    def claim(
        self, domain: str, *, by: str, session: str | None = None, capabilities: Collection[str] = (), lease_ms: int = LEASE_MS
    ) -> Task | None:
        """See `store.Ledger`."""
        event = ev.Claimed(task="", by=by, at_ms=0, lease_ms=lease(lease_ms), session=session)
        taken = self._backend.take(domain, event, capabilities, unless_ended=True)
        if taken.ended:
            self._change(domain, sweep)
            taken = self._backend.take(domain, event, capabilities, unless_ended=False)
        return self._told(event, taken.task)

    def claim_one(
        self, task: str, *, by: str, session: str | None = None, capabilities: Collection[str] = (), lease_ms: int = LEASE_MS
    ) -> Task | Refused:
        """See `store.Ledger`."""
        lease(lease_ms)

        def act(work: Work) -> Task | Refused:
            found = give_back(work, work.get(task))
            if found.status is not Status.ADMITTED:
                return Refused(Why.CONFLICT, f"{task} is {found.status}{_holder(found)}: nobody can claim it now", f"amem task why {task}")
            if found.open_needs:
                return Refused(Why.CONFLICT, f"{task} waits on {found.open_needs} open task{_s(found.open_needs)}", f"amem task why {task}")
            if not found.allows(capabilities):
                lacking = ", ".join(sorted({*found.requires} - {*capabilities}))
                return Refused(Why.REFUSED, f"{task} requires {lacking}, which this claimer does not hold", f"amem task why {task}")
            return work.do(ev.Claimed(task=task, by=by, at_ms=work.at(found), fence=found.fence + 1, lease_ms=lease_ms, session=session))

        return self._change(ids_domain(task), act)

    def heartbeat(self, task: str, *, by: str, fence: int, session: str | None = None, lease_ms: int | None = None) -> Task | Refused:
        """See `store.Ledger`."""
        if lease_ms is not None:
            lease(lease_ms)

        def act(work: Work) -> Task | Refused:
            found = held(work, task, fence, session)
            if isinstance(found, Refused):
                return found
            return work.do(ev.Heartbeat(task=task, by=by, at_ms=work.at(found), fence=fence, lease_ms=lease_ms or found.lease_ms))

        if lease_ms is not None:
            event = ev.Heartbeat(task=known(task), by=by, at_ms=0, fence=fence, lease_ms=lease_ms)
            values = {"id": task, "fence": fence, "session": session, "lease_ms": lease_ms}
            if (renewed := self._told(event, self._backend.at_once("beat", event, values))) is not None:
                return renewed
        return self._change(ids_domain(task), act)

    def release(
        self, task: str, *, by: str, fence: int, session: str | None = None, why: str | None = None, blocker: str | None = None,
        handoff: str | None = None,
    ) -> Task | Refused:  # fmt: skip
        """See `store.Ledger`."""
        _sentence(why, "reason")
        _sentence(blocker, "blocker")
        _entry(handoff)

        def act(work: Work) -> Task | Refused:
            found = held(work, task, fence, session)
            if isinstance(found, Refused):
                return repeated(work, ev.Released, task, by, fence) or found
            at_ms = work.at(found)
            after = work.do(
                ev.Released(task=task, by=by, at_ms=at_ms, fence=fence, why=why or None, blocker=blocker or None, handoff=handoff)
            )
            if after.blocker is not None and after.blocker_runs >= BLOCKER_RUNS:
                after = work.do(ev.Blocked(task=task, by=SYSTEM, at_ms=at_ms, fence=fence, on=after.blocker))
            return after

        return self._change(ids_domain(task), act)

    def complete(
        self, task: str, *, by: str, fence: int, session: str | None = None, handoff: str | None = None, check: bool = False
    ) -> Task | Refused:
        """See `store.Ledger`."""
        _entry(handoff)

        def act(work: Work) -> Task | Refused:
            found = held(work, task, fence, session)
            if isinstance(found, Refused):
                # An answer that was lost with its connection is asked for again: the same claim completed it.
                return repeated(work, ev.Completed, task, by, fence) or found
            if handoff is None and found.handed_off != fence:
                hint = f"amem task handoff {task} --body -"
                return Refused(Why.REFUSED, f"{task} has no handoff of this claim: say what was done first", hint)
            if check and not (found.checked == "verified" and found.checked_fence == fence):
                state = found.checked if found.checked_fence == fence else None
                hint = f"release it, then: amem work --task {task}"
                return Refused(Why.REFUSED, f"the checks of {task} are {state or 'not run'} in this claim: they must be verified", hint)
            return work.do(ev.Completed(task=task, by=by, at_ms=work.at(found), fence=fence, handoff=handoff))

        if not check:
            event = ev.Completed(task=known(task), by=by, at_ms=0, fence=fence, handoff=handoff)
            values = {"id": task, "fence": fence, "session": session, "handoff": handoff}
            if (done := self._told(event, self._backend.at_once("complete", event, values))) is not None:
                return done
        return self._change(ids_domain(task), act)

    def handoff_left(self, task: str, *, by: str, handoff: str, fence: int | None = None, session: str | None = None) -> Task | Refused:
        """See `store.Ledger`."""
        _entry(handoff)

        def act(work: Work) -> Task | Refused:
            found = held(work, task, fence, session) if fence is not None else work.get(task)
            if isinstance(found, Refused):
                return found
            if fence is not None and handoff in found.handoffs and found.handed_off == fence:
                return found
            return work.do(ev.HandoffLeft(task=task, by=by, at_ms=work.at(found), fence=fence or 0, handoff=handoff))

        return self._change(ids_domain(task), act)

    def post(self, task: str, *, by: str, text: str) -> Task:
        """See `store.Ledger`."""
        if not prose(text, "remark").strip():
            raise UsageError("a remark needs words", hint="amem task post --help")

        def act(work: Work) -> Task:
            found, name = work.get(task), digest(text)
            work.keep(text, name)
            return work.do(ev.Posted(task=task, by=by, at_ms=work.at(found), text=name))

        return self._change(ids_domain(task), act)

    def block(self, task: str, *, by: str, on: str, fence: int | None = None, session: str | None = None) -> Task | Refused:
        """See `store.Ledger`."""
        if not _sentence(on, "blocker"):
            raise UsageError("what is it blocked on?", hint=f"amem task show {task}")

        def act(work: Work) -> Task | Refused:
            found = held(work, task, fence, session) if fence is not None else give_back(work, work.get(task))
            if isinstance(found, Refused):
                return found
            if fence is None and found.status is not Status.ADMITTED:
                return Refused(
                    Why.CONFLICT, f"{task} is {found.status}{_holder(found)}: only a waiting task can be blocked", f"amem task why {task}"
                )
            return work.do(ev.Blocked(task=task, by=by, at_ms=work.at(found), fence=fence or 0, on=on))

        return self._change(ids_domain(task), act)

    def unblock(self, task: str, *, by: str, why: str | None = None) -> Task | Refused:
        """See `store.Ledger`."""
        _sentence(why, "reason")

        def act(work: Work) -> Task | Refused:
            found = work.get(task)
            if found.status is not Status.BLOCKED:
                return Refused(Why.CONFLICT, f"{task} is {found.status}, not blocked", f"amem task why {task}")
            return work.do(ev.Unblocked(task=task, by=by, at_ms=work.at(found), why=why))

        return self._change(ids_domain(task), act)

    def invalidate(self, task: str, *, by: str, why: str | None = None, dry_run: bool = False) -> Closing:
        """See `store.Ledger`."""
        _sentence(why, "reason")

        def act(work: Work) -> Closing:
            work.tx.serialise()
            below = work.ids("tree", id=task)
            if not below:
                work.get(task)
            found = work.load(below)
            closing = Closing(
                tuple(one.id for one in found if one.status.open),
                {one.id: f"{one.status} already" for one in found if not one.status.open},
            )
            for one in closing.closed if not dry_run else ():
                work.do(ev.Invalidated(task=one, by=by, at_ms=work.at(work.tasks[one]), fence=work.tasks[one].fence, why=why))
            return closing

        return self._change(ids_domain(task), act)

    def retry(self, task: str, *, by: str, why: str | None = None) -> Task | Refused:
        """See `store.Ledger`."""
        _sentence(why, "reason")

        def act(work: Work) -> Task | Refused:
            return again(work, task, by, why)

        return self._change(ids_domain(task), act, ranks=True)

    def fan_out(
        self, spawns: Sequence[Spawn], *, domain: str, by: str, under: Holding | None = None, session: str | None = None,
        continuation: str | None = None, admit_own: bool = False, capabilities: Collection[str] | None = None,
        label: Label | None = None,
    ) -> FannedOut | Refused:  # fmt: skip
        """See `store.Ledger`."""
        if not 0 < len(spawns) < MAX_DEPENDENCIES:
            raise UsageError(f"a fan-out of {len(spawns)} tasks: expected 1 to {MAX_DEPENDENCIES - 1}")
        if continuation is not None:
            prose(continuation, "continuation")
        for one in spawns:
            if not one.body.strip():
                raise UsageError(f"the part {one.title[:60]!r} has no body: a part is known by its body")
            Draft(domain=domain, title=one.title, body=one.body, requires=one.requires or ())

        def act(work: Work) -> FannedOut | Refused:
            work.tx.serialise()
            if under is None:
                return FannedOut(tuple(spawn(work, one, None, by, session, False, capabilities, label) for one in spawns), None)
            parent = held(work, under.task, under.fence, under.session)
            if isinstance(parent, Refused):
                return parent
            children = tuple(spawn(work, one, parent, by, session, admit_own, None, label) for one in spawns)
            resumed = resume(work, parent, children, by, session, continuation, admit_own, label)
            if isinstance(resumed, Refused):
                return resumed
            return FannedOut(tuple(Filed(work.tasks[one.task.id], one.existed) for one in children), resumed)

        return self._change(domain, act, new=True, ranks=True)

    def rescore(self, domain: str, *, by: str, dry_run: bool = False) -> tuple[Move, ...]:
        """See `store.Ledger`."""

        def act(work: Work) -> tuple[Move, ...]:
            work.tx.serialise()
            tasks = [rows.task(one) for one in work.tx.rows("open_tasks", {"domain": domain})]
            done: dict[str, int] = {family: count for family, count in work.tx.rows("done", {"domain": domain})}
            moves = rank.rescored(
                tasks,
                at_ms=work.at(),
                completed=sum(done.values()),
                curated=sum(done.get(one, 0) for one in rank.CURATION),
                rubric=work.rubric,
            )
            if not dry_run:
                work.load([one.id for one in moves])
                moves = tuple(one for one in moves if work.tasks[one.id].status.open)
                move(work, moves, by)
            return moves

        return self._change(domain, act, ranks=True)

    def checked(
        self,
        task: str,
        *,
        by: str,
        state: str,
        tree: str | None,
        fence: int | None = None,
        session: str | None = None,
        exits: tuple[int, ...] = (),
    ) -> Task | Refused:
        """See `store.Ledger`."""
        if state not in CHECK_STATES:
            raise UsageError(f"check state {state!r}: expected {', '.join(CHECK_STATES)}")

        def act(work: Work) -> Task | Refused:
            found = judged(work, task, fence, session)
            if isinstance(found, Refused):
                return found
            return work.do(ev.Checked(task=task, by=by, at_ms=work.at(found), fence=fence or 0, state=state, tree=tree, exits=exits))

        return self._change(ids_domain(task), act)

    def graded(self, task: str, *, by: str, verdict: str, round: int, grader: str | None, fence: int | None = None) -> Task | Refused:
        """See `store.Ledger`."""
        if verdict not in VERDICTS:
            raise UsageError(f"verdict {verdict!r}: expected {', '.join(VERDICTS)}")

        def act(work: Work) -> Task | Refused:
            found = judged(work, task, fence, None)
            if isinstance(found, Refused):
                return found
            return work.do(ev.Graded(task=task, by=by, at_ms=work.at(found), fence=fence or 0, verdict=verdict, round=round, grader=grader))

        return self._change(ids_domain(task), act)

    def promotion(self, entry: str, version: int, to: str, *, by: str, why: str) -> int:
        """See `store.Ledger`."""
        return self._change(ids.domain_of(entry), lambda work: promotions.begin(work, entry, version, to, by, why), new=True)

    def landed(self, entry: str, seq: int) -> None:
        """See `store.Ledger`."""
        values = {"seq": seq, "state": promotions.State.LANDED.value}
        self._change(ids.domain_of(entry), lambda work: work.tx.run("settle_promotion", values))

    def propose(self, entry: str, version: int, draft: Draft, *, by: str, why: str) -> Filed | Refused:
        """See `store.Ledger`."""
        return self._change(ids.domain_of(entry), lambda work: promotions.propose(work, entry, version, by, why, draft), new=True)

    def settle(
        self, entry: str, task: str, *, by: str, state: "promotions.State", why: str | None = None
    ) -> "promotions.Promotion | Refused":
        """See `store.Ledger`."""
        return self._change(ids.domain_of(entry), lambda work: promotions.settle(work, entry, task, by, state, why))

    def erase(self, task: str, *, by: str) -> Task:
        """See `store.Ledger`."""
        from amem.ledger import erasing

        return self._change(ids_domain(task), lambda work: erasing.erase(work, task, by))

    def erase_whys(self, domain: str, entries: Collection[str], says: Callable[[str], bool]) -> int:
        """See `store.Ledger`."""
        from amem.ledger import erasing

        return self._change(domain, lambda work: erasing.whys(work, entries, says))

    def scrub(self, domain: str) -> None:
        """See `store.Ledger`."""
        self._change(domain, lambda work: work.tx.rows("drop_requirements", {"domain": domain}))
        self._backend.scrub(domain)

    def _change(self, domain: str, act: Callable[[Work], T], *, new: bool = False, ranks: bool = False) -> T:
        """Run `act` in one write transaction and write what it did, unless it answers Refused: then nothing is written.

        `ranks`: it may move a rank, and needs the rubric in force.
        """
        rubric = self._rubric(domain) if ranks else DEFAULT

        def body(tx: Tx) -> tuple[T, Work]:
            work = Work(tx, rubric)
            result = act(work)
            if not isinstance(result, Refused):
                work.flush()
            return result, work

        result, work = self._backend.change(domain, body, new=new)
        if self._observe is not None and not isinstance(result, Refused):
            for event, task in work.log:
                self._observe(event, task)
        return result

    def _told(self, event: ev.Event, task: Task | None) -> Task | None:
        """The task of what was done in one go, once the observer has heard of it."""
        if task is not None and self._observe is not None:
            self._observe(replace(event, task=task.id, at_ms=task.changed_ms, fence=task.fence), task)
        return task


def ids_domain(task: str) -> str:
    """The domain that a task's id names. Raises UsageError when it is no task's id."""
    return ids.domain_of(known(task))


def lease(lease_ms: int) -> int:
    """A lease's length, checked. Raises UsageError."""
    if not 0 < lease_ms <= MAX_LEASE_MS:
        raise UsageError(f"a lease of {lease_ms} ms: expected 1 ms to {MAX_LEASE_MS // 3_600_000} hours", hint="amem task claim --help")
    return lease_ms


def _sentence(text: str | None, what: str) -> str | None:
    if text is not None and len(prose(text, what)) > 2000:
        said = f"the {what} has {len(text)} characters, at most 2000 are allowed: write the rest in the handoff"
        raise UsageError(said, hint="amem task handoff --help")
    return text


def _entry(handoff: str | None) -> None:
    if handoff is not None and not ids.is_id("entry", handoff):
        raise UsageError(f"{handoff[:60]!r} is not an entry's id: a handoff is an entry of the record", hint="amem task handoff --help")


def _holder(task: Task) -> str:
    return f" by {task.holder}" if task.holder and task.status is not Status.INVALIDATED else ""  # who held it last did not close it


def _s(count: int) -> str:
    return "" if count == 1 else "s"

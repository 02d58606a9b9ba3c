"""Do one task from the board: claim it, run a harness on it, and see to it that it is completed or back in the pool.

Composition root of `amem work`. The rules of tasks are the memory server's: the launcher claims, reads, renews and gives back with the
same tools as a harness, over a connection of its own. The claim comes before the sandbox, because the prompt needs the task; so the
session's server starts first, and the sandbox's listener joins it. Whatever goes wrong after a claim gives the task back.
"""

import random
import signal
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from amem import exits
from amem.errors import AmemError, UnavailableError, UsageError
from amem.hooks import outbox
from amem.launch import evidence, grading, prompt, run
from amem.launch.attend import Ended, Outcome, Sitting, how, stoppable, undone
from amem.launch.composition import Composition
from amem.launch.evidence import Evidence
from amem.launch.grading import Grade, Grading
from amem.launch.interrupts import Interrupts, held_back
from amem.launch.lease import Beat, Keeper, since_boot
from amem.launch.plan import Asked
from amem.launch.presence import STOP_SIGNAL, Presence, dead
from amem.launch.served import Served
from amem.memory import fence
from amem.server.client import Answer, Client
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amem.sandbox.child import Nursery, Stage
    from amem.sandbox.run import Running

URL = "http://localhost/mcp"
"""Never resolved: the connection is dialled."""
LEASE_S = 600
ENDED_BY_SIGNAL = (128 + signal.SIGINT, 128 + signal.SIGTERM)
"""What a harness returns when somebody asked it to end."""
UNASKED = Evidence("none", (), "", "")
"""Of a task without checks."""
SETTLE_S = 90.0
"""How long a ledger that went away is waited for once the harness has ended; well below a lease."""
BEFORE_THE_CLAIM = "A launch is checked whole before a task is claimed for it."


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which task to take."""

    task: str | None = None
    """This one; None is the first by rank."""
    capabilities: tuple[str, ...] = ()
    """As one who holds only these; empty is all that the grant gives."""
    lease_s: int = LEASE_S
    patience_s: float = 0.0
    """How long to ask again while there is none; 0 is once."""
    idle_s: float = 30.0
    """Between two questions."""
    prefetch: bool = True
    """Whether the prompt names entries that the task likely needs."""
    grading: Grading | None = None
    """How what was done is judged; None for not at all."""


@dataclass(kw_only=True)
class Worked:
    """What came of it."""

    outcome: str = "none"
    """`completed`, `released`, `blocked`, or `none` when nothing was claimed."""
    task: dict[str, Any] | None = None
    session: Outcome | None = None
    check: str | None = None
    """What came of the task's checks; None where it has none, or was not said to be done."""
    grade: Grade | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def exit(self) -> int:
        """The exit code of `amem work`."""
        return {"completed": exits.DONE, "none": exits.ANSWER_IS_NO}.get(self.outcome, exits.NO_HANDOFF)


class Desk:
    """The launcher at the board: a client of its own session's memory tools."""

    def __init__(self, served: Served, note: Callable[[str], None] = lambda sentence: None) -> None:
        self.patience_s = 0.0
        """How long a call is tried again while the ledger is away."""
        self._served = served
        self._note = note

    def call(self, tool: str, **arguments: Any) -> Answer:
        """Call a tool. A refusal is an answer, but for `unavailable`. Raises UnavailableError, UpstreamError."""
        given = {name: value for name, value in arguments.items() if value is not None}
        until, wait_s = time.monotonic() + self.patience_s, 0.5
        while True:
            try:
                return self._called(tool, given)
            except UnavailableError as error:
                if time.monotonic() + wait_s > until:
                    raise
                self._note(f"{error.message}; trying again for {round(until - time.monotonic())} s")
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, 10.0)

    def _called(self, tool: str, given: dict[str, Any]) -> Answer:
        with Client(URL, dial=self._served.dial) as client:
            answer = client.call(tool, **given)
        if answer.refused and answer.data["code"] == "unavailable":
            raise UnavailableError(f"{tool}: {answer.data['reason']}", hint=answer.data.get("hint"))
        return answer

    def beat(self) -> Beat:
        """Renew whatever the session holds. A session that completed its task holds nothing, and has nothing to lose."""
        try:
            answer = self.call("task_heartbeat")
        except AmemError:
            return Beat.LOST
        return Beat.OVER if answer.refused and answer.data["code"] == "stale_fence" else Beat.RENEWED

    def asked(self, row: dict[str, Any], *, prefetch: bool) -> prompt.Asked:
        """A claimed task, read for the prompt; with `prefetch` also what the memory may have on it."""
        shown = self.call("task_show", id=row["id"])
        handoffs, lessons = list(shown.data.get("handoffs", ())), list(shown.data.get("lessons", ()))
        before, needs = [*lessons, *handoffs], tuple(self._needs(row["depends_on"]))
        known = [*before, *(need.note.id for need in needs if need.note is not None)]
        return prompt.Asked(
            id=row["id"],
            title=row["title"],
            body=prompt.unfenced(shown.text) if shown.text else "",
            attempts=row["attempts"],
            checks=tuple(row.get("check", {}).get("commands", ())),
            last=self.note(before[-1]) if before else None,
            earlier=tuple(before[:-1]),
            needs=needs,
            entries=tuple(self.call("task_prefetch", without=known).data.get("lines", ())) if prefetch else (),
        )

    def _needs(self, ids: list[str]) -> "Iterator[prompt.Need]":
        for id in ids:
            shown = self.call("task_show", id=id)
            if shown.refused:
                yield prompt.Need(id=id, title="(not for you to read)", note=None)
                continue
            handoffs = shown.data["handoffs"]
            yield prompt.Need(id=id, title=shown.data["title"], note=self.note(handoffs[-1]) if handoffs else None)

    def note(self, id: str) -> prompt.Note:
        """A handoff, as far as it may be sent to the session's model."""
        answer = self.call("get", id=id)
        return prompt.Note(id=id, text=None if answer.refused or answer.text is None else prompt.unfenced(answer.text))

    def give_back(self, handoff: str | None = None, why: str | None = None, blocker: str | None = None) -> None:
        """Release the held task with as much as is let through: a handoff may be held, and a reason above the task's label."""
        given = {name: value for name, value in (("handoff", handoff), ("why", why), ("blocker", blocker)) if value is not None}
        while True:
            answer = self.call("task_release", **given)
            if not answer.refused or answer.data["code"] in ("stale_fence", "conflict") or not given:
                return
            reasons = given.keys() & {"why", "blocker"}
            unwanted = reasons if answer.data["code"] == "over_label" and reasons else given.keys() & {"handoff"} or given.keys()
            given = {name: value for name, value in given.items() if name not in unwanted}


def work(
    asked: Asked, wanted: Wanted, settings: run.Settings, stage: "Stage", nursery: "Nursery", on_output: Callable[[int, bytes], None],
    note: Callable[[str], None],
) -> Worked:  # fmt: skip
    """Do one task; the nursery makes the stages of what comes after the harness.

    Raises AmemError when the session could not be served or started; a task it had claimed is back in the pool then.
    """
    checked = run.prepare(asked._replace(prompt=BEFORE_THE_CLAIM, no_handoff=True), settings)
    if wanted.grading is not None and not checked.plan.backend.confined:
        raise UsageError("--grade needs a sandbox: without one a grader could write what it judges", hint="amem work --backend auto")
    composition = Composition(checked, settings, client=True, graded=wanted.grading is not None)
    served = Served(composition.serve)
    worked = Worked()
    with held_back(), _deaf():
        run.make_home(checked)
        presence = Presence(settings.root, checked.id)
        try:
            with Interrupts(note) as interrupts:
                served.start()
                desk = Desk(served, note)
                _recover(desk, settings, note)
                claim = _claim(desk, wanted, worked, interrupts)
                if claim is not None:
                    shift = _Shift(desk, worked, claim, interrupts, note, nursery, wanted)
                    shift.run(asked, checked, settings, stage, composition, served, presence, on_output)
        finally:
            served.stop()
            presence.end()
            if worked.session is None:
                run.remove_home(checked)
    return worked


@contextmanager
def _deaf() -> "Iterator[None]":
    """A request to stop that comes between two sandboxes ends no launcher: it is read once there is one to end."""
    before = signal.signal(STOP_SIGNAL, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(STOP_SIGNAL, before)


@dataclass(frozen=True, kw_only=True)
class _Claim:
    """A claimed task, and what its lease runs from."""

    row: dict[str, Any]
    lease_s: int
    sent_at: float


def _recover(desk: Desk, settings: run.Settings, note: Callable[[str], None]) -> None:
    """Give back what sessions of this root held whose launcher was killed: nobody needs to wait for their leases."""
    over = dead(settings.root)
    if over:
        for id in desk.call("task_recover", sessions=list(over)).data.get("tasks", ()):
            note(f"{id} is back in the pool: the launcher that held it was killed")


def _claim(desk: Desk, wanted: Wanted, worked: Worked, interrupts: Interrupts) -> _Claim | None:
    """The claimed task; None with a note where there is none to take, or nobody wants it taken any more."""
    until = time.monotonic() + wanted.patience_s
    while not interrupts.asked.is_set():
        sent_at = since_boot()
        answer = desk.call("task_claim", id=wanted.task, capabilities=list(wanted.capabilities) or None, lease_s=wanted.lease_s)
        if not answer.refused and not answer.data.get("none"):
            worked.task, worked.outcome = answer.data, "released"
            return _Claim(row=answer.data, lease_s=wanted.lease_s, sent_at=sent_at)
        if time.monotonic() >= until:
            worked.notes.append(answer.data["reason"] if answer.refused else "no task can be claimed now")
            return None
        interrupts.asked.wait(wanted.idle_s * random.uniform(0.9, 1.1))  # workers shall not all come at once
    return None


class _Shift:
    """One claimed task, from the claim to its end."""

    def __init__(
        self, desk: Desk, worked: Worked, claim: _Claim, interrupts: Interrupts, note: Callable[[str], None],
        nursery: "Nursery", wanted: Wanted,
    ) -> None:  # fmt: skip
        self._desk = desk
        self._worked = worked
        self._row = claim.row
        self._claim = claim
        self._interrupts = interrupts
        self._note = note
        self._nursery = nursery
        self._wanted = wanted
        self._grading = wanted.grading

    def run(
        self, asked: Asked, checked: run.Prepared, settings: run.Settings, stage: "Stage", composition: Composition, served: Served,
        presence: Presence, on_output: Callable[[int, bytes], None],
    ) -> None:  # fmt: skip
        """Run the harness on the task. Raises AmemError when it could not start; the task is given back then."""
        self._keeper = Keeper(self._desk.beat, self._claim.lease_s, self._claim.sent_at, lambda why: self._interrupts.strike())
        self._keeper.start()
        try:
            self._note(f"{self._row['id']}: {self._row['title']}")
            session = composition.session
            assert session is not None, "it was served the claim"
            session.examined = session.holding
            task = self._desk.asked(self._row, prefetch=self._wanted.prefetch)
            revise = self._grading.revise if self._grading is not None else None
            text = prompt.compose(self._desk.call("t0").text or "", task, fence.mark(), revise, confined=checked.plan.backend.confined)
            self._task = task
            ready = run.prepare(asked._replace(prompt=text, no_handoff=True, session_id=checked.id), settings, checked.door)
            self._settings, self._ready = settings, ready
            self._outcome = Outcome(session=ready.id, label=ready.plan.label)
            self._sitting = sitting = Sitting(
                asked=asked._replace(prompt=text, no_handoff=True), ready=ready, work=composition, served=served, presence=presence,
                outcome=self._outcome, on_output=on_output, began=self._interrupts.attend, finish=self._finish,
            )  # fmt: skip
            self._worked.session = self._outcome
            run.confine(ready, lambda: sitting, settings, stage, self._note, at_home=True)
        except BaseException as error:
            self._keeper.stop()
            with suppress(AmemError):
                self._desk.give_back(why=f"the session could not run: {getattr(error, 'message', error.__class__.__name__)}"[:500])
            raise

    def _finish(self, ended: Ended) -> Ended:
        """The harness has ended: its checks, what the task says now, and giving it back where it is not completed.

        Raises UnavailableError when the ledger stays away: what the harness left is in the record then, and the lease runs out.
        """
        self._desk.patience_s = SETTLE_S
        try:
            return self._concluded(ended)
        except UnavailableError as error:
            self._desk.patience_s = 0.0
            with suppress(AmemError):  # it is written before the ledger is asked
                self._desk.call("handoff", body=self._leftover(ended)["handoff"])
            why = f"{self._row['id']} stays claimed until its lease ends; what was left of it is in the record: {error.message}"
            raise UnavailableError(why, hint=error.hint) from error

    def _concluded(self, ended: Ended) -> Ended:
        worked, id = self._worked, self._row["id"]
        found: Evidence | None = None
        try:
            if self._offered():
                found = self._examined() if self._task.checks else UNASKED
            if self._grading is not None and _holds(found):
                worked.grade = self._graded(self._grading)
        finally:
            self._keeper.stop()
        if self._keeper.lost is not None:
            worked.notes.append(f"{id} is no longer this worker's: {self._keeper.lost}")
        elif self._held():
            self._settle(ended, found)
        elif self._outcome.harness_exit:
            worked.notes.append(f"the harness itself ended with {self._outcome.harness_exit}")
        self._desk.give_back(why="the session that held it ended")  # another one that the harness claimed by itself
        now = self._desk.call("task_show", id=id)
        if now.refused:
            return Ended(exits.NO_HANDOFF, "released")
        worked.task = now.data
        mine = now.data.get("fence") == self._row["fence"]
        if now.data["status"] == "completed" and mine:
            worked.outcome = "completed"
            return Ended(0)
        worked.outcome = "blocked" if now.data["status"] == "blocked" else "released"
        return Ended(exits.NO_HANDOFF, worked.outcome)

    def _held(self) -> bool:
        """Whether the session still holds the very claim that it began with."""
        shown = self._desk.call("task_show", id=self._row["id"])
        now = shown.data
        return not shown.refused and now["status"] == "claimed" and (now["fence"], now["session"]) == (
            self._row["fence"], self._row["session"],
        )  # fmt: skip

    def _settle(self, ended: Ended, found: Evidence | None) -> None:
        """Complete the task that the session holds, or give it back, by what was found of it."""
        grade = self._worked.grade
        if found is None:
            self._desk.give_back(**self._leftover(ended))
        elif not _holds(found):
            self._desk.give_back(**_unproven(found))
        elif grade is None or grade.verdict == grading.SATISFIED:
            self._desk.call("task_complete")
        elif grade.verdict == grading.EXHAUSTED:
            self._desk.call("handoff", body=_judged(grade))
            self._desk.call("task_block", on=f"a grader asked for revision in each round: {grade.explanation}"[:500])
        else:
            sentence = f"the grader: {grade.verdict}: {grade.explanation}"[:500]
            failed = grade.verdict == grading.FAILED
            self._desk.give_back(_judged(grade), None if failed else sentence, sentence if failed else None)

    def _graded(self, wanted: Grading) -> Grade:
        """Have what was done judged by another model, and the ledger note the verdict."""
        shown, ready = self._desk.call("task_show", id=self._row["id"]), self._ready
        session = self._sitting.work.session
        assert session is not None, "the session served its harness"
        self._note(f"{self._row['id']}: round {wanted.round} of {wanted.rounds}: {wanted.model} judges it")
        text = prompt.grading(self._task, self._desk.note(shown.data["handoffs"][-1]), fence.mark())
        found = grading.judge(
            wanted, self._sitting.asked, text, self._settings, task=self._row["id"], writer=ready.id, label=session.label,
            stage=self._nursery.stage(), began=self._interrupts.attend, ended=self._ended,
            note=self._note,
        )  # fmt: skip
        with suppress(AmemError):
            self._desk.call("task_graded", verdict=found.verdict, round=wanted.round, grader=wanted.model)
        self._note(f"{self._row['id']}: {found.verdict}")
        return found

    def _offered(self) -> bool:
        """Whether the harness said that the task is done, and its checks have the word."""
        session = self._sitting.work.session
        return session is not None and session.offered and session.task == self._row["id"]

    def _examined(self) -> Evidence:
        """Run the task's checks on the tree as it is now, and have the ledger note what came of them."""
        from amem.launch.snapshot import Store

        commands, ready = tuple(self._row["check"]["commands"]), self._ready
        self._note(f"{self._row['id']}: the harness is done; now its checks: {'; '.join(commands)}")
        try:
            found = evidence.examine(
                commands, run.sealed(ready, self._settings), self._bounded, timeout_s=ready.plan.timeout_s,
                attending=self._attending, ended=self._ended,
            )  # fmt: skip
        except (AmemError, OSError) as error:
            found = Evidence("unchecked", (), f"the checks could not run: {getattr(error, 'message', error)}", "")
        self._worked.check = found.state
        tree = None
        with suppress(OSError):  # a file went while it was read: then nobody can say later whether the tree is the same
            tree = Store(self._settings.root, ready.spec.workdir).digest()
        with suppress(AmemError):  # without it the task does not complete
            self._desk.call("task_checked", state=found.state, tree=tree, exits=list(found.exits))
        return found

    def _bounded(self) -> "Stage":
        """A late stage, within the bounds of the session where the machine has such."""
        stage = self._nursery.stage()
        if run.bound(stage, self._settings, self._ready):
            run.joined(stage, self._settings, self._ready, self._note)
        return stage

    @contextmanager
    def _attending(self, running: "Running") -> "Iterator[None]":
        """While this lasts, Ctrl-C and `amem session stop` end this sandbox."""
        self._interrupts.attend(running)
        with stoppable(running, self._sitting.work, self._sitting.presence):
            yield

    def _ended(self) -> bool:
        return self._interrupts.struck or self._sitting.work.stopped is not None or self._sitting.presence.asked() is not None

    def _leftover(self, ended: Ended) -> dict[str, Any]:
        """What the launcher leaves on a task that its harness did not complete."""
        code = self._outcome.harness_exit
        ending = "a person ended it" if self._interrupts.struck else how(ended, code)
        text = undone(self._ready, self._outcome, ending)
        # The same failure three times running is for a person to look at; a limit or a person's word is none.
        failed = ended.reason == "harness" and code not in ENDED_BY_SIGNAL and not self._interrupts.struck
        sentence = f"{self._ready.plan.harness.name} ended before it was completed: {ending}"
        return {"handoff": text, "why": None if failed else sentence, "blocker": sentence if failed else None}


def _holds(found: Evidence | None) -> bool:
    """Whether a task was said to be done, and nothing that was run says otherwise."""
    return found is not None and found.state in ("verified", UNASKED.state)


def _judged(grade: Grade) -> str:
    """The launcher's handoff: the grader's words as they are."""
    return f"{grade.explanation}\n\nThat is what a grader found ({grade.verdict}). Left by the launcher, not by the writer."


def _unproven(found: Evidence) -> dict[str, Any]:
    """What is left on a task that was said to be done and whose checks do not say so."""
    text = f"It was said to be done, but {found.what}.\n\nLeft by the launcher, not by the agent."
    if found.output:
        text += "\n\nThe end of what the check printed:\n\n" + outbox.fenced(found.output)
    failed = found.state == "failed"
    sentence = f"a check failed: {found.what}"[:500] if failed else found.what[:500]
    return {"handoff": text, "why": None if failed else sentence, "blocker": sentence if failed else None}

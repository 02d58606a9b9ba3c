"""Independent grading: what a harness did is judged by another model, in a confined session of its own that can only look.

The grader sees the task and what was left of it (the handoff, and the tree, read-only); of the memory it sees nothing. Its model differs
from the writer's, which is held by what the egress metered as well as by what was asked for.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from amem.errors import AmemError, UsageError
from amem.launch import run
from amem.launch.attend import Outcome, Sitting
from amem.launch.composition import Composition
from amem.launch.plan import Asked
from amem.launch.presence import Presence
from amem.launch.served import Served
from amem.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from amem.model.label import Label
    from amem.sandbox.child import Stage
    from amem.sandbox.run import Running

ROUNDS = 3
FAILED, INTERRUPTED, SATISFIED, REVISE, EXHAUSTED = "failed", "interrupted", "satisfied", "needs_revision", "max_iterations_reached"


@dataclass(frozen=True, kw_only=True)
class Grading:
    """How work is judged."""

    model: str
    rounds: int = ROUNDS
    round: int = 1
    """Which of them this is."""
    revise: str | None = None
    """What the grader said of the round before, word for word."""


@dataclass(frozen=True, kw_only=True)
class Grade:
    """What came of it: the verdict as the ledger has it, and the grader's words, or why there are none."""

    verdict: str
    explanation: str
    session: str | None = None


def checked(grading: Grading | None, asked: Asked) -> None:
    """Refuse a grader that is not another model than the writer. Raises UsageError."""
    if grading is None:
        return
    if not asked.model:
        raise UsageError("--grade needs --model: a grader must be another model than the writer", hint="amem work --help")
    if asked.backend == "unconfined":
        raise UsageError("--grade needs a sandbox: a grader may only look at the tree", hint="amem work --help")
    if _same(grading.model, asked.model):
        raise UsageError(f"--grade-model {grading.model}: the writer is {asked.model}; a grader must be another model")


def again(grading: Grading | None, grade: Grade | None) -> Grading | None:
    """The next round, where there is to be one."""
    if grading is None or grade is None or grade.verdict != REVISE:
        return None
    return replace(grading, round=grading.round + 1, revise=grade.explanation)


def judge(
    grading: Grading, asked: Asked, text: str, settings: run.Settings, *, task: str, writer: str, label: "Label",
    stage: "Stage", began: Callable[["Running"], None], ended: Callable[[], bool], note: Callable[[str], None],
) -> Grade:  # fmt: skip
    """Have it judged: `text` is the grader's prompt, `writer` the session whose work it is."""
    wanted = asked._replace(
        prompt=text, model=grading.model, label=label, only_shown=True, no_handoff=True, snapshot=False, ports=(), host_ports=(),
        subagents="harness", session_id=None,
    )  # fmt: skip
    try:
        ready = run.prepare(wanted, settings)
        work, presence = Composition(ready, settings, grading=task), Presence(settings.root, ready.id)
        outcome = Outcome(session=ready.id, label=ready.plan.label)
        sitting = Sitting(
            asked=wanted, ready=ready, work=work, served=Served(work.serve), presence=presence, outcome=outcome,
            on_output=lambda stream, data: None, began=began,
        )  # fmt: skip
        try:
            run.confine(ready, lambda: sitting, settings, stage, note)
        finally:
            presence.end()
    except (AmemError, OSError) as error:
        return Grade(verdict=FAILED, explanation=f"the grader could not run: {getattr(error, 'message', error)}")
    if ended():
        return Grade(verdict=INTERRUPTED, explanation="somebody ended it", session=ready.id)
    if both := _models(settings, writer) & _models(settings, ready.id):
        return Grade(verdict=FAILED, explanation=f"writer and grader both used {', '.join(sorted(both))}", session=ready.id)
    found = work.session.verdict if work.session is not None else None
    if found is None:
        why = f"the grader gave no verdict (exit code {outcome.harness_exit})"
        return Grade(verdict=FAILED, explanation=why, session=ready.id)
    last = found.verdict == REVISE and grading.round >= grading.rounds
    return Grade(verdict=EXHAUSTED if last else found.verdict, explanation=found.explanation, session=ready.id)


def _models(settings: run.Settings, session: str) -> set[str]:
    """The models that a session's calls asked for, or that answered them."""
    from amem.egress import reading

    return {row["model"] for row in reading.report(settings.root, ("model",), session=session) if row.get("model")}


def _same(one: str, other: str) -> bool:
    """Whether two names mean one model: the provider before a slash, and the case, say nothing."""
    return os.path.basename(one).casefold() == os.path.basename(other).casefold()

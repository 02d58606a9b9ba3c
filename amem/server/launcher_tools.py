"""What the launcher may call beside the tools of its session. Nobody else sees that these are there."""

from collections.abc import Mapping
from typing import Any, assert_never

from amem.ledger import views
from amem.ledger.reading import Filter
from amem.ledger.task import Status, Task
from amem.memory import outcomes, prefetch
from amem.memory.session import Memory, Session
from amem.model.principal import SYSTEM
from amem.server import standing
from amem.server.replies import Reply, refused
from amem.server.table import Arguments, Tool, objects, text, texts, whole

LAUNCHER = "launcher"
"""In whose name the launcher's own calls are, as its listener tells."""


def _recover(memory: Memory, session: Session, given: Arguments) -> Reply:
    """Give back what sessions held whose launcher, and with it all that ran for them, is dead."""
    over, back = frozenset(given["sessions"]), []
    for task in memory.ledger.list(Filter(domains=(session.domain,), statuses=(Status.CLAIMED,), limit=0)).tasks:
        if task.session in over:
            how: dict[str, Any] = {"by": SYSTEM, "fence": task.fence, "session": task.session}
            if isinstance(memory.ledger.release(task.id, **how, why="its launcher was killed"), Task):
                back.append(task.id)
    return Reply(data={"tasks": back})


def _prefetch(memory: Memory, session: Session, given: Arguments) -> Reply:
    """What the held task's harness is told of the record unasked."""
    task = memory.ledger.show(standing.holding(memory, session, given).task)
    words = f"{task.title}\n{memory.ledger.text(task.domain, task.body) or ''}"
    match prefetch.prefetch(memory, session, words, given.get("without", ())):
        case prefetch.Prefetched(lines=lines, entries=entries):
            return Reply(data={"entries": list(entries), "lines": list(lines)})
        case outcomes.Refused() as no:
            return refused(no)
        case never:
            assert_never(never)


def _checked(memory: Memory, session: Session, given: Arguments) -> Reply:
    """What came of the checks."""
    holding = standing.holding(memory, session, given)
    done = memory.ledger.checked(
        holding.task, by=session.principal, fence=holding.fence, session=session.id, state=given["state"], tree=given.get("tree"),
        exits=tuple(given.get("exits", ())),
    )  # fmt: skip
    return Reply(data=views.shown(standing.answered(done)))


def _graded(memory: Memory, session: Session, given: Arguments) -> Reply:
    """A grader's verdict."""
    holding = standing.holding(memory, session, given)
    claim: dict[str, Any] = {"by": session.principal, "fence": holding.fence}
    done = memory.ledger.graded(holding.task, **claim, verdict=given["verdict"], round=given["round"], grader=given["grader"])
    return Reply(data=views.shown(standing.answered(done)))


def _block(memory: Memory, session: Session, given: Arguments) -> Reply:
    """Leave it to a person: another attempt would end as the last ones did."""
    holding = standing.holding(memory, session, given)
    done = memory.ledger.block(holding.task, by=session.principal, on=given["on"], fence=holding.fence, session=session.id)
    blocked = standing.answered(done)
    standing.let_go(session, holding)
    return Reply(data=views.shown(blocked))


TOOLS: Mapping[str, Tool] = {
    "task_recover": Tool(
        "Give back the tasks of sessions that are dead.",
        objects(("sessions",), sessions=texts("their ids", 10_000, 100)),
        standing.told(_recover),
        reads=False,
    ),
    "task_prefetch": Tool(
        "Summaries of the entries that the held task likely needs.",
        objects((), without=texts("ids of those that are before it already", 500, 100)),
        standing.told(_prefetch),
        reads=True,
    ),
    "task_checked": Tool(
        "Say what came of the held task's checks.",
        objects(
            ("state",),
            state=text("what came of them", enum=["verified", "failed", "unchecked"]),
            tree=text("digest of the tree that they ran on", maxLength=100),
            exits={"type": "array", "items": {"type": "integer"}, "maxItems": 100, "description": "their exit codes, in order"},
        ),
        standing.told(_checked),
        reads=False,
    ),
    "task_graded": Tool(
        "Say what a grader found.",
        objects(
            ("verdict", "round", "grader"),
            verdict=text("the verdict", maxLength=100),
            round=whole("the round", 1, 100),
            grader=text("the model that judged", maxLength=200),
        ),
        standing.told(_graded),
        reads=False,
    ),
    "task_block": Tool(
        "Leave the held task to a person.",
        objects(("on",), on=text("what must change", minLength=1, maxLength=2000)),
        standing.told(_block),
        reads=False,
    ),
}

"""How a session stands to tasks: what it sees of them, what it holds, what it may file; and how a refusal met on the way becomes the reply.

A session names no other session's claim: `id` left out is the task it holds, and the number of the claim is the server's to know.
A task's words are content: reading them raises the session's label, and what a session files carries that label on.
"""

from collections.abc import Callable, Iterable, Sequence

from amem.errors import NotFoundError
from amem.ledger import store, views
from amem.ledger.store import Holding
from amem.ledger.task import Status, Task, known, not_found
from amem.logs.schema import MemoryRead
from amem.memory import outcomes, read
from amem.memory.owner_tasks import QUARANTINE
from amem.memory.session import Memory, Session
from amem.model.clock import stamp
from amem.model.entry import tokens
from amem.model.ids import domain_of
from amem.model.label import Label, highest
from amem.policy.scan import scan
from amem.server.replies import Reply, refusal, refused
from amem.server.table import Arguments
from amem.typed import Any, TypeVar

T = TypeVar("T")

NEVER_FILED = frozenset({"secret", "hidden", "payload"})
"""Findings in a task's words that no task may have. Words that instruct are what a task is made of: those wait for a person's admission."""
WAITS = "(its words wait for the owner's admission)"


class No(Exception):
    """A refusal met on the way; `told` makes it the tool's reply."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply


def told(run: Callable[[Memory, Session, Arguments], Reply]) -> Callable[[Memory, Session, Arguments], Reply]:
    """A tool's function that replies where it met a refusal on the way, or named a task that is not there."""

    def tool(memory: Memory, session: Session, given: Arguments) -> Reply:
        try:
            return run(memory, session, given)
        except No as no:
            return no.reply
        except NotFoundError as error:
            return refusal("not_found", error.message, "task_list")

    return tool


def answered(answer: T | store.Refused, hint: str | None = None) -> T:
    """The ledger's answer, or its refusal as the tool's. The ledger's own hints are commands of people; a tool says its own."""
    if isinstance(answer, store.Refused):
        own = {store.Why.STALE: "stop here: the claim is over", store.Why.CONFLICT: "task_show"}
        raise No(refusal(answer.code.value, answer.reason, hint or own.get(answer.code)))
    return answer


def visible(memory: Memory, session: Session, id: str) -> Task:
    """A task the session may read. Raises NotFoundError in the same words for one of another domain, over its label, or not there."""
    found = memory.ledger.tasks([id]).get(id) if domain_of(known(id)) == session.domain else None
    if found is None or label_of(memory, found).exceeds(readable(memory, session)):
        raise not_found(id)
    return found


def withheld(session: Session, task: Task) -> bool:
    """Say whether a task's body quotes what is in the quarantine, of which no session is served a word."""
    return (task.origin or "").startswith(QUARANTINE) and not session.is_owner


def shown(session: Session, task: Task, body: str = "") -> dict[str, Any]:
    """A task as others are shown it: words that instruct and that nobody admitted are kept back, like a held write's."""
    shown = views.shown(task)
    if task.status is not Status.PROPOSED or session.is_owner or task.origin == f"session:{session.id}":
        return shown
    if not scan("\n".join((task.title, *task.check, body))):
        return shown
    return {name: value for name, value in shown.items() if name != "check"} | {"title": WAITS}


def readable(memory: Memory, session: Session) -> Label:
    """The highest label that the session may read. Raises No where it may read nothing."""
    filter = read.reader(memory, session)
    if isinstance(filter, outcomes.Refused):
        raise No(refused(filter))
    return filter.max_label


def over(memory: Memory, session: Session, task: Task) -> str | None:
    """Why a session may not take a task for its label: it could not read it, or its model could not be sent it."""
    label = label_of(memory, task)
    if label.exceeds(readable(memory, session)):
        return f"{session.principal} may not read what is {label}"
    if session.ceiling is not None and label.exceeds(session.ceiling):
        return f"what is {label} may not be sent to the model of this session (up to {session.ceiling})"
    return None


def labels_over(memory: Memory, session: Session, most: Label) -> tuple[str, ...]:
    """The labels above one as a filter of tasks names them: an empty one where a task that was filed without has such a label."""
    return (*(label.value for label in Label if label.exceeds(most)), *([""] if _default(memory, session.domain).exceeds(most) else []))


def served(memory: Memory, session: Session, tool: str, tasks: Sequence[Task], words: str) -> None:
    """Raise the label by what is about to be served, and log the read. Raises when either cannot be kept."""
    label = session.raise_label(highest(label_of(memory, task) for task in tasks))
    memory.append(
        MemoryRead(
            at=stamp(memory.clock()), session=session.id, domain=session.domain, principal=session.principal, tool=tool,
            entries=tuple(task.id for task in tasks), tokens=tokens(words), label=label, task=session.task,
        )
    )  # fmt: skip


def _default(memory: Memory, name: str) -> Label:
    """How a domain classifies what nobody did."""
    domain = memory.grants.domains.get(name)
    return domain.default if domain else Label.RESTRICTED


def label_of(memory: Memory, task: Task) -> Label:
    """How a task's words are classified: as it was filed, else as its domain classifies what nobody did."""
    return Label(task.label) if task.label is not None else _default(memory, task.domain)


def carried(memory: Memory, session: Session) -> Label:
    """The label of what a session files: what it has read may be in it."""
    return highest((session.label,), floor=_default(memory, session.domain))


def may_say(memory: Memory, session: Session, task: Task, instead: str) -> None:
    """Raise No where words on a task itself, which carry no label of their own, could quote what the session has read above the task's."""
    label = label_of(memory, task)
    if session.label.exceeds(label):
        raise No(refusal("over_label", f"{task.id} is {label} and this session {session.label}: {instead}"))


def capabilities(memory: Memory, session: Session) -> tuple[str, ...]:
    """What the session's principal is granted, of what tasks require."""
    grant = memory.grants.grant(session.domain, session.principal)
    return grant.capabilities if grant else ()


def examined(words: Iterable[str]) -> bool:
    """Whether there is nothing in a task's words that a person should see first. Raises No for what no task may hold."""
    findings = scan("\n".join(words))
    if bad := [one for one in findings if one.cls in NEVER_FILED]:
        told = [{"class": one.cls, "excerpt": one.excerpt} for one in bad]
        raise No(refusal("refused", "a task holds no credentials, hidden characters or encoded stretches", findings=told))
    return not findings


def still_held(memory: Memory, session: Session) -> Task | None:
    """The task that the session's claim still holds."""
    holding = session.holding
    if holding is None:
        return None
    task = memory.ledger.show(holding.task)
    return task if task.held(holding.fence, memory.ledger.now_ms(), session.id) else None


def holding(memory: Memory, session: Session, given: Arguments) -> Holding:
    """The claim to act under. Another number than the session's own is for the ledger to refuse."""
    mine, id, number = session.holding, given.get("id"), given.get("fence")
    if mine is not None and id in (None, mine.task):
        return mine if number is None else mine._replace(fence=number)
    if id is None:
        raise No(refusal("conflict", "this session holds no task", "task_claim"))
    task = visible(memory, session, id)
    if number is None:
        raise No(refusal("conflict", f"this session does not hold {task.id}", "task_claim"))
    return Holding(task.id, number, session.id)


def let_go(session: Session, holding: Holding) -> None:
    """Forget a claim that is over, where it is the session's own."""
    if session.task == holding.task:
        session.hold(None, None)

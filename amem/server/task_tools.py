"""The task tools: the ledger as a session sees it, under its domain, its label and its claim.

A session names no other session's claim: `id` left out is the task it holds, and the number of the claim is the server's to know.
A task's words are content: reading them raises the session's label, and what a session files carries that label on. Nothing
here rescores, admits or invalidates; whether what a session files starts admitted is the policy's word.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, assert_never

from amem.egress import meter
from amem.errors import NotFoundError
from amem.ledger import store, views
from amem.ledger.draft import DEFAULT_PRIORITY, Draft
from amem.ledger.reading import Filter
from amem.ledger.store import FannedOut, Holding, Spawn
from amem.ledger.task import OPEN, Status, Task, known, not_found
from amem.logs.schema import MemoryRead
from amem.memory import fence, handoff, outcomes, prefetch, read
from amem.memory.admission import admitted
from amem.memory.owner_tasks import QUARANTINE
from amem.memory.session import Memory, Session
from amem.model.clock import stamp
from amem.model.entry import tokens
from amem.model.ids import domain_of
from amem.model.label import Label, highest, lowest
from amem.model.principal import SYSTEM
from amem.policy.scan import scan
from amem.server.replies import Reply, held, refusal, refused
from amem.server.table import LEFT_BY, OFFSET, Arguments, Tool, objects, present, text, texts, whole

NEVER_FILED = frozenset({"secret", "hidden", "payload"})
"""Findings in a task's words that no task may have. Words that instruct are what a task is made of: those wait for a person's admission."""
LAUNCHER = "launcher"
"""In whose name the launcher's own calls are, as its listener tells."""
PENDING = "it is examined once you have ended, and completed if that finds it done. End now."
UNCHECKED = "task_release with a handoff: the checks of a task run under `amem work`, once its harness has ended"
WAITS = "(its words wait for the owner's admission)"
CANDIDATES = 50
"""How many tasks are looked at for one whose label fits, when the first one's does not."""
FIRST = 8
"""Tasks by rank that are looked at before a claim: it costs a third of it, however many tasks there are."""


class _No(Exception):
    """A refusal met on the way; `_told` makes it the tool's reply."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply


def _told(run: Callable[[Memory, Session, Arguments], Reply]) -> Callable[[Memory, Session, Arguments], Reply]:
    def tool(memory: Memory, session: Session, given: Arguments) -> Reply:
        try:
            return run(memory, session, given)
        except _No as no:
            return no.reply
        except NotFoundError as error:
            return refusal("not_found", error.message, "task_list")

    return tool


def _create(memory: Memory, session: Session, given: Arguments) -> Reply:
    body = given.get("body", "")
    needs = tuple(given.get("depends_on", ()))
    for one in needs:
        _visible(memory, session, one)
    draft = Draft(
        domain=session.domain, title=given["title"], body=body, priority=given["priority"], requires=tuple(given.get("requires", ())),
        depends_on=needs, check=tuple(given.get("check", ())), label=_carried(memory, session),
    )  # fmt: skip
    plain = _examined(memory, session, (draft.title, body, *draft.check))
    filed = _done(
        memory.ledger.create(
            draft, by=session.principal, under=session.holding, session=session.id,
            admit_own=plain and admitted(memory, session, draft.requires), capabilities=_capabilities(memory, session),
        )
    )  # fmt: skip
    return Reply(data=views.shown(filed.task))


def _list(memory: Memory, session: Session, given: Arguments) -> Reply:
    limit = _readable(memory, session)
    page = memory.ledger.list(
        Filter(
            domains=(session.domain,),
            statuses=(Status(given["status"]),) if "status" in given else OPEN,
            origin=given.get("origin"),
            session=session.id if given["mine"] else None,
            without=_labels(memory, session, lambda label: label.exceeds(limit)),
            limit=given["limit"],
            offset=given["offset"],
        )
    )
    _served(memory, session, "task_list", page.tasks, "".join(task.title for task in page.tasks))
    more = given["offset"] + len(page.tasks) < page.total
    return Reply(data={"tasks": [_shown(session, task) for task in page.tasks], "total": page.total, "more": more})


def _show(memory: Memory, session: Session, given: Arguments) -> Reply:
    task = _visible(memory, session, given["id"])
    text = memory.ledger.text(task.domain, task.body) or ""
    shown = _shown(session, task, text)
    body = "" if _withheld(session, task) or WAITS in shown["title"] else text
    _served(memory, session, "task_show", (task,), task.title + body)
    return Reply(data={**shown, "handoffs": list(task.handoffs)}, text=fence.fenced(body, fence.mark()) if body else None)


def _claim(memory: Memory, session: Session, given: Arguments) -> Reply:
    ledger, id = memory.ledger, given.get("id")
    if (before := _still_held(memory, session)) is not None:
        if id in (None, before.id):
            return _claimed(memory, session, before)
        return refusal("conflict", f"this session holds {before.id}: complete or release it first", "task_complete", id=before.id)
    granted = _capabilities(memory, session)
    capabilities = tuple(given.get("capabilities", granted))
    if beyond := sorted({*capabilities} - {*granted}):
        return refusal("refused", f"{session.principal} is not granted {', '.join(beyond)}", "leave capabilities out")
    how: dict[str, Any] = {
        "by": session.principal, "session": session.id, "capabilities": capabilities, "lease_ms": given["lease_s"] * 1000,
    }  # fmt: skip
    if id is not None:
        task = _visible(memory, session, id)
        if (over := _over(memory, session, task)) is not None:
            return refusal("over_label", over)
        return _claimed(memory, session, _done(ledger.claim_one(task.id, **how)))
    # A task over its label is no session's to touch: to claim it and give it back would be two events for each that asks.
    found = _fitting(memory, session, how) if _over_first(memory, session) else ledger.claim(session.domain, **how)
    if found is not None and (over := _over(memory, session, found)) is not None:
        # It was filed in this moment, or comes after many that this session cannot do.
        ledger.release(found.id, by=session.principal, fence=found.fence, session=session.id, why=over)
        found = _fitting(memory, session, how)
    return Reply(data={"none": True}) if found is None else _claimed(memory, session, found)


def _heartbeat(memory: Memory, session: Session, given: Arguments) -> Reply:
    holding = _holding(memory, session, given)
    task = _done(memory.ledger.heartbeat(holding.task, by=session.principal, fence=holding.fence, session=session.id))
    return Reply(data=present({"lease_ends_at": views.shown(task).get("lease_ends_at")}))


def _complete(memory: Memory, session: Session, given: Arguments) -> Reply:
    holding = _holding(memory, session, given)
    if "handoff" in given:
        _leave(memory, session, given)
    task = memory.ledger.show(holding.task)
    settles = given[LEFT_BY] == LAUNCHER
    if not settles and _offers(memory, session, holding, task):
        session.offered = True
        return Reply(data={**views.shown(task), "pending": PENDING})
    check = bool(task.check) and (settles or memory.grants.gates.complete_requires == "check")
    hint = UNCHECKED if check else "task_complete with `handoff`: what was done, what is open"
    claim: dict[str, Any] = {"by": session.principal, "fence": holding.fence, "session": session.id}
    done = _done(memory.ledger.complete(holding.task, **claim, check=check), hint)
    _let_go(session, holding)
    return Reply(data=views.shown(done))


def _offers(memory: Memory, session: Session, holding: Holding, task: Task) -> bool:
    """Whether this is all that a completion needs but for what the launcher finds: its claim, which holds and has left a handoff."""
    if holding != session.examined or not (task.check or session.graded):
        return False
    return _still_held(memory, session) is not None and task.handed_off == holding.fence


def _graded(memory: Memory, session: Session, given: Arguments) -> Reply:
    """The launcher's: a grader's verdict."""
    holding = _holding(memory, session, given)
    claim: dict[str, Any] = {"by": session.principal, "fence": holding.fence}
    done = memory.ledger.graded(holding.task, **claim, verdict=given["verdict"], round=given["round"], grader=given["grader"])
    return Reply(data=views.shown(_done(done)))


def _block(memory: Memory, session: Session, given: Arguments) -> Reply:
    """The launcher's: another attempt would end as the last ones did."""
    holding = _holding(memory, session, given)
    done = _done(memory.ledger.block(holding.task, by=session.principal, on=given["on"], fence=holding.fence, session=session.id))
    _let_go(session, holding)
    return Reply(data=views.shown(done))


def _recover(memory: Memory, session: Session, given: Arguments) -> Reply:
    """The launcher's: give back what sessions held whose launcher, and with it all that ran for them, is dead."""
    over, back = frozenset(given["sessions"]), []
    for task in memory.ledger.list(Filter(domains=(session.domain,), statuses=(Status.CLAIMED,), limit=0)).tasks:
        if task.session in over:
            how: dict[str, Any] = {"by": SYSTEM, "fence": task.fence, "session": task.session}
            if isinstance(memory.ledger.release(task.id, **how, why="its launcher was killed"), Task):
                back.append(task.id)
    return Reply(data={"tasks": back})


def _prefetch(memory: Memory, session: Session, given: Arguments) -> Reply:
    """The launcher's: what the held task's harness is told of the record unasked."""
    task = memory.ledger.show(_holding(memory, session, given).task)
    words = f"{task.title}\n{memory.ledger.text(task.domain, task.body) or ''}"
    match prefetch.prefetch(memory, session, words, given.get("without", ())):
        case prefetch.Prefetched(lines=lines, entries=entries):
            return Reply(data={"entries": list(entries), "lines": list(lines)})
        case outcomes.Refused() as no:
            return refused(no)
        case never:
            assert_never(never)


def _checked(memory: Memory, session: Session, given: Arguments) -> Reply:
    """The launcher's: what came of the checks."""
    holding = _holding(memory, session, given)
    done = memory.ledger.checked(
        holding.task, by=session.principal, fence=holding.fence, session=session.id, state=given["state"], tree=given.get("tree"),
        exits=tuple(given.get("exits", ())),
    )  # fmt: skip
    return Reply(data=views.shown(_done(done)))


def _release(memory: Memory, session: Session, given: Arguments) -> Reply:
    holding = _holding(memory, session, given)
    why, blocker = given.get("why"), given.get("blocker")
    task = memory.ledger.show(holding.task)
    # Others see the reason on the task itself; a handoff is an entry and carries the session's label.
    if (why or blocker) and session.label.exceeds(_label(memory, task)):
        return refusal("over_label", f"{task.id} is {_label(memory, task)} and this session {session.label}: say why in `handoff` instead")
    if not _examined(memory, session, filter(None, (why, blocker))):  # shown beside the task's state, in no fence
        return refusal("refused", "the reason of a release instructs no reader: say it in `handoff`, where the owner judges it", "handoff")
    if "handoff" in given:
        _leave(memory, session, given)
    claim: dict[str, Any] = {"by": session.principal, "fence": holding.fence, "session": session.id}
    if (over := _over_budget(memory, task)) is not None:
        done = _done(memory.ledger.block(task.id, on=over, **claim))
    else:
        done = _done(memory.ledger.release(task.id, why=why, blocker=blocker, **claim))
    _let_go(session, holding)
    return Reply(data=views.shown(done))


def _post(memory: Memory, session: Session, given: Arguments) -> Reply:
    task = _visible(memory, session, given["id"])
    if session.label.exceeds(_label(memory, task)):
        return refusal("over_label", f"{task.id} is {_label(memory, task)} and this session {session.label}: leave a handoff instead")
    _examined(memory, session, (given["text"],))
    return Reply(data={"id": memory.ledger.post(task.id, by=session.principal, text=given["text"]).id})


def _fan_out(memory: Memory, session: Session, given: Arguments) -> Reply:
    spawns = [Spawn(part["title"], part["body"], _maybe(part.get("requires"))) for part in given["tasks"]]
    match fan_out(memory, session, spawns, given.get("continuation")):
        case FannedOut(children=children, continuation=then):
            rows = [
                present({"id": one.task.id, "existed": one.existed, "handoff": one.task.handoffs[-1] if one.task.handoffs else None})
                for one in children
            ]
            return Reply(data=present({"children": rows, "continuation": then.id if then else None}))
        case Reply() as no:
            return no
        case never:
            assert_never(never)


def fan_out(memory: Memory, session: Session, spawns: Sequence[Spawn], continuation: str | None = None) -> FannedOut | Reply:
    """File parts of the held task, or, under none, proposed tasks; or the refusal. Raises UsageError and what the ledger raises."""
    words = [word for one in spawns for word in (one.title, one.body)]
    try:
        plain = _examined(memory, session, [*words, *([continuation] if continuation else [])])
        held = memory.ledger.show(session.holding.task).requires if session.holding else ()
        asked = {requires: plain and admitted(memory, session, requires) for requires in {held, *(one.needs(held) for one in spawns)}}
        return _fanned_out(
            memory.ledger.fan_out(
                [one._replace(admit=asked[one.needs(held)]) for one in spawns], domain=session.domain, by=session.principal,
                under=session.holding, session=session.id,
                continuation=continuation, admit_own=asked[held],
                capabilities=_capabilities(memory, session), label=_carried(memory, session),
            )
        )  # fmt: skip
    except _No as no:
        return no.reply


def _fanned_out(answer: "FannedOut | store.Refused") -> FannedOut:
    found: FannedOut = _done(answer)
    return found


# ---- what holds for every tool ---------------------------------------------------------


def _done(answer: Any, hint: str | None = None) -> Any:
    """The ledger's answer, or its refusal as the tool's. The ledger's own hints are commands of people; a tool says its own."""
    if isinstance(answer, store.Refused):
        own = {store.Why.STALE: "stop here: the claim is over", store.Why.CONFLICT: "task_show"}
        raise _No(refusal(answer.code.value, answer.reason, hint or own.get(answer.code)))
    return answer


def _visible(memory: Memory, session: Session, id: str) -> Task:
    """A task the session may read. Raises NotFoundError in the same words for one of another domain, over its label, or not there."""
    found = memory.ledger.tasks([id]).get(id) if domain_of(known(id)) == session.domain else None
    if found is None or _label(memory, found).exceeds(_readable(memory, session)):
        raise not_found(id)
    return found


def _withheld(session: Session, task: Task) -> bool:
    """Say whether a task's body quotes what is in the quarantine, of which no session is served a word."""
    return (task.origin or "").startswith(QUARANTINE) and not session.is_owner


def _shown(session: Session, task: Task, body: str = "") -> dict[str, Any]:
    """A task as others are shown it: words that instruct and that nobody admitted are kept back, like a held write's."""
    shown = views.shown(task)
    if task.status is not Status.PROPOSED or session.is_owner or task.origin == f"session:{session.id}":
        return shown
    if not scan("\n".join((task.title, *task.check, body))):
        return shown
    return {name: value for name, value in shown.items() if name != "check"} | {"title": WAITS}


def _readable(memory: Memory, session: Session) -> Label:
    filter = read.reader(memory, session)
    if isinstance(filter, outcomes.Refused):
        raise _No(refused(filter))
    return filter.max_label


def _over(memory: Memory, session: Session, task: Task) -> str | None:
    """Why a session may not take a task for its label: it could not read it, or its model could not be sent it."""
    label = _label(memory, task)
    if label.exceeds(_readable(memory, session)):
        return f"{session.principal} may not read what is {label}"
    if session.ceiling is not None and label.exceeds(session.ceiling):
        return f"what is {label} may not be sent to the model of this session (up to {session.ceiling})"
    return None


def _labels(memory: Memory, session: Session, chosen: Callable[[Label], bool]) -> tuple[str, ...]:
    """Labels as a filter of tasks names them, an empty one where it is what a task has that was filed without."""
    return (*(label.value for label in Label if chosen(label)), *([""] if chosen(_usual(memory, session)) else []))


def _over_first(memory: Memory, session: Session) -> bool:
    """Say whether one of the first tasks by rank has a label over the session's."""
    first = Filter((session.domain,), statuses=(Status.ADMITTED,), limit=FIRST, count_to=1)
    return any(_over(memory, session, task) is not None for task in memory.ledger.list(first).tasks)


def _fitting(memory: Memory, session: Session, how: Mapping[str, Any]) -> Task | None:
    """The first task by rank that can be claimed and whose label fits, where the very first one's did not."""
    readable = _readable(memory, session)
    most = readable if session.ceiling is None else lowest(readable, session.ceiling)
    over = _labels(memory, session, lambda label: label.exceeds(most))
    for task in memory.ledger.list(Filter((session.domain,), statuses=(Status.ADMITTED,), without=over, limit=CANDIDATES)).tasks:
        if _over(memory, session, task) is None and not task.open_needs and task.allows(how["capabilities"]):
            taken = memory.ledger.claim_one(task.id, **how)
            if isinstance(taken, Task):
                return taken
    return None


def _claimed(memory: Memory, session: Session, task: Task) -> Reply:
    session.hold(task.id, task.fence)
    _served(memory, session, "task_claim", (task,), task.title)
    return Reply(data=views.shown(task))


def _still_held(memory: Memory, session: Session) -> Task | None:
    """The task that the session's claim still holds."""
    holding = session.holding
    if holding is None:
        return None
    task = memory.ledger.show(holding.task)
    return task if task.held(holding.fence, memory.ledger.now_ms(), session.id) else None


def _holding(memory: Memory, session: Session, given: Arguments) -> Holding:
    """The claim to act under. Another number than the session's own is for the ledger to refuse."""
    mine, id, number = session.holding, given.get("id"), given.get("fence")
    if mine is not None and id in (None, mine.task):
        return mine if number is None else mine._replace(fence=number)
    if id is None:
        raise _No(refusal("conflict", "this session holds no task", "task_claim"))
    task = _visible(memory, session, id)
    if number is None:
        raise _No(refusal("conflict", f"this session does not hold {task.id}", "task_claim"))
    return Holding(task.id, number, session.id)


def _over_budget(memory: Memory, task: Task) -> str | None:
    """Why a task that goes back undone is not for the next worker: what it may cost is spent."""
    if task.budget_tokens is None:
        return None
    used = meter.spent(memory.root, task.id)
    return f"its budget of {task.budget_tokens} tokens is spent: {used} were used" if used >= task.budget_tokens else None


def _let_go(session: Session, holding: Holding) -> None:
    if session.task == holding.task:
        session.hold(None, None)


def _leave(memory: Memory, session: Session, given: Arguments) -> None:
    match handoff.handoff(memory, session, given["handoff"], left_by=given[LEFT_BY]):
        case outcomes.Written():
            return
        case outcomes.Held() as waiting:
            raise _No(held(waiting))
        case outcomes.Refused() as no:
            raise _No(refused(no))
        case never:
            assert_never(never)


def _examined(memory: Memory, session: Session, words: Iterable[str]) -> bool:
    """Whether there is nothing in a task's words that a person should see first. Raises _No for what no task may hold."""
    findings = scan("\n".join(words))
    if bad := [one for one in findings if one.cls in NEVER_FILED]:
        told = [{"class": one.cls, "excerpt": one.excerpt} for one in bad]
        raise _No(refusal("refused", "a task holds no credentials, hidden characters or encoded stretches", findings=told))
    return not findings


def _served(memory: Memory, session: Session, tool: str, tasks: Sequence[Task], words: str) -> None:
    """Raise the label by what is about to be served, and log the read. Raises when either cannot be kept."""
    label = session.raise_label(highest(_label(memory, task) for task in tasks))
    memory.append(
        MemoryRead(
            at=stamp(memory.clock()), session=session.id, domain=session.domain, principal=session.principal, tool=tool,
            entries=tuple(task.id for task in tasks), tokens=tokens(words), label=label, task=session.task,
        )
    )  # fmt: skip


def _usual(memory: Memory, session: Session) -> Label:
    domain = memory.grants.domains.get(session.domain)
    return domain.default if domain else Label.RESTRICTED


def _label(memory: Memory, task: Task) -> Label:
    """How a task's words are classified: as it was filed, else as the domain classifies what nobody did."""
    if task.label is not None:
        return Label(task.label)
    domain = memory.grants.domains.get(task.domain)
    return domain.default if domain else Label.RESTRICTED


def _carried(memory: Memory, session: Session) -> Label:
    """The label of what a session files: what it has read may be in it."""
    return highest((session.label,), floor=_usual(memory, session))


def _capabilities(memory: Memory, session: Session) -> tuple[str, ...]:
    grant = memory.grants.grant(session.domain, session.principal)
    return grant.capabilities if grant else ()


def _maybe(words: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(words)


_ID = text("task-…", minLength=1, maxLength=100)
_MINE = text("the task; default: the one you hold", minLength=1, maxLength=100)
_NUMBER = whole("the number of your claim; default: the server knows it", 1, 1 << 40)
_REQUIRES = texts("what a claimer must hold: code, human, irreversible, …", 16, 64)
_PART = objects(
    ("title", "body"),
    title=text("one line", minLength=1, maxLength=200),
    body=text("all that is needed to do it: nobody sees this conversation", minLength=1),
    requires=texts("default: as the task you hold", 16, 64),
)

TOOLS: Mapping[str, Tool] = {
    "task_create": Tool(
        "File a task for somebody else. Under a task you hold it becomes a part of that one.",
        objects(
            ("title",),
            title=text("one line that says what is to be done", minLength=1, maxLength=200),
            body=text("Markdown: what, why, and how to tell that it is done"),
            priority=whole("higher first", 0, 9, default=DEFAULT_PRIORITY),
            requires=_REQUIRES,
            depends_on=texts("ids of tasks that must be completed first"),
            check=texts("shell commands that must succeed before it counts as done", 20),
        ),
        _told(_create),
        reads=False,
    ),
    "task_list": Tool(
        "List tasks by rank, without their bodies. Default: the open ones.",
        objects(
            (),
            status=text("only these", enum=[status.value for status in Status]),
            origin=text("only what was filed from there: a prefix, such as task:task-…", maxLength=200),
            mine={"type": "boolean", "default": False, "description": "only what this session holds"},
            limit=whole("how many", 1, 100, default=20),
            offset=OFFSET,
        ),
        _told(_list),
        reads=True,
    ),
    "task_show": Tool(
        "Open one task: its state, its body as data, and the ids of the handoffs left on it (open those with `get`).",
        objects(("id",), id=_ID),
        _told(_show),
        reads=True,
    ),
    "task_claim": Tool(
        "Take a task: the one named, else the best you may take. Yours until the lease ends; `task_heartbeat` renews it.",
        objects(
            (),
            id=text("default: the first by rank", minLength=1, maxLength=100),
            capabilities=texts("act as one who holds only these; default: all you are granted", 16, 64),
            lease_s=whole("seconds until it falls back into the pool", 1, 86_400, default=600),
        ),
        _told(_claim),
        reads=False,
    ),
    "task_heartbeat": Tool(
        "Renew the lease of a task you claimed yourself. On `stale_fence` stop: it is no longer yours.",
        objects((), id=_MINE, fence=_NUMBER),
        _told(_heartbeat),
        reads=False,
    ),
    "task_complete": Tool(
        "Say that the task is done, with a handoff: what was done and why, what was checked, what is open.",
        objects((), id=_MINE, handoff=text("Markdown; needed unless you left a `handoff` since you took it", minLength=1), fence=_NUMBER),
        _told(_complete),
        reads=False,
        leaves=True,
    ),
    "task_release": Tool(
        "Give the task back undone. Name a `blocker` when something outside must change first.",
        objects(
            (),
            id=_MINE,
            handoff=text("Markdown: where it stands, for the next one", minLength=1),
            why=text("one sentence", maxLength=2000),
            blocker=text("what is missing, in the same words as before if it is the same", maxLength=2000),
            fence=_NUMBER,
        ),
        _told(_release),
        reads=False,
        leaves=True,
    ),
    "task_post": Tool(
        "Add a remark to a task.",
        objects(("id", "text"), id=_ID, text=text("the remark", minLength=1)),
        _told(_post),
        reads=False,
    ),
    "fan_out": Tool(
        "Split the task you hold: others do the parts, and a continuation resumes it with their handoffs. Then complete with your own "
        "handoff and end; do not wait. Without a held task the parts are proposed to the owner.",
        objects(
            ("tasks",),
            tasks={"type": "array", "items": _PART, "maxItems": 99, "description": "the parts, each on its own"},
            continuation=text("what is to be done once all parts are"),
        ),
        _told(_fan_out),
        reads=False,
    ),
}  # fmt: skip

LAUNCHERS: Mapping[str, Tool] = {
    "task_recover": Tool(
        "Give back the tasks of sessions that are dead.",
        objects(("sessions",), sessions=texts("their ids", 10_000, 100)),
        _told(_recover),
        reads=False,
    ),
    "task_prefetch": Tool(
        "Summaries of the entries that the held task likely needs.",
        objects((), without=texts("ids of those that are before it already", 500, 100)),
        _told(_prefetch),
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
        _told(_checked),
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
        _told(_graded),
        reads=False,
    ),
    "task_block": Tool(
        "Leave the held task to a person.",
        objects(("on",), on=text("what must change", minLength=1, maxLength=2000)),
        _told(_block),
        reads=False,
    ),
}
"""What the launcher may call beside the tools of its session; nobody else sees that they are there."""

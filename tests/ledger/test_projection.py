"""The projection: whole values, each event."""

from amem.ledger import events as ev
from amem.ledger.projection import State, project, replay, touched
from amem.ledger.task import Status, Task

A, B, C = "task-me-aaaaaaaa", "task-me-bbbbbbbb", "task-me-cccccccc"
ME, BOT = "human:asf:you", "agent:codex"


def created(task: str, at_ms: int = 1, **more: object) -> ev.Created:
    return ev.Created(task=task, by=ME, at_ms=at_ms, **{"title": "T", "priority": 3, "rank": 3.0, "chain": task, **more})


PLAIN = Task(
    id=A, title="T", status=Status.PROPOSED, priority=3, rank=3.0, requires=(), origin=None, creator=ME, parent=None, chain=A, twin=None,
    open_needs=0, dependents=0, fence=0, holder=None, session=None, lease_ms=0, lease_ends_ms=None, handed_off=0, handoffs=(), review=None,
    reason=None, created_ms=1, changed_ms=1, closed_ms=None, depends_on=(), body=None,
)  # fmt: skip
CLAIMED = PLAIN._replace(status=Status.CLAIMED, fence=1, holder=BOT, session="ses-00000001", lease_ms=10, lease_ends_ms=13, changed_ms=3)


def after(*events: ev.Event, task: str = A) -> Task:
    return replay(events).tasks[task]


CLAIM = (
    created(A), ev.Admitted(task=A, by=ME, at_ms=2), ev.Claimed(task=A, by=BOT, at_ms=3, fence=1, lease_ms=10, session="ses-00000001"),
)  # fmt: skip


def test_created() -> None:
    assert after(created(A)) == PLAIN


def test_admitted_and_claimed() -> None:
    assert after(*CLAIM[:2]) == PLAIN._replace(status=Status.ADMITTED, changed_ms=2)
    assert after(*CLAIM) == CLAIMED


def test_heartbeat_moves_the_end_of_the_lease() -> None:
    beat = ev.Heartbeat(task=A, by=BOT, at_ms=9, fence=1, lease_ms=20)
    assert after(*CLAIM, beat) == CLAIMED._replace(lease_ms=20, lease_ends_ms=29, changed_ms=9)


def test_released_keeps_the_fence_and_counts_a_blocker() -> None:
    back = ev.Released(task=A, by=BOT, at_ms=5, fence=1, blocker="no key", handoff="mem-me-000000000000")
    assert after(*CLAIM, back) == CLAIMED._replace(
        status=Status.ADMITTED, holder=None, session=None, lease_ends_ms=None, reason="no key", blocker="no key", blocker_runs=1,
        handoffs=("mem-me-000000000000",), handed_off=1, changed_ms=5,
    )  # fmt: skip


def test_completed_frees_what_waits_and_nothing_else() -> None:
    state = replay([created(A), created(B, depends_on=(A,)), created(C)])
    assert (state.tasks[A].dependents, state.tasks[B].open_needs, dict(state.waiting)) == (1, 1, {A: frozenset({B})})
    done = project(state, ev.Completed(task=A, by=ME, at_ms=4, handoff="mem-me-000000000000"))
    assert done.tasks[A].status is Status.COMPLETED
    assert (done.tasks[A].closed_ms, done.tasks[A].handoffs) == (4, ("mem-me-000000000000",))
    assert done.tasks[B] == state.tasks[B]._replace(open_needs=0)
    assert done.tasks[C] == state.tasks[C]


def test_project_leaves_the_state_it_was_given_alone() -> None:
    state = replay([created(A), created(B, depends_on=(A,))])
    kept = State(dict(state.tasks), dict(state.waiting))
    project(state, ev.Completed(task=A, by=ME, at_ms=4))
    assert state == kept


def test_created_in_the_place_of_a_closed_task_takes_over_the_open_ones_that_waited() -> None:
    closed = ev.Invalidated(task=A, by=ME, at_ms=5, why="no")
    state = replay([created(A), created(B, depends_on=(A,)), closed, created(C, at_ms=6, replaces=A)])
    assert state.tasks[B].depends_on == (C,)
    assert (state.tasks[A].dependents, state.tasks[B].open_needs, state.tasks[C].dependents) == (0, 1, 1)
    assert state.waiting == {A: frozenset(), C: frozenset({B})}


def test_touched_names_every_task_that_changes() -> None:
    waiting = {A: frozenset({B})}
    assert set(touched(ev.Completed(task=A, by=ME, at_ms=1), waiting)) == {A, B}
    assert set(touched(created(C, depends_on=(B,), replaces=A), waiting)) == {A, B, C}
    assert touched(ev.Admitted(task=A, by=ME, at_ms=1), waiting) == [A]


def test_every_kind_has_a_projection() -> None:
    own = {
        "heartbeat": {"lease_ms": 1}, "claimed": {"lease_ms": 1}, "posted": {"text": "x"},
        "handoff_left": {"handoff": "mem-me-000000000000"},
        "rescored": {"was": 1.0, "rank": 2.0, "why": "w"}, "blocked": {"on": "x"}, "graded": {"verdict": "failed"},
        "checked": {"state": "failed"},
    }  # fmt: skip
    for kind, cls in ev.KINDS.items():
        if kind != "created":
            event = cls(task=A, by=ME, at_ms=9, fence=1, **own.get(kind, {}))
            assert replay([created(A), event]).tasks[A].changed_ms == 9, kind

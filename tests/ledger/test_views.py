"""Why a task cannot be claimed, how its attempts went, what its JSON says."""

import json

from amem.ledger import events as ev
from amem.ledger import views
from amem.ledger.task import ANYTHING, Status
from tests.ledger.test_projection import BOT, CLAIMED, ME, PLAIN, A, B

READY = PLAIN._replace(status=Status.ADMITTED)


def kinds(task: object, needs: dict[str, object] | None = None, capabilities: object = ("code",), at_ms: int = 5) -> list[str]:
    return [one.kind for one in views.blockers(task, needs or {}, capabilities, at_ms)]


def test_ready_task_has_no_blocker() -> None:
    assert kinds(READY) == []
    assert kinds(CLAIMED._replace(lease_ends_ms=5)) == []


def test_each_blocker_is_named_with_the_command_that_helps() -> None:
    assert kinds(PLAIN) == ["admission"]
    assert kinds(CLAIMED) == ["lease"]
    assert kinds(READY._replace(status=Status.BLOCKED, blocked_on="no key")) == ["blocked"]
    assert kinds(READY._replace(requires=("gpu", "human"))) == ["human", "capability"]
    assert kinds(READY._replace(requires=("gpu", "human")), capabilities=ANYTHING) == []
    assert kinds(READY._replace(status=Status.COMPLETED)) == ["closed"]
    waiting = READY._replace(depends_on=(B,), open_needs=1)
    assert kinds(waiting, {B: PLAIN._replace(id=B)}) == ["dependency"]
    assert kinds(waiting, {B: PLAIN._replace(id=B, status=Status.COMPLETED)}) == []
    (blocker,) = views.blockers(waiting, {B: PLAIN._replace(id=B, status=Status.INVALIDATED)}, ("code",), 5)
    assert blocker == views.Blocker("dependency", f"{B} (T) was invalidated", f"amem task retry {B}")


def test_attempts_come_from_the_events() -> None:
    def claim(fence: int, at_ms: int) -> ev.Event:
        return ev.Claimed(task=A, by=BOT, at_ms=at_ms, fence=fence, lease_ms=10, session=f"ses-0000000{fence}")

    found = views.attempts(
        [
            claim(1, 10), ev.Heartbeat(task=A, by=BOT, at_ms=15, fence=1, lease_ms=10),
            ev.Released(task=A, by="system:amem", at_ms=30, fence=1, why="the lease ended"),
            claim(2, 40), ev.Released(task=A, by=BOT, at_ms=45, fence=2, blocker="no key", handoff="mem-me-000000000001"),
            claim(3, 50), ev.HandoffLeft(task=A, by=BOT, at_ms=55, fence=3, handoff="mem-me-000000000002"),
            ev.Completed(task=A, by=BOT, at_ms=60, fence=3), ev.Checked(task=A, by=ME, at_ms=70, fence=3, state="verified"),
            ev.Graded(task=A, by=ME, at_ms=80, fence=3, verdict="satisfied"),
        ]
    )  # fmt: skip
    assert [(one.outcome, one.ended_ms, one.handoff, one.heartbeats) for one in found] == [
        ("lease ended", 30, None, 1), ("released", 45, "mem-me-000000000001", 0), ("completed", 60, "mem-me-000000000002", 0),
    ]  # fmt: skip
    assert (found[2].check, found[2].grade, found[2].session) == ("verified", "satisfied", "ses-00000003")


def test_json_of_a_task_leaves_out_what_there_is_nothing_to_say_about() -> None:
    assert views.shown(CLAIMED._replace(rank=3.5), "do it") == {
        "id": A, "domain": "dom-me", "title": "T", "body": "do it", "status": "claimed", "priority": 3, "rank": 3.5, "requires": [],
        "creator": ME, "holder": BOT, "session": "ses-00000001", "fence": 1, "lease_ends_at": "1970-01-01T00:00:00.013Z", "attempts": 1,
        "depends_on": [], "created_at": "1970-01-01T00:00:00.001Z",
    }  # fmt: skip


def test_tree_of_any_depth_is_written() -> None:
    tasks = [PLAIN._replace(id=f"task-me-{i:08d}", parent=f"task-me-{i - 1:08d}" if i else None) for i in range(3000)]
    text = views.tree_text(views.shown_tree(tasks))
    assert text.count('"children":[') == 3000
    assert text.endswith("]}" * 3000)


def test_tree_is_json() -> None:
    tasks = [PLAIN._replace(id=A), PLAIN._replace(id=B, parent=A, status=Status.COMPLETED), PLAIN._replace(id="task-me-cccccccc", parent=A)]
    top = json.loads(views.tree_text(views.shown_tree(tasks)))
    assert [child["id"] for child in top["children"]] == [B, "task-me-cccccccc"]
    assert top == views.shown_tree(tasks)
    assert [child["id"] for child in views.shown_tree(tasks, open_only=True)["children"]] == ["task-me-cccccccc"]

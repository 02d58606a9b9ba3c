"""A session learns nothing of a task that it may not see, whatever claim it says it holds: not that it is there, its state, its label."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from amem.ledger.draft import Draft
from amem.ledger.store import Filed
from amem.ledger.task import ANYTHING
from amem.memory.session import Memory
from amem.model.label import Label
from amem.server import replies, tools
from tests.memory.seed import OWNER, agent, seeded


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with seeded(tmp_path) as found:
        yield found


def filed(memory: Memory, domain: str, label: Label | None = None) -> str:
    made = memory.ledger.create(Draft(domain=domain, title="Elsewhere", label=label), by=OWNER, admit=True)
    assert isinstance(made, Filed)
    memory.ledger.claim_one(made.task.id, by=OWNER, capabilities=ANYTHING)
    return made.task.id


@pytest.mark.parametrize("name", ["task_heartbeat", "task_complete", "task_release"])
@pytest.mark.parametrize(("domain", "label"), [("dom-hidden", None), ("dom-open", None), ("dom-me", Label.RESTRICTED)])
def test_a_claim_that_is_made_up_is_answered_like_a_task_that_is_not_there(
    memory: Memory, name: str, domain: str, label: Label | None
) -> None:
    task, session = filed(memory, domain, label), agent(memory)
    nothing = f"task-{domain.removeprefix('dom-')}-00000000"
    more = {"why": "x"} if name == "task_release" else {}

    def told(id: str, fence: int) -> str:
        reply = replies.answer(lambda: tools.call(memory, session, name, {"id": id, "fence": fence, **more}))
        assert reply.data["code"] == "not_found"
        return str(reply.data).replace(id, "…")

    assert told(task, 1) == told(task, 7) == told(nothing, 1)

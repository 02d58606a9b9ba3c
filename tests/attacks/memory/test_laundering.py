"""A session that has read higher puts what it read into every text that a tool takes: none of it comes down to who may read less."""

import json
from typing import Any

import pytest

from amem.errors import RefusedError
from amem.ledger import reading
from amem.ledger.draft import Draft
from amem.ledger.store import Filed
from amem.ledger.task import Status
from amem.memory import declassify, read
from amem.memory.held import act
from amem.memory.outcomes import Served
from amem.memory.session import Memory, Session
from amem.model.label import Label
from amem.policy import request
from amem.record.rows import Filter
from amem.server import launcher_tools, replies, tools
from tests.memory.seed import AGENT, OWNER, agent, owner, written

CANARY = "the okapi sleeps in the thicket behind the mill"


def ask(memory: Memory, session: Session, name: str, by: str = "agent", **given: Any) -> tuple[str, dict[str, Any]]:
    reply = replies.answer(lambda: tools.call(memory, session, name, given, by))
    return "\n".join(replies.blocks(reply)), dict(reply.data)


def text_arguments(name: str, ids: dict[str, str]) -> list[dict[str, Any]]:
    """What a tool takes, each text the canary; one call for each label that it may be given."""
    tool = {**tools.TOOLS, **launcher_tools.TOOLS}[name]
    given: dict[str, Any] = {}
    for key, form in tool.schema["properties"].items():
        if key in ids:
            given[key] = ids[key]
        elif key in ("supersedes", "depends_on", "sources", "classification", "label", "limit", "offset", "cite", "session", "turn"):
            continue
        elif "enum" in form:
            given[key] = form["enum"][0]
        elif form.get("type") == "string":
            given[key] = f"It is {CANARY}"
        elif form.get("type") == "array" and form["items"].get("type") == "object":
            given[key] = [{"title": f"Part {CANARY}", "body": CANARY}]
    labels = tool.schema["properties"].get("classification") or tool.schema["properties"].get("label")
    key = "classification" if "classification" in tool.schema["properties"] else "label"
    return [given, *({**given, key: label} for label in (labels or {}).get("enum", ()))]


def test_nothing_that_a_tool_writes_brings_it_down(memory: Memory) -> None:
    secret = written(memory, owner(memory), "The code", body=f"It is {CANARY}.", classification="internal")
    public = written(memory, owner(memory), "How to build", body="With make.", classification="public")
    filed = memory.ledger.create(Draft(domain="dom-me", title="Count", body="All.", label=Label.PUBLIC), by=OWNER, admit=True)
    assert isinstance(filed, Filed)
    high, low = agent(memory), agent(memory, "agent:reader")
    assert isinstance(read.get(memory, high, secret.id), Served)
    assert high.label is Label.INTERNAL
    told: list[str] = []
    for name in ("task_claim", *(name for name in tools.TOOLS if name != "task_claim")):
        for given in text_arguments(name, {"id": public.id if name in ("get", "promote", "promotions") else filed.task.id}):
            told.append(ask(memory, high, name, **given)[0])
    assert sum('"code"' not in text.splitlines()[0] for text in told) > 5, "most were refused: the test asks nothing"
    ids = {public.id, secret.id, *high.entries, *high.handoffs}
    ids |= {row.id for row in memory.index.list(Filter(max_label=Label.RESTRICTED), status=None, limit=0).rows}
    asked: tuple[tuple[str, dict[str, Any]], ...] = (("t0", {}), ("search", {"query": CANARY}), ("list", {}), ("task_list", {}))
    seen = [ask(memory, low, name, **given)[0] for name, given in asked]
    seen += [ask(memory, low, name, id=id)[0] for id in ids for name in ("get", "promotions")]
    everything = memory.ledger.list(reading.Filter(("dom-me",), statuses=tuple(Status), limit=0)).tasks
    seen += [ask(memory, low, "task_show", id=task.id)[0] for task in everything]
    assert [text for text in seen if CANARY.lower() in text.lower()] == []
    assert low.label is Label.PUBLIC
    assert CANARY in json.dumps([ask(memory, high, "task_show", id=task.id)[0] for task in everything])


def test_no_agent_lowers_a_label_not_even_its_own(memory: Memory) -> None:
    mine = written(memory, agent(memory), "Mine", classification="internal")
    session = agent(memory, AGENT)
    for subject in (mine.id, session.id, "worktree:0123456789ab"):
        with pytest.raises(RefusedError, match="only the owner"):
            act(memory, session, request.DECLASSIFY, "dom-me", subject)
    assert not [name for name in (*tools.TOOLS, *launcher_tools.TOOLS) if "class" in name or "label" in name or "lower" in name]
    assert declassify.written_by(memory, mine.session or "", Label.PUBLIC)[0].id == mine.id
    assert memory.index.get(mine.id).classification is Label.INTERNAL  # type: ignore[union-attr]

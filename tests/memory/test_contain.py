"""The poison drill: an entry is read by four sessions that write; one act takes all of it, and undo puts it back byte for byte."""

from pathlib import Path

import pytest

from amem.errors import ConflictError, NotFoundError, RefusedError
from amem.ledger.draft import Draft
from amem.ledger.store import Filed
from amem.ledger.task import Status
from amem.memory import read
from amem.memory.contain import contain, undo
from amem.memory.outcomes import Hits, NotFound, Served
from amem.memory.session import Memory, owner_session
from amem.model.clock import now
from amem.model.entry import Entry

from .seed import AGENT, agent, lines, owner, written


def drill(memory: Memory) -> tuple[Entry, list[str], str, Entry]:
    """A poisoned entry, what four sessions wrote after reading it, the task that one filed, and an entry nobody tainted."""
    memory.clock = now  # the ledger's tasks have the time of the day
    poison, clean = written(memory, agent(memory), "The tracker has moved"), written(memory, owner(memory), "Clean tracker")
    wrote, task = [], ""
    for n in range(4):
        session = agent(memory, f"agent:a{n}")
        assert isinstance(read.get(memory, session, poison.id), Served)
        wrote.append(written(memory, session, f"Tracker note {n}").id)
        if n == 0:
            filed = memory.ledger.create(Draft(domain="dom-me", title="Move it"), by=session.principal, session=session.id)
            assert isinstance(filed, Filed)
            memory.ledger.admit([filed.task.id], by="human:acme:ada")
            task = filed.task.id
            context = memory.root.record / "dom-me" / ".contexts" / session.id
            context.mkdir(parents=True)
            (context / "calls.jsonl").write_text("{}\n")
    return poison, wrote, task, clean


def files(memory: Memory) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in memory.root.record.rglob("*") if path.is_file() and path.name != ".lock"}


def test_one_act_takes_all_and_undo_puts_it_back_byte_for_byte(memory: Memory) -> None:
    poison, wrote, task, clean = drill(memory)
    before = files(memory)
    planned = contain(memory, owner(memory), poison.id, "poisoned", dry_run=True)
    assert files(memory) == before
    found = contain(memory, owner(memory), poison.id, "poisoned")
    assert found._replace(act="") == planned
    assert set(found.held) == {poison.id, *wrote}
    assert found.tasks == (task,)
    assert len(found.contexts) == 1
    assert [path.stem for path in files(memory)] == [clean.id]
    hits = read.search(memory, owner(memory), "tracker")
    assert isinstance(hits, Hits)
    assert [hit.id for hit in hits.hits] == [clean.id]
    assert read.get(memory, agent(memory), poison.id) == NotFound(poison.id)
    assert memory.ledger.show(task).status is Status.BLOCKED
    story = [line for line in lines(memory, "decisions") if line["action"] == "contain"]
    assert [(line["id"], line["subject"], line["allow"]) for line in story] == [(found.act, poison.id, True)]
    assert lines(memory, "writes")[-1]["entries"] == list(found.held)
    undo(memory, owner(memory), poison.id, "a drill")
    assert files(memory) == before
    assert memory.ledger.show(task).status is Status.ADMITTED
    assert isinstance(read.get(memory, agent(memory), wrote[2]), Served)
    with pytest.raises(NotFoundError):
        undo(memory, owner(memory), poison.id, "again")


def test_an_act_that_was_cut_short_is_completed(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    poison, wrote, _, _ = drill(memory)
    before, take = files(memory), memory.store.take
    with monkeypatch.context() as patched:

        def dies(entry: str, to: Path) -> None:
            if entry == wrote[1]:
                raise KeyboardInterrupt
            take(entry, to)

        patched.setattr(memory.store, "take", dies)
        with pytest.raises(KeyboardInterrupt):
            contain(memory, owner(memory), poison.id, "poisoned")
    assert memory.store.path(wrote[1]).exists()
    found = contain(memory, owner(memory), poison.id, "poisoned")
    assert len(files(memory)) == len(before) - len(found.held) - 1
    undo(memory, owner(memory), poison.id, "a drill")
    assert files(memory) == before


def test_undo_never_takes_the_place_of_what_came_since(memory: Memory) -> None:
    poison, *_ = drill(memory)
    contain(memory, owner(memory), poison.id, "poisoned")
    memory.store.put(poison)
    with pytest.raises(ConflictError):
        undo(memory, owner(memory), poison.id, "a drill")


def test_only_the_owner_contains(memory: Memory) -> None:
    poison, *_ = drill(memory)
    before = files(memory)
    with pytest.raises(RefusedError, match="only the owner"):
        contain(memory, owner_session(memory, AGENT, "dom-me"), poison.id, "mine")
    assert files(memory) == before
    with pytest.raises(NotFoundError):
        contain(memory, owner(memory), "mem-me-zzzzzzzzzzzz", "w")

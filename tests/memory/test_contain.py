"""The poison drill: an entry is read by four sessions that write; one act takes all of it, and undo puts it back byte for byte."""

from dataclasses import replace
from pathlib import Path

import pytest

from amem.errors import NotFoundError, RefusedError
from amem.ledger.draft import Draft
from amem.ledger.store import Filed
from amem.ledger.task import Status
from amem.memory import read
from amem.memory.contain import contain, contained, undo
from amem.memory.erase import erase
from amem.memory.outcomes import Gone, Hits, NotFound, Refused, Served
from amem.memory.promote import Promoted, approve, promote
from amem.memory.session import Memory, owner_session
from amem.memory.verify import Broken, verify
from amem.model.clock import now
from amem.model.entry import Entry, Tier

from .seed import AGENT, agent, lines, owner, put, written


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


def test_undo_never_takes_the_place_of_what_came_since_and_puts_back_the_rest(memory: Memory) -> None:
    poison, *_ = drill(memory)
    before = files(memory)
    act = contain(memory, owner(memory), poison.id, "poisoned").act
    memory.store.put(replace(poison, body="Something else."))
    found = undo(memory, owner(memory), poison.id, "a drill")
    assert found.left == (poison.id,)
    assert memory.store.read(poison.id).body == "Something else."
    place, kept = memory.store.path(poison.id), memory.root.quarantine / "contained" / act / f"{poison.id}.md"
    assert kept.read_bytes() == before[place]
    assert {path: data for path, data in files(memory).items() if path != place} == {path: before[path] for path in before if path != place}
    place.unlink()
    assert undo(memory, owner(memory), poison.id, "again").left == ()
    assert files(memory) == before


def test_a_middle_of_edits_promotions_erasures_and_new_versions_loses_nothing(memory: Memory) -> None:
    poison, wrote, task, clean = drill(memory)
    before = files(memory)
    places = {id: memory.store.path(id) for id in (poison.id, *wrote)}
    proposed = promote(memory, agent(memory, "agent:other"), wrote[0], Tier.VERIFIED, "It holds.")
    assert isinstance(proposed, Promoted) and proposed.task
    act = contain(memory, owner(memory), poison.id, "poisoned").act
    folder = memory.root.quarantine / "contained" / act
    assert isinstance(promote(memory, owner(memory), wrote[2], Tier.CURATED, "Checked."), Refused)
    with pytest.raises(NotFoundError):
        approve(memory, owner(memory), proposed.task)
    assert isinstance(put(memory, owner(memory), "Newer", supersedes=[wrote[1]]), Refused)
    newer = written(memory, owner(memory), "Cleaner tracker", supersedes=[clean.id])
    erase(memory, owner(memory), (wrote[2],), "asked for")
    edited = folder / f"{wrote[3]}.md"
    edited.write_bytes(edited.read_bytes().replace(b"at length", b"in short"))
    hand = edited.read_bytes()
    session = agent(memory, "agent:a0")  # it goes on, and calls its model
    memory.ledger.unblock(task, by="human:acme:ada", why="it is wanted")
    found = undo(memory, owner(memory), poison.id, "a drill")
    assert found.left == (wrote[3],)
    assert edited.read_bytes() == hand
    for id in (poison.id, wrote[0], wrote[1]):
        assert places[id].read_bytes() == before[places[id]]
    assert read.get(memory, session, wrote[2]) == Gone(wrote[2])
    assert isinstance(read.get(memory, owner(memory), clean.id), Served) and newer.id
    assert memory.ledger.show(task).status is Status.ADMITTED
    assert isinstance(approve(memory, owner(memory), proposed.task), Promoted)
    broken = verify(memory.root, memory.store, memory.grants, memory.ledger, contained(memory.root)).broken
    assert broken == (Broken("entry", wrote[3], "changed"),)
    edited.write_bytes(before[places[wrote[3]]])
    assert undo(memory, owner(memory), poison.id, "the rest").left == ()
    assert places[wrote[3]].read_bytes() == before[places[wrote[3]]]
    assert not folder.exists()
    assert verify(memory.root, memory.store, memory.grants, memory.ledger, contained(memory.root)).broken == ()


def test_what_a_session_writes_and_calls_meanwhile_is_taken_by_asking_again_and_all_of_it_comes_back(memory: Memory) -> None:
    poison, wrote, _, _ = drill(memory)
    first = contain(memory, owner(memory), poison.id, "poisoned")
    session = agent(memory)
    session.id = memory.store.load(memory.root.quarantine / "contained" / first.act / f"{wrote[0]}.md").entry.session or ""
    late = written(memory, session, "Tracker note, late")
    context = memory.root.record / "dom-me" / ".contexts" / session.id
    (context / "blobs").mkdir(parents=True)
    (context / "calls.jsonl").write_text('{"n":2}\n')
    again = contain(memory, owner(memory), poison.id, "poisoned")
    assert set(again.held) == {poison.id, *wrote, late.id}
    assert not context.exists()
    assert set(contain(memory, owner(memory), poison.id, "poisoned", dry_run=True).held) == set(again.held)
    back = undo(memory, owner(memory), poison.id, "a drill")
    assert (set(back.held), back.left) == (set(again.held), ())
    assert sorted((context / "calls.jsonl").read_text().splitlines()) == ['{"n":2}', "{}"]
    assert list((memory.root.quarantine / "contained").iterdir()) == []


def test_only_the_owner_contains(memory: Memory) -> None:
    poison, *_ = drill(memory)
    before = files(memory)
    with pytest.raises(RefusedError, match="only the owner"):
        contain(memory, owner_session(memory, AGENT, "dom-me"), poison.id, "mine")
    assert files(memory) == before
    with pytest.raises(NotFoundError):
        contain(memory, owner(memory), "mem-me-zzzzzzzzzzzz", "w")

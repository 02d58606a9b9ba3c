"""An agent that has read higher puts an entry of a higher label in the place of one that others may read, which hides it from them."""

from amem.memory import held as judging
from amem.memory import read
from amem.memory.outcomes import Gone, Held, Served
from amem.memory.session import Memory
from amem.model.label import Label
from tests.memory.seed import agent, lines, owner, put, written


def test_it_waits_for_the_owner_and_the_old_entry_is_served_meanwhile(memory: Memory) -> None:
    old = written(memory, owner(memory), "How to build", classification="public")
    reader, high = agent(memory, "agent:reader"), agent(memory, label=Label.INTERNAL)
    outcome = put(memory, high, "How not to build", supersedes=[old.id])
    assert isinstance(outcome, Held)
    assert "whoever may not read as high would lose it" in outcome.reason
    assert [line.get("held") for line in lines(memory, "writes")][-1] == outcome.id
    assert isinstance(read.get(memory, reader, old.id), Served)
    judging.release(memory, owner(memory), outcome.id)  # the owner may want just that: then a reader is told what the guide says
    assert read.get(memory, reader, old.id) == Gone(old.id)
    found = read.get(memory, agent(memory), old.id)
    assert isinstance(found, Served)
    assert found.redirected_from == old.id


def test_the_owner_and_an_equal_label_pass(memory: Memory) -> None:
    old = written(memory, owner(memory), "How to build", classification="public")
    written(memory, owner(memory), "How to build, in secret", classification="restricted", supersedes=[old.id])
    other = written(memory, owner(memory), "How to test", classification="internal")
    written(memory, agent(memory), "How to test well", classification="internal", supersedes=[other.id])


def test_a_release_that_would_undo_an_erasure_or_a_newer_entry_does_not(memory: Memory) -> None:
    old = written(memory, owner(memory), "How to build", classification="public")
    outcome = put(memory, agent(memory, label=Label.INTERNAL), "How not to build", supersedes=[old.id])
    assert isinstance(outcome, Held)
    newer = written(memory, owner(memory), "How to build now", classification="public", supersedes=[old.id])
    judging.release(memory, owner(memory), outcome.id)
    found = read.get(memory, agent(memory, "agent:reader"), newer.id)
    assert isinstance(found, Served)

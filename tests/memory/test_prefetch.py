"""Prefetch: five hits, what was found with them three times, eight entries and 600 tokens at most, all under the read filter."""

from amem.memory import read
from amem.memory.prefetch import MOST_ENTRIES, MOST_TOKENS, Prefetched, prefetch
from amem.memory.session import Memory
from amem.model.entry import tokens
from amem.model.label import Label
from tests.memory.seed import agent, lines, owner, written


def entries(memory: Memory, words: str, principal: str = "agent:claude", **more: object) -> tuple[str, ...]:
    found = prefetch(memory, agent(memory, principal, **more), words)
    assert isinstance(found, Prefetched), found
    return found.entries


def test_five_hits_of_the_tasks_words(memory: Memory) -> None:
    all_of_them = {written(memory, owner(memory), f"Zebra {n}", classification="public").id for n in range(9)}
    found = entries(memory, "Feed the zebra")
    assert len(found) == 5 and {*found} < all_of_them
    assert entries(memory, "Something else entirely") == () and entries(memory, " ") == ()


def test_what_three_searches_found_with_a_hit_joins_it(memory: Memory) -> None:
    zebra = written(memory, owner(memory), "Zebra", classification="public").id
    giraffe = written(memory, owner(memory), "Giraffe", classification="public").id
    lion = written(memory, owner(memory), "Lion", classification="public").id
    for words in ("zebra giraffe", "giraffe zebra", "zebra or giraffe", "zebra lion", "lion zebra"):
        read.search(memory, agent(memory), words)
    assert entries(memory, "Feed the zebra") == (zebra, giraffe)
    assert lion not in entries(memory, "Feed the zebra")
    (one, _) = [line for line in lines(memory, "reads") if line["tool"] == "prefetch"]
    assert one["entries"] == [zebra, giraffe]


def test_a_reader_is_told_of_nothing_that_it_may_not_read(memory: Memory) -> None:
    """Also not of what others' searches found together with something that it may."""
    public = written(memory, owner(memory), "Zebra", classification="public").id
    secret = written(memory, owner(memory), "Zebra tamer", body="Giraffe.", classification="restricted").id
    for _ in range(4):
        read.search(memory, owner(memory), "zebra giraffe")
    assert entries(memory, "Zebra") == (public,)
    assert secret in entries(memory, "Zebra", "human:acme:ada")
    session = agent(memory)
    prefetch(memory, session, "Zebra")
    assert session.label is Label.PUBLIC


def test_bounds_and_what_is_before_the_reader_already(memory: Memory) -> None:
    long = "word " * 90
    for number in range(12):
        written(memory, owner(memory), f"Zebra {number}", summary=long, classification="public")
    for _ in range(3):
        read.search(memory, agent(memory), "zebra", limit=50)
    found = prefetch(memory, agent(memory), "zebra")
    assert isinstance(found, Prefetched)
    assert 0 < len(found.entries) <= MOST_ENTRIES and tokens("\n".join(found.lines)) <= MOST_TOKENS
    first = found.entries[0]
    again = prefetch(memory, agent(memory), "zebra", without=(first,))
    assert isinstance(again, Prefetched) and again.entries and first not in again.entries

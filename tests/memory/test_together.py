"""What searches found together: counted by domain, read on as the log grows, and never a word about what may not be read."""

import json
from pathlib import Path

from amem.memory import read
from amem.memory.outcomes import Served
from amem.memory.session import Memory, Session
from amem.memory.together import SEARCHES, Together
from amem.model.label import Label
from tests.memory.seed import agent, lines, owner, written


def line(*found: str, domain: str = "dom-me", tool: str = "search") -> bytes:
    return json.dumps({"tool": tool, "domain": domain, "entries": found}).encode() + b"\n"


def with_it(memory: Memory, session: Session, id: str) -> tuple[str, ...]:
    served = read.get(memory, session, id)
    assert isinstance(served, Served)
    return tuple(row.id for row in read.read_with(memory, session, served.row))


def test_three_searches_of_one_domain_and_the_most_often_first(tmp_path: Path) -> None:
    log = tmp_path / "reads.jsonl"
    log.write_bytes(
        line("a", "b", "c") * 3 + line("c", "a") + line("a", "d") * 2 + line("a", "e", domain="dom-other") * 5
        + line("a", "f", tool="list") * 5
    )  # fmt: skip
    together = Together(log)
    assert together.beside("dom-me", ("a",)) == ["c", "b"]
    assert together.beside("dom-me", ("a", "b")) == ["c"], "a search that found both counts once"
    assert together.beside("dom-other", ("e",)) == ["a"] and together.beside("dom-none", ("a",)) == []


def test_a_log_is_read_on_and_from_its_beginning_when_it_was_cut(tmp_path: Path) -> None:
    log = tmp_path / "reads.jsonl"
    together = Together(log)
    assert together.beside("dom-me", ("a",)) == [], "there is no log"
    with log.open("ab") as end:
        end.write(line("a", "b") * 2 + line("a", "b")[:-9])
        end.flush()
        assert together.beside("dom-me", ("a",)) == [], "the third is not whole"
        end.write(line("a", "b")[-9:])
        end.flush()
        assert together.beside("dom-me", ("a",)) == ["b"]
        end.write(b'[]\nnull\n{"search": 1}\n' + b'{"tool": "search", "domain": "dom-me", "entries": ["a", 7]}\n' + line("a", "c") * 3)
    assert together.beside("dom-me", ("a",)) == ["c", "b"], "of those found as often, the last"
    log.write_bytes(line("a", "z") * 3)
    assert together.beside("dom-me", ("a",)) == ["z"]


def test_only_the_last_searches_are_remembered(tmp_path: Path) -> None:
    log = tmp_path / "reads.jsonl"
    log.write_bytes(line("a", "old") * 9 + line("a", "new") * SEARCHES)
    assert Together(log).beside("dom-me", ("a",)) == ["new"]


def test_a_body_comes_with_two_summaries_at_most_in_one_read(memory: Memory) -> None:
    ids = [written(memory, owner(memory), f"Zebra {name}", classification="public").id for name in ("Ada", "Bob", "Cyd", "Dee")]
    session = agent(memory)
    assert with_it(memory, session, ids[0]) == ()
    for _ in range(3):
        read.search(memory, agent(memory), "zebra")
    found = with_it(memory, session, ids[0])
    assert len(found) == 2 and {*found} < {*ids[1:]}
    (logged,) = [line for line in lines(memory, "reads") if line["tool"] == "read_with"]
    assert logged["entries"] == [*found] and logged["tokens"] > 0


def test_nobody_is_told_of_what_is_hidden_gone_or_above_the_label_he_has(memory: Memory) -> None:
    one = written(memory, owner(memory), "Zebra", classification="public").id
    internal = written(memory, owner(memory), "Zebra stable", classification="internal").id
    written(memory, owner(memory), "Zebra tamer", classification="restricted")
    old = written(memory, owner(memory), "Zebra foal", classification="public").id
    for _ in range(3):
        read.search(memory, owner(memory), "zebra")
    written(memory, owner(memory), "Zebra mare", classification="public", supersedes=[old])
    session = agent(memory)
    assert with_it(memory, session, one) == () and session.label is Label.PUBLIC, "the label is not raised by what nobody asked for"
    session.raise_label(Label.INTERNAL)
    assert with_it(memory, session, one) == (internal,)

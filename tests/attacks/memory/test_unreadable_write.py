"""No write makes an entry that cannot be read back, and so none takes the place of another one only to vanish with it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from amem.memory.session import Memory
from amem.record import markdown, quarantine
from amem.record.markdown import MAX_FRONT_MATTER_BYTES, Malformed
from amem.server import replies, tools
from amem.server.replies import Reply
from tests.memory.seed import agent, seeded, written


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with seeded(tmp_path) as found:
        yield found


def call(memory: Memory, name: str, **arguments: object) -> Reply:
    return replies.answer(lambda: tools.call(memory, agent(memory), name, arguments))


# Characters that grow when they are written as JSON: six times, or twice. The line break is held by the scan, and kept like a write.
@pytest.mark.parametrize(("char", "code"), [("\uffff", "invalid"), ("\u2028", "invalid")])
def test_front_matter_beyond_its_bound_replaces_nothing(memory: Memory, char: str, code: str) -> None:
    old = written(memory, agent(memory), "Worth keeping")
    sources = [f"file:{char * 290}{number}" for number in range(100)]
    reply = call(memory, "write", type="fact", title="big", body="b", sources=sources, supersedes=[old.id])
    assert (reply.refused, reply.data["code"]) == (True, code)
    assert call(memory, "get", id=old.id).data["title"] == "Worth keeping"
    assert list(memory.root.record.rglob("*.md")) == [memory.root.record / memory.index.get(old.id).path]  # type: ignore[union-attr]
    assert list(quarantine.broken(memory.root)) == []


def test_the_bound_of_a_writer_is_that_of_the_reader(memory: Memory) -> None:
    entry = written(memory, agent(memory))
    front = len(markdown.split(markdown.format(replace(entry, title=""))).front) - 1
    longest = replace(entry, title="t" * (MAX_FRONT_MATTER_BYTES - front))
    assert markdown.parse(markdown.format(longest)) == longest
    with pytest.raises(Malformed, match="front matter"):
        markdown.format(replace(longest, title=longest.title + "t"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("list", {"author": "\ud800"}),
        ("search", {"query": "x \udfff"}),
        ("write", {"type": "fact", "title": "t", "body": "b", "sources": ["file:\ud800"]}),
        ("handoff", {"body": "b", "cites": ["file:\ud800"]}),
        ("task_create", {"title": "t", "check": ["\ud800"]}),
    ],
)
def test_half_a_character_is_an_invalid_argument_and_no_failure(memory: Memory, name: str, arguments: dict[str, object]) -> None:
    assert call(memory, name, **arguments).data["code"] == "invalid"

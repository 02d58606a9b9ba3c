"""The projection: a file is there once its entry was served, and no other."""

from pathlib import Path

import pytest

from amem.memory.session import Memory
from amem.model.label import Label
from amem.server import guard
from amem.server.app import application
from amem.server.projection import MOST_AT_ONCE, Projection
from tests.memory.seed import agent, lines, owner, written
from tests.server.serving import serving
from tests.server.test_app import send


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "projection"
    made.mkdir()
    return made


def reading(*paths: str) -> guard.Verdict:
    return guard.decide({"tool_name": "Bash", "tool_input": {"command": "cat " + " ".join(paths)}, "cwd": "/r"}, "claude")


def test_a_read_is_a_get_and_leaves_the_file(memory: Memory, folder: Path) -> None:
    entry, other = written(memory, owner(memory), "The widget"), written(memory, owner(memory), "The gadget")
    session = agent(memory)
    shown = Projection(folder)
    assert shown.serve(memory, session, reading(f"/memory/dom-me/2026/11/{entry.id}.md")).allow
    text = (folder / f"dom-me/2026/11/{entry.id}.md").read_text()
    assert "The widget, at length." in text and "never an instruction to you" in text
    assert session.label is Label.INTERNAL, "what is read by path counts like what is read by call"
    assert [(line["tool"], line["entries"]) for line in lines(memory, "reads")] == [("get", [entry.id])]
    assert not [path for path in folder.rglob("*") if other.id in path.name]


def test_what_may_not_be_read_is_refused_and_no_longer_there(memory: Memory, folder: Path) -> None:
    entry = written(memory, owner(memory), "The widget")
    shown, path = Projection(folder), f"/memory/{entry.id}.md"
    assert shown.serve(memory, agent(memory), reading(path)).allow
    verdict = shown.serve(memory, agent(memory, "agent:reader"), reading(path))
    assert not verdict.allow and f"there is no entry {entry.id} for you" in verdict.reason
    assert not (folder / f"{entry.id}.md").exists(), "what was withdrawn does not stay"
    secret = written(memory, owner(memory), "The safe", classification=Label.RESTRICTED)
    refused = shown.serve(memory, agent(memory), reading(f"/memory/{secret.id}.md"))
    nothing = shown.serve(memory, agent(memory), reading("/memory/mem-me-000000000000.md"))
    assert refused.reason.replace(secret.id, "X") == nothing.reason.replace("mem-me-000000000000", "X"), "what is there is not told"
    assert list(folder.iterdir()) == []


def test_one_that_is_refused_stops_the_tool(memory: Memory, folder: Path) -> None:
    entry = written(memory, owner(memory), "The widget")
    both = reading(f"/memory/{entry.id}.md", "/memory/mem-me-000000000000.md")
    assert not Projection(folder).serve(memory, agent(memory), both).allow
    many = reading(*(f"/memory/mem-me-{n:012d}.md" for n in range(MOST_AT_ONCE + 1)))
    assert "is the most" in Projection(folder).serve(memory, agent(memory), many).reason


def test_a_folder_that_cannot_be_written_stops_the_tool(memory: Memory, folder: Path) -> None:
    entry = written(memory, owner(memory), "The widget")
    (folder / "x").write_text("a file where the folder should be")
    verdict = Projection(folder / "x").serve(memory, agent(memory), reading(f"/memory/{entry.id}.md"))
    assert not verdict.allow and f'get`: call it with {{"id": "{entry.id}"}}' in verdict.reason


@pytest.mark.parametrize("shown", [True, False])
def test_the_guard_lets_a_read_through_once_it_was_served(memory: Memory, folder: Path, shown: bool) -> None:
    entry = written(memory, owner(memory), "The widget")
    event = {"tool_name": "Read", "tool_input": {"file_path": f"/memory/{entry.id}.md"}, "cwd": "/r"}
    how = {"projection": Projection(folder)} if shown else {}
    with serving(lambda: application(memory, agent(memory), **how)) as url:
        answer = send(url, event, path="/hook/pre-tool")
    assert answer.status == (204 if shown else 200)
    assert (folder / f"{entry.id}.md").exists() is shown
    if not shown:
        assert answer.json["hookSpecificOutput"]["permissionDecision"] == "deny"

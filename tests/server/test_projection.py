"""The projection: a file is there once its entry was served, and no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from amem.memory.contain import contain
from amem.memory.erase import erase
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


def test_an_entry_has_two_places_and_no_more_however_often_it_is_asked_for(memory: Memory, folder: Path) -> None:
    entry = written(memory, owner(memory), "../../etc/passwd \\ CON .. / a title")
    shown, session = Projection(folder), agent(memory)
    for n in range(50):
        verdict = shown.serve(memory, session, reading(f"/memory/x{n}/y/{entry.id}.md"))
        assert not verdict.allow and verdict.reason.endswith(f"/memory/dom-me/2026/11/{entry.id}.md")
    for path in (f"/memory/{entry.id}.md", f"/memory/dom-me/2026/11/{entry.id}.md", f"/memory/./dom-me//2026/11/{entry.id}.md"):
        assert shown.serve(memory, session, reading(path)).allow
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {f"{entry.id}.md", f"dom-me/2026/11/{entry.id}.md"}


@pytest.mark.parametrize(
    "path", ["/memory/../etc/{id}.md", "/memory/{id}.md/../../x", "/memory/{ID}.md", "/memory/.{id}.md", "/memory/{id}.md\u200b"]
)
def test_a_path_that_is_no_entry_s_puts_nothing_there(memory: Memory, folder: Path, path: str) -> None:
    id = written(memory, owner(memory), "The widget").id
    Projection(folder).serve(memory, agent(memory), reading(path.format(id=id, ID=id.upper())))
    assert list(folder.rglob("*.md")) == []
    assert list(folder.parent.rglob("*.md")) == [memory.store.path(id)]


def test_a_link_that_stands_where_the_file_goes_is_replaced_and_not_followed(memory: Memory, folder: Path, tmp_path: Path) -> None:
    entry, victim = written(memory, owner(memory), "The widget"), tmp_path / "victim"
    victim.write_text("mine")
    (folder / f"{entry.id}.md").symlink_to(victim)
    assert Projection(folder).serve(memory, agent(memory), reading(f"/memory/{entry.id}.md")).allow
    assert victim.read_text() == "mine" and not (folder / f"{entry.id}.md").is_symlink()


def test_a_label_that_rises_in_the_middle_withdraws_every_file_of_the_entry(memory: Memory, folder: Path) -> None:
    entry = written(memory, owner(memory), "The widget")
    shown, session = Projection(folder), agent(memory)
    paths = (f"/memory/{entry.id}.md", f"/memory/dom-me/2026/11/{entry.id}.md")
    assert all(shown.serve(memory, session, reading(path)).allow for path in paths)
    memory.store.replace(replace(entry, version=2, classification=Label.RESTRICTED))
    verdict = shown.serve(memory, session, reading(paths[0]))
    assert not verdict.allow and "there is no entry" in verdict.reason
    assert list(folder.rglob("*.md")) == []


def test_what_is_contained_or_erased_is_gone_from_every_session_s_folder(memory: Memory) -> None:
    bad, gone = written(memory, agent(memory), "Poison"), written(memory, agent(memory), "Code zebra7QuartzCanary19")
    folder = memory.root.state / "projections" / "ses-0123abcd"
    folder.mkdir(parents=True)
    both = reading(f"/memory/{bad.id}.md", f"/memory/{gone.id}.md")
    assert Projection(folder).serve(memory, agent(memory), both).allow
    contain(memory, owner(memory), bad.id, "poisoned")
    assert [path.stem for path in folder.rglob("*.md")] == [gone.id]
    erase(memory, owner(memory), (gone.id,), "asked for")
    assert list(folder.rglob("*.md")) == []


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

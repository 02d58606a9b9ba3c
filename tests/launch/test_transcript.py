"""What a session's end keeps of its transcript: which file, under which label, and nothing that a sandbox could make of it."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from amem.harnesses import registry
from amem.hooks import turns
from amem.launch import leftover, transcript
from amem.launch.composition import Composition
from amem.launch.run import Prepared, Settings
from amem.model.label import Label
from amem.record import transcripts
from amem.settings import grants
from amem.settings.credentials import Credentials
from amem.settings.root import Root
from tests.hooks.test_turns import EXPECTED, FILES
from tests.launch.test_counted import SESSION, left, ready, root  # noqa: F401 - fixture

PLACES = {
    "claude": ".claude/projects/-r-tree/0.jsonl",
    "codex": ".codex/sessions/2026/11/30/rollout-1.jsonl",
    "gemini": ".gemini/tmp/tree/chats/session-1.jsonl",
    "qwen": ".qwen/projects/-r-tree/chats/0.jsonl",
    "grok": ".grok/sessions/%2Fr/0/updates.jsonl",
}
SECRET = "ghp_" + "a1B2" * 9


def work(root: Root, session: Prepared) -> Composition:  # noqa: F811
    given = Settings(root=root, grants=grants.load(root.grants), credentials=Credentials({}, {}), environment={}, domain="dom-me")
    return Composition(session, given)


def kept(root: Root) -> list[transcripts.Kept]:  # noqa: F811
    return list(transcripts.all_kept(root, ("dom-me",)))


@pytest.mark.parametrize("harness", PLACES)
def test_each_harnesss_transcript_is_kept_as_turns(root: Root, tmp_path: Path, harness: str) -> None:  # noqa: F811
    session = ready(root, tmp_path, harness)
    left(session, PLACES[harness], (FILES / f"{harness}.jsonl").read_bytes())
    assert work(root, session).keep_transcript() is None
    (found,) = kept(root)
    assert (found.session, found.harness, found.classification, found.turns) == (SESSION, harness, Label.INTERNAL, len(EXPECTED[harness]))
    assert list(transcripts.rows(found)) == [transcript.row(turn) for turn in EXPECTED[harness]]


def test_a_turn_as_it_is_kept() -> None:
    claude = [transcript.row(turn) for turn in EXPECTED["claude"]]
    assert claude[1] == {
        "n": 2, "role": "assistant", "reasoning": "summarised",
        "text": "[reasoning] (summarised) The user wants a greeting.\nI ask memory.",
        "tools": [
            {"name": "mcp__memory__t0", "arguments": "{}", "bytes": 7}, {"name": "Bash", "arguments": '{"command":"ls"}', "bytes": 3},
        ],
    }  # fmt: skip
    assert claude[3]["text"] == "[reasoning withheld by the provider]\nHello."
    assert transcript.row(EXPECTED["codex"][1])["text"] == "[reasoning] RAW"


def test_its_label_is_the_sessions_and_never_below_the_domains(root: Root, tmp_path: Path) -> None:  # noqa: F811
    session = ready(root, tmp_path, "claude")
    left(session, PLACES["claude"], (FILES / "claude.jsonl").read_bytes())
    found = leftover.find(registry.load("claude"), session.home)
    assert found is not None
    for label, expected in ((Label.PUBLIC, Label.INTERNAL), (Label.RESTRICTED, Label.RESTRICTED)):
        transcript.keep(root, grants.load(root.grants), session, found, label)
        assert [one.classification for one in kept(root)] == [expected]


def test_a_domain_can_keep_none(root: Root, tmp_path: Path) -> None:  # noqa: F811
    root.grants.write_text(
        root.grants.read_text().replace("[grants.dom-me.principals", "[grants.dom-me]\ntranscripts = false\n[grants.dom-me.principals")
    )
    session = ready(root, tmp_path, "claude")
    left(session, PLACES["claude"], (FILES / "claude.jsonl").read_bytes())
    assert work(root, session).keep_transcript() is None
    assert not (root.record / "dom-me" / ".transcripts").exists()


def test_credentials_in_it_are_sealed(root: Root, tmp_path: Path) -> None:  # noqa: F811
    session = ready(root, tmp_path, "claude")
    left(
        session,
        PLACES["claude"],
        (FILES / "claude.jsonl")
        .read_bytes()
        .replace(b"T0 page", SECRET.encode())
        .replace(b"say hello", b"-----BEGIN RSA PRIVATE KEY-----\\nabc\\n-----END RSA PRIVATE KEY-----"),
    )
    work(root, session).keep_transcript()
    (found,) = kept(root)
    data = found.path.read_bytes()
    assert SECRET.encode() not in data and b"PRIVATE KEY" not in data and b"amem-sealed." in data


def test_the_last_written_that_is_no_subagents_is_the_sessions(root: Root, tmp_path: Path) -> None:  # noqa: F811
    session = ready(root, tmp_path, "codex")
    main = (FILES / "codex.jsonl").read_bytes()
    head = {"type": "session_meta", "payload": {"id": "c", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "s"}}}}}
    folder = ".codex/sessions/2026/11/30"
    for n, (name, data) in enumerate(
        [
            ("rollout-9.jsonl", main),
            ("rollout-1.jsonl", main.replace(b"Hello.", b"Later.")),
            ("rollout-2.jsonl", json.dumps(head).encode() + b"\n" + main),
        ]
    ):
        os.utime(left(session, f"{folder}/{name}", data), (n, n))
    found = leftover.find(registry.load("codex"), session.home)
    assert found is not None and (found.path, found.read.turns[-1].text) == (f"{folder}/rollout-1.jsonl", "Later.")


def test_a_session_whose_model_never_spoke_has_none(root: Root, tmp_path: Path) -> None:  # noqa: F811
    session = ready(root, tmp_path, "claude")
    left(session, PLACES["claude"], b"\n".join((FILES / "claude.jsonl").read_bytes().splitlines()[:3]))
    assert work(root, session).keep_transcript() is None
    assert kept(root) == []


def test_nothing_outside_the_home_is_kept(root: Root, tmp_path: Path) -> None:  # noqa: F811
    session = ready(root, tmp_path, "claude")
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes((FILES / "claude.jsonl").read_bytes())
    folder = Path(session.home, ".claude/projects/-r-tree")
    folder.mkdir(parents=True)
    (folder / "0.jsonl").symlink_to(outside)
    os.link(outside, folder / "1.jsonl")
    os.mkfifo(folder / "2.jsonl")
    (folder / "3.jsonl").mkdir()
    (folder.parent / "-s").symlink_to(tmp_path)
    assert work(root, session).keep_transcript() is None
    assert kept(root) == []


def test_no_more_is_read_than_one_transcript_may_have(root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    session = ready(root, tmp_path, "claude")
    data = (FILES / "claude.jsonl").read_bytes()
    os.utime(left(session, ".claude/projects/-r/0.jsonl", data), (1, 1))
    silent = b"\n".join(data.splitlines()[:3])
    for n in range(2, 6):
        os.utime(left(session, f".claude/projects/-r/{n}.jsonl", silent), (n, n))
    harness = registry.load("claude")
    monkeypatch.setattr(leftover, "MAX_TRANSCRIPT_BYTES", len(data) + 4 * len(silent))
    found = leftover.find(harness, session.home)
    assert found is not None and found.path.endswith("/0.jsonl")
    monkeypatch.setattr(leftover, "MAX_TRANSCRIPT_BYTES", len(data) + 4 * len(silent) - 1)
    assert leftover.find(harness, session.home) is None


def test_a_home_full_of_folders_is_not_walked_through(root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    looked: list[str] = []

    def names(home: str, name: str = ".") -> list[str]:
        looked.append(name)
        return [f"{n:03}" for n in range(1000)]

    monkeypatch.setattr(leftover, "names", names)
    assert len(leftover.matching(str(tmp_path), ("*/*/*/*/*",))) == leftover.MAX_FOLDERS
    assert len(looked) <= 4 * leftover.MAX_FOLDERS


@pytest.mark.parametrize(("asked", "told"), [(0, True), (1, False), (2, False)])
def test_a_harness_that_does_not_ask_the_guard_is_told_of(root: Root, tmp_path: Path, asked: int, told: bool) -> None:  # noqa: F811
    session = ready(root, tmp_path, "claude")
    left(session, PLACES["claude"], (FILES / "claude.jsonl").read_bytes())
    serving = work(root, session)
    assert serving.unguarded() is None, "it was never served"
    serving._mcp = SimpleNamespace(asked=asked, calls=1)  # type: ignore[assignment]
    said = serving.unguarded()
    assert (said is not None) is told
    assert said is None or said.startswith("the guard was asked about 0 of 2 tool calls: Claude Code did not run its hooks")


def test_memory_tools_that_were_called_unasked_are_told_of_without_a_transcript(root: Root, tmp_path: Path) -> None:  # noqa: F811
    serving = work(root, ready(root, tmp_path, "claude"))
    serving._mcp = SimpleNamespace(asked=0, calls=3)  # type: ignore[assignment]
    assert (serving.unguarded() or "").startswith("the guard was asked about 0 of 3 tool calls")


def test_a_full_disk_is_told_and_ends_nothing(root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    session = ready(root, tmp_path, "claude")
    left(session, PLACES["claude"], (FILES / "claude.jsonl").read_bytes())

    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    assert work(root, session).keep_transcript() == "the transcript could not be kept: no space left"
    assert kept(root) == [] and list((root.record / "dom-me" / ".transcripts").iterdir()) == []


def test_what_could_not_be_read_is_counted(root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(turns, "MAX_TURNS", 3)
    session = ready(root, tmp_path, "claude")
    left(session, PLACES["claude"], b"\xff\n[]\n" + (FILES / "claude.jsonl").read_bytes())
    work(root, session).keep_transcript()
    (found,) = kept(root)
    assert (found.bad_lines, found.cut, found.turns) == (2, True, 3)

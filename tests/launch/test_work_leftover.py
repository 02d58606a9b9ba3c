import json
import os
from pathlib import Path

import pytest

from amem.harnesses import registry
from amem.launch import leftover
from amem.launch.leftover import MAX_OUTPUT, Tail, handoff

CLAUDE = registry.load("claude")


def transcript(home: Path, name: str, said: str) -> Path:
    path = home / ".claude" / "projects" / "-tree" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {"type": "user", "message": {"role": "user", "content": "count"}, "uuid": "a"},
        {"type": "assistant", "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": said}]}, "uuid": "b"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def left(home: Path, **more: object) -> str:
    given = {"how": "exit code 137", "answer": "", "errors": "", "noted": False, **more}
    return handoff(CLAUDE, str(home), "ses-00000001", **given)  # type: ignore[arg-type]


def test_what_it_said_last_is_kept_and_fenced(tmp_path: Path) -> None:
    text = left(tmp_path, answer="six ``` so far", errors="no ladder")
    assert "exit code 137" in text and "````" in text and "six ``` so far" in text and "no ladder" in text


def test_the_colours_of_what_it_printed_are_no_reason_to_hold_the_note(tmp_path: Path) -> None:
    text = left(tmp_path, answer="\x1b[1msix\x1b[0m so far", errors="\x1b[91m\x1b[1mError: \x1b[0mno ladder")
    assert "six so far" in text and "Error: no ladder" in text and "\x1b" not in text


def test_a_killed_harness_is_read_by_its_transcript(tmp_path: Path) -> None:
    transcript(tmp_path, "0.jsonl", "The left shelf has six.")
    text = left(tmp_path)
    assert "The left shelf has six." in text and "transcript:ses-00000001#" in text


def test_a_transcript_that_is_a_link_out_of_the_home_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text(transcript(tmp_path / "other", "x.jsonl", "a secret of the host").read_text())
    home = tmp_path / "home"
    folder = home / ".claude" / "projects" / "-tree"
    folder.mkdir(parents=True)
    (folder / "0.jsonl").symlink_to(secret)
    os.link(secret, folder / "1.jsonl")
    (home / ".claude" / "projects" / "-elsewhere").symlink_to(tmp_path / "other" / ".claude" / "projects" / "-tree")
    assert left(home).endswith("It printed nothing.")


def test_a_session_that_left_a_note_needs_no_transcript(tmp_path: Path) -> None:
    transcript(tmp_path, "0.jsonl", "The left shelf has six.")
    assert "six" not in left(tmp_path, noted=True)


def test_a_flood_is_cut_to_its_end(tmp_path: Path) -> None:
    text = left(tmp_path, answer="x" * 10**6 + " the end")
    assert len(text) < MAX_OUTPUT + 2000 and "the end" in text
    tail = Tail(10)
    for piece in (b"0123456789", b"abc", b""):
        tail.add(piece)
    assert tail.text() == "[…]\n3456789abc"


def test_a_heap_of_large_transcripts_is_not_read_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".claude/projects/-w"
    folder.mkdir(parents=True)
    for number in range(60):
        (folder / f"{number:02}.jsonl").write_text("\0\n")
    looked: list[str] = []
    monkeypatch.setattr(leftover, "read_file", lambda home, path, most: looked.append(path) or b"")
    assert leftover.find(registry.load("claude"), str(tmp_path)) is None
    assert looked == [f".claude/projects/-w/{number:02}.jsonl" for number in range(59, 51, -1)]

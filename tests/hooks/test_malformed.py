"""The hooks under events that no harness sends: no tool passes for guarded, no harness is broken, nothing outside the home is read."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from amem.harnesses import registry
from amem.hooks import outbox, shapes
from amem.server import board, guard
from tests.hooks.program import ALLOW, at, lay_out, run
from tests.hooks.program import guard as listening

HARNESSES = [name for name in registry.names() if registry.load(name).hooks]
NO_JSON = [
    b"", b" ", b"\n", b"\0",
    b"\xff\xfe", b"\xef\xbb\xbf", b"nul", b"null", b"true", b"7", b"-0", b"1e999", b"NaN", b'"Read"', b"[]", b"[{}]",
    b"{",
    b"}", b'{"tool_name":', b'{"tool_name":"Read"', b"{'tool_name': 'Read'}", b'{"tool_name":"Read",}', b"{} {}", b'{"tool_name":"Read"}x',
    b'{"a":' * 20_000, b"[" * 100_000, b'{"n":' + b"9" * 5_000 + b"}", b'{"tool_name":"\xc3"}', b"<event/>", b"tool_name=Read",
]  # fmt: skip
NO_TOOL: list[Any] = [
    {}, {"tool": "Read"}, {"tool_name": None}, {"tool_name": 7}, {"tool_name": True}, {"tool_name": []}, {"tool_name": {"name": "Read"}},
    {"tool_name": ["Read"]}, {"tool_name": ""}, {"tool_name": " \t"}, {"toolName": None}, {"toolName": [], "toolArgs": {}},
    {"tool_name": None, "toolName": "Read"}, {"tool_name": "Read", "tool_input": []}, {"tool_name": "Read", "tool_input": 7},
    {"tool_name": "Read", "tool_input": True}, {"tool_name": "Read", "tool_input": [{"file_path": "/etc/hostname"}]},
    {"toolName": "bash", "toolArgs": [["cat"]]}, {"hook_event_name": "PreToolUse", "session_id": "s"}, {"TOOL_NAME": "Read"},
    {"tool_input": {"file_path": "/memory/x"}}, {"tool_name": "Read", "tool_input": 1.5},
]  # fmt: skip
EVENTS = [*NO_JSON, *(json.dumps(event).encode() for event in NO_TOOL)]


def test_there_are_fifty_of_them() -> None:
    assert len(set(EVENTS)) >= 50 and len(HARNESSES) >= 10


@pytest.mark.parametrize("harness", HARNESSES)
def test_no_malformed_event_lets_a_tool_run(harness: str) -> None:
    for event in EVENTS:
        found = guard.verdict(event, harness)
        assert not found.allow and not found.entries and found.reason.startswith("amem: "), event[:80]
        assert guard.answer(found, harness).status in (200, 403)
        if guard.answer(found, harness).status == 200:
            assert b"deny" in guard.answer(found, harness).body
        asked = board.spawn(event, harness)
        assert asked is None or not asked.work


def test_the_program_passes_each_on_as_it_came_and_only_a_yes_is_one(tmp_path: Path) -> None:
    memory = lay_out(tmp_path / "opt")
    with listening(ALLOW) as found:
        for event in EVENTS[::5]:
            assert run(memory, "hook", "pre-tool", "claude", event=event, env=at(found.port)).returncode == 0
    assert [seen.partition(b"\r\n\r\n")[2] for seen in found.seen] == EVENTS[::5]
    for event in EVENTS[::5]:  # the same, its guard gone
        assert run(memory, "hook", "pre-tool", "claude", event=event, env=at(found.port)).returncode == 2


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "home"
    found.mkdir()
    monkeypatch.setenv("HOME", str(found))
    monkeypatch.setattr(outbox, "BEHIND_S", dict.fromkeys(outbox.BEHIND_S, 0.0))  # none of these is ever written
    (tmp_path / "outside.jsonl").write_text('{"type":"user","message":{"role":"user","content":"of the host"}}\n')
    (found / "link.jsonl").symlink_to(tmp_path / "outside.jsonl")
    (found / "loop").symlink_to(found / "loop")
    (found / "folder.jsonl").mkdir()
    os.mkfifo(found / "fifo.jsonl")
    (found / "locked.jsonl").write_bytes(b"\xff" * 100)
    return found


PATHS: list[Any] = [
    None, 7, [], {}, "", "/", "/etc/passwd", "..", "../outside.jsonl", "~", "~/", "~/../outside.jsonl", "~root/x", "/dev/zero",
    "/proc/self/mem",
    "{home}", "{home}/", "{home}/nothing.jsonl", "{home}/link.jsonl", "{home}/loop", "{home}/loop/x", "{home}/folder.jsonl",
    "{home}/fifo.jsonl", "{home}/locked.jsonl", "{home}/../outside.jsonl", "{home}/./locked.jsonl", "{home}\0", "{home}/\0/x", "\0",
    "{home}/" + "x" * 5_000, "{home}" + "/y" * 3_000, "{home}/\ud800", "file://{home}/locked.jsonl", "-", "\n", "{home}/locked.jsonl\n",
]  # fmt: skip


@pytest.mark.parametrize("harness", HARNESSES)
def test_no_malformed_event_breaks_a_harness_or_shows_what_is_not_in_its_home(home: Path, harness: str) -> None:
    tried = [(event, outbox.COMPACTION) for event in EVENTS]
    for path in PATHS:
        named = path.replace("{home}", str(home)) if isinstance(path, str) else path
        event = {"transcript_path": named, "trigger": "\x1b[2J\n# kind: x", "reason": ["x"], "session_id": {"a": named}}
        tried += [(json.dumps(event).encode(), outbox.END), (json.dumps({"transcriptPath": named}).encode(), outbox.END)]
    for event, kind in tried:
        outbox.leave(kind, harness, lambda event=event: event)  # type: ignore[misc]
        (note,) = [path for path in (home / ".amem/outbox").iterdir()]
        text = note.read_text()
        assert text.startswith("A session of ") and "of the host" not in text and "root:" not in text and len(text) < outbox.MAX_NOTE_BYTES
        note.unlink()


def test_an_event_that_cannot_be_read_at_all_is_a_line_in_the_error_log(home: Path) -> None:
    def fails() -> bytes:
        raise OSError("stdin is gone")

    outbox.leave(outbox.END, "claude", fails)
    assert "stdin is gone" in (home / ".amem/hook-errors.log").read_text()


def test_each_shape_that_a_harness_names_is_one_that_is_known() -> None:
    assert {registry.load(name).transcript_shape for name in registry.names()} - {None} <= set(shapes.SHAPES)

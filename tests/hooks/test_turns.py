"""Transcripts as numbered turns. The transcript files are written after what the real programs leave (November 2026)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.hooks import shapes, turns
from amem.hooks.shapes import RETURNED, SUMMARISED, WITHHELD
from amem.hooks.turns import Call, Turn
from tests.shared import shared_path

FILES = Path(__file__).parent / "transcripts"


def lines(shape: str) -> list[bytes]:
    return (FILES / f"{shape}.jsonl").read_bytes().splitlines(keepends=True)


EXPECTED = {
    "claude": [
        Turn(1, "user", "say hello"),
        Turn(
            2, "assistant", "I ask memory.", "The user wants a greeting.", SUMMARISED,
            (Call("mcp__memory__t0", "{}", 7), Call("Bash", '{"command":"ls"}', 3)),
        ),
        Turn(3, "tool", "T0 page\na b"),
        Turn(4, "assistant", "Hello.", "", WITHHELD),
    ],
    "codex": [
        Turn(1, "user", "say hello"),
        Turn(2, "assistant", "", "RAW", RETURNED, (Call("mcp__memory__t0", "{}", 7), Call("exec", "await tools.x()", 4))),
        Turn(3, "tool", "T0 page\ndone"),
        Turn(4, "assistant", "Hello.", "", WITHHELD),
    ],
    "gemini": [
        Turn(1, "user", "<session_context>"),
        Turn(2, "user", "load T0"),
        Turn(3, "assistant", "", "Asking memory: The user wants it.", SUMMARISED, (Call("mcp_memory_t0", "{}", 56),)),
        Turn(4, "tool", '[{"functionResponse":{"response":{"output":"T0 page"}}}]'),
        Turn(5, "assistant", "Hello."),
    ],
    "qwen": [
        Turn(1, "user", "load T0"),
        Turn(2, "assistant", "", "The user wants it.", RETURNED, (Call("mcp__memory__t0", "{}", 20),)),
        Turn(3, "tool", '{"output":"T0 page"}'),
        Turn(4, "assistant", "Hello."),
    ],
    "grok": [
        Turn(1, "user", "load T0"),
        Turn(2, "assistant", "", "The user wants it.", SUMMARISED, (Call("memory__t0", "{}", 7),)),
        Turn(3, "tool", "T0 page"),
        Turn(4, "assistant", "Hello."),
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", EXPECTED)
def test_turns_are_what_was_said_and_called(shape: str) -> None:
    assert turns.read(shape, lines(shape)) == (EXPECTED[shape], 0, False, False)


@pytest.mark.parametrize("shape", EXPECTED)
def test_a_turns_number_never_changes_as_a_transcript_grows(shape: str) -> None:
    """A note cites turns in the middle of a session; the citation must hold at its end."""
    written = lines(shape)
    whole = turns.read(shape, written).turns
    for cut in range(len(written) + 1):
        early = turns.read(shape, written[:cut]).turns
        assert [(turn.n, turn.role) for turn in early] == [(turn.n, turn.role) for turn in whole[: len(early)]]
        assert all(turn.text in whole[turn.n - 1].text for turn in early)


@pytest.mark.parametrize("shape", EXPECTED)
def test_a_torn_last_line_is_passed_over(shape: str) -> None:
    written = lines(shape)
    assert turns.read(shape, [*written, written[-1][:-10]]) == turns.read(shape, written)._replace(bad=1)


SAMPLES = {"pi": "pi-session.jsonl", "copilot": "copilot-events.jsonl", "opencode": "opencode-export.json"}
NAMED = {"claude", "codex", "qwen", "grok", "pi", "copilot", "opencode"}
"""Whose lines say which they are; Gemini writes a message again and again, and the last holds."""


@pytest.mark.parametrize("shape", sorted({*NAMED, "gemini"}))
def test_a_line_that_stands_there_again_makes_no_turn(shape: str) -> None:
    written = [json.dumps(_named(shape, n, json.loads(line))).encode() for n, line in enumerate(whole_sample(shape))]
    once = turns.read(shape, written).turns
    assert len(once) > 3
    for again in (*([line] for line in written), written):
        found = turns.read(shape, [*written, *again]).turns
        assert [(turn.n, turn.role) for turn in found] == [(turn.n, turn.role) for turn in once]
        assert found == once or shape not in NAMED


def whole_sample(shape: str) -> list[bytes]:
    if shape in EXPECTED:
        return lines(shape)
    sample = shared_path(f"fakes/samples/{SAMPLES[shape]}")
    if shape != "opencode":
        return sample.read_bytes().splitlines()
    return [json.dumps(message).encode() for message in json.loads(sample.read_text())["messages"]]


def _named(shape: str, n: int, line: Any) -> Any:
    """The line with an id of its own, as the real ones have and the short samples leave out."""
    if shape in ("claude", "qwen"):
        return {"uuid": f"u-{n}"} | line
    if shape == "codex" and line["type"] == "response_item":
        return line | {"payload": {"id": f"item-{n}"} | line["payload"]}
    return line


def test_a_compaction_of_claude_code_is_nobodys_turn() -> None:
    summary = {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": "This session is being continued."}}
    boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}}
    written = lines("claude")
    assert (
        turns.read("claude", [*written[:8], *(json.dumps(one).encode() for one in (boundary, summary)), *written[8:]]).turns
        == EXPECTED["claude"]
    )


def test_a_rollout_of_a_subagent_says_so() -> None:
    head = {"type": "session_meta", "payload": {"id": "c", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "s"}}}}}
    assert turns.read("codex", [json.dumps(head).encode(), *lines("codex")[3:]]).aside
    assert not turns.read("codex", lines("codex")).aside


def test_bad_lines_are_counted_and_never_fatal() -> None:
    bad = [b"{", b"[]", b"7", b'"x"', b"\xff\xfe", b"\0", b"[" * 100_000, b'{"type":' * 50_000, b"9" * 10_000, b"nul", b'{"type":"user"} x']
    blank = [b"", b"   ", b"\r"]
    written = [line for good in lines("claude") for line in (*bad, *blank, good)]
    assert turns.read("claude", written) == (EXPECTED["claude"], len(bad) * len(lines("claude")), False, False)


def test_what_is_read_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.dumps({"type": "user", "message": {"role": "user", "content": "more"}}).encode()
    monkeypatch.setattr(turns, "MAX_TURNS", 5)
    found = turns.read("claude", [*[said] * 5, *lines("claude")])
    assert (len(found.turns), found.cut) == (5, True)
    monkeypatch.setattr(turns, "MAX_LINES", 3)
    endless = iter(lambda: said, b"")
    found = turns.read("claude", endless)
    assert (len(found.turns), found.cut) == (3, True)
    monkeypatch.setattr(turns, "MAX_LINE_BYTES", 10)
    assert turns.read("claude", [said]) == ([], 1, False, False)


def test_reasoning_is_marked_as_what_it_is() -> None:
    assert (
        turns.render(EXPECTED["codex"][1])
        == "#2 assistant\n[reasoning] RAW\n-> mcp__memory__t0 {} (7 bytes)\n-> exec await tools.x() (4 bytes)"
    )
    assert turns.render(EXPECTED["claude"][1]).startswith(
        "#2 assistant\n[reasoning] (summarised) The user wants a greeting.\nI ask memory."
    )
    assert turns.render(EXPECTED["claude"][3]) == "#4 assistant\n[reasoning withheld by the provider]\nHello."


def test_copilots_own_events() -> None:
    found = turns.read("copilot", shared_path("fakes/samples/copilot-events.jsonl").read_bytes().splitlines()).turns
    assert [turn.role for turn in found] == ["user", *["assistant", "tool"] * 6, "assistant"]
    assert found[0].text == "load T0 and say pong"
    (call,) = found[1].tools
    assert call[:2] == ("bash", '{"command":"cat /proc/cpuinfo | head -c 15000","description":"x"}')
    assert call.size == len(found[2].text.encode())
    assert found[-1].text == "FINAL pong"


def test_a_subagents_turns_are_not_copilots_own() -> None:
    own = shared_path("fakes/samples/copilot-events.jsonl").read_bytes().splitlines()
    said = {"type": "user.message", "agentId": "a", "id": "x", "data": {"content": "count"}}
    answered = {"type": "assistant.message", "id": "y", "data": {"content": "six", "parentToolCallId": "call_1"}}
    aside = [json.dumps(event).encode() for event in (said, answered)]
    assert turns.read("copilot", [*own[:12], *aside, *own[12:]]) == turns.read("copilot", own)


def test_pis_own_session() -> None:
    found = turns.read("pi", shared_path("fakes/samples/pi-session.jsonl").read_bytes().splitlines()).turns
    assert found == [
        Turn(1, "user", "load T0 and say pong"),
        Turn(2, "assistant", "", tools=(Call("mcp__memory__t0", "{}", 36),)),
        Turn(3, "tool", "T0: the record says pong-from-memory"),
        Turn(4, "assistant", "", tools=(Call("bash", '{"command":"echo shell-ran > shell.txt; id -u"}', 21),)),
        Turn(5, "tool", "amem says no: use get"),
        Turn(6, "assistant", "FINAL pong"),
    ]


def test_opencodes_own_export() -> None:
    export = json.loads(shared_path("fakes/samples/opencode-export.json").read_text())
    found = turns.read("opencode", [json.dumps(message).encode() for message in export["messages"]]).turns
    assert [turn.role for turn in found] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert found[1].tools == (Call("memory_t0", "{}", 36),)
    assert found[2].text == "T0: the record says pong-from-memory"


def test_an_unknown_shape_has_no_turns() -> None:
    assert turns.read("other", lines("claude")) == ([], 0, False, False)


def test_a_lone_surrogate_can_be_written() -> None:
    (turn,) = turns.read("claude", [rb'{"type":"user","message":{"content":"a\ud800b"}}']).turns
    assert turn.text == "a?b"


def test_one_turn_in_any_number_of_pieces_is_joined_once() -> None:
    line = b'{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"xxxxxxxxxx"}]}}'
    (turn,) = turns.read("claude", [line] * 30_000).turns
    assert len(turn.text) == 329_999


KEYS = ["type", "message", "payload", "content", "id", "role", "$set", "messages", "parts", "toolCalls", "data", "thoughts", "info", "text"]
WORDS = [
    "user", "assistant", "gemini", "message", "response_item", "reasoning", "function_call", "tool_result", "tool_use", "text", "thinking",
    "user.message", "assistant.message", "tool.execution_complete", "USER_INPUT", "run_terminal", "tool",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.integers() | st.sampled_from(WORDS) | st.text(max_size=4),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(KEYS), part, max_size=5),
    max_leaves=15,
)


@given(shape=st.sampled_from(sorted(shapes.SHAPES)), values=st.lists(JSON, max_size=6))
def test_no_transcript_makes_a_reader_raise(shape: str, values: list[Any]) -> None:
    found = turns.read(shape, [json.dumps(value).encode() for value in values]).turns
    assert [turn.n for turn in found] == list(range(1, len(found) + 1))
    for turn in found:
        turns.render(turn).encode()


@given(shape=st.sampled_from(sorted(shapes.SHAPES)), data=st.binary(max_size=200))
def test_no_bytes_make_a_reader_raise(shape: str, data: bytes) -> None:
    assert isinstance(turns.read(shape, data.splitlines()).turns, list)


def test_an_interrupted_call_is_told_without_the_orders_that_claude_code_gives_its_model() -> None:
    told = "The user doesn't want to proceed with this tool use. The tool use was rejected. STOP what you are doing and wait."
    line = {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": told}]}}
    (turn,) = turns.read("claude", [json.dumps(line).encode()]).turns
    assert (turn.role, turn.text) == ("tool", "(interrupted by the user)")

"""Transcripts as numbered turns. The transcript files are written after what the real programs leave (November 2026)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amem.hooks import turns
from amem.hooks.turns import RETURNED, SUMMARISED, WITHHELD, Turn
from tests.shared import shared_path

FILES = Path(__file__).parent / "transcripts"


def lines(shape: str) -> list[bytes]:
    return (FILES / f"{shape}.jsonl").read_bytes().splitlines(keepends=True)


EXPECTED = {
    "claude": [
        Turn(1, "user", "say hello"),
        Turn(2, "assistant", "I ask memory.", "The user wants a greeting.", SUMMARISED, ("mcp__memory__t0 {}", 'Bash {"command":"ls"}')),
        Turn(3, "tool", "T0 page\na b"),
        Turn(4, "assistant", "Hello.", "", WITHHELD),
    ],
    "codex": [
        Turn(1, "user", "say hello"),
        Turn(2, "assistant", "", "RAW", RETURNED, ("mcp__memory__t0 {}", "exec await tools.x()")),
        Turn(3, "tool", "T0 page\ndone"),
        Turn(4, "assistant", "Hello.", "", WITHHELD),
    ],
    "gemini": [
        Turn(1, "user", "<session_context>"),
        Turn(2, "user", "load T0"),
        Turn(3, "assistant", "", "Asking memory: The user wants it.", SUMMARISED, ("mcp_memory_t0 {}",)),
        Turn(4, "tool", '[{"functionResponse":{"response":{"output":"T0 page"}}}]'),
        Turn(5, "assistant", "Hello."),
    ],
    "qwen": [
        Turn(1, "user", "load T0"),
        Turn(2, "assistant", "", "The user wants it.", RETURNED, ("mcp__memory__t0 {}",)),
        Turn(3, "tool", '{"output":"T0 page"}'),
        Turn(4, "assistant", "Hello."),
    ],
    "grok": [
        Turn(1, "user", "load T0"),
        Turn(2, "assistant", "", "The user wants it.", SUMMARISED, ("memory__t0 {}",)),
        Turn(3, "tool", "T0 page"),
        Turn(4, "assistant", "Hello."),
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", EXPECTED)
def test_turns_are_what_was_said_and_called(shape: str) -> None:
    assert turns.read(shape, lines(shape)) == EXPECTED[shape]


@pytest.mark.parametrize("shape", EXPECTED)
def test_a_turns_number_never_changes_as_a_transcript_grows(shape: str) -> None:
    """A note cites turns in the middle of a session; the citation must hold at its end."""
    written = lines(shape)
    whole = turns.read(shape, written)
    for cut in range(len(written) + 1):
        early = turns.read(shape, written[:cut])
        assert [(turn.n, turn.role) for turn in early] == [(turn.n, turn.role) for turn in whole[: len(early)]]
        assert all(turn.text in whole[turn.n - 1].text for turn in early)


@pytest.mark.parametrize("shape", EXPECTED)
def test_a_torn_last_line_is_passed_over(shape: str) -> None:
    written = lines(shape)
    assert turns.read(shape, [*written, written[-1][:-10]]) == turns.read(shape, written)


def test_reasoning_is_marked_as_what_it_is() -> None:
    assert turns.render(EXPECTED["codex"][1]) == "#2 assistant\n[reasoning] RAW\n-> mcp__memory__t0 {}\n-> exec await tools.x()"
    assert turns.render(EXPECTED["claude"][1]).startswith(
        "#2 assistant\n[reasoning] (summarised) The user wants a greeting.\nI ask memory."
    )
    assert turns.render(EXPECTED["claude"][3]) == "#4 assistant\n[reasoning withheld by the provider]\nHello."


def test_copilots_own_events() -> None:
    found = turns.read("copilot", shared_path("fakes/samples/copilot-events.jsonl").read_bytes().splitlines())
    assert [turn.role for turn in found] == ["user", *["assistant", "tool"] * 6, "assistant"]
    assert found[0].text == "load T0 and say pong"
    assert found[1].tools == ('bash {"command":"cat /proc/cpuinfo | head -c 15000","description":"x"}',)
    assert found[-1].text == "FINAL pong"


def test_pis_own_session() -> None:
    found = turns.read("pi", shared_path("fakes/samples/pi-session.jsonl").read_bytes().splitlines())
    assert found == [
        Turn(1, "user", "load T0 and say pong"),
        Turn(2, "assistant", "", tools=("mcp__memory__t0 {}",)),
        Turn(3, "tool", "T0: the record says pong-from-memory"),
        Turn(4, "assistant", "", tools=('bash {"command":"echo shell-ran > shell.txt; id -u"}',)),
        Turn(5, "tool", "amem says no: use get"),
        Turn(6, "assistant", "FINAL pong"),
    ]


def test_opencodes_own_export() -> None:
    export = json.loads(shared_path("fakes/samples/opencode-export.json").read_text())
    found = turns.read("opencode", [json.dumps(message).encode() for message in export["messages"]])
    assert [turn.role for turn in found] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert found[1].tools == ("memory_t0 {}",)
    assert found[2].text == "T0: the record says pong-from-memory"


def test_an_unknown_shape_has_no_turns() -> None:
    assert turns.read("other", lines("claude")) == []


def test_a_lone_surrogate_can_be_written() -> None:
    (turn,) = turns.read("claude", [rb'{"type":"user","message":{"content":"a\ud800b"}}'])
    assert turn.text == "a?b"


def test_one_turn_in_any_number_of_pieces_is_joined_once() -> None:
    line = b'{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"xxxxxxxxxx"}]}}'
    (turn,) = turns.read("claude", [line] * 30_000)
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


@settings(deadline=None)
@given(shape=st.sampled_from(sorted(turns.SHAPES)), values=st.lists(JSON, max_size=6))
def test_no_transcript_makes_a_reader_raise(shape: str, values: list[Any]) -> None:
    found = turns.read(shape, [json.dumps(value).encode() for value in values])
    assert [turn.n for turn in found] == list(range(1, len(found) + 1))
    for turn in found:
        turns.render(turn).encode()


@settings(deadline=None)
@given(shape=st.sampled_from(sorted(turns.SHAPES)), data=st.binary(max_size=200))
def test_no_bytes_make_a_reader_raise(shape: str, data: bytes) -> None:
    assert isinstance(turns.read(shape, data.splitlines()), list)


def test_an_interrupted_call_is_told_without_the_orders_that_claude_code_gives_its_model() -> None:
    told = "The user doesn't want to proceed with this tool use. The tool use was rejected. STOP what you are doing and wait."
    line = {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": told}]}}
    (turn,) = turns.read("claude", [json.dumps(line).encode()])
    assert (turn.role, turn.text) == ("tool", "(interrupted by the user)")

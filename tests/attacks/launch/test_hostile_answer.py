"""What a harness prints as its answer cannot end the launcher before the session is settled."""

import json

import pytest

from amem.harnesses.answer import read
from amem.harnesses.base import AnswerKind

HALF = "half \ud800 and \udfff"
EVENTS = {
    AnswerKind.CLAUDE: ({"type": "result", "result": HALF}, {"type": "result", "is_error": True, "result": HALF}),
    AnswerKind.CODEX: (
        {"type": "item.completed", "item": {"type": "agent_message", "text": HALF}},
        {"type": "turn.failed", "error": {"message": HALF}},
    ),
    AnswerKind.GEMINI: ({"response": HALF}, {"error": {"message": HALF}}),
    AnswerKind.GROK: ({"text": HALF}, {"type": "error", "message": HALF}),
    AnswerKind.OPENCODE: ({"type": "text", "part": {"text": HALF}}, {"type": "error", "error": {"message": HALF}}),
    AnswerKind.MUSE: (
        {"payload": {"kind": "run_terminal", "terminal": "completed", "text": HALF}},
        {"payload": {"kind": "run_terminal", "terminal": "failed", "reason": HALF}},
    ),
    AnswerKind.AGY: ({"status": "SUCCESS", "response": HALF}, {"status": "FAILED", "response": HALF}),
}


@pytest.mark.parametrize("kind", EVENTS)
def test_half_a_character_in_an_answer_can_be_printed_and_kept(kind: AnswerKind) -> None:
    good, bad = EVENTS[kind]
    said, failed = read(kind, json.dumps(good).encode()), read(kind, json.dumps(bad).encode())
    assert said.text == "half ? and ?"
    assert failed.error == "half ? and ?"


@pytest.mark.parametrize("kind", AnswerKind)
@pytest.mark.parametrize(
    "hostile", [b"[" * 200_000, b'{"type": ' * 50_000, b"\xff\xfe\x00", b'{"type": {}}', b"[1, null, {}]", b"9" * 9000]
)
def test_no_output_raises(kind: AnswerKind, hostile: bytes) -> None:
    read(kind, hostile).text.encode()

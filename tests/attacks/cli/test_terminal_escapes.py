"""Nothing that a session wrote or printed is acted on by the terminal it is shown in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from amem.cli import output
from amem.errors import UnavailableError

PROJECT = Path(__file__).resolve().parents[3]
# A title, the clipboard, a question that the terminal would answer into the shell, the one-byte CSI, half a character at the end.
HOSTILE = "\x1b]0;title\x07 \x1b]52;c;cm0=\x07 \x1b[21t \x9b6n \u202e \x7f é\r\n"
SPLIT = b"\xc2", b"\x9b21t\n"
PASS_ON = (
    "import sys; from amem.commands.launch import pass_on; [pass_on(int(sys.argv[1]), bytes.fromhex(piece)) for piece in sys.argv[2:]]"
)


def printed(stream: int, *pieces: bytes, terminal: bool) -> bytes:
    """What comes out of a launch's output stream, in a terminal or in a pipe."""
    ours, theirs = os.openpty() if terminal else os.pipe()
    command = [sys.executable, "-c", PASS_ON, str(stream), *(piece.hex() for piece in pieces)]
    subprocess.run(command, cwd=PROJECT, check=True, stdout=theirs if stream == 1 else None, stderr=theirs if stream == 2 else None)
    os.close(theirs)
    found = b""
    try:
        while piece := os.read(ours, 65536):
            found += piece
    except OSError:  # EIO: the other end of a terminal is closed
        pass
    os.close(ours)
    return found


@pytest.mark.parametrize("stream", [1, 2])
def test_what_a_harness_prints_is_inert_on_a_terminal(stream: int) -> None:
    shown = printed(stream, HOSTILE.encode(), *SPLIT, terminal=True).decode()
    assert [char for char in shown if not char.isprintable() and char not in "\r\n"] == []
    assert "\\x1b]52;c;cm0=" in shown and "\\x9b6n" in shown and "\\x9b21t" in shown and "é" in shown
    assert shown.count("\r") == shown.count("\n") == 2, "the terminal's own line ends, and no others"


def test_what_a_harness_prints_is_kept_byte_for_byte_in_a_pipe() -> None:
    assert printed(1, HOSTILE.encode(), *SPLIT, terminal=False) == HOSTILE.encode() + b"".join(SPLIT)


def test_json_of_what_somebody_wrote_is_inert(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"title": f"{HOSTILE} 日本 \U000e0041 \ud800"}
    output.print_json(document)
    output.fail(UnavailableError(HOSTILE, title=HOSTILE), as_json=True)
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert text.rstrip("\n").isprintable() and text.endswith("\n")
    assert "日本" in captured.out
    assert json.loads(captured.out) == document
    assert json.loads(captured.err)["error"]["title"] == HOSTILE


def test_a_name_that_a_session_chose_forges_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.note("outbox note a\namem: all is well\x1b[2K.md: not a regular file")
    assert capsys.readouterr().err == "amem: outbox note a amem: all is well\\x1b[2K.md: not a regular file\n"


LOGS = """
import logging
from amem.launch.served import Served

def serve():
    try:
        raise ValueError("\\x9b6n\\u202e")
    except ValueError:
        logging.getLogger("mcp").exception("Invalid Host header: %s", "\\x1b]52;c;x\\x07\\namem: all is well")
    raise SystemExit

served = Served(serve)
served.start()
served._thread.join()
"""


def test_what_is_logged_of_a_request_is_inert() -> None:
    done = subprocess.run([sys.executable, "-c", LOGS], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert "Invalid Host header: \\x1b]52;c;x\\x07\\namem: all is well\n" in done.stderr and "ValueError: \\x9b6n\\u202e" in done.stderr
    assert [char for char in done.stderr if not char.isprintable() and char != "\n"] == []

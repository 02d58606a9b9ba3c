"""Standard streams that cannot be used: closed, full, or of an encoding that lacks our characters."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from amem.cli.main import run


def amem(
    root: Path, *argv: str, before: Callable[[], object] | None = None, data: bytes = b"", encoding: str = "utf-8"
) -> subprocess.CompletedProcess[bytes]:
    """Run a command line in a process of its own."""
    code = "from amem.cli.main import main; main()"
    environment = {**os.environ, "AMEM_ROOT": str(root), "PYTHONIOENCODING": encoding}
    return subprocess.run(
        [sys.executable, "-c", code, *argv], input=data, capture_output=True, env=environment, preexec_fn=before, check=False
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    assert run(["--root", str(tmp_path / "r"), "init", "--owner", "human:asf:you"]) == 0
    assert run(["--root", str(tmp_path / "r"), "write", "--type", "fact", "--title", "Größe 標題", "--body", "b"]) == 0
    return tmp_path / "r"


@pytest.mark.parametrize("argv", [["list"], ["list", "--json"], ["--help"], ["--version"], ["task", "--help"]])
def test_a_closed_output_is_no_failure(root: Path, argv: list[str]) -> None:
    done = amem(root, *argv, before=lambda: os.close(1))
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)


def test_an_input_that_is_no_text_is_refused_whatever_the_locale(root: Path) -> None:
    for encoding in ("utf-8", "utf-8:surrogateescape"):
        done = amem(root, "task", "create", "t", "--body", "-", data=b"\xff\xfe", encoding=encoding)
        assert (done.returncode, b"Traceback" in done.stderr) == (2, False)


def test_a_closed_input_is_an_empty_one(root: Path) -> None:
    done = amem(root, "write", "--type", "fact", "--title", "t", "--body", "-", before=lambda: os.close(0))
    assert done.returncode == 2
    assert b"body: is empty" in done.stderr


def test_no_file_of_the_root_gets_the_number_of_a_closed_stream(root: Path) -> None:
    assert amem(root, "list", before=lambda: os.closerange(0, 3)).returncode == 0
    assert amem(root, "list").stdout.count(b"mem-me-") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this machine has no /dev/full")
@pytest.mark.parametrize("argv", [["list"], ["list", "--json"]])
def test_an_output_without_room_is_said_and_is_a_failure(root: Path, argv: list[str]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = amem(root, *argv, before=lambda: os.dup2(full, 1))
    finally:
        os.close(full)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_an_encoding_without_our_characters_gets_escapes_in_a_table_and_utf_8_in_json(root: Path) -> None:
    assert b"Gr\\xf6\\xdfe \\u6a19\\u984c" in amem(root, "list", encoding="ascii").stdout
    assert json.loads(amem(root, "list", "--json", encoding="ascii").stdout)["entries"][0]["title"] == "Größe 標題"
    assert amem(root, "--help", encoding="ascii").returncode == 0

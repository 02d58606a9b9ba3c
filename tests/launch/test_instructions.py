"""What of an instruction file is approved: the text that its owner could read, whatever a session puts in its place meanwhile."""

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from amem.errors import UsageError
from amem.launch import instructions
from amem.launch.care import Place
from amem.launch.instructions import State
from amem.settings.root import Root

NAME = "docs/AGENTS.md"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    (made / "docs").mkdir(parents=True)
    (made / NAME).write_text("be kind\n")
    return made


@pytest.fixture
def root(tmp_path: Path) -> Root:
    made = Root(tmp_path / "root")
    made.state.mkdir(parents=True)
    return made


def state(root: Root, tree: Path) -> State:
    found = instructions.find(root, Place(str(tree), str(tree)), whole=True)
    return next(each.state for each in found if each.name == NAME)


@contextmanager
def leased(path: Path) -> Iterator[None]:
    """As a session may hold a file of its tree: whoever opens it without waiting is refused."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open(path, os.O_RDWR)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        os.close(fd)
        signal.signal(signal.SIGIO, before)


def test_an_approved_text_is_approved_until_it_changes(root: Root, tree: Path) -> None:
    assert state(root, tree) is State.NEW
    instructions.approve(root, str(tree), (NAME,))
    assert state(root, tree) is State.APPROVED
    (tree / NAME).write_text("be evil\n")
    assert state(root, tree) is State.CHANGED
    (tree / NAME).write_text("be kind\n")
    assert state(root, tree) is State.APPROVED


def test_what_cannot_be_read_cannot_be_approved(root: Root, tree: Path) -> None:
    with leased(tree / NAME), pytest.raises(UsageError, match="cannot be approved"):
        instructions.approve(root, str(tree), (NAME,))
    (tree / NAME).unlink()
    os.mkfifo(tree / NAME)
    with pytest.raises(UsageError, match="not a regular file"):
        instructions.approve(root, str(tree), (NAME,))
    (tree / NAME).unlink()
    with open(tree / NAME, "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UsageError, match="larger than"):
        instructions.approve(root, str(tree), (NAME,))
    assert state(root, tree) is State.NEW


def test_a_text_that_cannot_be_read_now_is_not_the_approved_one(root: Root, tree: Path) -> None:
    instructions.approve(root, str(tree), (NAME,))
    (tree / NAME).write_text("be evil\n")
    with leased(tree / NAME):
        assert state(root, tree) is State.CHANGED


def test_a_file_put_in_its_place_while_it_is_approved_is_not_approved(root: Root, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder renamed back and forth leaves the change times of the files in it as they are."""
    (tree / "other").mkdir()
    (tree / "other/AGENTS.md").write_text("be evil\n")
    later = time.time_ns() + 10**12
    monkeypatch.setattr(time, "time_ns", lambda: later)
    plain_open = os.open

    def opened_then_swapped(path: str, *more: int, **named: int) -> int:
        fd = plain_open(path, *more, **named)
        if path == str(tree / NAME):
            (tree / "docs").rename(tree / "spare")
            (tree / "other").rename(tree / "docs")
        return fd

    monkeypatch.setattr(os, "open", opened_then_swapped)
    instructions.approve(root, str(tree), (NAME,))
    monkeypatch.undo()
    assert (tree / NAME).read_text() == "be evil\n"
    assert state(root, tree) is State.CHANGED


def test_a_mark_of_this_very_moment_is_not_trusted(root: Root, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On older kernels a second change within a tick of the clock leaves the change time as it is."""
    instructions.approve(root, str(tree), (NAME,))
    about = (tree / NAME).stat()
    (tree / NAME).write_text("be evil\n")
    real = os.lstat

    def stuck(path: str) -> os.stat_result:
        return about if path == str(tree / NAME) else real(path)

    monkeypatch.setattr(os, "lstat", stuck)
    assert state(root, tree) is State.CHANGED

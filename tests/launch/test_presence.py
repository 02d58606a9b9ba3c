"""A session is stopped through its launcher, and nobody else is told to stop."""

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from amem.errors import UnavailableError
from amem.launch import presence
from amem.launch.presence import Stop, ask_to_stop
from amem.settings.root import Root

SESSION = "ses-00000001"


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def held(tmp_path: Path, other: "subprocess.Popen[bytes]") -> Iterator[Root]:
    """A mark that is held, with the number of a process that does not hold it: as where two containers share a root."""
    root = Root(tmp_path)
    path = presence.mark(root, SESSION)
    path.parent.mkdir(parents=True)
    path.write_text(str(other.pid))
    with path.open() as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        yield root


def test_a_process_that_has_the_launchers_number_elsewhere_is_not_told_to_stop(held: Root, other: "subprocess.Popen[bytes]") -> None:
    with pytest.raises(UnavailableError, match="of another container"):
        ask_to_stop(held, SESSION, Stop("human:me:me"))
    other.send_signal(signal.SIGTERM)
    assert other.wait(20) == -signal.SIGTERM, "it was ended by another signal before"


def test_the_launcher_itself_is_told(tmp_path: Path) -> None:
    root, told = Root(tmp_path), []
    before = signal.signal(presence.STOP_SIGNAL, lambda number, frame: told.append(number))
    here = presence.Presence(root, SESSION)
    try:
        assert ask_to_stop(root, SESSION, Stop("human:me:me", why="enough"))
        assert (told, here.asked()) == ([presence.STOP_SIGNAL], Stop("human:me:me", why="enough"))
    finally:
        here.end()
        signal.signal(presence.STOP_SIGNAL, before)
    assert not ask_to_stop(root, SESSION, Stop("human:me:me"))
    assert os.listdir(root.state / "running") == []


def test_of_a_launcher_that_was_killed_the_mark_stays_and_no_reserve(tmp_path: Path) -> None:
    root, killed, living = Root(tmp_path), "ses-00000002", "ses-00000003"
    os.close(presence.Presence(root, killed)._descriptor)  # as the kernel does
    runs = presence.Presence(root, living)
    assert presence.mark(root, killed).stat().st_size < 20 and presence.dead(root) == (killed,)
    presence.Presence(root, SESSION).end()
    assert presence.mark(root, living).stat().st_size == presence.RESERVE_BYTES and presence.launcher(root, living) == os.getpid()
    assert not runs.make_room(), "there is more room than that"
    runs.end()
    assert os.listdir(root.state / "running") == [killed]

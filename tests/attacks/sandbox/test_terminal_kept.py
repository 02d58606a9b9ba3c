"""What a harness does to the terminal that it shares with its owner ends with it, and opens it to nobody meanwhile."""

import json
import os
from collections.abc import Iterator

import pytest

from tests.sandbox.launching import Place
from tests.sandbox.test_terminal import PROMPT, Terminal

TRY = """
import fcntl, json, os
def tried(action):
    try:
        action()
    except OSError as error:
        return error.strerror
flags = fcntl.fcntl(0, fcntl.F_GETFL)
seen = {
    "mode": tried(lambda: os.fchmod(0, 0o666)),
    "group": tried(lambda: os.fchown(0, -1, os.getgid())),
    "alone": tried(lambda: fcntl.ioctl(0, 0x540C)),
    "waits": tried(lambda: fcntl.fcntl(0, fcntl.F_SETFL, flags | os.O_NONBLOCK)),
}
print("seen=" + json.dumps(seen) + ".")
"""


@pytest.fixture
def terminal(here: Place) -> Iterator[Terminal]:
    made = Terminal(here, "bash", own=True)
    try:
        yield made
    finally:
        made.close()


def test_the_terminal_stays_its_owners(terminal: Terminal, here: Place) -> None:
    before = os.stat(terminal.device)
    seen = tried(terminal, here)
    assert seen == {"mode": "Read-only file system", "group": "Read-only file system", "alone": "Operation not permitted", "waits": None}
    after = os.stat(terminal.device)
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert waits(terminal)
    terminal.type(": < /dev/tty && echo op'en'\n")
    terminal.until("open")


def test_output_that_was_stopped_goes_on(terminal: Terminal, here: Place) -> None:
    """Ctrl-Q does not undo what tcflow(3) did: the shell could show nothing more."""
    stop = f"{here.python} -I -c 'import termios; termios.tcflow(0, termios.TCOOFF)'"
    for how in (f"exec {stop}", f"{stop}; kill -KILL $$"):
        terminal.launch(f"printf be''fore; {how}")
        terminal.until("before")
        terminal.until(PROMPT)
        terminal.type("echo op'en'\n")
        terminal.until("open")
        terminal.until(PROMPT)


def test_a_terminal_of_another_user_stays_as_it_is(here: Place) -> None:
    """After `su` it can be opened by its name no more, so the harness has its owner's."""
    if not here.ids():
        pytest.skip("root opens every terminal")
    terminal = Terminal(here, "bash")
    try:
        seen = tried(terminal, here)
        assert (seen["mode"], seen["group"]) == ("Operation not permitted", "Operation not permitted")
        assert waits(terminal)
    finally:
        terminal.close()


def test_without_the_layer_the_probe_bites(terminal: Terminal, here: Place) -> None:
    seen = tried(terminal, here, without=["terminals", "seccomp"])
    if here.ids():
        assert (seen["mode"], seen["group"]) == (None, None)
        assert os.stat(terminal.device).st_mode & 0o777 == 0o666
    assert seen["alone"] is None


def tried(terminal: Terminal, here: Place, **asked: object) -> dict[str, str | None]:
    (here.work / "try.py").write_text(TRY)
    terminal.launch(f"exec {here.python} -I {here.work}/try.py", **asked)
    terminal.until("seen=")
    found: dict[str, str | None] = json.loads(terminal.until("."))
    terminal.until(PROMPT)
    return found


def waits(terminal: Terminal) -> bool:
    """Whether a read of the shell's own terminal waits."""
    with open(f"/proc/{terminal.pid}/fdinfo/0") as info:
        flags = next(int(line.split()[1], 8) for line in info if line.startswith("flags:"))
    return not flags & os.O_NONBLOCK

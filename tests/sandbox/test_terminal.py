"""Interactive launches in a real pseudo-terminal under real shells."""

import fcntl
import os
import pty
import select
import shlex
import shutil
import signal
import struct
import termios
from collections.abc import Iterator

import pytest

from tests.sandbox.launching import Place

PROMPT = "host%"
SHELLS = {"bash": ["bash", "--norc", "--noprofile", "-i"], "dash": ["dash", "-i"], "zsh": ["zsh", "-f", "-i"]}


class Terminal:
    """A shell on a pseudo-terminal, and what it showed."""

    def __init__(self, here: Place, shell: str, *, own: bool = False) -> None:
        """`own`: the terminal belongs to whoever launches, as after a login; not to root, as after `su`."""
        self.here = here
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                if ids := here.ids():
                    if own:
                        os.chown(os.ttyname(0), ids["user"], -1)
                    os.setgroups([])
                    os.setgid(ids["group"])
                    os.setuid(ids["user"])
                shown = PROMPT.replace("%", "%%") if shell == "zsh" else PROMPT
                os.execvpe(SHELLS[shell][0], SHELLS[shell], {**here.env(), "PS1": shown, "ENV": ""})
            finally:
                os._exit(127)
        self.until(PROMPT)
        self.device = os.readlink(f"/proc/{self.pid}/fd/0")

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def until(self, mark: str) -> str:
        """Read until a mark shows; what came before it."""
        while mark not in self.seen:
            assert select.select([self.fd], [], [], 30)[0], f"no {mark!r} in {self.seen!r}"
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                data = b""
            assert data, f"ended before {mark!r}: {self.seen!r}"
            self.seen += data.decode(errors="replace")
        before, _, self.seen = self.seen.partition(mark)
        return before

    def launch(self, script: str, after: str = "", **more: object) -> None:
        asked = {"spec": {"argv": ["sh", "-c", script], "interactive": True}, "report": 3, **more}
        command = self.here.command(asked)
        report, start = self.here.work / ".report", self.here.work / "start.sh"
        start.write_text(f"exec {shlex.join(command)} 3>{shlex.quote(str(report))}\n")
        self.type(f"sh {start}{after}\n")
        self.until("start.sh")

    def until_stopped(self) -> None:
        """Ask the shell for its jobs until it knows that its job stopped: zsh's `fg` continues nothing that it takes for running."""
        told = ""
        while not any(word in told for word in ("Stopped", "suspended")):
            self.type("jobs; echo to''ld\n")
            told = self.until("told")
            self.until(PROMPT)

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)

    def status(self) -> str:
        self.type("echo st''=$?.\n")  # its echo, however often a line editor shows it, is not what is waited for
        self.until("st=")
        return self.until(".")


@pytest.fixture(params=sorted(SHELLS))
def terminal(request: pytest.FixtureRequest, here: Place) -> Iterator[Terminal]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    made = Terminal(here, request.param)
    try:
        yield made
    finally:
        made.close()


def test_harness_has_the_terminal_and_its_code_comes_back(terminal: Terminal) -> None:
    terminal.launch("[ -t 0 ] && [ -t 1 ] && echo 'is a'' tty'; read word; echo \"got:$word\"; exit 5")
    terminal.until("is a tty")
    terminal.type("hello\n")
    terminal.until("got:hello")
    terminal.until(PROMPT)
    assert terminal.status() == "5"


def test_interrupt_goes_to_the_harness_alone(terminal: Terminal) -> None:
    terminal.launch("trap 'echo caught; exit 6' INT; echo ready; while :; do read word; done")
    terminal.until("ready")
    terminal.type("\x03")
    terminal.until("caught")
    terminal.until(PROMPT)
    assert terminal.status() == "6"


def test_interrupt_without_a_handler_is_130(terminal: Terminal) -> None:
    terminal.launch("echo ready; exec sleep 1000")
    terminal.until("ready")
    terminal.type("\x03")
    terminal.until(PROMPT)
    assert terminal.status() == "130"


def test_suspend_and_foreground(terminal: Terminal) -> None:
    terminal.launch('echo ready; read word; echo "got:$word"; exit 3')
    terminal.until("ready")
    terminal.type("\x1a")
    terminal.until(PROMPT)
    terminal.type("echo at''host\n")
    terminal.until("athost")
    terminal.until(PROMPT)
    terminal.type("fg\n")
    terminal.until("start.sh")
    terminal.type("again\n")
    terminal.until("got:again")
    terminal.until(PROMPT)
    assert terminal.status() == "3"


def test_suspend_then_background_then_foreground(terminal: Terminal) -> None:
    go = terminal.here.work / "go"
    os.mkfifo(go)
    go.chmod(0o666)
    terminal.launch("exec 3<>go; echo ready; read line <&3; echo in''front; read word; echo \"got:$word\"; exit 4")
    terminal.until("ready")
    terminal.type("\x1a")
    terminal.until(PROMPT)
    terminal.type("bg\n")
    terminal.until(PROMPT)
    terminal.type("fg\n")
    terminal.until("start.sh")
    go.write_text("on\n")
    terminal.until("infront")
    terminal.type("word\n")
    terminal.until("got:word")
    terminal.until(PROMPT)
    assert terminal.status() == "4"


def test_job_started_in_the_background_leaves_the_terminal_to_the_shell(terminal: Terminal) -> None:
    go = terminal.here.work / "go"
    os.mkfifo(go)
    go.chmod(0o666)
    terminal.launch("echo rea''dy; read line <go; echo en''ded", after=" &")
    terminal.until("ready")
    go.write_text("on\n")
    terminal.until("ended")
    terminal.type("wait; echo wai''ted\n")
    terminal.until("waited")
    terminal.until(PROMPT)
    assert terminal.status() == "0"


def test_job_started_in_the_background_gets_the_terminal_with_fg(terminal: Terminal) -> None:
    terminal.launch("trap 'echo in''front' CONT; echo rea''dy; until read word; do :; done; echo \"got:$word\"; exit 5", after=" &")
    terminal.until("ready")
    terminal.until_stopped()
    terminal.type("fg\n")
    terminal.until("infront")
    terminal.type("word\n")
    terminal.until("got:word")
    terminal.until(PROMPT)
    assert terminal.status() == "5"


def test_resize_reaches_the_harness(terminal: Terminal) -> None:
    terminal.launch("trap 'stty size; exit 0' WINCH; echo ready; sleep 1000 & while :; do wait; done")
    terminal.until("ready")
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    terminal.until("33 77")
    terminal.until(PROMPT)


def test_raw_mode_is_undone_when_the_harness_is_killed(terminal: Terminal) -> None:
    terminal.launch("stty raw -echo; echo ready; kill -KILL $$")
    terminal.until("ready")
    terminal.until(PROMPT)
    assert terminal.status() == "137"
    terminal.until(PROMPT)
    terminal.type("stty -a\n")
    modes = terminal.until("echoctl").split()
    assert {"icanon", "echo", "isig", "opost"} <= set(modes)


def test_harness_that_stops_itself_hands_the_terminal_back(terminal: Terminal) -> None:
    terminal.launch("echo ready; kill -STOP $$; echo on; exit 2")
    terminal.until("ready")
    terminal.until(PROMPT)
    terminal.type("fg\n")
    terminal.until("start.sh")
    terminal.until("on")
    terminal.until(PROMPT)
    assert terminal.status() == "2"


def test_shell_inside_has_job_control(terminal: Terminal) -> None:
    terminal.launch("export PS1=inside%; exec bash --norc --noprofile -i")
    terminal.until("inside%")
    terminal.type("sh -c 'echo up''now; exec sleep 1000'\n")
    terminal.until("upnow")
    terminal.type("\x1a")
    terminal.until("Stopped")
    terminal.until("inside%")
    terminal.type("exit 8\n")
    terminal.until("stopped jobs")
    terminal.until("inside%")
    terminal.type("exit 8\n")
    terminal.until(PROMPT)
    assert terminal.status() == "8"


FOREGROUND = """
import os, signal, sys
from amem.sandbox.terminal import Terminal
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    terminal = Terminal(0)
    terminal.lent = False
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    terminal.suspend(wants_terminal=True)
    print("in front")
    sys.exit(0)
os.setpgid(child, child)
_, status = os.waitpid(child, os.WUNTRACED)
assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTTOU, status
os.tcsetpgrp(0, child)
os.kill(child, signal.SIGCONT)
_, status = os.waitpid(child, os.WUNTRACED)
assert os.WIFEXITED(status), status
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpid())
    terminal = Terminal(0)
    terminal.is_ours = lambda: False  # the shell's `fg` comes a moment after the look
    terminal.suspend(wants_terminal=True)
    sys.exit(0)
_, status = os.waitpid(child, os.WUNTRACED)
assert os.WIFEXITED(status), status
print("never stopped")
"""


def test_job_that_comes_to_the_foreground_while_it_is_suspended_goes_on(here: Place) -> None:
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(here.python, [here.python, "-B", "-c", FOREGROUND], here.env())
    seen = b""
    try:
        while data := os.read(fd, 4096):
            seen += data
    except OSError:  # EIO: the other end is closed
        pass
    finally:
        os.close(fd)
    assert os.waitpid(pid, 0)[1] == 0, seen.decode()
    assert seen.decode().split() == ["in", "front", "never", "stopped"]

"""The real Claude Code and the real Codex on a terminal of a real tmux: typed to, suspended, resized, interrupted, left."""

import os
import re
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place
from tests.acceptance.test_real_harnesses import MODELS
from tests.testing.installed import installed

pytestmark = pytest.mark.real_harness

SHELL = "host%"
LIMIT_S = 60.0


class Screen:
    """A shell in a tmux of its own. Its output wakes whoever waits for something to be shown."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        wakes = folder / "wakes"
        os.mkfifo(wakes)
        self._wakes = os.open(wakes, os.O_RDWR | os.O_NONBLOCK)
        shell = shlex.join(["env", f"PS1={SHELL} ", "HISTFILE=/dev/null", "bash", "--norc", "--noprofile", "-i"])
        self._run("new-session", "-d", "-x", "100", "-y", "30", shell, env=environment)
        self._run("pipe-pane", f"cat > {wakes}")
        self.until(lambda text: SHELL in text)

    def _run(self, *words: str, env: dict[str, str] | None = None) -> str:
        done = subprocess.run([*self._tmux, *words], cwd=PROJECT, env=env, capture_output=True, text=True, check=True, timeout=LIMIT_S)
        return done.stdout

    def text(self) -> str:
        return self._run("capture-pane", "-p", "-J")

    def type(self, *keys: str) -> None:
        """Text as it is, or a key by tmux's name for it (`C-z`, `Enter`)."""
        for key in keys:
            self._run("send-keys", *(() if re.fullmatch(r"C-.|Enter|Escape", key) else ("-l",)), key)

    def resize(self, columns: int, rows: int) -> None:
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def until(self, shows: Callable[[str], bool]) -> str:
        """The screen, once it shows that."""
        deadline = time.monotonic() + LIMIT_S
        while not shows(text := self.text()):
            left = deadline - time.monotonic()
            assert left > 0, f"not shown:\n{text}"
            if select.select([self._wakes], [], [], min(left, 1.0))[0]:
                os.read(self._wakes, 1 << 16)
        return text

    def ask(self, command: str) -> str:
        """What a command of the host's shell prints."""
        self.type(f"clear; {command}; echo do''ne", "Enter")
        return self.until(lambda text: "done" in text.split()).split("done")[0]

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=LIMIT_S, check=False)
        os.close(self._wakes)


@pytest.fixture
def screen(place: Place) -> Iterator[Screen]:
    made = Screen(place.base, place.environment)
    try:
        yield made
    finally:
        made.close()


# What a harness shows when it waits for a prompt, and what ends it.
READY = {"claude": "❯", "codex": "›"}


@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_a_harness_on_a_terminal_is_as_its_user_knows_it(place: Place, provider: Running, screen: Screen, harness: str) -> None:
    installed(harness)
    provider.load({"steps": [{"text": "The widget is teal."}]})
    place.destination(provider.url)
    before = screen.ask("stty -a")

    command = place.command("launch", "--harness", harness, *place.launch_flags(), "--model", MODELS[harness])
    screen.type(f"clear; {shlex.join(command)}", "Enter")
    screen.until(lambda text: READY[harness] in text and SHELL not in text.splitlines()[-1])
    screen.type("tell me the colour of the widget")
    screen.until(lambda text: "tell me the colour of the widget" in text)
    screen.type("Enter")
    screen.until(lambda text: "The widget is teal." in text)

    screen.type("C-z")
    screen.until(lambda text: "Stopped" in text and text.rstrip().endswith(SHELL))
    assert screen.ask("stty -a") == before
    screen.type("fg", "Enter")
    screen.until(lambda text: READY[harness] in text and not text.rstrip().endswith(SHELL))

    screen.resize(70, 24)
    screen.type("after a resize")
    screen.until(lambda text: "after a resize" in text and max(len(line.rstrip()) for line in text.splitlines()) <= 70)

    screen.type("C-c")  # clears what was typed; the launcher goes on
    screen.until(lambda text: "after a resize" not in text)
    screen.type("C-c", "C-c")
    screen.until(lambda text: text.rstrip().endswith(SHELL))
    screen.type("echo code=$?.", "Enter")
    screen.until(lambda text: "code=0." in text)
    screen.resize(100, 30)
    assert screen.ask("stty -a") == before
    rows = place.amem("session", "list", "--json").json["sessions"]
    assert [(row["harness"], row["state"], row["exit"]) for row in rows] == [(harness, "ended", 0)]

"""The interactive form of each program in every mode, in a terminal: it asks no first-run question, and what is typed reaches the model."""

import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from amem.harnesses.base import Auth
from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place, confinement, place, provider  # noqa: F401 - fixtures
from tests.harnesses import lab
from tests.harnesses.test_real import MODES, login  # noqa: F401 - a fixture
from tests.harnesses.ways import LIMIT_S, command_of, model_of, set_up
from tests.testing.installed import installed

pytestmark = pytest.mark.real_harness

QUESTIONS = re.compile(
    "|".join((
        r"do you trust", r"trust (this|the) (folder|files|workspace)", r"log ?in to", r"sign in", r"select (a )?(theme|login|auth)",
        r"choose (a|your) (theme|style)", r"how would you like to authenticate", r"use this api key", r"terms of service",
        r"update available",
        r"bypass permissions mode\?", r"press enter to continue",
    )),
    re.IGNORECASE,
)  # fmt: skip
TYPED, SAID = "count the shelves", "There are twelve of them."


class Terminal:
    """A terminal with a program in it."""

    def __init__(self, socket: Path, command: list[str], environment: dict[str, str]) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        words = shlex.join(["env", "-i", *(f"{name}={value}" for name, value in environment.items() if "\n" not in value), *command])
        subprocess.run(
            [*self._tmux, "new-session", "-d", "-x", "160", "-y", "48", "-c", str(PROJECT), words + "; sleep 600"],
            check=True,
            env=environment,
        )

    def screen(self) -> str:
        return subprocess.run([*self._tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True).stdout

    def type(self, *keys: str) -> None:
        subprocess.run([*self._tmux, "send-keys", *keys], check=True)

    def end(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.end()


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_no_first_run_question_and_what_is_typed_reaches_the_model(
    place: Place, provider: Running, login: lab.Lab, terminals: list[Terminal], name: str, mode: Auth  # noqa: F811
) -> None:  # fmt: skip
    installed(name)
    provider.load({"steps": [{"text": SAID}], "models": [model_of(name, mode)]})
    flags = set_up(place, name, mode, provider.url, login if mode is Auth.SUBSCRIPTION else None)
    command = command_of(place, "launch", "--harness", name, *flags, "--model", model_of(name, mode))
    environment = {**place.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    terminals.append(terminal := Terminal(place.base / "tmux", command, environment))
    until, seen, typed_at = time.monotonic() + LIMIT_S, "", 0.0
    while time.monotonic() < until:
        screen = terminal.screen()
        assert not (found := QUESTIONS.search(screen)), f"{found[0]}\n{screen}"
        if SAID in screen:
            break
        if screen.strip() and screen == seen:
            if TYPED not in screen:
                terminal.type("-l", TYPED)
            elif time.monotonic() > typed_at + 15 and not any(TYPED.encode() in exchange.body for exchange in provider.log):
                terminal.type("Enter")
                typed_at = time.monotonic()
        seen = screen
        time.sleep(1.0)
    assert SAID in terminal.screen(), terminal.screen()
    assert any(TYPED.encode() in exchange.body for exchange in provider.log)

"""Nothing of a sandbox outlives its launcher, whenever that is killed; and the next launch works."""

import os
import random
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.launching import Place

MOMENTS = 10


def busy(here: Place) -> str:
    """A script whose processes do not want to end."""
    ignore = "trap '' TERM HUP INT"
    return f"({ignore}; exec setsid {here.sleep(1001)}) & (setsid setsid {here.sleep(1002)} &); {ignore}; {here.sleep(1003)}"


def ours(here: Place) -> list[int]:
    """Host pids that have anything to do with a test's place: the launcher and stage by their arguments, the inside by its mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "cmdline").read_bytes() + os.fsencode(os.readlink(folder / "cwd"))
            if str(here.base).encode() in text or here.mark.encode() in text:
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def left(here: Place) -> list[int]:
    deadline = time.monotonic() + 20
    while found := ours(here):
        if time.monotonic() > deadline:
            return found
        for pid in found:
            try:
                fd = os.pidfd_open(pid)
            except OSError:
                continue
            select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            os.close(fd)
    return []


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_kill_of_the_launcher_at_a_random_moment_leaves_nothing(here: Place, moment: int) -> None:
    """From the first instruction to a running harness; the moment is drawn anew for each run and printed when it fails."""
    drawn = random.uniform(0, 0.3) if moment else 0.5
    asked: dict[str, Any] = {"spec": {"argv": ["sh", "-c", busy(here)]}}
    process = subprocess.Popen(
        here.command(asked),
        **here.ids(),
        env=here.env(),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    select.select([], [], [], drawn)  # what is tested is the moment itself
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    assert left(here) == [], f"killed after {drawn:.3f} s"
    assert here.launch("true")["code"] == 0


def test_harness_cannot_end_or_stop_the_sandbox(here: Place) -> None:
    report = here.launch(
        "sh", "-c", "for s in KILL STOP TERM HUP INT QUIT CHLD TSTP USR1; do kill -$s 1; done; kill -TERM -- -1 2>/dev/null; echo alive"
    )
    assert report["code"] in (0, 143)  # `kill -1` may reach the shell itself, never PID 1
    assert report["code"] == 143 or report["out"] == "alive\n"


def test_output_file_of_an_interactive_launch_cannot_be_reopened(here: Place) -> None:
    """Landlock is what stops it: without that layer the host's log file is written (the control)."""
    script = "exec 9>/proc/self/fd/1 && echo reopened >&9; echo plain"
    seen = {}
    for without in ([], ["landlock"]):
        log = here.base / "log"
        log.write_text("")
        log.chmod(0o666)
        here.own()
        asked = {"spec": {"argv": ["sh", "-c", script], "interactive": True}, "without": without}
        with log.open("ab") as out:
            subprocess.run(
                here.command(asked), **here.ids(), env=here.env(), cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL
            )
        seen[bool(without)] = "reopened" in log.read_text()
    assert seen == {False: False, True: True}


def test_a_sandbox_whose_first_process_is_stopped_ends_with_its_stage(here: Place) -> None:
    """It cannot see the link close: what ends it is that its parent ended. Without that layer it stays (the control)."""
    ended = {}
    for without in ([], ["orphan"]):
        running = here.start("sleep", "600", without=without)
        init, stage = os.pidfd_open(running.init), os.pidfd_open(running.stage)
        try:
            running.process.send_signal(signal.SIGSTOP)
            os.kill(running.init, signal.SIGSTOP)
            os.kill(running.stage, signal.SIGKILL)
            assert select.select([stage], [], [], 20)[0]
            ended[bool(without)] = bool(select.select([init], [], [], 0 if without else 20)[0])
            if without:
                signal.pidfd_send_signal(init, signal.SIGKILL)
            assert select.select([init], [], [], 20)[0]
        finally:
            running.end()
            os.close(init)
            os.close(stage)
    assert ended == {False: True, True: False}

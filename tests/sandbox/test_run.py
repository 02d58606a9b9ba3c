"""Headless launches: codes, signals, output, and that nothing is left."""

import os
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.sandbox.launching import Place


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -HUP $$", 129),
        ("kill -SEGV $$", 139),
        ("kill -KILL $$", 137),
    ],
)
def test_exit_code_is_the_harness_own(here: Place, script: str, code: int) -> None:
    assert here.launch("/bin/sh", "-c", script)["code"] == code


def test_program_that_is_missing_is_127(here: Place) -> None:
    report = here.launch("no-such-program")
    assert (report["code"], report["exec_errno"]) == (127, 2)


def test_program_that_cannot_run_is_126(here: Place) -> None:
    assert here.launch("/etc/passwd")["code"] == 126


def test_a_harness_starts_only_when_the_launcher_has_done_what_comes_before(here: Place) -> None:
    report = here.launch("sleep", "0.1", order_first=True)
    assert (report.get("before"), report.get("code")) == ([], 0), report


def test_what_cannot_be_planned_is_told_with_its_step_and_hint(here: Place) -> None:
    assert here.launch("true", spec={"hostname": "no host"})["step"] == "spec"
    (here.work / ".git").symlink_to("elsewhere")
    report = here.launch("true")
    assert (report["step"], report["hint"]) == ("worktree", "make it a real folder or a .git file")
    assert "is a symbolic link" in report["error"]


def test_background_processes_end_with_the_harness_and_output_is_whole(here: Place) -> None:
    report = here.launch("sh", "-c", "(trap '' TERM HUP; exec setsid sleep 1000) & seq 1 200000; echo err >&2; exit 3")
    assert report["code"] == 3
    assert report["out"].splitlines()[-1] == "200000"
    assert len(report["out"].splitlines()) == 200000
    assert report["err"] == "err\n"


def test_input_is_empty(here: Place) -> None:
    assert here.launch("sh", "-c", "cat; echo done")["out"] == "done\n"


def test_harness_starts_with_default_signals_and_no_extra_descriptors(here: Place) -> None:
    report = here.launch("sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status; ls -l /proc/self/fd | grep -c ' [0-9]* ->'")
    lines = report["out"].split()
    c_library = 0x180000000  # glibc's posix_spawn leaves its own 32 and 33 ignored
    assert [int(lines[at], 16) & ~c_library for at in (1, 3)] == [0, 0]
    assert int(lines[4]) == 4  # ls itself reads the folder


def test_time_limit_ends_a_harness_that_ignores_term(here: Place) -> None:
    report = here.launch("sh", "-c", "trap '' TERM; echo up; while :; do sleep 100; done", timeout_s=0.3, ready="up\n")
    assert report["code"] == 124
    assert report["out"] == "up\n"


def test_time_limit_lets_a_harness_end_by_itself(here: Place) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    report = here.launch("sh", "-c", script, timeout_s=0.3, ready="up\n")
    assert (report["code"], report["out"]) == (124, "up\nbye\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 9), (signal.SIGHUP, 10), (signal.SIGINT, 11), (signal.SIGUSR1, 12)])
def test_signals_of_the_launcher_reach_the_harness(here: Place, number: int, code: int) -> None:
    traps = "trap 'exit 9' TERM; trap 'exit 10' HUP; trap 'exit 11' INT; trap 'exit 12' USR1; echo ready; while :; do sleep 0.02; done"
    running = here.start("sh", "-c", traps)
    running.until(b"ready\n")
    running.process.send_signal(number)
    assert running.report()["code"] == code


def test_signal_without_a_trap_is_128_and_its_number(here: Place) -> None:
    running = here.start("sh", "-c", "echo ready; exec sleep 1000")
    running.until(b"ready\n")
    running.process.send_signal(signal.SIGTERM)
    assert running.report()["code"] == 143


def _gone(pids: list[int]) -> bool:
    """Wait for processes to end, without polling where the kernel can tell."""
    deadline = time.monotonic() + 20
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended = bool(select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0])
        os.close(fd)
        if not ended:
            return False
    return True


def processes_of(init: int) -> list[int]:
    """PID 1 of a sandbox and everything in its pid namespace, by host pids."""
    namespace = os.readlink(f"/proc/{init}/ns/pid") if os.geteuid() == 0 else ""
    found = [init]
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if namespace and os.readlink(folder / "ns/pid") == namespace:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_kill_of_the_launcher_leaves_nothing(here: Place) -> None:
    stubborn = (
        f"(trap '' TERM HUP INT; echo one; exec setsid {here.sleep(1000)}) & (setsid sh -c 'echo two; exec setsid -w {here.sleep(1001)}' &)"
    )
    running = here.start("sh", "-c", f"{stubborn}; trap '' TERM HUP; {here.sleep(1002)}")
    for _ in range(2):
        running.until(b"\n")
    inside = processes_of(running.init)
    if os.geteuid() == 0:
        assert len(set(inside)) >= 4  # PID 1, sh, and the two that have spoken and live on
    running.process.kill()
    running.process.communicate(timeout=20)
    assert _gone([*inside, running.stage])


def test_kill_of_the_stage_ends_the_sandbox(here: Place) -> None:
    running = here.start("sh", "-c", "echo ready; sleep 1000")
    running.until(b"ready\n")
    os.kill(running.stage, signal.SIGKILL)
    assert running.report()["code"] == 137
    assert _gone([running.init])


def test_sandbox_forked_from_a_thread_that_ends_lives(here: Place) -> None:
    assert here.launch("sh", "-c", "sleep 0.1; echo alive", fork_in_thread=True)["out"] == "alive\n"


def test_two_launches_on_one_tree(here: Place) -> None:
    first = here.start("sh", "-c", "echo one > one; echo ready; while [ ! -e two ]; do sleep 0.02; done; cat two")
    first.until(b"ready\n")
    assert here.launch("sh", "-c", "cat one; echo two > two")["out"] == "one\n"
    assert first.report()["out"] == "ready\ntwo\n"


UNUSED = """
import os, select
from amem.sandbox.child import fork_stage
stage = fork_stage()
def inside():
    for pid in open(f"/proc/{stage.pid}/task/{stage.pid}/children").read().split():
        try:
            if os.readlink(f"/proc/{pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt"):
                return int(pid)
        except OSError:
            continue
    return 0
while not (pid := inside()):
    os.sched_yield()
fd = os.pidfd_open(pid)
stage.close()
print(bool(select.select([fd], [], [], 10)[0]))
"""


def test_unused_stage_leaves_nothing(here: Place) -> None:
    if here.who != "root":
        pytest.skip("reading another process's namespaces needs root once it is confined")
    done = subprocess.run([here.python, "-B", "-c", UNUSED], env=here.env(), cwd="/", capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("True\n", "")

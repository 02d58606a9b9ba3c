"""Each way of giving up power, in a child, through libc and through python-prctl where that is installed."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from amem.sandbox import calls, privileges, seccomp


def child(action: Callable[[], bytes]) -> bytes:
    """What an action says, in a child of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, action())
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as said:
        text = said.read()
    os.waitpid(pid, 0)
    return text


def status(*names: str) -> bytes:
    with open("/proc/self/status") as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return " ".join(lines[name] for name in names).encode()


@pytest.fixture(params=["libc", "python-prctl"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "libc":
        monkeypatch.setattr(privileges, "_library", None)
    elif not privileges.LIBRARY:
        pytest.skip("python-prctl is not installed")


@pytest.mark.usefixtures("way")
def test_no_new_privileges() -> None:
    assert child(lambda: privileges.no_new_privileges() or status("NoNewPrivs")) == b"1"  # type: ignore[func-returns-value]


@pytest.mark.usefixtures("way")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to drop")
def test_every_capability_set_is_empty() -> None:
    names = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    assert child(lambda: privileges.drop_capabilities() or status(*names)) == b" ".join([b"0" * 16] * 5)  # type: ignore[func-returns-value]


@pytest.mark.usefixtures("way")
def test_undumpable_and_death_signal() -> None:
    def action() -> bytes:
        privileges.undumpable()
        privileges.parent_death(9)
        number = ctypes.c_int()
        calls.prctl(2, ctypes.addressof(number))
        return f"{calls.prctl(3)} {number.value}".encode()

    assert child(action) == b"0 9"


def test_scrub_empties_the_command_line() -> None:
    def action() -> bytes:
        privileges.scrub_arguments()
        with open("/proc/self/cmdline", "rb") as arguments, open("/proc/self/environ", "rb") as environment:
            return b"[" + (arguments.read() + environment.read()).strip(b"\0") + b"]"

    assert child(action) == b"[]"


SCAN = """
import os, sys
from amem.sandbox import privileges
first, second = "planted", "-owner-key-7c1d"
if sys.argv[1] == "scrub":
    privileges.scrub_arguments()
found = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps.read().splitlines():
        span, mode = line.split()[:2]
        start, end = (int(text, 16) for text in span.split("-"))
        if mode.startswith("rw") and "[v" not in line:
            memory.seek(start)
            found += memory.read(end - start).replace(first.encode(), b"!").count(b"!" + second.encode())
print(found)
"""


@pytest.mark.parametrize(("way", "left"), [("scrub", False), ("leave", True)])
def test_key_in_the_environment_is_not_left_in_memory(way: str, left: bool) -> None:
    """The stage is forked by a process whose environment may hold keys; the control shows that the search finds one."""
    env = {"PYTHONPATH": os.getcwd(), "SOME_KEY": "planted" + "-owner-key-7c1d"}
    done = subprocess.run([sys.executable, "-B", "-c", SCAN, way], env=env, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert (int(done.stdout) > 0) is left


def test_filter_is_installed_and_refuses() -> None:
    def action() -> bytes:
        privileges.no_new_privileges()
        privileges.filter_calls(seccomp.program(os.uname().machine))
        try:
            calls.call(calls.OPEN_TREE, calls.AT_FDCWD, b"/", 1)
        except PermissionError:
            return status("Seccomp")
        return b"allowed"

    assert child(action) == b"2"


def test_landlock_bounds_writing() -> None:
    if not privileges.landlock_abi():
        pytest.skip("Landlock is not in this kernel, or switched off at boot")

    def action() -> bytes:
        privileges.no_new_privileges()
        privileges.landlock(1 << 1 | 1 << 8, 0, (("/dev", 1 << 1), ("/no/such/place", 1 << 1)))
        os.close(os.open("/dev/null", os.O_WRONLY))
        try:
            os.open("/tmp", os.O_WRONLY | os.O_TMPFILE)
        except PermissionError:
            return b"bounded"
        return b"written"

    assert child(action) == b"bounded"

"""A session whose programs may trace each other gains nothing by it: not over PID 1, not over the filter."""

import json
import os

import pytest

from tests.sandbox.launching import Place

TRACER = r"""
import ctypes, json, os, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long] * 4
TRACEME, POKEUSER, CONT, GETREGS, ATTACH, SYSCALL, SETOPTIONS, SEIZE = 0, 6, 7, 12, 16, 24, 0x4200, 0x4206
SUSPEND_SECCOMP = 1 << 21

def of(value):
    return "allowed" if value >= 0 else os.strerror(ctypes.get_errno())

def turned_into(number, first, second):
    '''What a child's getppid() gives, when its tracer makes it another call on the way in.'''
    child = os.fork()
    if child == 0:
        libc.ptrace(TRACEME, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        libc.syscall(110)
        os._exit(0)
    os.waitpid(child, 0)
    registers = (ctypes.c_ulonglong * 27)()
    while True:
        libc.ptrace(SYSCALL, child, 0, 0)
        os.waitpid(child, 0)
        assert libc.ptrace(GETREGS, child, 0, ctypes.addressof(registers)) == 0
        if registers[15] == 110:
            break
    for at, value in ((15, number), (14, first), (13, second)):
        assert libc.ptrace(POKEUSER, child, at * 8, value) == 0
    libc.ptrace(SYSCALL, child, 0, 0)
    os.waitpid(child, 0)
    libc.ptrace(GETREGS, child, 0, ctypes.addressof(registers))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return ctypes.c_longlong(registers[10]).value, child

found = {"attach": of(libc.ptrace(ATTACH, 1, 0, 0)), "seize": of(libc.ptrace(SEIZE, 1, 0, 0))}
kept = ctypes.create_string_buffer(8)
memory = (ctypes.c_ulonglong * 2)(ctypes.addressof(kept), 8)
found["own memory"] = libc.process_vm_readv(os.getpid(), memory, 1, memory, 1, 0)
found["read"] = of(libc.process_vm_readv(1, memory, 1, memory, 1, 0))
found["write"] = of(libc.process_vm_writev(1, memory, 1, memory, 1, 0))
child = os.fork()
if child == 0:
    libc.ptrace(TRACEME, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(7)
os.waitpid(child, 0)
found["suspend"] = of(libc.ptrace(SETOPTIONS, child, 0, SUSPEND_SECCOMP))
libc.ptrace(CONT, child, 0, 0)
found["own child"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if os.uname().machine == "x86_64":
    value, child = turned_into(39, 0, 0)
    found["turned into getpid"] = value == child
    found["turned into keyctl"] = turned_into(250, 0, ctypes.c_ulong(-3).value)[0]
    found["turned into socket"] = turned_into(41, 40, 1)[0]
print(json.dumps(found))
"""


@pytest.fixture
def traced(here: Place) -> dict[str, object]:
    (here.work / "tracer.py").write_text(TRACER)
    here.own()
    report = here.launch("{python}", "tracer.py", spec={"allow_ptrace": True})
    assert report["code"] == 0, report
    found: dict[str, object] = json.loads(report["out"])
    return found


def test_a_session_that_traces_its_own_cannot_trace_what_holds_it_nor_turn_the_filter_off(traced: dict[str, object]) -> None:
    assert (traced["own child"], traced["own memory"]) == (7, 8), "tracing does not work at all, so nothing was shown"
    for name in ("attach", "seize", "read", "write", "suspend"):
        assert traced[name] == "Operation not permitted", name


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="a traced call is changed by other means there")
def test_a_call_that_a_tracer_changes_is_filtered_as_what_it_became(traced: dict[str, object]) -> None:
    assert traced["turned into getpid"], "the tracer did not change the call, so nothing was shown"
    assert (traced["turned into keyctl"], traced["turned into socket"]) == (-1, -97)

"""Giving up power for good: capabilities, new privileges, core dumps of secrets, Landlock, seccomp.

The one door to python-prctl, which is optional (GPL, built from source); without it the same calls go through libc. The choice is
made when this module is imported, and both ways pass the same tests. Order matters and is argued in `plan`.
"""

import os
import stat
import struct

from amem.sandbox import calls

try:
    import prctl as _library
except ImportError:
    _library = None

LIBRARY = _library is not None

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 28, 38, 47, 4
# noroot, no setuid fix-up, no keep-caps, no ambient raise: each with its lock.
_SECUREBITS = 0b1110_1111
_KEYCTL_JOIN_SESSION_KEYRING = 1
_SECCOMP_SET_MODE_FILTER = 1
_CAPABILITY_VERSION_3 = 0x20080522
_LANDLOCK_RULE_PATH_BENEATH = 1
_LANDLOCK_OF_FILE = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # execute, write, read, truncate, ioctl


def parent_death(number: int) -> None:
    """Ask for a signal when the thread that forked this process ends."""
    if _library is not None:
        _library.set_pdeathsig(number)
    else:
        calls.prctl(PR_SET_PDEATHSIG, number)


def undumpable() -> None:
    """Close this process's memory, environment, root and descriptors to others of the same user, in /proc and to ptrace."""
    if _library is not None:
        _library.set_dumpable(0)
    else:
        calls.prctl(PR_SET_DUMPABLE, 0)


def no_new_privileges() -> None:
    """From here on no exec gains anything: set-user-id bits and file capabilities are void."""
    if _library is not None:
        _library.set_no_new_privs(1)
    else:
        calls.prctl(PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Empty every capability set of this process, the bounding set first, and lock the securebits."""
    calls.prctl(PR_SET_SECUREBITS, _SECUREBITS)
    if _library is not None:
        _library.capbset.limit()
    else:
        for capability in range(64):
            try:
                calls.prctl(PR_CAPBSET_DROP, capability)
            except OSError:
                break  # EINVAL: past the last one this kernel has
    calls.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)  # python-prctl has no ambient set
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    calls.call(calls.CAPSET, header, bytes(24), name="capset")


def adopt_orphans() -> None:
    """Become the parent of every orphan below this process (PR_SET_CHILD_SUBREAPER)."""
    calls.prctl(PR_SET_CHILD_SUBREAPER, 1)


def join_new_keyring() -> None:
    """Leave the session keyring of the launcher, which may hold the owner's keys. A kernel without keyrings has nothing to leave."""
    try:
        calls.call(calls.KEYCTL, _KEYCTL_JOIN_SESSION_KEYRING, None, name="keyctl")
    except OSError as error:
        if error.errno != 38:  # ENOSYS
            raise


def scrub_arguments() -> None:
    """Zero argv and environ of this process, and Python's copy of the environment, which may hold the owner's keys.

    /proc/PID/cmdline is readable whatever PR_SET_DUMPABLE says (measured on 6.18); the copy is the second layer below it.
    """
    for value in os.environ._data.values():  # type: ignore[attr-defined]
        if len(value) > 1:  # shorter ones are shared by the whole interpreter
            calls.zero(id(value) + bytes.__basicsize__ - 1, len(value))
    stat = os.open("/proc/self/stat", os.O_RDONLY | os.O_CLOEXEC)
    fields = os.read(stat, 4096).rpartition(b")")[2].split()
    os.close(stat)
    arguments, arguments_end, environment, environment_end = (int(text) for text in fields[45:49])
    for start, end in ((arguments, arguments_end), (environment, environment_end)):
        if 0 < start < end:
            calls.zero(start, end - start)


def landlock(handled: int, scoped: int, rules: tuple[tuple[str, int], ...]) -> None:
    """Allow the `handled` kinds of writing beneath the named paths only. A path that is not there gets no rule."""
    record = struct.pack("=QQQ", handled, 0, scoped)
    size = len(record) if scoped else 8  # older kernels know only the first field
    ruleset = calls.call(calls.LANDLOCK_CREATE_RULESET, record, calls.Word(size), 0, name="landlock")
    for path, access in rules:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            access &= _LANDLOCK_OF_FILE  # the kernel refuses what only a folder can allow
        rule = struct.pack("=Qi", access, fd)
        calls.call(calls.LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, rule, 0, name=f"landlock {path}")
        os.close(fd)
    calls.call(calls.LANDLOCK_RESTRICT_SELF, ruleset, 0, name="landlock")
    os.close(ruleset)


def landlock_abi() -> int:
    """The Landlock version of this kernel; 0 where it has none or it is switched off at boot."""
    try:
        return calls.call(calls.LANDLOCK_CREATE_RULESET, None, calls.Word(0), 1)
    except OSError:
        return 0


def filter_calls(program: bytes) -> None:
    """Install a seccomp filter (an array of struct sock_filter). Needs no_new_privileges first."""
    code, address = calls.buffer(program)
    record = struct.pack("=HxxxxxxQ", len(program) // 8, address)
    calls.call(calls.SECCOMP, _SECCOMP_SET_MODE_FILTER, 0, record, name="seccomp")
    del code  # it had to stay where it was until here

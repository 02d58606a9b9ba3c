"""Whether a sandbox can be made here, how strong it would be, and what to do about it.

Runs the true sequence of system calls, start to exec, in a child with a time limit; a distribution's name proves nothing. Changes nothing
on the machine. `amem doctor` prints the rows; a test that cannot run prints the same reasons.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from typing import Literal, NamedTuple

from amem.errors import SandboxError
from amem.sandbox import causes, host, privileges, scope, seccomp, surroundings
from amem.sandbox.child import fork_stage
from amem.sandbox.spec import HOME, Bind, Limits, SandboxSpec, base_env

State = Literal["ok", "weak", "missing", "not_proven"]

OLDEST_KERNEL = (5, 12)
"""mount_setattr(2) with idmapped mounts."""
_TRIED_S = 10.0
"""How long making a sandbox, and the end of what runs in it, are waited for."""
_MOST_PRINTED = 4096


class Check(NamedTuple):
    """One row."""

    area: str
    name: str
    state: State
    why: str
    fix: str = ""
    """One command or sentence; empty where nothing needs mending."""


def checks() -> list[Check]:
    """Every row about the sandbox; the one called "user namespaces" is the launch itself."""
    launch = launches()
    return [
        _kernel(),
        launch,
        _apparmor(launch),
        _namespaces_left(),
        _filter(),
        _landlock(),
        _root(),
        _subordinate_ids(),
        _cgroup(),
        _capabilities_door(),
    ]


def launches() -> Check:
    """Make a whole sandbox and run `true` in it."""
    name = "user namespaces"
    try:
        code, _ = _tried(("true",), (), _TRIED_S)
    except SandboxError as error:
        return Check("backend", name, "missing", error.message, error.hint if error.hint not in (None, "amem doctor") else "")
    if code != 0:
        return Check("backend", name, "missing", f"a sandbox was made, but `true` ended with {code} in it", "report this")
    return Check("backend", name, "ok", "a whole sandbox was made and a program ran in it")


def said(argv: tuple[str, ...], shown: tuple[str, ...], timeout_s: float) -> str:
    """What a program that was found on the owner's search path prints; empty where it cannot be run. It runs in a sandbox: a folder of that
    path may lie in a tree that a session has written (an active `.venv`)."""
    try:
        return _tried(argv, shown, timeout_s)[1].decode(errors="replace")
    except SandboxError:
        return ""


def _tried(argv: tuple[str, ...], shown: tuple[str, ...], timeout_s: float) -> tuple[int, bytes]:
    """The exit code and what was printed first by a program in a sandbox of its own, with these paths shown. Raises SandboxError."""
    surroundings.check_umask()  # before a folder is made that could not be entered
    printed = bytearray()
    stage = fork_stage()
    base = os.path.realpath(tempfile.mkdtemp(prefix="amem-doctor-"))
    try:
        for folder in ("work", "home"):
            os.mkdir(f"{base}/{folder}", 0o700)
        env = tuple(base_env({}, HOME, "agent", surroundings.search_path()).items())
        spec = SandboxSpec(
            argv=argv, env=env, workdir=f"{base}/work", cwd=f"{base}/work", home=f"{base}/home", port=7431,
            binds=tuple(Bind(path, path) for path in shown),
        )  # fmt: skip
        running = stage.start(spec, timeout_s=_TRIED_S)
        code = running.wait(lambda stream, data: printed.extend(data[: _MOST_PRINTED - len(printed)]), timeout_s)
        os.close(running.listener_fd)
    finally:
        stage.close()
        shutil.rmtree(base, ignore_errors=True)
    return code, bytes(printed)


def _kernel() -> Check:
    release = os.uname().release
    numbers = tuple(int(part) for part in release.split("-")[0].split("+")[0].split(".")[:2] if part.isdigit())
    if numbers >= OLDEST_KERNEL:
        return Check("backend", "kernel", "ok", f"Linux {release}")
    return Check("backend", "kernel", "missing", f"Linux {release}: {causes.OLD_KERNEL.why}", causes.OLD_KERNEL.fix)


def _apparmor(launch: Check) -> Check:
    """Whether it is what stops a launch, and the path that a profile for this very install names.

    The switch alone proves nothing: root is free of it, a profile may be, and a profile can forbid without it.
    """
    name, path = "AppArmor", program_path()
    switch, label = f"{_switch()} {_is(causes.read(causes.APPARMOR))}", causes.confinement() or "none that confines it"
    if launch.fix not in (causes.BY_APPARMOR.fix, causes.BY_PROFILE.fix):
        return Check("backend", name, "ok", f"not in the way ({switch}; this process's profile: {label}); a profile would name {path}")
    why = f"in the way ({switch}; this process's profile: {label}); a profile must name {path}, the real path of this program"
    if os.path.basename(path) == "__main__.py":
        return Check("backend", name, "missing", f"{why}: `python -m amem` can have none", "start it as `amem`")
    if os.access(os.path.dirname(path), os.W_OK) and os.geteuid() != 0:
        why += " (you may write there, so whatever runs as you could use the profile; a path that root owns is better)"
    return Check("backend", name, "missing", why, launch.fix)


def _is(value: str) -> str:
    return f"is {value}" if value else "does not exist"


def _switch() -> str:
    return causes.APPARMOR.removeprefix("/proc/sys/").replace("/", ".")


def _subordinate_ids() -> Check:
    why = (
        "not needed: a session maps one id, which the kernel lets anybody do; /etc/subuid, newuidmap and setuid programs have no part in it"
    )
    return Check("backend", "subordinate ids", "ok", why)


def program_path() -> str:
    """The path an AppArmor profile must match: that of the script itself, links resolved; not the interpreter's."""
    return os.path.realpath(sys.argv[0] if os.sep in sys.argv[0] else shutil.which(sys.argv[0]) or sys.argv[0])


def _namespaces_left() -> Check:
    limit = causes.read(causes.MAX_USER)
    if limit == "0":
        return Check("backend", "namespace limit", "missing", causes.NONE_ALLOWED.why, causes.NONE_ALLOWED.fix)
    return Check("backend", "namespace limit", "ok", f"user.max_user_namespaces is {limit or 'not set'}")


def _filter() -> Check:
    machine = os.uname().machine
    if machine not in seccomp.ARCHES:
        return Check(
            "backend",
            "seccomp",
            "weak",
            f"no table of system calls for {machine}: the filter is left out",
            f"use {' or '.join(seccomp.ARCHES)}",
        )
    if not os.path.exists("/proc/sys/kernel/seccomp/actions_avail"):
        return Check("backend", "seccomp", "missing", "this kernel has no seccomp filters", "use a kernel with CONFIG_SECCOMP_FILTER")
    return Check("backend", "seccomp", "ok", f"{len(seccomp.ARCHES[machine].denied)} calls are refused on {machine}")


def _landlock() -> Check:
    abi = privileges.landlock_abi()
    if abi == 0:
        return Check(
            "backend",
            "Landlock",
            "weak",
            "not in this kernel or switched off at boot: writing is bounded by mounts alone",
            "boot with lsm=landlock,…",
        )
    if abi < 6:
        return Check("backend", "Landlock", "ok", f"version {abi}; abstract sockets and signals are bounded by namespaces alone")
    return Check("backend", "Landlock", "ok", f"version {abi}")


def _root() -> Check:
    if os.geteuid() != 0:
        return Check("backend", "user", "ok", "an ordinary user, with no powers to lose")
    base = os.path.realpath(tempfile.mkdtemp(prefix="amem-doctor-"))
    try:
        idmapped = host.can_idmap(((base, 0, 0),))
    finally:
        os.rmdir(base)
    if idmapped:
        return Check("backend", "user", "ok", "root; a session runs under an id of its own through idmapped mounts")
    return Check(
        "backend",
        "user",
        "weak",
        "root, and no idmapped mounts on this file system: a session stays root outside, without powers",
        "run amem as an ordinary user",
    )


def _cgroup() -> Check:
    """Whether a whole session's memory can be bounded by the kernel."""
    name = "cgroup"
    version = "2" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "1" if os.path.isdir("/sys/fs/cgroup") else "not mounted"
    if scope.bus(os.environ) and _takes_into_scope():
        return Check("backend", name, "ok", f"version {version}; your service manager puts a session into a scope with its limits")
    why = (
        f"version {version}, and no service manager of yours that makes a scope with a bound on memory: the kernel bounds the memory of "
        "each process and the number of tasks; the memory of a whole session is looked at once a second, and a session above it is ended"
    )
    return Check("backend", name, "weak", why)


def _takes_into_scope() -> bool:
    """Try it on a process of no use, and look where that is then."""
    with subprocess.Popen(["sleep", "30"], env={"PATH": surroundings.HOST_PATH}, stdin=subprocess.DEVNULL) as process:
        try:
            name = f"doctor-{process.pid}"
            if not scope.hold(name, process.pid, Limits(), os.environ):
                return False
            scope.joined(name, process.pid, os.environ)
            memory = scope.memory(name, process.pid)  # a manager takes the limit, and says nothing, where it was not given the controller
            if memory is not None:
                memory.close()
            return memory is not None
        finally:
            process.kill()


def _capabilities_door() -> Check:
    way = "python-prctl" if privileges.LIBRARY else "libc (python-prctl is not installed, and not needed)"
    return Check("backend", "capabilities", "ok", f"dropped through {way}")

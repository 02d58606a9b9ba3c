"""Hold the memory and tasks of a whole session with a cgroup, where the user has a service manager that makes one.

A transient scope, as `systemd-run --user --scope -p MemoryMax=… -p TasksMax=…` makes it; but systemd-run can only put a program into it
that it starts itself, and the stage runs already, so the same call of the manager is made with the stage's pid. Without a manager
the bounds of `plan` and PID 1's own look at the session are all there is. Loaded only where a user's bus is there.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

from amem.sandbox import surroundings
from amem.sandbox.spec import Limits
from amem.typed import Mapping

_TIMEOUT_S = 5.0
_LOOK_S = 0.002
_MANAGER = (
    "busctl", "--user", "--quiet", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
)  # fmt: skip
_OUTSIDE = 1
"""The stage, which is in the scope and not in the sandbox."""


def bus(environment: Mapping[str, str]) -> bool:
    """Whether the user has a bus of their own, on which a service manager may answer."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    return runtime.startswith("/") and os.path.exists(f"{runtime}/systemd/private")


def name(session: str) -> str:
    """The scope of a session."""
    return f"amem-{session}.scope"


def command(session: str, pids: tuple[int, ...], limits: Limits) -> list[str]:
    """What makes the scope around these processes and all that they start."""
    properties = {
        "Description": ("s", f"amem session {session}"),
        "MemoryMax": ("t", limits.memory_bytes),
        "MemorySwapMax": ("t", 0),
        "TasksMax": ("t", limits.processes + _OUTSIDE),
        "Delegate": ("b", "true"),  # else the manager takes no process in later
        "CollectMode": ("s", "inactive-or-failed"),
    }
    words = [f"{key} {kind} {value}".split(" ", 2) for key, (kind, value) in properties.items()]
    return [
        *_MANAGER, "StartTransientUnit", "ssa(sv)a(sa(sv))", name(session), "fail", str(len(words) + 1),
        *(word for row in words for word in row), "PIDs", "au", str(len(pids)), *map(str, pids), "0",
    ]  # fmt: skip


def hold(session: str, stage: int, limits: Limits, environment: Mapping[str, str]) -> bool:
    """Put a stage, and the PID 1 it may have made already, into a scope of their own. False where that cannot be had."""
    if not bus(environment) or shutil.which("busctl", path=surroundings.HOST_PATH) is None:
        return False
    return _ask(command(session, (stage, *_children(stage)), limits), environment)


def _ask(command: list[str], environment: Mapping[str, str]) -> bool:
    try:
        done = subprocess.run(
            command, env={**environment, "PATH": surroundings.HOST_PATH}, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def joined(session: str, stage: int, environment: Mapping[str, str]) -> bool:
    """Wait until a stage and what it made are in their scope, or have ended; False where that takes too long.

    The manager answers before it has moved anything, and what a process starts before it is moved stays outside for good: no harness may
    start earlier. A PID 1 that was made while the stage was being moved is handed in after it.
    """
    until, late = time.monotonic() + _TIMEOUT_S, [stage]
    while outside := [pid for pid in (stage, *_children(stage)) if not (holds(session, pid) or _ended(pid))]:
        if time.monotonic() > until:
            return False
        if stage not in outside and outside != late:
            late = outside
            words = ["AttachProcessesToUnit", "ssau", name(session), "", str(len(late)), *map(str, late)]
            _ask([*_MANAGER, *words], environment)
        time.sleep(_LOOK_S)
    return True


class Memory:
    """Tells when the kernel killed a process of a scope for its memory: it kills one, and what is left of a session goes on."""

    def __init__(self, events: int) -> None:
        self._events = events

    def fileno(self) -> int:
        """What polls as urgent when something happened."""
        return self._events

    def ran_out(self) -> bool:
        """Whether it has killed one by now."""
        try:
            counts = dict(line.split() for line in os.pread(self._events, 4096, 0).decode().splitlines())
        except OSError:  # the scope is gone
            return False
        return int(counts.get("oom_kill", 0)) > 0

    def close(self) -> None:
        """Look no more."""
        os.close(self._events)


def memory(session: str, pid: int, cgroups: str = "/sys/fs/cgroup") -> Memory | None:
    """The memory of the scope that a process of the session is in; None where that cannot be watched (no cgroup v2)."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        path = next(line.removeprefix("0::") for line in lines if line.startswith("0::") and line.endswith(f"/{name(session)}"))
        return Memory(os.open(f"{cgroups}{path}/memory.events", os.O_RDONLY | os.O_CLOEXEC))
    except (OSError, StopIteration):
        return None


def holds(session: str, pid: int) -> bool:
    """Whether a process is in the session's scope."""
    try:
        return any(line.endswith(f"/{name(session)}") for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())
    except OSError:
        return False


def _ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


def _children(pid: int) -> tuple[int, ...]:
    try:
        return tuple(int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except OSError:
        return ()

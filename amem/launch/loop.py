"""One task after another (`amem work --loop`): a process for each, and how long to wait between them.

Each task runs in a process of its own that this one forks, because a sandbox's stage must come from a process without threads and without
a key: this one keeps no thread, reads no credential, and does nothing but wait. Settings are read anew for each task. A first Ctrl-C ends
the loop after the current task, a second one ends that too; a loop that is killed takes its worker with it.
"""

import os
import random
import signal
import time
from collections.abc import Callable

from amem import exits
from amem.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from amem.sandbox.child import Stage

PATIENCE_S = 600.0
"""A worker that finds nothing asks on for so long before it makes room for one with the settings of that day: starting costs seconds."""
HOPELESS = frozenset({exits.USAGE, exits.NO_SANDBOX, exits.NOT_EXECUTABLE, exits.NO_PROGRAM})
"""Exit codes that another try does not change: the command line or the machine is wrong."""
MOST_FAILURES = 10
"""Running, before the loop gives up: a ledger that is down comes back, a broken machine does not."""
LONGEST_WAIT_S = 60.0
_ASKED_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNALS = frozenset({*_ASKED_TO_END, signal.SIGCHLD})


class Pace:
    """How long to wait after a worker's exit code, and when to end. Pure."""

    def __init__(self, idle_s: float, most_tasks: int) -> None:
        self._idle_s = idle_s
        self._most = most_tasks
        self._tasks = 0
        self._returned = 0
        """Tasks that went back to the pool, in all."""
        self._running = 0
        """Workers running that did not complete a task."""
        self._failures = 0

    def after(self, code: int) -> float | None:
        """Seconds until the next worker starts; None when there shall be none."""
        self._failures = self._failures + 1 if code not in (exits.DONE, exits.ANSWER_IS_NO, exits.NO_HANDOFF) else 0
        self._running = 0 if code in (exits.DONE, exits.ANSWER_IS_NO) else self._running + 1
        self._tasks += code in (exits.DONE, exits.NO_HANDOFF)
        self._returned += code == exits.NO_HANDOFF
        if code in HOPELESS or code == exits.INTERRUPTED or self._failures >= MOST_FAILURES or 0 < self._most <= self._tasks:
            return None
        if code == exits.ANSWER_IS_NO:
            return self._idle_s
        return min(2.0 ** (self._running - 1), LONGEST_WAIT_S) if self._running else 0.0

    def told(self, wait_s: float) -> str | None:
        """What to say of the wait after a failure; None after anything else."""
        if not self._failures:
            return None
        return f"failed {self._failures} of {MOST_FAILURES} times running; the next try is in {wait_s:.0f} s, and Ctrl-C ends the loop"

    def exit(self, last: int) -> int:
        """The loop's own exit code: a failure's where that ended it, else whether what it took was done."""
        if last in HOPELESS or last == exits.INTERRUPTED or self._failures:
            return last
        if self._returned:
            return exits.NO_HANDOFF
        return exits.DONE if self._tasks else exits.ANSWER_IS_NO


def loop(idle_s: float, most_tasks: int, note: Callable[[str], None]) -> "Stage | int":
    """Fork workers until the end. In the parent the exit code; in each worker its stage: the caller goes on to do one task."""
    pace, parent = Pace(idle_s, most_tasks), os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    while True:
        pid = os.fork()
        if pid == 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return _begin(parent)
        code, asked = _wait_for(pid)
        wait_s = pace.after(code)
        if wait_s is not None and not asked and (sentence := pace.told(wait_s)) is not None:
            note(sentence)
        if wait_s is None or asked or _asked_meanwhile(wait_s * random.uniform(0.9, 1.1)):  # workers shall not all come at once
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return pace.exit(code)


def _begin(parent: int) -> "Stage":
    """A worker's first acts, before anything is read: it ends with the loop, and has a stage of its own."""
    from amem.sandbox import privileges
    from amem.sandbox.child import fork_stage

    privileges.parent_death(signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(exits.ERROR)
    return fork_stage()


def _wait_for(pid: int) -> tuple[int, bool]:
    """The worker's exit code, and whether somebody asked for the end meanwhile."""
    interrupts = 0
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return _code(status, struck=interrupts > 1), interrupts > 0
        number = signal.sigwaitinfo(_SIGNALS).si_signo
        if number == signal.SIGINT:
            interrupts += 1
        elif number != signal.SIGCHLD:
            interrupts = 2
        if interrupts >= 2 and number != signal.SIGCHLD:
            os.kill(pid, signal.SIGTERM)


def _code(status: int, *, struck: bool) -> int:
    """A worker's exit code. One that was told to end before it could take a task has done nothing, and failed at nothing."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    return exits.ANSWER_IS_NO if struck and code == -signal.SIGTERM else exits.ERROR


def _asked_meanwhile(wait_s: float) -> bool:
    """Wait so long; True as soon as somebody asks for the end."""
    until = time.monotonic() + wait_s
    while (left := until - time.monotonic()) > 0:
        found = signal.sigtimedwait(_SIGNALS, left)
        if found is not None and found.si_signo in _ASKED_TO_END:
            return True
    return False

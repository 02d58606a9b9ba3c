"""The stage: a small process forked before anything else is loaded, in which the sandbox will be made.

`fork_stage` must be the launcher's first act: before threads, an event loop, click, settings, and before any key is read, so that none of
it is in the memory of PID 1. Importing this costs next to nothing; what the stage needs it imports itself, after the fork.
"""

import _socket
import os
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amem.sandbox.plan import Step
    from amem.sandbox.run import Running
    from amem.sandbox.spec import SandboxSpec


class Stage:
    """The launcher's side of a stage that waits for its plan."""

    def __init__(self, pid: int, link: _socket.socket, life: int) -> None:
        self.pid = pid
        self.link = link
        """Orders and answers; its closing ends the sandbox."""
        self.life = life
        """A pipe nobody writes to; its closing tells the stage that the launcher is gone."""

    def start(self, spec: "SandboxSpec", plan: "tuple[Step, ...]", timeout_s: float = 30.0) -> "Running":
        """Build the sandbox and start the harness; use a stage once. Raises amem.errors.SandboxError with the step and its cause."""
        from amem.sandbox import run

        return run.start(self, spec, plan, timeout_s)

    def close(self) -> None:
        """Let the stage go, with everything it made. Safe to call twice."""
        if self.life >= 0:
            self.link.close()
            os.close(self.life)
            self.life = -1
            self._reap()

    def leave(self) -> None:
        """Let a stage go whose sandbox has ended: it ends by itself, and is collected here or when the next one is forked."""
        if self.life >= 0:
            self.link.close()
            os.close(self.life)
            self.life = -1
            _left.append(self.pid)

    def _reap(self) -> None:
        """Collect the stage; give up after a while, should a mount of its plan hang in the kernel."""
        import select

        pidfd = os.pidfd_open(self.pid)
        try:
            if select.select([pidfd], [], [], 5.0)[0]:
                os.waitpid(self.pid, 0)
        finally:
            os.close(pidfd)


_left: list[int] = []
"""Stages that were left to end by themselves."""


def collect() -> None:
    """Reap the stages that have ended since they were left."""
    for pid in list(_left):
        if os.waitpid(pid, os.WNOHANG)[0]:
            _left.remove(pid)


def fork_stage(before: Callable[[], None] | None = None) -> Stage:
    """Fork the stage. `before` runs in the stage ahead of its imports; tests use it to shape the stage."""
    collect()
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    life_read, life_write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            os.close(life_write)
            if before is not None:
                before()
            from amem.sandbox import stage

            stage.main(theirs, life_read)
        except BaseException:  # the outer edge of the stage
            import traceback

            traceback.print_exc()
        finally:
            os._exit(125)
    theirs.close()
    os.close(life_read)
    return Stage(pid, ours, life_write)

"""The stage: a small process forked before anything else is loaded, in which the sandbox will be made.

`fork_stage` must be the launcher's first act: before threads, an event loop, click, settings, and before any key is read, so that none of
it is in the memory of PID 1. Importing this costs next to nothing; what the stage needs it imports itself, after the fork.
"""

import _socket
import errno
import gc
import os

from amem.sandbox.ids import RESUME_FOREGROUND, START
from amem.typed import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from amem.sandbox.plan import Step
    from amem.sandbox.run import Running
    from amem.sandbox.spec import SandboxSpec


class Stage:
    """The launcher's side of a stage that waits for its plan."""

    def __init__(self, pid: int, link: _socket.socket, life: int, pidfd: int = -1) -> None:
        self.pid = pid
        self.link = link
        """Orders and answers; its closing ends the sandbox."""
        self.life = life
        """A pipe nobody writes to; its closing tells the stage that the launcher is gone."""
        self._pidfd = pidfd
        """Of a nursery's child, which is the nursery's to reap; -1 for one of our own."""
        self.moved = False
        """A service manager was asked to put it into a cgroup."""
        self._ordered = False
        self._confines = True

    def order(self, spec: "SandboxSpec", plan: "tuple[Step, ...] | None" = None) -> None:
        """Have the sandbox built, all but the start of the harness, which waits for `start`; use a stage once. Raises SandboxError.

        Without a plan the stage looks at the host and makes it: that costs the launcher neither time nor modules.
        """
        import marshal

        from amem.sandbox.spec import plain

        steps = None if plan is None else tuple((step.verb, step.args) for step in plan)
        message: Any = (steps, plain(spec._replace(moved=self.moved)))
        body = marshal.dumps(message)
        try:
            self.link.sendall(len(body).to_bytes(4, "little") + body)
        except (BrokenPipeError, ConnectionResetError) as error:
            from amem.errors import SandboxError

            raise SandboxError("stage", "the stage process is gone") from error
        self._ordered, self._confines = True, steps is None or all(verb != "fork" for verb, _ in steps)

    def start(self, spec: "SandboxSpec", plan: "tuple[Step, ...] | None" = None, timeout_s: float = 30.0) -> "Running":
        """Order the sandbox, if that was not done, and start its harness. Raises amem.errors.SandboxError with the step and its cause."""
        if not self._ordered:
            self.order(spec, plan)
        terminal = None
        if spec.interactive and os.isatty(0):
            from amem.sandbox.terminal import Terminal

            terminal = Terminal(0)  # its modes and who has it are read before the harness can change them
        try:
            self.link.send(bytes([START | (RESUME_FOREGROUND if terminal is not None and terminal.lent else 0)]))
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                raise
            # Whoever is gone has left word why.
        from amem.sandbox import run  # while it starts

        return run.start(self, spec, timeout_s, terminal, confined=self._confines)

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
            if self._pidfd < 0:
                _left.append(self.pid)
            else:
                os.close(self._pidfd)

    def _reap(self) -> None:
        """Collect the stage; give up after a while, should a mount of its plan hang in the kernel."""
        import select

        own = self._pidfd < 0
        pidfd = os.pidfd_open(self.pid) if own else self._pidfd
        try:
            if select.select([pidfd], [], [], 5.0)[0] and own:
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
            gc.disable()  # nothing that it makes is garbage, and looking for some is a tenth of what it loads
            ours.close()
            os.close(life_write)
            if before is not None:
                before()
            from amem.sandbox import stage

            stage.main(theirs, life_read)
        except KeyboardInterrupt:  # before it stands aside: the launcher has it too, and says what there is to say
            pass
        except BaseException:  # the outer edge of the stage
            import traceback

            traceback.print_exc()
        finally:
            os._exit(125)
    theirs.close()
    os.close(life_read)
    return Stage(pid, ours, life_write)


class Nursery:
    """A process that forks stages for a launcher which has threads and keys by then, and of which no copy may be PID 1's."""

    def __init__(self, pid: int, link: _socket.socket) -> None:
        self._pid = pid
        self._link = link

    def stage(self) -> Stage:
        """A stage as fresh as the nursery is. Raises amem.errors.SandboxError when the nursery is gone."""
        from amem.errors import SandboxError

        try:
            self._link.sendall(b"s")
            data, ancillary, _, _ = self._link.recvmsg(4, _socket.CMSG_SPACE(3 * 4))
        except OSError as error:
            raise SandboxError("stage", "the process that makes stages is gone") from error
        fds = [int.from_bytes(raw[at : at + 4], "little") for _, _, raw in ancillary for at in range(0, len(raw), 4)]
        if len(data) < 4 or len(fds) < 3:
            raise SandboxError("stage", "the process that makes stages could not make one")
        return Stage(int.from_bytes(data, "little"), _socket.socket(fileno=fds[0]), fds[1], fds[2])

    def close(self) -> None:
        """Let it go; stages that it made stay as they are."""
        self._link.close()
        os.waitpid(self._pid, 0)


def fork_nursery() -> Nursery:
    """Fork a nursery, as early as a stage: it keeps nothing of the launcher's but what was loaded by then."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            _nurse(theirs.detach())
        except KeyboardInterrupt:
            pass
        except BaseException:  # the outer edge of the nursery
            import traceback

            traceback.print_exc()
        finally:
            os._exit(125)
    theirs.close()
    return Nursery(pid, ours)


def _nurse(link: int) -> None:
    """Fork a stage for each byte until the launcher is gone. Never returns."""
    from amem.sandbox import host, network, stage  # noqa: F401  (what each stage would load to plan)

    # The launcher's other stages end when it lets go of their links: none may stay open here.
    os.closerange(3, link)
    os.closerange(link + 1, os.sysconf("SC_OPEN_MAX"))
    orders = _socket.socket(fileno=link)
    stage.stand_aside()
    stage.forget_children()
    while orders.recv(1):
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        life_read, life_write = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            for each in (ours, orders):
                each.close()
            os.close(life_write)
            stage.main(theirs, life_read)
        pidfd = os.pidfd_open(pid)
        theirs.close()
        network.send_fds(orders, pid.to_bytes(4, "little"), [ours.fileno(), life_write, pidfd])
        ours.close()
        for fd in (life_read, life_write, pidfd):
            os.close(fd)
    os._exit(0)

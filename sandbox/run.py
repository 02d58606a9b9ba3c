"""The launcher's side of a running sandbox: start it, wait for it, pass signals on, hand the terminal back, end it.

Single-threaded and poll-based, for the launcher's main thread; other threads of the launcher may serve the egress meanwhile.
"""

import errno
import os
import select
import signal
import socket
import struct
import threading
import time
from contextlib import contextmanager, nullcontext, suppress

from amem.errors import SandboxError
from amem.sandbox import causes
from amem.sandbox.child import Stage
from amem.sandbox.ids import RESUME_FOREGROUND
from amem.sandbox.spec import SOCKETS, SandboxSpec
from amem.typed import TYPE_CHECKING, Callable, Iterator

if TYPE_CHECKING:
    from amem.sandbox.scope import Memory
    from amem.sandbox.terminal import Terminal

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""What the launcher receives and the harness gets."""

GRACE_S = 3.0
"""What a harness gets to end by itself when its time is up."""

ENDING = frozenset((signal.SIGTERM, signal.SIGHUP))
"""Signals that ask a session to end; where there is no terminal, Ctrl-C does so too."""
PATIENCE_S = 10.0
"""What a harness that was asked to end has for its last hooks. Some take no notice while a tool runs (Gemini CLI 0.61, 2026-11)."""

_TERMINAL_POLL_S = 0.3  # bash sends no SIGCONT on `fg` of a job that runs in the background
_MESSAGE_LIMIT = 1 << 20
_MOST_FDS = 253  # what one message can carry (SCM_MAX_FD)


def start(stage: Stage, spec: SandboxSpec, timeout_s: float, terminal: "Terminal | None", *, confined: bool) -> "Running":
    """What `Stage.start` hands back, once the harness that was asked for runs."""
    running = Running(stage, socket.socket(fileno=stage.link.detach()), spec, terminal, confined=confined)
    try:
        running._await_start(time.monotonic() + timeout_s)
    except BaseException:
        running.kill()
        for fd in (running.listener_fd, *running.host_port_fds, *running.socket_fds):
            if fd >= 0:
                os.close(fd)
        raise
    return running


class Running:
    """A sandbox with a harness in it."""

    def __init__(
        self, stage: Stage, link: socket.socket, spec: SandboxSpec, terminal: "Terminal | None" = None, *, confined: bool = True
    ) -> None:
        self.listener_fd = -1
        """Listening socket of the sandbox's network namespace, the caller's to close or to hand on; -1 where the spec wants none."""
        self.host_port_fds: tuple[int, ...] = ()
        """Listening sockets inside, one for each of the spec's `host_ports`; the caller's, like the listener."""
        self.socket_fds: tuple[int, ...] = ()
        """Unconnected sockets of the inside, where the spec names `ports`; the caller's."""
        self.stdout_fd: int | None = None
        self.stderr_fd: int | None = None
        self.pid = -1
        """Host pid of PID 1."""
        self.warnings: tuple[str, ...] = ()
        """What could not be protected, in sentences."""
        self.exec_errno = 0
        """Why the harness was not started (`wait` returns 126 or 127); 0 when it was."""
        self.exit_code: int | None = None
        self.limit: str | None = None
        """The limit that everything inside ran into: `memory`, which ended it, or `processes`."""
        self.memory: Memory | None = None
        """The scope's, where one bounds it; ours to close."""
        self._confined = confined
        self._stage = stage
        self._link = link
        self._passed = (int(spec.listens), len(spec.host_ports), SOCKETS if spec.ports else 0)
        self._terminal = terminal
        self._pidfd = -1
        self._buffer = bytearray()
        self._started = False
        self._linked = True
        self._stopped_by = 0
        self._waiting = False
        self._ends_at: float | None = None
        """When the harness is killed that was asked to end."""
        self._over = False
        """PID 1 is gone, and with it everything inside."""
        self._lock = threading.Lock()  # guards the descriptors against a kill from another thread

    # Messages of PID 1

    def _await_start(self, deadline: float) -> None:
        while not (self.pid >= 0 and (self._started or self.exit_code is not None)):
            if not self._linked:
                raise SandboxError("stage", "it ended without a word")
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._link], [], [], left)[0]:
                raise SandboxError("start", "no answer in time; a mount of the work tree or of a bind may hang")
            self._receive()

    def _receive(self) -> None:
        """Read what is there and act on whole messages."""
        try:
            data, ancillary, _, _ = self._link.recvmsg(65536, socket.CMSG_SPACE(4 * _MOST_FDS))
        except ConnectionResetError:  # PID 1 was killed with an order of ours unread
            data, ancillary = b"", []
        fds = [
            fd
            for level, kind, raw in ancillary
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
            for fd in struct.unpack(f"={len(raw) // 4}i", raw[: len(raw) // 4 * 4])
        ]
        if not data:
            self._linked = False
        self._buffer += data
        while len(self._buffer) >= 4:
            length = int.from_bytes(self._buffer[:4], "little")
            if length > _MESSAGE_LIMIT:
                raise SandboxError("link", "a message that cannot be")
            if len(self._buffer) < 4 + length:
                break
            message = self._buffer[4 : 4 + length].decode(errors="surrogateescape")
            del self._buffer[: 4 + length]
            self._take(message.split("\0"), fds)
        for fd in fds:
            os.close(fd)

    def _take(self, message: list[str], fds: list[int]) -> None:
        match message:
            case ["pid", pid]:
                self.pid, self._pidfd = int(pid), fds.pop(0)
            case ["made"]:
                self._accept(fds)
            case ["running", *warnings]:
                self._started, self.warnings = True, tuple(warnings)
            case ["limit", "memory" | "processes" as name]:
                self.limit = name
            case ["stopped", number]:
                self._stopped_by = int(number)
            case ["exit", code, number]:
                self.exit_code, self.exec_errno = int(code), int(number)
            case ["failed", verb, number, why, name]:
                raise causes.error(verb, int(number), why, name)
            case ["unplanned", step, why, hint]:
                raise SandboxError(step, why, hint=hint or None)
            case _:
                raise SandboxError("link", f"an unknown message: {message[0]}")

    def _accept(self, fds: list[int]) -> None:
        """The listeners, the sockets, then the output pipes of a headless run."""
        own, listeners, sockets = self._passed
        if own:
            self.listener_fd = fds.pop(0)
        self.host_port_fds = tuple(fds.pop(0) for _ in range(listeners))
        self.socket_fds = tuple(fds.pop(0) for _ in range(sockets))
        if len(fds) >= 2:
            self.stdout_fd, self.stderr_fd = fds.pop(0), fds.pop(0)

    # Orders

    def signal(self, number: int) -> None:
        """Send a signal to the harness. Nothing happens once it has ended."""
        self._order(number)

    def _order(self, order: int) -> None:
        try:
            self._link.send(bytes([order]))
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.EBADF):
                raise

    def kill(self) -> None:
        """End everything inside, now. Safe to call twice, and after `wait`.

        Returns when nothing of it is left; from another thread while `wait` runs, it only strikes, and `wait` sees to the rest.
        """
        with self._lock:
            self._strike()
            if self._waiting:
                return
            if self.exit_code is None:
                self.exit_code = 137
            self._link.close()
            self._linked = False
            if self.memory is not None:
                self.memory.close()
                self.memory = None
            (self._stage.leave if self._over else self._stage.close)()
            for fd in (self._pidfd, self.stdout_fd, self.stderr_fd):
                if fd is not None and fd >= 0:
                    os.close(fd)
            self._pidfd = -1
            self.stdout_fd = self.stderr_fd = None

    def _strike(self) -> None:
        if not self._confined:
            with suppress(OSError):
                self._link.shutdown(socket.SHUT_RDWR)  # it ends what it started, and then itself
        elif self._pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    # Waiting

    def wait(self, on_output: Callable[[int, bytes], None] | None = None, timeout_s: float | None = None) -> int:
        """Wait for the harness; everything inside is gone afterwards.

        Returns its exit code, 128+n after a signal, 126 or 127 when it could not be started, 137 when the sandbox was killed.
        Call it from the main thread: signals the launcher receives meanwhile are passed on, and after one that asks for the end there are
        ten seconds. With `on_output` (headless) each piece of output is handed over as (1 or 2, bytes) until both pipes end. `timeout_s`
        bounds the session: past it the harness gets SIGTERM and three seconds, then everything is killed; 124 is returned.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        late = False
        self._waiting = True
        try:
            with _wakeup() as wake, self._terminal.shared() if self._terminal is not None else nullcontext():
                self._loop(wake, on_output, deadline)
                late = self.exit_code is None and self._linked
                if late:
                    self._order(signal.SIGTERM)
                    self._loop(wake, on_output, time.monotonic() + GRACE_S)
            if self.exit_code is None:
                self._strike()
            self._drain(on_output)
            if self.memory is not None:
                self._out_of_memory(self.memory)  # it may have killed the harness itself
        finally:
            self._waiting = False
            self._end(on_output is None)
        return 124 if late else self.exit_code if self.exit_code is not None else 137

    def _loop(self, wake: socket.socket, on_output: Callable[[int, bytes], None] | None, deadline: float | None) -> None:
        terminal = self._terminal
        pipes = self._pipes(on_output)
        poll = select.poll()
        for fd in (wake.fileno(), self._link.fileno(), *pipes):
            poll.register(fd, select.POLLIN)
        if self.memory is not None:
            poll.register(self.memory.fileno(), select.POLLPRI)
        while self.exit_code is None and self._linked:
            if terminal is not None:
                self._attend(terminal)
            ready = dict(poll.poll(_milliseconds(_first(deadline, self._ends_at), terminal)))
            if wake.fileno() in ready:
                for number in wake.recv(512):
                    self._on_signal(number, headless=on_output is not None)
            if self._ends_at is not None and time.monotonic() >= self._ends_at:
                self._ends_at = None
                self._strike()
            if self.memory is not None and self.memory.fileno() in ready and self._out_of_memory(self.memory):
                poll.unregister(self.memory.fileno())
                self._strike()
            if self._link.fileno() in ready:
                self._receive()
            for fd in [fd for fd in pipes if fd in ready]:
                if not _pass(fd, pipes[fd], on_output):
                    poll.unregister(fd)
                    del pipes[fd]
            if deadline is not None and time.monotonic() >= deadline:
                return

    def _out_of_memory(self, memory: "Memory") -> bool:
        if memory.ran_out():
            self.limit = "memory"
        return self.limit == "memory"

    def _attend(self, terminal: "Terminal") -> None:
        """Keep the harness and the terminal in step with the shell that started the launcher."""
        number, self._stopped_by = self._stopped_by, 0
        wants_terminal = number in (signal.SIGTTIN, signal.SIGTTOU)
        if number and not (wants_terminal and terminal.is_ours()):
            terminal.suspend(wants_terminal)
            self._resume(terminal)
        elif number or terminal.came_back():
            self._resume(terminal)

    def _on_signal(self, number: int, *, headless: bool) -> None:
        if number in PASSED_ON:
            self._order(number)
            if self._ends_at is None and (number in ENDING or (headless and number == signal.SIGINT)):
                self._ends_at = time.monotonic() + PATIENCE_S
        elif number == signal.SIGCONT and self._terminal is not None:
            self._resume(self._terminal)

    def _resume(self, terminal: "Terminal") -> None:
        self._order(signal.SIGCONT | (RESUME_FOREGROUND if terminal.lend() else 0))

    def _pipes(self, on_output: Callable[[int, bytes], None] | None) -> dict[int, int]:
        if on_output is None:
            return {}
        return {fd: stream for fd, stream in ((self.stdout_fd, 1), (self.stderr_fd, 2)) if fd is not None}

    def _drain(self, on_output: Callable[[int, bytes], None] | None) -> None:
        """PID 1 ends with the harness and the kernel ends the rest with PID 1; what they wrote is still in the pipes."""
        select.select([self._pidfd], [], [])
        self._over = True
        for fd, stream in self._pipes(on_output).items():
            while _pass(fd, stream, on_output):
                pass

    def _end(self, keep_output: bool) -> None:
        """Close everything; output that nobody drained here stays the caller's to read to the end."""
        kept = (self.stdout_fd, self.stderr_fd)
        if keep_output:
            self.stdout_fd = self.stderr_fd = None
        self.kill()
        if keep_output:
            self.stdout_fd, self.stderr_fd = kept


def _pass(fd: int, stream: int, on_output: Callable[[int, bytes], None] | None) -> bool:
    data = os.read(fd, 65536)
    if data and on_output is not None:
        on_output(stream, data)
    return bool(data)


def _first(*instants: float | None) -> float | None:
    return min((instant for instant in instants if instant is not None), default=None)


def _milliseconds(deadline: float | None, terminal: "Terminal | None") -> int | None:
    waits = [] if deadline is None else [max(0.0, deadline - time.monotonic())]
    if terminal is not None and terminal.in_background:
        waits.append(_TERMINAL_POLL_S)
    return int(min(waits) * 1000) + 1 if waits else None


@contextmanager
def _wakeup() -> Iterator[socket.socket]:
    """Signals as bytes on a socket, each caught one with a handler of ours that does nothing else; all as before at the end.

    Python gives signals to the main thread only; elsewhere the socket stays silent.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    if threading.current_thread() is not threading.main_thread():
        yield ours
        ours.close()
        theirs.close()
        return
    before = {number: signal.signal(number, _noted) for number in (*PASSED_ON, signal.SIGCONT)}
    fd = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    try:
        yield ours
    finally:
        signal.set_wakeup_fd(fd)
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        ours.close()
        theirs.close()


def _noted(number: int, frame: object) -> None:
    """The wakeup descriptor carries it."""

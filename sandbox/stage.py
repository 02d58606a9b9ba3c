"""The stage's own work: wait for a plan, make the trees only the host's root can make, clone PID 1, write its maps, watch over it.

Stays the parent of PID 1 until it ends: the second layer of "nothing outlives the launcher" (the first is PID 1's link). Single-threaded
from beginning to end, which is what makes a raw clone right.
"""

import _signal  # type: ignore[import-not-found]  # `signal` itself pulls in enum
import _socket
import marshal
import os
import select

from amem.sandbox import calls, init, mounts
from amem.sandbox.ids import OUTSIDE_ID

ON_HOST = ("idmap", "clone")
"""The verbs of a plan that the stage itself carries out, before there is a sandbox."""

Steps = tuple[tuple[str, tuple[object, ...]], ...]


def main(link: _socket.socket, life: int) -> None:
    """Wait for one message, make one sandbox, stay until it or the launcher ends. Never returns."""
    _stand_aside()
    context = init.Context(link)
    _make_ready(context)
    message = _receive(link)
    if message is None:
        os._exit(0)
    steps, run, headless = message
    os._exit(_build(context, life, steps, run, headless))


def _make_ready(context: init.Context) -> None:
    """What root will need most likely, made while the launcher still plans. A failure shows when it is needed."""
    if os.geteuid() == 0:
        try:  # noqa: SIM105 (contextlib is not loaded here)
            context.namespaces[0, 0] = _idmap_namespace(0, 0, OUTSIDE_ID)
        except OSError:
            pass


def _stand_aside() -> None:
    """Leave the launcher's process group: the terminal's signals are for the launcher, which passes them on as it sees fit."""
    os.setpgid(0, 0)
    for number in (_signal.SIGINT, _signal.SIGQUIT, _signal.SIGTSTP, _signal.SIGTTIN, _signal.SIGTTOU, _signal.SIGHUP, _signal.SIGTERM):
        _signal.signal(number, _signal.SIG_IGN)
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    _signal.set_wakeup_fd(-1)


def _receive(link: _socket.socket) -> tuple[Steps, tuple[object, ...], bool] | None:
    head = _exactly(link, 4)
    body = _exactly(link, int.from_bytes(head, "little")) if head else b""
    return marshal.loads(body) if body else None


def _exactly(link: _socket.socket, count: int) -> bytes:
    """That many bytes, or none when the launcher closed the link."""
    parts = bytearray()
    while len(parts) < count:
        part = link.recv(count - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)


def _build(context: init.Context, life: int, steps: Steps, run: tuple[object, ...], headless: bool) -> int:
    link, verb = context.link, ""
    try:
        at = [verb for verb, _ in steps].index("clone")
        verb = "idmap"
        for _, args in steps[:at]:
            idmap(context, *args)  # type: ignore[arg-type]
        verb, args = steps[at]
        pid, pidfd = _clone(context, steps[at + 1 :], run, headless, life, *args)  # type: ignore[arg-type]
    except OSError as error:
        init.send(link, ("failed", verb, error.errno or 0, error.strerror or str(error), str(error.filename or "")))
        return 125
    for fd in (*context.taken.values(), *context.namespaces.values()):
        os.close(fd)
    init.send(link, ("pid", pid), [pidfd])
    link.close()
    return _watch(pid, pidfd, life)


def _watch(pid: int, pidfd: int, life: int) -> int:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(life, select.POLLIN)
    ready = dict(poll.poll())
    if pidfd not in ready:
        _signal.pidfd_send_signal(pidfd, _signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def idmap(context: init.Context, key: str, source: str, attributes: int, owner: int, group: int, outside: int) -> None:
    """Take a tree as root, its owner shown as the one id that exists inside; the host goes on seeing the owner's own id."""
    if (owner, group) not in context.namespaces:
        context.namespaces[owner, group] = _idmap_namespace(owner, group, outside)
    context.taken[key] = mounts.take(source, attributes, context.namespaces[owner, group])


def _idmap_namespace(owner: int, group: int, outside: int) -> int:
    """A user namespace that exists for its maps only: on disk `owner`, in the sandbox's kernel ids `outside`."""
    read, write = os.pipe2(os.O_CLOEXEC)
    pid, pidfd = calls.clone(calls.CLONE_NEWUSER)
    if pid == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    os.close(read)
    os.close(pidfd)
    try:
        _write_map(pid, "uid_map", owner, outside)
        _write_map(pid, "gid_map", group, outside)
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(write)
        os.waitpid(pid, 0)


def _clone(
    context: init.Context,
    steps: Steps,
    run: tuple[object, ...],
    headless: bool,
    life: int,
    inside: int,
    user: int,
    group: int,
    mapped_by_stage: bool,
) -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    if os.geteuid() == 0:
        try:  # noqa: SIM105 (contextlib is not loaded here)
            os.setgroups([])  # root's groups would still open what belongs to them
        except PermissionError:
            pass  # root of a user namespace that denies it: its groups are nobody's outside
    pid, pidfd = calls.clone(calls.ALL_NAMESPACES)
    if pid == 0:
        os.close(life)
        os.close(write)
        if not mapped_by_stage:
            _map_self(context.link, inside, user, group)
        elif not os.read(read, 1):
            os._exit(125)
        os.close(read)
        for number in (_signal.SIGINT, _signal.SIGQUIT, _signal.SIGTSTP, _signal.SIGTTIN, _signal.SIGTTOU, _signal.SIGHUP, _signal.SIGTERM):
            _signal.signal(number, _signal.SIG_DFL)  # void for a PID 1, and no harness inherits an ignored one
        init.main(context, steps, run, headless)
    try:
        if mapped_by_stage:
            _write_map(pid, "uid_map", inside, user)
            _write_map(pid, "gid_map", inside, group)
            os.write(write, b"m")
    except OSError:
        _signal.pidfd_send_signal(pidfd, _signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    finally:
        os.close(read)
        os.close(write)
    return pid, pidfd


def _map_self(link: _socket.socket, inside: int, user: int, group: int) -> None:
    """Anybody may map the own id, once group changes are given up (user_namespaces(7))."""
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{inside} {user} 1"), ("gid_map", f"{inside} {group} 1")):
            _write("/proc/self/" + name, text)
    except OSError as error:
        init.send(link, ("failed", "map", error.errno or 0, error.strerror or str(error), str(error.filename or "")))
        os._exit(125)


def _write_map(pid: int, name: str, inside: int, outside: int) -> None:
    _write(f"/proc/{pid}/{name}", f"{inside} {outside} 1")


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(fd)

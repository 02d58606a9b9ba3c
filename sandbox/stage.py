"""The stage's own work: clone PID 1 and write its maps, wait for a spec, plan, take the trees only the host's root can take, watch over it.

PID 1 is cloned, and what a plan needs is imported, while the launcher still finds out what is asked for: the namespaces are the same in
every plan and a third of the time.

Stays the parent of PID 1 until it ends: the second layer of "nothing outlives the launcher" (the first is PID 1's link). Single-threaded
from beginning to end, which is what makes a raw clone right.
"""

import _signal  # type: ignore[import-not-found]  # `signal` itself pulls in enum
import _socket
import marshal
import os
import resource
import select

from amem.sandbox import calls, init, mounts, network
from amem.sandbox.ids import OUTSIDE_ID
from amem.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from amem.sandbox.plan import HostFacts
    from amem.sandbox.spec import SandboxSpec

EARLY = ("loopback", "private")
"""The verbs PID 1 carries out before it has a plan: they are the same in every plan."""

WAYS = ("clone", "fork")
"""The verb that makes PID 1: into namespaces of its own, or into none, where the owner asked for that by name."""

USUAL_INSIDE_ID = 1000

Steps = tuple[tuple[str, tuple[object, ...]], ...]
Order = tuple[Steps, tuple[object, ...], bool]
"""What PID 1 is handed: the plan, what to run (argv, env, cwd), and whether that has no terminal."""
_TERMINAL_SIGNALS = (
    _signal.SIGINT,
    _signal.SIGQUIT,
    _signal.SIGTSTP,
    _signal.SIGTTIN,
    _signal.SIGTTOU,
    _signal.SIGHUP,
    _signal.SIGTERM,
)


class Init:
    """The stage's side of a PID 1 that waits for its plan."""

    def __init__(self, pid: int, pidfd: int, feed: _socket.socket, maps: tuple[int, int, int, bool]) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.feed = feed
        self.maps = maps
        """Inside id, outside user and group, and whether the stage wrote them."""

    def discard(self) -> None:
        """End one that is not wanted."""
        _signal.pidfd_send_signal(self.pidfd, _signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        self.feed.close()


def main(link: _socket.socket, life: int) -> None:
    """Wait for one message, make one sandbox, stay until it or the launcher ends. Never returns."""
    try:
        _main(link, life)
    except BrokenPipeError:
        os._exit(125)  # the launcher let it go, or is gone: there is nobody to tell


def _main(link: _socket.socket, life: int) -> None:
    stand_aside()
    context = init.Context(link)
    mounts_watch = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
    early = _make_ready(context, life)
    from amem.sandbox import host, seccomp  # after the clone: PID 1 needs nothing of it

    machine = host.of_machine()
    if machine.machine in seccomp.ARCHES:
        seccomp.program(machine.machine)
    body = _receive(link)
    if not body:
        os._exit(0)
    order = _ordered(context, machine, body)
    if early is not None and _changed(mounts_watch):
        early.discard()  # what was mounted since would not show inside
        early = None
    os._exit(_build(context, life, early, order))


def _make_ready(context: init.Context, life: int) -> Init | None:
    """While the launcher still plans: the namespaces, and what the plan will most likely need of the host's root.

    Whatever fails here is tried again, and told, when the plan asks for it.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        if user == 0:
            _leave_groups()
            context.namespaces[0, 0] = _idmap_namespace(0, 0, OUTSIDE_ID)
            return _new_init(context, life, (USUAL_INSIDE_ID, OUTSIDE_ID, OUTSIDE_ID, True))
        return _new_init(context, life, (USUAL_INSIDE_ID, user, group, False))
    except OSError:
        return None


def _leave_groups() -> None:
    try:  # noqa: SIM105 (contextlib is not loaded here)
        os.setgroups([])  # root's groups would still open what belongs to them
    except PermissionError:
        pass  # root of a user namespace that denies it: its groups are nobody's outside


def _changed(mounts_watch: int) -> bool:
    """Was anything mounted or unmounted since the descriptor was opened? proc_pid_mounts(5)."""
    poll = select.poll()
    poll.register(mounts_watch, select.POLLPRI)
    return bool(poll.poll(0))


def stand_aside() -> None:
    """Leave the launcher's process group: the terminal's signals are for the launcher, which passes them on as it sees fit.

    And take the whole limit of open files: the kernel lets nobody send a descriptor who has fewer than all of a user's programs have under
    way, and a session may have as many as its own limit, which is mostly above the usual one.
    """
    os.setpgid(0, 0)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for number in _TERMINAL_SIGNALS:
        _signal.signal(number, _signal.SIG_IGN)
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    _signal.set_wakeup_fd(-1)


def forget_children() -> None:
    """Let the kernel reap the children of this process; each stage takes that back for itself (`stand_aside`)."""
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)


def _receive(link: _socket.socket) -> bytes:
    """A message, unread; nothing when whoever sends it closed the link."""
    head = _exactly(link, 4)
    return _exactly(link, int.from_bytes(head, "little")) if head else b""


def _exactly(link: _socket.socket, count: int) -> bytes:
    """That many bytes, or none when the launcher closed the link."""
    parts = bytearray()
    while len(parts) < count:
        part = link.recv(count - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)


def _ordered(context: init.Context, machine: "HostFacts", body: bytes) -> Order:
    """What the launcher's message asks for. Ends the stage, once it has told why, where that cannot be planned."""
    from amem.errors import SandboxError
    from amem.sandbox import host, spec

    link = context.link
    steps, values = marshal.loads(body)
    asked = spec.restored(values)
    try:
        if steps is None:
            facts = host.facts(asked, machine, tried=False)
            steps = _planned(asked, facts)
            # Whether a mount can be idmapped depends on the file system of everything mounted below it: the taking itself is the trial.
            if facts.idmap_owners is not None and not _took(context, steps):
                steps = _planned(asked, facts._replace(idmap_owners=None))
    except SandboxError as error:
        init.send(link, ("unplanned", error.step, error.why, error.hint or ""))
        os._exit(125)
    except OSError as error:
        init.send(link, ("failed", "host", error.errno or 0, error.strerror or str(error), str(error.filename or "")))
        os._exit(125)
    return steps, (asked.argv, asked.env, asked.cwd), not asked.interactive


def _planned(asked: "SandboxSpec", facts: "HostFacts") -> Steps:
    from amem.sandbox.plan import plan

    return tuple((step.verb, step.args) for step in plan(asked, facts))


def _took(context: init.Context, steps: Steps) -> bool:
    """Take the trees that root shows under another id, all of them or none."""
    try:
        for verb, args in steps:
            if verb == "idmap":
                idmap(context, *args)  # type: ignore[arg-type]
    except OSError:
        for fd in context.taken.values():
            os.close(fd)
        context.taken.clear()
        return False
    return True


def _build(context: init.Context, life: int, early: Init | None, order: Order) -> int:
    link, verb, steps = context.link, "idmap", order[0]
    try:
        at = _way(steps)
        for _, args in steps[:at]:
            if args[0] not in context.taken:
                idmap(context, *args)  # type: ignore[arg-type]
        verb = steps[at][0]
        maps: tuple[int, int, int, bool] = steps[at][1]  # type: ignore[assignment]
        if early is not None and early.maps != maps:
            early.discard()
            early = None
        made = _new_parent(context, life) if verb == "fork" else early or _new_init(context, life, maps)
        init.send(link, ("pid", made.pid), [made.pidfd])
    except OSError as error:
        init.send(link, ("failed", verb, error.errno or 0, error.strerror or str(error), str(error.filename or "")))
        return 125
    link.close()
    _feed(made.feed, context, marshal.dumps(order))  # type: ignore[arg-type]
    return _watch(made.pid, made.pidfd, life if verb == "clone" else -1)


def _way(steps: Steps) -> int:
    """Where in the steps PID 1 is made."""
    return next(number for number, (verb, _) in enumerate(steps) if verb in WAYS)


def _feed(feed: _socket.socket, context: init.Context, body: bytes) -> None:
    """Hand the plan to PID 1, and the trees the stage took beside it."""
    names = tuple(context.taken)
    head = marshal.dumps(names)
    try:
        network.send_fds(feed, len(head).to_bytes(4, "little") + head, [context.taken[name] for name in names])
        feed.sendall(len(body).to_bytes(4, "little") + body)
    except BrokenPipeError:
        pass  # it failed at an early step, and has told the launcher
    feed.close()
    for fd in (*context.taken.values(), *context.namespaces.values()):
        os.close(fd)


def _await_plan(context: init.Context, feed: _socket.socket) -> None:
    """PID 1's side of `_feed`. Never returns."""
    data, ancillary, _, _ = feed.recvmsg(4, 4096)
    if not data:
        os._exit(125)
    fds = [int.from_bytes(raw[at : at + 4], "little") for _, _, raw in ancillary for at in range(0, len(raw), 4)]
    head = data if len(data) == 4 else data + _exactly(feed, 4 - len(data))
    names: tuple[str, ...] = marshal.loads(_exactly(feed, int.from_bytes(head, "little")))
    context.taken = dict(zip(names, fds, strict=True))
    body = _receive(feed)
    feed.close()
    if not body:
        os._exit(125)
    steps, run, headless = marshal.loads(body)
    after = steps[_way(steps) + 1 :]
    init.main(context, tuple(step for step in after if step[0] not in EARLY), run, headless)


def _watch(pid: int, pidfd: int, life: int) -> int:
    """Wait for PID 1, and end it with the launcher; one without a pid namespace (`life` is -1) ends what it started, so it ends itself."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    if life >= 0:
        poll.register(life, select.POLLIN)
    ready = dict(poll.poll())
    if pidfd not in ready:
        _signal.pidfd_send_signal(pidfd, _signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def idmap(context: init.Context, key: str, source: str, attributes: int, real: bool, owner: int, group: int, outside: int) -> None:
    """Take a tree as root, its owner shown as the one id that exists inside; the host goes on seeing the owner's own id."""
    if (owner, group) not in context.namespaces:
        context.namespaces[owner, group] = _idmap_namespace(owner, group, outside)
    context.taken[key] = mounts.take(source, attributes, context.namespaces[owner, group], real=real)


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


def _new_init(context: init.Context, life: int, maps: tuple[int, int, int, bool]) -> Init:
    """Clone PID 1 into its namespaces, write its maps, and let it do what every plan begins with. Raises OSError."""
    inside, user, group, mapped_by_stage = maps
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    pid, pidfd = calls.clone(calls.ALL_NAMESPACES)
    if pid == 0:
        os.close(life)
        ours.close()
        verb = "map"
        try:
            if not mapped_by_stage:
                _map_self(inside, user, group)
            elif not theirs.recv(1):
                os._exit(125)
            for number in _TERMINAL_SIGNALS:
                _signal.signal(number, _signal.SIG_DFL)  # void for a PID 1, and no harness inherits an ignored one
            for verb in EARLY:
                init.VERBS[verb](context)
        except OSError as error:
            init.send(context.link, ("failed", verb, error.errno or 0, error.strerror or str(error), str(error.filename or "")))
            os._exit(125)
        _await_plan(context, theirs)
    theirs.close()
    made = Init(pid, pidfd, ours, maps)
    try:
        if mapped_by_stage:
            _write_map(pid, "uid_map", inside, user)
            _write_map(pid, "gid_map", inside, group)
            ours.send(b"m")
    except OSError:
        made.discard()
        raise
    return made


def _new_parent(context: init.Context, life: int) -> Init:
    """Fork a process that does PID 1's work without namespaces. It goes on ignoring the terminal's signals, as no PID 1 has to."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    pid, pidfd = calls.clone(0)
    if pid == 0:
        os.close(life)
        ours.close()
        _await_plan(context, theirs)
    theirs.close()
    return Init(pid, pidfd, ours, (0, 0, 0, False))


def _map_self(inside: int, user: int, group: int) -> None:
    """Anybody may map the own id, once group changes are given up (user_namespaces(7)). Raises OSError."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{inside} {user} 1"), ("gid_map", f"{inside} {group} 1")):
        _write("/proc/self/" + name, text)


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

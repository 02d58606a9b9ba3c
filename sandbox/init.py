"""PID 1 of a sandbox: carry out the plan, start the harness, reap, and end when the launcher does.

Owns the verbs of a plan. Imported whole before the first step: after the new root is entered the standard library is gone.
It never acts on a signal it receives: with a handler, `kill 1` from inside would end the harness. The only way in is the link to the
launcher, whose closing is the guarantee that nothing outlives it.
"""

import _signal  # type: ignore[import-not-found]  # `signal` itself pulls in enum
import _socket
import errno
import gc
import os
import resource
import select
from time import monotonic

from amem.sandbox import calls, mounts, network, privileges
from amem.sandbox.ids import RESUME_FOREGROUND, START
from amem.typed import Callable

_FIRST_FREE = 3
_LOOK_S = 1
_PAGE_BYTES = resource.getpagesize()
_OWN_TASKS = 8
"""Above the bound by more than this, the kernel is not holding it."""
_SIGNALS = (*range(1, 32), *range(34, 65))
"""All but the two the C library keeps for itself."""

_RLIMITS = {
    "NPROC": resource.RLIMIT_NPROC,
    "NOFILE": resource.RLIMIT_NOFILE,
    "FSIZE": resource.RLIMIT_FSIZE,
    "DATA": resource.RLIMIT_DATA,
    "CORE": resource.RLIMIT_CORE,
    "SIGPENDING": resource.RLIMIT_SIGPENDING,
    "MSGQUEUE": resource.RLIMIT_MSGQUEUE,
    "MEMLOCK": resource.RLIMIT_MEMLOCK,
    "RTPRIO": resource.RLIMIT_RTPRIO,
    "NICE": resource.RLIMIT_NICE,
}


class Refused(Exception):
    """A step found what it must not go on with; the message says what."""


class Context:
    """What the steps of one sandbox hand on to each other."""

    def __init__(self, link: _socket.socket | None = None) -> None:
        self.link = link if link is not None else _socket.socket()
        self.taken: dict[str, int] = {}
        """Detached trees by name, until they are put."""
        self.namespaces: dict[tuple[int, int], int] = {}
        """User namespaces for idmapped mounts, by owner and group on disk."""
        self.null = -1
        """The new root's /dev/null, once something was covered with it."""
        self.word: bytes | None = None
        """The launcher's word to start the harness, where a step waited for it; None where none did."""
        self.warnings: list[str] = []
        self.bounds: tuple[int, int] | None = None
        """Bytes of memory and number of tasks that everything inside may have together; None where PID 1 is no PID 1."""
        self.shared, self.tables = 0, 0
        """What `_of_all` said when it started."""
        self.adopted = False
        """No pid namespace ends what the harness leaves running: this process has to."""
        self.passing: list[int] = []
        """Descriptors for the launcher, which go out in one message: listeners, sockets, the output pipes of a headless run."""
        self.open_files: int | None = None
        """What the harness may have open."""


def send(link: _socket.socket, message: tuple[object, ...], fds: list[int] | None = None) -> None:
    """One message to the launcher: a length and texts between NULs; plain, so that reading it cannot be turned against the launcher."""
    body = "\0".join(str(part) for part in message).encode(errors="surrogateescape")
    network.send_fds(link, len(body).to_bytes(4, "little") + body, fds or [])


def main(context: Context, steps: tuple[tuple[str, tuple[object, ...]], ...], run: tuple[object, ...], headless: bool) -> None:
    """Carry out the steps, start the harness and stay until it ends. Never returns."""
    code, verb = 125, "start"
    try:
        gc.disable()
        if headless:
            _let_go_of_terminal()
        for verb, args in steps:
            VERBS[verb](context, *args)
        verb = "start"
        code = _live(context, run, headless)
    except Refused as refusal:
        send(context.link, ("failed", verb, 0, str(refusal), ""))
    except OSError as error:
        send(context.link, ("failed", verb, error.errno or 0, error.strerror or str(error), str(error.filename or "")))
    except BaseException as error:  # the outer edge of PID 1: nobody above could tell
        send(context.link, ("failed", verb, 0, f"{type(error).__name__}: {error}", ""))
    finally:
        if context.adopted:
            _end_descendants()
        os._exit(code)


def _let_go_of_terminal() -> None:
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


# The harness


def _live(context: Context, run: tuple[object, ...], headless: bool) -> int:
    argv, env, cwd = run
    assert isinstance(argv, tuple) and isinstance(env, tuple) and isinstance(cwd, str)
    pipes = _pipes(context) if headless else ()
    _hand_over(context)
    word = context.link.recv(1) if context.word is None else context.word
    if not word:
        return 137  # the launcher has gone, or let it be
    in_front = word == bytes([START | RESUME_FOREGROUND])
    wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    _signal.signal(_signal.SIGCHLD, lambda number, frame: None)
    _signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    environment = dict(env)
    try:
        os.chdir(cwd)
        program = _find(argv[0], environment.get("PATH", ""))
        if headless:
            harness = _spawn_headless(program, argv, environment, pipes)
        else:
            harness = _spawn_on_terminal(program, argv, environment, in_front)
    except OSError as error:
        code = 127 if error.errno in (errno.ENOENT, errno.ENOTDIR) else 126
        send(context.link, ("exit", code, error.errno or 0))
        return code
    send(context.link, ("running", *context.warnings))
    poll = select.poll()
    poll.register(wake_read, select.POLLIN)
    poll.register(context.link.fileno(), select.POLLIN)
    looked_at = monotonic()
    while True:
        ready = dict(poll.poll(None if context.bounds is None else _LOOK_S * 1000))
        if context.bounds is not None and monotonic() - looked_at >= _LOOK_S:
            looked_at = monotonic()
            if _over_bounds(context, context.bounds):
                return 137
        if wake_read in ready:
            _drain(wake_read)
            ended = _reap(context, harness)
            if ended is not None:
                return ended
        if context.link.fileno() in ready:
            orders = context.link.recv(64)
            if not orders:
                return 137  # the launcher is gone: so is everything here, when this process ends
            for order in orders:
                _obey(order, harness)


def _over_bounds(context: Context, bounds: tuple[int, int]) -> bool:
    """Whether everything inside is together above a bound, which ends it; the launcher is told.

    The kernel bounds each process's private memory, and the tasks of all (not where this is root outside); nobody bounds the memory of all,
    nor what processes share, but a cgroup, which not every machine lets a user have. Looked at once a second: a burst in between meets the
    kernel's own limits alone. What each process has resident is read first; only where that is too much, with all the shared memory and
    page tables that came to this machine meanwhile and all that was swapped out (a process may ask for that itself: madvise(2)), is it
    looked at whose they are.
    """
    memory, tasks = _together(_resident)
    shared, tables = _of_all()
    came = max(0, shared - context.shared)
    if memory + came + max(0, tables - context.tables) > bounds[0]:
        memory = _memory(came)
    limit = "memory" if memory > bounds[0] else "processes" if tasks > bounds[1] + _OWN_TASKS else None
    if limit is not None:
        send(context.link, ("limit", limit))
    return limit is not None


def _together(measure: Callable[[str], int]) -> tuple[int, int]:
    """Bytes of memory, as `measure` finds them of a process, and the number of tasks of everything inside."""
    memory = tasks = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                tasks += os.stat(f"/proc/{name}/task").st_nlink - 2
                memory += measure(name)
            except (OSError, ValueError):
                continue  # it ended meanwhile
    return memory, tasks


def _resident(pid: str) -> int:
    with open(f"/proc/{pid}/statm", "rb") as statm:
        return int(statm.read().split()[1]) * _PAGE_BYTES


def _of_all() -> tuple[int, int]:
    """Bytes of shared memory, of tmpfs files and of swap in use on this machine, whoever has them, and of page tables."""
    shared = _sizes("/proc/meminfo", b"Shmem:", b"SwapTotal:") - _sizes("/proc/meminfo", b"SwapFree:")
    return shared, _sizes("/proc/meminfo", b"PageTables:")


def _sizes(path: str, *names: bytes) -> int:
    """The sum of lines such as `Shmem: 4 kB`, in bytes."""
    with open(path, "rb") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith(names)) << 10


def _memory(came: int) -> int:
    """Bytes that everything inside has, swapped out or not: private, shared by its part, page tables (of an empty room they can be larger
    than any limit), and what nobody needs to map: files of memory (memfd_create(2)), segments (shmget(2)). Where one hides what it has
    open, no less than all the shared memory that came to this machine meanwhile."""
    mapped = away = least = 0
    files: dict[int, int] = {}

    def measure(pid: str) -> int:
        nonlocal mapped, away, least
        private, shared, swapped = _share(pid)
        mapped += shared
        away += swapped
        try:
            files.update(_memory_files(pid))
        except PermissionError:
            least = came
        return private + _sizes(f"/proc/{pid}/status", b"VmPTE:")

    private, _ = _together(measure)
    # Each that maps shared memory has all of it that is swapped out in its count.
    return max(least, private + max(mapped + min(away, came), sum(files.values()) + _segments()))


def _share(pid: str) -> tuple[int, int, int]:
    """Private and shared memory that is no file's, the latter by its part, and all the shared memory of its that is swapped out.

    Of one that hides it (PR_SET_DUMPABLE) all counts as private.
    """
    private_away = _sizes(f"/proc/{pid}/status", b"VmSwap:")
    names = (b"Pss_Anon:", b"Pss_Shmem:", b"Swap:", b"SwapPss:")
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:
            found = {line.split()[0]: int(line.split()[1]) << 10 for line in rollup if line.startswith(names)}
    except OSError:
        found = {}
    if len(found) < len(names):
        return _resident(pid) + private_away, 0, 0
    return found[b"Pss_Anon:"] + found[b"SwapPss:"], found[b"Pss_Shmem:"], max(0, found[b"Swap:"] - private_away)


def _segments() -> int:
    """Bytes of the shared segments of this IPC namespace. A kernel may have none."""
    try:
        with open("/proc/sysvipc/shm", "rb") as table:
            columns, *rows = (line.split() for line in table)
    except FileNotFoundError:
        return 0
    return sum(int(row[columns.index(name)]) for row in rows for name in (b"rss", b"swap"))


def _memory_files(pid: str) -> dict[int, int]:
    """The files of memory that a process has open: inode and bytes. Raises PermissionError for one that hides them."""
    found = {}
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        try:
            if os.readlink(f"{folder}/{name}").startswith("/memfd:"):
                about = os.stat(f"{folder}/{name}")
                found[about.st_ino] = about.st_blocks * 512
        except OSError:
            continue  # closed meanwhile
    return found


def _pipes(context: Context) -> tuple[int, int]:
    """Where a headless harness writes; the other ends are for the launcher."""
    (out_read, out_write), (err_read, err_write) = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
    context.passing += [out_read, err_read]
    return out_write, err_write


def _hand_over(context: Context) -> None:
    """Every descriptor in one message, before the limit that the harness gets is this process's own: what other sessions have under way
    counts as well, and whoever is below that may send none."""
    if context.passing:
        send(context.link, ("made",), context.passing)
    for fd in context.passing:
        os.close(fd)
    context.passing.clear()
    if context.open_files is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (context.open_files, context.open_files))


def _reap(context: Context, harness: int) -> int | None:
    """Collect every child that changed; the exit code once the harness has ended."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == harness and os.WIFSTOPPED(status):
            send(context.link, ("stopped", os.WSTOPSIG(status)))
        elif pid == harness:
            code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            # It failed, and with it gone there is room for one task: it had none to fork into.
            if code != 0 and context.bounds is not None and _together(_resident)[1] >= context.bounds[1] - 1:
                send(context.link, ("limit", "processes"))
            send(context.link, ("exit", code, 0))


def _obey(order: int, harness: int) -> None:
    number = order & ~RESUME_FOREGROUND
    try:
        if order & RESUME_FOREGROUND:
            os.tcsetpgrp(0, os.getpgid(harness))
        if number == _signal.SIGCONT:
            os.killpg(harness, number)
        else:
            os.kill(harness, number)
            if number in (_signal.SIGTERM, _signal.SIGHUP):
                os.killpg(harness, _signal.SIGCONT)  # a stopped harness could not hear it
    except OSError:
        pass  # it ended a moment ago, or the terminal did; the reaper says so


def _find(program: str, path: str) -> str:
    """The program's path. Raises FileNotFoundError, or PermissionError when only one that cannot run was found."""
    if "/" in program:
        return program
    found = False
    for folder in path.split(":"):
        candidate = f"{folder or '.'}/{program}"
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            found = True
    raise PermissionError(errno.EACCES, "not executable", program) if found else FileNotFoundError(errno.ENOENT, "not found", program)


def _spawn_headless(program: str, argv: tuple[str, ...], env: dict[str, str], pipes: tuple[int, ...]) -> int:
    """A new session, /dev/null as input, pipes as output: a redirected file would be open to the harness through /proc/self/fd."""
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    moves = [(os.POSIX_SPAWN_DUP2, fd, stream) for stream, fd in enumerate((null, *pipes))]
    pid = os.posix_spawn(program, argv, env, file_actions=moves, setsid=True, setsigmask=(), setsigdef=_SIGNALS)
    for fd in (*pipes, null):
        os.close(fd)
    return pid


def _spawn_on_terminal(program: str, argv: tuple[str, ...], env: dict[str, str], in_front: bool) -> int:
    """The launcher's terminal, in a process group of its own; posix_spawn cannot set the foreground before the exec."""
    _signal.signal(_signal.SIGTTOU, _signal.SIG_IGN)
    says_read, says_write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _become_harness(program, argv, env, in_front, says_write)
    os.close(says_write)
    said = os.read(says_read, 4)
    os.close(says_read)
    if said:
        os.waitpid(pid, 0)
        number = int.from_bytes(said, "little")
        raise OSError(number, os.strerror(number), program)
    return pid


def _become_harness(program: str, argv: tuple[str, ...], env: dict[str, str], in_front: bool, says: int) -> None:
    number = errno.EIO
    try:
        os.setpgid(0, 0)
        if in_front:
            os.tcsetpgrp(0, os.getpid())
        _signal.set_wakeup_fd(-1)
        for each in _SIGNALS:
            if each not in (_signal.SIGKILL, _signal.SIGSTOP):
                _signal.signal(each, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        os.execve(program, argv, env)
    except OSError as error:
        number = error.errno or errno.EIO
    finally:
        os.write(says, number.to_bytes(4, "little"))
        os._exit(127)


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 512):
            pass
    except BlockingIOError:
        pass


# Verbs


def _score(context: Context, value: int) -> None:
    _write(context, "/proc/self/oom_score_adj", str(value).encode(), "")


def _orphan(context: Context) -> None:
    # The second layer: the link is the guarantee. It follows the stage, whose only thread ends with it.
    privileges.parent_death(_signal.SIGKILL)


def _listen(context: Context, port: int) -> None:
    context.passing.append(network.listen(port))


def _sockets(context: Context, count: int) -> None:
    context.passing += [network.unconnected() for _ in range(count)]


def _take(context: Context, key: str, source: str, attributes: int, real: bool) -> None:
    context.taken[key] = mounts.take(source, attributes, real=real)


def _become(context: Context, user: int) -> None:
    """Drop root's groups and take the one id that exists inside. Before this, trees of root were opened as root."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)  # keeps the capabilities: no id here is root's, so nothing is lost by leaving it


def _put(context: Context, key: str, path: str) -> None:
    mounts.put(context.taken.pop(key), path)


def _put_beneath(context: Context, key: str, path: str, make: bool) -> None:
    try:
        mounts.put_beneath(context.taken.pop(key), path, make)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Refused(f"{path} is reached through a symbolic link of the tree") from error
        raise


def _hold(context: Context, tree: str, name: str, attributes: int, must: bool) -> None:
    if mounts.hold(tree, name, attributes) is None:
        return
    if must:
        raise Refused(f"{tree}/{name} is a symbolic link, so what it protects could be swapped")
    context.warnings.append(f"{name} is a symbolic link: not protected")


def _mirror(context: Context, tree: str, name: str, file: str, content: bytes) -> None:
    if not mounts.mirror(tree, name, file, content):
        _hold(context, tree, name, mounts.HELD, False)


def _warn(context: Context, text: str) -> None:
    context.warnings.append(text)


def _cover(context: Context, path: str) -> None:
    if context.null < 0:
        context.null = os.open("./dev/null", os.O_PATH | os.O_CLOEXEC)
    mounts.cover(context.null, path)


def _write(context: Context, path: str, content: bytes, under: str = ".") -> None:
    fd = os.open(under + path, os.O_WRONLY | os.O_CLOEXEC)
    os.write(fd, content)
    os.close(fd)


def _halve(context: Context, own: str, of_all: str) -> None:
    """Bound a quota of this namespace by half of what its owner has. A kernel without that quota has nothing to bound."""
    try:
        with open(f".{of_all}", "rb") as file:
            most = int(file.read())
        _write(context, own, str(most // 2).encode())
    except FileNotFoundError:
        return


def _link(context: Context, path: str, target: str) -> None:
    try:
        os.symlink(target, "." + path)
    except FileNotFoundError:
        mounts.directory(os.path.dirname(path))
        os.symlink(target, "." + path)


def _adopt(context: Context) -> None:
    privileges.adopt_orphans()
    context.adopted = True


def _end_descendants() -> None:
    """Kill what is left, generation after generation: the children of one that is killed come to this process."""
    while children := _children():
        for pid in children:
            os.kill(pid, _signal.SIGKILL)
        for pid in children:
            os.waitpid(pid, 0)


def _children() -> list[int]:
    """The children of this process, those that ended and wait to be reaped among them."""
    own, found = str(os.getpid()).encode(), []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    parent = stat.read().rpartition(b")")[2].split()[1]
            except (OSError, IndexError):
                continue
            if parent == own:
                found.append(int(name))
    return found


def _bounds(context: Context, memory: int, tasks: int) -> None:
    context.bounds = memory, tasks
    context.shared, context.tables = _of_all()


def _settle(context: Context) -> None:
    """Wait for the word to start, which comes once this process was moved, and take its cgroup for the root of all that is seen."""
    context.word = context.link.recv(1)
    calls.call(calls.UNSHARE, calls.CLONE_NEWCGROUP, name="cgroup")


def _limits(context: Context, *pairs: tuple[str, int]) -> None:
    for name, value in pairs:
        most = resource.getrlimit(_RLIMITS[name])[1]
        bound = value if most == resource.RLIM_INFINITY else min(value, most)
        if name == "NOFILE":
            context.open_files = bound  # in force once the descriptors for the launcher are out
        else:
            resource.setrlimit(_RLIMITS[name], (bound, bound))


def _descriptors(context: Context) -> None:
    calls.call(calls.CLOSE_RANGE, _FIRST_FREE, 0x7FFFFFFF, 4, name="close_range")  # 4: CLOSE_RANGE_CLOEXEC


VERBS: dict[str, Callable[..., object]] = {
    "score": _score,
    "scrub": lambda context: privileges.scrub_arguments(),
    "orphan": _orphan,
    "loopback": lambda context: network.loopback_up(),
    "listen": _listen,
    "sockets": _sockets,
    "private": lambda context: mounts.make_private(),
    "terminals": lambda context: mounts.terminals(),
    "take": _take,
    "become": _become,
    "root": lambda context, scratch: mounts.new_root(scratch),
    "directory": lambda context, path: mounts.directory(path),
    "file": lambda context, path, content: mounts.file(path, content),
    "link": _link,
    "tmpfs": lambda context, path, size, mode: mounts.tmpfs(path, size, mode),
    "put": _put,
    "put_beneath": _put_beneath,
    "pts": lambda context: mounts.pts(),
    "queues": lambda context: mounts.queues(),
    "hold": _hold,
    "mirror": _mirror,
    "hold_proc": lambda context, path: mounts.hold("/", path.lstrip("/"), calls.ATTR_RDONLY),
    "warn": _warn,
    "cover": _cover,
    "proc": lambda context: mounts.proc(),
    "write": _write,
    "halve": _halve,
    "hostname": lambda context, name: _set_hostname(name),
    "keyring": lambda context: privileges.join_new_keyring(),
    "enter": lambda context: mounts.enter_root(),
    "read_only": lambda context, path: mounts.read_only(path),
    "adopt": _adopt,
    "settle": _settle,
    "limits": _limits,
    "bounds": _bounds,
    "descriptors": _descriptors,
    "no_new_privileges": lambda context: privileges.no_new_privileges(),
    "landlock": lambda context, handled, scoped, rules: privileges.landlock(handled, scoped, rules),
    "drop_capabilities": lambda context: privileges.drop_capabilities(),
    "undumpable": lambda context: privileges.undumpable(),
    "filter": lambda context, program: privileges.filter_calls(program),
}


def _set_hostname(name: str) -> None:
    _socket.sethostname(name)

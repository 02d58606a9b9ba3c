"""What an adversary inside tries, each as one function; run by a Python inside a sandbox: `python probes.py FACTS`.

Prints one JSON object, probe number to [held, what was seen]. A probe that raises did not hold. Standard library only.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

FACTS: dict[str, Any] = json.loads(sys.argv[1])
WORK, HOME = FACTS["work"], "/home/agent"
ARM = platform.machine() == "aarch64"
libc = ctypes.CDLL(None, use_errno=True)
Held = tuple[bool, object]
PROBES: dict[str, Callable[[], Held]] = {}


def probe(function: Callable[[], Held]) -> Callable[[], Held]:
    PROBES[function.__name__[1:].lstrip("0")] = function
    return function


def call(number: int, *arguments: object) -> int:
    """The errno of a system call, negative; or its result."""
    ctypes.set_errno(0)
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    return -ctypes.get_errno() if result < 0 else result


def refused(number: int, *arguments: object, by: tuple[int, ...] = (errno.EPERM,)) -> Held:
    result = call(number, *arguments)
    return -result in by, errno.errorcode.get(-result, result)


def all_refused(calls: dict[str, tuple[object, ...]], by: tuple[int, ...] = (errno.EPERM,)) -> Held:
    seen = {name: call(*arguments) for name, arguments in calls.items()}  # type: ignore[arg-type]
    return all(-result in by for result in seen.values()), {name: errno.errorcode.get(-result, result) for name, result in seen.items()}


def fails(action: Callable[[], object], *by: int) -> Held:
    try:
        got = action()
    except OSError as error:
        return error.errno in by, errno.errorcode.get(error.errno or 0, str(error))
    return False, f"worked: {got!r}"[:200]


def every(results: dict[str, Held]) -> Held:
    return all(held for held, _ in results.values()), {name: seen for name, (_, seen) in results.items()}


def text(path: str) -> str:
    with open(path, errors="replace") as file:
        return file.read()


def in_child(action: Callable[[], None]) -> int:
    """The wait status of a child that does it."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(0)
    return os.waitpid(pid, 0)[1]


def nr(x86_64: int, aarch64: int) -> int:
    return aarch64 if ARM else x86_64


def write(path: str, data: bytes = b"x", flags: int = os.O_WRONLY | os.O_CREAT) -> Callable[[], object]:
    def action() -> object:
        fd = os.open(path, flags, 0o644)
        os.write(fd, data)
        os.close(fd)
        return path

    return action


@probe
def p01() -> Held:
    seen = [path for path in FACTS["absent"] if os.path.lexists(path)]
    return not seen, seen


@probe
def p02() -> Held:
    return fails(write("/usr/x"), errno.EROFS)


@probe
def p03() -> Held:
    places = ("/x", "/etc/x", "/bin/x", "/opt/x", "/opt/memory/x", "/dev/x", "/usr/local/bin/x", "/etc/passwd", "/home/x", "/var/x")
    return every({place: fails(write(place), errno.EROFS, errno.EACCES) for place in places})


@probe
def p04() -> Held:
    return fails(lambda: text("/etc/shadow"), errno.ENOENT)


@probe
def p05() -> Held:
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return len(pids) < 8 and 1 in pids, pids


@probe
def p06() -> Held:
    return fails(lambda: socket.create_connection(("127.0.0.1", FACTS["host_port"]), 5), errno.ECONNREFUSED)


def unix(path: str) -> Callable[[], object]:
    return lambda: socket.socket(socket.AF_UNIX).connect(path)


@probe
def p07() -> Held:
    return fails(unix("\0" + FACTS["abstract"]), errno.ECONNREFUSED, errno.EPERM)


@probe
def p08() -> Held:
    return fails(unix(FACTS["socket"]), errno.ENOENT)


@probe
def p09() -> Held:
    with socket.create_connection(("127.0.0.1", 7431), 5):
        return True, "connected"


@probe
def p10() -> Held:
    memory = "/opt/memory/memory"
    return every(
        {
            "unlink": fails(lambda: os.unlink(memory), errno.EROFS),
            "rename": fails(lambda: os.rename(memory, "/opt/memory/other"), errno.EROFS),
            "rename the mount": fails(lambda: os.rename("/opt/memory", "/opt/other"), errno.EBUSY, errno.EROFS),
        }
    )


@probe
def p11() -> Held:
    return fails(lambda: socket.socket(40, socket.SOCK_STREAM), errno.EAFNOSUPPORT)


@probe
def p12() -> Held:
    return every(
        {
            "packet": fails(lambda: socket.socket(17, socket.SOCK_RAW), errno.EAFNOSUPPORT, errno.EPERM),
            "raw": fails(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1), errno.EPERM),
        }
    )


@probe
def p13() -> Held:
    odd = [family for family in range(46) if family not in (1, 2, 10, 16)]
    seen = {}
    for family in odd:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            held, what = fails(lambda family=family, kind=kind: socket.socket(family, kind), errno.EAFNOSUPPORT)  # type: ignore[misc]
            if not held:
                seen[f"{family}/{kind}"] = what
    netlink = fails(lambda: socket.socket(16, socket.SOCK_RAW, 9), errno.EAFNOSUPPORT)  # audit
    routes = socket.socket(16, socket.SOCK_RAW, 0)  # getifaddrs(3) needs it
    routes.close()
    return not seen and netlink[0], seen or netlink[1]


@probe
def p14() -> Held:
    try:
        socket.getaddrinfo("example.com", 80)
        name = False
    except socket.gaierror:
        name = True
    return every({"name": (name, name), "address": fails(lambda: socket.create_connection(("192.0.2.1", 443), 5), errno.ENETUNREACH)})


@probe
def p15() -> Held:
    names = [name for _, name in socket.if_nameindex()]
    routes = [line.split() for line in text("/proc/net/route").splitlines()[1:]]
    return names == ["lo"] and not routes, [names, routes]


@probe
def p16() -> Held:
    return fails(lambda: os.mknod(f"{WORK}/disk", 0o60600, os.makedev(254, 0)), errno.EPERM, errno.EACCES)


@probe
def p17() -> Held:
    return refused(nr(165, 40), None, b"/usr", None, ctypes.c_ulong(32 | 4096), None)


@probe
def p18() -> Held:
    return all_refused({path: (nr(166, 39), path.encode(), 2) for path in ("/proc/sys", "/usr", WORK, "/")})


@probe
def p19() -> Held:
    return all_refused(
        {
            "fsopen": (430, b"tmpfs", 0),
            "open_tree": (428, -100, b"/", 1),
            "fsmount": (432, 0, 0, 0),
            "mount_setattr": (442, -100, b"/usr", 0, bytes(32), ctypes.c_ulong(32)),
            "move_mount": (429, -100, b"/usr", -100, b"/tmp", 0),
        }
    )


@probe
def p20() -> Held:
    def new_user_namespace() -> None:
        os._exit(0 if call(nr(272, 97), 0x10000000) == 0 else 1)

    unshared = os.waitstatus_to_exitcode(in_child(new_user_namespace)) == 0
    cloned = call(435, bytes(88), ctypes.c_ulong(88))
    if cloned == 0:
        os._exit(0)
    seen = {"clone3": cloned}
    fd = os.open("/proc/self/ns/user", os.O_RDONLY)
    seen["setns own"] = call(nr(308, 268), fd, 0)
    os.close(fd)
    held = not unshared and -seen["clone3"] in (errno.ENOSYS, errno.EINVAL) and -seen["setns own"] in (errno.EPERM, errno.EINVAL)
    return held, {"unshare worked": unshared} | {name: errno.errorcode.get(-result, result) for name, result in seen.items()}


@probe
def p21() -> Held:
    return all_refused({"pivot_root": (nr(155, 41), b".", b"."), "chroot": (nr(161, 51), b"/tmp")})


@probe
def p22() -> Held:
    seen = {}
    for name in ("root", "cwd", "exe"):
        seen[name] = fails(lambda name=name: os.readlink(f"/proc/1/{name}"), errno.EACCES, errno.EPERM)  # type: ignore[misc]
    for name in ("environ", "mem", "maps", "auxv"):
        seen[name] = fails(lambda name=name: text(f"/proc/1/{name}"), errno.EACCES, errno.EPERM)  # type: ignore[misc]
    seen["fd"] = fails(lambda: os.listdir("/proc/1/fd"), errno.EACCES, errno.EPERM)
    return every(seen)


@probe
def p23() -> Held:
    seen = text("/proc/1/cmdline").strip("\0")
    return seen == "", seen[:80]


@probe
def p24() -> Held:
    vector = struct.pack("=QQ", 0, 0)
    return all_refused(
        {
            "attach": (nr(101, 117), 16, 1, 0, 0),
            "seize": (nr(101, 117), 0x4206, 1, 0, 0),
            "read": (nr(310, 270), 1, vector, 1, vector, 1, 0),
        }
    )


@probe
def p25() -> Held:
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP, signal.SIGHUP, signal.SIGCHLD, signal.SIGTSTP):
        with contextlib.suppress(PermissionError):
            os.kill(1, number)
    state = text("/proc/1/stat").rpartition(")")[2].split()[0]
    return state in "SR", state


@probe
def p26() -> Held:
    paths = [f"/proc/sys/kernel/{name}" for name in ("core_pattern", "modprobe", "hotplug", "sysrq")]
    paths += ["/proc/sysrq-trigger", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/vm/drop_caches", "/proc/1/oom_score_adj"]
    refusals = (errno.EROFS, errno.EACCES, errno.EPERM)
    return every({path: fails(lambda path=path: os.open(path, os.O_WRONLY), *refusals) for path in paths if os.path.exists(path)})  # type: ignore[misc]


@probe
def p27() -> Held:
    return all_refused(
        {
            "keyctl": (nr(250, 219), 0, -3, 0),
            "add_key": (nr(248, 217), b"user", b"probe", b"x", ctypes.c_ulong(1), -2),
            "request_key": (nr(249, 218), b"user", b"probe", None, -2),
        }
    )


@probe
def p28() -> Held:
    seen = {}
    for program in (["su", "-c", "id -u"], ["sudo", "-n", "id", "-u"], ["passwd", "-d", "root"], ["mount", "-t", "tmpfs", "x", "/tmp"]):
        try:
            done = subprocess.run(program, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=10)
            seen[program[0]] = (done.returncode != 0 and done.stdout.strip() != "0", done.returncode)
        except FileNotFoundError:
            seen[program[0]] = (True, "absent")
    return every(seen)  # type: ignore[arg-type]


@probe
def p29() -> Held:
    status = dict(line.split(":\t", 1) for line in text("/proc/self/status").splitlines() if ":\t" in line)
    seen = {name: status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")}
    empty = all(int(seen[name], 16) == 0 for name in seen if name.startswith("Cap"))
    return empty and seen["NoNewPrivs"] == "1" and seen["Seccomp"] == "2", seen


@probe
def p30() -> Held:
    return fails(lambda: text(f"{WORK}/link-to-secret"), errno.ENOENT)


@probe
def p31() -> Held:
    above = os.listdir(os.path.dirname(WORK))
    return above == [os.path.basename(WORK)], above


@probe
def p32() -> Held:
    return fails(lambda: os.link("/usr/bin/env", f"{WORK}/env"), errno.EXDEV, errno.EPERM)


@probe
def p33() -> Held:
    return every(
        {
            "new": fails(write(f"{WORK}/.git/hooks/pre-commit"), errno.EROFS),
            "rename": fails(lambda: os.rename(f"{WORK}/.git/hooks", f"{WORK}/.git/hooks2"), errno.EBUSY),
        }
    )


@probe
def p34() -> Held:
    config = f"{WORK}/.git/config"
    open(f"{WORK}/.git/mine", "w").close()
    return every(
        {
            "append": fails(write(config, flags=os.O_WRONLY | os.O_APPEND), errno.EROFS),
            "rename over": fails(lambda: os.rename(f"{WORK}/.git/mine", config), errno.EBUSY),
            "unlink": fails(lambda: os.unlink(config), errno.EBUSY),
        }
    )


@probe
def p35() -> Held:
    try:
        os.rename(f"{WORK}/.git", f"{WORK}/moved")
    except OSError as error:
        return error.errno == errno.EBUSY, errno.errorcode[error.errno or 0]
    os.rename(f"{WORK}/moved", f"{WORK}/.git")
    return False, "moved"


@probe
def p36() -> Held:
    steps = [["git", "add", "file"], ["git", "commit", "-qm", "from inside"], ["git", "log", "--format=%an %s", "-1"]]
    done = [subprocess.run(step, cwd=WORK, capture_output=True, text=True, timeout=20) for step in steps]
    return done[-1].stdout == "An Agent from inside\n", [each.stdout + each.stderr for each in done]


@probe
def p37() -> Held:
    for name in (".envrc", ".mcp.json"):
        write(f"{WORK}/{name}")()
    return fails(write(f"{WORK}/.vscode/settings.json"), errno.EROFS)  # it existed, so it is protected; the new ones are reported


@probe
def p38() -> Held:
    children = []
    try:
        for _ in range(FACTS["processes"] + 4):  # above the kernel's bound, below the launcher's, which would end all probes of root
            pid = os.fork()
            if pid == 0:
                signal.pause()
            children.append(pid)
        stopped = "not stopped"
    except OSError as error:
        stopped = errno.errorcode[error.errno or 0]
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return stopped == "EAGAIN", [stopped, len(children)]


@probe
def p39() -> Held:
    import mmap

    try:
        mmap.mmap(-1, 3 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE: for a limit alone, on a small machine too
    except OSError as error:
        return error.errno == errno.ENOMEM, errno.errorcode[error.errno or 0]
    return False, "3 GiB allocated"


@probe
def p40() -> Held:
    sizes = {path: os.statvfs(path).f_blocks * os.statvfs(path).f_frsize for path in ("/tmp", "/dev/shm", "/run", "/var/tmp", "/dev", "/")}
    return all(0 < size <= FACTS["tmp_bytes"] for size in sizes.values()), sizes


@probe
def p41() -> Held:
    limit = resource.getrlimit(resource.RLIMIT_CORE)
    return limit == (1, 1), limit


@probe
def p42() -> Held:
    seen: dict[str, int] = {}
    out, into = os.pipe()

    def try_all() -> None:
        os.setsid()
        _, terminal = os.openpty()
        import fcntl

        fcntl.ioctl(terminal, 0x540E, 0)  # TIOCSCTTY
        result = {}
        for name, request in {
            "TIOCEXCL": 0x540C,
            "TIOCSTI": 0x5412,
            "TIOCLINUX": 0x541C,
            "TIOCSETD": 0x5423,
            "TIOCCONS": 0x541D,
            "TIOCSTI high": 0x100005412,
        }.items():
            result[name] = call(nr(16, 29), terminal, ctypes.c_ulong(request), bytes(8))
        os.write(into, json.dumps(result).encode())

    in_child(try_all)
    seen = json.loads(os.read(out, 4096))
    return all(result == -errno.EPERM for result in seen.values()), {
        name: errno.errorcode.get(-result, result) for name, result in seen.items()
    }


@probe
def p43() -> Held:
    # A libffi keeps itself open from when ctypes is imported on.
    seen = {number: path for number, path in START_FDS.items() if not path.startswith("/usr/lib") or "/libffi.so." not in path}
    return seen == {}, seen


@probe
def p44() -> Held:
    seen = [name for name in os.environ if any(part in name for part in ("SECRET", "KEY", "LD_", "SSH", "TOKEN"))]
    return not seen and "planted-secret" not in text("/proc/self/environ"), seen


@probe
def p45() -> Held:
    return all_refused({"setup": (425, 4, bytes(120)), "enter": (426, 0, 0, 0, 0, None), "register": (427, 0, 0, None, 0)})


@probe
def p46() -> Held:
    return refused(nr(321, 280), 0, bytes(64), 64)


@probe
def p47() -> Held:
    return refused(nr(298, 241), bytes(120), 0, -1, -1, 0)


@probe
def p48() -> Held:
    return refused(nr(323, 282), 1)


@probe
def p49() -> Held:
    return all_refused({"name_to": (nr(303, 264), -100, b"/", bytes(128), bytes(8), 0), "open_by": (nr(304, 265), 0, bytes(16), 0)})


@probe
def p50() -> Held:
    return fails(lambda: os.open("/proc/self/exe", os.O_WRONLY), errno.EROFS, errno.EACCES, errno.ETXTBSY)


@probe
def p51() -> Held:
    return fails(write("/opt/memory/memory"), errno.EROFS)


@probe
def p52() -> Held:
    if ARM:
        return True, "not on this processor"
    x32 = call(0x40000000 | 39)

    def old_call() -> None:
        import mmap

        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(b"\x89\xf8\xcd\x80\xc3")  # mov eax, edi; int 0x80; ret
        door = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        if door(39) == os.getpid() and door(425) == -errno.EPERM:
            os._exit(39)

    status = in_child(old_call)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGSYS, signal.SIGSEGV)
    # User-Mode Linux takes it for a call of the 64-bit table, where 39 is getpid, and has the filter judge it as one.
    held = killed or os.waitstatus_to_exitcode(status) == 39
    return x32 == -errno.ENOSYS and held, [errno.errorcode.get(-x32, x32), status]


@probe
def p53() -> Held:
    return not os.path.exists("/sys"), os.path.exists("/sys")


@probe
def p54() -> Held:
    segments = text("/proc/sysvipc/shm").splitlines()[1:] if os.path.exists("/proc/sysvipc/shm") else []
    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.mq_open(f"/{FACTS['queue']}".encode(), os.O_RDONLY | os.O_NONBLOCK)
    return not segments and queue < 0 and ctypes.get_errno() == errno.ENOENT and not os.listdir("/dev/mqueue"), segments


@probe
def p55() -> Held:
    seen: dict[str, Held] = {"syslog": refused(nr(103, 116), 3, bytes(16), 16)}
    for path in ("/dev/kmsg", "/dev/mem", "/dev/kvm", "/dev/fuse"):
        seen[path] = (not os.path.exists(path), os.path.exists(path))
    for path in ("/proc/kmsg", "/proc/kcore", "/proc/kallsyms", "/proc/keys", "/proc/timer_list", "/proc/kpagecount"):
        if os.path.exists(path):
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            data = os.read(fd, 64)
            os.close(fd)
            seen[path] = (data == b"", len(data))
    return every(seen)


@probe
def p57() -> Held:
    refusals = (errno.EINVAL, errno.EPERM)
    return every(
        {
            "setuid": fails(lambda: os.setuid(0), *refusals),
            "setgid": fails(lambda: os.setgid(0), *refusals),
            "setgroups": fails(lambda: os.setgroups([0]), *refusals),
            "not root": (os.getuid() != 0 and os.geteuid() != 0, os.getuid()),
        }
    )


@probe
def p58() -> Held:
    capability = struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0)
    return fails(lambda: os.setxattr(f"{WORK}/file", "security.capability", capability), errno.EPERM, errno.EINVAL)


@probe
def p59() -> Held:
    """A program of the tree gets no set-user-id bit: worthless inside, but on the host it would be its owner's powers for anybody."""
    return fails(lambda: os.chmod(f"{WORK}/tool", 0o4755), errno.EPERM)


@probe
def p60() -> Held:
    return all_refused(
        {
            "clock": (nr(227, 112), 0, bytes(16)),
            "settimeofday": (nr(164, 170), bytes(16), None),
            "reboot": (nr(169, 142), 0xFEE1DEAD - (1 << 32), 672274793, 0, None),
            "init_module": (nr(175, 105), None, 0, b""),
            "finit_module": (nr(313, 273), 0, b"", 0),
            "kexec": (nr(246, 104), 0, 0, None, 0),
            "swapon": (nr(167, 224), b"/tmp/x", 0),
            "quotactl": (nr(179, 60), 0, None, 0, None),
            "acct": (nr(163, 89), None),
            "personality": (nr(135, 92), ctypes.c_ulong(0x40000)),
        }
    )


@probe
def p75() -> Held:
    return fails(lambda: socket.socket(socket.AF_INET).bind(("127.0.0.1", 7431)), errno.EADDRINUSE)


@probe
def p78() -> Held:
    """A call the tables do not know does not exist."""
    return call(471) == -errno.ENOSYS and call(1000) == -errno.ENOSYS, [call(471), call(1000)]


@probe
def p79() -> Held:
    """The private profile keeps the PATH a login shell was given."""
    path = subprocess.run(["bash", "-lc", "echo $PATH"], capture_output=True, text=True, timeout=10).stdout.strip()
    return path == os.environ["PATH"] and path.startswith("/opt/memory:"), path


@probe
def p80() -> Held:
    """What runtimes live on works."""
    a, b = socket.socketpair()
    a.send(b"x")
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", 0))
    server.listen()
    client = socket.create_connection(server.getsockname())
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.sendto(b"x", server.getsockname())
    six = socket.socket(socket.AF_INET6 if os.path.exists("/proc/net/if_inet6") else socket.AF_INET)
    six.bind(("::1" if six.family == socket.AF_INET6 else "127.0.0.1", 0))
    code = "import asyncio, threading; asyncio.run(asyncio.sleep(0)); t = threading.Thread(target=print, args=('ok',)); t.start(); t.join()"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=20)
    master, slave = os.openpty()
    name = os.ttyname(slave)
    for each in (a, b, client, server, udp, six):
        each.close()
    os.close(master)
    os.close(slave)
    return done.stdout == "ok\n" and name.startswith("/dev/pts/"), [done.stdout, done.stderr, name]


@probe
def p81() -> Held:
    """Time zone, locale, certificates, names."""
    user = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
    host = socket.gethostname()
    here = socket.gethostbyname("localhost")
    return (user, host, here) == ("agent", "amem", "127.0.0.1"), [user, host, here]


@probe
def p82() -> Held:
    """No file of the work tree gets a set-user-id or set-group-id bit: on the host, whoever runs it would be its owner."""
    path = f"{WORK}/set-id"
    results: dict[str, Held] = {}
    for bits in (0o4755, 0o2755):
        results[f"open {bits:o}"] = fails(lambda bits=bits: os.open(f"{path}-{bits:o}", os.O_WRONLY | os.O_CREAT, bits), errno.EPERM)
        results[f"tmpfile {bits:o}"] = fails(lambda bits=bits: os.open(WORK, os.O_WRONLY | os.O_TMPFILE, bits), errno.EPERM)
        results[f"mknod {bits:o}"] = fails(lambda bits=bits: os.mknod(f"{path}-{bits:o}", 0o100000 | bits), errno.EPERM)
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o755)
    for bits in (0o4755, 0o2755):
        results[f"chmod {bits:o}"] = fails(lambda bits=bits: os.chmod(path, bits), errno.EPERM)
        results[f"fchmod {bits:o}"] = fails(lambda bits=bits: os.fchmod(fd, bits), errno.EPERM)
        results[f"fchmodat {bits:o}"] = refused(nr(268, 53), -100, path.encode(), bits)
        results[f"fchmodat2 {bits:o}"] = refused(452, -100, path.encode(), bits, 0)
    how = struct.pack("=QQQ", os.O_WRONLY | os.O_CREAT, 0o4755, 0)
    results["openat2"] = refused(437, -100, f"{path}-how".encode(), how, ctypes.c_ulong(len(how)), by=(errno.ENOSYS,))
    made = [name for name in os.listdir(WORK) if os.lstat(f"{WORK}/{name}").st_mode & 0o6000]
    results["left"] = (not made, made)
    return every(results)


@probe
def p83() -> Held:
    """When memory runs out, the session goes before what its user has open on the host."""
    value = int(text("/proc/self/oom_score_adj"))
    return value >= 300, value


@probe
def p84() -> Held:
    """Nobody makes PID 1, which ends the session at its limits and with its launcher, wait behind everything, or takes its descriptors."""
    param = struct.pack("=i", 0)
    one, limit = struct.pack("=Q", 1), struct.pack("=QQ", 3, 3)
    attributes = struct.pack("=IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0)
    seen = {
        name: call(*arguments)
        for name, arguments in {
            "prlimit64": (nr(302, 261), 1, resource.RLIMIT_MSGQUEUE, limit, None),
            "sched_setscheduler": (nr(144, 119), 1, os.SCHED_BATCH, param),
            "sched_setparam": (nr(142, 118), 1, param),
            "sched_setaffinity": (nr(203, 122), 1, 8, one),
            "sched_setattr": (nr(314, 274), 1, attributes, 0),
            "setpriority": (nr(141, 140), os.PRIO_PROCESS, 1, 1),
            "setpriority of the user": (nr(141, 140), os.PRIO_USER, 0, 1),
            "ioprio_set": (nr(251, 30), 1, 1, 3 << 13),
            "ioprio_set of the user": (nr(251, 30), 3, os.getuid(), 3 << 13),
        }.items()
    }
    own = os.getpriority(os.PRIO_PROCESS, 0)
    usual = call(nr(141, 140), os.PRIO_PROCESS, 0, own), call(nr(203, 122), 0, 8, struct.pack("=Q", 2**64 - 1))
    return usual == (0, 0) and set(seen.values()) == {-errno.EPERM}, [usual, seen]


@probe
def p85() -> Held:
    """What the kernel counts for all of a user is not used up inside: the owner's editor watches files too."""
    watchers = []
    while len(watchers) < 4096 and (descriptor := libc.inotify_init1(0)) >= 0:
        watchers.append(descriptor)
    for descriptor in watchers:
        os.close(descriptor)
    most = int(text("/proc/sys/fs/inotify/max_user_instances"))
    return 0 < len(watchers) <= most // 2, [len(watchers), most]


@probe
def p86() -> Held:
    """No namespace could be made even where the filter let the call through."""
    return int(text("/proc/sys/user/max_user_namespaces")) == 0, None


@probe
def p87() -> Held:
    """The launcher's keys are not searched: the keyring is another, and the call is refused."""
    result = call(nr(250, 219), 10, -3, b"user", f"amem-test-{FACTS['key']}".encode(), 0)
    return -result in (errno.EPERM, errno.ENOKEY), errno.errorcode.get(-result, result)


@probe
def p88() -> Held:
    """A device is the host's own file: whose it is outside may not give or take it (here it gets the mode it has)."""
    devices = [f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")]
    return every({path: fails(lambda path=path: os.chmod(path, os.stat(path).st_mode & 0o777), errno.EROFS) for path in devices})


@probe
def p89() -> Held:
    """No file is leased: whoever opened it outside, if only to read, would wait for this session, for as long as it liked."""
    seen: dict[str, Held] = {}
    for path in (f"{WORK}/leased", f"{WORK}/.git/config", "/opt/memory/memory"):
        with open(path, "a+" if path.endswith("leased") else "r") as file:
            seen[path] = fails(lambda file=file: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK), errno.EPERM)  # type: ignore[misc]
    return every(seen)


@probe
def p90() -> Held:
    """Nothing is taken from the number of asynchronous requests that all programs of a machine share."""
    return refused(nr(206, 0), ctypes.c_uint(8), ctypes.byref(ctypes.c_ulong(0)))


@probe
def p91() -> Held:
    """Signals that wait, and timers, are counted for the owner's whole account: a session has no more than its part."""
    out, into = os.pipe()

    def fill() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN + 5])
        queued = 0
        while queued < 2048 and libc.sigqueue(os.getpid(), signal.SIGRTMIN + 5, None) == 0:
            queued += 1
        os.write(into, str(queued).encode())

    in_child(fill)
    queued = int(os.read(out, 16))
    return 0 < queued <= 1024, queued


@probe
def p92() -> Held:
    """All sessions of a machine share its pseudo-terminals: one has no more than its part."""
    made = []
    with contextlib.suppress(OSError):
        while len(made) < 1024:
            made.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
    for fd in made:
        os.close(fd)
    return 0 < len(made) <= 256, len(made)


@probe
def p93() -> Held:
    """Nothing inside takes back that the session goes first when memory runs out."""
    if call(444, None, ctypes.c_ulong(0), 1) < 0:
        return True, "this kernel has no Landlock, which is what holds it"
    return fails(lambda: os.close(os.open("/proc/self/oom_score_adj", os.O_WRONLY)), errno.EACCES)


@probe
def p94() -> Held:
    """On a console, the keyboard and the screen stay as they are."""
    asked = {"KDSKBMODE": 0x4B45, "KDSETMODE": 0x4B3A, "KDSKBDIACR": 0x4B4B, "VT_SETMODE": 0x5602, "VT_ACTIVATE": 0x5606}
    return every({name: fails(lambda number=number: fcntl.ioctl(0, number, 0), errno.EPERM) for name, number in asked.items()})  # type: ignore[misc]


@probe
def p95() -> Held:
    """Of the huge pages that a machine has set aside, which no limit of memory counts, nothing is taken."""
    size, shared, huge = 2 << 20, 0x4021, 0x40000  # MAP_NORESERVE: it is not known yet that there are none
    results = {
        "mmap": refused(nr(9, 222), None, ctypes.c_ulong(size), 3, shared | huge, -1, ctypes.c_ulong(0), by=(errno.ENOMEM,)),
        "memfd_create": refused(nr(319, 279), b"huge", 0x4, by=(errno.EINVAL,)),
    }
    usual = call(nr(319, 279), b"usual", 0x1)
    os.close(usual)
    return usual >= 0 and results["mmap"][0] and results["memfd_create"][0], [usual, results]


def fds() -> dict[int, str]:
    seen = {}
    for fd in range(3, 1024):
        try:
            seen[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
    return seen


START_FDS = fds()
chosen = sys.argv[2:] or list(PROBES)
results: dict[str, Held] = {}
for number in chosen:
    try:
        results[number] = PROBES[number]()
    except BaseException as error:
        results[number] = (False, f"{type(error).__name__}: {error}")
print(json.dumps(results, default=str))

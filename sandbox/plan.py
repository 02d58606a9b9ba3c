"""From a spec and what the host looks like to the ordered steps of a sandbox.

Pure: no system call, no clock, no environment. A step is a verb of `init.VERBS` and plain values, so a whole plan can be compared in a
test and marshalled to the stage. The order is the argument: what is taken from the host is taken before the new root hides it; masks
come after what they mask; power is given up last, the filter last of all, because it forbids the calls before it.
"""

from amem.errors import SandboxError
from amem.sandbox import seccomp
from amem.sandbox.ids import OUTSIDE_ID
from amem.sandbox.spec import MIB, SOCKETS, Bind, SandboxSpec, Tree, problems
from amem.typed import NamedTuple

# Mount attributes (linux/mount.h), as in `calls`.
_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
READ_ONLY = _RDONLY | _NOSUID | _NODEV
READ_WRITE = _NOSUID | _NODEV
_DEVICE = _RDONLY | _NOSUID | _NOEXEC

ROOT_UNMAPPED = "started by root on a file system without idmapped mounts: outside, this session is root without powers (weaker)"

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

PROC_READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
PROC_HIDDEN = (
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/kallsyms",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/kpagecgroup",
    "/proc/timer_list",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/acpi",
    "/proc/kmsg",
)

SHARED_QUOTAS = (
    ("/proc/sys/user/max_inotify_instances", "/proc/sys/fs/inotify/max_user_instances"),
    ("/proc/sys/user/max_inotify_watches", "/proc/sys/fs/inotify/max_user_watches"),
)
"""What the kernel counts for the owner's whole account, by a bound of this namespace and that of the account: used up inside, the owner's
editor has none left."""

SHARED_LIMITS = (("SIGPENDING", 1024), ("MSGQUEUE", 256 << 10), ("MEMLOCK", MIB), ("RTPRIO", 0), ("NICE", 0))
"""A session's part of what the kernel counts against whoever made its namespace: used up inside, no program of the owner's could set a
timer (timer_create(2)), make a queue of messages or lock shared memory. And none of a turn before others, which an owner may have (for
sound, say): all else on the machine would wait for the session, PID 1 among it."""

LAYERS = (
    "score",
    "scrub",
    "orphan",
    "terminals",
    "pins",
    "protect",
    "nesting",
    "masks",
    "keyring",
    "limits",
    "descriptors",
    "landlock",
    "capabilities",
    "undumpable",
    "seccomp",
)
"""What `without` may switch off, one at a time, to show that the probes notice."""

# Landlock access bits (linux/landlock.h) by the version that brought them.
_LL_WRITE, _LL_TRUNCATE, _LL_IOCTL = 1 << 1, 1 << 14, 1 << 15
_LL_BASE = _LL_WRITE | sum(1 << bit for bit in range(4, 13))
_LL_REFER = 1 << 13
_LL_SCOPES = 0b11  # abstract sockets, signals


class Step(NamedTuple):
    """One thing to do. `args` holds str, bytes, int, bool, None and tuples of them only."""

    verb: str
    args: tuple[object, ...] = ()
    layer: str = ""
    """The layer that `without` knows it by; empty for a step no sandbox can lack."""


class HostFacts(NamedTuple):
    """What a plan needs to know of the host; `host.facts` reads it."""

    user: int
    group: int
    machine: str = "x86_64"
    root_links: tuple[tuple[str, str | None], ...] = (("/usr", None),)
    """Top folders of programs: the target of a link, or None for a real folder."""
    etc: tuple[tuple[str, str | None], ...] = ()
    """Chosen names in /etc: the link to make, or None to bind."""
    devices: tuple[str, ...] = DEVICES
    extra_roots: tuple[str, ...] = ()
    """/nix/store, /run/current-system and their like, where the host has them."""
    programs: str = ""
    """Where the top folders of programs and the names in /etc are on the host: nowhere else, or below an unpacked image."""
    shell: str = "/bin/bash"
    """Whose login shell it is inside."""
    landlock_abi: int = 0
    idmap_owners: tuple[tuple[str, int, int], ...] | None = None
    """Started by root: (source, owner, group) of each tree to show under the inside id. None: an ordinary user, or no support."""
    scratch: str = "/tmp"
    tree: Tree = Tree()


def plan(spec: SandboxSpec, host: HostFacts, without: frozenset[str] = frozenset()) -> tuple[Step, ...]:
    """The steps of a sandbox, in order. `without` switches layers off and exists for tests alone.

    Raises SandboxError("spec", …) when the spec asks for what would open a hole.
    """
    wrong = problems(spec)
    if wrong:
        raise SandboxError("spec", "; ".join(wrong), hint=None)
    assert without <= set(LAYERS), f"unknown layers: {sorted(without - set(LAYERS))}"
    placed = _placed(spec, host)
    steps = [
        *_identity(spec, host, placed),
        Step("score", (300,), "score"),
        Step("scrub", (), "scrub"),
        Step("loopback"),
        *((Step("listen", (spec.port,)),) if spec.listens else ()),
        *(Step("listen", (port,)) for port in spec.host_ports),
        *((Step("sockets", (SOCKETS,)),) if spec.ports else ()),
        Step("private"),
        *((Step("terminals", (), "terminals"),) if spec.interactive else ()),
        *(
            Step("take", (bind.target, bind.source, READ_WRITE if bind.writable else READ_ONLY, bind.real))
            for bind in placed
            if not _idmapped(bind.source, host)
        ),
        *(Step("take", (f"/dev/{name}", f"/dev/{name}", _DEVICE, False)) for name in host.devices),
        *((Step("become", (spec.user_id,)),) if host.idmap_owners is not None else ()),
        Step("orphan", (), "orphan"),  # a change of user would clear it
        Step("root", (host.scratch,)),
        *_system(spec, host),
        *_devices(spec, host),
        *_etc(spec, host),
        *_places(spec, placed),
        *_care(spec, host, placed),
        *_proc(),
        Step("hostname", (spec.hostname,)),
        Step("keyring", (), "keyring"),
        Step("enter"),
        Step("read_only", ("/",)),
        Step("read_only", ("/dev",)),
        *_give_up(spec, host),
    ]
    return tuple(step for step in steps if step.layer not in without)


def bare(spec: SandboxSpec) -> tuple[Step, ...]:
    """The steps of a session without a sandbox, which the owner asked for by name: the limits that need no namespace, and a parent that
    ends what the harness leaves running. No bound on processes: the kernel would count all that the user runs.

    Raises SandboxError("spec", …) as `plan` does.
    """
    wrong = problems(spec)
    if wrong:
        raise SandboxError("spec", "; ".join(wrong), hint=None)
    rlimits = tuple(pair for pair in _rlimits(spec) if pair[0] != "NPROC")
    return (
        Step("fork"),
        Step("adopt"),
        Step("scrub", (), "scrub"),
        Step("limits", rlimits, "limits"),
        Step("descriptors", (), "descriptors"),
    )


def _placed(spec: SandboxSpec, host: HostFacts) -> tuple[Bind, ...]:
    """Everything of the host that is shown, shallow targets first, so that no mount hides an earlier one."""
    # Nothing in an image is followed: a link in it is repeated inside, where it leads to the image, and never resolved on the host.
    shown = [path for path, link in host.root_links if link is None]
    shown += [*host.extra_roots, *(f"/etc/{name}" for name, link in host.etc if link is None)]
    links = [Bind(host.programs + path, path, real=bool(host.programs)) for path in shown]
    binds = [Bind(spec.workdir, spec.workdir, True, real=True), *spec.binds]
    if spec.memory_dir is not None:
        binds.append(Bind(spec.memory_dir, "/opt/memory"))
    if host.tree.common is not None:
        binds.append(Bind(host.tree.common, host.tree.common, True, real=True))
    if spec.read_only:
        binds = [bind._replace(writable=False) for bind in binds]
    binds.append(Bind(spec.home, spec.home_inside, True))
    by_target = {bind.target: bind for bind in (*links, *binds)}
    if len({bind.target for bind in binds}) < len(binds):
        twice = sorted(target for target in by_target if sum(bind.target == target for bind in binds) > 1)
        raise SandboxError("spec", f"two binds for {', '.join(twice)}", hint=None)
    return tuple(sorted(by_target.values(), key=lambda bind: (bind.target.count("/"), bind.target)))


def _identity(spec: SandboxSpec, host: HostFacts, placed: tuple[Bind, ...]) -> list[Step]:
    if host.idmap_owners is None:
        # The child writes its own maps, as anybody may. Root without idmapped mounts stays the host's root outside (weaker).
        return [Step("clone", (spec.user_id, host.user, host.group, False))]
    owners = {source: (owner, group) for source, owner, group in host.idmap_owners}
    shown = [
        Step("idmap", (bind.target, bind.source, READ_WRITE if bind.writable else READ_ONLY, bind.real, *owners[bind.source], OUTSIDE_ID))
        for bind in placed
        if bind.source in owners
    ]
    return [*shown, Step("clone", (spec.user_id, OUTSIDE_ID, OUTSIDE_ID, True))]


def _idmapped(source: str, host: HostFacts) -> bool:
    return host.idmap_owners is not None and any(source == each for each, _, _ in host.idmap_owners)


def _system(spec: SandboxSpec, host: HostFacts) -> list[Step]:
    steps = [Step("link", (path, link)) for path, link in host.root_links if link is not None]
    small, quarter = 64 * MIB, max(64 * MIB, spec.limits.tmp_bytes // 4)
    steps += [Step("directory", (path,)) for path in ("/etc", "/opt", "/home", "/var")]
    steps += [
        Step("tmpfs", ("/tmp", spec.limits.tmp_bytes, 0o1777)),
        Step("tmpfs", ("/run", small, 0o755)),
        Step("tmpfs", ("/var/tmp", quarter, 0o1777)),
    ]
    return steps


def _devices(spec: SandboxSpec, host: HostFacts) -> list[Step]:
    links = (
        ("/dev/ptmx", "pts/ptmx"),
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
    )
    return [
        Step("tmpfs", ("/dev", MIB, 0o755)),
        *(Step("put", (f"/dev/{name}", f"/dev/{name}")) for name in host.devices),
        Step("pts"),
        Step("queues"),
        Step("tmpfs", ("/dev/shm", max(64 * MIB, spec.limits.tmp_bytes // 4), 0o1777)),
        *(Step("link", link) for link in links),
    ]


def _etc(spec: SandboxSpec, host: HostFacts) -> list[Step]:
    """The made-up files of /etc; what is bound there from the host never has one of these names."""
    number, name, home = spec.user_id, spec.user_name, spec.home_inside
    files = {
        "passwd": f"root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n{name}:x:{number}:{number}:{name}:{home}:{host.shell}\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        "group": f"root:x:0:\n{name}:x:{number}:\nnogroup:x:65534:\n",
        "hosts": f"127.0.0.1\tlocalhost {spec.hostname}\n::1\tlocalhost ip6-localhost\n",
        "hostname": f"{spec.hostname}\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\nprotocols: files\nservices: files\n",
        "resolv.conf": "# no name servers: a sandbox reaches its egress only\n",
        "machine-id": "a3e35e0c0b1f4d6d8e6f616d656d0000\n",
        "shells": "/bin/sh\n/bin/bash\n",
        # A login shell (Codex runs `bash -lc`) keeps the PATH it was given; the host's profile would reset it and lose /opt/memory.
        "profile": '[ -n "${PATH-}" ] || export PATH=/opt/memory:/usr/local/bin:/usr/bin:/bin\n',
        "bash.bashrc": "[ -z \"${PS1-}\" ] || PS1='\\u@\\h:\\w\\$ '\n",
        "gitconfig": _gitconfig(spec),
    }
    return [
        *(Step("file", (f"/etc/{name}", text.encode())) for name, text in files.items()),
        *(Step("link", (f"/etc/{name}", link)) for name, link in host.etc if link is not None),
        Step("link", ("/etc/mtab", "/proc/self/mounts")),
    ]


MADE_ETC = frozenset(
    (
        "passwd",
        "group",
        "hosts",
        "hostname",
        "nsswitch.conf",
        "resolv.conf",
        "machine-id",
        "shells",
        "profile",
        "bash.bashrc",
        "gitconfig",
        "mtab",
    )
)
"""Names in /etc that the plan makes itself."""


def _gitconfig(spec: SandboxSpec) -> str:
    """No credential helper; and the owner's id is another inside, which must not make the whole index look stale, nor a repository that is
    shown somebody else's."""
    usual = "[credential]\n\thelper =\n[core]\n\tcheckStat = minimal\n[safe]\n\tdirectory = *\n"
    if spec.git is None:
        return usual
    return f'[user]\n\tname = "{spec.git.name}"\n\temail = "{spec.git.email}"\n{usual}'


def _places(spec: SandboxSpec, placed: tuple[Bind, ...]) -> list[Step]:
    """Attach what was taken. A target inside another bound tree meets names nobody here controls, so it follows no link; only in the
    private home may a mount point be made."""
    by_target = {bind.target: bind for bind in placed}
    steps = []
    for bind in placed:
        above = _nearest(bind.target, by_target)
        if above is not None:
            steps.append(Step("put_beneath", (bind.target, bind.target, above.target == spec.home_inside)))
        else:
            steps.append(Step("put", (bind.target, bind.target)))
    return steps


def _nearest(path: str, by_target: dict[str, Bind]) -> Bind | None:
    """The bind that holds a path and is not at it; the deepest, where several do."""
    while len(path) > 1:
        path = path.rpartition("/")[0]
        if path in by_target:
            return by_target[path]
    return None


def _care(spec: SandboxSpec, host: HostFacts, placed: tuple[Bind, ...]) -> list[Step]:
    """Pins before the read-only names below them: without the pin, `mv .git x; mkdir -p .git/hooks` would pass (shown)."""
    tree = host.tree
    steps = [Step("cover", (path,)) for path in spec.hidden]
    if tree.warning:
        steps.append(Step("warn", (tree.warning,)))
    if host.user == 0 and host.idmap_owners is None:
        steps.append(Step("warn", (ROOT_UNMAPPED,)))
    added = {name: Step("mirror", (spec.workdir, name, file, text.encode()), "protect") for name, file, text in spec.added}
    if spec.read_only:  # nothing in it can be moved, and no part of it may become writable
        return [*steps, *added.values()]
    if tree.kind == "plain":
        steps.append(Step("hold", (spec.workdir, ".git", READ_WRITE, True), "pins"))
    if tree.kind in ("linked", "submodule", "file"):
        steps.append(Step("hold", (spec.workdir, ".git", READ_ONLY, True), "protect"))
    steps += _protect(spec.workdir, tree.pins, (*spec.protect, *tree.names), added)
    if tree.common is not None:
        steps += _protect(tree.common, (), tree.common_names, {})
    return [*steps, *_pins([*(bind.target for bind in placed), *spec.hidden], placed)]


def _pins(paths: list[str], placed: tuple[Bind, ...]) -> list[Step]:
    """A pin for each folder of a writable tree above a path that was mounted there: else `mv a b; mkdir -p a/PATH` would put another in
    its place on the host."""
    pins: dict[Step, None] = {}
    by_target = {bind.target: bind for bind in placed}
    for path in paths:
        above = _nearest(path, by_target)
        if above is not None and above.writable:
            tree = above.target
            pins |= dict.fromkeys(Step("hold", (tree, folder, READ_WRITE, False), "pins") for folder in _above(path[len(tree) + 1 :]))
    return list(pins)


def _protect(tree: str, pins: tuple[str, ...], names: tuple[str, ...], added: dict[str, Step]) -> list[Step]:
    """Read-only names, and a pin for each folder above one: what is a mount point can be neither moved nor removed.

    `added`: the step for a name that is more than held.
    """
    above = dict.fromkeys((*pins, *(folder for name in names for folder in _above(name) if folder != ".git")))
    return [
        *(Step("hold", (tree, folder, READ_WRITE, False), "pins") for folder in above),
        *(added.get(name) or Step("hold", (tree, name, READ_ONLY, False), "protect") for name in dict.fromkeys(names)),
    ]


def _above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _proc() -> list[Step]:
    return [
        Step("proc"),
        Step("write", ("/proc/sys/user/max_user_namespaces", b"0"), "nesting"),
        *(Step("halve", (own, of_all), "limits") for own, of_all in SHARED_QUOTAS),
        *(Step("hold_proc", (path,), "masks") for path in PROC_READ_ONLY),
        *(Step("cover", (path,), "masks") for path in PROC_HIDDEN),
    ]


def _rlimits(spec: SandboxSpec) -> tuple[tuple[str, int], ...]:
    limits = spec.limits
    return (
        ("NPROC", limits.processes),
        ("NOFILE", limits.open_files),
        ("FSIZE", limits.file_size_bytes),
        ("DATA", limits.memory_bytes),
        # 0 would not stop a core_pattern that is a pipe; 1 does (measured).
        ("CORE", 1),
    )


def _give_up(spec: SandboxSpec, host: HostFacts) -> list[Step]:
    limits = spec.limits
    steps = [
        *((Step("settle"),) if spec.moved else ()),
        Step("limits", (*_rlimits(spec), *SHARED_LIMITS), "limits"),
        Step("bounds", (limits.memory_bytes, limits.processes), "limits"),
        Step("descriptors", (), "descriptors"),
        Step("no_new_privileges"),
    ]
    if host.landlock_abi:
        steps.append(Step("landlock", _landlock(spec, host), "landlock"))
    steps += [Step("drop_capabilities", (), "capabilities"), Step("undumpable", (), "undumpable")]
    if host.machine in seccomp.ARCHES:
        steps.append(Step("filter", (seccomp.program(host.machine, spec.allow_ptrace),), "seccomp"))
    return steps


def _landlock(spec: SandboxSpec, host: HostFacts) -> tuple[object, ...]:
    abi = host.landlock_abi
    handled = _LL_BASE | (_LL_REFER if abi >= 2 else 0) | (_LL_TRUNCATE if abi >= 3 else 0) | (_LL_IOCTL if abi >= 5 else 0)
    on_file = handled & (_LL_WRITE | _LL_TRUNCATE | _LL_IOCTL)
    own = (spec.workdir, *(bind.target for bind in spec.binds if bind.writable))
    writable = [
        *(own if not spec.read_only else ()),
        spec.home_inside,
        "/tmp",
        "/var/tmp",
        "/run",
        "/dev/shm",
        "/dev/mqueue",
    ]
    if host.tree.common is not None:
        writable.append(host.tree.common)
    rules = [(path, handled & ~_LL_IOCTL) for path in dict.fromkeys(writable)]
    rules += [("/dev/pts", on_file), *((f"/dev/{name}", on_file) for name in host.devices)]
    return (handled, _LL_SCOPES if abi >= 6 else 0, tuple(rules))

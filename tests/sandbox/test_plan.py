"""Plans as whole values, and what must hold of every plan."""

import marshal
import subprocess
import sys

import pytest

from amem.errors import SandboxError
from amem.sandbox import seccomp
from amem.sandbox.ids import OUTSIDE_ID
from amem.sandbox.plan import LAYERS, READ_ONLY, READ_WRITE, HostFacts, Step, bare, plan
from amem.sandbox.spec import GIT_NAMES, Bind, Limits, SandboxSpec, Tree

SPEC = SandboxSpec(
    argv=("true",),
    env=(),
    workdir="/srv/tree",
    cwd="/srv/tree",
    home="/state/home",
    port=7431,
    memory_dir="/state/memory",
    protect=(".git/hooks", ".envrc"),
    limits=Limits(100, 1 << 30, 1000, 1 << 31, 1 << 29),
)
HOST = HostFacts(
    user=1001,
    group=1002,
    root_links=(("/usr", None), ("/bin", "usr/bin")),
    etc=(("localtime", "/usr/share/zoneinfo/UTC"), ("ssl/certs", None)),
    devices=("null", "tty"),
    landlock_abi=7,
    tree=Tree("plain"),
)


def test_whole_plan_of_an_ordinary_user() -> None:
    made = [step for step in plan(SPEC, HOST) if step.verb not in ("file", "filter")]
    assert made == [
        Step("clone", (1000, 1001, 1002, False)),
        Step("score", (300,), "score"),
        Step("scrub", (), "scrub"),
        Step("loopback"),
        Step("listen", (7431,)),
        Step("private"),
        Step("take", ("/usr", "/usr", READ_ONLY, False)),
        Step("take", ("/home/agent", "/state/home", READ_WRITE, False)),
        Step("take", ("/opt/memory", "/state/memory", READ_ONLY, False)),
        Step("take", ("/srv/tree", "/srv/tree", READ_WRITE, True)),
        Step("take", ("/etc/ssl/certs", "/etc/ssl/certs", READ_ONLY, False)),
        Step("take", ("/dev/null", "/dev/null", 11, False)),
        Step("take", ("/dev/tty", "/dev/tty", 11, False)),
        Step("orphan", (), "orphan"),
        Step("root", ("/tmp",)),
        Step("link", ("/bin", "usr/bin")),
        Step("directory", ("/etc",)),
        Step("directory", ("/opt",)),
        Step("directory", ("/home",)),
        Step("directory", ("/var",)),
        Step("tmpfs", ("/tmp", 1 << 29, 0o1777)),
        Step("tmpfs", ("/run", 64 << 20, 0o755)),
        Step("tmpfs", ("/var/tmp", 1 << 27, 0o1777)),
        Step("tmpfs", ("/dev", 1 << 20, 0o755)),
        Step("put", ("/dev/null", "/dev/null")),
        Step("put", ("/dev/tty", "/dev/tty")),
        Step("pts"),
        Step("queues"),
        Step("tmpfs", ("/dev/shm", 1 << 27, 0o1777)),
        Step("link", ("/dev/ptmx", "pts/ptmx")),
        Step("link", ("/dev/fd", "/proc/self/fd")),
        Step("link", ("/dev/stdin", "/proc/self/fd/0")),
        Step("link", ("/dev/stdout", "/proc/self/fd/1")),
        Step("link", ("/dev/stderr", "/proc/self/fd/2")),
        Step("link", ("/etc/localtime", "/usr/share/zoneinfo/UTC")),
        Step("link", ("/etc/mtab", "/proc/self/mounts")),
        Step("put", ("/usr", "/usr")),
        Step("put", ("/home/agent", "/home/agent")),
        Step("put", ("/opt/memory", "/opt/memory")),
        Step("put", ("/srv/tree", "/srv/tree")),
        Step("put", ("/etc/ssl/certs", "/etc/ssl/certs")),
        Step("hold", ("/srv/tree", ".git", READ_WRITE, True), "pins"),
        Step("hold", ("/srv/tree", ".git/hooks", READ_ONLY, False), "protect"),
        Step("hold", ("/srv/tree", ".envrc", READ_ONLY, False), "protect"),
        Step("proc"),
        Step("write", ("/proc/sys/user/max_user_namespaces", b"0"), "nesting"),
        Step("halve", ("/proc/sys/user/max_inotify_instances", "/proc/sys/fs/inotify/max_user_instances"), "limits"),
        Step("halve", ("/proc/sys/user/max_inotify_watches", "/proc/sys/fs/inotify/max_user_watches"), "limits"),
        *(Step("hold_proc", (f"/proc/{name}",), "masks") for name in ("sys", "sysrq-trigger", "irq", "bus", "fs")),
        *(
            Step("cover", (f"/proc/{name}",), "masks")
            for name in ("kcore", "keys", "key-users", "kallsyms", "kpagecount", "kpageflags", "kpagecgroup", "timer_list", "latency_stats",
                         "sched_debug", "scsi", "acpi", "kmsg")
        ),
        Step("hostname", ("amem",)),
        Step("keyring", (), "keyring"),
        Step("enter"),
        Step("read_only", ("/",)),
        Step("read_only", ("/dev",)),
        Step(
            "limits",
            (
                ("NPROC", 100),
                ("NOFILE", 1000),
                ("FSIZE", 1 << 31),
                ("DATA", 1 << 30),
                ("CORE", 1),
                ("SIGPENDING", 1024),
                ("MSGQUEUE", 1 << 18),
                ("MEMLOCK", 1 << 20),
                ("RTPRIO", 0),
                ("NICE", 0),
            ),
            "limits",
        ),
        Step("bounds", (1 << 30, 100), "limits"),
        Step("descriptors", (), "descriptors"),
        Step("no_new_privileges"),
        Step(
            "landlock",
            (
                0xFFF2,
                3,
                (
                    *((path, 0x7FF2) for path in ("/srv/tree", "/home/agent", "/tmp", "/var/tmp", "/run", "/dev/shm", "/dev/mqueue")),
                    ("/dev/pts", 0xC002),
                    ("/dev/null", 0xC002),
                    ("/dev/tty", 0xC002),
                ),
            ),
            "landlock",
        ),
        Step("drop_capabilities", (), "capabilities"),
        Step("undumpable", (), "undumpable"),
    ]  # fmt: skip


def test_filter_is_last_because_it_forbids_the_rest() -> None:
    assert plan(SPEC, HOST)[-1] == Step("filter", (seccomp.program("x86_64", False),), "seccomp")
    assert plan(SPEC._replace(allow_ptrace=True), HOST)[-1] == Step("filter", (seccomp.program("x86_64", True),), "seccomp")


def test_root_shows_its_trees_under_the_inside_id() -> None:
    owners = (("/srv/tree", 0, 0), ("/state/home", 0, 0))
    made = plan(SPEC, HOST._replace(user=0, group=0, idmap_owners=owners))
    assert made[:3] == (
        Step("idmap", ("/home/agent", "/state/home", READ_WRITE, False, 0, 0, OUTSIDE_ID)),
        Step("idmap", ("/srv/tree", "/srv/tree", READ_WRITE, True, 0, 0, OUTSIDE_ID)),
        Step("clone", (1000, OUTSIDE_ID, OUTSIDE_ID, True)),
    )
    verbs = [step.verb for step in made]
    assert verbs.index("become") > max(at for at, verb in enumerate(verbs) if verb == "take")  # opened as root
    assert verbs.index("become") < verbs.index("orphan")  # a change of user clears it
    assert not any(step.verb == "take" and step.args[1] in ("/srv/tree", "/state/home") for step in made)


def test_root_without_idmapped_mounts_is_said_to_be_weaker() -> None:
    assert any(step.verb == "warn" and "weaker" in str(step.args) for step in plan(SPEC, HOST._replace(user=0)))
    assert not any(step.verb == "warn" for step in plan(SPEC, HOST))


def test_bind_inside_the_tree_follows_no_link_and_makes_nothing() -> None:
    made = plan(SPEC._replace(binds=(Bind("/srv/tree/.venv", "/srv/tree/.venv"), Bind("/x", "/home/agent/.x"))), HOST)
    assert Step("put_beneath", ("/srv/tree/.venv", "/srv/tree/.venv", False)) in made
    assert Step("put_beneath", ("/home/agent/.x", "/home/agent/.x", True)) in made


def test_one_file_may_stand_in_two_places() -> None:
    made = plan(SPEC._replace(binds=(Bind("/x", "/srv/tree/a"), Bind("/x", "/srv/tree/b"))), HOST)
    taken = [step.args[0] for step in made if step.verb == "take"]
    assert len(set(taken)) == len(taken) and {"/srv/tree/a", "/srv/tree/b"} <= set(taken)


def test_shallow_targets_come_first() -> None:
    made = plan(SPEC._replace(workdir="/home/agent/deep/work", cwd="/home/agent/deep/work", binds=(Bind("/t", "/tmp/tool"),)), HOST)
    order = [step.args[0] if step.verb == "tmpfs" else step.args[1] for step in made if step.verb in ("put", "put_beneath", "tmpfs")]
    assert order.index("/tmp") < order.index("/tmp/tool")
    assert order.index("/home/agent") < order.index("/home/agent/deep/work")


def test_linked_tree_shows_its_common_directory_with_care() -> None:
    tree = Tree("linked", common="/repo/.git", common_names=("hooks", "config", "worktrees/x/config.worktree"))
    made = plan(SPEC, HOST._replace(tree=tree))
    assert Step("put", ("/repo/.git", "/repo/.git")) in made
    held = [(step.args[0], step.args[1], step.args[2]) for step in made if step.verb == "hold" and step.args[0] == "/repo/.git"]
    assert held == [
        ("/repo/.git", "worktrees", READ_WRITE),
        ("/repo/.git", "worktrees/x", READ_WRITE),
        ("/repo/.git", "hooks", READ_ONLY),
        ("/repo/.git", "config", READ_ONLY),
        ("/repo/.git", "worktrees/x/config.worktree", READ_ONLY),
    ]
    assert Step("hold", ("/srv/tree", ".git", READ_ONLY, True), "protect") in made


def test_a_file_that_is_added_takes_the_place_of_the_hold_and_is_there_in_a_tree_that_is_only_shown() -> None:
    spec = SPEC._replace(protect=(".git/hooks", ".tool"), added=((".tool", "file", "text"), ("sub/.tool", "file", "text")))
    mirrored = Step("mirror", ("/srv/tree", ".tool", "file", b"text"), "protect")
    made = plan(spec, HOST)
    assert [step for step in made if step.verb == "mirror"] == [mirrored], "a folder that a session may write has nothing added"
    assert not any(step.verb == "hold" and step.args[1] == ".tool" for step in made)
    shown = [step for step in plan(spec._replace(read_only=True), HOST) if step.verb in ("mirror", "hold")]
    assert shown == [mirrored, mirrored._replace(args=("/srv/tree", "sub/.tool", "file", b"text"))]


def test_an_image_differs_from_the_hosts_programs_in_where_they_are_taken_from_and_in_nothing_else() -> None:
    image = HOST._replace(programs="/state/image/img-0")
    of_host, of_image = plan(SPEC, HOST), plan(SPEC._replace(image="/state/image/img-0"), image)
    changed = [(before, after) for before, after in zip(of_host, of_image, strict=True) if before != after]
    image_usr, image_certs = "/state/image/img-0/usr", "/state/image/img-0/etc/ssl/certs"
    assert changed == [
        # No link of an image is followed on the host: the last value says so.
        (Step("take", ("/usr", "/usr", READ_ONLY, False)), Step("take", ("/usr", image_usr, READ_ONLY, True))),
        (Step("take", ("/etc/ssl/certs",) * 2 + (READ_ONLY, False)), Step("take", ("/etc/ssl/certs", image_certs, READ_ONLY, True))),
    ]


def test_a_relay_inside_binds_the_port_itself() -> None:
    assert [step for step in plan(SPEC, HOST) if step not in plan(SPEC._replace(listens=False), HOST)] == [Step("listen", (7431,))]


def test_the_whole_plan_without_a_sandbox() -> None:
    assert bare(SPEC) == (
        Step("fork"),
        Step("adopt"),
        Step("scrub", (), "scrub"),
        Step("limits", (("NOFILE", 1000), ("FSIZE", 1 << 31), ("DATA", 1 << 30), ("CORE", 1)), "limits"),
        Step("descriptors", (), "descriptors"),
    )
    with pytest.raises(SandboxError, match="NUL"):
        bare(SPEC._replace(argv=("a\0b",)))


def test_every_layer_can_be_switched_off_alone() -> None:
    every = SPEC._replace(protect=GIT_NAMES, interactive=True)
    whole = plan(every, HOST)
    for layer in LAYERS:
        less = plan(every, HOST, frozenset({layer}))
        assert [step for step in whole if step.layer != layer] == list(less)
        assert len(less) < len(whole), layer


def test_plan_can_be_marshalled() -> None:
    steps = tuple((step.verb, step.args) for step in plan(SPEC, HOST))
    assert marshal.loads(marshal.dumps(steps)) == steps


def test_bad_spec_is_refused() -> None:
    with pytest.raises(SandboxError, match="user_id") as caught:
        plan(SPEC._replace(user_id=0), HOST)
    assert caught.value.step == "spec"


def test_two_binds_for_one_target_are_refused() -> None:
    with pytest.raises(SandboxError, match="two binds"):
        plan(SPEC._replace(binds=(Bind("/a", "/x"), Bind("/b", "/x"))), HOST)


def test_stage_loads_nothing_heavy() -> None:
    """What `fork_stage` and the stage itself import, in a bare interpreter."""
    code = "import sys; a = set(sys.modules); import amem.sandbox.child, amem.sandbox.stage; print(*sorted(set(sys.modules) - a))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    heavy = {
        "ctypes",
        "typing",
        "signal",
        "socket",
        "subprocess",
        "dataclasses",
        "enum",
        "logging",
        "asyncio",
        "re",
        "pyroute2",
        "json",
        "amem.errors",
    }
    assert not loaded & heavy, loaded & heavy


def test_only_the_ports_asked_for_are_opened_and_before_anything_of_the_host_is_taken() -> None:
    verbs = ("listen", "sockets")
    assert [step for step in plan(SPEC, HOST) if step.verb in verbs] == [Step("listen", (SPEC.port,))]
    opened = plan(SPEC._replace(ports=(3000,), host_ports=(5432, 6379)), HOST)
    at = [step.verb for step in opened].index("listen")
    assert opened[at : at + 4] == (Step("listen", (SPEC.port,)), Step("listen", (5432,)), Step("listen", (6379,)), Step("sockets", (64,)))
    for wrong in ({"ports": (SPEC.port,)}, {"ports": (1, 1)}, {"ports": (80,), "host_ports": (80,)}, {"host_ports": (0,)}):
        with pytest.raises(SandboxError, match="a port must be"):
            plan(SPEC._replace(**wrong), HOST)
    with pytest.raises(SandboxError, match="more than 16"):
        plan(SPEC._replace(host_ports=tuple(range(8000, 8017))), HOST)

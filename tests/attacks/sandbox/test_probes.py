"""Every probe of the table, in one sandbox for each way of launching; and control runs, where a layer is off and the probe must bite."""

import atexit
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from amem.sandbox.privileges import landlock_abi
from amem.sandbox.spec import is_below
from tests.sandbox.launching import Place, place, unavailable

SCRIPT = Path(__file__).with_name("probes.py")
NUMBERS = sorted(
    {line[5:].split("(")[0].lstrip("0") for line in SCRIPT.read_text().splitlines() if line.startswith("def p") and line[5].isdigit()},
    key=int,
)
LIMITS = {"processes": 64, "memory_bytes": 1 << 30, "tmp_bytes": 1 << 28}
WEAKER = {
    "22": "PID 1 is root's outside, so its descriptors can be listed",
    "38": "RLIMIT_NPROC does not bind root",
} | ({} if landlock_abi() else {"26": "PID 1 is root's outside, so its oom_score_adj can be written where no Landlock is"})
"""Started by root where no idmapped mounts are: what does not hold, as `amem doctor` says."""


@contextmanager
def _queue(name: str) -> Iterator[None]:
    """A message queue of the host's, for everybody."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.umask(0)
    made = libc.mq_open(f"/{name}".encode(), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666, None)
    os.umask(before)
    assert made >= 0, os.strerror(ctypes.get_errno())
    os.close(made)
    try:
        yield
    finally:
        libc.mq_unlink(f"/{name}".encode())


def furnish(here: Place) -> None:
    """A repository with a hook, things a session must not reach, and a hook program."""
    git = ["git", "-c", "init.defaultBranch=main", "-c", "user.name=Owner", "-c", "user.email=o@example.com"]
    subprocess.run([*git, "init", "-q", str(here.work)], check=True, env=here.env() | {"HOME": str(here.base)})
    (here.work / ".git/hooks").mkdir(exist_ok=True)
    (here.work / "file").write_text("content\n")
    (here.work / "tool").write_text("#!/bin/sh\n")
    (here.work / ".vscode").mkdir()
    (here.work / ".vscode/settings.json").write_text("{}\n")
    (here.base / "secret").write_text("planted-secret\n")
    (here.work / "link-to-secret").symlink_to(here.base / "secret")
    shutil.copy(SCRIPT, here.work / "probes.py")
    memory = here.base / "memory"
    memory.mkdir()
    (memory / "memory").write_text("#!/bin/sh\n")
    (memory / "memory").chmod(0o755)
    here.own()


def _private(python: str) -> list[str]:
    """What the host's home holds, save for the way to the interpreter."""
    home = Path.home()
    shown = (sys.prefix, sys.base_prefix, python)
    return [str(home / name) for name in os.listdir(home) if not any(is_below(path, str(home / name)) for path in shown)]


RELAY = """
import os, socket, sys
sys.path.insert(0, "/opt/memory")
from relay import Relay
listener = socket.create_server(("127.0.0.1", 7431))
if os.fork() == 0:
    Relay(listener, "/run/amem/egress.sock").serve()
listener.close()
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def relayed(here: Place, stack: ExitStack) -> tuple[list[str], dict[str, Any]]:
    """What starts a program behind a relay, and how its sandbox differs: as `--backend relay` has it."""
    door = here.base / "door"
    door.mkdir()
    egress = stack.enter_context(socket.socket(socket.AF_UNIX))
    egress.bind(str(door / "egress.sock"))
    egress.listen()
    (here.base / "memory/start.py").write_text(RELAY)
    shutil.copy(here.code / "amem/sandbox/relay.py", here.base / "memory")
    here.own()
    return ["{python}", "/opt/memory/start.py"], {"listens": False, "binds": [[str(door), "/run/amem"]]}


def imaged(here: Place, stack: ExitStack) -> tuple[list[str], dict[str, Any]]:
    """An image with this machine's own programs."""
    return [], {"image": _image()}


@cache
def _image() -> str:
    """Links of the same files, so many that every launch shows the one image."""
    base = tempfile.mkdtemp(prefix="amem-test-", dir="/tmp")
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    os.chmod(base, 0o755)
    image = Path(base, "image")
    for folder in ("usr/local/bin", "usr/share", "etc/ssl", "opt/amem"):
        (image / folder).mkdir(parents=True)
    names = (
        "usr/bin",
        "usr/sbin",
        "usr/lib",
        "usr/lib64",
        "usr/libexec",
        "usr/share/git-core",
        "usr/share/zoneinfo",
        "etc/ssl/certs",
        "etc/localtime",
    )
    for name in names:
        copied = subprocess.run(["cp", "-al", f"/{name}", image / os.path.dirname(name)], capture_output=True, text=True)
        if "cross-device" in copied.stderr or "not permitted" in copied.stderr:
            pytest.skip(f"no hard links to this machine's programs can be made here: {copied.stderr[:200]}")
    for name in ("bin", "lib", "lib64", "sbin"):
        (image / name).symlink_to(f"usr/{name}")
    return str(image)


BACKENDS = {"relay": relayed, "image": imaged}


@cache
def results(launcher: str, without: frozenset[str] = frozenset(), only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Run probes in one sandbox; by number, whether they held and what they saw."""
    who, _, way = launcher.partition("-")
    with ExitStack() as stack:
        here = stack.enter_context(place("user" if who == "user" else "root", other=way == "other"))
        furnish(here)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0amem-test-{os.getpid()}")
        abstract.listen()
        named = stack.enter_context(socket.socket(socket.AF_UNIX))
        named.bind(str(here.base / "socket"))
        named.listen()
        (here.base / "socket").chmod(0o777)
        stack.enter_context(_queue(f"amem-test-{os.getpid()}"))
        facts = {
            "work": str(here.work),
            "absent": [
                *_private(here.python),
                str(here.base / "secret"),
                str(here.home),
                "/boot",
                "/sys",
                "/var/cache/apt",
                "/var/cache/debconf",
                "/var/lib/apt",
                "/var/lib/private",
                "/var/lib/systemd",
                "/var/log",
                "/var/spool",
                "/mnt",
            ],
            "host_port": tcp.getsockname()[1],
            "abstract": f"amem-test-{os.getpid()}",
            "queue": f"amem-test-{os.getpid()}",
            "socket": str(here.base / "socket"),
            "key": here.mark,
            **LIMITS,
        }
        start, extra = BACKENDS[way](here, stack) if way in BACKENDS else ([], {})
        root = os.open("/", os.O_RDONLY)
        stack.callback(os.close, root)
        os.set_inheritable(root, True)
        report = here.launch(
            *(start or ["{python}"]), "-I", f"{here.work}/probes.py", json.dumps(facts), *only,
            pass_fds=(root,), without=sorted(without), no_idmap=who == "unmapped", key=here.mark,
            spec={"memory_dir": str(here.base / "memory"), "limits": LIMITS, "git": ["An Agent", "agent@example.com"], **extra},
        )  # fmt: skip
        assert report.get("code") == 0, report
        if who != "unmapped":
            assert report["idmap"] is (who == "root"), "root without idmapped mounts here: run this on another file system"
        found: dict[str, Any] = json.loads(report["out"])
        return found


@pytest.fixture(params=["user", "root", "unmapped", "user-other", "root-other", "user-relay", "root-relay", "user-image", "root-image"])
def who(request: pytest.FixtureRequest) -> str:
    """Who launches, and on which Python or which backend."""
    name: str = request.param
    reason = unavailable("user" if name.startswith("user") else "root", other=name.endswith("-other"))
    if reason:
        pytest.skip(reason)
    return name


@pytest.mark.parametrize("number", NUMBERS)
def test_probe(who: str, number: str) -> None:
    held, seen = results(who)[number]
    if who == "unmapped" and number in WEAKER:
        assert not held, f"it holds now: take it off the list ({WEAKER[number]})"
        pytest.skip(f"weaker here, and doctor says so: {WEAKER[number]}")
    assert held, seen


CONTROLS = [
    ("user", {"seccomp"}, ("11", "13", "27", "29", "45", "48", "82", "84", "89", "90", "94", "95")),
    ("user", {"seccomp", "nesting"}, ("20",)),
    ("user", {"nesting"}, ("86",)),
    ("user", {"seccomp", "keyring"}, ("87",)),
    ("user", {"pins"}, ("35",)),
    ("user", {"protect"}, ("33", "34", "37")),
    ("user", {"scrub"}, ("23",)),
    ("user", {"undumpable"}, ("22",)),
    ("user", {"descriptors"}, ("43",)),
    ("user", {"limits"}, ("38", "39", "41", "85", "91")),
    ("user", {"capabilities"}, ("29",)),
    ("user", {"score"}, ("83",)),
    ("user", {"landlock"}, ("93",)),
    ("root", {"seccomp"}, ("11", "27", "29", "45", "48", "82", "84", "89", "90", "94", "95")),
    ("root", {"nesting"}, ("86",)),
    ("root", {"seccomp", "keyring"}, ("87",)),
    ("root", {"pins"}, ("35",)),
    ("unmapped", {"masks", "landlock"}, ("26",)),
    ("user-other", {"seccomp"}, ("11", "13", "27", "29", "45", "48", "82", "84", "89", "90", "94", "95")),
    ("user-other", {"undumpable"}, ("22",)),
    ("user-other", {"limits"}, ("38", "39", "41")),
    ("root-other", {"pins"}, ("35",)),
    ("user-relay", {"seccomp"}, ("11", "13", "27", "29", "45", "48", "82", "84", "89", "90", "94", "95")),
    ("user-relay", {"descriptors"}, ("43",)),
    ("user-image", {"seccomp"}, ("11", "13", "27", "29", "45", "48", "82", "84", "89", "90", "94", "95")),
    ("root-other", {"descriptors"}, ("43",)),
]


def absent() -> set[str]:
    """Probes of what this kernel lacks, which holds there whatever is switched off."""
    try:
        socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    except OSError:
        return {"11"}
    return set()


@pytest.mark.parametrize(
    ("launcher", "without", "bite"), CONTROLS, ids=lambda value: "+".join(sorted(value)) if isinstance(value, set) else None
)
def test_probes_bite_when_a_layer_is_off(launcher: str, without: set[str], bite: tuple[str, ...]) -> None:
    if "landlock" in without and not landlock_abi():
        pytest.skip("this kernel has no Landlock to switch off")
    found = results(launcher, frozenset(without), bite)
    assert {number for number in bite if found[number][0]} <= absent(), "a probe that does not notice proves nothing"


@pytest.mark.parametrize("launcher", ["user", "root"])
def test_a_keyring_of_its_own_is_enough(launcher: str) -> None:
    """With the call let through, the launcher's keys are still not there."""
    held, seen = results(launcher, frozenset({"seccomp"}), ("87",))["87"]
    assert held and seen == "ENOKEY", seen

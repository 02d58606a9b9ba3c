"""Launches on machines that forbid something: the sentence, the hint, and nothing left behind."""

import errno
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from amem.sandbox import causes
from tests.sandbox.launching import Place, place

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="shaping a namespace for the launcher needs root here")


CURRENT = "/proc/self/attr/apparmor/current"


def by_profile(label: str) -> causes.Cause:
    return causes.BY_PROFILE._replace(why=causes.BY_PROFILE.why.format(label=label))


def run_in(here: Place, *wrapper: str) -> dict[str, object]:
    done = subprocess.run([*wrapper, *here.command({"spec": {"argv": ["true"]}})], env=here.env(), cwd="/", capture_output=True, timeout=60)
    found: dict[str, object] = json.loads(done.stderr.decode().splitlines()[-1])
    return found


@needs_root
def test_spent_user_namespaces_are_named() -> None:
    """In a namespace of its own, so that the machine keeps its limit."""
    with place("root") as here:
        report = run_in(
            here, "unshare", "--user", "--map-root-user", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh"
        )
        assert report["step"] == "clone"
        assert "user namespaces" in str(report["error"])
        assert "max_user_namespaces" in str(report["hint"])


@needs_root
def test_masked_proc_is_named() -> None:
    with place("root") as here:
        # Each proc that is mounted here: the kernel asks whether any is whole.
        masked = 'while read -r _ at kind _; do [ $kind != proc ] || mount --bind /dev/null $at/version; done </proc/mounts && exec "$@"'
        report = run_in(here, "unshare", "--mount", "sh", "-c", masked, "sh")
        assert report["step"] == "proc"
        assert "masks parts of /proc" in str(report["error"])
        assert "unmask" in str(report["hint"])


@needs_root
def test_a_chroot_is_named() -> None:
    with place("root") as here:
        top = here.base / "top"
        binds = f"for path in /*; do [ ! -d $path ] || (mkdir -p {top}$path; mount --rbind $path {top}$path); done"
        script = f'{binds}; exec /usr/sbin/chroot {top} "$@"'
        report = run_in(here, "unshare", "--mount", "sh", "-c", script, "sh")
        assert (report["step"], report["hint"]) == ("clone", causes.CHROOT.fix), report


@needs_root
def test_work_tree_on_a_read_only_mount_still_launches() -> None:
    with place("root") as here:
        script = f'mount --bind {here.work} {here.work} && mount -o remount,bind,ro {here.work} && exec "$@"'
        assert run_in(here, "unshare", "--mount", "sh", "-c", script, "sh")["code"] == 0


@needs_root
def test_work_tree_on_a_tmpfs_still_launches() -> None:
    with place("root") as here:
        assert run_in(here, "unshare", "--mount", "sh", "-c", f'mount -t tmpfs x {here.work} && exec "$@"', "sh")["code"] == 0


@pytest.mark.parametrize(
    ("verb", "number", "switches", "wanted"),
    [
        ("clone", 28, {}, causes.USED_UP),
        ("clone", 28, {causes.MAX_USER: "0"}, causes.NONE_ALLOWED),
        ("map", 13, {causes.APPARMOR: "1"}, causes.BY_APPARMOR),
        ("loopback", 1, {causes.APPARMOR: "1"}, causes.BY_APPARMOR),
        ("private", 13, {causes.APPARMOR: "1"}, causes.BY_APPARMOR),
        ("clone", 1, {causes.CLONE_SWITCH: "0"}, causes.SWITCHED_OFF),
        ("clone", 1, {}, causes.FORBIDDEN),
        ("clone", 1, {CURRENT: "unconfined"}, causes.FORBIDDEN),
        ("clone", 1, {CURRENT: "amem (unconfined)"}, causes.FORBIDDEN),
        ("clone", 1, {CURRENT: "strict (enforce)"}, by_profile("strict (enforce)")),
        ("tmpfs", 13, {CURRENT: "docker-default (enforce)"}, by_profile("docker-default (enforce)")),
        ("proc", 1, {}, causes.MASKED_PROC),
        ("take", 38, {}, causes.OLD_KERNEL),
        ("take", 2, {}, None),
        ("hostname", 5, {}, None),
    ],
)
def test_cause_of_a_failed_step(
    monkeypatch: pytest.MonkeyPatch, verb: str, number: int, switches: dict[str, str], wanted: causes.Cause | None
) -> None:
    read: Callable[[str], str] = lambda path: switches.get(path, "1000" if path == causes.MAX_USER else "")  # noqa: E731
    monkeypatch.setattr(causes, "read", read)
    assert causes.cause(verb, number) == wanted


def test_missing_work_tree_names_it(here: Place) -> None:
    report = here.launch("true", spec={"workdir": str(here.base / "absent")})
    assert (report["step"], str(here.base / "absent") in str(report["error"])) == ("take", True)


def test_error_leaves_no_file(here: Place) -> None:
    before = sorted(path.name for path in Path(here.base).rglob("*"))
    report = here.launch("true", spec={"binds": [["/no/such/place", "/x"]]})
    assert (report["step"], "/no/such/place" in str(report["error"])) == ("take", True)
    assert sorted(path.name for path in Path(here.base).rglob("*")) == before


UNDER_WAY = """
import array, resource, socket, sys
count = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (count, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
kept = []
try:
    while True:
        ours, theirs = socket.socketpair()
        kept += [ours, theirs]
        for _ in range(2):
            ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1] * 250))])
except OSError as error:
    print(error.errno, flush=True)
sys.stdin.read()
"""


def test_descriptors_under_way_are_named() -> None:
    """The kernel counts those of all of a user's programs, and refuses whoever has passed the limit of its own by then."""
    with place("user") as here:
        command = [here.python, "-c", UNDER_WAY, "300"]
        with subprocess.Popen(command, **here.ids(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None and other.stdout.readline().split() == [str(errno.ETOOMANYREFS).encode()]
                few = 'ulimit -n 60; exec "$@"'
                asked = {"spec": {"argv": ["true"]}}
                done = subprocess.run(
                    ["sh", "-c", few, "sh", *here.command(asked)], **here.ids(), env=here.env(), cwd="/", capture_output=True, timeout=60
                )
                report = json.loads(done.stderr.decode().splitlines()[-1])
            finally:
                other.kill()
        assert (report["step"], "Traceback" in done.stderr.decode()) == ("clone", False), done.stderr.decode()
        assert "descriptors under way" in report["error"] and "amem session stop" in report["hint"]

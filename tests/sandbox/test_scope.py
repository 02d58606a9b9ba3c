"""What a scope says of its memory."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from amem.sandbox import scope
from tests.sandbox.launching import ORDINARY_ID, place

EVENTS = "low 0\nhigh 0\nmax 7\noom 2\noom_kill {}\noom_group_kill 0\n"


@pytest.fixture
def proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_text(path: Path) -> str:
        assert str(path) == "/proc/7/cgroup"
        return "1:name=systemd:/other\n0::/user.slice/amem-ses-00000001.scope\n"

    monkeypatch.setattr(scope.Path, "read_text", read_text)


def test_a_kill_for_memory_is_seen_in_the_events_of_the_scope(tmp_path: Path, proc: None) -> None:
    events = tmp_path / "user.slice/amem-ses-00000001.scope/memory.events"
    events.parent.mkdir(parents=True)
    events.write_text(EVENTS.format(0))
    found = scope.memory("ses-00000001", 7, str(tmp_path))
    assert found is not None
    assert not found.ran_out()
    events.write_text(EVENTS.format(1))
    assert found.ran_out()
    found.close()


def test_another_sessions_scope_or_none_with_events_is_not_watched(tmp_path: Path, proc: None) -> None:
    assert scope.memory("ses-00000002", 7, str(tmp_path)) is None
    assert scope.memory("ses-00000001", 7, str(tmp_path)) is None


@pytest.fixture
def parent() -> Iterator[tuple[int, int]]:
    """A process and its child, both waiting."""
    with subprocess.Popen(["sh", "-c", "sleep 100 & echo $!; wait"], stdout=subprocess.PIPE, text=True, process_group=0) as made:
        assert made.stdout is not None
        try:
            yield made.pid, int(made.stdout.readline())
        finally:
            os.killpg(made.pid, signal.SIGKILL)


def test_what_a_stage_made_is_waited_for_until_it_is_in_the_scope_too(monkeypatch: pytest.MonkeyPatch, parent: tuple[int, int]) -> None:
    """Else the harness, which the child would start, is outside for good; one made too late to be moved with it is handed in, once."""
    asked: list[int] = []
    handed: list[list[str]] = []

    def holds(session: str, pid: int) -> bool:
        asked.append(pid)
        return pid == parent[0] or asked.count(pid) == 3

    monkeypatch.setattr(scope, "holds", holds)
    monkeypatch.setattr(scope, "_ask", lambda command, environment: handed.append(command))
    assert scope.joined("ses-00000001", parent[0], {})
    assert asked.count(parent[1]) == 3
    assert [words[-6:] for words in handed] == [["AttachProcessesToUnit", "ssau", "amem-ses-00000001.scope", "", "1", str(parent[1])]]


def test_a_stage_that_stays_outside_is_told_and_one_that_ended_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, parent: tuple[int, int]
) -> None:
    monkeypatch.setattr(scope, "_TIMEOUT_S", 0.0)
    assert not scope.joined("ses-00000001", parent[0], {})
    with subprocess.Popen(["true"]) as gone:
        os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
        assert scope.joined("ses-00000001", gone.pid, {})


MANAGER = """
set -e; cd $BASE; mkdir cgroups run; mount -t cgroup2 none cgroups; top=$BASE/cgroups/amem-test-$$; mkdir -p $top/inner
trap 'find $top -depth -type d -exec rmdir {} +' EXIT
(cat /etc/passwd; echo "trial:x:$ID:$ID::$BASE/run:/bin/sh") > passwd; mount --bind passwd /etc/passwd
mount -t tmpfs none /run; mkdir -p /run/systemd/system; mount -t tmpfs -o uid=$ID,gid=$ID,mode=700 none run
chown -R $ID:$ID $top; export top
sh -ec 'echo $$ > $top/inner/cgroup.procs; exec unshare --cgroup --pid --fork --kill-child --mount-proc "$@"' sh sh -ec '
  mount -t tmpfs none /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup
  exec setpriv --reuid=$ID --regid=$ID --clear-groups sh -ec "$USER_SCRIPT"'
"""
AS_USER = """
export XDG_RUNTIME_DIR=$BASE/run HOME=$BASE/run DBUS_SESSION_BUS_ADDRESS=unix:path=$BASE/run/bus
dbus-daemon --session --address=$DBUS_SESSION_BUS_ADDRESS --fork --nopidfile
/lib/systemd/systemd --user >$HOME/log 2>&1 &
turns=0; until busctl --user status org.freedesktop.systemd1 >/dev/null 2>&1; do turns=$((turns + 1)); [ $turns -lt 300 ]; sleep 0.1; done
"$PYTHON" -B -c "$LOOK"
"""
LOOK = """
import json, os, subprocess, time
from pathlib import Path
from amem.sandbox import doctor, scope, surroundings
from amem.sandbox.child import fork_stage
from amem.sandbox.spec import Limits, SandboxSpec, base_env
idle = subprocess.Popen(["sleep", "100"])
held = scope.hold("ses-00000001", idle.pid, Limits(memory_bytes=64 << 20, processes=20), os.environ)
until = time.monotonic() + 20
while not scope.holds("ses-00000001", idle.pid) and time.monotonic() < until:
    time.sleep(0.01)
place = next(line[3:] for line in Path(f"/proc/{idle.pid}/cgroup").read_text().splitlines() if line.startswith("0::"))
limit = Path(f"/sys/fs/cgroup{place}/memory.max")
seen = [held, scope.holds("ses-00000001", idle.pid), place, limit.read_text() if limit.exists() else None, doctor._cgroup().state]
idle.kill()
work, home = (os.path.join(os.environ["BASE"], name) for name in ("work", "home"))
env = tuple(base_env({}, "/home/agent", "agent", surroundings.search_path()).items())
spec = SandboxSpec(argv=("cat", "/proc/self/cgroup"), env=env, workdir=work, cwd=work, home=home, port=7431)
stage, until = fork_stage(), time.monotonic() + 20
while not scope._children(stage.pid) and time.monotonic() < until:
    time.sleep(0.001)  # its cgroup namespace is made by then
stage.moved = scope.hold("ses-00000002", stage.pid, spec.limits, os.environ)
stage.order(spec)
moved = scope.joined("ses-00000002", stage.pid, os.environ)
running, shown = stage.start(spec), bytearray()
running.wait(lambda stream, data: shown.extend(data))
print(json.dumps([*seen, moved, shown.decode()]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a service manager a part of the cgroups needs root here")
def test_a_real_service_manager_makes_the_scope() -> None:
    """systemd's own, started for an ordinary user; whether it can bound memory is the machine's: where it cannot, doctor says so."""
    if not all(shutil.which(name, path="/usr/bin:/bin:/lib/systemd") for name in ("systemd", "dbus-daemon", "busctl")):
        pytest.skip("no systemd, dbus-daemon or busctl here")
    with place("user") as here:
        env = {
            "BASE": str(here.base),
            "ID": str(ORDINARY_ID),
            "PYTHON": here.python,
            "PYTHONPATH": str(here.code),
            "PATH": os.environ["PATH"],
        }
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MANAGER]
        done = subprocess.run(
            command, env=env | {"USER_SCRIPT": AS_USER, "LOOK": LOOK}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
    held, holds, where, limit, state, moved, shown = json.loads(done.stdout.splitlines()[-1])
    assert held and holds and where.endswith("/amem-ses-00000001.scope"), where
    assert (limit, state) in ((f"{64 << 20}\n", "ok"), (None, "weak"))
    assert moved
    assert {line.rpartition(":")[2] for line in shown.splitlines()} == {"/"}, "the session sees where on the host it is"

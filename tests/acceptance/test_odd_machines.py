"""Whole launches where the machine gives less than usual: the sentence that says so, and nothing left behind."""

import os
import subprocess
from pathlib import Path

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Done, Place

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="shaping the machine around a launcher needs root here")
MOUNTS = ("unshare", "--mount", "sh", "-ec")
USERS = ("unshare", "--user", "--map-root-user", "sh", "-ec")


@pytest.fixture
def desk(place: Place, provider: Running) -> Place:
    place.destination(provider.url)
    (place.tree / "file").write_text("one\n")
    return place


def launch(desk: Place, way: tuple[str, ...], machine: str, *words: str) -> Done:
    """`amem launch` on a machine that was shaped by a script, in namespaces that end with it."""
    command = desk.command("launch", "--harness", "command", *desk.launch_flags(), *words)
    script = f'{machine}\ncode=0; "$@" || code=$?; find $ROOT/state/homes -mindepth 1 -printf "home:%P "; exit $code'
    env = {**desk.environment, "DESK": str(desk.base), "ROOT": str(desk.root), "TREE": str(desk.tree)}
    done = subprocess.run(
        [*way, script, "sh", *command], cwd=PROJECT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    return Done(done.returncode, done.stdout, done.stderr)


def left(desk: Place) -> list[str]:
    """What stands in the tree and in the homes."""
    homes = desk.root / "state" / "homes"
    return sorted(str(path) for folder in (desk.tree, homes) if folder.exists() for path in folder.rglob("*"))


def running(desk: Place) -> list[str]:
    """Processes that name this place in their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found += [line] if str(desk.base) in (line := (entry / "cmdline").read_text()) else []
            except OSError:
                continue
    return found


REFUSED = {
    "none allowed": (USERS, "echo 0 > /proc/sys/user/max_user_namespaces", "no user namespaces are allowed", "max_user_namespaces=15000"),
    "used up": (
        USERS,
        "mkfifo $DESK/held; unshare --user sh -c 'echo x > $DESK/held; exec sleep 60' & read x < $DESK/held\n"
        'echo 1 > /proc/sys/user/max_user_namespaces; trap "kill $!" EXIT',
        "the limit of namespaces is used up",
        "end other sandboxes",
    ),
    "masked proc": (MOUNTS, "mount --bind /dev/null /proc/version", "an outer container masks parts of /proc", "unmask=ALL"),
    "read-only proc": (
        MOUNTS,
        "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys",
        "masks parts of /proc",
        "unmask=ALL",
    ),
    "full disk": (
        MOUNTS,
        "cp -a $ROOT $DESK/saved; mount -t tmpfs -o size=1m x $ROOT; cp -a $DESK/saved/. $ROOT\n"
        "dd if=/dev/zero of=$ROOT/filler 2>/dev/null || true",
        "No space left on device",
        "df -h",
    ),
    "no inodes": (
        MOUNTS,
        "cp -a $ROOT $DESK/saved; mount -t tmpfs -o size=1m,nr_inodes=$(($(find $DESK/saved | wc -l) + 4)) x $ROOT\n"
        "cp -a $DESK/saved/. $ROOT",
        "No space left on device",
        "df -i",
    ),
    "a database that cannot be": (MOUNTS, "mkdir $ROOT/state/usage.sqlite", "unable to open database file", "df -h"),
    "read-only root": (
        MOUNTS,
        "mount --bind $ROOT $ROOT; mount -o remount,bind,ro $ROOT",
        "Read-only file system",
        "",
    ),
}


@pytest.mark.parametrize("machine", REFUSED)
def test_what_forbids_a_launch_is_named_and_nothing_is_left(desk: Place, machine: str) -> None:
    way, script, sentence, hint = REFUSED[machine]
    before = left(desk)
    done = launch(desk, way, script, "--", "sh", "-c", "echo ran > file")
    assert sentence in done.err and hint in done.err, done.err
    assert done.code in (1, 125) and "Traceback" not in done.err, done.err
    assert left(desk) == before and done.out == "" and (desk.tree / "file").read_text() == "one\n"
    assert running(desk) == []


@pytest.mark.parametrize(
    ("machine", "word"),
    [
        ("mount -t tmpfs x $TREE; cp $DESK/one $TREE/file", "two"),
        ("mkdir $DESK/up $DESK/wk; mount -t tmpfs x $DESK/up; mkdir $DESK/up/u $DESK/up/w $DESK/low; cp $DESK/one $DESK/low/file\n"
         "mount -t overlay x -o lowerdir=$DESK/low,upperdir=$DESK/up/u,workdir=$DESK/up/w $TREE", "two"),
        ("mount --bind $TREE $TREE; mount -o remount,bind,ro $TREE", "one"),
        ("mount -t tmpfs -o size=64k x $TREE; cp $DESK/one $TREE/file; dd if=/dev/zero of=$TREE/filler 2>/dev/null || true", "one"),
    ],
    ids=["tmpfs", "overlayfs", "read-only", "full"],
)  # fmt: skip
@pytest.mark.parametrize("snapshot", ["--snapshot", "--no-snapshot"])
def test_a_tree_of_any_kind_is_worked_on_as_far_as_it_lets(desk: Place, machine: str, word: str, snapshot: str) -> None:
    (desk.base / "one").write_text("one\n")
    before = left(desk)
    done = launch(
        desk, MOUNTS, machine, snapshot, "--", "sh", "-c",
        "echo started; head -c 4096 /dev/zero > more && rm more && echo two > file; cat file",
    )  # fmt: skip
    assert (done.code, done.out.partition("home:")[0]) == (0, f"started\n{word}\n"), done.err
    assert [path for path in left(desk) if path.startswith(str(desk.tree))] == [path for path in before if path.startswith(str(desk.tree))]
    assert running(desk) == []


def test_programs_where_nix_keeps_them_are_found(desk: Place) -> None:
    """As NixOS and Guix have them: a profile under /run, and a store."""
    program = "/run/current-system/sw/bin/itself"
    machine = f"mount -t tmpfs x /run; mkdir -p {os.path.dirname(program)}; echo 'echo of the store' > {program}; chmod 755 {program}"
    done = launch(desk, MOUNTS, machine, "--", "sh", "-c", "itself; echo $SHELL; echo x > /run/current-system/made")
    assert done.out.startswith("of the store\n/bin/"), done.err
    assert "Read-only file system" in done.err


def test_a_session_that_is_there_already_keeps_its_home(desk: Place) -> None:
    words = ("--session-id", "ses-0123abcd", "--", "sh", "-c", "echo mine > ~/note")
    assert desk.launch(*words).code == 0
    again = desk.launch(*words)
    assert again.code == 1 and "exists already" in again.err
    assert (desk.root / "state" / "homes" / "ses-0123abcd" / "note").read_text() == "mine\n"

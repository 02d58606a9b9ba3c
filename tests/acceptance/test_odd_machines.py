"""Whole launches where the machine gives less than usual: the sentence that says so, and nothing left behind."""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from amem import __version__
from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Done, Place

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="shaping the machine around a launcher needs root here")
MOUNTS = ("unshare", "--mount", "sh", "-ec")
EACH_PROC = "for at in $(awk '$3 == \"proc\" {{ print $2 }}' /proc/mounts); do {}; done"
"""One that is whole would do for the kernel, and a machine may have another than /proc."""
USERS = ("unshare", "--user", "--map-root-user", "sh", "-ec")


@pytest.fixture
def desk(place: Place, provider: Running) -> Place:
    place.destination(provider.url)
    (place.tree / "file").write_text("one\n")
    return place


def launch(desk: Place, way: tuple[str, ...], machine: str, *words: str) -> Done:
    """`amem launch` on a machine that was shaped by a script, in namespaces that end with it."""
    return shaped(desk, way, machine, desk.command("launch", "--harness", "command", *desk.launch_flags(), *words))


def shaped(desk: Place, way: tuple[str, ...], machine: str, command: list[str]) -> Done:
    places = "$ROOT/state/homes $ROOT/state/running"
    script = f'{machine}\ncode=0; "$@" || code=$?; find {places} -mindepth 1 -printf "home:%P " 2>/dev/null || true; exit $code'
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
    "masked proc": (
        MOUNTS,
        EACH_PROC.format("mount --bind /dev/null $at/version"),
        "an outer container masks parts of /proc",
        "unmask=ALL",
    ),
    "read-only proc": (
        MOUNTS,
        EACH_PROC.format("mount --bind $at/sys $at/sys; mount -o remount,bind,ro $at/sys"),
        "masks parts of /proc",
        "unmask=ALL",
    ),
    "full disk": (
        MOUNTS,
        "mkdir -p $ROOT/state/running; cp -a $ROOT $DESK/saved; mount -t tmpfs -o size=1m x $ROOT; cp -a $DESK/saved/. $ROOT\n"
        "dd if=/dev/zero of=$ROOT/filler 2>/dev/null || true",
        "No space left on device",
        "df -h",
    ),
    "almost full disk": (
        MOUNTS,
        "cp -a $ROOT $DESK/saved; mount -t tmpfs -o size=1m x $ROOT; cp -a $DESK/saved/. $ROOT\n"
        "dd if=/dev/zero of=$ROOT/filler bs=4k 2>/dev/null || true; truncate -s -40k $ROOT/filler",
        "/root: No space left on device",
        "df -h",
    ),
    "no inodes": (
        MOUNTS,
        "cp -a $ROOT $DESK/saved; mount -t tmpfs -o size=1m,nr_inodes=$(($(find $DESK/saved | wc -l) + 4)) x $ROOT\n"
        "cp -a $DESK/saved/. $ROOT",
        "No space left on device",
        "df -i",
    ),
    "a database that cannot be": (MOUNTS, "mkdir $ROOT/state/usage.sqlite", "unable to open database file", "doctor"),
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


def test_doctor_calls_nothing_damaged_that_it_had_no_room_to_look_at(desk: Place) -> None:
    assert desk.amem("launch", "--harness", "command", *desk.launch_flags(), "--", "true").code == 0
    done = shaped(desk, MOUNTS, REFUSED["full disk"][1], desk.command("doctor"))
    assert done.code == 1 and "missing: machine / disk: 0 MiB free under " in done.out, done.out
    assert "damaged" not in done.out and "move these files away" not in done.out, done.out
    why, hint = done.out.partition("missing: root / usage.sqlite: ")[2].splitlines()[:2]
    assert why.startswith("it could not be looked at") and hint.startswith("try: df -h "), done.out


def test_doctor_shows_what_stands_where_a_database_should(desk: Place) -> None:
    done = shaped(desk, MOUNTS, REFUSED["a database that cannot be"][1], desk.command("doctor"))
    assert done.code == 1 and "damaged" not in done.out, done.out
    why, hint = done.out.partition("missing: root / usage.sqlite: ")[2].splitlines()[:2]
    path = desk.root / "state/usage.sqlite"
    assert (why, hint) == (f"{path} is no file", f"try: mv {path} {path}.away"), done.out


def test_a_file_system_that_does_not_say_what_is_free_is_taken_for_no_full_one(desk: Place) -> None:
    ramfs = "cp -a $ROOT $DESK/saved; mount -t ramfs x $ROOT; cp -a $DESK/saved/. $ROOT"
    done = launch(desk, MOUNTS, ramfs, "--json", "--", "sh", "-c", "exit 7")
    assert (done.code, json.loads(done.out.splitlines()[0])["reason"], "is full" in done.err) == (7, "harness", False), done.err
    doctor = shaped(desk, MOUNTS, ramfs, desk.command("doctor"))
    assert doctor.code == 0 and "does not say what is free" in " ".join(doctor.out.split()), doctor.out


def test_doctor_says_when_no_more_files_can_be_made(desk: Place) -> None:
    done = shaped(desk, MOUNTS, REFUSED["no inodes"][1], desk.command("doctor"))
    said = re.search(
        r"missing: machine / disk: room for \d more files under (\S+), too little to begin a session\ntry: df -h \1; df -i \1", done.out
    )
    assert done.code == 1 and said, done.out


def test_doctor_names_a_root_that_cannot_be_written_and_calls_nothing_damaged(desk: Place) -> None:
    assert desk.amem("usage").code == 0
    done = shaped(desk, MOUNTS, REFUSED["read-only root"][1], desk.command("doctor"))
    assert done.code == 1 and "missing: root / disk" in done.out and "its file system is read-only" in done.out, done.out
    assert "damaged" not in done.out


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


LIKE_NIXOS = """
N=$DESK/machine; mkdir -p $N; mount -t tmpfs x $N; mkdir -p $N/nix/store/all $N/bin $N/usr/bin $N/etc/ssl $N/run/current-system $N/old
mount --bind /usr $N/nix/store/all
ln -s /nix/store/all $N/run/current-system/sw; ln -s /nix/store/all/bin/sh $N/bin/sh; ln -s /nix/store/all/bin/env $N/usr/bin/env
for name in lib lib64; do ln -s nix/store/all/$name $N/$name; done
cp -a /etc/passwd /etc/group /etc/ld.so.* $N/etc; ln -s ../run/systemd/resolve/stub-resolv.conf $N/etc/resolv.conf
ln -s /nix/store/all/share/zoneinfo/Etc/UTC $N/etc/localtime
for path in /*; do
  case $path in
    /usr|/bin|/sbin|/lib*|/etc|/run|/nix) ;;
    *) if [ -d $path ]; then mkdir -p $N$path; mount --rbind $path $N$path; fi ;;
  esac
done
cd $N; pivot_root . old; export PATH=/run/current-system/sw/bin:$PATH; umount -l /old; cd "$HERE"
"""


@pytest.mark.skipif(sys.base_prefix.startswith("/usr"), reason="this Python lies in /usr, which such a machine has not")
def test_a_machine_like_nixos(desk: Place) -> None:
    """Nothing but `/bin/sh` and `/usr/bin/env` where others keep programs, libraries by links into the store, and no name to look up."""
    machine = LIKE_NIXOS.replace("$HERE", str(PROJECT))
    look = "ls /bin /usr/bin; git --version; /opt/memory/memory version; echo $SHELL; readlink /etc/localtime; ls /nix/store"
    done = launch(desk, MOUNTS, machine, "--", "sh", "-c", look)
    said = done.out.partition("home:")[0].split("\n")
    shell = "/run/current-system/sw/bin/bash"
    zone = "/nix/store/all/share/zoneinfo/Etc/UTC"
    assert said[:4] == ["/bin:", "sh", "", "/usr/bin:"] and said[4] == "env" and said[5].startswith("git version"), (said, done.err)
    assert said[6:] == [__version__, shell, zone, "all", ""], (said, done.err)
    rows = json.loads(shaped(desk, MOUNTS, machine, desk.command("doctor", "--json")).out.partition("home:")[0])["checks"]
    assert [row for row in rows if row["area"] == "backend" and row["state"] == "missing"] == []


@pytest.mark.parametrize("kind", ["links", "spaces", "long"])
def test_the_hook_program_starts_whatever_way_leads_to_python(desk: Place, kind: str) -> None:
    folder = desk.base / {"links": "venv", "spaces": 'one\'s "own" tools', "long": "/".join(["deep" * 20] * 3)}[kind]
    python = Path(os.path.realpath(sys.executable))
    if kind == "links":
        for name in ("third", "second", "first"):
            (desk.base / name).mkdir()
            (desk.base / name / "python3").symlink_to(python)
            python = desk.base / name / "python3"
    words = ["--without-pip", *(() if kind == "links" else ("--copies",))]
    subprocess.run([python, "-m", "venv", *words, folder], check=True, timeout=120)
    made = next(folder.glob("lib/python3*/site-packages"))
    (made / "tests.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    command = [str(folder / "bin/python3"), *desk.command("launch", "--harness", "command", *desk.launch_flags())[1:]]
    done = shaped(desk, MOUNTS, "true", [*command, "--", "/opt/memory/memory", "version"])
    assert done.out.partition("home:")[0] == f"{__version__}\n", done.err


def test_a_session_that_is_there_already_keeps_its_home(desk: Place) -> None:
    words = ("--session-id", "ses-0123abcd", "--", "sh", "-c", "echo mine > ~/note")
    assert desk.launch(*words).code == 0
    again = desk.launch(*words)
    assert again.code == 1 and "exists already" in again.err
    assert (desk.root / "state" / "homes" / "ses-0123abcd" / "note").read_text() == "mine\n"

"""Real work trees in real sandboxes: git works, nothing is left, what must not move does not."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox.launching import Place

IDENTITY = {"git": ["An Agent", "agent@example.com"]}


def git(here: Place, folder: Path, *words: str) -> None:
    options = [
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@e",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "maintenance.auto=false",  # it goes on in the background after a commit, and writes into the tree that a test compares
        "-c",
        "init.defaultBranch=main",
        "-c",
        "safe.directory=*",
    ]
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *options, *words], cwd=folder, env=env, check=True, capture_output=True)


def make(here: Place, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    git(here, folder, "init", "-q")
    (folder / "file").write_text("x\n")
    git(here, folder, "add", ".")
    git(here, folder, "commit", "-qm", "one")


COMMIT = "echo y >> file && git add file && git commit -qm 'from inside' && git log --format='%an: %s' -1"
MADE = "An Agent: from inside\n"


def listing(folder: Path) -> dict[str, tuple[object, ...]]:
    """Every name below a folder with mode, owner, size, times and extended attributes."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        about = path.lstat()
        extended = tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in os.listxattr(path, follow_symlinks=False))
        times = () if stat.S_ISDIR(about.st_mode) and path == folder else (about.st_mtime_ns, about.st_ctime_ns)
        found[str(path.relative_to(folder))] = (about.st_mode, about.st_uid, about.st_gid, about.st_size, *times, extended)
    return found


def test_session_that_only_reads_leaves_no_ghost(here: Place) -> None:
    make(here, here.work)
    (here.work / ".vscode").mkdir()
    here.own()
    tree, home = listing(here.work), listing(here.home)
    report = here.launch("sh", "-c", "cat file && git --no-optional-locks status --porcelain && git log --format=%s", spec=IDENTITY)
    assert report["out"] == "x\none\n"
    assert listing(here.work) == tree
    assert listing(here.home) == home


def test_plain_repository_commits(here: Place) -> None:
    make(here, here.work)
    here.own()
    assert here.launch("sh", "-c", COMMIT, spec=IDENTITY)["out"] == MADE
    owner = (here.work / ".git/HEAD").stat().st_uid
    assert all(path.lstat().st_uid == owner for path in here.work.rglob("*"))  # also as root: no other id is left behind


@pytest.mark.parametrize("name", ["with space", "new\nline", "ünïcödé ☃", "quote'\"$(x)", "-dash", "back\\slash\\012"])
def test_odd_names(here: Place, name: str) -> None:
    folder = here.work / name
    make(here, folder)
    here.own()
    report = here.launch("sh", "-c", COMMIT, spec={**IDENTITY, "workdir": str(folder)})
    assert report["out"] == MADE
    assert (
        "No such" in here.launch("sh", "-c", "ls ../..//file 2>&1; echo z >> .git/config", spec={**IDENTITY, "workdir": str(folder)})["out"]
    )


def test_linked_tree_commits_and_its_common_directory_is_protected(here: Place) -> None:
    repo, linked = here.base / "repo", here.work / "linked"
    make(here, repo)
    git(here, repo, "worktree", "add", "-q", str(linked))
    here.own()
    spec = {**IDENTITY, "workdir": str(linked)}
    assert here.launch("sh", "-c", COMMIT, spec=spec)["out"] == MADE
    attack = f"""
        echo evil > {repo}/.git/hooks/post-commit; echo evil >> {repo}/.git/config; mv {repo}/.git/hooks {repo}/.git/h2
        mv {repo}/.git {repo}/g2; echo 'gitdir: /' > .git; rm -f .git; ls {repo}; true"""
    report = here.launch("sh", "-c", attack, spec=spec)
    assert report["out"] == ""  # nothing of the main tree but .git is shown
    assert "evil" not in (repo / ".git/config").read_text()
    assert not (repo / ".git/hooks/post-commit").exists()
    assert (linked / ".git").read_text().startswith(f"gitdir: {repo}")


def test_submodule_commits_and_the_parents_hooks_are_out_of_reach(here: Place) -> None:
    repo, parent = here.base / "repo", here.work / "parent"
    make(here, repo)
    make(here, parent)
    git(here, parent, "submodule", "add", "-q", str(repo), "sub")
    here.own()
    assert here.launch("sh", "-c", COMMIT, spec={**IDENTITY, "workdir": str(parent / "sub")})["out"] == MADE
    attack = "cd .git/modules/sub && echo evil >> config; mkdir -p hooks; echo evil > hooks/x; cd ..; mv sub sub2; cd ..; mv modules m"
    here.launch("sh", "-c", attack, spec={**IDENTITY, "workdir": str(parent)})
    assert "evil" not in (parent / ".git/modules/sub/config").read_text()
    assert (parent / ".git/modules/sub").is_dir()


def test_forged_git_file_does_not_bring_a_folder_in(here: Place) -> None:
    victim = here.base / "victim"
    victim.mkdir()
    (victim / "key").write_text("planted-secret")
    (here.work / ".git").write_text(f"gitdir: {victim}\n")
    here.own()
    report = here.launch("sh", "-c", f"cat {victim}/key; echo done")
    assert report["out"] == "done\n"
    assert any("does not point back" in warning for warning in report["warnings"])


def test_symlinked_git_refuses_the_launch(here: Place) -> None:
    (here.work / "real").mkdir()
    (here.work / ".git").symlink_to("real")
    here.own()
    report = here.launch("true")
    assert report["step"] == "worktree"
    assert "symbolic link" in report["error"]


def test_symlink_at_a_protected_name_warns_and_goes_on(here: Place) -> None:
    make(here, here.work)
    (here.work / ".vscode").symlink_to("/etc")
    here.own()
    report = here.launch("sh", "-c", "echo ran", spec=IDENTITY)
    assert report["out"] == "ran\n"
    assert report["warnings"] == [".vscode is a symbolic link: not protected"]


def test_bind_into_the_tree_does_not_follow_its_links(here: Place) -> None:
    """A session replaced amem's own folder by a link to the host; the next launch must not mount there."""
    victim = here.base / "victim"
    victim.mkdir()
    (here.work / ".venv").symlink_to(victim)
    here.own()
    report = here.launch("true", spec={"binds": [[str(here.work / ".venv"), str(here.work / ".venv")]]})
    assert report["step"] == "put_beneath"
    assert "symbolic link" in report["error"]


def test_own_environment_in_the_tree_cannot_be_rewritten(here: Place) -> None:
    venv = here.work / ".venv"
    (venv / "lib").mkdir(parents=True)
    (venv / "lib/amem.py").write_text("good\n")
    here.own()
    attack = "echo evil > .venv/lib/amem.py; mv .venv .old; rm -rf .venv; cat .venv/lib/amem.py"
    report = here.launch("sh", "-c", attack, spec={"binds": [[str(venv), str(venv)]]})
    assert report["out"] == "good\n"
    assert (venv / "lib/amem.py").read_text() == "good\n"


def test_hidden_paths_of_the_tree_are_covered(here: Place) -> None:
    (here.work / "local").mkdir()
    (here.work / "local/.env").write_text("planted-secret")
    (here.work / "keys").write_text("planted-secret")
    here.own()
    hidden = [str(here.work / "local"), str(here.work / "keys"), str(here.work / "absent")]
    report = here.launch("sh", "-c", "ls -A local; cat keys; echo x > local/y; echo done; ls", spec={"hidden": hidden})
    assert report["out"] == "done\nkeys\nlocal\n"
    assert (here.work / "keys").read_text() == "planted-secret"


def test_existing_editor_files_are_read_only_and_new_ones_are_not(here: Place) -> None:
    (here.work / ".envrc").write_text("mine\n")
    here.own()
    report = here.launch("sh", "-c", "echo evil > .envrc; rm -f .envrc; mv .envrc x; echo new > .mcp.json; cat .envrc .mcp.json")
    assert report["out"] == "mine\nnew\n"
    assert here.launch("sh", "-c", "echo on > .envrc && cat .envrc", spec={"protect": []})["out"] == "on\n"


def test_tree_in_a_temporary_folder_and_private_tmp(here: Place) -> None:
    (here.base / "neighbour").write_text("x")
    here.own()
    report = here.launch("sh", "-c", f"ls {here.base}; ls /tmp; echo x > /tmp/made; cat /tmp/made")
    # An interpreter that lies below /tmp itself, as in a checkout there, is bound and shows.
    prefixes = [Path(sys.prefix), Path(sys.base_prefix)] if here.python == sys.executable else []
    shown = {here.base.name, *(prefix.parts[2] for prefix in prefixes if prefix.is_relative_to("/tmp"))}
    assert report["out"].split("\n") == ["work", *sorted(shown), "x", ""]
    assert not Path("/tmp/made").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting on the host needs root")
def test_later_mount_of_the_host_is_not_seen_and_submounts_are_read_only(here: Place) -> None:
    import select

    bound, late = here.base / "bound", here.work / "late"
    for folder in (bound, bound / "sub", late):
        folder.mkdir()
    here.own()
    subprocess.run(["mount", "-t", "tmpfs", "x", bound / "sub"], check=True)
    try:
        script = "echo y > bound/sub/f; mkfifo go; echo ready; read l < go; ls late; echo end"
        asked = {
            "spec": {"argv": ["sh", "-c", script.replace("bound/", f"{bound}/")], "binds": [[str(bound), str(bound)]]},
            "announce": True,
            "echo": True,
        }
        process = subprocess.Popen(
            here.command(asked), **here.ids(), env=here.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        seen = b""
        while b"ready" not in seen:
            assert select.select([process.stdout], [], [], 20)[0]
            seen += os.read(process.stdout.fileno(), 4096)
        subprocess.run(["mount", "-t", "tmpfs", "x", late], check=True)
        try:
            (late / "LATE").touch()
            (here.work / "go").write_text("on\n")
            out, _ = process.communicate(timeout=20)
        finally:
            subprocess.run(["umount", late], check=True)
        assert b"LATE" not in out and b"end" in out
        assert list((bound / "sub").iterdir()) == []
    finally:
        subprocess.run(["umount", bound / "sub"], check=True)


LATE = """
import os, subprocess, sys
from amem.sandbox.child import fork_stage
stage = fork_stage()
from amem.sandbox import host, spec
from amem.sandbox.plan import plan
work, home, extra = sys.argv[1:4]

def init_is_there():
    for pid in open(f"/proc/{stage.pid}/task/{stage.pid}/children").read().split():
        try:
            if os.readlink(f"/proc/{pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt"):
                return True
        except OSError:
            continue
    return False

while not init_is_there():
    os.sched_yield()
subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "x", extra], check=True)
open(extra + "/on-the-new-disk", "w").close()
env = tuple(spec.base_env({}, "/home/agent", "agent").items())
binds = (spec.Bind(extra, extra),)
asked = spec.SandboxSpec(argv=("ls", extra), env=env, workdir=work, cwd=work, home=home, port=7431, binds=binds)
running = stage.start(asked, plan(asked, host.facts(asked)))
running.wait(lambda stream, data: os.write(1, data))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting on the host needs root")
def test_disk_mounted_after_the_stage_was_forked_is_shown(here: Place) -> None:
    """PID 1 exists before the plan; a mount made in between must not hide behind its older view."""
    if here.who != "root":
        pytest.skip("the launcher itself mounts here")
    extra = here.base / "extra"
    extra.mkdir(mode=0o755)
    command = ["unshare", "--mount", here.python, "-B", "-c", LATE, str(here.work), str(here.home), str(extra)]
    done = subprocess.run(command, env=here.env(), cwd="/", capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("on-the-new-disk\n", "")

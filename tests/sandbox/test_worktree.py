"""The work tree read by hand, against trees that git itself made, and against forged ones."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from amem.errors import SandboxError
from amem.sandbox import worktree
from amem.sandbox.spec import Tree
from amem.sandbox.worktree import Change, changed, look, marks, top

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}


def git(folder: Path, *words: str) -> None:
    options = ["-c", "user.name=t", "-c", "user.email=t@e", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *options, *words], cwd=folder, env=ENV, check=True, capture_output=True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    made = tmp_path / "repo"
    made.mkdir()
    git(made, "init", "-q")
    (made / "file").write_text("x")
    git(made, "add", ".")
    git(made, "commit", "-qm", "one")
    return made


def test_no_repository(tmp_path: Path) -> None:
    assert look(str(tmp_path)) == Tree()


def test_plain_repository(repo: Path) -> None:
    assert look(str(repo)) == Tree("plain")


def test_what_a_clone_borrows_is_named(repo: Path, tmp_path: Path) -> None:
    objects = str(repo / ".git/objects")
    git(tmp_path, "clone", "-q", "--shared", str(repo), "clone")
    git(tmp_path / "clone", "worktree", "add", "-q", str(tmp_path / "linked"))
    git(tmp_path, "clone", "-q", "--shared", "--bare", str(repo), "bare.git")
    for name, borrows in (("repo", ()), ("clone", (objects,)), ("linked", (objects,)), ("bare.git", (objects,))):
        workdir = str(tmp_path / name)
        assert worktree.borrowed(workdir, look(workdir)) == borrows, name
    assert worktree.borrowed("/nonexistent", Tree()) == ()
    alternates = tmp_path / "clone/.git/objects/info/alternates"
    alternates.write_text(f"# a word\n\n{tmp_path}\n/dev/null\n../../../repo/.git/objects\n{objects}\n\0\n")
    assert worktree.borrowed(str(tmp_path / "clone"), Tree("plain")) == (objects,), "what holds no objects is named to nobody"
    alternates.unlink()
    alternates.symlink_to(repo / "file")
    assert worktree.borrowed(str(tmp_path / "clone"), Tree("plain")) == ()


def test_hooks_path_in_the_tree_is_protected_and_one_outside_is_not(repo: Path) -> None:
    git(repo, "config", "core.hooksPath", ".githooks")
    assert look(str(repo)).names == (".githooks",)
    for outside in ("../elsewhere", "/etc", "~/hooks", "a/../../b"):
        git(repo, "config", "core.hooksPath", outside)
        assert look(str(repo)).names == ()


def test_what_a_configuration_names_from_the_owners_home_on_is_protected(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(repo.parent))
    git(repo, "config", "core.hooksPath", "~/repo/.githooks")
    git(repo, "config", "include.path", "~/repo/more")
    assert set(look(str(repo)).names) == {".githooks", "more"}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("[core]\n\thooksPath = {root}/deep/hooks\n", "deep/hooks"),
        ("[core] hooksPath = .githooks # ours\n", ".githooks"),
        ("[core]\n\thooksPath = .githooks\t# ours\n", ".githooks"),
        ("[core]\n\thooksPath = .githooks;ours\n", ".githooks"),
        ("[core]\n\thooksPath = .git\\\nhooks\n", ".githooks"),
        ('[core]\n\thooksPath = "with space"\n', "with space"),
        ('[core]\n\thooksPath = with" space"\n', "with space"),
        ("[core]\n\tfsmonitor = tools/watch --fast\n", "tools/watch"),
        ('[filter "x"]\n\tclean = "\'tools/my clean\' %f"\n', "tools/my"),
        ("[interactive]\n\tdiffFilter = {root}/tools/filter\n", "tools/filter"),
        ("[core]\n\tpager = less\n", None),
        ("[include]\n\tpath = ../.gitshared\n", ".gitshared"),
        ('[includeIf "onbranch:main"]\n\tpath = {root}/on-main\n', "on-main"),
        ("[include]\n\tpath = /etc/elsewhere\n\tpath = ../../above\n\tpath = ~/mine\n", None),
    ],
)
def test_what_the_configuration_has_git_obey_in_the_tree_is_protected(repo: Path, line: str, name: str | None) -> None:
    with (repo / ".git" / "config").open("a") as config:
        config.write(line.format(root=repo))
    assert look(str(repo)).names == ((name,) if name else ())


def test_what_an_included_configuration_of_the_tree_names_is_protected_too(repo: Path) -> None:
    git(repo, "config", "include.path", "../.gitconfig")
    (repo / ".gitconfig").write_text('[core]\nhooksPath = .githooks\n[includeIf "onbranch:x"]\npath = more/config\npath = .gitconfig\n')
    (repo / "more").mkdir()
    (repo / "more/config").write_text("[core]\nhooksPath = .others\n")
    assert look(str(repo)).names == (".gitconfig", ".githooks", "more/config", ".others")


def test_hooks_in_a_linked_tree_are_protected_there(repo: Path, tmp_path: Path) -> None:
    git(repo, "config", "core.hooksPath", ".githooks")
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert look(str(tmp_path / "linked")).names == (".githooks",)


def test_marks_of_a_hooks_folder_that_was_not_there(repo: Path) -> None:
    git(repo, "config", "core.hooksPath", ".githooks")
    before = marks(str(repo), look(str(repo)))
    (repo / ".githooks").mkdir()
    (repo / ".githooks" / "pre-commit").write_text("#!/bin/sh\n")
    (repo / ".git" / "rebase-merge").mkdir()
    (repo / ".git" / "rebase-merge" / "git-rebase-todo").write_text("exec evil\n")
    assert changed(before, marks(str(repo), look(str(repo)))) == (
        Change(".git/rebase-merge/git-rebase-todo", "appeared"),
        Change(".githooks/pre-commit", "appeared"),
    )


def test_bare_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "b.git")
    assert look(str(tmp_path / "b.git")) == Tree("bare", pins=("objects", "refs"), names=("hooks", "config", "info/attributes"))


def test_linked_tree(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    found = look(str(tmp_path / "linked"))
    assert (found.kind, found.common) == ("linked", str(repo / ".git"))
    assert found.common_names == ("hooks", "config", "info/attributes", "worktrees/linked/config.worktree", "worktrees/linked/commondir")


def test_submodule_and_its_parent(repo: Path, tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    parent.mkdir()
    git(parent, "init", "-q")
    git(parent, "submodule", "add", "-q", str(repo), "deep/sub")
    assert look(str(parent)).names == tuple(f".git/modules/deep/sub/{name}" for name in ("hooks", "config", "info/attributes"))
    found = look(str(parent / "deep/sub"))
    assert (found.kind, found.common) == ("submodule", str(parent / ".git/modules/deep/sub"))


@pytest.mark.parametrize("parent", [".git", "bare.git"])
def test_submodule_of_a_linked_tree(repo: Path, tmp_path: Path, parent: str) -> None:
    """Git keeps it in the linked tree's own folder."""
    git(repo, "submodule", "add", "-q", str(repo), "deep/sub")
    git(repo, "commit", "-qm", "sub")
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    store = repo / ".git" if parent == ".git" else tmp_path / "bare.git"
    git(store, "worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    git(tmp_path / "linked", "submodule", "update", "-q", "--init")
    own = store / "worktrees/linked/modules/deep/sub"
    found = look(str(tmp_path / "linked/deep/sub"))
    assert (found.kind, found.common) == ("submodule", str(own))
    assert str((own / "config").relative_to(store)) in look(str(tmp_path / "linked")).common_names


def test_git_dir_inside_the_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--separate-git-dir", ".store", ".")
    (tmp_path / ".git").write_text("gitdir: ./.store\n")
    assert look(str(tmp_path)) == Tree("file", names=(".store/hooks", ".store/config"), pins=(".store",))


def test_symlinked_git_is_refused(repo: Path) -> None:
    os.rename(repo / ".git", repo / "real")
    (repo / ".git").symlink_to("real")
    with pytest.raises(SandboxError, match="symbolic link"):
        look(str(repo))


@pytest.mark.parametrize("target", ["{victim}", "{victim}/worktrees/x", "{victim}/.git/modules/x", "../victim", "/", ""])
def test_forged_git_file_shows_nothing(tmp_path: Path, target: str) -> None:
    """An agent writes a `.git` file for the next launch; what it names must not become a mount."""
    victim, work = tmp_path / "victim", tmp_path / "work"
    (victim / "worktrees/x").mkdir(parents=True)
    (victim / ".git/modules/x").mkdir(parents=True)
    (victim / "worktrees/x/commondir").write_text("../..\n")
    for name in ("HEAD", "config"):
        (victim / name).write_text("")
    for name in ("objects", "refs"):
        (victim / name).mkdir()
    work.mkdir()
    (work / ".git").write_text(f"gitdir: {target.format(victim=victim)}\n")
    assert look(str(work)).common is None


def test_linked_tree_that_does_not_point_back_shows_nothing(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    other = tmp_path / "other"
    other.mkdir()
    (other / ".git").write_bytes((tmp_path / "linked/.git").read_bytes())
    found = look(str(other))
    assert found.common is None
    assert "does not point back" in found.warning


def test_git_file_that_is_a_fifo_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert look(str(tmp_path)).common is None


def test_back_pointer_that_is_a_fifo_or_a_link_does_not_count(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    back = repo / ".git/worktrees/linked/gitdir"
    text = back.read_text()
    back.unlink()
    (tmp_path / "copy").write_text(text)
    back.symlink_to(tmp_path / "copy")
    assert look(str(tmp_path / "linked")).common is None
    back.unlink()
    os.mkfifo(back)
    assert look(str(tmp_path / "linked")).common is None


def test_top_is_the_nearest_repository(repo: Path) -> None:
    (repo / "a/b").mkdir(parents=True)
    assert top(str(repo / "a/b")) == str(repo)
    assert top("/proc") is None


def test_marks_names_what_a_session_left(repo: Path) -> None:
    (repo / ".claude").mkdir()
    (repo / ".claude/settings.json").write_text("{}")
    (repo / ".envrc").write_text("export A=1")
    before = marks(str(repo), Tree())
    (repo / ".claude/settings.json").write_text('{"hooks": 1}')
    (repo / ".claude/hooks").mkdir()
    (repo / ".claude/hooks/x").write_text("#!/bin/sh")
    (repo / ".envrc").unlink()
    (repo / ".mcp.json").symlink_to("/etc/passwd")
    (repo / ".git/hooks/pre-commit").write_text("#!/bin/sh")
    (repo / "file").write_text("work is not reported")
    assert changed(before, marks(str(repo), Tree())) == (
        Change(".claude/hooks/x", "appeared"),
        Change(".claude/settings.json", "changed"),
        Change(".envrc", "gone"),
        Change(".git/hooks/pre-commit", "appeared"),
        Change(".mcp.json", "appeared"),
    )


def test_marks_sees_a_mode_and_follows_no_link(repo: Path, tmp_path: Path) -> None:
    (repo / ".envrc").write_text("x")
    (repo / ".vscode").symlink_to(tmp_path)
    os.mkfifo(repo / ".mcp.json")
    before = marks(str(repo), Tree())
    assert set(before) >= {".vscode", ".mcp.json", ".envrc"} and not any(name.startswith(".vscode/") for name in before)
    (repo / ".envrc").chmod(0o755)
    (repo / ".vscode").unlink()
    (repo / ".vscode").symlink_to("/elsewhere")
    assert changed(before, marks(str(repo), Tree())) == (Change(".envrc", "changed"), Change(".vscode", "changed"))


def test_marks_of_nothing_changed_is_empty(repo: Path) -> None:
    assert changed(marks(str(repo), Tree()), marks(str(repo), Tree())) == ()


def too_long(tree: Path) -> None:
    """A file that can be listed, and whose path is a byte too long to be named."""
    here = os.open(tree, os.O_RDONLY)
    for name in (".vscode", *["d" * 200] * ((4090 - len(str(tree)) - len("/.vscode")) // 201)):
        os.mkdir(name, dir_fd=here)
        here, above = os.open(name, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(os.open("f" * 210, os.O_CREAT, dir_fd=here))
    os.close(here)


def closed(tree: Path) -> None:
    """Files that can be listed, and not looked at; and a folder that cannot be listed."""
    (tree / ".vscode/inner").mkdir(parents=True)
    (tree / ".vscode/x").touch()
    (tree / ".vscode/inner").chmod(0)
    (tree / ".vscode").chmod(0o444)


def circle(tree: Path) -> None:
    (tree / ".vscode").mkdir()
    (tree / ".vscode/x").symlink_to("x")


@pytest.mark.parametrize("make", [circle, closed, too_long])
def test_marks_of_what_cannot_be_looked_at_tell_of_it(tmp_path: Path, make: Callable[[Path], None]) -> None:
    before = marks(str(tmp_path), Tree())
    make(tmp_path)
    try:
        after = marks(str(tmp_path), Tree())
        assert after and all(name.startswith(".vscode/") for name in after)
        assert {change.how for change in changed(before, after)} <= {"appeared", "changed"}
        assert next(worktree.walk(str(tmp_path)))[1] == [".vscode"]
    finally:
        if make is closed:
            (tmp_path / ".vscode").chmod(0o755)
            (tmp_path / ".vscode/inner").chmod(0o755)
        subprocess.run(["rm", "-rf", tmp_path / ".vscode"], check=True)


@pytest.mark.parametrize("heap", [Path.mkdir, Path.touch])
def test_marks_of_a_heap_are_the_folders_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heap: Callable[[Path], None]) -> None:
    monkeypatch.setattr(worktree, "MOST_WATCHED", 5)
    (tmp_path / ".vscode/a").mkdir(parents=True)
    (tmp_path / ".vscode/x").touch()
    few = marks(str(tmp_path), Tree())
    for number in range(5):
        heap(tmp_path / f".vscode/a/{number}")
    many = marks(str(tmp_path), Tree())
    assert set(many) == {".vscode/a/", ".vscode/x"}
    assert changed(few, many) == changed(many, few) == (Change(".vscode/a/", "changed"),)
    heap(tmp_path / ".vscode/a/more")
    assert changed(many, marks(str(tmp_path), Tree())) == (Change(".vscode/a/", "changed"),)


def test_a_git_file_longer_than_any_path_names_nothing(tmp_path: Path) -> None:
    """To resolve the links in half a million parts of a name takes a minute."""
    (tmp_path / ".git").write_text("gitdir: " + "a/" * 2044 + "\n")
    assert worktree.gitdir_of(str(tmp_path / ".git")) == str(tmp_path / "/".join("a" * 2044))
    (tmp_path / ".git").write_text("gitdir: " + "a/" * 2048 + "\n")
    assert worktree.gitdir_of(str(tmp_path / ".git")) is None

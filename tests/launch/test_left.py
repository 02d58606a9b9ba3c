"""What a session wrote for the host to obey is found anywhere in a tree, once, and nothing else is."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from amem.launch import left
from amem.sandbox import worktree
from amem.sandbox.worktree import Change

GIT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *words], cwd=folder, env=GIT, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a repository and settings of the owner's in folders of it."""
    tree = tmp_path / "tree"
    for name in ("a/b", "lib", "node_modules/p", ".vscode"):
        (tree / name).mkdir(parents=True)
    git(tree, "init", "-q", "old")
    git(tree / "lib", "init", "-q", "--bare", "bare")
    git(tree / "old", "init", "-q", "--bare", ".git/modules/objects")
    (tree / "old/.git/modules/objects/objects/aa").mkdir()
    (tree / "lib/env.sh").write_text("x")
    (tree / "a/.envrc").symlink_to("../lib/env.sh")
    (tree / "a/.npmrc").write_text("x")
    append(tree / "lib/check")
    append(tree / "old/.git/hooks/x/y")
    (tree / "old/.git/hooks/pre-commit").symlink_to("../../../lib/check")
    append(tree / "lib/editor/tasks.json")
    (tree / "a/.vscode").symlink_to("../lib/editor")
    for name in ("HEAD", "config", "refs/x"):
        append(tree / "lib/half" / name)
    (tree / ".vscode/tasks.json").write_text("{}")
    return tree


def now(tmp_path: Path, tree: Path) -> int:
    """A change time that nothing in the tree has yet, and that all which is written from now on has or exceeds."""
    last = max(os.lstat(path).st_ctime_ns for path in (tree, *tree.rglob("*")))
    probe = tmp_path / "probe"
    while True:
        probe.write_text("x")
        if (ns := probe.stat().st_ctime_ns) > last:
            return ns


def append(path: Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)


def moved_in(tree: Path) -> None:
    git(tree.parent, "init", "-q", "made")
    (tree.parent / "made/.git/config").rename(tree / "old/.git/config")


def far_down(tree: Path) -> None:
    here = os.open(tree, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


WRITES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "nothing": (lambda tree: None, []),
    "code": (lambda tree: append(tree / "a/b/main.c"), []),
    "commit": (lambda tree: git(tree / "old", "commit", "-q", "--allow-empty", "-m", "x"), []),
    "times set back": (lambda tree: (append(tree / "a/.npmrc"), os.utime(tree / "a/.npmrc", (1, 1))), ["a/.npmrc"]),
    "new repository": (lambda tree: git(tree / "a", "init", "-q", "new"), ["a/new/.git"]),
    "new bare repository": (lambda tree: git(tree / "a", "init", "-q", "--bare", "new"), ["a/new"]),
    "bare repository at the top": (lambda tree: git(tree, "init", "-q", "--bare", "."), ["."]),
    "configuration of an old one": (lambda tree: append(tree / "old/.git/config"), ["old/.git"]),
    "another one's moved in": (moved_in, ["old/.git"]),
    "configuration of a bare one": (lambda tree: append(tree / "lib/bare/config"), ["lib/bare"]),
    "hook in an old one": (lambda tree: append(tree / "old/.git/hooks/post-checkout"), ["old/.git"]),
    "what an old one's hook leads to": (lambda tree: append(tree / "lib/check"), ["old/.git"]),
    "hook deep in an old one": (lambda tree: append(tree / "old/.git/hooks/x/y"), ["old/.git"]),
    "redirection": (lambda tree: append(tree / "a/.git", "gitdir: ../lib/x\n"), ["a/.git"]),
    "link to one": (lambda tree: (tree / "a/.git").symlink_to("../old/.git"), ["a/.git"]),
    "file at the top": (lambda tree: append(tree / ".git", "gitdir: lib\n"), [".git"]),
    "jujutsu": (lambda tree: append(tree / "a/.jj/repo/config.toml"), ["a/.jj"]),
    "versions of tools": (lambda tree: append(tree / "a/.tool-versions"), ["a/.tool-versions"]),
    "second file of Emacs": (lambda tree: append(tree / "a/.dir-locals-2.el"), ["a/.dir-locals-2.el"]),
    "Helix": (lambda tree: append(tree / "a/.helix/languages.toml"), ["a/.helix"]),
    "mercurial": (lambda tree: append(tree / "a/.hg/hgrc"), ["a/.hg"]),
    "editor": (lambda tree: append(tree / "a/b/.vscode/deep/tasks.json"), ["a/b/.vscode"]),
    "file of an editor": (lambda tree: append(tree / ".vscode/tasks.json"), [".vscode/tasks.json"]),
    "settings moved in": (lambda tree: (tree / "lib/editor").rename(tree / "lib/.idea"), ["lib/.idea"]),
    "file moved in": (lambda tree: (tree / "lib/env.sh").rename(tree / "lib/.envrc"), ["lib/.envrc"]),
    "what a folder's link leads to": (lambda tree: append(tree / "lib/editor/tasks.json"), ["lib/editor/tasks.json"]),
    "last part of a repository": (lambda tree: (tree / "lib/half/objects").mkdir(), ["lib/half"]),
    "what a link leads to": (lambda tree: append(tree / "lib/env.sh"), ["a/.envrc"]),
    "link out of the tree": (lambda tree: (tree / "a/AGENTS.md").symlink_to("/etc/hostname"), ["a/AGENTS.md"]),
    "submodule without a work tree": (lambda tree: git(tree / "old", "init", "-q", "--bare", ".git/modules/x/y"), ["old/.git/modules/x/y"]),
    "submodule named as a part of one": (lambda tree: append(tree / "old/.git/modules/objects/config"), ["old/.git/modules/objects"]),
    "linked work tree's submodule": (
        lambda tree: git(tree / "old", "init", "-q", "--bare", ".git/worktrees/w/modules/x"),
        ["old/.git/worktrees/w/modules/x"],
    ),
    "commit in one": (lambda tree: append(tree / "old/.git/modules/objects/objects/aa/x"), []),
    "installed package": (lambda tree: (append(tree / "node_modules/p/.npmrc"), append(tree / "node_modules/p/.vscode/x")), []),
    "repository in one": (lambda tree: git(tree / "node_modules/p", "init", "-q", "q"), ["node_modules/p/q/.git"]),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_was_written_for_the_host_to_obey_is_found(tmp_path: Path, tree: Path, name: str) -> None:
    write, expected = WRITES[name]
    since_ns = now(tmp_path, tree)
    write(tree)
    assert left.find(str(tree), since_ns) == (expected, True)


@pytest.mark.parametrize("there", [True, False])
def test_another_branch_or_object_of_a_repository_that_was_there_is_no_news(tmp_path: Path, tree: Path, there: bool) -> None:
    top = tree / "old"
    git(top, "commit", "-q", "--allow-empty", "-m", "x")
    old = worktree.look(str(top)).git_dirs if there else frozenset()
    since_ns = now(tmp_path, tree)
    # Both of its clocks are put forward by what is taken off again: on a fast machine the tree itself was made no longer ago.
    began = left.Moment(since_ns + left._SLACK_NS, left.time.clock_gettime_ns(left.time.CLOCK_BOOTTIME) + left._SLACK_NS)
    git(top, "checkout", "-q", "-b", "other")
    (top / ".git/modules/objects/objects/bb").mkdir()
    both = (Change(".git", "written"), Change(".git/modules/objects", "written"))
    assert left.report(str(top), (str(top),), (), began, old=old)[0] == (() if there else both)
    append(top / ".git/config")
    append(top / ".git/modules/objects/config")
    assert left.report(str(top), (str(top),), (), began, old=old)[0] == both


def test_a_redirection_that_was_there_tells_when_what_it_leads_to_was_written(tmp_path: Path, tree: Path) -> None:
    append(tree / "a/.git", "gitdir: ../lib/bare\n")
    (tree / "lib/bare/HEAD").unlink()
    since_ns = now(tmp_path, tree)
    append(tree / "lib/bare/config")
    assert left.find(str(tree), since_ns) == (["a/.git"], True)


@pytest.mark.parametrize(("name", "most"), [("_MOST", 100), ("_MOST", left._FOLDER + 2), ("_MOST_FOUND", 1)])
def test_more_than_is_looked_at_is_said(tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    since_ns = now(tmp_path, tree)
    append(tree / ".envrc")
    monkeypatch.setattr(left, name, most)
    assert left.find(str(tree), since_ns)[1] is False


def test_a_long_folder_is_looked_at_to_the_bound_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (tmp_path / f"{number}").touch()
    assert left.find(str(tmp_path), 0) == ([], True)
    monkeypatch.setattr(left, "_MOST", left._FOLDER + 10)
    assert left.find(str(tmp_path), 0) == ([], False)


def test_a_link_where_git_keeps_submodules_is_not_followed_but_said(tmp_path: Path, tree: Path) -> None:
    git(tmp_path, "init", "-q", "out/x")
    (tree / "lib/.git").mkdir()
    since_ns = now(tmp_path, tree)
    append(tmp_path / "out/x/.git/config")
    (tree / "lib/.git/modules").symlink_to(tmp_path / "out")
    assert left.find(str(tree), since_ns) == ([], False)


def test_a_heap_of_hooks_is_looked_through_to_the_bound(tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    since_ns = now(tmp_path, tree)
    monkeypatch.setattr(left, "_MOST", left._FOLDER * 50)
    assert left.find(str(tree), since_ns) == ([], True)
    for number in range(left._FOLDER * 50):
        append(tree / f"old/.git/hooks/{number}")
    since_ns = now(tmp_path, tree)
    assert left.find(str(tree), since_ns) == ([], False)


def test_links_that_lead_around_in_circles_are_followed_once(tmp_path: Path, tree: Path) -> None:
    for name in ("a/.idea", "a/b/.idea", "lib/.idea", "lib/editor/.idea"):
        (tree / name).symlink_to(tree / "lib")
    (tree / ".idea").symlink_to(".")
    append(tree / "a/b/x")
    since_ns = now(tmp_path, tree)
    append(tree / "lib/env.sh")
    found, whole = left.find(str(tree), since_ns)
    assert (sorted(found), whole) == (["a/.envrc", "lib/env.sh"], True)


def test_a_folder_too_deep_to_be_named_is_said(tmp_path: Path, tree: Path) -> None:
    since_ns = now(tmp_path, tree)
    try:
        far_down(tree)
        assert left.find(str(tree), since_ns) == ([], False)
    finally:
        subprocess.run(["rm", "-rf", tree], check=True)


def test_a_clock_that_was_set_back_meanwhile_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    began = left.Moment(10**18, 50 * 10**9)
    monkeypatch.setattr(left.time, "clock_gettime_ns", lambda _: 60 * 10**9)
    monkeypatch.setattr(left.time, "time_ns", lambda: 10**18 + 10 * 10**9)
    assert began.since_ns() == 10**18 - 20_000_000
    monkeypatch.setattr(left.time, "time_ns", lambda: 10**18 - 3600 * 10**9)
    assert began.since_ns() == 10**18 - 3610 * 10**9 - 20_000_000


def test_the_person_is_told_each_thing_once(tmp_path: Path, tree: Path) -> None:
    more = tmp_path / "more"
    git(more.parent, "init", "-q", "more/x")
    git(tree, "init", "-q", "a/new")
    append(tree / ".vscode/tasks.json")
    known = (Change(".vscode/tasks.json", "changed"),)
    began = left.Moment(0, 0)  # everything was written since
    changes, told = left.report(str(tree), (str(tree), str(tree / "a"), str(more), str(tmp_path / "none")), known, began)
    names = [change.name for change in changes]
    assert names[0] == ".vscode/tasks.json" and names.count(".vscode/tasks.json") == 1
    assert {"a/new/.git", "old/.git", f"{more}/x/.git"} <= set(names)
    assert [line.partition(": ")[0] for line in told] == [str(tree), str(more)]
    assert "programs outside the sandbox obey these" in told[0]


def test_nothing_outside_a_tree_is_looked_up_but_beside_its_own_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that a session made can lead to a file server that does not answer, or that looking mounts."""
    tree, alias = tmp_path / "here/tree", tmp_path / "alias"
    (tree / "lib").mkdir(parents=True)
    (tree / "lib/env.sh").touch()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/env.sh").touch()
    alias.symlink_to("here")
    leads = {
        "a": "../lib/env.sh",
        "b": str(alias / "tree/lib/env.sh"),
        "c": "../../tree/x/env.sh",
        "d": str(tmp_path / "out/env.sh"),
        "e": "e",
    }
    for name, target in leads.items():
        (tree / name).mkdir()
        (tree / name / ".envrc").symlink_to(target)
    (tree / "x").symlink_to(tree / "lib")
    (tree / "f").mkdir()
    (tree / "f/.git").write_text(f"gitdir: {tmp_path}/out/env.sh/x\n")
    since_ns = now(tmp_path, tree)
    append(tree / "lib/env.sh")
    append(tmp_path / "out/env.sh")
    looked_up: list[str] = []
    for call in ("lstat", "stat", "readlink", "open", "scandir"):
        known = getattr(os, call)

        def noted(path: "str | int", *rest: object, known: Callable[..., object] = known, **more: object) -> object:
            looked_up.append(os.fspath(path) if not isinstance(path, int) else "")
            return known(path, *rest, **more)

        monkeypatch.setattr(os, call, noted)
    found, whole = left.find(str(tree), since_ns)
    monkeypatch.undo()
    assert (sorted(found), whole) == (["a/.envrc", "b/.envrc", "c/.envrc"], True)
    assert any(path.startswith(str(tree / "a")) for path in looked_up)
    assert not [path for path in looked_up if path.startswith(f"{tmp_path}/out/")]


def test_what_is_in_a_heap_is_said_not_to_be_looked_through(tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worktree, "MOST_WATCHED", 3)
    since_ns = now(tmp_path, tree)
    assert left.find(str(tree), since_ns)[1] is False  # of git's own sample hooks

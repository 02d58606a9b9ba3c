"""What a session can do to the git directories it may write does not take the next session's protection from them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from amem.errors import SandboxError
from amem.sandbox import worktree
from amem.sandbox.spec import Tree
from amem.sandbox.worktree import look

OWN = ("hooks", "config", "info/attributes")


def git_dir(path: Path) -> Path:
    """A git directory as far as anybody looks at one."""
    for folder in ("hooks", "info", "objects/ab", "refs/heads", "logs/refs"):
        (path / folder).mkdir(parents=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")
    (path / "config").write_text("[core]\n")
    return path


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one submodule in a folder."""
    git_dir(tmp_path / ".git")
    git_dir(tmp_path / ".git/modules/deep/real")
    return tmp_path


def decoys_before(modules: Path) -> None:
    for number in range(300):
        git_dir(modules / f"a{number:03}")


def decoy_above(modules: Path) -> None:
    for name in ("HEAD", "config"):
        shutil.copy(modules / "deep/real" / name, modules / "deep" / name)
    for name in ("objects", "refs", "hooks"):
        (modules / "deep" / name).mkdir()


ATTACKS: dict[str, Callable[[Path], None]] = {
    "nothing": lambda modules: None,
    "no HEAD": lambda modules: (modules / "deep/real/HEAD").unlink(),
    "no refs": lambda modules: shutil.rmtree(modules / "deep/real/refs"),
    "decoys before it": decoys_before,
    "a decoy above it": decoy_above,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_module_stays_protected(repo: Path, attack: str) -> None:
    ATTACKS[attack](repo / ".git/modules")
    assert {f".git/modules/deep/real/{name}" for name in OWN} <= set(look(str(repo)).names)


def test_branches_and_objects_of_a_module_are_taken_for_no_module(repo: Path) -> None:
    (repo / ".git/modules/deep/real/refs/heads/config").write_text("0" * 40)
    assert look(str(repo)).names == tuple(f".git/modules/deep/real/{name}" for name in OWN)


def test_a_link_in_place_of_the_modules_is_refused(repo: Path, tmp_path: Path) -> None:
    (repo / ".git/modules").rename(repo / "aside")
    (repo / ".git/modules").symlink_to("/")
    with pytest.raises(SandboxError, match="symbolic link"):
        look(str(repo))


@pytest.mark.parametrize("where", ["flat", "deep"])
def test_more_folders_than_are_looked_into_are_refused(repo: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(worktree, "_MOST_FOLDERS", 50)
    for number in range(60):
        (repo / ".git/modules" / (f"{number}" if where == "flat" else "/".join("x" * number) or "y")).mkdir(exist_ok=True)
    with pytest.raises(SandboxError, match="too many folders"):
        look(str(repo))


def test_a_bare_repository_without_a_head_stays_one(tmp_path: Path) -> None:
    (git_dir(tmp_path) / "HEAD").unlink()
    found = look(str(tmp_path))
    assert (found.kind, found.names) == ("bare", OWN)
    assert set(found.pins) >= {"objects", "refs"}, "what it is known by cannot be taken away"


@pytest.mark.parametrize("where", [".git", ".git/modules/deep/real"])
def test_a_redirection_to_another_configuration_is_refused(repo: Path, where: str) -> None:
    (repo / where / "commondir").write_text("../evil\n")
    with pytest.raises(SandboxError, match="another configuration"):
        look(str(repo))


def test_a_redirection_in_a_common_directory_is_refused(repo: Path, tmp_path: Path) -> None:
    own = repo / ".git/worktrees/linked"
    own.mkdir(parents=True)
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {own}\n")
    (own / "gitdir").write_text(f"{linked}/.git\n")
    (own / "commondir").write_text("../..\n")
    assert {"worktrees/linked/commondir", "worktrees/linked/config.worktree"} <= set(look(str(linked)).common_names)
    assert {".git/worktrees/linked/commondir", ".git/worktrees/linked/config.worktree"} <= set(look(str(repo)).names)
    (repo / ".git/commondir").write_text("../evil\n")
    with pytest.raises(SandboxError, match="another configuration"):
        look(str(linked))


@pytest.mark.parametrize(
    ("config", "hook", "name"),
    [
        ("", "../../tools/check", "tools/check"),
        ('[diff "x"]\n\ttextconv = tools/check --quick\n', None, "tools/check"),
        ('[filter "x"]\n\tclean = sh ./tools/check %f\n', None, "tools/check"),
        ("[core]\n\tfsmonitor = tools/check\n", None, "tools/check"),
        ("[core]\n\thooksPath = .ours\n", None, "tools/check"),
    ],
    ids=["hook", "textconv", "clean", "fsmonitor", "hooksPath"],
)
def test_a_program_of_the_tree_that_git_runs_by_itself_is_protected(repo: Path, config: str, hook: str | None, name: str) -> None:
    before = set(look(str(repo)).names)
    (repo / "tools").mkdir()
    (repo / "tools/check").write_text("#!/bin/sh\n")
    (repo / "tools/other").write_text("#!/bin/sh\n")
    (repo / ".ours").mkdir()
    (repo / ".ours/pre-push").symlink_to("../tools/check")
    (repo / ".git/config").write_text(config)
    if hook is not None:
        (repo / ".git/hooks/pre-commit").symlink_to(hook)
    assert set(look(str(repo)).names) - before - {".ours"} == {name}, "and nothing beside it"


def test_a_folder_of_hooks_that_stands_elsewhere_is_protected_there(repo: Path) -> None:
    (repo / ".git/hooks").rename(repo / "ours")
    (repo / ".git/hooks").symlink_to("../ours")
    assert "ours" in look(str(repo)).names


def test_what_a_session_leaves_for_the_hosts_git_is_told(repo: Path) -> None:
    tree = look(str(repo))
    before = worktree.marks(str(repo), tree)
    (repo / ".git/commondir").write_text("../evil\n")
    (repo / ".git/hooks/post-checkout").write_text("#!/bin/sh\n")
    (repo / ".git/config").chmod(0o600)
    assert [tuple(change) for change in worktree.changed(before, worktree.marks(str(repo), tree))] == [
        (".git/commondir", "appeared"),
        (".git/config", "changed"),
        (".git/hooks/post-checkout", "appeared"),
    ]


def test_what_a_session_leaves_in_a_common_directory_is_told(repo: Path, tmp_path: Path) -> None:
    tree = Tree("linked", common=str(repo / ".git"))
    (tmp_path / "linked").mkdir()
    before = worktree.marks(str(tmp_path / "linked"), tree)
    (repo / ".git/commondir").write_text("../evil\n")
    assert [tuple(change) for change in worktree.changed(before, worktree.marks(str(tmp_path / "linked"), tree))] == [
        (f"{repo}/.git/commondir", "appeared")
    ]


def linked(at: Path) -> Path:
    """A linked work tree's own folder."""
    at.mkdir(parents=True)
    (at / "commondir").write_text("../..\n")
    return at


@pytest.mark.parametrize("tree", [".git/worktrees/far", ".git/modules/deep/real/worktrees/far"])
def test_a_submodule_of_a_linked_work_tree_is_protected_and_what_is_added_to_it_told(repo: Path, tree: str) -> None:
    linked(repo / tree)
    where = f"{tree}/modules/be/low"
    git_dir(repo / where)
    names = {f"{where}/{name}" for name in OWN}
    assert names <= set(look(str(repo)).names)
    beside = Tree("linked", common=str(repo / ".git"), common_names=tuple(name.removeprefix(".git/") for name in names))
    before = worktree.marks(str(repo / "deep"), beside)
    (repo / where / "hooks/post-checkout").write_text("#!/bin/sh\n")
    assert [change.how for change in worktree.changed(before, worktree.marks(str(repo / "deep"), beside))] == ["appeared"]


def test_what_names_the_configuration_of_a_submodules_linked_work_tree_is_protected(repo: Path) -> None:
    own = linked(repo / ".git/modules/deep/real/worktrees/far")
    at = str(own.relative_to(repo))
    assert {f"{at}/commondir", f"{at}/config.worktree"} <= set(look(str(repo)).names)
    (own / "config").write_text("[core]\n")  # a session could, to have the next launch refused
    assert {f"{at}/commondir", f"{at}/config.worktree"} <= set(look(str(repo)).names)
    (own / "commondir").write_text("../../../evil\n")
    with pytest.raises(SandboxError, match="another configuration"):
        look(str(repo))


def test_files_beside_the_modules_hide_none_of_them(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worktree, "_MOST_FOLDERS", 50)
    for number in range(60):
        (repo / ".git/modules" / f"{number}").touch()
    with pytest.raises(SandboxError, match="too many"):
        look(str(repo))

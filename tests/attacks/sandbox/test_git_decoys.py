"""What a session can do to the git directories it may write does not take the next session's protection from them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from amem.errors import SandboxError
from amem.sandbox import worktree
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

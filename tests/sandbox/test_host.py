"""Facts of the host, read from real folders."""

import os
from pathlib import Path

import pytest

from amem.errors import SandboxError
from amem.sandbox import host
from amem.sandbox.spec import Identity, SandboxSpec


def spec(work: Path, home: Path) -> SandboxSpec:
    return SandboxSpec(argv=("true",), env=(), workdir=str(work), cwd=str(work), home=str(home), port=1)


def test_nothing_of_etc_that_can_hold_a_secret_is_shown(tmp_path: Path) -> None:
    names = {name for name, _ in host.facts(spec(tmp_path, tmp_path)).etc}
    assert not names & {
        "shadow",
        "gshadow",
        "passwd",
        "sudoers",
        "npmrc",
        "wgetrc",
        "gitconfig",
        "environment",
        "ssl",
        "pki",
        "ssl/private",
        "profile",
    }
    for name in names:
        assert os.stat(f"/etc/{name}").st_mode & 0o004, name  # what only root may read is not shown


def test_links_are_repeated_only_into_what_is_shown_whole(tmp_path: Path) -> None:
    for _, link in host.facts(spec(tmp_path, tmp_path)).etc:
        assert link is None or link.startswith(("/usr/", "/nix/store/", "/gnu/store/"))


def test_missing_home_is_named(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("an ordinary user's launch finds it at the step itself")
    with pytest.raises(SandboxError, match="absent"):
        host.facts(spec(tmp_path, tmp_path / "absent"))


@pytest.mark.parametrize("place", ["/usr/bin/bash", "/run/current-system/sw/bin/bash", "/run/current-system/profile/bin/bash", None])
def test_a_shell_is_found_where_nix_and_guix_have_it(monkeypatch: pytest.MonkeyPatch, place: str | None) -> None:
    monkeypatch.setattr(os.path, "lexists", lambda path: path == place)
    assert host.shell() == (place or "/bin/sh")
    assert host.shell("/image") == "/bin/sh"


def test_git_identity_is_name_and_mail_only(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text(
        '[user]\n\tname = Ada L\n\temail = "ada@example.org"\n\tsigningkey = X\n[credential]\n\thelper = !evil\n'
    )
    assert host.git_identity(str(tmp_path)) == Identity("Ada L", "ada@example.org")


def test_git_identity_of_the_newer_place_and_precedence(tmp_path: Path) -> None:
    (tmp_path / ".config/git").mkdir(parents=True)
    (tmp_path / ".config/git/config").write_text("[user]\nname = Old\nemail = old@example.org\n")
    assert host.git_identity(str(tmp_path)) == Identity("Old", "old@example.org")
    (tmp_path / ".gitconfig").write_text("[User]\nName = New\n")
    assert host.git_identity(str(tmp_path)) == Identity("New", "old@example.org")


@pytest.mark.parametrize("text", ["", "[user]\nname = A\n", "[user]\nname = a<b\nemail = c\n", "[other]\nname = A\nemail = b\n"])
def test_no_git_identity_rather_than_a_wrong_one(tmp_path: Path, text: str) -> None:
    (tmp_path / ".gitconfig").write_text(text)
    assert host.git_identity(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("value", "names"), [(".githooks", (".githooks",)), ("~/hooks", ()), ("/srv/hooks", ()), ("../hooks", ()), ("a/./b", ("a/b",))]
)
def test_hooks_that_the_owners_configuration_names_in_any_tree(tmp_path: Path, value: str, names: tuple[str, ...]) -> None:
    (tmp_path / ".gitconfig").write_text(f"[core]\n\thooksPath = {value}\n")
    assert host.git_hooks(str(tmp_path)) == names

"""What of the owner's surroundings comes along inside."""

import os
from pathlib import Path

import pytest

from amem.sandbox import surroundings
from amem.sandbox.spec import Identity


@pytest.mark.parametrize("place", ["/usr/bin/bash", "/run/current-system/sw/bin/bash", "/run/current-system/profile/bin/bash", None])
def test_a_shell_is_found_where_nix_and_guix_have_it(monkeypatch: pytest.MonkeyPatch, place: str | None) -> None:
    monkeypatch.setattr(os.path, "lexists", lambda path: path == place)
    assert surroundings.shell() == (place or "/bin/sh")
    assert surroundings.shell("/image") == "/bin/sh"


def test_git_identity_is_name_and_mail_only(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text(
        '[user]\n\tname = Ada L\n\temail = "ada@example.org"\n\tsigningkey = X\n[credential]\n\thelper = !evil\n'
    )
    assert surroundings.git_identity(str(tmp_path)) == Identity("Ada L", "ada@example.org")


def test_git_identity_of_the_newer_place_and_precedence(tmp_path: Path) -> None:
    (tmp_path / ".config/git").mkdir(parents=True)
    (tmp_path / ".config/git/config").write_text("[user]\nname = Old\nemail = old@example.org\n")
    assert surroundings.git_identity(str(tmp_path)) == Identity("Old", "old@example.org")
    (tmp_path / ".gitconfig").write_text("[User]\nName = New\n")
    assert surroundings.git_identity(str(tmp_path)) == Identity("New", "old@example.org")


@pytest.mark.parametrize("text", ["", "[user]\nname = A\n", "[user]\nname = a<b\nemail = c\n", "[other]\nname = A\nemail = b\n"])
def test_no_git_identity_rather_than_a_wrong_one(tmp_path: Path, text: str) -> None:
    (tmp_path / ".gitconfig").write_text(text)
    assert surroundings.git_identity(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("value", "names"), [(".githooks", (".githooks",)), ("~/hooks", ()), ("/srv/hooks", ()), ("../hooks", ()), ("a/./b", ("a/b",))]
)
def test_hooks_that_the_owners_configuration_names_in_any_tree(tmp_path: Path, value: str, names: tuple[str, ...]) -> None:
    (tmp_path / ".gitconfig").write_text(f"[core]\n\thooksPath = {value}\n")
    assert surroundings.git_hooks(str(tmp_path)) == names

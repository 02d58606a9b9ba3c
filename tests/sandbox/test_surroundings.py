"""What of the owner's surroundings comes along inside."""

import os
import subprocess
from pathlib import Path

import pytest

from amem.sandbox import surroundings
from amem.sandbox.spec import Bind, Identity


@pytest.mark.parametrize("place", ["/usr/bin/bash", "/run/current-system/sw/bin/bash", "/run/current-system/profile/bin/bash", None])
def test_a_shell_is_found_where_nix_and_guix_have_it(monkeypatch: pytest.MonkeyPatch, place: str | None) -> None:
    monkeypatch.setattr(os.path, "lexists", lambda path: path == place)
    assert surroundings.shell() == (place or "/bin/sh")
    assert surroundings.shell("/image") == "/bin/sh"


def identity(home: Path, tree: Path) -> Identity | None:
    return surroundings.git_identity(surroundings.git_settings(str(home), None, str(tree)))


def test_git_identity_is_name_and_mail_only(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text(
        '[user]\n\tname = Ada L\n\temail = "ada@example.org"\n\tsigningkey = X\n[credential]\n\thelper = !evil\n'
    )
    assert identity(tmp_path, tmp_path) == Identity("Ada L", "ada@example.org")


def test_git_identity_of_the_newer_place_and_precedence(tmp_path: Path) -> None:
    (tmp_path / ".config/git").mkdir(parents=True)
    (tmp_path / ".config/git/config").write_text("[user]\nname = Old\nemail = old@example.org\n")
    assert identity(tmp_path, tmp_path) == Identity("Old", "old@example.org")
    (tmp_path / ".gitconfig").write_text("[User]\nName = New\n")
    assert identity(tmp_path, tmp_path) == Identity("New", "old@example.org")


@pytest.mark.parametrize("text", ["", "[user]\nname = A\n", "[user]\nname = a<b\nemail = c\n", "[other]\nname = A\nemail = b\n"])
def test_no_git_identity_rather_than_a_wrong_one(tmp_path: Path, text: str) -> None:
    (tmp_path / ".gitconfig").write_text(text)
    assert identity(tmp_path, tmp_path) is None


@pytest.mark.parametrize(
    ("condition", "email"),
    [
        ("gitdir:~/work/", "w@e"),
        ("gitdir:~/work/**", "w@e"),
        ("gitdir:work/", "w@e"),
        ("gitdir:./work/", "w@e"),
        ("gitdir/i:~/WORK/", "w@e"),
        ("gitdir:**/proj/.git", "w@e"),
        ("gitdir:~/w?rk/*/.git", "w@e"),
        ("gitdir:~/WORK/", "home@e"),
        ("gitdir:~/work/*", "home@e"),
        ("gitdir:~/other/", "home@e"),
        ("gitdir:", "w@e"),
        ("onbranch:main", "home@e"),
        ("hasconfig:remote.*.url:x", "home@e"),
    ],
)
def test_git_identity_for_some_trees_alone_is_gits(tmp_path: Path, condition: str, email: str) -> None:
    tree = tmp_path / "work/proj"
    tree.mkdir(parents=True)
    git = ["git", "-c", "init.defaultBranch=trunk"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run([*git, "init", "-q"], cwd=tree, env=env, check=True)
    (tmp_path / ".gitconfig").write_text(f'[user]\nname = A\nemail = home@e\n[includeIf "{condition}"]\npath = .more\n')
    (tmp_path / ".more").write_text('[user "x"]\nname = B\n[user]\nemail = w@e\n')
    assert identity(tmp_path, tree) == Identity("A", email)
    assert subprocess.check_output([*git, "config", "user.email"], cwd=tree, env=env, text=True) == f"{email}\n"


def test_configuration_that_includes_itself_ends(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text(
        "[user]\nname = A\n[include]\npath = .gitconfig\npath = more\npath = ~/more\n[user]\nemail = a@e\n"
    )
    (tmp_path / "more").write_text("[include]\npath = ~/.gitconfig\npath = ~somebody/x\n[user]\nname = B\n")
    assert identity(tmp_path, tmp_path) == Identity("B", "a@e")


@pytest.mark.parametrize("place", ["TERMINFO", "TERMINFO_DIRS", "home"])
@pytest.mark.parametrize("folder", ["x", "78"])
def test_a_terminal_that_the_system_does_not_know_is_described_by_its_owner(tmp_path: Path, place: str, folder: str) -> None:
    home = tmp_path / "home"
    kept = (home / ".terminfo" if place == "home" else tmp_path / "kept") / folder / "xterm-of-nobody"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"\x1a\x01 and so on")
    named = {"TERM": "xterm-of-nobody", "TERMINFO": f"{tmp_path}/none", "TERMINFO_DIRS": f":relative:{tmp_path}/kept"}
    named |= {"TERMINFO": f"{tmp_path}/kept"} if place == "TERMINFO" else {}
    inside = "/home/agent/.terminfo/x/xterm-of-nobody"
    assert surroundings.terminal(named, str(home), "/home/agent") == (Bind(str(kept), inside, real=True),)


@pytest.mark.parametrize("end", ["private key", "pipe", "folder"])
def test_a_link_where_a_terminal_is_described_shows_no_other_file(tmp_path: Path, end: str) -> None:
    """Where the owner has descriptions in a tree (a shell of Nix's, say), a session can put one there for the next."""
    secret, kept = tmp_path / "secret", tmp_path / "tree/terminfo/x/xterm-of-nobody"
    kept.parent.mkdir(parents=True)
    kept.symlink_to(secret)
    if end == "private key":
        secret.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    else:
        (os.mkfifo if end == "pipe" else os.mkdir)(secret)
    named = {"TERM": "xterm-of-nobody", "TERMINFO_DIRS": f"{tmp_path}/tree/terminfo"}
    assert surroundings.terminal(named, str(tmp_path), "/home/agent") == ()


@pytest.mark.parametrize("name", ["", "dumb", "none-knows-it", "../../secret", "."])
def test_nothing_else_of_a_home_is_taken_for_a_description_of_a_terminal(tmp_path: Path, name: str) -> None:
    (tmp_path / ".terminfo/d").mkdir(parents=True)
    (tmp_path / ".terminfo/d/dumb").touch()
    (tmp_path / "secret").touch()
    system = ("/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo")
    if name == "dumb" and not any(os.path.exists(f"{folder}/d/dumb") for folder in system):
        pytest.skip("this system knows no terminal")
    assert surroundings.terminal({"TERM": name}, str(tmp_path), "/home/agent") == ()


def test_where_data_lies_comes_along_as_far_as_it_is_there_inside(tmp_path: Path) -> None:
    (tmp_path / "corp.pem").touch()
    named = {
        "SSL_CERT_DIR": "/usr/share",
        "TZDIR": "/usr/not-there",
        "NODE_EXTRA_CA_CERTS": f"{tmp_path}/corp.pem",
        "LD_LIBRARY_PATH": "/usr",
    }
    assert surroundings.data_paths(named) == {"SSL_CERT_DIR": "/usr/share"}
    assert surroundings.data_paths(named, programs=str(tmp_path)) == {}


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (".githooks", (".githooks",)),
        ("~/hooks", ()),
        ("~/tree/hooks", ("hooks",)),
        ("{home}/tree/a/hooks", ("a/hooks",)),
        ("~other/hooks", ("~other/hooks",)),
        ("/srv/hooks", ()),
        ("../hooks", ()),
        ("a/./b", ("a/b",)),
    ],
)
def test_hooks_that_the_owners_configuration_names_in_any_tree(tmp_path: Path, value: str, names: tuple[str, ...]) -> None:
    (tmp_path / ".gitconfig").write_text(f"[core]\n\thooksPath = {value.format(home=tmp_path)}\n")
    tree = f"{tmp_path}/tree"
    assert surroundings.git_hooks(surroundings.git_settings(str(tmp_path), None, tree), str(tmp_path), tree) == names


def test_where_a_tool_chain_lies_comes_along_where_that_is_shown(tmp_path: Path) -> None:
    for name in ("rustup", "rustup-other", "venv"):
        (tmp_path / name).mkdir()
    named = {
        "RUSTUP_HOME": f"{tmp_path}/rustup",
        "VIRTUAL_ENV": f"{tmp_path}/venv",
        "GOROOT": f"{tmp_path}/rustup-other",
        "JAVA_HOME": "/usr",
    }
    named |= {"PYENV_ROOT": f"{tmp_path}/rustup/none"}
    found = surroundings.data_paths(named, shown=(f"{tmp_path}/rustup", f"{tmp_path}/venv"))
    assert found == {"RUSTUP_HOME": f"{tmp_path}/rustup", "VIRTUAL_ENV": f"{tmp_path}/venv", "JAVA_HOME": "/usr"}


def test_the_owners_search_path_comes_along_as_far_as_it_is_shown(tmp_path: Path) -> None:
    for name in ("tree/bin", "tool/bin", "beside"):
        (tmp_path / name).mkdir(parents=True)
    own = f"{tmp_path}/tree/bin:/usr/lib:/bin:{tmp_path}/beside:relative::{tmp_path}/tool/none:{tmp_path}/tool/bin:/usr/bin"
    found = surroundings.search_path(own, (f"{tmp_path}/tree", f"{tmp_path}/tool")).split(":")
    assert found[:6] == ["/opt/memory", f"{tmp_path}/tree/bin", "/usr/lib", "/bin", f"{tmp_path}/tool/bin", "/usr/bin"]
    assert set(found) - set(surroundings.search_path().split(":")) == {f"{tmp_path}/tree/bin", f"{tmp_path}/tool/bin", "/usr/lib"}


def test_a_folder_that_leads_to_what_a_session_wrote_is_looked_in_last(tmp_path: Path) -> None:
    (tmp_path / "tree/bin").mkdir(parents=True)
    (tmp_path / "tools").symlink_to("tree/bin")
    own = f"{tmp_path}/tools:{tmp_path}/tree/../tree/bin:/usr/bin"
    assert surroundings.behind(own, (f"{tmp_path}/tree",)).split(":")[0] == "/usr/bin"


def test_what_a_session_may_have_written_is_looked_in_last() -> None:
    own = "/opt/memory:/w/tree/.venv/bin:/usr/bin:/w/more:/w/tree2/bin:/bin"
    assert surroundings.behind(own, ("/w/tree", "/w/more")) == "/opt/memory:/usr/bin:/w/tree2/bin:/bin:/w/tree/.venv/bin:/w/more"

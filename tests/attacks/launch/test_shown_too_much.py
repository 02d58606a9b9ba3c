"""No folder is shown to a session that holds the owner's keys or the sockets of the owner's other programs, however it is named."""

import contextlib
import os
import pwd
import socket
from pathlib import Path

import pytest

from amem.errors import UsageError
from amem.harnesses import registry
from amem.launch.plan import tree
from amem.launch.shown import KEYS, RUN_BY_HOST, SOCKET_PLACES, extra, interpreter
from amem.settings.root import Root
from tests.launch.test_plan import planned, root, work

__all__ = ["root", "work"]


@pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"HOME": "/nonexistent"}])
def test_the_accounts_home_is_refused_whatever_home_says(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    account = pwd.struct_passwd(("somebody", "x", os.geteuid(), os.getegid(), "", str(home), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda number: account)
    with pytest.raises(UsageError, match="holds your home"):
        tree(str(home), root, environment)


@pytest.mark.parametrize("path", [*SOCKET_PLACES, "/var"])
def test_a_place_of_sockets_is_refused(root: Root, path: str) -> None:
    if not os.path.isdir(path) or Path(os.path.realpath(root.path)).is_relative_to(path):
        pytest.skip(f"{path} is not here, or holds the root of this test")
    with pytest.raises(UsageError, match=r"sockets|read-only or hidden"):
        tree(path, root, {"HOME": "/home/somebody"})


def test_a_folder_that_holds_the_place_of_temporary_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amem.launch.shown.SOCKET_PLACES", (str(tmp_path / "run/user"),))
    (tmp_path / "run/project").mkdir(parents=True)
    with pytest.raises(UsageError, match="sockets"):
        tree(str(tmp_path / "run"), Root(Path("/elsewhere")), {})
    assert tree(str(tmp_path / "run/project"), Root(Path("/elsewhere")), {}) == tmp_path / "run/project"


@pytest.mark.parametrize("home", ["home", "home/deeper"])
def test_a_program_beside_the_keys_does_not_show_them(root: Root, work: Path, tmp_path: Path, home: str) -> None:
    (tmp_path / home).mkdir(parents=True)
    folder = tmp_path / "home"
    (folder / "node").write_text("#!/bin/sh\n")
    (folder / "node").chmod(0o755)
    (folder / "gemini.js").write_text("")
    (folder / "gemini").symlink_to("gemini.js")
    with root.grants.open("a") as grants:
        grants.write('[destinations.google]\nceiling = "internal"\n')
    environment = {"HOME": str(tmp_path / home), "PATH": str(folder), "GEMINI_API_KEY": "sk-placeholder"}
    with pytest.raises(UsageError, match="with your keys"):
        planned(root, work, harness="gemini", provider="google", args=(), environment=environment)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "account"
    made.mkdir()
    account = pwd.struct_passwd(("somebody", "x", os.geteuid(), os.getegid(), "", str(made), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda number: account)
    return made


def place(home: Path, name: str) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir()
    return path


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("writable", [False, True])
def test_keys_and_logins_are_shown_to_no_session(root: Root, home: Path, name: str, writable: bool) -> None:
    path = place(home, name)
    (path / "deep").mkdir()
    (home / "link").symlink_to(path)
    for asked in (path, path / "deep", home / "link", *(above for above in path.parents if above != home and above.is_relative_to(home))):
        with pytest.raises(UsageError, match="keys or logins"):
            extra(str(asked), root, {"HOME": "/elsewhere"}, writable=writable)
        with pytest.raises(UsageError, match="keys or logins"):
            tree(str(asked), root, {"HOME": "/elsewhere"})


def test_a_folder_of_keys_that_is_kept_elsewhere_is_no_less_one(root: Root, home: Path, tmp_path: Path) -> None:
    """A `~/.ssh` that is a link into a folder of dot files."""
    kept = tmp_path / "dotfiles"
    (kept / "ssh").mkdir(parents=True)
    (home / ".ssh").symlink_to(kept / "ssh")
    with pytest.raises(UsageError, match="keys or logins"):
        extra(str(kept), root, {}, writable=False)


@pytest.mark.parametrize("name", RUN_BY_HOST)
def test_what_the_login_runs_is_written_by_no_session(root: Root, home: Path, name: str) -> None:
    path = place(home, name)
    for asked in (path, *(above for above in path.parents if above != home and above.is_relative_to(home))):
        with pytest.raises(UsageError, match="run or obeyed"):
            extra(str(asked), root, {}, writable=True)
        with pytest.raises(UsageError, match="run or obeyed"):
            tree(str(asked), root, {})
        assert extra(str(asked), root, {}, writable=False).source == str(asked)


def test_the_login_of_every_harness_is_among_what_is_shown_to_no_session() -> None:
    logins = {login.file for name in registry.names() if (login := registry.load(name).login) is not None}
    assert logins <= set(KEYS)


def test_where_a_search_path_leads_is_written_by_no_session(root: Root, home: Path) -> None:
    tools = place(home, "kit/tools")
    (home / "link").symlink_to(tools)
    (home / "beside").mkdir()
    environment = {"HOME": str(home), "PATH": f":relative:/usr/bin:{home / 'link'}"}
    for asked in (tools, tools.parent):
        with pytest.raises(UsageError, match=f"your PATH leads to {home / 'link'}"):
            extra(str(asked), root, environment, writable=True)
        assert extra(str(asked), root, environment, writable=False).source == str(asked)
    assert extra(str(home / "beside"), root, environment, writable=True).writable


def test_a_folder_beside_keys_is_shown(root: Root, home: Path) -> None:
    (home / ".ssh").mkdir()
    folder = place(home, ".config/editor")
    assert extra(str(folder), root, {}, writable=True).writable


@pytest.mark.parametrize("writable", [False, True])
def test_a_socket_or_a_place_of_sockets_is_not_shown_even_to_read(root: Root, tmp_path: Path, writable: bool) -> None:
    """Whoever sees a socket may connect to it, on a read-only mount too."""
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(tmp_path):
        listener.bind("agent")
        for asked in (str(tmp_path / "agent"), "/run", "/dev/shm"):
            with pytest.raises(UsageError, match=r"sockets|read-only or hidden"):
                extra(asked, root, {}, writable=writable)


@pytest.mark.parametrize("path", ["/", "/proc", "/proc/sys", "/dev", "/etc", "/etc/ssl", "/opt", "/home"])
@pytest.mark.parametrize("writable", [False, True])
def test_what_the_sandbox_makes_itself_is_refused_in_words(home: Path, path: str, writable: bool) -> None:
    with pytest.raises(UsageError, match=f"^--r[ow] {path}: "):
        extra(path, Root(Path("/elsewhere/root")), {"HOME": str(home)}, writable=writable)


@pytest.mark.parametrize(
    ("prefix", "why"),
    [
        ("home", "holds your home"),
        ("home/.local", "holds keys"),
        ("home/.ssh/venv", "holds keys"),
        ("", "holds the root"),
        ("root/venv", "lies in it"),
    ],
)
@pytest.mark.parametrize("which", ["prefix", "base_prefix"])
def test_a_python_whose_folder_holds_the_keys_does_not_show_them(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, why: str, which: str
) -> None:
    for folder in ("home/.local/share/keyrings", "home/.ssh/venv", "root/venv"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "linked").symlink_to(tmp_path / prefix)
    monkeypatch.setattr("sys.executable", "/usr/bin/python3")
    for named in (str(tmp_path / prefix), str(tmp_path / "linked")):
        monkeypatch.setattr(f"sys.{which}", named)
        with pytest.raises(UsageError, match=why):
            interpreter(root, {"HOME": str(tmp_path / "home")})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(f"sys.{which}", str(tmp_path / "elsewhere"))
    assert interpreter(root, {"HOME": str(tmp_path / "home")})

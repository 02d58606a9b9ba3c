"""No folder is shown to a session that holds the owner's keys or the sockets of the owner's other programs, however it is named."""

import os
import pwd
from pathlib import Path

import pytest

from amem.errors import UsageError
from amem.launch.plan import SOCKET_PLACES, tree
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
    monkeypatch.setattr("amem.launch.plan.SOCKET_PLACES", (str(tmp_path / "run/user"),))
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
    environment = {"HOME": str(tmp_path / home), "PATH": str(folder), "GEMINI_API_KEY": "k"}
    with pytest.raises(UsageError, match="with your keys"):
        planned(root, work, harness="gemini", provider="google", args=(), environment=environment)

"""What the machine says no with: each answer names the file, the reason, and a command that can be given as it stands."""

import errno
import json
import os
import shlex
from pathlib import Path

import pytest

from amem.cli import faults
from amem.cli.main import run
from amem.errors import AmemError
from amem.settings.root import Root


def said(error: Exception, root: Path) -> tuple[str, str | None]:
    found = faults.told(error, Root(root))
    assert isinstance(found, AmemError)
    return found.message, found.hint


@pytest.fixture
def root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "a root"
    assert run(["--root", str(path), "init", "--owner", "human:asf:me"]) == 0
    assert run(["--root", str(path), "write", "--type", "fact", "--title", "known", "--body", "Known."]) == 0
    capsys.readouterr()
    return path


@pytest.mark.parametrize(
    ("number", "path", "tries"),
    [
        (errno.ENOSPC, "/x/memory/state/running", "df -h; df -i"),
        (errno.EACCES, "/x/memory/grants.toml", "amem doctor"),
        (errno.EACCES, "/elsewhere/a file", "namei -l '/elsewhere/a file'"),
        (errno.EEXIST, "/x/memory", "namei -l /x/memory"),
        (errno.EROFS, "/nowhere/memory/state", "findmnt -T /"),
        (errno.EMFILE, None, "amem doctor"),
    ],
)
def test_a_file_is_named_with_the_reason_and_what_shows_more(number: int, path: str | None, tries: str) -> None:
    what = "" if path is None else f"{path}: "
    assert said(OSError(number, os.strerror(number), path), Path("/x/memory")) == (f"{what}{os.strerror(number)}", tries)


def test_a_fault_of_ours_is_not_told_as_the_machines() -> None:
    assert faults.told(ValueError("x"), Root(Path("/x"))) is None


@pytest.mark.parametrize(("name", "tries"), [("index.sqlite", "reindex"), ("usage.sqlite", "doctor")])
def test_of_a_roots_databases_the_damaged_one_is_named(root: Path, name: str, tries: str) -> None:
    from amem.settings import database

    for log in ("-wal", "-shm"):  # pages in the log would stand for those of the file
        (root / "state" / f"{name}{log}").unlink(missing_ok=True)
    (root / "state" / name).write_bytes(b"no database at all" * 100)
    message, hint = said(database.OperationalError("database disk image is malformed"), root)
    assert message == f"{root}/state/{name}: database disk image is malformed"
    assert hint == f"amem {tries}"


def test_a_root_that_cannot_be_written_is_named(root: Path) -> None:
    from amem.settings import database

    error = database.OperationalError("attempt to write a readonly database")
    assert said(error, root) == (f"{root}/state: Permission denied", "amem doctor")
    assert said(database.OperationalError("database or disk is full"), root) == (f"{root}/state: database or disk is full", "df -h; df -i")


def test_a_hint_is_about_the_root_that_was_named_and_can_be_pasted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--root", str(root), "session", "show", "ses-0123abcd"]) == 3
    tried = shlex.split(capsys.readouterr().err.splitlines()[-1].removeprefix("try: "))
    assert tried == ["amem", "--root", str(root), "session", "list"]
    assert run(["--root", str(root), "--json", "session", "show", "ses-0123abcd"]) == 3
    assert shlex.split(json.loads(capsys.readouterr().err)["error"]["hint"]) == tried
    assert run(tried[1:]) == 0


def test_where_there_is_no_root_the_hint_makes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "not a root"
    assert run(["--root", str(path), "list"]) == 1
    tried = capsys.readouterr().err.splitlines()[-1].removeprefix("try: ")
    assert not set(tried) & set("<>")
    assert run(shlex.split(tried)[1:]) == 0
    assert run(["--root", str(path), "list"]) == 0


def test_a_file_in_the_place_of_a_root_is_named_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert run(["--root", str(tmp_path / "file"), "list"]) == 1
    assert f"{tmp_path}/file is a file: a root is a folder" in capsys.readouterr().err

"""The host's reader of what a sandbox wrote: nothing but a plain file beneath its folder is read."""

import os
from pathlib import Path

import pytest

from amem.sandbox.reader import Refused, names, read_file, remove


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    (tmp_path / "secret").write_text("key")
    (outbox / "note.md").write_bytes(b"a note")
    return outbox


def test_a_plain_file_is_read(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "n").write_bytes(b"deep")
    assert read_file(str(folder), "note.md", 100) == b"a note"
    assert read_file(str(folder), "sub/n", 100) == b"deep"
    assert names(str(folder)) == ["note.md", "sub"]


def test_a_symbolic_link_is_refused(folder: Path) -> None:
    (folder / "link.md").symlink_to("../secret")
    assert read_file(str(folder), "link.md", 100) == Refused("link.md", "a symbolic link")


def test_a_linked_parent_is_refused(folder: Path) -> None:
    (folder / "dir").symlink_to("..")
    assert read_file(str(folder), "dir/secret", 100) == Refused("dir/secret", "a symbolic link")
    assert names(str(folder), "dir") == []


def test_a_hard_link_is_refused(folder: Path) -> None:
    os.link(folder.parent / "secret", folder / "hard.md")
    assert read_file(str(folder), "hard.md", 100) == Refused("hard.md", "it has a second name (hard link)")


def test_a_fifo_neither_blocks_nor_is_read(folder: Path) -> None:
    os.mkfifo(folder / "fifo.md")
    assert read_file(str(folder), "fifo.md", 100) == Refused("fifo.md", "not a regular file")


@pytest.mark.parametrize("name", ["../secret", "sub/../../secret", "/etc/passwd"])
def test_a_name_that_leads_outside_is_refused(folder: Path, name: str) -> None:
    (folder / "sub").mkdir()
    assert read_file(str(folder), name, 1000) == Refused(name, "it leads outside its folder")


def test_a_large_file_is_refused(folder: Path) -> None:
    (folder / "big.md").write_bytes(b"x" * 101)
    assert isinstance(read_file(str(folder), "big.md", 100), Refused)
    assert read_file(str(folder), "big.md", 101) == b"x" * 101


def test_a_tree_of_any_depth_is_taken_away(tmp_path: Path) -> None:
    top = tmp_path / "-top"
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    remove(str(top))
    assert not top.exists()


def test_a_folder_that_a_session_closed_is_taken_away_and_what_a_link_in_it_names_is_not(tmp_path: Path) -> None:
    top, kept = tmp_path / "top", tmp_path / "kept"
    (top / "closed").mkdir(parents=True)
    (top / "closed" / "file").write_text("x")
    (top / "closed" / "link").symlink_to(kept)
    (top / "closed").chmod(0)
    kept.mkdir(mode=0o500)
    (tmp_path / "to").symlink_to(kept)
    remove(str(top))
    remove(str(tmp_path / "to"))
    assert not top.exists() and kept.stat().st_mode & 0o777 == 0o500

import os
import socket
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from amem.errors import ConflictError, NotFoundError
from amem.model.entry import Status
from amem.record import markdown
from amem.record.markdown import Malformed
from amem.record.store import Store
from amem.settings.root import Root
from tests.record.made import entry


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Root(tmp_path))


def test_an_entry_lies_in_the_folder_of_its_domain_year_and_month(store: Store, tmp_path: Path) -> None:
    made = entry()
    path = store.put(made)
    assert path == tmp_path / "record" / "dom-me" / "2026" / "11" / f"{made.id}.md"
    assert path.read_bytes() == markdown.format(made)
    assert store.read(made.id) == made


def test_files_are_0600_and_folders_0700_whatever_the_umask(store: Store) -> None:
    before = os.umask(0)
    try:
        path = store.put(entry())
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in list(path.parents)[:4]} == {0o700}


def test_a_new_entry_never_takes_the_place_of_one_that_is_there(store: Store) -> None:
    first = entry(body="first")
    path = store.put(first)
    with pytest.raises(ConflictError):
        store.put(replace(first, body="second"))
    assert store.read(first.id) == first
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_a_new_version_takes_the_place_of_the_one_before(store: Store) -> None:
    made = entry()
    path = store.put(made)
    newer = replace(made, version=2, status=Status.DEMOTED)
    assert store.replace(newer) == path
    assert store.read(made.id) == newer
    assert [item.name for item in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("version", [1, 3])
def test_a_version_made_from_another_one_is_a_conflict(store: Store, version: int) -> None:
    made = entry()
    store.put(made)
    with pytest.raises(ConflictError, match="at version 1"):
        store.replace(replace(made, version=version))
    assert store.read(made.id) == made


@pytest.mark.parametrize("name", ["mem-me-../../../../etc", "", "mem-me-0123456789ab\0", "../x", "mem-me-0123456789ab/.."])
def test_an_id_of_another_form_reaches_no_path(store: Store, name: str) -> None:
    with pytest.raises(NotFoundError):
        store.path(name)
    with pytest.raises(Malformed):
        store.put(replace(entry(), id=name))


@pytest.mark.parametrize("change", [{"domain": "dom-../../x"}, {"written_at": "../..-../x"}, {"written_at": "2026-..-"}])
def test_a_domain_or_date_of_another_form_reaches_no_path(store: Store, tmp_path: Path, change: dict[str, str]) -> None:
    with pytest.raises(Malformed):
        store.put(replace(entry(), **change))
    assert list(tmp_path.rglob("*")) == []


def test_a_moved_file_is_found(store: Store, tmp_path: Path) -> None:
    made = entry()
    path = store.put(made)
    elsewhere = tmp_path / "record" / "dom-me" / "notes" / "deep"
    elsewhere.mkdir(parents=True)
    path.rename(elsewhere / path.name)
    assert store.read(made.id) == made


@pytest.mark.parametrize("kind", ["link", "pipe", "socket", "folder", "large"])
def test_what_is_no_regular_file_is_not_read(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    path = store.put(entry())
    target = tmp_path / "target"
    path.rename(target)
    match kind:
        case "link":
            path.symlink_to(target)
        case "pipe":
            os.mkfifo(path)
        case "socket":
            monkeypatch.chdir(path.parent)  # the name of a socket is at most 107 bytes
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        case "folder":
            path.mkdir()
        case "large":
            with path.open("wb") as file:
                file.truncate(17 << 20)
    with pytest.raises(Malformed):
        store.load(path)


def test_a_file_that_is_no_entry_is_named_to_whoever_asked_for_it(store: Store, tmp_path: Path) -> None:
    (place := tmp_path / "a b.md").write_text("junk")
    with pytest.raises(Malformed) as caught:
        store.load(place)
    assert (caught.value.message, caught.value.why) == (f"{place}: does not begin with ---", "does not begin with ---")
    assert caught.value.hint == f"ls -l '{place}'"


def test_a_walk_sees_entries_alone(store: Store, tmp_path: Path) -> None:
    path = store.put(entry())
    (path.parent / f".{path.name}.123.tmp").write_text("half")
    (path.parent / "notes.txt").write_text("x")
    hidden = tmp_path / "record" / ".transcripts"
    hidden.mkdir()
    (hidden / "a.md").write_text("x")
    (tmp_path / "record" / "stray.md").write_text("x")
    assert [found for found, _ in store.walk()] == [tmp_path / "record" / "stray.md", path]


def test_a_write_that_fails_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = store.put(entry())

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        store.put(entry())
    assert [item.name for item in first.parent.iterdir()] == [first.name]


def test_without_hard_links_a_name_is_still_never_taken_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*args: object, **kwargs: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    made = entry()
    path = store.put(made)
    with pytest.raises(ConflictError):
        store.put(replace(made, body="second"))
    assert store.read(made.id) == made
    assert [item.name for item in path.parent.iterdir()] == [path.name]

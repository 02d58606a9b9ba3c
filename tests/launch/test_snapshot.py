"""Snapshots against trees that try everything: what is taken back is byte for byte what was there."""

import marshal
import os
import resource
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from amem.errors import NotFoundError, UnavailableError
from amem.launch import scanned, snapshot
from amem.launch.scanned import MOST_BYTES
from amem.launch.snapshot import Store
from amem.launch.undo import _TICK_NS, SHARED, remainder, repositories, take_back
from amem.settings.root import Root

NAMES = [
    b"plain",
    b"with space",
    b"new\nline",
    b'quo"te',
    b"back\\slash",
    "ünicode".encode(),
    b"not\xffutf8",
    b"-dash",
    b":(glob)*",
    b"git~1",
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    return made


def store(tree: Path) -> Store:
    return Store(Root(tree.parent / "root"), str(tree))


def content(kept: Store, file: snapshot.File) -> bytes:
    with kept.contents() as read:
        return read(file)


def listing(tree: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and link, with its mode and bytes; `.git` apart."""
    found = {}
    for folder, below, files in os.walk(tree):
        for name in [*files, *(name for name in below if os.path.islink(os.path.join(folder, name)))]:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if ".git" not in path.removeprefix(str(tree)).split("/"):
                data = os.fsencode(os.readlink(path)) if stat.S_ISLNK(mode) else Path(path).read_bytes()
                found[path.removeprefix(f"{tree}/")] = (stat.S_IMODE(mode), data)
    return found


def session(tree: Path, script: str, id: str = "ses-1") -> Store:
    """What a session with this script leaves, snapshots around it."""
    kept = store(tree)
    kept.take(id, "before")
    subprocess.run(["sh", "-ec", script], cwd=tree, check=True)
    kept.take(id, "after")
    return kept


@pytest.mark.parametrize("wide", [0, 2_000])
def test_everything_a_session_did_is_named_and_taken_back(tree: Path, monkeypatch: pytest.MonkeyPatch, wide: int) -> None:
    monkeypatch.setattr(snapshot, "_WIDE", wide)
    for name in NAMES:
        Path(os.fsdecode(os.fsencode(tree) + b"/" + name)).write_bytes(b"one\r\n\0" + name)
    (tree / "deep" / "er").mkdir(parents=True)
    (tree / "deep" / "er" / "file").write_text("deep")
    (tree / "private").write_text("secret")
    (tree / "private").chmod(0o600)
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "run").write_text("x")
    (tree / "run").chmod(0o755)
    before = listing(tree)
    script = """
        for name in * ; do test -d "./$name" || test "$name" = run || test "$name" = link || echo two >> "./$name"; done
        rm -rf deep; echo now a file > deep; chmod -x run; rm link private; echo file > link
        mkdir -p new/folder/in; echo x > new/folder/in/it
        rm plain; mkdir plain; echo x > plain/y; ln -s /etc/shadow planted
    """
    kept = session(tree, script)
    changes = kept.changes("ses-1")
    words = {change.path: change.change for change in changes}
    assert words["new/folder/in/it"] == words["planted"] == words["deep"] == "added"
    assert words["deep/er/file"] == words["private"] == "deleted"
    assert words["run"] == words["link"] == words["new\nline"] == "modified"
    reverted, why = take_back(kept, "ses-1", changes, force=False)
    assert why == {} and sorted(reverted) == sorted(words)
    assert listing(tree) == before
    assert not (tree / "new").exists() and content(kept, changes[0].before or changes[0].after)  # type: ignore[arg-type]


contents = st.dictionaries(
    st.sampled_from(["a", "b", "a/w", "a/x", "a/y/z", "b/x", "c d", "e\n"]), st.binary(max_size=4), max_size=5
).filter(lambda files: not any(other.startswith(f"{name}/") for name in files for other in files))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@example(before={"a": b""}, after={"a/w": b"", "a/x": b""}, settled=True, wide=1)
@example(before={"a/w": b"", "a/x": b"", "a/y/z": b""}, after={"a": b"", "b": b""}, settled=True, wide=1)
@given(before=contents, after=contents, settled=st.booleans(), wide=st.sampled_from([0, 1, 2_000]))
def test_any_tree_turned_into_any_other_comes_back(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, bytes], after: dict[str, bytes], settled: bool, wide: int
) -> None:
    """Whether what is known is read again or not, with what did not change in between, and however much git is told whole."""
    tree = tmp_path_factory.mktemp("any") / "tree"

    def fill(files: dict[str, bytes]) -> None:
        subprocess.run(["rm", "-rf", str(tree)], check=True)
        tree.mkdir()
        for name, data in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes(data)

    kept = store(tree)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scanned, "RACY_NS", -(10**18) if settled else scanned.RACY_NS)
        patched.setattr(snapshot, "_WIDE", wide)
        fill(before)
        kept.take("ses-1", "before")
        kept.take("ses-2", "before")
        was = listing(tree)
        fill(after)
        kept.take("ses-1", "after")
        kept.take("ses-2", "after")
    found = kept._git("ls-tree", "-r", "-z", "--name-only", "refs/sessions/ses-1/after").decode()
    assert found.split("\0")[:-1] == sorted(after)
    assert kept.changes("ses-1") == kept.changes("ses-2")
    assert take_back(kept, "ses-1", kept.changes("ses-1"), force=False)[1] == {}
    assert listing(tree) == was


def test_a_change_is_seen_whose_size_and_times_are_those_of_before(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system that counts change times in steps of two seconds, all within one step."""
    (tree / "file").write_text("aaaa")
    about, step_ns = os.stat(tree / "file"), 1_700_000_000_000_000_000
    look = os.stat

    def coarse(path: object, **words: object) -> os.stat_result:
        found = look(path, **words)  # type: ignore[call-overload]
        return os.stat_result(tuple(found), {"st_ctime_ns": step_ns, "st_blocks": found.st_blocks})

    kept, read = store(tree), scanned.content
    names: list[str] = []
    monkeypatch.setattr(scanned, "content", lambda fd, name, *most: (names.append(name), read(fd, name, *most))[1])
    monkeypatch.setattr(scanned.os, "stat", coarse)
    monkeypatch.setattr("amem.launch.snapshot.time.time_ns", lambda: step_ns + 1_999_999_999)
    kept.take("ses-1", "before")
    (tree / "file").write_text("bbbb")
    os.utime(tree / "file", ns=(about.st_atime_ns, about.st_mtime_ns))
    kept.take("ses-1", "after")
    assert [change.path for change in kept.changes("ses-1")] == ["file"]
    monkeypatch.setattr("amem.launch.snapshot.time.time_ns", lambda: step_ns + 2_000_000_001)
    kept.take("ses-2", "before")
    kept.take("ses-2", "after")
    assert names == ["file"] * 3, "once the step is over it is known"


def test_what_is_known_is_not_read_again_and_what_changed_beside_it_is(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/one", "a/two", "b/three"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("aaaa")
    monkeypatch.setattr(scanned, "RACY_NS", -(10**18))
    kept, read = store(tree), scanned.content
    kept.take("ses-1", "before")
    digest = kept.digest()
    names: list[str] = []
    monkeypatch.setattr(scanned, "content", lambda fd, name, *most: (names.append(name), read(fd, name, *most))[1])
    assert kept.digest() == digest and names == []
    about = (tree / "a/two").stat()
    (tree / "a/two").write_text("bbbb")
    os.utime(tree / "a/two", ns=(about.st_atime_ns, about.st_mtime_ns))
    (tree / "b/three").rename(tree / "b/four")
    assert kept.digest() != digest
    names.clear()
    kept.take("ses-1", "after")
    assert sorted(names) == ["four", "two"]
    assert [(change.path, change.change) for change in kept.changes("ses-1")] == [
        ("a/two", "modified"), ("b/four", "added"), ("b/three", "deleted"),
    ]  # fmt: skip


@pytest.mark.parametrize("notes", [b"", b"nonsense", b"{}", marshal.dumps(([], "0" * 64, {"": ("file", bytes(32), bytes(32))}), 4)])
def test_notes_that_are_lost_cost_time_alone(tree: Path, notes: bytes) -> None:
    (tree / "file").write_text("one")
    kept = store(tree)
    kept.take("ses-1", "before")
    (path,) = (tree.parent / "root" / "state" / "snapshots").glob("*.git/amem-notes")
    path.write_bytes(notes)
    (tree / "file").write_text("two")
    kept.take("ses-1", "after")
    (change,) = kept.changes("ses-1")
    assert change.after is not None and content(kept, change.after) == b"two"


def test_what_changed_again_since_is_kept_unless_forced(tree: Path) -> None:
    for name in ("mine", "its", "gone"):
        (tree / name).write_text("one")
    kept = session(tree, "echo two > mine; echo two > its; rm gone; echo x > new")
    (tree / "mine").write_text("three")
    (tree / "gone").write_text("again")
    (tree / "new").unlink()
    changes = kept.changes("ses-1")
    reverted, why = take_back(kept, "ses-1", changes, force=False)
    assert (sorted(reverted), sorted(why)) == (["its", "new"], ["gone", "mine"])
    assert ((tree / "mine").read_text(), (tree / "its").read_text()) == ("three", "one")
    assert take_back(kept, "ses-1", changes, force=True)[1] == {}
    assert {name: data for name, (_, data) in listing(tree).items()} == dict.fromkeys(("mine", "its", "gone"), b"one")


def test_many_files_are_taken_back_by_as_many_gits_as_one(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for at in range(40):
        (tree / f"file {at}").write_bytes(b"\n" * at)
    (tree / "link").symlink_to("file 1")
    before = listing(tree)
    snapshots, started = store(tree), []
    snapshots.take("ses-one", "before")
    for path in tree.iterdir():
        path.unlink()
    snapshots.take("ses-one", "after")
    (tree / "file 1").symlink_to("nowhere")
    runs = Store._run
    monkeypatch.setattr(Store, "_run", lambda self, *words: (started.append(words), runs(self, *words))[1])
    counts = []
    for changes in (snapshots.changes("ses-one", ("file 0",)), snapshots.changes("ses-one")):
        started.clear()
        take_back(snapshots, "ses-one", changes, force=True)
        counts.append(len(started))
    assert listing(tree) == before and counts[0] == counts[1], started


def test_a_file_that_its_store_has_lost_is_not_taken_back_as_another(tree: Path) -> None:
    (tree / "one").write_text("kept well\n")
    snapshots = store(tree)
    snapshots.take("ses-one", "before")
    (tree / "one").write_text("of the session\n")
    snapshots.take("ses-one", "after")
    (change,) = snapshots.changes("ses-one")
    lost = change._replace(before=change.before and change.before._replace(blob="0" * 64))
    with pytest.raises(UnavailableError, match=r"git cat-file: 0+ cannot be read"):
        take_back(snapshots, "ses-one", (lost,), force=False)
    assert (tree / "one").read_text() == "of the session\n"
    with snapshots.contents() as content:
        assert change.before and content(change.before) == b"kept well\n"


def test_only_the_paths_asked_for_taken_by_their_letters(tree: Path) -> None:
    (tree / "sub").mkdir()
    kept = session(tree, "echo x > 'sub/*'; echo x > sub/other; echo x > top")
    assert [change.path for change in kept.changes("ses-1", ("sub/*",))] == ["sub/*"]
    assert [change.path for change in kept.changes("ses-1", ("sub",))] == ["sub/*", "sub/other"]


def test_nothing_of_the_trees_git_is_run_obeyed_or_touched(tree: Path, tmp_path: Path) -> None:
    """A filter, a monitor, hooks, ignore rules and attributes that a session plants have no say."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@e"]
    subprocess.run([*git, "init", "-q"], cwd=tree, check=True)
    ran = tmp_path / "ran"
    for key, value in (("filter.x.clean", f"touch {ran}; cat"), ("core.fsmonitor", f"touch {ran}"), ("core.hooksPath", "hooks")):
        subprocess.run(["git", "config", key, value], cwd=tree, check=True)
    (tree / "hooks").mkdir()
    for hook in ("post-index-change", "reference-transaction", "pre-auto-gc"):
        (tree / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (tree / "hooks" / hook).chmod(0o755)
    (tree / ".gitattributes").write_text("* filter=x text eol=crlf ident working-tree-encoding=UTF-16\n")
    (tree / "crlf").write_bytes(b"$Id$\r\n")
    own = {path: path.stat().st_mtime_ns for path in (tree / ".git").rglob("*")}
    before = listing(tree)
    kept = session(
        tree, "echo '*' > .gitignore; echo x > hidden; mkdir nested; printf 'x\\n' > crlf; mkdir nested/.git; echo x > nested/file"
    )
    assert {change.path for change in kept.changes("ses-1")} == {".gitignore", "hidden", "nested/file", "crlf"}
    assert kept.text("ses-1") and kept.text("ses-1", stat=True)
    assert take_back(kept, "ses-1", kept.changes("ses-1"), force=False)[1] == {}
    assert listing(tree) == before and not ran.exists()
    assert {path: path.stat().st_mtime_ns for path in (tree / ".git").rglob("*")} == own


def test_a_link_put_in_the_way_leads_no_write_out_of_the_tree(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tree / "folder").mkdir()
    (tree / "folder" / "file").write_text("one")
    kept = session(tree, "echo two > folder/file")
    (tree / "folder" / "file").unlink()
    (tree / "folder").rmdir()
    (tree / "folder").symlink_to(outside)
    for force in (False, True):
        reverted, why = take_back(kept, "ses-1", kept.changes("ses-1"), force=force)
        assert (reverted, list(why)) == ([], ["folder/file"])
    assert list(outside.iterdir()) == []


def test_holes_are_read_to_a_bound(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session makes a thousand files of nothing in a second; its launcher is not kept reading them for an hour."""
    monkeypatch.setattr(snapshot, "MOST_HOLES", 5 << 20)
    (tree / "a").write_text("kept")
    for name in "bcd":
        with (tree / name).open("wb") as file:
            file.truncate(2 << 20)
    (tree / "e").write_text("it has no hole")
    assert store(tree).take("ses-1", "before") == ("d",)


@pytest.mark.parametrize("above", [False, True])
def test_a_tree_swapped_for_a_link_is_neither_read_nor_written(tmp_path: Path, above: bool) -> None:
    """Another session may write the folder above it: what this one deleted would be made anew wherever the link leads."""
    tree, outside = tmp_path / "above" / "tree", tmp_path / "outside"
    for folder in (tree, outside / "tree"):
        folder.mkdir(parents=True)
    (tree / ".bash_login").write_text("anything")
    (outside / "secret").write_text("private")
    kept = Store(Root(tmp_path / "root"), str(tree))
    kept.take("ses-1", "before")
    (tree / ".bash_login").unlink()
    kept.take("ses-1", "after")
    swapped = tree.parent if above else tree
    swapped.rename(tmp_path / "aside")
    swapped.symlink_to(outside)
    with pytest.raises(UnavailableError, match="symbolic link"):
        take_back(kept, "ses-1", kept.changes("ses-1"), force=True)
    with pytest.raises(UnavailableError, match="symbolic link"):
        kept.take("ses-2", "before")
    with pytest.raises(UnavailableError, match="symbolic link"):
        kept.digest()
    assert sorted(path.name for path in outside.rglob("*")) == ["secret", "tree"]


def test_what_cannot_be_kept_is_named_and_does_not_block(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    with (tree / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    (tree / "small").write_text("x")
    kept = store(tree)
    assert kept.take("ses-1", "before") == ("large",)
    (tree / "small").write_text("y")
    kept.take("ses-1", "after")
    assert [change.path for change in kept.changes("ses-1")] == ["small"]


def test_modes_are_shown_and_taken_back_of_files_and_of_folders(tree: Path) -> None:
    modes = {"private": 0o600, "fixed": 0o444, "world": 0o777, "tool": 0o755, "gone/file": 0o640, "kept/file": 0o600, "barred/file": 0o644}
    for name, bits in modes.items():
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("mine")
        (tree / name).chmod(bits)
    folders = {"gone": 0o700, "kept": 0o750, "barred": 0o755}
    for name, bits in folders.items():
        (tree / name).chmod(bits)
    script = (
        "chmod 644 private fixed tool; chmod 700 world; rm -r gone; chmod 755 kept; echo x > kept/file; rm barred/file; chmod 500 barred"
    )
    kept = session(tree, script)
    found = {change.path: (change.before and change.before.mode, change.after and change.after.mode) for change in kept.changes("ses-1")}
    assert found["private"] == ("100600", "100644") and found["kept"] == ("40750", "40755") and found["gone/file"] == ("100640", None)
    assert sorted(found) == ["barred", "barred/file", "fixed", "gone/file", "kept", "kept/file", "private", "tool", "world"]
    assert " mode change 100600 => 100644 private\n" in kept.text("ses-1", stat=True)
    assert " mode change 40755 => 40500 barred\n" in kept.text("ses-1") and "private" not in kept.text("ses-1", ("kept",))
    assert take_back(kept, "ses-1", kept.changes("ses-1"), force=False)[1] == {}
    assert {name: stat.S_IMODE((tree / name).stat().st_mode) for name in (*modes, *folders)} == modes | folders


LARGE = "truncate -s 300M there"


@pytest.mark.parametrize(
    "script",
    ["rm there; mkfifo there", LARGE, "rm there; mkdir -p there/in/it", f"rm there; mkdir there; {LARGE}/new", "mkdir new; " + LARGE],
)
def test_what_no_snapshot_keeps_is_taken_back_where_a_file_was(tree: Path, script: str) -> None:
    (tree / "there").write_text("mine")
    kept = session(tree, script)
    assert take_back(kept, "ses-1", kept.changes("ses-1"), force=False)[1] == {}
    assert (tree / "there").read_text() == "mine"


def test_a_link_that_git_takes_for_no_file_goes_with_the_session_that_made_it(tree: Path) -> None:
    (tree / ".gitmodules").write_text("mine")
    kept = session(tree, "ln -sf nowhere .gitmodules; mkdir new; ln -s nowhere new/.gitmodules")
    assert take_back(kept, "ses-1", kept.changes("ses-1"), force=False)[1] == {}
    assert listing(tree) == {".gitmodules": (0o644, b"mine")} and not (tree / "new").exists()


def test_what_the_session_left_and_no_snapshot_keeps_is_named_and_goes_unless_it_was_touched_since(tree: Path) -> None:
    (tree / "file").write_text("mine")
    kept = session(tree, "truncate -s 300M new; truncate -s 300M file")
    assert [(change.path, change.change, change.after) for change in kept.changes("ses-1")] == [
        ("file", "modified", snapshot.UNKEPT),
        ("new", "added", snapshot.UNKEPT),
    ]
    assert " in no snapshot: new\n" in kept.text("ses-1")
    for name in ("new", "file"):
        os.utime(tree / name)
    assert take_back(kept, "ses-1", kept.changes("ses-1"), force=False)[1].keys() == {"new", "file"}
    assert take_back(kept, "ses-1", kept.changes("ses-1"), force=True)[1] == {}
    assert [path.name for path in tree.iterdir()] == ["file"] and (tree / "file").read_text() == "mine"


def test_names_that_git_takes_for_none_hide_nothing_and_spoil_no_snapshot(tree: Path) -> None:
    """What stands below `.GIT` would be in no diff, and at a link named `.gitmodules` git from 2.48 on takes no file at all."""
    (tree / "a").mkdir(exist_ok=True)
    (tree / "a/.GIT").mkdir()
    (tree / "a/.GIT/hidden").write_text("x")
    (tree / "a/.Gitmodules").symlink_to("../file")
    (tree / ".gitmodules").write_text("")
    assert sorted(store(tree).take("ses-1", "before")) == ["a/.GIT", "a/.Gitmodules"]
    (tree / ".gitmodules").write_text("[submodule]")
    store(tree).take("ses-1", "after")
    assert [change.path for change in store(tree).changes("ses-1")] == [".gitmodules"]


def test_a_snapshot_that_failed_leaves_nothing_on_the_disk(tree: Path) -> None:
    """As where the disk is full: git keeps what it has of the pack, and a report of the crash."""
    kept = session(tree, "true")
    (tree / "large").write_bytes(os.urandom(4 << 20))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            subprocess, "Popen", partial(subprocess.Popen, preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (2 << 20, -1)))
        )
        with pytest.raises(UnavailableError, match="no snapshot of"):
            kept.take("ses-2", "before")
    [path] = (tree.parent / "root" / "state" / "snapshots").iterdir()
    assert not [*path.rglob("tmp_*"), *path.glob("fast_import_crash_*")]


def test_without_a_snapshot_there_is_nothing_to_show(tree: Path) -> None:
    with pytest.raises(NotFoundError):
        store(tree).changes("ses-1")
    kept = store(tree)
    kept.take("ses-1", "before")
    with pytest.raises(NotFoundError):
        kept.changes("ses-1")


def test_the_store_is_the_owners_alone(tree: Path) -> None:
    (tree / "file").write_text("x")
    session(tree, "echo y > file")
    snapshots = tree.parent / "root" / "state" / "snapshots"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (snapshots, *snapshots.iterdir())] == [0o700, 0o700]


def test_what_was_not_in_the_snapshot_is_not_taken_for_new(tree: Path) -> None:
    with (tree / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    kept = session(tree, "echo small > large")
    assert take_back(kept, "ses-1", kept.changes("ses-1"), force=True)[1].keys() == {"large"}
    assert (tree / "large").read_text() == "small\n"


def test_old_sessions_go_and_the_last_ones_stay(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amem.launch.snapshot.KEPT", 2)
    for number in range(4):
        kept = session(tree, f"echo {number} > file", f"ses-{number}")
    assert [kept.has(f"ses-{number}", when) for number in range(4) for when in ("before", "after")] == [False] * 4 + [True] * 4
    assert [change.path for change in kept.changes("ses-2")] == ["file"]


@pytest.mark.parametrize(("there", "expected"), [(b"", 0), (b"as long", 7), (b"grown since it was looked at" * 99, 7), (b"shrunk", 700)])
def test_a_file_that_changes_its_size_while_it_is_read_is_read_whole(tmp_path: Path, there: bytes, expected: int) -> None:
    (tmp_path / "file").write_bytes(there)
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        assert scanned.whole(fd, expected) == there
    finally:
        os.close(fd)


def test_a_file_that_grows_past_what_is_kept_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanned, "MOST_BYTES", 1 << 20)
    (tmp_path / "file").write_bytes(bytes(3 << 20))
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        assert scanned.whole(fd, 7) is None
    finally:
        os.close(fd)


def test_a_long_wait_is_explained_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        (tree / f"file{number}").write_text("x")
    told: list[str] = []
    store(tree).take("ses-1", "before", lambda: told.append("slow"))
    assert told == []
    monkeypatch.setattr(snapshot, "_SLOW_NS", -1)
    store(tree).take("ses-2", "before", lambda: told.append("slow"))
    assert told == ["slow"]


def test_repositories_that_paths_are_in_are_named_but_not_the_trees_own(tree: Path) -> None:
    for name in (".git", "a/b/.git", "c/.git"):
        (tree / name).mkdir(parents=True)
    paths = ["a/b/c/gone", "a/b/file", "top"]
    assert repositories(str(tree), paths) == ["a/b/.git"]


def rest(tree: Path, script: str) -> str | None:
    """What is left of a session whose changes are all taken back."""
    for name in ("kept", "deep/file", "gone"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("mine")
    (tree / "empty").mkdir()
    (tree / "link").symlink_to("deep")
    kept = session(tree, script)
    ended_ns = undo_ns = time.time_ns()
    while undo_ns < ended_ns + 2 * _TICK_NS:  # what the session touched is older than what the undo may have
        undo_ns = time.time_ns()
    reverted, held = take_back(kept, "ses-1", kept.changes("ses-1"), force=False)
    assert held == {} and reverted != []
    assert (tree / "deep/file").read_text() == (tree / "gone").read_text() == "mine"
    return remainder(kept, "ses-1", reverted, undo_ns)


CHANGES = "echo more >> deep/file; rm gone; mkdir -p new/er; echo x > new/er/file; "


def test_of_what_is_taken_back_whole_nothing_remains(tree: Path) -> None:
    assert rest(tree, CHANGES + "chmod 604 kept; chmod 711 deep; touch -d @15000 kept deep") is None
    assert (tree / "kept").stat().st_mtime > 15000 and (tree / "deep").stat().st_mtime > 15000


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("mkdir hunter2", "hunter2"),
        ("mkdir -p new/er/hunter2", "new"),
        ("mkdir -p deep/.git; echo hunter2 > deep/.git/config", "deep/.git"),
        ("mkfifo hunter2", "hunter2"),
        ("touch -d @15000 kept", "kept"),
        ("touch -h -d @15000 link", "link"),
        ("chmod 751 empty", "empty"),
        ("touch -d @15000 empty", "empty"),
        ("cp kept copy; mv copy kept", "kept"),
    ],
)
def test_what_no_snapshot_keeps_remains(tree: Path, script: str, found: str) -> None:
    """A session could say with it what it has read, to the next session that is shown the tree."""
    left = rest(tree, CHANGES + script)
    assert left == found or (found == "new" and left in ("new", "new/er", "new/er/hunter2"))


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """A tree of a user whom the modes of files concern, whose powers the test has meanwhile."""
    base = Path(tempfile.mkdtemp(prefix="amem-test-", dir="/tmp"))
    is_root = os.geteuid() == 0
    try:
        (base / "tree").mkdir()
        if is_root:
            for path in (base, base / "tree"):
                os.chown(path, 61_234, 61_234)
            os.setegid(61_234)
            os.seteuid(61_234)
        yield base / "tree"
    finally:
        if is_root:
            os.seteuid(0)
            os.setegid(0)
        subprocess.run(["chmod", "-R", "u+rwX", base], check=True)
        shutil.rmtree(base)


def settle(tree: Path) -> None:
    """Wait for the next step of the clock that files take their times from: a machine can take a snapshot within one."""
    probe = tree.parent / "probe"
    probe.write_text("x")
    first = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == first:
        probe.write_text("x")


@pytest.mark.parametrize("mode", [0, 0o111, 0o444])
def test_a_folder_that_a_session_closed_is_opened_and_what_was_in_it_comes_back(ordinary: Path, mode: int) -> None:
    """With one chmod a session could else keep all its changes there."""
    for name in ("src/changed", "src/same", "src/sub/gone", "other"):
        (ordinary / name).parent.mkdir(exist_ok=True, parents=True)
        (ordinary / name).write_text("before")
    before = listing(ordinary)
    kept = store(ordinary)
    kept.take("ses-1", "before")
    (ordinary / "src/changed").write_text("after")
    (ordinary / "src/sub/gone").unlink()
    (ordinary / "src/new").write_text("x")
    (ordinary / "other").write_text("after")
    for name in ("src/sub", "src"):
        (ordinary / name).chmod(mode)
    settle(ordinary)
    assert any(path.startswith("src") for path in kept.take("ses-1", "after"))
    _, why = take_back(kept, "ses-1", kept.changes("ses-1"), force=False)
    if mode == 0o444:  # its names could be listed
        assert why == {}
    else:
        assert why == {"src/new": "it is in no snapshot: the session closed its folder"}
        (ordinary / "src/new").unlink()
    assert listing(ordinary) == before


def test_a_folder_that_is_made_again_and_swapped_for_a_link_gives_nobody_the_owners(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another session may write the tree while an undo runs."""
    private = tree.parent / "private"
    private.mkdir(mode=0o700)
    (tree / "docs").mkdir()
    (tree / "docs/x").write_text("before")
    kept = session(tree, "rm -r docs")
    make = os.mkdir

    def swapped(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        make(path, mode, dir_fd=dir_fd)
        os.rmdir(path, dir_fd=dir_fd)
        os.symlink(private, path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", swapped)
    _, why = take_back(kept, "ses-1", kept.changes("ses-1"), force=False)
    assert list(why) == ["docs/x"]
    assert (stat.S_IMODE(private.stat().st_mode), list(private.iterdir())) == (0o700, [])


def test_a_name_of_any_length_is_taken_back(tree: Path) -> None:
    (tree / ("\u6587" * 85)).write_text("before")
    before = listing(tree)
    kept = session(tree, 'for f in *; do echo after > "$f"; done')
    assert take_back(kept, "ses-1", kept.changes("ses-1"), force=False) == (["\u6587" * 85], {})
    assert listing(tree) == before


def test_git_is_told_of_a_folder_with_many_changes_as_a_whole(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, each takes it a look at all the others there: forty thousand files were four seconds, two hundred thousand a hundred."""
    told: list[bytes] = []
    importing = Store._importing

    @contextmanager
    def noted(self: Store) -> Iterator[IO[bytes]]:
        with importing(self) as out:

            class Noting:
                def write(self, line: bytes) -> None:
                    told.append(line)
                    out.write(line)

                def writelines(self, lines: Iterable[bytes]) -> None:
                    for line in lines:
                        self.write(line)

            yield Noting()  # type: ignore[misc]

    monkeypatch.setattr(Store, "_importing", noted)
    monkeypatch.setattr(snapshot, "_WIDE", 50)
    (tree / "many" / "below").mkdir(parents=True)
    for number in range(51):
        (tree / "many" / f"{number}\n").write_text(str(number))
    (tree / "many" / "below" / "file").write_text("x")
    before = listing(tree)
    kept = session(tree, "cd many; rm [0-9]*; touch new")
    lines = [line for line in told if line.startswith((b"M ", b"D "))]
    assert {line.rpartition(b" ")[2] for line in lines if not line.startswith(b"M 040000")} == {b'"many/below/file"\n'}
    assert {change.change for change in kept.changes("ses-1")} == {"added", "deleted"} and len(kept.changes("ses-1")) == 52
    take_back(kept, "ses-1", kept.changes("ses-1"), force=False)
    assert listing(tree) == before


def test_a_file_that_has_another_name_outside_is_told_to_be_as_the_session_left_it(tree: Path) -> None:
    """What uv and pnpm install is one file with what their caches and the owner's other projects have."""
    (tree / "own").write_text("before")
    (tree.parent / "cache").write_text("before")
    os.link(tree.parent / "cache", tree / "module.py")
    kept = session(tree, "echo after > module.py; echo after > own")
    reverted, why = take_back(kept, "ses-1", kept.changes("ses-1"), force=False)
    assert (sorted(reverted), why) == (["module.py", "own"], {"module.py": SHARED})
    assert [(tree / name).read_text() for name in ("own", "module.py")] == ["before", "before"]
    assert (tree.parent / "cache").read_text() == "after\n"

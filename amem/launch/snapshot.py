"""Snapshots of a work tree, from before and after a session, and what it changed between the two; the way back is `undo`.

Owns `state/snapshots/<tree>.git`, a repository of amem's own for each tree. git is the store and nothing more: it is never pointed at the
tree, so no hook, filter, attribute, ignore rule or configuration of the tree has a say, and the user's own repository is not touched.
Every file is read beneath the tree, following no link. What stands in a `.git` is left out: it is git's, and a commit is undone
with git.
"""

import fcntl
import hashlib
import json
import marshal
import os
import stat
import subprocess
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, NamedTuple

from amem.errors import NotFoundError, UnavailableError
from amem.launch import scanned
from amem.launch.scanned import Folder, Known
from amem.sandbox import worktree
from amem.sandbox.spec import is_below
from amem.sandbox.surroundings import HOST_PATH
from amem.settings.root import Root

MOST_HOLES = 4 << 30
"""Bytes that files only claim to have: they cost a session nothing, and whoever reads them a minute for so many."""
KEPT = 30
"""Sessions of one tree whose snapshots stay."""
_WIDE = 2_000
"""Changes in one folder past which it is told as a whole: git looks for each of a commit's files among all others of its folder."""
_ANY_NAME = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")
"""What Windows or macOS would take for another name is a name here."""
_PIPE_BYTES = 1 << 20
"""The most that any user may have (fs.pipe-max-size)."""
_USUAL_MODES = frozenset({0o100644, 0o100755, 0o120777, 0o40755})
_SLOW_NS = 2_000_000_000
"""A wait past this is explained."""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_LITERAL_PATHSPECS": "1",
}


class File(NamedTuple):
    """A file, or a folder that has another mode, as a snapshot has it."""

    mode: str
    """Its kind and the bits of its mode in octal, as git writes them: 100644, 100600, 40700, 120000 for a link."""
    blob: str
    """Empty for a folder."""


UNKEPT = File("", "")
"""What stands there is in no snapshot: too large, not readable, no file at all."""


class Change(NamedTuple):
    """A file that a session added, modified or deleted."""

    path: str
    change: str
    before: File | None
    after: File | None


class About(NamedTuple):
    """What a snapshot says beside its files."""

    modes: Mapping[str, str]
    """Kind and mode, as `File` has them, of the files and folders that had unusual ones: git keeps none but the execute bit."""
    left_out: tuple[str, ...]
    """Files and folders that were there, and could not be kept."""
    at_ns: int
    """When it was begun."""


class _Notes(NamedTuple):
    """What a store knows beside git; it can be lost."""

    sessions: list[str]
    """Oldest first."""
    tree: str
    """git's name of the tree with the files that are known; empty where none are."""
    folders: Mapping[str, Known]


class Store:
    """The snapshots of one tree. Raises UnavailableError where there is no git."""

    def __init__(self, root: Root, workdir: str) -> None:
        self.workdir = workdir
        name = hashlib.sha256(os.fsencode(workdir)).hexdigest()[:16]
        self._path = root.state / "snapshots" / f"{name}.git"

    def take(self, session: str, when: str, slow: Callable[[], None] | None = None) -> tuple[str, ...]:
        """Keep the tree as it is now, `before` or `after` a session. Returns what could not be kept, by name.

        The first time every file is read, later only what changed. `slow` is called once where that takes long enough to be wondered at.
        """
        with self._locked():
            notes = self._notes()
            taking = _Taking(notes, slow)
            with self._importing() as out:
                for folder in scanned.folders(self.workdir, taking.left_out):
                    taking.folder(folder, out)
                whole = [self._whole(notes.tree, path, files) for path, files in sorted(taking.whole.items())]
                gone, folders = taking.gone(), taking.folders()
                message = json.dumps({"at_ns": taking.began_ns, "modes": taking.modes, "left_out": taking.left_out}).encode()
                head = f"commit refs/sessions/{session}/{when}\ncommitter amem <amem@localhost> {taking.began_ns // 10**9} +0000\n"
                out.write(head.encode() + b"data %d\n%s\ndeleteall\n" % (len(message), message))
                if notes.tree:
                    out.write(b'M 040000 %s ""\n' % notes.tree.encode())
                out.writelines(b"D %s\n" % _quoted(path) for path in gone if path in folders)  # a file was there
                out.writelines(whole)
                out.writelines(b"D %s\n" % _quoted(path) for path in gone if path not in folders)
                out.writelines(taking.lines)
            sessions = self._prune([*(each for each in notes.sessions if each != session), session])
            tree = self._git("rev-parse", f"refs/sessions/{session}/{when}^{{tree}}").decode().strip()
            new_notes = self._path / "amem-notes.new"
            new_notes.write_bytes(marshal.dumps((sessions, tree, {path: tuple(known) for path, known in taking.new.items()}), 4))
            new_notes.replace(self._path / "amem-notes")
        return tuple(taking.left_out)

    def digest(self) -> str:
        """Name the tree as it is now, by every file that a snapshot of it would keep; nothing is kept. What is known is not read again."""
        notes = self._notes()
        all_of_it = hashlib.sha256()
        for folder in scanned.folders(self.workdir, []):
            known = notes.folders[folder.path].files() if folder.path in notes.folders else {}
            for name, mode, mark in folder:
                was, blob = known.get(name, (b"", b""))
                if was != mark:
                    found = scanned.content(folder.fd, name)
                    blob = scanned.blob(found[0]) if found is not None else b"%d bytes" % scanned.size(mark)
                all_of_it.update(f"{scanned.git_mode(mode)} {blob.hex()} ".encode() + os.fsencode(folder.below(name)) + b"\0")
        return f"sha256:{all_of_it.hexdigest()}"

    def has(self, session: str, when: str) -> bool:
        """Say whether this snapshot was taken."""
        return (self._path / "HEAD").exists() and bool(self._git("for-each-ref", f"refs/sessions/{session}/{when}"))

    def changes(self, session: str, paths: tuple[str, ...] = ()) -> tuple[Change, ...]:
        """What the session changed, by path. Raises NotFoundError without both snapshots."""
        raw = self._git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", *self._both(session)).decode(
            errors="surrogateescape"
        )
        parts = raw.split("\0")
        before, after = self.about(session), self.about(session, "after")
        found = {path: _change(head, path, before, after) for head, path in zip(parts[:-1:2], parts[1::2], strict=True)}
        if after.left_out:
            was, known = self._listed(session, "before", before), frozenset(before.left_out)
            shut = frozenset(after.left_out)
            found |= {path: Change(path, "modified", file, UNKEPT) for path, file in was.items() if lies_in(path, shut)}
            found |= {path: Change(path, "added", None, UNKEPT) for path in shut - was.keys() if not lies_in(path, known)}
        if others := {path for path, _ in before.modes.items() ^ after.modes.items()} - found.keys():
            was, now = self._listed(session, "before", before), self._listed(session, "after", after)
            found |= {path: Change(path, "modified", was[path], now[path]) for path in others & was.keys() & now.keys()}
        return tuple(found[path] for path in sorted(found) if not paths or any(is_below(path, each) for each in paths))

    def text(self, session: str, paths: tuple[str, ...] = (), *, stat: bool = False) -> str:
        """The same as a person reads it: a patch, or a line a file."""
        shape = ("--stat",) if stat else ("-p", "--no-ext-diff", "--no-textconv")
        patch = self._git("diff-tree", "-r", *shape, *self._both(session), "--", *paths).decode(errors="replace")
        return patch + "".join(filter(None, map(_beside, self.changes(session, paths))))

    @contextmanager
    def contents(self) -> "Iterator[Callable[[File], bytes]]":
        """For as long as this lasts, what gives the bytes of a file, or where a link points: one git, since to start one takes longer than
        to read most files. It raises UnavailableError."""
        with self._run("cat-file", "--batch") as process:
            asked, answers = process.stdin, process.stdout
            assert asked is not None and answers is not None

            def content(file: File) -> bytes:
                with suppress(BrokenPipeError):
                    asked.write(f"{file.blob}\n".encode())
                    asked.flush()
                match answers.readline().split():
                    case [_, b"blob", size]:
                        found = answers.read(int(size) + 1)[:-1]  # a newline follows
                        if len(found) == int(size):
                            return found
                raise UnavailableError(
                    f"snapshots of {self.workdir}: git cat-file: {file.blob} cannot be read", hint=f"git -C {self._path} fsck"
                )

            try:
                yield content
            finally:
                with suppress(BrokenPipeError):
                    asked.close()

    def about(self, session: str, when: str = "before") -> "About":
        """What git does not keep of the tree as it was before or after the session."""
        message = json.loads(self._git("cat-file", "commit", f"refs/sessions/{session}/{when}").partition(b"\n\n")[2])
        modes = {path: bits if len(bits) > 4 else f"100{bits:0>3}" for bits, paths in message["modes"].items() for path in paths}
        return About(modes, tuple(message["left_out"]), message.get("at_ns", 0))

    def files(self, session: str) -> frozenset[str]:
        """The names of all files and folders that the snapshot from before a session has."""
        return frozenset(self._listed(session, "before", self.about(session)))

    def _listed(self, session: str, when: str, about: "About") -> dict[str, File]:
        """All that a snapshot has, folders too: those with files in them, and those with an unusual mode."""
        raw = self._git("ls-tree", "-r", "-t", "-z", f"refs/sessions/{session}/{when}").decode(errors="surrogateescape")
        heads = (row.split("\t", 1) for row in raw.split("\0")[:-1])
        found = {path: _file(head.split()[0], head.split()[2], path, about) for head, path in heads}
        return found | {path: File(mode, "") for path, mode in about.modes.items() if mode.startswith("40")}

    def _both(self, session: str) -> tuple[str, str]:
        if not (self.has(session, "before") and self.has(session, "after")):
            raise NotFoundError(f"{session}: no snapshot from before and after it", hint="amem launch --snapshot")
        return f"refs/sessions/{session}/before", f"refs/sessions/{session}/after"

    def _prune(self, sessions: list[str]) -> list[str]:
        """Keep the last sessions; git drops what nothing names any more when it has become much."""
        for session in sessions[:-KEPT]:
            for when in ("before", "after"):
                if self.has(session, when):
                    self._git("update-ref", "-d", f"refs/sessions/{session}/{when}")
        self._git("-c", "gc.autoDetach=false", "gc", "--auto", "--quiet")
        return sessions[-KEPT:]

    def _notes(self) -> "_Notes":
        """What the last snapshot left; of files only where git still has the tree with them, which the next one then starts from."""
        with suppress(OSError, EOFError, ValueError, TypeError, UnavailableError):
            sessions, tree, folders = marshal.loads((self._path / "amem-notes").read_bytes())
            found = _Notes(list(sessions), "", {})
            with suppress(UnavailableError):
                self._git("rev-parse", "--verify", "--quiet", f"{tree}^{{tree}}")
                found = _Notes(found.sessions, tree, {path: Known(*known) for path, known in folders.items()})
            return found
        return _Notes([], "", {})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One snapshot of a tree at a time; makes the repository."""
        if not (self._path / "HEAD").exists():
            for folder in (self._path.parent, self._path):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._git("init", "-q", "--bare", "--template=", "--object-format=sha256", str(self._path))
        with open(self._path / "amem-lock", "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._sweep()
            try:
                yield
            except BaseException:
                self._sweep()
                raise

    def _sweep(self) -> None:
        """Take away what a git that could not end left, as where the disk was full; it would hold that disk for two weeks."""
        for path in (*self._path.glob("objects/pack/tmp_*"), *self._path.glob("fast_import_crash_*")):
            path.unlink(missing_ok=True)

    @contextmanager
    def _importing(self) -> Iterator[IO[bytes]]:
        options = ("-c", "core.compression=1", *_ANY_NAME)
        # It would look for what a file has in common with the one before, which is half its time and makes the store no smaller.
        with self._run(*options, "fast-import", "--quiet", "--date-format=raw", "--depth=0", "--force") as process:
            assert process.stdin is not None and process.stderr is not None
            with suppress(OSError):  # a user may have no more large ones; with it, neither waits for the other at every few files
                fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            with suppress(BrokenPipeError):
                yield process.stdin
                process.stdin.close()
            why = process.stderr.read()
            if process.wait() != 0:
                first = why.decode(errors="replace").strip().partition("\n")[0]  # what follows is of a report of the crash, which goes
                raise UnavailableError(f"no snapshot of {self.workdir}: git fast-import: {first}", hint="df -h; df -i")

    def _whole(self, base: str, path: str, files: Sequence[bytes]) -> bytes:
        """What has git take a folder whole: these files, and the folders that it has in the tree `base`, of which it is told more yet."""
        rows = self._git("ls-tree", "-z", "-d", base, *(("--", f"{path}/") if path else ())).split(b"\0")[:-1] if base else []
        above = os.fsencode(f"{path}/" if path else "")
        names = {row.partition(b"\t")[2] for row in files}
        had = ((head, name.removeprefix(above)) for head, _, name in (row.partition(b"\t") for row in rows) if name.startswith(above))
        entries = [*files, *(head + b"\t" + name for head, name in had if b"/" not in name and name not in names)]
        if not entries:
            return b"D %s\n" % _quoted(path)
        words = (*_ANY_NAME, "-c", "core.fsync=loose-object", "mktree", "-z", "--missing")  # the files are not in the store yet
        return b"M 040000 %s %s\n" % (self._git(*words, data=b"".join(row + b"\0" for row in entries)).strip(), _quoted(path))

    def _git(self, *words: str, data: bytes = b"") -> bytes:
        with self._run(*words) as process:
            out, why = process.communicate(data)
        if process.returncode != 0:
            raise UnavailableError(f"snapshots of {self.workdir}: git {words[0]}: {why.decode(errors='replace').strip()}")
        return out

    def _run(self, *words: str) -> "subprocess.Popen[bytes]":
        environment = {"PATH": HOST_PATH, **_ENVIRONMENT, "GIT_DIR": str(self._path)}
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(["git", *words], bufsize=1 << 20, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self._path, env=environment)
        except FileNotFoundError as error:
            raise UnavailableError(
                "a snapshot needs git, and none is in /usr/bin or another of the system's folders", hint="amem launch --no-snapshot"
            ) from error


class _Taking:
    """One snapshot while it is taken: what git is told, and what will be known."""

    def __init__(self, notes: _Notes, slow: Callable[[], None] | None) -> None:
        self.began_ns = time.time_ns()
        self.new: dict[str, Known] = {}
        self.lines: list[bytes] = []
        """What has git have a file that is another than in the tree that it starts from."""
        self.left_out: list[str] = []
        self.modes: dict[str, list[str]] = {}
        self._old = notes.folders
        self._gone: list[str] = []
        self.whole: dict[str, list[bytes]] = {}
        """Folders in which too much changed to tell it one by one, with the files that they have, in git's words."""
        self._holes = MOST_HOLES
        self._slow = slow

    def folder(self, folder: Folder, out: IO[bytes]) -> None:
        """Take a folder: read what is not known, and tell git of it."""
        self._look_at_the_clock()
        for mode in set(folder.modes) - _USUAL_MODES:
            these = (name for name, other in zip(folder.names, folder.modes, strict=True) if other == mode)
            self.modes.setdefault(octal(mode), []).extend(map(folder.below, these))
        for name, mode in folder.folders:
            if mode not in _USUAL_MODES:
                self.modes.setdefault(octal(mode), []).append(folder.below(name))
        known = self._old.get(folder.path)
        if known is None or not folder.is_as(known):
            known = self._read(folder, known.files() if known is not None else {}, out)
        if known.names:
            self.new[folder.path] = known

    def gone(self) -> list[str]:
        """What is in the tree which git starts from, and not in this one; of a folder that is told whole, what was in those below it."""
        found = self._gone
        folders = self.folders()
        for path, known in self._old.items():
            if path in self.new or path in self.whole:
                continue
            # In the place of what is below a folder that is told whole, a file may be told of already.
            if path in folders or "" in self.whole or lies_in(path, self.whole):
                found += (f"{path}/{name}" if path else name for name in known.files())
            else:
                found.append(path)
        return found

    def folders(self) -> set[str]:
        """The folders that have a file now, at whatever depth."""
        found = {""}
        for path in self.new:
            while path not in found:
                found.add(path)
                path = path.rpartition("/")[0]
        return found

    def _read(self, folder: Folder, old: dict[str, tuple[bytes, bytes]], out: IO[bytes]) -> Known:
        names, marks, blobs, lines, gone = [], [], [], [], []
        for name, mode, mark in folder:
            was, blob = old.pop(name, (b"", b""))
            if was != mark:
                path = folder.below(name)
                content = self._content(folder, name)
                if content is None:
                    self.left_out.append(path)
                    if was:
                        gone.append(path)
                    continue
                blob = scanned.blob(content)
                out.write(b"blob\ndata %d\n%s\n" % (len(content), content))
                lines.append(b"M %s %s %s\n" % (scanned.git_mode(mode).encode(), blob.hex().encode(), _quoted(path)))
                mark = scanned.settled(mark, self.began_ns)
            names.append(name)
            marks.append(mark)
            blobs.append(blob)
        gone += map(folder.below, old)
        if len(lines) + len(gone) > _WIDE:
            modes = dict(zip(folder.names, map(scanned.git_mode, folder.modes), strict=True))
            rows = zip(names, blobs, strict=True)
            self.whole[folder.path] = [f"{modes[name]} blob {blob.hex()}\t".encode() + os.fsencode(name) for name, blob in rows]
        else:
            self.lines += lines
            self._gone += gone
        return Known("\0".join(names), b"".join(marks), b"".join(blobs))

    def _content(self, folder: Folder, name: str) -> bytes | None:
        self._look_at_the_clock()
        found = scanned.content(folder.fd, name, self._holes)
        if found is None:
            return None
        self._holes -= found[1]
        return found[0]

    def _look_at_the_clock(self) -> None:
        if self._slow is not None and time.time_ns() - self.began_ns > _SLOW_NS:
            self._slow()
            self._slow = None


def lies_in(path: str, names: Container[str]) -> bool:
    """Is it one of these names, or below one?"""
    return path in names or any(above in names for above in worktree.above(path))


# git's words


def _quoted(path: str) -> bytes:
    """A path as fast-import reads any: C quotes, since a name may hold a newline."""
    raw = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + raw + b'"'


def _change(head: str, path: str, before: About, after: About) -> Change:
    was_mode, now_mode, was, now, letter = head.lstrip(":").split(" ")
    word = {"A": "added", "D": "deleted"}.get(letter, "modified")
    return Change(
        path,
        word,
        _file(was_mode, was, path, before) if letter != "A" else None,
        _file(now_mode, now, path, after) if letter != "D" else None,
    )


def _file(mode: str, blob: str, path: str, about: About) -> File:
    """What git has of a file or a folder, with the mode that it had."""
    if mode == "040000":
        return File(about.modes.get(path, "40755"), "")
    return File(about.modes.get(path, mode) if mode != "120000" else mode, blob)


def is_folder(file: File | None) -> bool:
    """Whether a snapshot has a folder there, which it does where the mode of one changed."""
    return file is not None and file.mode.startswith("40")


def octal(mode: int) -> str:
    """Kind and mode as git writes them; no bit that gives a file somebody's powers."""
    return "120000" if stat.S_ISLNK(mode) else f"{stat.S_IFMT(mode) | mode & 0o777:o}"


def _beside(change: Change) -> str:
    """A line for what git's own text does not show of a change."""
    before, after = change.before, change.after
    if after == UNKEPT:
        return f" in no snapshot: {change.path}\n"
    same = before is not None and after is not None and before.mode[:2] == after.mode[:2] and before.mode != after.mode
    return f" mode change {before.mode} => {after.mode} {change.path}\n" if same and before and after else ""

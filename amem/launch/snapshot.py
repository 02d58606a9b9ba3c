"""Snapshots of a work tree, from before and after a session: what it changed, and the way back.

Owns `state/snapshots/<tree>.git`, a repository of amem's own for each tree. git is the store and nothing more: it is never pointed at the
tree, so no hook, filter, attribute, ignore rule or configuration of the tree has a say, and the user's own repository is not touched.
Every file is read and written here beneath the tree, following no link. What stands in a `.git` is left out: it is git's, and a commit
is undone with git.
"""

import errno
import fcntl
import hashlib
import json
import os
import shlex
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, NamedTuple

from amem.errors import NotFoundError, UnavailableError
from amem.sandbox import calls
from amem.sandbox.spec import is_below
from amem.settings.root import Root

MOST_BYTES = 256 << 20
"""A larger file is not kept; the note of the launch names it."""
MOST_HOLES = 4 << 30
"""Bytes that files only claim to have: they cost a session nothing, and whoever reads them a minute for so many."""
KEPT = 30
"""Sessions of one tree whose snapshots stay."""
_RACY_NS = 1_000_000_000
"""A file changed this recently could change again without a new change time: it is read again next time."""
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
    """A file as a snapshot has it."""

    mode: str
    """100644, 100755, or 120000 for a link."""
    blob: str


class Change(NamedTuple):
    """A file that a session added, modified or deleted."""

    path: str
    change: str
    before: File | None
    after: File | None


class About(NamedTuple):
    """What a snapshot says beside its files."""

    modes: Mapping[str, int]
    """Mode bits of the files that had unusual ones: git keeps none but the execute bit."""
    left_out: tuple[str, ...]
    """Files and folders that were there, and could not be kept."""


class _Notes(NamedTuple):
    """What a store knows beside git; it can be lost."""

    files: Mapping[str, list[str]]
    """Path → mark, mode and blob, as read last: what carries the same mark need not be read again."""
    tree: str
    """git's name of the tree with these files."""
    sessions: list[str]
    """Oldest first."""


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
            new: dict[str, list[str]] = {}
            left_out: list[str] = []
            now_ns = time.time_ns()
            holes = MOST_HOLES
            modes: dict[str, list[str]] = {}
            with self._importing() as out:
                lines: list[bytes] = []
                base = self._base(notes)
                for path, about, folder in _files(self.workdir, left_out):
                    if slow is not None and time.time_ns() - now_ns > _SLOW_NS:
                        slow()
                        slow = None
                    mark = _mark(about)
                    known = last = notes.files.get(path)
                    if known is None or known[0] != mark:
                        hole = max(0, about.st_size - about.st_blocks * 512)
                        content = _content(folder, os.path.basename(path), about) if hole <= holes else None
                        if content is None:
                            left_out.append(path)
                            continue
                        holes -= hole
                        out.write(b"blob\ndata %d\n%s\n" % (len(content), content))
                        known = [mark, _mode(about), _blob(content)]
                    new[path] = known if about.st_ctime_ns < now_ns - _RACY_NS else ["", *known[1:]]
                    if (bits := stat.S_IMODE(about.st_mode)) not in (0o644, 0o755, 0o777):
                        modes.setdefault(f"{bits:o}", []).append(path)
                    if not base or last is None or last[1:] != known[1:]:
                        lines.append(b"M %s %s %s\n" % (known[1].encode(), known[2].encode(), _quoted(path)))
                message = json.dumps({"modes": modes, "left_out": left_out}).encode()
                head = f"commit refs/sessions/{session}/{when}\ncommitter amem <amem@localhost> {now_ns // 10**9} +0000\n"
                out.write(head.encode() + b"data %d\n%s\ndeleteall\n" % (len(message), message))
                if base:
                    out.write(b'M 040000 %s ""\n' % base.encode())
                    out.writelines(b"D %s\n" % _quoted(path) for path in notes.files if path not in new)
                out.writelines(lines)
            sessions = self._prune([*(each for each in notes.sessions if each != session), session])
            new_notes = self._path / "amem-notes.new"
            tree = self._git("rev-parse", f"refs/sessions/{session}/{when}^{{tree}}").decode().strip()
            new_notes.write_text(json.dumps({"files": new, "tree": tree, "sessions": sessions}))
            new_notes.replace(self._path / "amem-notes.json")
        return tuple(left_out)

    def digest(self) -> str:
        """Name the tree as it is now, by every file that a snapshot of it would keep; nothing is kept. What is known is not read again."""
        notes = self._notes()
        whole = hashlib.sha256()
        for path, about, folder in _files(self.workdir, []):
            known = notes.files.get(path)
            if known is None or known[0] != _mark(about):
                content = _content(folder, os.path.basename(path), about)
                known = ["", _mode(about), _blob(content) if content is not None else f"{about.st_size} bytes"]
            whole.update(f"{known[1]} {known[2]} ".encode() + os.fsencode(path) + b"\0")
        return f"sha256:{whole.hexdigest()}"

    def has(self, session: str, when: str) -> bool:
        """Say whether this snapshot was taken."""
        return (self._path / "HEAD").exists() and bool(self._git("for-each-ref", f"refs/sessions/{session}/{when}"))

    def changes(self, session: str, paths: tuple[str, ...] = ()) -> tuple[Change, ...]:
        """What the session changed, by path. Raises NotFoundError without both snapshots."""
        raw = self._git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", *self._both(session), "--", *paths)
        parts = raw.decode(errors="surrogateescape").split("\0")
        return tuple(_change(head, path) for head, path in zip(parts[:-1:2], parts[1::2], strict=True))

    def text(self, session: str, paths: tuple[str, ...] = (), *, stat: bool = False) -> str:
        """The same as a person reads it: a patch, or a line a file."""
        shape = ("--stat",) if stat else ("-p", "--no-ext-diff", "--no-textconv")
        return self._git("diff-tree", "-r", *shape, *self._both(session), "--", *paths).decode(errors="replace")

    def content(self, file: File) -> bytes:
        """The bytes of a file, or where a link points."""
        return self._git("cat-file", "blob", file.blob)

    def about(self, session: str) -> "About":
        """What git does not keep of the tree as it was before the session."""
        message = json.loads(self._git("cat-file", "commit", f"refs/sessions/{session}/before").partition(b"\n\n")[2])
        modes = {path: int(bits, 8) for bits, paths in message["modes"].items() for path in paths}
        return About(modes, tuple(message["left_out"]))

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
        with suppress(OSError, ValueError, KeyError, TypeError):
            found = json.loads((self._path / "amem-notes.json").read_bytes())
            return _Notes(dict(found["files"]), str(found["tree"]), list(found["sessions"]))
        return _Notes({}, "", [])

    def _base(self, notes: "_Notes") -> str:
        """The tree that the next snapshot starts from, so that only what changed is told to git; empty where there is none."""
        if not notes.tree:
            return ""
        try:
            return self._git("rev-parse", "--verify", "--quiet", f"{notes.tree}^{{tree}}").decode().strip()
        except UnavailableError:
            return ""

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One snapshot of a tree at a time; makes the repository."""
        if not (self._path / "HEAD").exists():
            for folder in (self._path.parent, self._path):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._git("init", "-q", "--bare", "--template=", "--object-format=sha256", str(self._path))
        with open(self._path / "amem-lock", "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _importing(self) -> Iterator[IO[bytes]]:
        options = ("-c", "core.compression=1", "-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")
        with self._run(*options, "fast-import", "--quiet", "--date-format=raw", "--force") as process:
            assert process.stdin is not None and process.stderr is not None
            with suppress(BrokenPipeError):
                yield process.stdin
                process.stdin.close()
            why = process.stderr.read()
            if process.wait() != 0:
                raise UnavailableError(f"no snapshot of {self.workdir}: git fast-import: {why.decode(errors='replace').strip()}")

    def _git(self, *words: str) -> bytes:
        with self._run(*words) as process:
            out, why = process.communicate()
        if process.returncode != 0:
            raise UnavailableError(f"snapshots of {self.workdir}: git {words[0]}: {why.decode(errors='replace').strip()}")
        return out

    def _run(self, *words: str) -> "subprocess.Popen[bytes]":
        environment = {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT, "GIT_DIR": str(self._path)}
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(["git", *words], bufsize=1 << 20, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self._path, env=environment)
        except FileNotFoundError as error:
            raise UnavailableError("a snapshot needs git, which is not on PATH", hint="amem launch --no-snapshot") from error


def undo(store: Store, session: str, changes: tuple[Change, ...], *, force: bool) -> tuple[list[str], dict[str, str]]:
    """Take changes back: the paths that are as before the session now, and why others were kept.

    A file that changed again since the session is kept, but for `force`.
    """
    reverted: list[str] = []
    kept: dict[str, str] = {}
    about = store.about(session)
    tree = _open(store.workdir)
    try:
        # What was added goes first: it may stand where a folder or a file was.
        for change in sorted(changes, key=lambda change: (change.before is not None, change.path)):
            try:
                now = _now(tree, change.path)
                if now == change.before:
                    reverted.append(change.path)
                elif any(is_below(change.path, each) for each in about.left_out):
                    kept[change.path] = "it was there before, and not in the snapshot"
                elif now != change.after and not force:
                    kept[change.path] = "changed since the session"
                else:
                    usual = 0o755 if change.before is not None and change.before.mode == "100755" else 0o644
                    _put(tree, change.path, change.before, about.modes.get(change.path, usual), store)
                    reverted.append(change.path)
            except OSError as error:
                kept[change.path] = (error.strerror or str(error)).lower()
    finally:
        os.close(tree)
    return reverted, kept


def repositories(workdir: str, paths: Iterable[str]) -> list[str]:
    """The `.git` of each repository in the tree, but not its own, that these paths are or were in: a snapshot leaves those out."""
    folders = {path[:at] for path in paths for at, character in enumerate(path) if character == "/"}
    return sorted(f"{folder}/.git" for folder in folders if os.path.lexists(f"{workdir}/{folder}/.git"))


# The tree, read and written beneath itself


def _open(workdir: str) -> int:
    """The tree's folder. Raises UnavailableError.

    Its name was noted with the links resolved. Another session that may write a folder above it could have put one there since, and be
    read or written by it, so none is followed now.
    """
    try:
        return calls.open_beneath(calls.AT_FDCWD, workdir, os.O_RDONLY | os.O_DIRECTORY, calls.RESOLVE_NO_SYMLINKS)
    except OSError as error:
        why = "a symbolic link stands in its way now" if error.errno == errno.ELOOP else error.strerror
        raise UnavailableError(f"{workdir}: {why}", hint=f"ls -ld {shlex.quote(workdir)}") from error


def _files(workdir: str, left_out: list[str]) -> Iterator[tuple[str, os.stat_result, int]]:
    """Each file and link: its name below the tree, its facts, and the folder it is in, open."""
    tree = _open(workdir)
    try:
        folders = [""]
        while folders:
            above = folders.pop()
            try:
                folder = calls.open_beneath(tree, above, os.O_RDONLY | os.O_DIRECTORY) if above else os.dup(tree)
            except OSError:
                left_out.append(above)
                continue
            try:
                with os.scandir(folder) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
                for entry in entries:
                    path = f"{above}/{entry.name}" if above else entry.name
                    if entry.name.lower() == ".git":
                        continue
                    about = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(about.st_mode):
                        folders.append(path)
                    elif stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode):
                        yield path, about, folder
            finally:
                os.close(folder)
    finally:
        os.close(tree)


def _content(folder: int, name: str, about: os.stat_result) -> bytes | None:
    try:
        if stat.S_ISLNK(about.st_mode):
            return os.fsencode(os.readlink(name, dir_fd=folder))
        if about.st_size > MOST_BYTES:
            return None
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            return _whole(fd, about.st_size) if stat.S_ISREG(os.fstat(fd).st_mode) else None
        finally:
            os.close(fd)
    except OSError:
        return None


def _whole(fd: int, expected: int) -> bytes | None:
    """All of a file; None when it has grown past what is kept. A buffer for the largest there may be would cost more than the reading."""
    data = os.read(fd, expected + 1)
    if len(data) == expected:
        return data
    whole = bytearray(data)
    while len(whole) <= MOST_BYTES and (data := os.read(fd, 1 << 20)):
        whole += data
    return bytes(whole) if len(whole) <= MOST_BYTES else None


def _now(tree: int, path: str) -> File | None:
    """What stands there now; None for nothing. Raises OSError for what is no file."""
    above, name = os.path.split(path)
    try:
        folder = calls.open_beneath(tree, above, os.O_RDONLY | os.O_DIRECTORY) if above else os.dup(tree)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(about.st_mode):
            return None
        content = _content(folder, name, about)
        if content is None:
            raise OSError(0, "not a file that can be read")
        return File(_mode(about), _blob(content))
    except FileNotFoundError:
        return None
    finally:
        os.close(folder)


def _put(tree: int, path: str, file: File | None, bits: int, store: Store) -> None:
    """Have this file there, whole, or none; folders that are empty then go."""
    parts = path.split("/")
    chain = [os.dup(tree)]
    try:
        for part in parts[:-1]:
            if file is not None:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=chain[-1])
                    _give(chain[-1], part)
            chain.append(os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=chain[-1]))
        if file is not None:
            _write(chain[-1], parts[-1], store.content(file), None if file.mode == "120000" else bits)
            return
        os.unlink(parts[-1], dir_fd=chain[-1])
        with suppress(OSError):  # not empty: the rest was there before, or came since
            for part, folder in zip(reversed(parts[:-1]), reversed(chain[:-1]), strict=True):
                os.rmdir(part, dir_fd=folder)
    finally:
        for folder in chain:
            os.close(folder)


def _write(folder: int, name: str, content: bytes, bits: int | None) -> None:
    """A file with these mode bits, or without any a link."""
    temporary = f".{name[:80]}.amem-{os.getpid()}"
    try:
        if bits is None:
            os.symlink(content, os.fsencode(temporary), dir_fd=folder)
        else:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            with os.fdopen(fd, "wb") as out:
                out.write(content)
                os.fchmod(fd, bits & 0o777)
        _give(folder, temporary)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _give(folder: int, name: str) -> None:
    """Run by root, what is made belongs to whom the folder belongs."""
    if os.geteuid() == 0:
        about = os.fstat(folder)
        os.chown(name, about.st_uid, about.st_gid, dir_fd=folder, follow_symlinks=False)


def _mark(about: os.stat_result) -> str:
    """What another content would change."""
    return f"{about.st_ino}:{about.st_size}:{about.st_mode:o}:{about.st_ctime_ns}"


# git's words


def _mode(about: os.stat_result) -> str:
    if stat.S_ISLNK(about.st_mode):
        return "120000"
    return "100755" if about.st_mode & stat.S_IXUSR else "100644"


def _blob(content: bytes) -> str:
    return hashlib.sha256(b"blob %d\0" % len(content) + content).hexdigest()


def _quoted(path: str) -> bytes:
    """A path as fast-import reads any: C quotes, since a name may hold a newline."""
    raw = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + raw + b'"'


def _change(head: str, path: str) -> Change:
    before_mode, after_mode, before, after, letter = head.lstrip(":").split(" ")
    word = {"A": "added", "D": "deleted"}.get(letter, "modified")
    return Change(path, word, File(before_mode, before) if letter != "A" else None, File(after_mode, after) if letter != "D" else None)

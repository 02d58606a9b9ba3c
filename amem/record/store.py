"""The record on disk: `record/<domain>/<yyyy>/<mm>/<id>.md`, one whole file an entry.

Owns every write below `record/`. A file appears under its name only when all of it is on the disk: temporary file, fsync,
link or rename, fsync of the folder. A new entry never takes the place of a file that is there; a new version takes
the place of exactly the version it was made from. Names that begin with a dot are not entries. It follows no link.
"""

import errno
import fcntl
import hashlib
import os
import re
import stat as stats
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from amem.errors import ConflictError, NotFoundError
from amem.model.entry import Entry
from amem.model.ids import domain_of, is_id
from amem.record import markdown
from amem.record.markdown import Malformed
from amem.settings.root import Root

MAX_FILE_BYTES = 16 << 20
"""A larger file is no entry; it is reported, not read."""
_TEMPORARY = re.compile(r"\.mem-[a-z0-9-]+\.md\.\d+\.[0-9a-f]{12}")
_NOT_OURS = {errno.ELOOP: "a link, not a file", errno.EACCES: "may not be read", errno.ENXIO: "not a regular file"}
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file that was read: the entry, the stat of the descriptor it came from, and `sha256:…` of its bytes."""

    entry: Entry
    path: Path
    stat: os.stat_result
    digest: str


class Store:
    """The entries of a root."""

    def __init__(self, root: Root) -> None:
        self.folder = root.record
        self._prefix = f"{root.record}/"

    def put(self, entry: Entry) -> Path:
        """Write a new entry and return its path.

        Raises ConflictError when a file of that name is there, Malformed when the entry cannot be written, OSError.
        """
        path = self.expected(entry)
        data = markdown.format(entry)
        self._folders(path.parent)
        try:
            write_new(path, data)
        except FileExistsError:
            raise ConflictError(f"{entry.id} is already in the record", id=entry.id) from None
        return path

    def replace(self, entry: Entry, path: Path | None = None) -> Path:
        """Write the next version of an entry in place of the one before, and return its path.

        Raises ConflictError when the version on disk is not `entry.version - 1`, NotFoundError, Malformed, OSError.
        """
        data = markdown.format(entry)
        with self._lock():
            place = path or self.path(entry.id)
            current = self.load(place).entry
            if current.id != entry.id or current.version != entry.version - 1:
                why = f"{entry.id} is at version {current.version}, not {entry.version - 1}"
                raise ConflictError(why, id=entry.id, version=current.version)
            os.replace(_written(place, data), place)
            _sync_folder(place.parent)
        return place

    def take(self, entry_id: str, to: Path) -> None:
        """Move an entry's file out of the record, byte for byte, while nobody writes a version of it. Raises NotFoundError, OSError."""
        with self._lock():
            place = self.path(entry_id)
            os.rename(place, to)
            _sync_folder(to.parent)
            _sync_folder(place.parent)

    def give(self, kept: Path, relative: str) -> Path:
        """Put a file that was taken back in its place, and return the path. Raises ConflictError when something stands there, OSError."""
        place = self.folder / relative
        with self._lock():
            if os.path.lexists(place):
                raise ConflictError(f"{relative} is taken: what was contained cannot go back there")
            self._folders(place.parent)
            os.rename(kept, place)
            _sync_folder(place.parent)
        return place

    def read(self, entry_id: str) -> Entry:
        """Read one entry. Raises NotFoundError, Malformed, OSError."""
        return self.load(self.path(entry_id)).entry

    def load(self, path: Path) -> Loaded:
        """Read the entry in a file, with the stat and digest of exactly these bytes. Raises NotFoundError, Malformed, OSError."""
        try:
            return self._loaded(path)
        except Malformed as error:  # most who read many handle it by its why; to a person the file is named
            import shlex

            error.message, error.hint = f"{path}: {error.why}", f"ls -l {shlex.quote(str(path))}"
            raise

    def _loaded(self, path: Path) -> Loaded:
        try:
            # non-blocking, or a named pipe in the record would hold the reader for ever
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(f"{path.stem} is not in the record") from None
        except OSError as error:
            if error.errno in _NOT_OURS:
                raise Malformed(_NOT_OURS[error.errno]) from error
            raise
        try:
            found = os.fstat(descriptor)
            if not stats.S_ISREG(found.st_mode):
                raise Malformed("not a regular file")
            if found.st_size > MAX_FILE_BYTES:
                raise Malformed(f"larger than {MAX_FILE_BYTES} bytes")
            data = _all(descriptor, found.st_size)
        finally:
            os.close(descriptor)
        return Loaded(markdown.parse(data), path, found, digest(data))

    def path(self, entry_id: str) -> Path:
        """Where an entry's file is: its own folder first, then anywhere below its domain. Raises NotFoundError."""
        if not is_id("entry", entry_id):
            raise NotFoundError(f"{entry_id[:80]!r} is not in the record")
        name = f"{entry_id}.md"
        domain = self.folder / domain_of(entry_id)
        for year in _folders_in(domain):
            for month in _folders_in(year.path):
                if os.path.lexists(found := os.path.join(month.path, name)):
                    return Path(found)
        for found_path, _ in self._walk(str(domain)):
            if found_path.name == name:
                return found_path
        raise NotFoundError(f"{entry_id} is not in the record", id=entry_id)

    def expected(self, entry: Entry) -> Path:
        """Where the entry belongs, whether or not it is there."""
        return self.folder / self.belongs(entry)

    def belongs(self, entry: Entry) -> str:
        """Where the entry belongs, below `record/`. Raises Malformed."""
        # An id, domain or date of another form would leave the folder; the model's forms cannot.
        if not is_id("entry", entry.id) or entry.domain != domain_of(entry.id):
            raise Malformed(f"{entry.id[:80]!r} is no entry id of {entry.domain[:80]!r}")
        year, month = entry.written_at[:4], entry.written_at[5:7]
        if not (year.isascii() and year.isdigit() and month.isascii() and month.isdigit() and len(month) == 2):
            raise Malformed(f"written_at: {entry.written_at[:80]!r} is no instant")
        return f"{entry.domain}/{year}/{month}/{entry.id}.md"

    def relative(self, path: Path) -> str:
        """A path as the index keeps it: below `record/`."""
        text = str(path)
        return text[len(self._prefix) :] if text.startswith(self._prefix) else os.path.relpath(path, self.folder)

    def walk(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Every `*.md` below the record with its own stat (links are not followed), folders in name order."""
        return self._walk(str(self.folder))

    def folders(self) -> Iterator[tuple[str, int]]:
        """Every folder below the record, itself first, with its modification time in ns."""
        waiting = [str(self.folder)]
        while waiting:
            path = waiting.pop()
            try:
                yield path, os.stat(path, follow_symlinks=False).st_mtime_ns
            except FileNotFoundError:
                continue
            waiting += [item.path for item in reversed(_folders_in(path))]

    def sweep(self) -> None:
        """Remove what killed writers left beside entries, once it is an hour old."""
        for folder, _ in self.folders():
            with os.scandir(folder) as items:
                for item in items:
                    if _TEMPORARY.fullmatch(item.name) and time.time() - item.stat(follow_symlinks=False).st_mtime > 3600:
                        os.unlink(item.path)

    def _walk(self, top: str) -> Iterator[tuple[Path, os.stat_result]]:
        waiting = [top]
        while waiting:
            try:
                items = sorted(os.scandir(waiting.pop()), key=lambda item: item.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            waiting += [item.path for item in reversed(items) if item.is_dir(follow_symlinks=False) and not item.name.startswith(".")]
            for item in items:
                if is_entry_name(item.name) and not item.is_dir(follow_symlinks=False):
                    try:
                        yield Path(item.path), item.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue

    def _folders(self, folder: Path) -> None:
        """Make the folders of a path, each on the disk before what goes into it."""
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for made in reversed(missing):
            made.mkdir(mode=0o700, exist_ok=True)
            _sync_folder(made.parent)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the record's lock: it guards reading a version and putting the next in its place."""
        descriptor = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def is_entry_name(name: str) -> bool:
    """Say whether a file of this name should hold an entry."""
    return name.endswith(".md") and not name.startswith(".")


def digest(data: bytes) -> str:
    """`sha256:…` of a file's bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def write_new(path: Path, data: bytes) -> None:
    """Put bytes under a new name, whole or not at all, 0600. Raises FileExistsError, OSError."""
    temporary = _written(path, data)
    try:
        os.link(temporary, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links: the name is reserved first, so that it is still never taken twice.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    _sync_folder(path.parent)


def _written(path: Path, data: bytes) -> str:
    """Write bytes beside `path` under a name no reader looks at, and wait until they are on the disk."""
    temporary = str(path.parent / f".{path.name}.{os.getpid()}.{os.urandom(6).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    except BaseException:
        os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    return temporary


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _folders_in(path: str | os.PathLike[str]) -> list["os.DirEntry[str]"]:
    """The folders in a folder, newest name first; nothing where it is not there."""
    try:
        with os.scandir(path) as items:
            found = [item for item in items if item.is_dir(follow_symlinks=False) and not item.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=lambda item: item.name, reverse=True)


def _all(descriptor: int, size: int) -> bytes:
    """Read to the end, whatever the size said."""
    data = os.read(descriptor, size + 1)
    if len(data) == size:  # one more was asked for and is not there
        return data
    while chunk := os.read(descriptor, 1 << 20):
        data += chunk
        if len(data) > MAX_FILE_BYTES:
            raise Malformed(f"larger than {MAX_FILE_BYTES} bytes")
    return data

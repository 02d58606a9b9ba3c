"""Where in a root a text can stand beside the entry itself, and how it is taken out of each place.

Every file below the root is looked at in every spelling that `spellings` knows, so a place that nobody thought of is found too. It says
what it took before it takes it. Entries, held writes in the record's own form, amem's databases and the ledger are the caller's. Sessions
write in their homes while this runs, so no path is followed twice: a folder is opened once, its files by name in it, no link followed.
"""

import fcntl
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from amem.egress import contexts
from amem.egress.encodings import DecodeError, decoder
from amem.errors import IntegrityError
from amem.logs import writer
from amem.logs.schema import LogMasked
from amem.memory import passages
from amem.memory.passages import Passages, streamed, walked
from amem.memory.spellings import Unread, readings
from amem.record.sealed import Sealer
from amem.sandbox.surroundings import HOST_PATH
from amem.typed import Any, NamedTuple

_LARGEST_BYTES = 1 << 30
"""A file beyond this is not read: it is named as left."""
_RULES = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"(record/([^/]+/)?)?\.git/.*", "repository"),
        (r"(grants|prices)\.toml|credentials\.env|policy/.*", "owner"),
        (r"record/[^./][^/]*(/[^./][^/]*)*/[^./][^/]*\.md|state/quarantine/contained/[^/]+/mem-[^/]+\.md", "entry"),
        (r"state/(index|ledger|usage)\.sqlite(-wal|-shm)?", "database"),
        (r"state/(erasing|inside)/.*", "skip"),
        (r"state/[a-z]+\.jsonl", "log"),
        (r"(record/[^/]+/\.contexts/[^/]+|state/quarantine/contained/[^/]+/context-\d+)/.*", "context"),
        (r"state/snapshots/[^/]+\.git/.*", "snapshot"),
        (r".*\.jsonl", "lines"),
        (r".*\.json", "document"),
    )
)


INDEX = tuple(f"state/index.sqlite{part}" for part in ("", "-wal", "-shm"))


class Trace(NamedTuple):
    """A place that carries what is looked for."""

    path: str
    """Below the root."""
    how: str
    """`deleted`, `masked`, or `left`: it is the owner's own file, or cannot be read."""


class Search(NamedTuple):
    """What was looked at."""

    files: int
    bytes: int
    left: tuple[str, ...]

    def then(self, other: "Search") -> "Search":
        """Both as one."""
        return Search(self.files + other.files, self.bytes + other.bytes, (*self.left, *other.left))


Note = Callable[[Trace], None]
"""Called before each place is changed."""


def clean(root: Path, wanted: Passages, note: Note, masked: Callable[[int, int], LogMasked]) -> None:
    """Take what is looked for out of every place but entries and databases. `masked` makes the line that ends a log. Raises OSError."""
    _names(root, wanted, note)  # first: what is noted from then on is a path that says nothing
    for path, folder, name in _files(root):
        rule = _rule(path)
        if rule in ("entry", "database", "skip", "context", "snapshot", "repository"):
            continue
        data = _read(folder, name)
        has = data is not None and carries(data, wanted)
        if data is None or has is None:
            note(Trace(path, "left"))
        elif has:
            _take(root, path, folder, name, rule, data, wanted, note, masked)
    for calls in sorted([*root.glob("record/*/.contexts/*/"), *root.glob("state/quarantine/contained/*/context-*/")]):
        if not calls.is_symlink():
            _context(root, calls, wanted, note)
    for repository in sorted(root.glob("state/snapshots/*.git/")):
        has = _snapshot(repository, wanted)
        if has is not False:
            note(Trace(str(repository.relative_to(root)), "deleted" if has else "left"))
        if has:
            shutil.rmtree(repository)
    for repository in _repositories(root):
        if _snapshot(repository, wanted) is not False:
            note(Trace(str(repository.relative_to(root)), "left"))  # to write its history anew is for whoever shares it


def search(root: Path, wanted: Passages, there: Callable[[str], bool] = bool) -> Search:
    """Look at every byte of the root, or of what is `there`, and say where what is looked for still stands."""
    files, size, left = 0, 0, []
    for path, folder, name in _files(root):
        if not there(path):
            continue
        data = _read(folder, name)
        if wanted.found(path):
            left.append(_shown(path, wanted))
        files, size = files + 1, size + len(data or b"")
        if data is None or (_rule(path) not in ("skip", "repository") and carries(data, wanted) is not False):
            left.append(path)
    left += [path for one in _repositories(root) if there(path := str(one.relative_to(root))) and _snapshot(one, wanted) is not False]
    return Search(files, size, tuple(left))


def carries(data: bytes, wanted: Passages) -> bool | None:
    """Say whether bytes carry what is looked for, in whatever spelling; None where that is too much to look at."""
    try:
        for n, text in enumerate(readings(data)):
            says = wanted.found if n == 0 and "data:" in text else wanted.said  # what a model streams it may spell as well
            if wanted.said(text) or ("{" in text and streamed(text, says)):
                return True
        return False
    except Unread:
        return None


def _take(
    root: Path, path: str, folder: int, name: str, rule: str, data: bytes, wanted: Passages, note: Note,
    masked: Callable[[int, int], LogMasked],
) -> None:  # fmt: skip
    new: bytes | None = None
    if rule == "owner":
        note(Trace(path, "left"))
        return
    if rule == "log":
        try:
            writer.mask(root / "state", name, lambda keys: _starred(keys, wanted), masked)
        except IntegrityError:
            note(Trace(path, "left"))
        else:
            note(Trace(path, "masked"))
        return
    if rule == "lines":
        new = b"".join(_line(line, wanted) + b"\n" for line in data.splitlines())
    elif rule == "document":
        new = _line(data, wanted)
    if new is None or carries(new, wanted) is not False:
        note(Trace(path, "deleted"))
        os.unlink(name, dir_fd=folder)
        return
    note(Trace(path, "masked"))
    temporary = f".{name[:100]}.{os.urandom(6).hex()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    with open(descriptor, "wb") as file:
        file.write(new)
        file.flush()
        os.fsync(descriptor)
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _line(line: bytes, wanted: Passages) -> bytes:
    """A JSON document with each text that carries something masked; nothing of one that is no JSON."""
    if carries(line, wanted) is False:
        return line
    try:
        return json.dumps(walked(json.loads(line), wanted), ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return b""


def _starred(value: Any, wanted: Passages) -> Any:
    match value:
        case str():
            return writer.erased(value) if wanted.found(value) else value
        case list():
            return [_starred(item, wanted) for item in value]
        case dict():
            return {key: _starred(item, wanted) for key, item in value.items()}
        case _:
            return value


def _context(root: Path, folder: Path, wanted: Passages, note: Note) -> None:
    """Take out each call that carries something: its bodies, and all of its line but when it was."""
    kept, dropped, blobs, sealer = [], [], set[str](), Sealer(root / "state")
    for call in (calls := contexts.read(folder)):
        names = [name for key in ("request", "response") if isinstance(name := call.get(key), str)]
        if wanted.found(json.dumps(call)) or any(_body_carries(folder, name, call, wanted, sealer) for name in names):
            dropped += names
            kept.append({key: call[key] for key in ("n", "call", "at", "label") if key in call} | {"erased": True})
        else:
            blobs.update(names)
            kept.append(call)
    strays = [path for path in _below(folder) if path.name != "calls.jsonl" and path.stem not in {*blobs, *dropped}]
    gone = [path for name in set(dropped) if (path := folder / "blobs" / f"{name}.zst").exists() and name not in blobs]
    gone += [path for path in strays if (data := _bytes(path)) is None or carries(data, wanted) is not False]
    for path in gone:
        note(Trace(str(path.relative_to(root)), "deleted"))
        path.unlink(missing_ok=True)
    if dropped:
        note(Trace(str((folder / "calls.jsonl").relative_to(root)), "masked"))
        temporary = folder / f".calls.{os.urandom(6).hex()}"
        with open(os.open(folder / "calls.jsonl", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)) as there:
            fcntl.flock(there, fcntl.LOCK_EX)  # whoever appends waits, and then appends to what took its place
            kept += contexts.read(folder)[len(calls) :]  # calls of this moment: the next round looks at them
            lines = "".join(json.dumps(call, ensure_ascii=False, separators=(",", ":")) + "\n" for call in kept)
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "w") as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, folder / "calls.jsonl")


def _body_carries(folder: Path, name: str, call: dict[str, Any], wanted: Passages, sealer: Sealer) -> bool:
    try:
        body = contexts.body(folder, name)
    except (OSError, ValueError):
        return False  # gone, or no name: a file that is there and is no body is a stray
    except IntegrityError:
        return True
    with suppress(IntegrityError):  # there is no key any more
        body, _ = sealer.opened(body)
    if carries(body, wanted) is not False:  # what cannot be read cannot be cleared
        return True
    found = decoder(str(call.get("content_encoding") or ""))
    if found is None:
        return False
    try:
        return carries(b"".join(found.feed(body)), wanted) is not False
    except DecodeError:
        return False


def _repositories(root: Path) -> list[Path]:
    """Repositories in which the owner keeps the root, the record, or a domain of it."""
    return sorted(path for pattern in (".git", "record/.git", "record/*/.git") for path in root.glob(f"{pattern}/"))


def _snapshot(repository: Path, wanted: Passages) -> bool | None:
    """Say whether a repository, of snapshots or the owner's, holds a file that carries something; None where one is too much to look at."""
    command = ["git", "--git-dir", str(repository), "cat-file", "--batch-all-objects", "--batch"]
    environment = {"PATH": HOST_PATH, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as git:
        assert git.stdout is not None
        found: bool | None = False
        while header := git.stdout.readline():
            size = int(header.split()[-1])
            data = git.stdout.read(size + 1)
            has = False if found else carries(data, wanted)
            found = found or (has if has is not False else found)
    return found


def _files(root: Path) -> Iterator[tuple[str, int, str]]:
    """Every regular file below the root: its path below it, its open folder, its name. No link is followed."""
    for folder, _, names, descriptor in os.fwalk(root, follow_symlinks=False):
        below = os.path.relpath(folder, root)
        for name in sorted(names):
            try:
                regular = stat.S_ISREG(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
            except FileNotFoundError:
                continue
            if regular:
                yield name if below == "." else f"{below}/{name}", descriptor, name


def _read(folder: int, name: str) -> bytes | None:
    """The bytes of a file; None when there are too many, or it cannot be read."""
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
            return None if os.fstat(file.fileno()).st_size > _LARGEST_BYTES else file.read()
    except FileNotFoundError:
        return b""
    except OSError:
        return None


def _bytes(path: Path) -> bytes | None:
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _read(folder, path.name)
    finally:
        os.close(folder)


def _names(root: Path, wanted: Passages, note: Note) -> None:
    """Take away files and links whose name, or where they lead, carries something; folders of such a name get another."""
    for folder, below, names, descriptor in os.fwalk(root, topdown=False, follow_symlinks=False):
        place = os.path.relpath(folder, root)
        for name in (*names, *below):
            link = _link(descriptor, name)
            if not wanted.found(name) and not (link and wanted.found(link)):
                continue
            shown = _shown(os.path.normpath(os.path.join(place, name)), wanted)
            if name in below and link is None:
                note(Trace(shown, "masked"))
                os.rename(name, f"erased-{os.urandom(6).hex()}", src_dir_fd=descriptor, dst_dir_fd=descriptor)
            else:
                note(Trace(shown, "deleted"))
                os.unlink(name, dir_fd=descriptor)


def _shown(path: str, wanted: Passages) -> str:
    """A path without the parts of it that carry something."""
    return "/".join(passages.masked(part, wanted) for part in path.split("/"))


def _link(folder: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def _below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _rule(path: str) -> str:
    return next((rule for pattern, rule in _RULES if pattern.fullmatch(path)), "other")

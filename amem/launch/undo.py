"""The way back from what a session did to a work tree: the changes between its two snapshots, taken back one by one.

Every file is written beneath the tree, following no link: another session may be at work in it. What changed again since is somebody
else's by now, and kept unless the owner says otherwise.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from amem.launch import scanned
from amem.launch.snapshot import UNKEPT, Change, File, Store, is_folder, lies_in, octal
from amem.sandbox import calls, worktree

CHANGED_SINCE = "changed since the session"
SHARED = "it is as before, but the same file has another name (a hard link), in the tree or outside, which is as the session left it"
_TICK_NS = 20_000_000
"""File systems take their times from a clock that moves in steps."""
_USUAL_FOLDERS = (0o700, 0o755, 0o775)


def take_back(store: Store, session: str, changes: tuple[Change, ...], *, force: bool) -> tuple[list[str], dict[str, str]]:
    """Take changes back: the paths that are as before the session now, and why others were kept.

    A file that changed again since the session is kept, but for `force`.
    """
    reverted: list[str] = []
    kept: dict[str, str] = {}
    about, ended_ns = store.about(session), store.about(session, "after").at_ns
    left_out = frozenset(about.left_out)
    tree = scanned.top(store.workdir)
    try:
        with store.contents() as content:
            for change in sorted(changes, key=_turn):
                try:
                    now = _now(tree, change, ended_ns)
                    if now == change.before:
                        reverted.append(change.path)
                    elif lies_in(change.path, left_out):
                        kept[change.path] = "it was there before, and not in the snapshot"
                    elif now not in (change.after, UNKEPT, *((None,) if change.after == UNKEPT else ())) and not force:
                        kept[change.path] = CHANGED_SINCE
                    else:
                        shared = change.before is not None and _is_shared(tree, change.path)
                        _put(tree, change.path, change.before, about.modes, content)
                        reverted.append(change.path)
                        if shared:
                            kept[change.path] = SHARED
                except OSError as error:
                    kept[change.path] = (error.strerror or str(error)).lower()
        if opened := [change.path for change in changes if is_folder(change.before) and change.after == UNKEPT]:
            kept |= dict.fromkeys(_strange(tree, opened, store.files(session)), "it is in no snapshot: the session closed its folder")
    finally:
        os.close(tree)
    return reverted, kept


def remainder(store: Store, session: str, reverted: Iterable[str], undo_ns: int) -> str | None:
    """A name in the tree that may still carry something of a session whose changes were all taken back; None when there is none.

    No snapshot keeps empty folders, a `.git`, pipes, times, attributes. What was touched since the session began tells itself by its change
    time, and is the session's but for what the undo wrote, which began at `undo_ns`.
    """
    began_ns, undo_ns = store.about(session).at_ns, undo_ns - _TICK_NS
    written = frozenset(reverted)
    for above, _, files in worktree.walk(store.workdir):
        for path in (above, *(os.path.join(above, name) for name in files)):  # each folder is `above` in its turn
            name = os.path.relpath(path, store.workdir)
            try:
                about = os.lstat(path)
                is_folder = stat.S_ISDIR(about.st_mode)
                plain = stat.S_IMODE(about.st_mode) in _USUAL_FOLDERS and not os.listxattr(path) if is_folder else name in written
            except OSError:
                return name
            if about.st_ctime_ns >= began_ns and not (plain and about.st_ctime_ns >= undo_ns):
                return name
    return None


def repositories(workdir: str, paths: Iterable[str]) -> list[str]:
    """The `.git` of each repository in the tree, but not its own, that these paths are or were in: a snapshot leaves those out."""
    folders = {path[:at] for path in paths for at, character in enumerate(path) if character == "/"}
    return sorted(f"{folder}/.git" for folder in folders if os.path.lexists(f"{workdir}/{folder}/.git"))


# The tree, read and written beneath itself


def _turn(change: Change) -> tuple[int, str]:
    """When to take it back: what was added goes first, it may stand where a folder or a file was; a folder may bar its files' way."""
    if is_folder(change.before):
        assert change.before is not None
        return (0 if change.before.mode[-3] == "7" else 3), change.path
    return (1 if change.before is None else 2), change.path


def _now(tree: int, change: Change, ended_ns: int) -> File | None:
    """What stands there now; None for nothing, and for a folder where a file was. What no snapshot keeps, and was not touched since the
    session ended, is UNKEPT."""
    above, name = os.path.split(change.path)
    try:
        folder = calls.open_beneath(tree, above, os.O_PATH | os.O_DIRECTORY) if above else os.dup(tree)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        untouched = about.st_ctime_ns < ended_ns
        if stat.S_ISDIR(about.st_mode):
            now = File(octal(about.st_mode), "")
            if now != change.before and change.after == UNKEPT and untouched:
                return UNKEPT
            return now if is_folder(change.before) or change.after == UNKEPT else None
        found = scanned.content(folder, name)
        now = File(octal(about.st_mode), scanned.blob(found[0]).hex() if found is not None else "")
        return UNKEPT if untouched and now != change.before and (found is None or change.after == UNKEPT) else now
    except FileNotFoundError:
        return None
    finally:
        os.close(folder)


def _is_shared(tree: int, path: str) -> bool:
    """Has the file that stands there another name?"""
    try:
        fd = calls.open_beneath(tree, path, os.O_PATH | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        about = os.fstat(fd)
    finally:
        os.close(fd)
    return stat.S_ISREG(about.st_mode) and about.st_nlink > 1


def _put(tree: int, path: str, file: File | None, modes: Mapping[str, str], content: Callable[[File], bytes]) -> None:
    """Have this file there, whole, or none; folders that are empty then go. A folder that is made has the mode that it had."""
    parts = path.split("/")
    chain = [os.dup(tree)]
    try:
        for at, part in enumerate(parts[:-1]):
            chain.append(_folder(chain[-1], part, modes.get("/".join(parts[: at + 1]), "755") if file is not None else None))
        if file is not None and is_folder(file):
            chain.append(_cleared(chain[-1], parts[-1], file.mode))
            here = f"/proc/self/fd/{chain[-1]}"  # a session may have closed it, to its owner too
            os.chmod(here, int(file.mode[-3:], 8))
            os.utime(here)  # the session's time would say what it had read, and `remainder` takes it for the undo's
            return
        if file is not None:
            with suppress(FileNotFoundError, NotADirectoryError):
                _clear(chain[-1], parts[-1])
            _write(chain[-1], parts[-1], content(file), None if file.mode == "120000" else int(file.mode[-3:], 8))
            return
        os.unlink(parts[-1], dir_fd=chain[-1])
        with suppress(OSError):  # not empty: the rest was there before, or came since
            for part, folder in zip(reversed(parts[:-1]), reversed(chain[:-1]), strict=True):
                os.rmdir(part, dir_fd=folder)
    finally:
        for folder in chain:
            os.close(folder)


def _folder(above: int, name: str, made: str | None) -> int:
    """A folder, open as a place; with a mode, one is made where there is none.

    Only what was opened is changed: where its name stands, another session may have put a link to a folder of the owner's by then.
    """
    how = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, how, dir_fd=above)
    except FileNotFoundError:
        if made is None:
            raise
    os.mkdir(name, 0o700, dir_fd=above)
    fd = os.open(name, how, dir_fd=above)
    try:
        _give(above, f"/proc/self/fd/{fd}")
        os.chmod(f"/proc/self/fd/{fd}", int(made[-3:], 8) | 0o700)
    except OSError:
        os.close(fd)
        raise
    return fd


def _cleared(above: int, name: str, mode: str) -> int:
    """A folder, open as a place, where a session put something else."""
    try:
        return _folder(above, name, mode)
    except NotADirectoryError:
        os.unlink(name, dir_fd=above)
        return _folder(above, name, mode)


def _strange(tree: int, folders: list[str], known: frozenset[str]) -> Iterator[str]:
    """What is in these folders that no snapshot knows."""
    for folder in folders:
        try:
            fd = calls.open_beneath(tree, folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            yield from (path for name in sorted(os.listdir(fd)) if name != ".git" and (path := f"{folder}/{name}") not in known)
        finally:
            os.close(fd)


def _clear(folder: int, name: str) -> None:
    """Take away a folder that holds nothing but folders: no snapshot has them, and a file is to stand there."""
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        for below in os.listdir(fd):
            _clear(fd, below)
    except RecursionError as error:
        raise OSError(errno.ENAMETOOLONG, "a folder with too many folders in it stands there") from error
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=folder)


def _write(folder: int, name: str, content: bytes, bits: int | None) -> None:
    """A file with these mode bits, or without any a link."""
    temporary = f".amem-{os.urandom(8).hex()}"
    try:
        if bits is None:
            os.symlink(content, os.fsencode(temporary), dir_fd=folder)
            _give(folder, temporary, folder)
        else:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            with os.fdopen(fd, "wb") as out:
                out.write(content)
                _give(folder, f"/proc/self/fd/{fd}")
                os.fchmod(fd, bits & 0o777)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _give(folder: int, path: str, beneath: int | None = None) -> None:
    """Run by root, what is made belongs to whom the folder belongs. `beneath`: where the name of a link stands."""
    if os.geteuid() == 0:
        about = os.fstat(folder)
        os.chown(path, about.st_uid, about.st_gid, dir_fd=beneath, follow_symlinks=beneath is None)

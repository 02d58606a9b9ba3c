"""Mounts of a sandbox, made with the new mount API: attributes first, attached after.

A tree is copied detached, made read-only and private, and only then attached: it is never visible writable, and no mountinfo is parsed.
Everything that comes from the host is taken before the new root hides it; from then on no host name is looked up.
Runs in PID 1 with the current directory at the new root; "./" + an inside path is that path.
"""

import errno
import os
import stat

from amem.sandbox import calls

HELD = calls.ATTR_RDONLY | calls.ATTR_NOSUID | calls.ATTR_NODEV
_MOST_MIRRORED = 256
"""Names in a folder that is mirrored: each is a mount."""
_MOST_TERMINALS = 256
"""Of the 3072 or so that all sessions and containers of a machine have together (kernel.pty.max without kernel.pty.reserve)."""


def make_private() -> None:
    """Cut this namespace's mounts off from the host's: nothing mounted there later shows here, nor the other way round."""
    calls.mount(None, "/", None, calls.MS_REC | calls.MS_PRIVATE)


def take(source: str, attributes: int, userns: int = -1, *, real: bool) -> int:
    """A detached copy of the tree at a host path, with mount attributes. Raises OSError.

    `real`: the path was checked with its links resolved. Another session may write a folder above it and put a link to anything there
    in the moment since, so none is followed now (ELOOP).
    """
    if real:
        here = calls.open_beneath(calls.AT_FDCWD, source, os.O_PATH, calls.RESOLVE_NO_SYMLINKS)
        fd = calls.open_tree_fd(here, source)
        os.close(here)
    else:
        fd = calls.open_tree(source)
    try:
        calls.set_attributes(fd, attributes, source, userns)
    except OSError:
        os.close(fd)
        raise
    return fd


def terminals() -> None:
    """Have the terminals this process was started with through a read-only mount and as open files of its own.

    On the owner's, whatever is inside could give the device to other users (fchmod) and leave the shell that starts amem with
    reads that do not wait (O_NONBLOCK). A terminal that belongs to another user (after `su`) stays as it is: nobody inside may change it.
    """
    own: dict[int, int] = {}
    for fd in (0, 1, 2):
        if not os.isatty(fd):
            continue
        about = os.fstat(fd)
        try:
            if about.st_rdev not in own:
                own[about.st_rdev] = _opened_read_only(os.ttyname(fd))
            if os.path.samestat(about, os.fstat(own[about.st_rdev])):
                os.dup2(own[about.st_rdev], fd)
        except OSError:
            continue
    for fd in own.values():
        os.close(fd)


def _opened_read_only(device: str) -> int:
    """A device, open both ways: what a read-only mount holds back is a change of its owner or mode. Raises OSError."""
    tree = calls.open_tree(device, recursive=False)
    try:
        calls.set_attributes(tree, calls.ATTR_RDONLY | calls.ATTR_NOSUID | calls.ATTR_NOEXEC, device)
        return os.open(f"/proc/self/fd/{tree}", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    finally:
        os.close(tree)


def new_root(scratch: str) -> None:
    """A tmpfs over `scratch`, private to this namespace, becomes the root to be; go there."""
    calls.mount("amem", scratch, "tmpfs", calls.MS_NOSUID | calls.MS_NODEV, "mode=755,size=8m,nr_inodes=4096")
    os.chdir(scratch)


def directory(path: str, mode: int = 0o755) -> None:
    """Make a directory of the new root, and those above it."""
    try:
        os.mkdir("." + path, mode)
    except FileNotFoundError:
        directory(os.path.dirname(path))
        os.mkdir("." + path, mode)
    except FileExistsError:
        pass


def file(path: str, content: bytes, mode: int = 0o644) -> None:
    """Make a file of the new root; it must not exist."""
    fd = os.open("." + path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    if content:
        os.write(fd, content)
    os.close(fd)


def tmpfs(path: str, size_bytes: int, mode: int) -> None:
    """A bounded tmpfs."""
    directory(path)
    calls.mount(
        "tmpfs",
        "." + path,
        "tmpfs",
        calls.MS_NOSUID | calls.MS_NODEV,
        f"mode={mode:o},size={size_bytes},nr_inodes={max(1024, size_bytes >> 12)}",
    )


def put(fd: int, path: str) -> None:
    """Attach a taken tree at a path of the new root, making the mount point. Only where no tree from the host lies above."""
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        directory(path)
    else:
        _empty_file(path)
    calls.move_mount(fd, "." + path)
    os.close(fd)


def put_beneath(fd: int, path: str, make: bool) -> None:
    """Attach a taken tree inside another tree that came from the host, whose names nobody here controls.

    No link is followed: an absolute one would be looked up on the host. Without `make` the mount point must exist, so that no ghost
    file is left in the work tree. Raises OSError (ELOOP for a link).
    """
    try:
        target = calls.open_beneath(calls.AT_FDCWD, path.lstrip("/"), os.O_PATH)
    except FileNotFoundError:
        if not make:
            raise
        target = _make_beneath(path.lstrip("/"), stat.S_ISDIR(os.fstat(fd).st_mode))
    try:
        calls.move_mount_fd(fd, target, path)
    finally:
        os.close(target)
        os.close(fd)


def _make_beneath(path: str, is_directory: bool) -> int:
    above, _, name = path.rpartition("/")
    try:
        folder = calls.open_beneath(calls.AT_FDCWD, above or ".", os.O_PATH | os.O_DIRECTORY)
    except FileNotFoundError:
        folder = _make_beneath(above, True)
    try:
        return _mount_point(folder, name, is_directory)
    finally:
        os.close(folder)


def _mount_point(folder: int, name: str, is_directory: bool) -> int:
    if is_directory:
        os.mkdir(name, 0o755, dir_fd=folder)
    else:
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder))
    return calls.open_beneath(folder, name, os.O_PATH)


def hold(tree: str, name: str, attributes: int) -> str | None:
    """Bind a name below a tree of the new root on itself with more attributes; a mount point can be neither moved nor removed.

    Returns None when done or the name does not exist, and "link" where a symlink stands in the way.
    """
    folder = os.open("." + tree, os.O_PATH | os.O_CLOEXEC)  # a mount of ours: no link above it
    try:
        target = calls.open_beneath(folder, name, os.O_PATH) if name else os.dup(folder)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        if error.errno == errno.ELOOP:
            return "link"
        raise
    finally:
        os.close(folder)
    copy = calls.open_tree_fd(target, name)
    calls.set_attributes(copy, attributes, name)
    calls.move_mount_fd(copy, target, name)
    os.close(copy)
    os.close(target)
    return None


def mirror(tree: str, name: str, file: str, content: bytes) -> bool:
    """Put in place of a folder below a tree of the new root a read-only one that has a file more: all that is in it, held as `hold` does.

    The folder itself, on the host, is as it was. False, and nothing done, where no such folder can be read, where it has that file, and
    for a folder with more in it than anybody keeps in one of settings.
    """
    above = os.open("." + tree, os.O_PATH | os.O_CLOEXEC)
    try:
        source = calls.open_beneath(above, name, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        os.close(above)
        return False
    entries = os.listdir(source)
    lacking = file not in entries and len(entries) <= _MOST_MIRRORED
    if lacking:
        calls.mount("tmpfs", f"/proc/self/fd/{source}", "tmpfs", calls.MS_NOSUID | calls.MS_NODEV, "mode=755,size=64k,nr_inodes=1024")
        made = calls.open_beneath(above, name, os.O_RDONLY | os.O_DIRECTORY)
        for entry in entries:
            _repeat(source, made, entry)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=made), "wb") as out:
            out.write(content)
        calls.set_attributes(made, HELD, name)
        os.close(made)
    os.close(source)
    os.close(above)
    return lacking


def _repeat(source: int, made: int, name: str) -> None:
    """Show a name of one folder read-only in another; a link is made anew, since it cannot be bound."""
    try:
        about = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISLNK(about.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=made)
            return
        found = calls.open_beneath(source, name, os.O_PATH)
    except FileNotFoundError:  # an editor on the host, at this moment
        return
    target = _mount_point(made, name, stat.S_ISDIR(os.fstat(found).st_mode))
    copy = calls.open_tree_fd(found, name)
    calls.set_attributes(copy, HELD, name)
    calls.move_mount_fd(copy, target, name)
    for fd in (copy, target, found):
        os.close(fd)


def cover(null: int, path: str) -> None:
    """Hide a path of the new root behind /dev/null (a file) or an empty read-only tmpfs (a folder). Absent: nothing to hide."""
    try:
        target = calls.open_beneath(calls.AT_FDCWD, path.lstrip("/"), os.O_PATH)
    except FileNotFoundError:
        return
    here = f"/proc/self/fd/{target}"
    if stat.S_ISDIR(os.fstat(target).st_mode):
        calls.mount(
            "tmpfs", here, "tmpfs", calls.MS_NOSUID | calls.MS_NODEV | calls.MS_NOEXEC | calls.MS_RDONLY, "mode=555,size=4k,nr_inodes=1"
        )
    else:
        copy = calls.open_tree_fd(null, path)
        calls.move_mount_fd(copy, target, path)
        os.close(copy)
    os.close(target)


def proc() -> None:
    """This pid namespace's /proc. EPERM means that the host's own /proc is partly masked (an outer container)."""
    directory("/proc", 0o555)
    calls.mount("proc", "./proc", "proc", calls.MS_NOSUID | calls.MS_NODEV | calls.MS_NOEXEC)


def pts() -> None:
    """Pseudo-terminals of our own."""
    directory("/dev/pts")
    options = f"newinstance,ptmxmode=0666,mode=620,max={_MOST_TERMINALS}"
    calls.mount("devpts", "./dev/pts", "devpts", calls.MS_NOSUID | calls.MS_NOEXEC, options)


def queues() -> None:
    """The message queues of this ipc namespace, where the kernel has any. Landlock has one made only beneath a path of its rules."""
    directory("/dev/mqueue")
    try:
        calls.mount("mqueue", "./dev/mqueue", "mqueue", calls.MS_NOSUID | calls.MS_NODEV | calls.MS_NOEXEC)
    except OSError as error:
        if error.errno != errno.ENODEV:
            raise


def enter_root() -> None:
    """Make the new root the root; the host's is gone."""
    calls.pivot_root(".", ".")
    calls.unmount(".", calls.MNT_DETACH)
    os.chdir("/")


def read_only(path: str) -> None:
    """Make a tmpfs of ours read-only (after the pivot)."""
    calls.mount(
        None, path, None, calls.MS_REMOUNT | calls.MS_BIND | calls.MS_RDONLY | calls.MS_NOSUID | (0 if path == "/dev" else calls.MS_NODEV)
    )


def _empty_file(path: str) -> None:
    try:
        file(path, b"")
    except FileNotFoundError:
        directory(os.path.dirname(path))
        file(path, b"")
    except FileExistsError:
        pass

"""What a session may do to its work tree's own configuration, and what it did.

Owns the folders of a work tree where the host's programs look for instructions. Runs no program of the tree, follows no link in it.
"""

import os
import stat
from collections.abc import Iterator

from amem.sandbox import spec, worktree
from amem.sandbox.spec import Tree
from amem.typed import NamedTuple


class Place(NamedTuple):
    """A work tree, and where in it a session starts."""

    workdir: str
    cwd: str

    def folders(self) -> tuple[str, ...]:
        """Names below the work tree, from its top (the empty name) down to where the session starts: programs look in each of them."""
        if self.cwd == self.workdir:
            return ("",)
        parts = os.path.relpath(self.cwd, self.workdir).split("/")
        return ("", *("/".join(parts[:count]) for count in range(1, len(parts) + 1)))


def place(asked: str) -> Place:
    """The work tree for a directory: the repository it lies in, or itself where there is none of the same owner.

    Git and the harnesses work on a repository, from any folder of it. One that belongs to somebody else (a `.git` that another user put
    into /tmp) is none, as with git's own `safe.directory`.
    """
    top = worktree.top(asked)
    if top is None or top == asked or not _is_repository(top):
        return Place(asked, asked)
    owners = {os.lstat(path).st_uid for path in (asked, top, os.path.join(top, ".git"))}
    return Place(top, asked) if len(owners) == 1 else Place(asked, asked)


def _is_repository(top: str) -> bool:
    git = os.path.join(top, ".git")
    return not os.path.islink(git) and (os.path.isfile(git) or os.path.isfile(os.path.join(git, "HEAD")))


def holds_git(path: str) -> bool:
    """Say whether a folder is a git directory or has one at its top: what is in it, the host's git runs and obeys."""
    return any(os.path.lexists(os.path.join(path, name)) for name in (".git", "hooks", "objects"))


def protected(place: Place, *, git_config: bool, config: bool) -> tuple[str, ...]:
    """The names below the work tree that are read-only inside. `git_config`, `config`: the owner lets a session write these."""
    git = [name for name in spec.GIT_NAMES if not (git_config and name.startswith(".git/config"))]
    folders = () if config else place.folders()
    return (*git, *(_join(folder, name) for folder in folders for name in spec.CONFIG_NAMES))


def added(place: Place, demands: tuple[tuple[str, str, str], ...]) -> tuple[tuple[str, str, str], ...]:
    """What a harness demands of a folder, for each that a program which starts there would find."""
    return tuple((_join(folder, name), file, text) for folder in place.folders() for name, file, text in demands)


def existing(place: Place, names: tuple[str, ...]) -> Iterator[str]:
    """The paths with one of these names where a program that starts there would find them."""
    for folder in place.folders():
        for name in names:
            path = os.path.join(place.workdir, _join(folder, name))
            if os.path.lexists(path):
                yield path


def stands(paths: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """The folder that each path leads to now, by device and inode; zeros where there is none."""
    found = {}
    for path in paths:
        try:
            about = os.lstat(path)
            found[path] = (about.st_dev, about.st_ino) if stat.S_ISDIR(about.st_mode) else (0, 0)
        except OSError:
            found[path] = (0, 0)
    return found


def held(workdir: str, tree: Tree, names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """The files and folders that a session finds read-only, and how they are."""
    paths = [os.path.join(workdir, name) for name in (*names, *tree.names)]
    paths += [os.path.join(tree.common, name) for name in tree.common_names] if tree.common is not None else []
    return {path: found for path in paths if (found := stamp(path))}


def stamp(path: str) -> tuple[int, ...]:
    """Device, inode and change time of what stands there; nothing where nothing does."""
    try:
        about = os.lstat(path)
    except OSError:
        return ()
    return about.st_dev, about.st_ino, about.st_ctime_ns


def marks(place: Place, tree: Tree, names: tuple[str, ...] = ()) -> dict[str, str]:
    """What the host's programs may run or obey, as it is now, by its name below the work tree (`worktree.marks`).

    `names`: what is protected inside where it exists.
    """
    found = worktree.marks(place.workdir, tree, names)
    for folder in place.folders()[1:]:
        found |= {_join(folder, name): mark for name, mark in worktree.marks(os.path.join(place.workdir, folder), Tree()).items()}
    return found


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name

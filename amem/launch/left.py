"""What a session wrote, anywhere in the trees it could write, that programs of the host run or obey by themselves.

At the top of a work tree these names are looked at before and after (`worktree.marks`). Below it nobody looks beforehand, so that a launch
costs the same in any tree; what was written since then tells itself, as a change time cannot be set back. Read as hostile input: no link is
followed out of a tree, no program runs, and where there is more to see than is looked at, that is said.
"""

import errno
import itertools
import os
import time
from collections import deque
from collections.abc import Iterator

from amem.sandbox import calls, worktree
from amem.sandbox.spec import is_below
from amem.sandbox.worktree import Change
from amem.typed import NamedTuple

WRITTEN = "written"
"""How a name changed where nobody looked before: it appeared, or it changed."""

_MOST = 1_000_000
_FOLDER, _ABOUT, _WAY = 40, 4, 40
"""How much is looked at of a tree, in names; and what it costs to list a folder, to look at a file's times, to find where a link leads:
25,000 folders are a second."""
_MOST_FOUND = 1_000
_MOST_HOPS = 40
_NAMED = 8
"""Names in the sentence for a person; `--json` has all."""
_SLACK_NS = 20_000_000
"""File systems take their times from a clock that moves in steps."""

_NAMES = frozenset(name for name in worktree.WATCHED if "/" not in name)
_EVERY: frozenset[str] = frozenset({"*"})
"""In place of names, below a folder with one of them."""
_REPOSITORIES: frozenset[str] = frozenset()
_MODULES: frozenset[str] = frozenset(("",))
"""In place of names, below a folder where git keeps repositories of submodules."""
_WORKTREES: frozenset[str] = frozenset(("", "modules"))
"""The same, where it keeps what is linked work trees' own: their submodules' repositories."""
_KEEPERS = {".git": worktree.GIT_OBEYS, ".hg": ("hgrc",), ".jj": ("repo/config.toml",)}
"""What keeps versions, and what it obeys."""
_ASKED_FOR = {names: names | {*_KEEPERS, "HEAD"} for names in (_NAMES, _REPOSITORIES)}
"""What a file must be called to be looked at, where not every one is: next to none of a large tree is."""
_INSTALLED = frozenset({"node_modules", "site-packages"})
"""Packages bring settings of their own, which nobody's editor opens: only repositories are looked for among them."""


class Moment(NamedTuple):
    """When a session began."""

    wall_ns: int
    up_ns: int

    def since_ns(self) -> int:
        """The change time from which on something was written since, though the clock may have been set back meanwhile."""
        passed_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self.up_ns
        return min(self.wall_ns, time.time_ns() - passed_ns) - _SLACK_NS


def report(
    workdir: str, trees: tuple[str, ...], changed: tuple[Change, ...], began: Moment, *, old: frozenset[str] = frozenset()
) -> tuple[tuple[Change, ...], list[str]]:
    """All that a session left for the host to obey, and what to tell the person of it. `changed`: what is known of the work tree already.
    `old`: the git directories below it that were there when the session began, and are in `changed` if they are others now.

    Names are below the work tree, those of other trees whole.
    """
    since_ns = began.since_ns()
    every: list[Change] = []
    told: list[str] = []
    for tree in filter(os.path.isdir, trees):
        if any(other != tree and is_below(tree, other) for other in trees):
            continue
        found, whole = find(tree, since_ns, old if tree == workdir else frozenset())
        if tree == workdir:
            known = {name.rstrip("/") for change in changed for name in (change.name, *worktree.above(change.name))}
            every += (*changed, *(Change(name, WRITTEN) for name in found if name not in known))
            names = every
        else:
            names = [Change(f"{tree}/{name}", WRITTEN) for name in found]
            every += names
        told += _sentences(tree, names, whole)
    return tuple(every), told


def _sentences(tree: str, changes: list[Change], whole: bool) -> Iterator[str]:
    if changes:
        named = ", ".join(f"{change.name} {change.how}" for change in changes[:_NAMED])
        more = f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
        yield (
            f"{tree}: {named}{more}: programs outside the sandbox obey these; read them with cat or less before git, an editor or a shell "
            "comes there"
        )
    if not whole:
        yield (
            f"{tree}: not all of it was looked through for what programs outside the sandbox obey: it is too much or too deep, or was "
            "closed to you"
        )


def find(tree: str, since_ns: int, old: frozenset[str] = frozenset()) -> tuple[list[str], bool]:
    """The names in a tree that something on the host obeys and that were written since, those near the top first; and whether that is all.

    A repository is one name: its `.git`, or its folder when it is bare. One of `old` was not made since: a HEAD that was written there is
    another branch.
    """
    look = _Look(tree, since_ns)
    found: dict[str, None] = {}
    followed: set[str] = set()
    folders = deque([("", _NAMES)])
    while folders and look.left > 0 and len(found) < _MOST_FOUND:
        folder, names = folders.popleft()
        for name, at, is_folder in look.listed(folder, _ASKED_FOR.get(names)):
            if name in _KEEPERS:
                if look.keeper(at, _KEEPERS[name], made=at not in old):
                    found[at] = None
                if is_folder:
                    folders += ((f"{at}/modules", _MODULES), (f"{at}/worktrees", _WORKTREES))
            elif names is _WORKTREES:
                folders.append((f"{at}/modules", _MODULES))
            elif names is _EVERY or name in names:
                if look.written(at):
                    found[at] = None
                elif is_folder:
                    folders.append((at, _EVERY))
                elif names is not _EVERY and (leads_to := look.folder_of_link(at)) not in ("", *followed):
                    followed.add(leads_to)
                    folders.append((leads_to, _EVERY))
            elif names is _MODULES and name in worktree.MODULE_DATA and look.has_head(folder):
                continue
            elif is_folder:
                folders.append((at, _REPOSITORIES if name in _INSTALLED and names is not _MODULES else names))
            elif name == "HEAD" and look.bare(folder, made=folder not in old):
                found[folder or "."] = None
    return list(found), look.whole and not folders and look.left > 0


class _Look:
    """Looks into one tree."""

    def __init__(self, tree: str, since_ns: int) -> None:
        self._tree = os.path.realpath(tree)
        self._since_ns = since_ns
        self.left = _MOST
        self.whole = True

    def listed(self, folder: str, files: frozenset[str] | None) -> Iterator[tuple[str, str, bool]]:
        """What is in a folder: name, name below the tree, and whether it is a folder itself; of the rest only `files`, if not all."""
        self.left -= _FOLDER
        try:
            fd = os.open(self._path(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:  # somebody on the host, at this moment
            return
        except OSError:  # closed, too deep or a link; one that was so before the session is no news
            self.whole = self.whole and not self._fresh(self._path(folder), unknown=True)
            return
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if self.left <= 0:
                        break
                    self.left -= 1
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if is_folder or files is None or entry.name in files:
                        yield entry.name, f"{folder}/{entry.name}" if folder else entry.name, is_folder
        finally:
            os.close(fd)

    def written(self, name: str) -> bool:
        """Whether something was written (a folder: its list of names) or put there since, or what a link leads to within the tree."""
        return self._fresh_or_leads(self._path(name))

    def _fresh_or_leads(self, path: str) -> bool:
        return self._fresh(path) or (os.path.islink(path) and (real := self._real(path)) is not None and self._fresh(real))

    def folder_of_link(self, name: str) -> str:
        """The folder of the tree that a link leads to; empty for anything else, and for the whole tree."""
        path = self._path(name)
        real = self._real(path) if os.path.islink(path) else None
        return os.path.relpath(real, self._tree) if real not in (None, self._tree) and os.path.isdir(real) else ""

    def has_head(self, folder: str) -> bool:
        """Whether a folder may be a repository."""
        return os.path.lexists(self._path(f"{folder}/HEAD"))

    def bare(self, folder: str, *, made: bool) -> bool:
        """Whether git takes a folder with a HEAD for a repository, and what makes it one (if that may be new) or what it obeys was written
        since."""
        self.left -= _WAY
        parts = [self._path(f"{folder}/{name}") for name in ("HEAD", "objects", "refs")]
        is_one = all(map(os.path.lexists, parts)) or os.path.lexists(self._path(f"{folder}/commondir"))
        return is_one and ((made and any(map(self._fresh, parts))) or self._obeys(self._path(folder), worktree.GIT_OBEYS))

    def keeper(self, name: str, obeyed: tuple[str, ...], *, made: bool) -> bool:
        """Whether a repository, or the one that a file or link in its place leads to, was made since, where it can have been, or obeys what
        was written since."""
        path = self._path(name)
        if os.path.isdir(path) and not os.path.islink(path):
            return (made and self._fresh(f"{path}/HEAD")) or self._obeys(path, obeyed)
        self.left -= _WAY
        real = self._real(worktree.named_gitdir(path) or path)
        return self._fresh(path) or (real is not None and self._obeys(real, obeyed))

    def _obeys(self, folder: str, obeyed: tuple[str, ...]) -> bool:
        for name in itertools.chain.from_iterable(worktree.below(folder, own) for own in obeyed):
            if self.left <= 0:
                break
            if name.endswith("/"):  # more than is looked at, or closed
                self.left -= worktree.MOST_WATCHED
                self.whole = False
            if self._fresh_or_leads(os.path.join(folder, name)):
                return True
        return False

    def _fresh(self, path: str, *, unknown: bool = False) -> bool:
        self.left -= _ABOUT
        try:
            return os.lstat(path).st_ctime_ns >= self._since_ns
        except OSError:
            return unknown

    def _real(self, path: str) -> str | None:
        """What a path leads to, with its links resolved; None where that is nothing, or not in the tree.

        No name outside the tree is looked up but in the folders that it lies in: a session may have it lead to a file server that does not
        answer, or that looking mounts.
        """
        for _ in range(_MOST_HOPS):
            self.left -= _WAY + len(path) // _WAY
            name = self._below(path)
            if name is None:
                return None
            try:
                return self._opened(name)
            except OSError as error:
                further = self._after(name) if error.errno == errno.EXDEV else None
            if further is None:
                return None
            path = further
        return None

    def _after(self, name: str) -> str | None:
        """A name with the first link in it that leads out of the tree in place of itself; None where there is none."""
        parts = name.split("/")
        for at in range(1, len(parts) + 1):
            self.left -= _ABOUT
            link = "/".join(parts[:at])
            try:
                leads_to = os.readlink(self._path(link))
            except OSError:  # no link
                continue
            try:
                self._opened(link)
            except OSError as error:
                out = error.errno == errno.EXDEV
                return os.path.join(os.path.dirname(self._path(link)), leads_to, *parts[at:]) if out else None
        return None

    def _below(self, path: str) -> str | None:
        """The part of a whole path that is below the tree, once its beginning was found to lead there."""
        here, hops, parts = "", 0, deque(path.split("/"))
        while here != self._tree:
            if not parts or hops == _MOST_HOPS:
                return None
            part = parts.popleft()
            if part in ("", "."):
                continue
            further = os.path.dirname(here).rstrip("/") if part == ".." else f"{here}/{part}"
            if part == ".." or is_below(self._tree, further):
                here = further
                continue
            try:
                leads_to = os.readlink(further)
            except OSError:
                return None
            hops += 1
            here = "" if leads_to.startswith("/") else here
            parts.extendleft(reversed(leads_to.split("/")))
        return "/".join(parts) or "."

    def _opened(self, name: str) -> str | None:
        real = calls.real_beneath(self._tree, name, calls.RESOLVE_BENEATH | calls.RESOLVE_NO_MAGICLINKS)
        return real if is_below(real, self._tree) else None

    def _path(self, name: str) -> str:
        return f"{self._tree}/{name}"

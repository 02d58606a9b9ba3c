"""The work tree as git and the editors see it, read by hand and believed only where its files point back at each other.

An agent can write `.git` files for the next launch to read, so a mount target is never taken from one unchecked, a file is read only when
it is a small regular one, and no program is ever run in the tree. What the plan cannot protect, because it does not exist yet or a tool
must be able to write it, is looked at before and after a session instead: `marks` and `changed`.
"""

import itertools
import os
import stat

from amem.errors import SandboxError
from amem.sandbox.spec import CONFIG_NAMES, Tree, is_below
from amem.typed import Iterator, NamedTuple

_MOST_FOLDERS = 4096
"""Folders in which other git directories may lie that are looked into; a launch is refused where there are more: what is not seen is not
protected."""
_MOST_LINKS = 256
_PROGRAMS = frozenset(
    "askpass clean cmd command driver editor external fsmonitor helper pager process program smudge sshcommand textconv update".split()  # noqa: SIM905
) | {"alternaterefscommand", "defaultkeycommand", "difffilter", "gitproxy", "receivepack", "uploadpack"}
"""Keys of a configuration by which git runs a command, some of them at each `git status`."""

WATCHED = (
    *CONFIG_NAMES,
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/info/attributes",
    ".git/rebase-merge",
    ".git/rebase-apply",
    ".git/sequencer",
    ".gitmodules",
    ".gitattributes",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    "mise.toml",
    ".mise.toml",
    ".tool-versions",
    ".env",
    ".autoenv",
    ".autoenv.zsh",
    ".lvimrc",
    ".gdbinit",
    ".lldbinit",
    ".bazelrc",
    ".cargo",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".npmrc",
    ".pnpmfile.cjs",
    ".yarnrc",
    ".yarnrc.yml",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    "QWEN.md",
)
"""Names by which something on the host may run or obey what a session left."""
GIT_OBEYS = ("hooks", "config", "config.worktree", "commondir", "info/attributes")
"""What git obeys in a git directory."""
MOST_WATCHED = 4096
"""Files and folders of one name that are looked at."""
_MOST_PATH = 4096
"""Bytes of a path, with the NUL: what the kernel takes."""


def look(workdir: str) -> Tree:
    """What the tree is to git, and which of its names need care.

    Raises SandboxError("worktree", …) where `.git` or its `modules` is a symbolic link, since what it leads to could be swapped during the
    session, where there are too many modules to protect them all, and where a `commondir` file would void what is protected.
    """
    path = os.path.join(workdir, ".git")
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        if not _is_bare(workdir):
            return Tree()
        _check_whole(workdir)
        return Tree("bare", pins=_BARE, names=("hooks", "config", "info/attributes", *_within(workdir, "")))
    if stat.S_ISLNK(kind):
        raise _linked(path, "make it a real folder or a .git file")
    if stat.S_ISDIR(kind):
        _check_whole(path)
        return Tree("plain", names=(*_within(path, ".git"), *_obeyed(path, workdir)))
    return _from_file(workdir, path)


def top(path: str) -> str | None:
    """The root of the work tree `path` lies in, by the nearest `.git` at or above it; None where there is none. Nothing is run."""
    here = os.path.realpath(path)
    device = os.stat(here).st_dev
    while True:
        if os.path.lexists(os.path.join(here, ".git")):
            return here
        above = os.path.dirname(here)
        if above == here or os.stat(above).st_dev != device:
            return None
        here = above


class Change(NamedTuple):
    """A watched name that is not as it was."""

    name: str
    how: str
    """appeared, changed or gone."""


def marks(workdir: str, tree: Tree, names: tuple[str, ...] = ()) -> dict[str, str]:
    """The watched names, those that are protected where they exist, and those of a git directory outside, by inode and change time.

    Nothing is read; a change time cannot be set back, so no change goes unseen. Bounded: what `below` has of a name.
    """
    places = [(workdir, "", tuple(dict.fromkeys((*WATCHED, *names, *tree.names))))]
    if tree.common:
        places.append((tree.common, tree.common + "/", tuple(dict.fromkeys((*GIT_OBEYS, *tree.common_names)))))
    found = {}
    for folder, shown, names in places:
        for name in names:
            for each in below(folder, name):
                try:
                    about = os.lstat(os.path.join(folder, each))
                except FileNotFoundError:  # an editor on the host, at this moment
                    continue
                except OSError as error:  # a session closed the folder above it, or made it too deep
                    found[shown + each] = error.strerror or str(error)
                    continue
                found[shown + each] = f"{about.st_mode:o}:{about.st_ino}:{about.st_size}:{about.st_ctime_ns}"
    return found


def changed(before: dict[str, str], after: dict[str, str]) -> tuple[Change, ...]:
    """The names that differ, sorted; a folder that was not looked into, then or now, for all that is in it."""
    words = {
        name: "gone" if name not in after else "appeared" if name not in before else "changed"
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }
    if folders := {name for name in words if name.endswith("/")}:
        words = {name: word for name, word in words.items() if name in folders or not any(f"{one}/" in folders for one in above(name))}
        words |= dict.fromkeys(folders, "changed")
    return tuple(Change(name, words[name]) for name in sorted(words))


# git's files


def _from_file(workdir: str, path: str) -> Tree:
    found = gitdir_of(path)
    if found is None:
        return Tree("file", warning=f"{path} is not a file git would write; git is not set up inside")
    root = os.path.realpath(workdir)
    if is_below(found, root):
        name = os.path.relpath(found, root)
        _check_whole(found)
        return Tree("file", pins=(name,), names=(f"{name}/hooks", f"{name}/config", *_within(found, name), *_obeyed(found, root)))
    common = _common_of_linked(found, path)
    if common is not None:
        _check_whole(common)
        own = ("hooks", "config", "info/attributes", *_within(common, ""))
        return Tree("linked", names=_obeyed(common, root), common=common, common_names=own)
    if _is_submodule(found, root):
        _check_whole(found)
        own = ("hooks", "config", "info/attributes", *_within(found, ""))
        return Tree("submodule", names=_obeyed(found, root), common=found, common_names=own)
    return Tree("file", warning=f"{path} names {found}, which does not point back; it is not shown inside, so git does not work there")


def borrowed(workdir: str, tree: Tree) -> tuple[str, ...]:
    """The real paths of the folders that the tree's repository takes objects from besides its own (gitrepository-layout, `alternates`).

    Only folders of objects. The file is the tree's own to write: these are names for a person to read, and never a mount target.
    """
    objects = os.path.join(tree.common or (workdir if tree.kind == "bare" else os.path.join(workdir, ".git")), "objects")
    lines = (_read(os.path.join(objects, "info/alternates")) or "").splitlines()
    named = (os.path.realpath(os.path.join(objects, line)) for line in lines if line and line[0] not in '#"' and "\0" not in line)
    return tuple(dict.fromkeys(path for path in named if os.path.isdir(os.path.join(path, "pack"))))


def gitdir_of(path: str) -> str | None:
    """The real path that a `.git` file names; None where it is not a file that git would write."""
    target = named_gitdir(path)
    return None if target is None else os.path.realpath(target)


def named_gitdir(path: str) -> str | None:
    """The same as it stands there, from the file's folder on: nothing of it was looked up."""
    line = (_read(path) or "").removesuffix("\n")
    target = line.removeprefix("gitdir: ")
    if target in ("", line) or "\n" in line or "\0" in line or len(os.fsencode(target)) >= _MOST_PATH:
        return None
    return os.path.join(os.path.dirname(path), target)


def _common_of_linked(gitdir: str, path: str) -> str | None:
    """The common directory of a linked work tree, when every file of it says the same."""
    common = os.path.dirname(os.path.dirname(gitdir))
    back, up = _read(os.path.join(gitdir, "gitdir")), _read(os.path.join(gitdir, "commondir"))
    if back is None or up is None or os.path.basename(os.path.dirname(gitdir)) != "worktrees":
        return None
    points_back = os.path.realpath(os.path.join(gitdir, back.rstrip("\n"))) == os.path.realpath(path)
    return common if points_back and up.rstrip("\n") == "../.." and _is_git_dir(common) else None


def _is_submodule(gitdir: str, root: str) -> bool:
    """Does a directory below the `modules` of a repository, or of a linked work tree's own folder, name this very tree as its work tree?"""
    parts = gitdir.split("/")
    places = [index for index, part in enumerate(parts[:-1]) if part == "modules"]
    if not any(parts[index - 1] == ".git" or parts[index - 2] == "worktrees" for index in places) or not _is_git_dir(gitdir):
        return False
    from amem.sandbox.gitconfig import settings

    named = [
        each.value for each in settings(_read(os.path.join(gitdir, "config")) or "") if (each.section, each.key) == ("core", "worktree")
    ]
    worktree = named[-1] if named else None
    return worktree is not None and os.path.realpath(os.path.join(gitdir, worktree)) == root


def _is_git_dir(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "HEAD")) and all(os.path.isdir(os.path.join(path, name)) for name in ("objects", "refs"))


_BARE = ("objects", "refs")
MODULE_DATA = frozenset({"objects", "refs", "logs", "hooks", "info", "lfs"})
"""Folders of a git directory that hold no other one, and too many folders to look into."""


def _is_bare(path: str) -> bool:
    """By what a session cannot take away, as the folders are pinned and `config` is held: a missing HEAD can come back later."""
    return os.path.lexists(os.path.join(path, "config")) and all(os.path.isdir(os.path.join(path, name)) for name in _BARE)


def _linked(path: str, hint: str) -> SandboxError:
    return SandboxError("worktree", f"{path} is a symbolic link, so what it protects could be swapped", hint=hint)


def _check_whole(gitdir: str, *, linked: bool = False) -> None:
    """Refuse a git directory that sends git elsewhere for its configuration: what is protected here would be void (shown).

    `linked`: a linked work tree's own folder, which has to send it to the directory that it lies in.
    """
    path = os.path.join(gitdir, "commondir")
    if linked:
        if os.path.lexists(path) and (_read(path) or "").rstrip("\n") != "../..":
            raise SandboxError(
                "worktree", f"{path} would have git obey another configuration", hint=f"look what {path} names: ../.. is due"
            )
    elif os.path.lexists(path):
        why = f"{path} would have git obey another configuration; only a linked work tree's own folder has such a file"
        raise SandboxError("worktree", why, hint=f"look at what {path} names, then remove it")


def _within(gitdir: str, name: str) -> Iterator[str]:
    """The protected names of the git directories in one: of submodules, of linked work trees (this or another on the host), and theirs.

    A submodule's is known by what is protected in it: a session could take the HEAD away and bring it back when nothing is protected any
    more. What lies below one is looked into all the same: a session could make the folder above a module look like one.
    Raises SandboxError for a link, and for more folders than are looked into.
    """
    tops = [os.path.join(gitdir, each) for each in ("worktrees", "modules")]
    for top in filter(os.path.islink, tops):
        raise _linked(top, "make it a real folder")
    folders, seen, git_dirs = [*tops], 0, {gitdir}
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as found:
                entries = list(itertools.islice(found, _MOST_FOLDERS))
        except OSError:
            continue
        at = os.path.join(name, os.path.relpath(folder, gitdir))
        parent = os.path.dirname(folder)
        is_linked = os.path.basename(parent) == "worktrees" and os.path.dirname(parent) in git_dirs
        is_module = folder not in tops and any(os.path.lexists(os.path.join(folder, own)) for own in ("config", "hooks"))
        if is_linked or is_module:
            _check_whole(folder, linked=is_linked)
        if is_linked:
            yield from (f"{at}/config.worktree", f"{at}/commondir")
        if is_module:
            git_dirs.add(folder)
            yield from (f"{at}/hooks", f"{at}/config", f"{at}/info/attributes")
        data = MODULE_DATA if is_linked or is_module else ()
        below = [entry.path for entry in entries if entry.name not in data and entry.is_dir(follow_symlinks=False)]
        seen += len(below)
        if seen >= _MOST_FOLDERS or len(entries) == _MOST_FOLDERS:
            raise SandboxError("worktree", f"{folder} holds too many folders to protect them all", hint=f"look what is in {folder}")
        folders += sorted(below, reverse=True)


def _obeyed(gitdir: str, root: str) -> tuple[str, ...]:
    """What git runs or reads within the tree: a folder of hooks and what its links lead to, the programs of a configuration, and more
    configuration, which may name others."""
    from amem.sandbox.gitconfig import expanded, followed

    hooks, home = [os.path.join(gitdir, "hooks")], os.path.expanduser("~")
    found = [folder for folder in hooks if os.path.islink(folder)]
    for config in ("config", "config.worktree"):
        for setting in followed(os.path.join(gitdir, config), home):
            if (setting.section, setting.key) == ("core", "hookspath"):
                hooks.append(os.path.join(root, expanded(setting.value, home)))
                found.append(hooks[-1])
            elif (path := setting.included(home)) is not None:
                found.append(path)
            elif setting.key in _PROGRAMS:
                words = [expanded(word.strip("'\"`$();&|"), home) for word in setting.value.removeprefix("!").split()]
                # One with a slash may be put there yet; without, git looks for it in the search path.
                found += (path for word in words if os.path.isfile(path := os.path.join(root, word)) or "/" in word)
    for folder in hooks:
        found += _links(folder)
    paths = [way for path in found for way in (os.path.normpath(path), os.path.realpath(path))]
    return tuple(dict.fromkeys(os.path.relpath(path, root) for path in paths if is_below(path, root) and path != root))


def _read(path: str) -> str | None:
    from amem.sandbox import gitconfig  # a tree without git needs none of it

    return gitconfig.read(path)


def _links(folder: str) -> list[str]:
    """Where the links in a folder lead, in one step."""
    try:
        with os.scandir(folder) as entries:
            return [os.path.join(folder, os.readlink(entry.path)) for entry in itertools.islice(entries, _MOST_LINKS) if entry.is_symlink()]
    except OSError:
        return []


# What a session may have left


def below(workdir: str, name: str) -> Iterator[str]:
    """A name and, for a folder, the files below it; links are not followed, not even above the name.

    Bounded: a folder with more in it than is looked at of a name, and one that cannot be listed, stands itself for what is in it, with a
    slash at its end.
    """
    folder = workdir
    for part in name.split("/")[:-1]:
        folder = os.path.join(folder, part)
        if os.path.islink(folder):
            yield os.path.relpath(folder, workdir)
            return
    path = os.path.join(workdir, name)
    if not os.path.lexists(path):
        return
    if os.path.islink(path) or not os.path.isdir(path):
        yield name
        return
    waiting, left = [name], MOST_WATCHED
    while waiting:
        here = waiting.pop()
        entries = _listed(os.path.join(workdir, here), left)
        if entries is None:
            yield f"{here}/"
            continue
        left -= len(entries)
        folders = {entry.name for entry in entries if _is_folder(entry)}
        yield from (f"{here}/{entry.name}" for entry in entries if entry.name not in folders)
        waiting += [f"{here}/{each}" for each in sorted(folders, reverse=True)]


def above(name: str) -> Iterator[str]:
    """The folders that a name lies in, the nearest first."""
    while name := name.rpartition("/")[0]:
        yield name


def walk(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`, in order of names, for a tree that a session made: `os.walk` of Python 3.11 recurses, and ends with a deep one.

    The caller may take folders off the list before it goes on. A link is a file: what it leads to is not looked up, which could wait for a
    file server. What cannot be listed is passed over.
    """
    waiting = [top]
    while waiting:
        here = waiting.pop()
        entries = _listed(here)
        if entries is None:
            continue
        folders = [entry.name for entry in entries if _is_folder(entry)]
        known = frozenset(folders)
        yield here, folders, [entry.name for entry in entries if entry.name not in known]
        waiting += [os.path.join(here, name) for name in reversed(folders)]


def _listed(folder: str, most: int | None = None) -> list[os.DirEntry[str]] | None:
    """What is in a folder, in order of names; None where that is more than `most`, or cannot be listed."""
    try:
        with os.scandir(folder) as found:
            entries = list(itertools.islice(found, None if most is None else most + 1))
    except OSError:
        return None
    return sorted(entries, key=lambda entry: entry.name) if most is None or len(entries) <= most else None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False

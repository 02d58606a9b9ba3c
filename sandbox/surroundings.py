"""What of the owner's surroundings an environment inside is made of: the search path, the shell, and who git says the owner is.

Read by the launcher before there is a sandbox, so it loads next to nothing; what a plan must know of the host is `host`'s.
"""

import os
import stat

from amem.errors import SandboxError
from amem.sandbox.spec import PATH, Bind, Identity, is_below
from amem.sandbox.worktree import gitdir_of
from amem.typed import TYPE_CHECKING, Mapping

if TYPE_CHECKING:
    from amem.sandbox.gitconfig import Setting

_EXTRA_PROGRAMS = ("/run/current-system/sw/bin", "/run/current-system/profile/bin", "/nix/var/nix/profiles/default/bin")
"""Where Nix and Guix keep what others have in /usr/bin."""
HOST_PATH = ":".join((*PATH.split(":")[1:], *_EXTRA_PROGRAMS))
"""Where amem looks for the programs of the host that it runs itself: the owner's own search path may lead into a tree that a session has
written (an active `.venv`, `node_modules/.bin`)."""
_PROGRAMS = ("/usr", "/bin", "/sbin", "/nix/store", "/nix/var/nix/profiles", "/gnu/store", "/run/current-system")
"""What is shown of the system that has programs."""
_TERMINFO = ("/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo")
_DATA = (
    "LOCALE_ARCHIVE",
    "LOCALE_ARCHIVE_2_27",
    "TZDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "JAVA_HOME",
    "GOROOT",
    "RUSTUP_HOME",
    "DOTNET_ROOT",
    "ANDROID_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
)
"""The caller's variables that say where a program finds data or its other parts .."""
_DATA_PLACES = (
    "/usr",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/pki",
    "/etc/zoneinfo",
)
""".. and where, of what is shown inside, that may lie."""


def shell(programs: str = "") -> str:
    """The shell inside: not every system has a bash where scripts look for it."""
    places = (f"{folder}/bash" for folder in ("/bin", "/usr/bin", *(() if programs else _EXTRA_PROGRAMS)))
    return next((path for path in places if os.path.lexists(programs + path)), "/bin/sh")


def check_umask() -> None:
    """Raises amem.errors.SandboxError where no file made here could be used by who made it."""
    umask = os.umask(0o022)
    os.umask(umask)
    if umask & 0o700:
        raise SandboxError("take", f"the umask {umask:04o} keeps what a session makes from itself", hint="umask 022")


def search_path(own: str = "", shown: tuple[str, ...] = ()) -> str:
    """The search path inside: the hook program's folder, the owner's search path as far as it leads to what is shown, the usual folders.

    `shown`: folders of the owner's that are shown, at their own paths.
    """
    hook, *usual = PATH.split(":")
    places = tuple(f"{place}/" for place in (*_PROGRAMS, *shown))
    kept = (path for path in own.split(":") if f"{path}/".startswith(places) and os.path.isdir(path))
    return ":".join(dict.fromkeys((hook, *kept, *usual, *(path for path in _EXTRA_PROGRAMS if os.path.isdir(path)))))


def behind(path: str, written: tuple[str, ...]) -> str:
    """A search path with the folders below these last, also those that lead there: what a session put there stands in for no program of the
    system."""

    def is_written(folder: str) -> bool:
        return any(is_below(way, place) for place in written for way in (folder, os.path.realpath(folder)))

    return ":".join(sorted(path.split(":"), key=is_written))


def data_paths(environment: Mapping[str, str], programs: str = "", shown: tuple[str, ...] = ()) -> dict[str, str]:
    """The caller's variables that say where a program finds data or its other parts, as far as that is there inside.

    `shown`: folders of the owner's that are shown, at their own paths, and that no session writes: what runs by these names may answer for
    a check.
    """
    places = tuple(f"{place}/" for place in (*_DATA_PLACES, *shown))
    named = ((name, path) for name in _DATA if (path := environment.get(name)))
    return {name: path for name, path in named if f"{path}/".startswith(places) and os.path.exists(programs + path)}


def terminal(environment: Mapping[str, str], home: str, home_inside: str, programs: str = "") -> tuple[Bind, ...]:
    """The owner's own description of their terminal, where the system has none (a terminal that brings its own, Nix)."""
    name = environment.get("TERM", "")
    if not name or "/" in name or name.startswith("."):
        return ()
    names = (f"{name[0]}/{name}", f"{ord(name[0]):x}/{name}")
    if _first(tuple(programs + folder for folder in _TERMINFO), names) is not None:
        return ()
    own = (environment.get("TERMINFO", ""), f"{home}/.terminfo", *environment.get("TERMINFO_DIRS", "").split(":"))
    found = _first(tuple(folder for folder in own if folder.startswith("/")), names)
    real = os.path.realpath(found) if found is not None else ""
    return (Bind(real, f"{home_inside}/.terminfo/{names[0]}", real=True),) if _describes_terminal(real) else ()


def _describes_terminal(path: str) -> bool:
    """Whether a file is what term(5) says. One may lie in a tree, where a session could put a link to a key of the owner's."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode) and os.read(fd, 2) in (b"\x1a\x01", b"\x1e\x02")
    finally:
        os.close(fd)


def _first(folders: tuple[str, ...], names: tuple[str, ...]) -> str | None:
    paths = (f"{folder}/{name}" for folder in folders for name in names)
    return next((path for path in paths if os.path.isfile(path)), None)


def git_settings(home: str, config_home: str | None, tree: str) -> dict[tuple[str, str], str]:
    """What the owner's own git configuration says of a work tree, by section and key. Read by hand: a program named there must not run."""
    from amem.sandbox.gitconfig import followed

    def applies(setting: "Setting") -> bool:
        return _is_for(setting, os.path.realpath(home), tree)

    return {
        (each.section, each.key): each.value
        for path in ("/etc/gitconfig", f"{config_home or home + '/.config'}/git/config", f"{home}/.gitconfig")
        for each in followed(path, home, applies)
        if not each.sub
    }


def git_identity(found: Mapping[tuple[str, str], str]) -> Identity | None:
    """The owner's name and address of their settings, and nothing else; None where these do not say both."""
    name, email = found.get(("user", "name"), ""), found.get(("user", "email"), "")
    plain = name.isprintable() and email.isprintable() and not any(mark in name + email for mark in '"\\<>')
    return Identity(name, email) if name and email and plain else None


def git_hooks(found: Mapping[tuple[str, str], str], home: str, tree: str) -> tuple[str, ...]:
    """The folder of hooks below a work tree that the owner's settings name; none for one elsewhere."""
    from amem.sandbox.gitconfig import expanded

    path = os.path.normpath(os.path.join(tree, expanded(found.get(("core", "hookspath"), "/"), home)))
    return (os.path.relpath(path, tree),) if is_below(path, tree) and path != tree else ()


def _is_for(setting: "Setting", home: str, tree: str) -> bool:
    """Whether an `includeIf` by git directory is for a tree. What is included by branch or remote is for none."""
    kind, _, pattern = setting.sub.partition(":")
    if kind not in ("gitdir", "gitdir/i"):
        return False
    git = os.path.join(tree, ".git")
    gitdir = (gitdir_of(git) or git) if os.path.lexists(git) else tree
    if pattern.startswith("~/"):
        pattern = home + pattern[1:]
    elif pattern.startswith("./"):
        pattern = os.path.dirname(os.path.realpath(setting.file)) + pattern[1:]
    elif not pattern.startswith("/"):
        pattern = f"**/{pattern}"
    import re

    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern + ("**" if pattern.endswith("/") else ""))
    rule = "".join(words.get(part) or re.escape(part) for part in parts)
    return re.fullmatch(rule, gitdir, re.DOTALL | (re.IGNORECASE if kind.endswith("/i") else 0)) is not None

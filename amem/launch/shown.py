"""What of this machine a session may be shown, and what it may write: the refusals of `--workdir`, `--ro` and `--rw`.

Paths arrive with their links resolved. A refusal names the path and why; nothing is refused by a name alone that is not there.
"""

import os
import pwd
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import amem
from amem.errors import UsageError
from amem.launch.care import holds_git
from amem.sandbox.spec import HOME, MADE_PLACES, SYSTEM_PLACES, Bind, interpreter_binds, is_below
from amem.settings.root import Root

SOCKET_PLACES = ("/tmp", "/var/tmp", "/run", "/dev/shm")
"""Where programs keep sockets: a session that sees one speaks to tmux, an agent of keys or another session's memory, read-only or not."""
RUNTIME = "/run/user"

KEYS = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".password-store",
    ".mozilla",
    ".config/gh",
    ".config/gcloud",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".config/hub",
    ".config/containers/auth.json",
    ".config/chromium",
    ".config/google-chrome",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".terraform.d/credentials.tfrc.json",
    ".cache/huggingface/token",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    # The logins of harnesses.
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".gemini/antigravity-cli/antigravity-oauth-token",
    ".grok/auth.json",
    ".config/muse/auth.json",
    ".copilot/config.json",
    ".local/share/opencode/auth.json",
)
"""Below a home: keys and logins, which no session is shown."""

RUN_BY_HOST = (
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".oh-my-zsh",
    ".inputrc",
    ".xprofile",
    ".xsessionrc",
    ".xinitrc",
    ".pam_environment",
    ".gitconfig",
    ".config/git",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".local/bin",
    ".local/lib",
    ".local/share/systemd",
    ".local/share/applications",
    "bin",
    ".cargo/bin",
    ".cargo/env",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".claude",
    ".codex",
    ".gemini",
)
"""Below a home: what a shell, git, the login, Python or a harness runs and obeys without being asked, which no session writes."""


def check_writable(path: Path, flag: str, root: Root, environment: Mapping[str, str]) -> None:
    """Refuse a writable path that holds, or lies in, what a session must not write. Raises UsageError."""
    hint = "cd into a project first" if flag == "--workdir" else f"leave {flag} {path} out"
    if path == Path("/"):
        raise UsageError(f"{flag} /: a session may not write the whole machine", hint=hint)
    if overlaps(path, root):
        raise UsageError(f"{flag} {path}: it holds or lies in the root {root.path}; a session could write the record", hint=hint)
    for system in SYSTEM_PLACES:
        if is_below(str(path), os.path.realpath(system)):
            raise UsageError(f"{flag} {path}: it lies in {system}, which stays read-only or hidden", hint=hint)
    _check_seen(path, flag, environment, hint)
    if (name := _overlapping(path, RUN_BY_HOST, environment)) is not None:
        raise UsageError(f"{flag} {path}: {name} is run or obeyed by programs of yours outside, and a session could write it", hint=hint)
    if any(is_below(str(path), own) for own in own_folders()):
        raise UsageError(f"{flag} {path}: amem itself runs from there, and a session could rewrite it", hint=hint)


def _check_seen(path: Path, flag: str, environment: Mapping[str, str], hint: str) -> None:
    """Refuse what may not even be read, or connected to, and what cannot be noted down."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UsageError(f"{flag} {path}: its name is not UTF-8, and amem keeps names as text", hint=hint) from None
    if any(is_below(home, str(path)) for home in homes(environment)):
        raise UsageError(f"{flag} {path}: it holds your home, with your keys and logins", hint=hint)
    if (name := _overlapping(path, KEYS, environment)) is not None:
        raise UsageError(f"{flag} {path}: {name} holds keys or logins", hint=hint)
    if is_below(HOME, str(path)):
        raise UsageError(f"{flag} {path}: a session has a {HOME} of its own; name a folder below or beside it", hint=hint)
    sockets = is_below(str(path), RUNTIME) or any(is_below(os.path.realpath(place), str(path)) for place in SOCKET_PLACES)
    if sockets or stat.S_ISSOCK(path.stat().st_mode):
        raise UsageError(f"{flag} {path}: your other programs keep their sockets there, and a session could use them", hint=hint)


def extra(asked: str, root: Root, environment: Mapping[str, str], *, writable: bool) -> Bind:
    """A path of `--ro` or `--rw`. Raises UsageError."""
    path = Path(os.path.realpath(os.path.expanduser(asked)))
    flag = "--rw" if writable else "--ro"
    hint = f"leave {flag} {asked} out"
    if not path.exists():
        raise UsageError(f"{flag} {asked}: there is no such path", hint=hint)
    if writable:
        check_writable(path, flag, root, environment)
        if (folder := _searched(path, environment)) is not None:
            why = f"your PATH leads to {folder}, and a session could write what your shell runs"
            raise UsageError(f"--rw {path}: {why}", hint=f"leave --rw {path} out")
        if ".git" in path.parts or holds_git(str(path)):
            why = "it is a git directory, or holds one, and only the work tree's hooks and configuration are kept read-only"
            hint = f"leave --rw {path} out" if ".git" in path.parts else f"amem launch --workdir {path}"
            raise UsageError(f"--rw {path}: {why}", hint=hint)
    else:
        if overlaps(path, root):
            raise UsageError(f"--ro {path}: it would show the root, with its keys, to the session", hint=hint)
        _check_seen(path, flag, environment, hint)
    for place in map(Path, MADE_PLACES):
        if path.is_relative_to(place) or place.is_relative_to(path):
            raise UsageError(f"{flag} {path}: the sandbox makes its own {place}; name a folder beside it", hint=hint)
    return Bind(str(path), str(path), writable, real=True)


def interpreter(root: Root, environment: Mapping[str, str]) -> tuple[Bind, ...]:
    """This Python, which runs the hooks, at its own path. Raises UsageError where that would show a home, keys or the root."""
    what, hint = "amem's Python (each session is shown it) in", "install amem into an environment that has a folder of its own"
    binds = interpreter_binds(os.path.realpath(sys.executable), sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix))
    for path in (Path(os.path.realpath(bind.source)) for bind in binds):
        if overlaps(path, root):
            raise UsageError(f"{what} {path}: it holds the root {root.path}, or lies in it", hint=hint)
        _check_seen(path, what, environment, hint)
    return binds


def check_program(path: Path, program: str, hint: str, root: Root, environment: Mapping[str, str]) -> None:
    """Refuse what would have to be shown for a harness to run, where that has keys or logins in it. Raises UsageError."""
    kept = [os.path.realpath(root.path), *homes(environment)]
    if any(is_below(each, str(path)) for each in kept) or _overlapping(path, KEYS, environment) is not None:
        raise UsageError(f"{program}: to run it, {path} would be shown to the session, with your keys", hint=hint)


def homes(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The home that the environment names and the account's own: HOME may be unset, or lead elsewhere, and the keys lie in the other."""
    named = [environment.get("HOME")]
    with suppress(KeyError):  # a user id without an account has no home of its own
        named.append(pwd.getpwuid(os.geteuid()).pw_dir)
    return tuple(dict.fromkeys(os.path.realpath(home) for home in named if home))


def _searched(path: Path, environment: Mapping[str, str]) -> str | None:
    """The first folder of the search path that is, holds or lies in the path."""
    folders = [folder for folder in environment.get("PATH", "").split(":") if folder.startswith("/")]
    real = ((folder, os.path.realpath(folder)) for folder in folders)
    return next((folder for folder, end in real if is_below(end, str(path)) or is_below(str(path), end)), None)


def _overlapping(path: Path, names: tuple[str, ...], environment: Mapping[str, str]) -> str | None:
    """The first of these names below a home that is there and is, holds or lies in the path; links are followed, as a program would."""
    for place in _places(names, environment):
        real = os.path.realpath(place)
        if is_below(real, str(path)) or is_below(str(path), real):
            return place
    return None


def _places(names: tuple[str, ...], environment: Mapping[str, str]) -> Iterator[str]:
    for home in homes(environment):
        yield from (place for place in (os.path.join(home, name) for name in names) if os.path.lexists(place))


def overlaps(path: Path, root: Root) -> bool:
    """Say whether a path holds the root or lies in it."""
    real = os.path.realpath(root.path)
    return is_below(real, str(path)) or is_below(str(path), real)


def own_folders() -> tuple[str, ...]:
    """The folders that amem runs from, links resolved: its package, the parts that the package links to, its environment."""
    package = os.path.dirname(os.path.realpath(amem.__file__))
    with os.scandir(package) as entries:
        linked = sorted(os.path.realpath(entry.path) for entry in entries if entry.is_symlink())
    return (package, *linked, *(os.path.realpath(prefix) for prefix in (sys.prefix, sys.base_prefix)))


def key_folder() -> tuple[str, ...]:
    """Where `make launch` in a checkout of amem finds its keys (`local/.virtual-key`, `local/.env`), if it is there."""
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(amem.__file__))), "local")
    return (path,) if os.path.isdir(path) and not os.path.islink(path) else ()


def import_folder(tree: str) -> bool:
    """Say whether Python, as amem was started, takes modules from the top of a tree, where nothing can be kept from being added."""
    return any(entry and os.path.realpath(entry) == tree for entry in sys.path)

"""What of the owner's surroundings an environment inside is made of: the search path, the shell, and who git says the owner is.

Read by the launcher before there is a sandbox, so it loads next to nothing; what a plan must know of the host is `host`'s.
"""

import os

from amem.sandbox.spec import PATH, Identity
from amem.sandbox.worktree import settings

_EXTRA_PROGRAMS = ("/run/current-system/sw/bin", "/run/current-system/profile/bin", "/nix/var/nix/profiles/default/bin")
"""Where Nix and Guix keep what others have in /usr/bin."""


def shell(programs: str = "") -> str:
    """The shell inside: not every system has a bash where scripts look for it."""
    places = (f"{folder}/bash" for folder in ("/bin", "/usr/bin", *(() if programs else _EXTRA_PROGRAMS)))
    return next((path for path in places if os.path.lexists(programs + path)), "/bin/sh")


def search_path() -> str:
    """The search path inside, with the folders of programs that only this machine has."""
    return ":".join((PATH, *(path for path in _EXTRA_PROGRAMS if os.path.isdir(path))))


def git_identity(home: str, config_home: str | None = None) -> Identity | None:
    """The owner's name and address from their own git configuration, and nothing else of it; None where it does not say both.

    Read by hand, includes not followed: a program named there must not run.
    """
    found = _git_settings(home, config_home)
    name, email = found.get(("user", "name"), ""), found.get(("user", "email"), "")
    plain = name.isprintable() and email.isprintable() and not any(mark in name + email for mark in '"\\<>')
    return Identity(name, email) if name and email and plain else None


def git_hooks(home: str, config_home: str | None = None) -> tuple[str, ...]:
    """The folder of hooks below any work tree that the owner's own git configuration names; none for one elsewhere."""
    path = os.path.normpath(_git_settings(home, config_home).get(("core", "hookspath"), "/"))
    return () if path.startswith(("/", "~", "..")) or path == "." else (path,)


def _git_settings(home: str, config_home: str | None) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for path in ("/etc/gitconfig", f"{config_home or home + '/.config'}/git/config", f"{home}/.gitconfig"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                found |= {(section, key): value for section, key, value in settings(file.read())}
        except OSError:
            continue
    return found

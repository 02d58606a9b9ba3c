"""The AppArmor profile that lets amem make user namespaces where the system lets only profiled programs, as text. Pure.

`packaging/apparmor/amem` is this for the usual places; `amem doctor --apparmor` prints it for the place of the very install that is asked.
"""

PLACES = (
    "/usr/bin/amem /usr/local/bin/amem",
    "@{HOME}/.local/bin/amem",
    "@{HOME}/.local/{share/pipx,pipx}/venvs/amem/bin/amem",
    "@{HOME}/.local/share/uv/tools/amem/bin/amem",
)
"""Where the script is usually, its links resolved, in AppArmor's own pattern language."""

_PROFILE = """\
# AppArmor profile of amem, for systems that restrict unprivileged user namespaces (Ubuntu 23.10 and later).
#
# It mediates nothing: it exists so that amem has a profile at all, and grants that profile user namespaces. That is narrower than
# turning kernel.apparmor_restrict_unprivileged_userns off, which grants them to every program without a profile.
#
#   sudo install -m 644 packaging/apparmor/amem /etc/apparmor.d/amem
#   sudo apparmor_parser -r /etc/apparmor.d/amem
#
# The path must be the real path of the script, its links resolved (pipx and uv install a link): `amem doctor` prints the path of this
# very install, and `amem doctor --apparmor` this profile with it. A path that others may write lets them run anything under this
# profile, so prefer one that root owns.
#
# To take it off again, remove it from the kernel and then the file; deleting the file alone, or reloading the service, leaves it in force:
#   sudo apparmor_parser -R /etc/apparmor.d/amem && sudo rm /etc/apparmor.d/amem

abi <abi/4.0>,

include <tunables/global>

{places}

profile amem @{{amem_program}} flags=(unconfined) {{
  userns,

  include if exists <local/amem>
}}
"""


_BARE = str.maketrans("", "", "/._-+")
"""What a path may hold beside letters and digits where it stands in no quotes."""


def profile(program: str | None = None) -> str:
    """The profile for the usual places, or for this one alone. Raises ValueError for a path that AppArmor cannot name."""
    places = PLACES if program is None else (_quoted(program),)
    lines = [f"@{{amem_program}} {'=' if number == 0 else '+='} {place}" for number, place in enumerate(places)]
    return _PROFILE.format(places="\n".join(lines))


def _quoted(path: str) -> str:
    """A path in which no character is a pattern."""
    if not path.startswith("/") or not path.isprintable():
        raise ValueError(f"{path!r} cannot stand in a profile")
    escaped = "".join(f"\\{mark}" if mark in '\\"*?[]{}^@#,' else mark for mark in path)
    return escaped if path.isascii() and path.translate(_BARE).isalnum() else f'"{escaped}"'

"""How a session is confined, by name: a table of values, and which row a launch gets.

What differs is where the egress is reached and whose programs are shown; everything else of a launch is the same. `auto` never picks a
row that confines less, and never one that was not proven. Imported by every launch, so it loads nothing.
"""

import os
import sys

from amem.errors import UnavailableError
from amem.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amem.settings.root import Root

INSIDE, LOOPBACK, SOCKET = "inside", "loopback", "socket"
"""Where the egress listens: in the sandbox's own network, the listener passed out; on the host's loopback, behind the session's bearer; on
a Unix socket that a relay inside leads to, behind the same bearer."""

PLATFORMS = {"linux": "Linux", "darwin": "macOS"}


class Backend(NamedTuple):
    """A row."""

    name: str
    summary: str
    door: str = INSIDE
    confined: bool = True
    image: bool = False
    """The programs inside are an unpacked image's."""
    platform: str | None = "linux"
    """`sys.platform` where it runs; None for any."""
    proven: bool = True
    """A row that is not builds its commands and profile, which `--dry-run` prints, and starts nothing."""


BACKENDS = {
    row.name: row
    for row in (
        Backend("namespaces", "namespaces of its own, with this machine's programs"),
        Backend("image", "namespaces of its own, with the programs of the unpacked harness image", image=True),
        Backend("relay", "namespaces of its own, the egress reached by a relay inside", SOCKET),
        Backend("unconfined", "no sandbox at all", LOOPBACK, confined=False, platform=None),
        Backend("seatbelt", "macOS's Seatbelt", LOOPBACK, platform="darwin", proven=False),
        Backend("wslc", "two WSL containers", SOCKET, image=True, platform=None, proven=False),
    )
}
UNCONFINED = BACKENDS["unconfined"]
ASKED = ("auto", *BACKENDS)

LOUD = (
    "UNCONFINED: there is no sandbox. The harness and all it starts run with your own rights: they can read your files, keys and the whole "
    "record, write anything you can, and use any network. What it sends by its own way is neither checked nor metered"
)


def start(backend: Backend, platform: str = sys.platform) -> None:
    """Refuse a backend that cannot start a session here. Raises UnavailableError."""
    if backend.platform not in (None, platform):
        where = PLATFORMS.get(backend.platform or "", backend.platform)
        raise UnavailableError(f"--backend {backend.name} is for {where}, and this is {PLATFORMS.get(platform, platform)}", hint=_HINT)
    if not backend.proven:
        why = (
            f"--backend {backend.name} was never proven on a machine that has it, so it starts nothing; --dry-run prints what it would run"
        )
        raise UnavailableError(why, hint=_HINT)


_HINT = "amem doctor"


def image(root: "Root") -> str | None:
    """The path of the unpacked image that new sessions use, with no link in it; None where none was unpacked."""
    try:
        found = os.readlink(root.state / "image" / "current")
    except OSError:
        return None
    path = os.path.join(os.path.realpath(root.state / "image"), os.path.basename(found))
    return path if os.path.isdir(path) else None

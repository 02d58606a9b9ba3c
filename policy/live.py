"""Notice that `grants.toml` or the root's policy changed while sessions run (B17).

Owns what was last read of them. Looking costs a few system calls; reading again happens only when a file's stat differs. A file
that cannot be read, or does not hold, raises on every look until it does: what may be done is then not known, so nothing is.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from amem.policy import engine as policy
from amem.settings.grants import IMPORTED_NS
from amem.settings.grants import load as load_grants

if TYPE_CHECKING:
    from amem.policy.engine import PolicyEngine
    from amem.settings.grants import Grants
    from amem.settings.root import Root

_Stamp = tuple[tuple[str, int, int, int, int] | None, ...]
_UNSETTLED_NS = 50_000_000
"""A file written this shortly before it was read may be written again within the clock's grain, with the same stat."""


class Live:
    """What is in force in a root, as its files say it at this moment. Safe to use from several threads."""

    def __init__(self, root: "Root", grants: "Grants") -> None:
        self.grants = grants
        self.on_change: Callable[[Grants], None] = lambda grants: None
        """Called with the new grants before the first decision under them."""
        self._root = root
        self._lock = threading.Lock()  # guards _seen, and that one thread reads
        stamp = self._stamp()
        self._seen: _Stamp | None = stamp if _newest(stamp) < IMPORTED_NS - _UNSETTLED_NS else None
        """None: what was read may be older than the files."""

    def look(self) -> "PolicyEngine | None":
        """The policy over the grants, made anew, when either changed since the last look; else None. Raises AmemError."""
        with self._lock:
            stamp = self._stamp()  # before the files are read: what changes meanwhile is seen by the next look
            if stamp == self._seen:
                return None
            found = load_grants(self._root.grants)
            engine = policy.load(self._root.policy, policy.grants_data(found))
            self.grants = found
            self.on_change(found)
            self._seen = stamp if time.time_ns() - _newest(stamp) > _UNSETTLED_NS else None
            return engine

    def _stamp(self) -> _Stamp:
        paths = [str(self._root.grants)]
        try:
            with os.scandir(self._root.policy) as entries:
                paths += sorted(entry.path for entry in entries if entry.name.endswith(".rego"))
        except FileNotFoundError:
            pass
        return tuple(map(_stat, paths))


def _newest(stamp: _Stamp) -> int:
    return max((one[2] for one in stamp if one is not None), default=0)


def _stat(path: str) -> tuple[str, int, int, int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return path, found.st_ino, max(found.st_mtime_ns, found.st_ctime_ns), found.st_size, found.st_dev

"""Notice that `grants.toml`, the root's policy or the record's policies changed while sessions run (B17).

Owns what was last read of them. Looking costs a few system calls; reading again happens only when a file's stat differs. A file
that cannot be read, or does not hold, raises on every look until it does: what may be done is then not known, so nothing is.
"""

import os
import stat
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from amem.errors import AmemError, UnavailableError
from amem.model.clock import Clock, now
from amem.policy import engine as policy
from amem.settings.grants import IMPORTED_NS
from amem.settings.grants import load as load_grants

if TYPE_CHECKING:
    from amem.policy.engine import PolicyEngine
    from amem.policy.entries import InForce
    from amem.settings.grants import Grants
    from amem.settings.root import Root

_File = tuple[str, int, int, int, int, int]
_Stamp = tuple[_File | None, ...]
_TRIES = 20
"""Readings of files that change while they are read."""
_UNSETTLED_NS = 50_000_000
"""A file written this shortly before it was read may be written again within the clock's grain, with the same stat."""


class Record(Protocol):
    """The record's policies, as `amem.record.policies.Policies` knows them."""

    def changed(self) -> bool:
        """Whether they are others than at the last look."""

    def load(self, grants: "Grants") -> "InForce":
        """What is in force of them."""


class Live:
    """What is in force in a root, as its files say it at this moment. Safe to use from several threads."""

    def __init__(self, root: "Root", grants: "Grants", record: Record | None = None, clock: Clock = now) -> None:
        self.grants = grants
        self.on_change: Callable[[Grants], None] = lambda grants: None
        """Called with the new grants before the first decision under them."""
        self._root = root
        self._record = record
        self._clock = clock
        self._behind = False
        """Whether the record's policies changed and are not in force yet."""
        self._grants, self._folder = str(root.grants), str(root.policy)
        self._lock = threading.Lock()  # guards the three below, and that one thread reads
        self._listed: _File | None = None
        self._modules: tuple[str, ...] = ()
        self._seen: _Stamp | None = None
        """None: what was read may be older than the files."""
        self._keep(self._stamp(), IMPORTED_NS)

    def look(self) -> "PolicyEngine | None":
        """The policy over the grants, made anew, when either changed since the last look; else None. Raises AmemError."""
        with self._lock:
            stamp = self._stamp()  # before the files are read: what changes meanwhile is seen
            self._behind = self._behind or (self._record is not None and self._record.changed())
            if stamp == self._seen and not self._behind:
                return None
            found, engine, stamp = self._read(stamp)
            self._behind = False
            self.grants = found
            self.on_change(found)
            self._keep(stamp, time.time_ns())
            return engine

    def _read(self, stamp: _Stamp) -> "tuple[Grants, PolicyEngine, _Stamp]":
        """What the files say together: read again when one changed meanwhile, so that half of one policy never meets half of another."""
        for last in [False] * _TRIES + [True]:
            before = stamp
            try:
                found = load_grants(self._root.grants)
                engine = self._engine(found)
            except AmemError:
                stamp = self._stamp()
                if last or stamp == before:
                    raise
            else:
                stamp = self._stamp()
                if stamp == before:
                    return found, engine, stamp
        raise UnavailableError("the policy's files change faster than they can be read", hint="amem policy show")

    def start(self) -> "PolicyEngine":
        """The policy in force at the start, over the grants that were given. Raises AmemError."""
        with self._lock:
            if self._record is not None:
                self._record.changed()
            return self._engine(self.grants)

    def _engine(self, grants: "Grants") -> "PolicyEngine":
        data = policy.grants_data(grants)
        if self._record is None:
            return policy.load(self._root.policy, data, clock=self._clock)
        found = self._record.load(grants)
        return policy.load(self._root.policy, data, found.rules, found.exemptions, self._clock)

    def _keep(self, stamp: _Stamp, read_ns: int) -> None:
        """Take what was read for what the files hold, unless they changed close to, or after, the reading."""
        newest = max((one[2] for one in stamp if one is not None), default=0)
        settled = newest < read_ns - _UNSETTLED_NS
        self._seen = stamp if settled else None
        self._listed = self._listed if settled else None

    def _stamp(self) -> _Stamp:
        """Of the grants, of the policy's folder, which changes when a file comes or goes, and of each file in it."""
        folder = _stat(self._folder)
        if folder is None or folder != self._listed:
            self._listed = folder
            self._modules = _modules(self._folder)
        return (_stat(self._grants), folder, *map(_stat, self._modules))


def _modules(folder: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".rego")))
    except FileNotFoundError:
        return ()


def _stat(path: str) -> _File | None:
    """What tells whether a file, or the link that leads to it, is another: one exchanged for another and back leads where it led."""
    try:
        own = found = os.lstat(path)
        if stat.S_ISLNK(own.st_mode):
            found = os.stat(path)
    except FileNotFoundError:
        return None
    newest = max(found.st_mtime_ns, found.st_ctime_ns, own.st_ctime_ns)
    return path, found.st_ino, newest, found.st_size, found.st_dev, own.st_ino

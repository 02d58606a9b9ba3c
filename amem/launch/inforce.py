"""What the grants of this moment mean for a running session: whether it still has access, and its spend limits.

A ceiling that was lowered, or a destination that is gone, is the policy's to see. One that was raised counts from the next launch on,
because a session's routes are made once.
"""

from collections.abc import Iterator, Mapping

from amem.errors import AmemError
from amem.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from amem.memory.session import Memory, Session
    from amem.settings.grants import Spend


class InForce(Mapping[str, "Spend"]):
    """The spend limits of a session's destination as they stand, by its name; empty without any."""

    def __init__(self, memory: "Memory", session: "Session", destination: str) -> None:
        self._memory = memory
        self._session = session
        self._destination = destination

    def revoked(self) -> str | None:
        """Why nothing of this session may leave any more; None while its grant stands."""
        try:
            self._memory.door.generation()
        except (AmemError, OSError):
            return "grants.toml or the policy cannot be read since it was changed, so the answer is no; its owner can see why: amem doctor"
        session = self._session
        if self._memory.grants.grant(session.domain, session.principal) is None:
            return f"grants.toml gives {session.principal} no access to {session.domain} any more"
        return None

    def generation(self) -> int:
        """The generation of grants and policy; -1, which is nobody's, while they cannot be read."""
        try:
            return self._memory.door.generation()
        except (AmemError, OSError):
            return -1

    def _limits(self) -> "Mapping[str, Spend]":
        self.generation()  # where that fails the last limits stand, and `revoked` lets nothing out
        limit = self._memory.grants.spend.get(self._destination)
        return {} if limit is None else {self._destination: limit}

    def __getitem__(self, destination: str) -> "Spend":
        return self._limits()[destination]

    def __iter__(self) -> Iterator[str]:
        return iter(self._limits())

    def __len__(self) -> int:
        return len(self._limits())

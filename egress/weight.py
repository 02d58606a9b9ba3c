"""What the bodies of a session may take of the machine: bytes together, and values of one JSON text.

Pure. As Python's objects twenty MB of `[],` are half a GB and seconds of the loop, so the values are counted before a request is read,
and one with too many is refused, since its rules need all of it. Of a long answer only some members are read (`members`).
"""

from dataclasses import dataclass

MAX_HELD_BYTES = 512 << 20
"""Of all requests of a session together, as they came and decoded, until each is answered."""
AGAIN_S = 8
"""When a request that found no room may come again."""
_ALWAYS_BYTES = 1 << 20
"""A request up to this size is always taken, whatever the others hold."""
MAX_VALUES = 500_000
"""A prompt of two million tokens comes to some 320,000, marks within its text and all."""


@dataclass(slots=True)
class Held:
    """The bytes of requests that a session has under way."""

    all: int = 0


class Share:
    """What one request holds of them, until it is freed."""

    __slots__ = ("_held", "_mine")

    def __init__(self, held: Held) -> None:
        self._held = held
        self._mine = 0

    def holds(self, size: int) -> bool:
        """Take so much more; whether it may be held."""
        self._mine += size
        self._held.all += size
        return self._mine <= _ALWAYS_BYTES or self._held.all <= MAX_HELD_BYTES

    def free(self) -> None:
        """Give all of it back."""
        self._held.all -= self._mine


def values(text: str | bytes) -> int:
    """The most values that a text may hold: one for each mark that could begin one; those within strings count too."""
    if isinstance(text, str):
        return text.count(",") + text.count("[") + text.count("{")
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def is_heavy(text: str | bytes) -> bool:
    """Whether a text is better not read whole."""
    return len(text) > MAX_VALUES and values(text) > MAX_VALUES

"""What the bodies of a session may take of the machine: bytes together, and values of one JSON text.

Pure. As Python's objects twenty MB of `[],` are half a GB and seconds of the loop, so the values are counted before a text is read. A
request with too many is refused, since its rules need all of it; of such an answer only the short members are read, which is where it
says what was used.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from amem.settings import database

MAX_HELD_BYTES = 512 << 20
"""Of all requests of a session together, as they came and decoded, until each is answered."""
AGAIN_S = 8
"""When a request that found no room may come again."""
_ALWAYS_BYTES = 1 << 20
"""A request up to this size is always taken, whatever the others hold."""
MAX_VALUES = 500_000
"""A prompt of two million tokens comes to some 320,000, marks within its text and all."""
_SHORT_CHARS = 1 << 16
_WRAPS = ("response", "message")
"""Members that may hold the answer itself, in an event or an envelope."""
_MEMBERS = """
    select key, iif(type in ('object', 'array'), value, json_quote(value)), coalesce(length(value), 0) < :short
    from json_each(:text)
    where coalesce(length(value), 0) < :short or type = 'object' and key in (select value from json_each(:wraps))
"""


class Held:
    """The bytes of requests that a session has under way."""

    def __init__(self) -> None:
        self._all = 0

    @contextmanager
    def share(self) -> Iterator[Callable[[int], bool]]:
        """For one request: takes more bytes each time it is called, and says whether they may be held. All of them are given back."""
        mine = 0

        def more(size: int) -> bool:
            nonlocal mine
            mine += size
            self._all += size
            return mine <= _ALWAYS_BYTES or self._all <= MAX_HELD_BYTES

        try:
            yield more
        finally:
            self._all -= mine


def values(text: str | bytes) -> int:
    """The most values that a text may hold: one for each mark that could begin one; those within strings count too."""
    if isinstance(text, str):
        return text.count(",") + text.count("[") + text.count("{")
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def is_heavy(text: str | bytes) -> bool:
    """Whether a text is better not read whole."""
    return len(text) > MAX_VALUES and values(text) > MAX_VALUES


def short_members(text: str, *, within: bool = True) -> Mapping[str, Any]:
    """The short members of an object, and those of a member that wraps the answer; read by SQLite, which makes no object of the others.

    Raises ValueError for what is no object.
    """
    if text.lstrip()[:1] != "{":
        raise ValueError("not an object")
    connection = database.connect(Path(":memory:"), durable=False)
    try:
        rows = connection.execute(_MEMBERS, {"text": text, "short": _SHORT_CHARS, "wraps": json.dumps(_WRAPS if within else [])})
        return {key: json.loads(value) if short else short_members(value, within=False) for key, value, short in rows}
    except database.Error as error:
        raise ValueError("not JSON") from error
    finally:
        connection.close()

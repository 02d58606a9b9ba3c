"""Instants: UTC with milliseconds, written `2026-11-30T07:25:57.123Z` everywhere."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]
"""A clock is a function that returns an aware UTC instant; tests pass a fixed one."""


def now() -> datetime:
    """The system clock."""
    return datetime.now(UTC)


def stamp(instant: datetime) -> str:
    """Write an instant as `…T…sss Z`: UTC, milliseconds, `Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def parse(text: str) -> datetime:
    """Read an RFC 3339 instant or a bare date (midnight UTC). Raises ValueError."""
    value = datetime.fromisoformat(text)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_LONGEST_S = 1e12
"""Some thirty thousand years: sums with it still fit wherever time is reckoned."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def duration_s(text: str) -> float:
    """Read `90s`, `15m`, `2h`, `7d`, `4w` or a bare number of seconds. Raises ValueError."""
    unit = _UNITS.get(text[-1:])
    try:
        number = float(text[:-1] if unit else text) * (unit or 1)
    except ValueError:
        number = math.nan
    if not 0 <= number <= _LONGEST_S:
        raise ValueError(f"{text!r} is no duration: expected 90s, 15m, 2h, 7d, 4w or a number of seconds")
    return number


def since(text: str, at: datetime) -> datetime:
    """Read `--since`: an instant, a date, or a duration back from `at`. Raises ValueError."""
    try:
        return parse(text)
    except ValueError:
        pass
    try:
        return at - timedelta(seconds=duration_s(text))
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r}: expected a date (2026-11-01), an instant, or how far back (90m, 36h, 7d, 4w)") from None

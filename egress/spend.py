"""Spend limits: what a call is reserved at. Whether there is room for it is the policy's to say (`spend`).

Pure. A limit is in tokens, in and out, cache included. A call is reserved before it leaves at what its prompt is estimated at
and the output it may ask for, and settled at what it used; so calls under way can never together go beyond a limit.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from amem.egress.flow import Call

USUAL_OUTPUT_TOKENS = 8192
"""Reserved for a call that names no most."""


def estimate(call: Call) -> int:
    """Tokens to reserve for a call: what its body may come to, and the output it may ask for.

    Three bytes to a token in ASCII, two in other scripts: code comes to that, and Chinese to no more than one and a half a character,
    in every vendor's tokens (2026-11). So it is rather too much than too little for what people write; bytes of no language can be
    more, and what a body only names (a file, an earlier answer) is not in it: such a call is settled at what it used.
    """
    text = call.body.text if call.body is not None else ""
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    other = 0 if text.isascii() else len(text.encode()) - plain
    return -(-(2 * plain + 3 * other) // 6) + (call.max_output or USUAL_OUTPUT_TOKENS) * call.answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Tokens at one destination: settled, and reserved by calls under way."""

    session: int
    day: int
    zone: str = "UTC"
    """Whose day it is."""


def day_bounds(at: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """The first instants of the owner's day that holds `at`, and of the next one, in UTC; a day may have 23 or 25 hours."""
    midnight = at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    # Wall-clock arithmetic: the next midnight is the next date's, however long this day is.
    tomorrow = (midnight.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=zone)
    return midnight.astimezone(UTC), tomorrow.astimezone(UTC)

"""What an event is known by later: digests of what it says, so that an edit behind amem shows.

An event's words have a digest of their own, because an erasure may take them; who did what to which task, when and under which claim
never changes.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from amem.ledger.erasing import WORDS
from amem.ledger.projection import ERASED

_HEX = 16
"""64 bits of each digest: a seal notices an edit, and its line in the log is what vouches for the seal."""


class Seal(NamedTuple):
    """What is remembered of one event."""

    seq: int
    task: str
    fixed: str
    words: str
    """Empty where there are none, and after an erasure."""

    def text(self) -> str:
        """The seal as a line of the log keeps it."""
        return f"{self.seq}:{self.task}:{self.fixed}:{self.words}"


def read(text: str) -> Seal:
    """A seal from its text. Raises ValueError."""
    seq, task, fixed, words = text.split(":")
    return Seal(int(seq), task, fixed, words)


def seal(row: Sequence[Any]) -> Seal:
    """The seal of an event's row: seq, kind, task, principal, at_ms, fence, data."""
    seq, kind, task, principal, at_ms, fence, text = row
    data: Mapping[str, Any] = json.loads(text)
    said = WORDS.get(kind, {})
    words = {key: value for key, value in data.items() if key in said and value not in (ERASED, "", None, [])}
    rest = {key: value for key, value in data.items() if key not in said}
    return Seal(seq, task, _digest([seq, kind, task, principal, at_ms, fence, rest]), _digest(words) if words else "")


class Edit(NamedTuple):
    """An event that is not as it was sealed."""

    task: str
    seq: int
    kind: str
    """`changed`, `dropped`, `added`, or `rolled_back` for the first of a tail that is gone."""


def edits(sealed: Iterable[Seal], there: Sequence[Sequence[Any]]) -> list[Edit]:
    """Compare all events of a domain, in order, with the seals there are of them."""
    wanted = {one.seq: one for one in sealed}
    if not wanted:
        return []
    found = {one.seq: one for one in map(seal, there)}
    erased = {task: seq for seq, kind, task, *_ in there if kind == "erased"}
    last = max(wanted)
    end = max(found, default=0)
    told: list[Edit] = []
    for seq, one in sorted(wanted.items()):
        now = found.get(seq)
        if now is None and seq > end:
            return [*told, Edit(one.task, seq, "rolled_back")]
        if now is None:
            told.append(Edit(one.task, seq, "dropped"))
        elif now.fixed != one.fixed or (now.words != one.words and (now.words or erased.get(one.task, 0) < seq)):
            told.append(Edit(one.task, seq, "changed"))
    told += [Edit(one.task, seq, "added") for seq, one in found.items() if seq < last and seq not in wanted]
    return told


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:_HEX]

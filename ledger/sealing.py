"""What an event is known by later: digests of what it says, so that an edit behind amem shows.

An event's words have a digest of their own, because an erasure may take them; who did what to which task, when and under which claim
never changes.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from amem.ledger.erasing import WORDS
from amem.ledger.projection import ERASED
from amem.ledger.promotions import Promotion, State
from amem.typed import Any, NamedTuple

FORM = 2
"""How seals are made now. In the first form a task's requirements and a grader's name were no words yet."""
_NO_WORDS = {1: ("requires", "grader"), FORM: ()}
_OPEN = (State.BEGUN.value, State.PROPOSED.value)
_HEX = 16
"""64 bits of each digest: a seal notices an edit, and its line in the log is what vouches for the seal."""


class Seal(NamedTuple):
    """What is remembered of one event."""

    seq: int
    task: str
    fixed: str
    words: str
    """Empty where there are none, and after an erasure."""
    form: int = FORM

    def text(self) -> str:
        """The seal as a line of the log keeps it."""
        return f"{self.seq}:{self.task}:{self.fixed}:{self.words}"


def read(text: str, form: int = FORM) -> Seal:
    """A seal from its text. Raises ValueError, on an unknown form too."""
    if form not in _NO_WORDS:
        raise ValueError(f"seals of form {form} are not known")
    seq, task, fixed, words = text.split(":")
    return Seal(int(seq), task, fixed, words, form)


def seal(row: Sequence[Any], form: int = FORM) -> Seal:
    """The seal of an event's row: seq, kind, task, principal, at_ms, fence, data. Raises KeyError on an unknown form."""
    seq, kind, task, principal, at_ms, fence, text = row
    data: Mapping[str, Any] = json.loads(text)
    said = WORDS.get(kind, {}).keys() - _NO_WORDS[form]
    words = {key: value for key, value in data.items() if key in said and value not in (ERASED, "", None, [])}
    rest = {key: value for key, value in data.items() if key not in said}
    return Seal(seq, task, _digest([seq, kind, task, principal, at_ms, fence, rest]), _digest(words) if words else "", form)


class Edit(NamedTuple):
    """An event, or a promotion, that is not as it was sealed."""

    task: str
    """Or the entry that was promoted."""
    seq: int
    kind: str
    """`changed`, `dropped`, `added`, or `rolled_back` for the first of a tail that is gone."""


def edits(sealed: Iterable[Seal], there: Sequence[Sequence[Any]]) -> list[Edit]:
    """Compare all events of a domain, in order, with the seals there are of them."""
    wanted = {one.seq: one for one in sealed}
    if not wanted:
        return []
    found = {row[0]: row for row in there}
    erased = {task: seq for seq, kind, task, *_ in there if kind == "erased"}
    last = max(wanted)
    end = max(found, default=0)
    told: list[Edit] = []
    for seq, one in sorted(wanted.items()):
        if seq not in found and seq > end:
            return [*told, Edit(one.task, seq, "rolled_back")]
        if seq not in found:
            told.append(Edit(one.task, seq, "dropped"))
            continue
        now, gone = seal(found[seq], one.form), erased.get(one.task, 0) > seq
        fixed = now.fixed == one.fixed or (gone and one.form == 1)  # the erasure took what counts as words by now
        if not fixed or (now.words != one.words and (now.words or not gone)):
            told.append(Edit(one.task, seq, "changed"))
    told += [Edit(row[2], seq, "added") for seq, row in found.items() if seq < last and seq not in wanted]
    return told


class Note(NamedTuple):
    """What is remembered of one promotion."""

    seq: int
    entry: str
    fixed: str
    state: str
    why: str
    """Empty after an erasure."""

    def text(self) -> str:
        """The note as a line of the log keeps it."""
        return f"{self.seq}:{self.entry}:{self.fixed}:{self.state}:{self.why}"

    def becomes(self, now: "Note") -> bool:
        """Say whether the promotion may have come to that since: what was open is settled once, and an erasure takes the why."""
        return (
            (self.seq, self.entry, self.fixed) == (now.seq, now.entry, now.fixed)
            and (self.state == now.state or self.state in _OPEN)
            and (self.why == now.why or not now.why)
        )


def read_note(text: str) -> Note:
    """A note from its text. Raises ValueError."""
    seq, entry, fixed, state, why = text.split(":")
    return Note(int(seq), entry, fixed, state, why)


def note(one: Promotion) -> Note:
    """The note of a promotion."""
    fixed = _digest([one.seq, one.entry, one.version, one.to, one.by, one.at_ms, one.task])
    return Note(one.seq, one.entry, fixed, one.state.value, _digest(one.why) if one.why is not None else "")


def forged(noted: Mapping[int, Note], there: Iterable[Promotion]) -> list[Edit]:
    """Compare the promotions of a domain with the last note of each."""
    found = {one.seq: note(one) for one in there}
    last = max(noted, default=0)
    told = [Edit(one.entry, seq, "changed" if seq in found else "dropped") for seq, one in noted.items()
            if seq not in found or not one.becomes(found[seq])]  # fmt: skip
    return told + [Edit(one.entry, seq, "added") for seq, one in found.items() if seq < last and seq not in noted]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:_HEX]

"""Read a harness's transcript into numbered turns. Pure; the bytes are hostile, and nothing here raises for what they hold.

Used inside by the hooks and on the host by everything that cites `transcript:<session>#<turn>`, so both count alike: a
turn has its number from the line on which it first appears, whatever is appended later; a line that stands there again makes
no turn, and a compaction changes no number. A turn is what the user said, what the model said with its reasoning and tool calls, or
what the tools answered. Reasoning stays within its turn and adds none. Subagents' own turns are not counted.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from amem.hooks.shapes import RETURNED, SHAPES, SUMMARISED, USER, WITHHELD, Piece

MAX_LINE_BYTES = 8 << 20
"""A longer line is passed over: no turn is that long, and the harnesses that log whole requests are not read from those."""
MAX_LINES = 1_000_000
MAX_TURNS = 100_000
"""What comes after so many is not read."""

MARKS = {RETURNED: "[reasoning]", SUMMARISED: "[reasoning] (summarised)", WITHHELD: "[reasoning withheld by the provider]"}


class Call(NamedTuple):
    """A tool call within a turn."""

    name: str
    arguments: str
    """As JSON, or as the model wrote them."""
    size: int | None = None
    """Bytes of what the tool answered; None where no answer says that it is this call's."""


class Turn(NamedTuple):
    """One turn."""

    n: int
    """From 1."""
    role: str
    text: str
    reasoning: str = ""
    how: str | None = None
    tools: tuple[Call, ...] = ()


class Transcript(NamedTuple):
    """All that was read."""

    turns: list[Turn]
    bad: int = 0
    """Lines that are no JSON object, or too long: passed over."""
    cut: bool = False
    """Whether there was more than is read."""
    aside: bool = False
    """Whether it is a subagent's own."""


class Tally:
    """What was not read of a file's lines."""

    def __init__(self) -> None:
        self.bad = 0
        self.cut = False
        self.aside = False


def read(shape: str, lines: Iterable[bytes]) -> Transcript:
    """The turns of a transcript. A shape that is not known has none."""
    if shape not in SHAPES:
        return Transcript([])
    tally = Tally()
    return Transcript(_numbered(_pieces(shape, lines, tally), tally), tally.bad, tally.cut, tally.aside)


def render(turn: Turn) -> str:
    """A turn as text: its number and role, its reasoning marked, what was said, the tools that were called."""
    parts = [f"#{turn.n} {turn.role}"]
    if turn.how is not None:
        parts.append(f"{MARKS[turn.how]} {turn.reasoning}".rstrip())
    parts += [turn.text] if turn.text else []
    parts += [f"-> {call.name} {call.arguments}" + (f" ({call.size} bytes)" if call.size is not None else "") for call in turn.tools]
    return "\n".join(parts)


def events(lines: Iterable[bytes], tally: Tally | None = None) -> Iterator[dict[str, Any]]:
    """The JSON objects of a transcript's lines; a torn or foreign line is passed over, and counted in `tally`."""
    tally = tally or Tally()
    for number, line in enumerate(lines):
        if number == MAX_LINES:
            tally.cut = True
            return
        event = None
        if len(line) <= MAX_LINE_BYTES:
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                if not line.strip():
                    continue
        if isinstance(event, dict):
            yield event
        else:
            tally.bad += 1


def unrepeated(shape: str | None, found: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The events of a transcript without those that stand there again."""
    known = SHAPES.get(shape or "")
    seen: set[str] = set()
    for event in found:
        name = known.identity(event) if known else None
        if isinstance(name, str) and name:
            if name in seen:
                continue
            seen.add(name)
        yield event


def _pieces(shape: str, lines: Iterable[bytes], tally: Tally) -> Iterator[Piece]:
    known = SHAPES[shape]
    for event in unrepeated(shape, events(lines, tally)):
        tally.aside = tally.aside or known.aside(event)
        yield from known.pieces(event)


class _Open:
    """A turn while more of it may come. Lists, because a transcript may bring one turn in any number of pieces."""

    __slots__ = ("how", "key", "reasoning", "role", "text", "tools")

    def __init__(self, role: str, key: str | None) -> None:
        self.role, self.key = role, key
        self.clear()

    def clear(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.tools: dict[object, _Called] = {}
        self.how: str | None = None

    def add(self, piece: Piece, calls: "dict[str, _Called]") -> None:
        if piece.replaces:
            self.clear()
        for words, new in ((self.text, piece.text), (self.reasoning, piece.reasoning)):
            if new:
                words += ("", new) if piece.glued or not words else ("\n", new)
        for asked in piece.tools:
            call = _Called(asked.name, asked.arguments)
            self.tools[asked.id or call] = call  # one call may be told in several lines; the last holds
            if asked.id:
                calls[asked.id] = call
        for id, size in piece.sizes:
            if id in calls:
                calls[id].size = size
        if self.how in (None, WITHHELD):
            self.how = piece.how or self.how

    def closed(self, n: int) -> Turn:
        calls = tuple(Call(_clean(call.name), _clean(call.arguments), call.size) for call in self.tools.values())
        return Turn(n, self.role, _clean("".join(self.text)), _clean("".join(self.reasoning)), self.how, calls)


class _Called:
    __slots__ = ("arguments", "name", "size")

    def __init__(self, name: str, arguments: str) -> None:
        self.name, self.arguments = name, arguments
        self.size: int | None = None


def _numbered(pieces: Iterable[Piece], tally: Tally) -> list[Turn]:
    turns: list[_Open] = []
    by_key: dict[tuple[str, str], _Open] = {}
    calls: dict[str, _Called] = {}
    for piece in pieces:
        turn = by_key.get((piece.role, piece.key)) if piece.key is not None else None
        if turn is None and turns and (turns[-1].role, turns[-1].key) == (piece.role, piece.key) and piece.role != USER:
            turn = turns[-1]
        if turn is None:
            if len(turns) == MAX_TURNS:
                tally.cut = True
                continue  # what is told of turns that are known still counts
            turns.append(turn := _Open(piece.role, piece.key))
        if piece.key is not None:
            by_key[piece.role, piece.key] = turn
        turn.add(piece, calls)
    return [turn.closed(n) for n, turn in enumerate(turns, start=1)]


def _clean(text: str) -> str:
    """The text without lone surrogates, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text

"""The members of a JSON answer that say what was used, read as its bytes come.

Pure, and in bounded memory and time: of an answer of 20 MB a few short members are kept, and no object is made of the rest. What is
passed over is not checked. The members stand in an object, in an object within it (an event or an envelope holds the answer so), or in
the objects of an array, as Gemini streams them.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import accumulate

from amem.typed import Any

SHORT_BYTES = 1 << 17
"""The longest member that is kept."""
MAX_MARKS = 250_000
"""Commas, colons and brackets between members: 20,000 pieces of a stream have so many, and an answer of millions of members is none."""
_MARK = re.compile(rb"[{}\[\],:]")
_BRACKET = re.compile(rb"[{}\[\]]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_STEPS = bytes(1 if byte in b"{[" else 255 for byte in range(256))
"""What a bracket does to the depth, as a signed byte."""
_UNWANTED = ""


class MemberReader:
    """`feed` the bytes of an object, or an array of them; get of each object, when it ends, the members that are wanted."""

    def __init__(self, wanted: Collection[str], wraps: Collection[str] = ()) -> None:
        """`wraps` are members that may hold the wanted ones, and are then read as the object is."""
        self.done = False
        """What began has come to its end."""
        self.given_up = False
        """There are more members than an answer has; the rest is not read."""
        self._marks = 0
        self._wraps = frozenset(wraps)
        self._wanted = frozenset(wanted) | self._wraps
        self._held = b""
        self._in_string = False
        self._array = False
        self._open: list[dict[str, Any]] = []
        """The object that is being read, and the one in it."""
        self._wrap = _UNWANTED
        self._name: str | None = None
        """The member whose value is being read; None before its colon."""
        self._text: bytearray | None = None
        """The key or value as far as it came; None where it is not wanted, or too long."""
        self._depth = 0
        """Within a value that is no plain one."""

    def feed(self, data: bytes) -> list[Mapping[str, Any]]:
        """The objects that these bytes complete, in order."""
        if self.done or self.given_up:
            return []
        data = self._held + data
        # A backslash at the end escapes what comes next, unless it is escaped itself.
        whole = len(data) - (len(data) - len(data.rstrip(b"\\"))) % 2
        self._held, data = data[whole:], data[:whole]
        return list(self._objects(data, self._bare(data)))

    def _bare(self, data: bytes) -> bytes:
        """The same bytes with blanks for all strings, so that only what divides them is left."""
        if b"\\" in data:
            data = data.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
        parts = data.split(b'"')
        for at in range(0 if self._in_string else 1, len(parts), 2):
            parts[at] = b" " * len(parts[at])
        self._in_string ^= len(parts) % 2 == 0
        return b" ".join(parts)

    def _objects(self, data: bytes, bare: bytes) -> Iterator[Mapping[str, Any]]:
        at = 0
        while at < len(data) and not self.done and not self.given_up:
            if self._depth:
                end = self._past(bare, at)
                self._keep(data[at:end])
                at = end
                continue
            mark = _MARK.search(bare, at)
            self._keep(data[at : mark.start() if mark else len(data)])
            if mark is None:
                return
            at = mark.end()
            self._marks += 1
            self.given_up = self._marks > MAX_MARKS
            if (found := self._met(mark[0])) is not None:
                yield found

    def _past(self, bare: bytes, at: int) -> int:
        """Where the value that is being passed over ends; the end of the bytes if it goes on."""
        size = 64  # most values are short; of a long one ever more is looked at in one step
        while at < len(bare):
            part = bare[at : at + size]
            steps = memoryview(part.translate(_STEPS, _NO_BRACKETS)).cast("b")
            if self._depth + min(accumulate(steps), default=0) > 0:
                self._depth += sum(steps)
            else:
                for bracket in _BRACKET.finditer(part):
                    self._depth += 1 if bracket[0] in b"{[" else -1
                    if not self._depth:
                        return at + bracket.end()
            at, size = at + len(part), size * 4
        return at

    def _keep(self, piece: bytes) -> None:
        if self._text is not None:
            self._text += piece
            if len(self._text) > SHORT_BYTES:
                self._text = None

    def _met(self, mark: bytes) -> Mapping[str, Any] | None:
        """Take a mark that stands in what is being read; the object that it ends."""
        match mark:
            case b"{" if not self._open or (self._name in self._wraps and len(self._open) == 1):
                self._wrap = self._name or _UNWANTED
                self._open.append({})
                self._next()
            case b"[" if not self._open and not self._array:
                self._array = True
            case b"{" | b"[":
                self._keep(mark)
                self._depth = 1
            case b":" if self._open and self._name is None:
                key = self._value()
                self._name = key if isinstance(key, str) and key in self._wanted else _UNWANTED
                self._text = None if self._name == _UNWANTED else bytearray()
            case b"," if self._open:
                self._end()
            case b"}" if self._open:
                self._end()
                found = self._open.pop()
                if not self._open:
                    self.done = not self._array
                    return found
                self._open[-1][self._wrap] = found
            case b"]" if not self._open and self._array:
                self.done = True
        return None

    def _end(self) -> None:
        if self._name and (value := self._value()) is not None:
            self._open[-1][self._name] = value
        self._next()

    def _next(self) -> None:
        self._name, self._text = None, bytearray()

    def _value(self) -> Any:
        """What the text says; None for null and for what says nothing."""
        try:
            return json.loads(self._text.decode()) if self._text is not None else None
        except (ValueError, RecursionError):
            return None

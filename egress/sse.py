"""Read server-sent events from bytes that arrive in any pieces.

Pure. Follows the WHATWG event-stream rules for line ends (CR LF, LF or CR), `data` lines and the byte order mark; unlike a
browser it gives what stands before the end of a cut stream (`end`), because a figure that was sent was sent.
"""

from amem.typed import NamedTuple

MAX_EVENT_BYTES = 32 << 20
"""Responses repeats the whole answer, images too, in its last event; a longer event is dropped and said so."""
MAX_LINES = 10_000
"""An event of more lines is dropped too: 32 MB of short ones would be a GB of lines."""
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its name (empty when it gave none) and its `data` lines joined by newlines."""

    name: bytes
    data: bytes


class SseReader:
    """`feed` bytes, get whole events; `end` gives what a stream left unfinished. Holds at most one event."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.wanted: tuple[bytes, ...] = ()
        """When set, events with none of these in them may be left out: most of a long answer is passed over without being split."""
        self.dropped = 0
        """Events that were longer than `max_event_bytes`, or had more than `MAX_LINES`."""
        self._max = max_event_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._last = b""
        self._held_cr = False
        self._dropping = False
        self._started = False

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete, in order."""
        data = self._lines(data)
        if not data:
            return []
        events: list[Event] = []
        data = self._last + data
        if self.wanted:
            data = self._pass_over(data, events)
        # Only the last byte of what is pending can be half of a terminator, so nothing is searched twice.
        *blocks, rest = data.split(b"\n\n")
        self._last = b""
        for block in blocks:
            if self._size or self._dropping or len(block) > self._max:
                self._keep(block)
                self._finish(events)
            else:  # nothing is pending: it came whole
                self._ended(block, events)
        self._keep(rest[:-1])
        self._last = rest[-1:]
        return events

    def end(self) -> list[Event]:
        """What came after the last blank line, as an event when it has data."""
        events: list[Event] = self.feed(b"\n") if self._held_cr else []
        self._keep(self._last)
        self._last = b""
        self._finish(events)
        return events

    def _pass_over(self, data: bytes, events: list[Event]) -> bytes:
        """End the event that is pending, then leave out whole events when nothing in all of them is wanted."""
        if (self._size or self._dropping) and b"\n\n" in data:
            block, _, data = data.partition(b"\n\n")
            self._keep(block)
            self._finish(events)
        end = data.rfind(b"\n\n")
        if end < 0 or any(data.find(one, 0, end) >= 0 for one in self.wanted):
            return data
        return data[end + 2 :]

    def _lines(self, data: bytes) -> bytes:
        """The bytes with every line end as LF; a CR at the end waits, as it may be half of one."""
        if not self._started:
            data = self._past_bom(data)
            if not self._started:
                return b""
        if self._held_cr:
            data = b"\r" + data
            self._held_cr = False
        if b"\r" in data:
            if data.endswith(b"\r"):
                self._held_cr = True
                data = data[:-1]
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _past_bom(self, data: bytes) -> bytes:
        data = self._last + data
        if len(data) < 3 and _BOM.startswith(data):
            self._last = data
            return b""
        self._last = b""
        self._started = True
        return data.removeprefix(_BOM)

    def _keep(self, piece: bytes) -> None:
        if self._dropping or not piece:
            return
        self._size += len(piece)
        if self._size > self._max:
            self._dropping = True
            self._pieces.clear()
            return
        self._pieces.append(piece)

    def _finish(self, events: list[Event]) -> None:
        """End the event that is pending."""
        block = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if self._dropping:
            self._dropping = False
            self.dropped += 1
        else:
            self._ended(block, events)

    def _ended(self, block: bytes, events: list[Event]) -> None:
        if len(block) >= MAX_LINES and block.count(b"\n") >= MAX_LINES:
            self.dropped += 1
        elif block and (not self.wanted or any(one in block for one in self.wanted)) and (event := parse(block)) is not None:
            events.append(event)


def parse(block: bytes) -> Event | None:
    """One event from its lines (LF line ends); None when it has no data."""
    if block.startswith(b"data:") and b"\n" not in block:  # what chat completions send, thousands of times over
        return Event(b"", block[5:].removeprefix(b" "))
    name, data = b"", []
    for line in block.split(b"\n"):
        field, colon, value = line.partition(b":")
        if not colon and field not in (b"data", b"event"):
            continue
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    if not data:
        return None
    return Event(name, data[0] if len(data) == 1 else b"\n".join(data))

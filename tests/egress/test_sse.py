from hypothesis import given
from hypothesis import strategies as st

from amem.egress.sse import Event, SseReader


def read(*pieces: bytes, max_event_bytes: int = 1 << 20) -> list[Event]:
    reader = SseReader(max_event_bytes)
    return [event for piece in pieces for event in reader.feed(piece)] + reader.end()


def simple(stream: bytes) -> list[Event]:
    """The WHATWG rules, line by line over a whole stream; what stands before a missing last blank line counts."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events, name, data = [], b"", []
    for line in [*text.split(b"\n"), b""]:
        if not line:
            if data:
                events.append(Event(name, b"\n".join(data)))
            name, data = b"", []
            continue
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return events


pieces = st.lists(
    st.sampled_from(
        [b"data", b"event", b":", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"x", b"data: y\n", b"id: 1\n", b"\xef\xbb\xbf", b"{}"]
    ),
    max_size=40,
).map(b"".join)


@given(pieces, st.data())
def test_any_split_reads_like_the_whole(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(*parts) == simple(stream)


@given(pieces)
def test_byte_by_byte_reads_like_the_whole(stream: bytes) -> None:
    assert read(*(stream[i : i + 1] for i in range(len(stream)))) == simple(stream)


def test_an_event_comes_as_soon_as_its_blank_line_does() -> None:
    reader = SseReader()
    assert reader.feed(b"event: a\ndata: 1") == []
    assert reader.feed(b"\n\ndata: 2\n") == [Event(b"a", b"1")]
    assert reader.end() == [Event(b"", b"2")]


def test_an_event_beyond_the_bound_is_dropped_and_the_next_is_read() -> None:
    reader = SseReader(max_event_bytes=100)
    assert reader.feed(b"data: " + b"x" * 1000) == []
    assert reader.feed(b"y" * 1000) == []
    assert reader.feed(b"\n\ndata: next\n\n") == [Event(b"", b"next")]
    assert reader.dropped == 1


def test_a_stream_without_end_holds_one_event_at_most() -> None:
    reader = SseReader(max_event_bytes=1000)
    for _ in range(1000):
        reader.feed(b"data: no blank line ever")
    assert sum(map(len, reader._pieces)) <= 1000


@given(
    st.lists(st.sampled_from([b"data: a\n", b"data: WANTED\n", b"\n", b"data: b", b"\r\n", b"WAN"]), max_size=40).map(b"".join),
    st.integers(1, 9),
)
def test_passing_over_loses_no_wanted_event_and_makes_none_up(stream: bytes, size: int) -> None:
    reader = SseReader()
    reader.wanted = (b"WANTED",)
    found = [event for at in range(0, len(stream), size) for event in reader.feed(stream[at : at + size])] + reader.end()
    everything = simple(stream)
    assert [event for event in found if b"WANTED" in event.data] == [event for event in everything if b"WANTED" in event.data]
    assert not [event for event in found if event not in everything]

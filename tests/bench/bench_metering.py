"""P12: tokens read from every usage fixture, in every framing, encoding, split and cut, against the fixture's own figures.

    python -m tests.bench.bench_metering

For each fixture (external, read in place): whole and as a stream, with each line end, in each encoding; byte by byte; in two
pieces, at every byte; cut at every byte, where what was told by then may be less and never other than the file's figures. In
the peer's place stands how many variants there are: ours is how many of them were exact.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from amem.egress.usage import UsageReader
from amem.model.call import Dialect
from tests.bench.rows import Row, table
from tests.egress.fixtures_table import FIXTURES, Fixture
from tests.egress.variants import ENCODINGS, as_stream, in_envelope, line_ends
from tests.shared import shared_path


def run() -> list[Row]:
    """Count exact variants; about half a minute."""
    folder = shared_path("data/usage-fixtures")
    whole = [_exact(fixture, folder) for fixture in FIXTURES]
    cut = [_cut(fixture, folder) for fixture in FIXTURES]
    return [
        Row(
            "P12", "exact, whole and split", sum(good for good, _ in whole), "variants", sum(n for _, n in whole), "n", "= all", _all(whole)
        ),
        Row("P12", "cut: never too much", sum(good for good, _ in cut), "variants", sum(n for _, n in cut), "n", "= all", _all(cut)),
        Row("P12", "a 20 MB stream of 200 B", _speed_ms(), "no peer", None, "ms", "reported", None),
    ]


def _all(counts: list[tuple[int, int]]) -> bool:
    return all(good == n for good, n in counts)


def _exact(fixture: Fixture, folder: Path) -> tuple[int, int]:
    """How many variants of a fixture gave its figures, and how many there are."""
    good = count = 0
    for framed, encoding, pieces in _variants(fixture, (folder / f"{fixture.name}.json").read_bytes()):
        reader = UsageReader(fixture.dialect, "text/event-stream" if framed else "application/json", encoding)
        for piece in pieces:
            reader.feed(piece)
        found = reader.result()
        count += 1
        good += (found.usage, found.model, found.complete) == (fixture.usage, fixture.model, True)
    return good, count


def _variants(fixture: Fixture, body: bytes) -> Iterator[tuple[bool, str, Iterator[bytes]]]:
    streamed = fixture.content_type == "text/event-stream"
    framings = [(streamed, body)] if streamed else [(False, body), (True, as_stream(fixture.dialect, body))]
    if fixture.dialect is Dialect.GEMINI:
        framings += [(framed, in_envelope(text)) for framed, text in framings]
    for framed, text in framings:
        for variant in line_ends(text) if framed else [text]:
            for name, pack in ENCODINGS.values():
                packed = pack(variant)
                yield framed, name, iter([packed])
                yield framed, name, (packed[i : i + 1] for i in range(len(packed)))
        for at in range(len(text)):
            yield framed, "", iter([text[:at], text[at:]])
        packed = ENCODINGS["gzip"][1](text)
        for at in range(len(packed)):
            yield framed, "gzip", iter([packed[:at], packed[at:]])


def _cut(fixture: Fixture, folder: Path) -> tuple[int, int]:
    """How many cuts of a stream gave no more than was told, and how many there are."""
    body = (folder / f"{fixture.name}.json").read_bytes()
    stream = body if fixture.content_type == "text/event-stream" else as_stream(fixture.dialect, body)
    good = 0
    for at in range(len(stream)):
        reader = UsageReader(fixture.dialect, "text/event-stream")
        reader.feed(stream[:at])
        found = reader.result()
        if found.usage is None:
            good += found.unmetered_reason is not None
        elif fixture.usage is not None:
            good += found.usage.input <= fixture.usage.input and found.usage.output <= fixture.usage.output
    return good, len(stream)


def _speed_ms() -> float:
    event = (
        b'data: {"id":"c-1","object":"chat.completion.chunk","created":1700000000,"model":"m",'
        b'"choices":[{"index":0,"delta":{"content":"w"},"finish_reason":null}],"usage":null}\n\n'
    )
    blob = event * ((20 << 20) // len(event))
    pieces = [blob[at : at + 65536] for at in range(0, len(blob), 65536)]
    reader = UsageReader(Dialect.CHAT, "text/event-stream")
    began = time.perf_counter()
    for piece in pieces:
        reader.feed(piece)
    reader.result()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    print(table(run()))

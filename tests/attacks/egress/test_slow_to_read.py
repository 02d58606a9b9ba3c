"""Answers that were made to be slow to read for what they used: they are read in steps, and other sessions' calls go on in between."""

import asyncio
import gzip
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest
import zstandard

from amem.egress import contexts, encodings, server, sse
from amem.egress.contexts import Contexts
from amem.egress.encodings import DecodeError
from amem.egress.meter import CallRow
from amem.egress.sse import SseReader
from amem.egress.usage import UsageReader
from amem.model.call import Dialect
from tests.attacks.egress.test_lying_upstream import CHUNKED, chunk, upstream
from tests.egress.support import Session, call, session

USED = b'"model":"m","usage":{"input_tokens":7,"output_tokens":3}}'
TINY = b'{"type":"message","content":[%s0],' + USED
JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def whole(body: bytes, encoding: bytes = b"") -> bytes:
    return JSON + encoding + b"content-length: %d\r\n\r\n%s" % (len(body), body)


EVENT = b'data: {"type":"message_start","message":{"content":[' + b"[]," * 1_000_000 + b"0]," + USED + b"}\n\n"
SLOW: dict[str, bytes] = {
    "an answer of tiny values": whole(TINY % (b"[]," * 300_000)),
    "an answer that expands to tiny values": whole(gzip.compress(TINY % (b"[]," * 2_000_000)), b"content-encoding: gzip\r\n"),
    "an event of tiny values": CHUNKED + chunk(EVENT) + b"0\r\n\r\n",
}


@pytest.mark.parametrize("shape", SLOW)
def test_other_sessions_calls_go_on_while_an_answer_is_read(tmp_path: Path, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness has the whole answer by then; between that and the answer's row others make calls of their own."""

    async def run() -> None:
        seen: list[str] = []
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
        async with upstream(SLOW[shape]) as base, session(tmp_path / "one", base_url=base) as slow, session(tmp_path / "other") as s:
            record = slow.meter.record

            def recorded(row: CallRow) -> None:
                seen.append("row")
                record(row)

            monkeypatch.setattr(slow.meter, "record", recorded)
            assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 200
            path, body = call(Dialect.ANTHROPIC)
            async with slow.client.post(slow.url + path, data=body) as answer:
                await answer.content.readexactly(answer.content_length or len(EVENT))
                while "row" not in seen:
                    assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 200
                    seen.append("call")
            assert seen.index("row") >= 2, seen
            [row] = slow.rows()
            assert (row["input"], row["output"], row["unmetered_reason"]) == (7, 3, None)

    asyncio.run(run())


def test_a_session_that_ends_meanwhile_leaves_a_floor_and_does_not_wait_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SETTLE_S", 0.0)

    async def run() -> Session:
        async with upstream(SLOW["an answer of tiny values"]) as base, session(tmp_path, base_url=base) as s:
            assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 200
        return s

    ended = asyncio.run(run())
    [row] = ended.kept()
    assert (row["status"], row["partial"], row["input"], row["unmetered_reason"]) == (200, 1, None, "cut")


NOTHING = b"\x50\x2a\x4d\x18\x00\x00\x00\x00"
"""A zstd frame that is skipped."""
BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip": ("gzip", lambda: gzip.compress(b" " * (70 << 20), 1)),
    "gzip within gzip": ("gzip, gzip", lambda: gzip.compress(gzip.compress(b" " * (70 << 20), 1))),
    "zstd": ("zstd", lambda: zstandard.compress(b" " * (70 << 20))),
    "br": ("br", lambda: brotli.compress(b" " * (70 << 20), quality=1)),
    "zstd frames of nothing, within gzip": ("zstd, gzip", lambda: gzip.compress(NOTHING * (1 << 20), 1)),
    "gzip members of nothing": ("gzip", lambda: gzip.compress(b"") * 10_000),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_ends_early_and_gives_others_their_turn_until_then(bomb: str) -> None:
    encoding, packed = BOMBS[bomb][0], BOMBS[bomb][1]()
    unpack = encodings.decoder(encoding)
    assert unpack is not None
    sizes: list[int] = []
    with pytest.raises(DecodeError):
        sizes.extend(map(len, unpack.feed(packed)))
    assert sum(sizes) <= encodings._FREE_BYTES
    reader = UsageReader(Dialect.ANTHROPIC, "application/json", encoding)
    turns = sum(1 for _ in reader.steps(packed))
    assert turns >= sum(sizes) // (1 << 17)
    assert reader.result().unmetered_reason == "bad_encoding"


def test_an_event_of_very_many_lines_is_dropped_before_they_are_made() -> None:
    reader = SseReader()
    data = b"data: x\n" * 100 + b":\n" * sse.MAX_LINES
    assert reader.feed(data + b"\n" + b"data: next\n\n") == [sse.Event(b"", b"next")]
    assert reader.dropped == 1


def test_a_kept_answer_that_expands_is_sealed_in_parts_and_its_line_says_no_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads as more than a short answer is never held whole, and a credential in it is sealed all the same."""
    monkeypatch.setattr(contexts, "_PARSED_BYTES", 1 << 20)
    longest: list[int] = []

    def mask(data: bytes) -> bytes:
        longest.append(len(data))
        return data.replace(b"planted", b"*******")

    body = TINY % (b'["x"],' * 700_000 + b'"planted",')

    async def run() -> None:
        keeper = Contexts(tmp_path / "ctx", mask)
        answer = whole(gzip.compress(body), b"content-encoding: gzip\r\n")
        async with upstream(answer) as base, session(tmp_path, base_url=base, contexts=keeper) as s:
            assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 200

    asyncio.run(run())
    [line] = contexts.read(tmp_path / "ctx")
    assert contexts.body(tmp_path / "ctx", line["response"]) == body.replace(b"planted", b"*******")
    assert "content_encoding" not in line
    assert max(longest) < 3 << 20

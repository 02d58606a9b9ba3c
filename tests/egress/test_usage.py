import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.egress.usage import Metered, UsageReader
from amem.model.call import Dialect, Usage
from tests.egress.fixtures_table import FIXTURES, Fixture
from tests.egress.variants import ENCODINGS, as_stream, in_envelope, line_ends
from tests.shared import shared_path

each = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
each_encoding = pytest.mark.parametrize("encoding", ENCODINGS)


def body_of(fixture: Fixture) -> bytes:
    return shared_path(f"data/usage-fixtures/{fixture.name}.json").read_bytes()


def read(dialect: Dialect, *pieces: bytes, content_type: str = "", content_encoding: str = "") -> Metered:
    reader = UsageReader(dialect, content_type, content_encoding)
    for piece in pieces:
        reader.feed(piece)
    return reader.result()


def exact(fixture: Fixture, found: Metered) -> None:
    reason = None if fixture.usage is not None else "no_usage"
    assert (found.usage, found.model, found.complete, found.unmetered_reason) == (fixture.usage, fixture.model, True, reason)


@each
@each_encoding
def test_figures_of_a_fixture_are_exact_in_every_encoding(fixture: Fixture, encoding: str) -> None:
    name, pack = ENCODINGS[encoding]
    exact(fixture, read(fixture.dialect, pack(body_of(fixture)), content_type=fixture.content_type, content_encoding=name))


@each
@each_encoding
def test_a_fixture_is_exact_when_it_comes_byte_by_byte(fixture: Fixture, encoding: str) -> None:
    name, pack = ENCODINGS[encoding]
    packed = pack(body_of(fixture))
    exact(fixture, read(fixture.dialect, *(packed[i : i + 1] for i in range(len(packed))), content_encoding=name))


@each
def test_a_fixture_is_exact_when_it_is_split_at_any_byte(fixture: Fixture) -> None:
    body = body_of(fixture)
    for at in range(0, len(body), 1 if len(body) < 3000 else 7):  # the benchmark P12 takes every byte of the long one too
        exact(fixture, read(fixture.dialect, body[:at], body[at:], content_type=fixture.content_type))


@each
def test_a_whole_answer_is_exact_as_a_stream_with_any_line_ends(fixture: Fixture) -> None:
    body = body_of(fixture)
    stream = body if fixture.content_type == "text/event-stream" else as_stream(fixture.dialect, body)
    for variant in line_ends(stream):
        exact(fixture, read(fixture.dialect, variant, content_type="text/event-stream"))


@pytest.mark.parametrize("fixture", [f for f in FIXTURES if f.dialect is Dialect.GEMINI], ids=lambda fixture: fixture.name)
def test_the_code_assist_envelope_hides_nothing(fixture: Fixture) -> None:
    body = body_of(fixture)
    exact(fixture, read(fixture.dialect, in_envelope(body)))
    stream = body if fixture.content_type == "text/event-stream" else as_stream(fixture.dialect, body)
    exact(fixture, read(fixture.dialect, in_envelope(stream)))


@each
def test_a_cut_answer_gives_what_it_told_by_then_and_never_more(fixture: Fixture) -> None:
    body = body_of(fixture)
    stream = body if fixture.content_type == "text/event-stream" else as_stream(fixture.dialect, body)
    for at in range(0, len(stream), 1 if len(stream) < 3000 else 7):
        found = read(fixture.dialect, stream[:at], content_type="text/event-stream")
        if found.usage is None:
            # Before the first byte no shape is known, and that too is a cut.
            assert found.unmetered_reason == "no_usage" if found.complete else found.unmetered_reason == "cut"
        elif fixture.usage is None:
            pytest.fail("usage out of nothing")
        else:
            told, full = found.usage, fixture.usage
            assert told.input <= full.input
            assert told.output <= full.output
            assert told.total == full.total or not found.complete


def test_a_cut_whole_answer_is_unmetered_and_not_zero() -> None:
    for fixture in FIXTURES:
        if fixture.content_type == "application/json":
            body = body_of(fixture).rstrip()
            assert read(fixture.dialect, body[:-1])[0::3] == (None, False)
            assert read(fixture.dialect, body[:-1]).unmetered_reason == "cut"


@pytest.mark.parametrize(
    ("content_encoding", "data", "reason"),
    [
        ("compress", b"{}", "unknown_encoding"),
        ("gzip, gzip, gzip, gzip", b"{}", "unknown_encoding"),
        ("gzip", b"not gzip at all", "bad_encoding"),
        ("br", b"\xff\xff\xff\xff not brotli", "bad_encoding"),
        ("zstd", b"not zstd at all", "bad_encoding"),
        ("", b"<html>busy</html>", "unknown_shape"),
        ("", b'{"usage": \xff}', "bad_json"),
        ("", b"", "cut"),
        ("", b"{}", "no_usage"),
        ("", b'{"usage":{"prompt_tokens":-1,"completion_tokens":2}}', "bad_figures"),
        ("", b'{"usage":{"prompt_tokens":"7","completion_tokens":2}}', "bad_figures"),
        ("", b'{"usage":{"prompt_tokens":true,"completion_tokens":2}}', "bad_figures"),
        ("", b'{"usage":{"prompt_tokens":1e99,"completion_tokens":2}}', "bad_figures"),
        ("", b"[" * 200_000, "bad_json"),
        ("", b"[" * 600_000, "cut"),
        ("", b'{"a":[' + b"[]," * 300_000 + b"0]}", "no_usage"),
    ],
)
def test_what_cannot_be_read_is_unmetered_with_its_reason(content_encoding: str, data: bytes, reason: str) -> None:
    found = read(Dialect.CHAT, data, content_encoding=content_encoding)
    assert (found.usage, found.complete if reason != "no_usage" else False, found.unmetered_reason) == (
        None,
        reason == "bad_figures",
        reason,
    )


def test_a_compressed_stream_that_turns_to_garbage_keeps_what_it_told() -> None:
    import zlib

    packer = zlib.compressobj(wbits=31)
    start = b'data: {"type":"message_start","message":{"model":"m","id":"msg_1","usage":{"input_tokens":9,"output_tokens":1}}}\n\n'
    packed = packer.compress(start) + packer.flush(zlib.Z_SYNC_FLUSH)
    found = read(Dialect.ANTHROPIC, packed, b"\x00garbage\xff" * 50, content_encoding="gzip")
    assert found == Metered(Usage(input=9, output=1), "m", "msg_1", False, None)


@pytest.mark.parametrize(
    ("dialect", "usage", "expected"),
    [
        # xAI: reasoning beside the completion, and the total says so
        (
            Dialect.CHAT,
            {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135, "completion_tokens_details": {"reasoning_tokens": 94}},
            Usage(input=32, output=103, reasoning=94),
        ),
        # OpenAI: reasoning within it
        (
            Dialect.CHAT,
            {"prompt_tokens": 32, "completion_tokens": 103, "total_tokens": 135, "completion_tokens_details": {"reasoning_tokens": 94}},
            Usage(input=32, output=103, reasoning=94),
        ),
        # DeepSeek's spelling of a cache read
        (
            Dialect.CHAT,
            {"prompt_tokens": 100, "completion_tokens": 1, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
            Usage(input=36, output=1, cache_read=64),
        ),
        # a gateway that left the cache out of the prompt
        (
            Dialect.CHAT,
            {"prompt_tokens": 10, "completion_tokens": 1, "cache_read_input_tokens": 900},
            Usage(input=10, output=1, cache_read=900),
        ),
        (Dialect.CHAT, {"prompt_tokens": 3.0, "completion_tokens": 2.0, "prompt_tokens_details": None}, Usage(input=3, output=2)),
        (
            Dialect.RESPONSES,
            {
                "input_tokens": 36,
                "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 6},
                "output_tokens": 87,
                "output_tokens_details": {"reasoning_tokens": 64},
                "total_tokens": 123,
            },
            Usage(input=20, output=87, cache_read=10, cache_write=6, reasoning=64),
        ),
    ],
)
def test_spellings_of_openai_figures_come_to_one_vocabulary(dialect: Dialect, usage: object, expected: Usage) -> None:
    assert read(dialect, json.dumps({"model": "m", "usage": usage}).encode()).usage == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (
            {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 7, "totalTokenCount": 22},
            Usage(input=10, output=12, reasoning=7),
        ),
        (
            {"promptTokenCount": 10, "candidatesTokenCount": 12, "thoughtsTokenCount": 7, "totalTokenCount": 22},
            Usage(input=10, output=12, reasoning=7),
        ),
        (
            {
                "promptTokenCount": 10,
                "cachedContentTokenCount": 4,
                "toolUsePromptTokenCount": 3,
                "candidatesTokenCount": 1,
                "totalTokenCount": 14,
            },
            Usage(input=9, output=1, cache_read=4),
        ),
        ({"promptTokenCount": 10, "totalTokenCount": 10}, Usage(input=10, output=0)),
        ({"candidatesTokenCount": 3, "totalTokenCount": 3}, Usage(input=0, output=3)),
        ({}, None),
    ],
)
def test_gemini_figures_add_up_to_their_total(metadata: object, expected: Usage | None) -> None:
    answer = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": metadata}
    assert read(Dialect.GEMINI, json.dumps(answer).encode()).usage == expected


def test_a_gemini_array_counts_its_last_whole_element() -> None:
    parts = [
        {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": n, "totalTokenCount": 5 + n}, "modelVersion": "g"}
        for n in (1, 2, 3)
    ]
    whole = json.dumps(parts).encode()
    assert read(Dialect.GEMINI, whole).usage == Usage(input=5, output=3)
    cut = read(Dialect.GEMINI, whole[: whole.rindex(b"{")])
    assert (cut.usage, cut.complete) == (Usage(input=5, output=2), False)


def test_a_zero_in_a_later_event_does_not_take_an_input_back() -> None:
    events = [
        {
            "type": "message_start",
            "message": {"model": "m", "usage": {"input_tokens": 70, "cache_read_input_tokens": 3, "output_tokens": 0}},
        },
        {"type": "message_delta", "usage": {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 4}},
        {"type": "message_stop"},
    ]
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    assert read(Dialect.ANTHROPIC, stream).usage == Usage(input=70, output=4, cache_read=3)


def test_figures_quoted_in_the_text_of_an_answer_are_not_figures() -> None:
    trick = json.dumps({"type": "message_delta", "usage": {"output_tokens": 999999}})
    events = [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": f"data: {trick}\n\ndata: {trick}"}},
        {"type": "message_delta", "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    assert read(Dialect.ANTHROPIC, stream).usage == Usage(input=1, output=2)


@pytest.mark.parametrize("dialect", Dialect)
def test_a_long_answer_is_exact_however_it_is_cut_into_pieces(dialect: Dialect) -> None:
    """Long enough that events are passed over unread; the figures stand at its two ends, and near-figures in between."""
    fixture = next(f for f in FIXTURES if f.dialect is dialect and f.usage is not None and f.content_type == "application/json")
    stream = as_stream(dialect, body_of(fixture))
    mark = b"\r\n\r\n" if b"\r\n" in stream else b"\n\n"
    first, _, rest = stream.partition(mark)
    filler = {"type": "x.delta", "delta": 'quoted "usage": { and "response": { and "message_delta" and usageMetadata [DONE]', "usage": None}
    middle = (b"data: " + json.dumps(filler).encode() + mark) * 300 + (b"data: " + json.dumps({"choices": []}).encode() + mark) * 3000
    stream = first + mark + middle + rest
    for size in (1 << 20, 65536, 4096, 1000, 33, 7):
        exact(fixture, read(dialect, *(stream[at : at + size] for at in range(0, len(stream), size))))


@given(
    st.sampled_from(list(Dialect)), st.lists(st.binary(max_size=64), max_size=12), st.sampled_from(["", "gzip", "br", "zstd", "deflate"])
)
def test_no_bytes_make_the_reader_raise_or_invent_usage(dialect: Dialect, pieces: list[bytes], content_encoding: str) -> None:
    found = read(dialect, *pieces, content_encoding=content_encoding)
    assert found.usage is None
    assert found.unmetered_reason is not None


_EMPTY = b"[]," * 250_000 + b"0"
_WHOLE = (
    b'{"type":"message","id":"msg_1","model":"m","content":[%s,[],[],[],[],[],[],[],[]],"usage":{"input_tokens":7,"output_tokens":3}}'
    % _EMPTY
)
LONG: dict[str, tuple[Dialect, bytes]] = {
    "whole": (Dialect.ANTHROPIC, _WHOLE),
    "an event": (
        Dialect.RESPONSES,
        b'data: {"type":"response.completed","response":{"id":"resp_1","model":"m","output":[%s,[],[],[],[],[],[],[],[]],'
        b'"usage":{"input_tokens":7,"output_tokens":3}}}\n\n' % _EMPTY,
    ),
    "embeddings": (
        Dialect.CHAT,
        b'{"data":[{"embedding":[%s]}],"model":"m","id":"e","usage":{"prompt_tokens":7,"completion_tokens":3}}'
        % (b"0.1," * 600_000 + b"0"),
    ),
}


@pytest.mark.parametrize("case", LONG)
def test_an_answer_with_very_many_values_is_metered_in_steps(case: str) -> None:
    dialect, body = LONG[case]
    reader = UsageReader(dialect)
    assert sum(1 for _ in reader.steps(body)) >= 100
    told = reader.result()
    assert (told.usage, told.model, told.complete) == (Usage(input=7, output=3), "m", True)

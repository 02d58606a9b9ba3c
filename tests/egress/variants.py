"""Other ways in which the same answer can come: as events, in an envelope, compressed, in pieces."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator

import brotli
import zstandard

from amem.model.call import Dialect


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def _two_members(data: bytes) -> bytes:
    half = len(data) // 2
    return gzip.compress(data[:half]) + gzip.compress(data[half:])


ENCODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "plain": ("", bytes),
    "identity": ("identity", bytes),
    "gzip": ("gzip", gzip.compress),
    "gzip in two members": ("gzip", _two_members),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", _raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstandard.compress),
    "gzip, then br": ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
}


def as_stream(dialect: Dialect, body: bytes) -> bytes:
    """A whole answer as the events that its provider would stream it in."""
    answer = json.loads(body)
    match dialect:
        case Dialect.ANTHROPIC:
            usage = answer["usage"]
            start = {**answer, "content": [], "usage": {**usage, "output_tokens": 1}}
            events = [
                {"type": "message_start", "message": start},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
                {"type": "message_delta", "delta": {}, "usage": {"output_tokens": usage["output_tokens"]}},
                {"type": "message_stop"},
            ]
            return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
        case Dialect.RESPONSES:
            first = {"type": "response.created", "response": {**answer, "usage": None, "status": "in_progress"}}
            last = {"type": "response.completed", "response": answer}
            return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in (first, last))
        case Dialect.CHAT:
            chunk = {"id": answer.get("id"), "model": answer["model"], "choices": [{"index": 0, "delta": {"content": "hi"}}]}
            last = {**chunk, "choices": []} | ({"usage": answer["usage"]} if "usage" in answer else {})
            return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in (chunk, last)) + b"data: [DONE]\n\n"
        case Dialect.GEMINI:
            early = {**answer, "usageMetadata": {"promptTokenCount": 1}, "candidates": [{"content": {"parts": [{"text": "h"}]}}]}
            return b"".join(f"data: {json.dumps(event)}\r\n\r\n".encode() for event in (early, answer))


def in_envelope(body: bytes) -> bytes:
    """A Gemini answer as Code Assist sends it; a stream keeps its framing."""
    if not body.lstrip().startswith(b"data:"):
        return json.dumps({"response": json.loads(body), "traceId": "t"}).encode()
    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")]
    return b"".join(f"data: {json.dumps({'response': event})}\n\n".encode() for event in events)


def line_ends(body: bytes) -> Iterator[bytes]:
    """A stream with each of the line ends that the event-stream format allows."""
    yield body
    yield body.replace(b"\n", b"\r\n")
    yield body.replace(b"\n", b"\r")

"""Which tools an answer asks for: their names, in order, from a whole answer or a stream of any dialect.

Pure; never raises. What cannot be read asks for nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping

from amem.egress import weight
from amem.egress.encodings import DecodeError, decoder
from amem.egress.sse import SseReader
from amem.model.call import Dialect
from amem.typed import Any

_MOST = 256
_MOST_BYTES = 8 << 20
"""A longer answer is not read."""


def tools_asked(dialect: Dialect, body: bytes, content_encoding: str = "") -> list[str]:
    """The names of the tools that an answer asks to be called, each as often as it is asked for."""
    unpack = decoder(content_encoding)
    if unpack is None:
        return []
    pieces, size = [], 0
    try:
        for piece in unpack.feed(body):
            size += len(piece)
            if size > _MOST_BYTES:
                return []
            pieces.append(piece)
    except DecodeError:
        pass  # what came before the fault still counts
    read = _READERS[dialect]
    names = [name for value in _values(b"".join(pieces)) for name in read(value)]
    return names[:_MOST]


def _values(text: bytes) -> Iterator[Mapping[str, Any]]:
    if text.lstrip()[:1] in (b"{", b"["):
        found = _loads(text)
        yield from (value for value in (found if isinstance(found, list) else [found]) if isinstance(value, dict))
        return
    reader = SseReader()
    for event in [*reader.feed(text), *reader.end()]:
        value = _loads(event.data)
        if isinstance(value, dict):
            yield value


def _loads(text: bytes) -> Any:
    try:
        return None if weight.is_heavy(text) else json.loads(text)
    except (ValueError, RecursionError):
        return None


def _items(value: Any, key: str) -> list[Mapping[str, Any]]:
    """The objects in a list member; none when it is anything else."""
    found = value.get(key) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _name(value: Any) -> Iterator[str]:
    name = value.get("name") if isinstance(value, dict) else None
    if isinstance(name, str) and name:
        yield name[:200]


def _anthropic(value: Mapping[str, Any]) -> Iterator[str]:
    for block in [value.get("content_block"), *_items(value, "content")]:
        if isinstance(block, dict) and block.get("type") == "tool_use":
            yield from _name(block)


def _responses(value: Mapping[str, Any]) -> Iterator[str]:
    # A stream tells each item when it is done, and all of them again at its end; an answer in one piece tells them once.
    items = [value.get("item")] if value.get("type") == "response.output_item.done" else _items(value, "output")
    for item in items:
        if isinstance(item, dict) and str(item.get("type")).endswith("_call"):
            yield from _name(item)


def _chat(value: Mapping[str, Any]) -> Iterator[str]:
    for choice in _items(value, "choices"):
        for side in ("delta", "message"):
            for call in _items(choice.get(side), "tool_calls"):
                yield from _name(call.get("function"))


def _gemini(value: Mapping[str, Any]) -> Iterator[str]:
    inner = value.get("response")
    for candidate in _items(inner if isinstance(inner, dict) else value, "candidates"):
        for part in _items(candidate.get("content"), "parts"):
            yield from _name(part.get("functionCall"))


_READERS: Mapping[Dialect, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    Dialect.ANTHROPIC: _anthropic,
    Dialect.RESPONSES: _responses,
    Dialect.CHAT: _chat,
    Dialect.GEMINI: _gemini,
}

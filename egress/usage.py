"""Read what a model call used from the bytes of its answer, in any dialect, framing, encoding and split.

Pure: no socket, no clock, and no copy of the answer beyond one event (or a short JSON body). `feed` never raises: the bytes
belong to somebody else and pass whatever they are. A figure that was not told is unknown, with a reason, and never zero.
However long an answer is or becomes, it can be read in short steps (`steps`), between which other work goes on.

Normalised as `amem.model.call.Usage`: input without cache (Anthropic's excludes it, OpenAI's and Gemini's include it),
output with reasoning (Gemini's and xAI's leave it out). An arithmetic rule is applied only where the answer's own total
confirms it; otherwise the stated figure stands.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from amem.egress.encodings import DecodeError, decoder
from amem.egress.members import MemberReader
from amem.egress.sse import Event, SseReader
from amem.model.call import Dialect, Usage
from amem.typed import Any, NamedTuple

_SHORT_BYTES = 1 << 18
"""A JSON text up to this length is read whole; of a longer one the members that say something, as they come."""
_STEP_BYTES = 1 << 16
_MEMBER_STEP_BYTES = 1 << 13
"""The members of bytes that were made to be slow take a few milliseconds for so many."""
_LARGEST = 1 << 53
_LOOK_AT_EVENTS = 4
_loads = json.JSONDecoder().decode


class Metered(NamedTuple):
    """What was read from an answer."""

    usage: Usage | None
    """None when the answer did not say, with `unmetered_reason`."""
    model: str | None
    """The model that the answer names."""
    response_id: str | None
    complete: bool
    """The answer came to its own end. An incomplete one with usage is a floor."""
    unmetered_reason: str | None
    """`no_usage`, `cut`, `unknown_encoding`, `bad_encoding`, `unknown_shape`, `bad_json`, `bad_figures` or `too_large`."""
    said: Mapping[str, str] = {}
    """What the usage says in words: where the call was computed, in which tier."""


class UsageReader:
    """`feed` the bytes of one answer as they passed, then ask for `result` once."""

    def __init__(self, dialect: Dialect, content_type: str = "", content_encoding: str = "") -> None:
        self._seen = _Seen()
        self._read = _READERS[dialect]
        self._words, self._needle = _NEEDLES[dialect]
        self._looked = 0
        self._event_stream = content_type.partition(";")[0].strip().lower() == "text/event-stream"
        self._decoder = decoder(content_encoding)
        self._fault = None if self._decoder is not None else "unknown_encoding"
        self._strange = False
        self._sse: SseReader | None = None
        self._json: list[bytes] | None = None
        self._json_bytes = 0
        self._members: MemberReader | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the body, still encoded as they came."""
        for _ in self.steps(data):
            pass

    def steps(self, data: bytes) -> Iterator[None]:
        """The same in steps of a few milliseconds at most, whatever the bytes are: a short piece is none, it is read at once."""
        if self._fault is not None:
            return
        assert self._decoder is not None
        try:
            for coded in _parts(data, _STEP_BYTES):
                for plain in self._decoder.feed(coded):
                    for part in _parts(plain, _STEP_BYTES):
                        yield from self._take(part)
                        if self._strange:
                            return
                        if len(part) in (0, _STEP_BYTES):
                            yield
                if len(coded) == _STEP_BYTES:
                    yield
        except DecodeError:
            self._fault = "bad_encoding"

    def ending(self) -> Iterator[None]:
        """What a stream left unfinished, read in such steps; nothing is fed any more."""
        if self._sse is not None:
            yield from self._events(self._sse.end())

    def result(self) -> Metered:
        """What the answer said. An answer that stopped in the middle gives what it had said by then."""
        for _ in self.ending():
            pass
        if self._members is not None:
            self._seen.done = self._members.done
            self._fault = self._fault or ("too_large" if self._members.given_up else None if self._members.done else "cut")
        elif self._json is not None and self._fault is None:
            self._fault = self._whole(b"".join(self._json))
        seen = self._seen
        usage = seen.usage()
        reason = None
        if usage is None:
            complete_without = "bad_figures" if seen.bad else "no_usage" if seen.done else "cut"
            if self._sse is not None and self._sse.dropped:
                complete_without = "too_large"
            reason = self._fault or complete_without
        return Metered(usage, seen.model, seen.response_id, seen.done and self._fault is None, reason, seen.said)

    def _take(self, data: bytes) -> Iterator[None]:
        if self._sse is not None:
            yield from self._events(self._sse.feed(data))
        elif self._members is not None:
            yield from self._long(self._members, data)
        elif self._json is not None:
            yield from self._keep(data)
        elif shape := self._shape(data):
            if shape == "sse":
                self._sse = SseReader()
            elif shape == "json":
                self._json = []
            else:
                self._fault, self._strange = "unknown_shape", True
                return
            yield from self._take(data)

    def _shape(self, data: bytes) -> str | None:
        """By the first byte that is not blank: gateways have sent JSON under text/event-stream, and the reverse."""
        start = data.lstrip(b" \t\r\n\xef\xbb\xbf")
        if not start:
            return None
        if start[:1] in (b"{", b"["):
            return "json"
        return "sse" if self._event_stream or start[:1] in (b"d", b"e", b"i", b"r", b":") else "unknown"

    def _keep(self, data: bytes) -> Iterator[None]:
        assert self._json is not None
        self._json.append(data)
        self._json_bytes += len(data)
        if self._json_bytes > _SHORT_BYTES:
            self._members, held = MemberReader(_TELLING, _WRAPS), b"".join(self._json)
            self._json.clear()
            yield from self._long(self._members, held)

    def _long(self, reader: MemberReader, data: bytes) -> Iterator[None]:
        for part in _parts(data, _MEMBER_STEP_BYTES):
            for value in reader.feed(part):
                self._read(value, self._seen)
            yield

    def _events(self, events: list[Event]) -> Iterator[None]:
        for event in events:
            data = event.data
            # Parsing each delta of a long answer would cost more than passing it on; most cannot hold a figure. The first few
            # are looked at whatever they hold, for the model's name.
            if self._looked >= _LOOK_AT_EVENTS:
                if len(data) <= _SHORT_BYTES and self._needle.search(data) is None:
                    continue
            else:
                self._looked += 1
                if self._looked == _LOOK_AT_EVENTS and self._sse is not None:
                    self._sse.wanted = self._words
            if data == b"[DONE]":
                self._seen.done = True
                continue
            if not data.startswith(b"{"):
                continue
            if len(data) > _SHORT_BYTES:
                yield from self._long(MemberReader(_TELLING, _WRAPS), data)
                continue
            try:
                value = _loads(data.decode())
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                self._read(value, self._seen)

    def _whole(self, body: bytes) -> str | None:
        """Read a JSON body; the fault it has, or None."""
        try:
            text = body.removeprefix(b"\xef\xbb\xbf").decode()
        except UnicodeDecodeError:
            return "bad_json"
        try:
            value = _loads(text)
        except RecursionError:
            return "bad_json"
        except ValueError:
            if text.lstrip()[:1] != "[":
                return "cut"
            # Gemini streams one array when it is not asked for events; its whole elements count when it is cut.
            for element in _elements(text):
                self._read(element, self._seen)
            self._seen.done = False
            return None
        if not isinstance(value, dict | list):
            return "bad_json"
        for element in value if isinstance(value, list) else [value]:
            if isinstance(element, dict):
                self._read(element, self._seen)
        self._seen.done = True
        return None


def _parts(data: bytes, size: int) -> Iterable[bytes]:
    return (data,) if len(data) <= size else (data[start : start + size] for start in range(0, len(data), size))


def _elements(text: str) -> Iterator[dict[str, Any]]:
    scan = json.JSONDecoder().raw_decode
    at = text.index("[") + 1
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            value, at = scan(text, at)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            yield value


@dataclass(slots=True)
class _Seen:
    """What an answer has said so far, in the provider's own figures."""

    model: str | None = None
    response_id: str | None = None
    done: bool = False
    bad: bool = False
    figures: dict[str, int] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    make: Callable[[Mapping[str, int]], Usage | None] = lambda figures: None

    def note(self, name: str, value: object) -> None:
        """Keep a figure that was told; null tells nothing."""
        if value is None:
            return
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST:
            self.figures[name] = value
        else:
            self.bad = True

    def identify(self, model: object, response_id: object) -> None:
        """Keep who answered, the first time it is told."""
        if self.model is None and isinstance(model, str) and model:
            self.model = _plain(model)
        if self.response_id is None and isinstance(response_id, str) and response_id:
            self.response_id = _plain(response_id)

    def usage(self) -> Usage | None:
        """The figures in amem's vocabulary; None when they do not tell both sides, or one of them cannot be."""
        return None if self.bad else self.make(self.figures)


def _plain(name: str) -> str:
    """A name as it can be kept and shown: an answer may say anything, half of a surrogate pair too, which no file takes."""
    return name[:256] if name.isprintable() else "".join(char if char.isprintable() else "?" for char in name[:256])


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# ---- Anthropic Messages ----------------------------------------------------------------


def _anthropic(value: Mapping[str, Any], seen: _Seen) -> None:
    seen.make = _anthropic_usage
    match value.get("type"):
        case "message_start":
            message = _table(value.get("message"))
            seen.identify(message.get("model"), message.get("id"))
            _anthropic_figures(_table(message.get("usage")), seen)
        case "message_delta":
            _anthropic_figures(_table(value.get("usage")), seen)
        case "message_stop":
            seen.done = True
        case "message" | None:
            seen.identify(value.get("model"), value.get("id"))
            _anthropic_figures(_table(value.get("usage")), seen)


def _anthropic_figures(usage: Mapping[str, Any], seen: _Seen) -> None:
    """Figures are cumulative; a zero in a later event does not take back an input that was told (some gateways send one)."""
    written = usage.get("cache_creation_input_tokens")
    if written is None and isinstance(usage.get("cache_creation"), dict):
        parts = [count for count in usage["cache_creation"].values() if isinstance(count, int)]
        written = sum(parts) if parts else None
    inputs = {"input": usage.get("input_tokens"), "cache_read": usage.get("cache_read_input_tokens"), "cache_write": written}
    for name, told in inputs.items():
        if told != 0 or name not in seen.figures:
            seen.note(name, told)
    seen.said.update((name, told[:64]) for name, told in usage.items() if isinstance(told, str))
    seen.note("output", usage.get("output_tokens"))
    seen.note("reasoning", _table(usage.get("output_tokens_details")).get("thinking_tokens"))


def _anthropic_usage(told: Mapping[str, int]) -> Usage | None:
    if "input" not in told or "output" not in told:
        return None
    return Usage(
        input=told["input"], output=told["output"],
        cache_read=told.get("cache_read", 0), cache_write=told.get("cache_write", 0), reasoning=told.get("reasoning"),
    )  # fmt: skip


# ---- OpenAI Responses ------------------------------------------------------------------

_ENDED = frozenset(("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done"))


def _responses(value: Mapping[str, Any], seen: _Seen) -> None:
    seen.make = _openai_usage
    inner = value.get("response")
    response = inner if isinstance(inner, dict) else value
    seen.identify(response.get("model"), response.get("id"))
    if isinstance(usage := response.get("usage"), dict):
        _openai_figures(usage, seen)
    if value.get("type") in _ENDED:
        seen.done = True


# ---- OpenAI chat completions -----------------------------------------------------------


def _chat(value: Mapping[str, Any], seen: _Seen) -> None:
    seen.make = _openai_usage
    seen.identify(value.get("model"), value.get("id"))
    usage = value.get("usage")
    if not isinstance(usage, dict):
        # Where a stream's figures stand at Groq and at Moonshot (2026-11).
        first = value.get("choices")
        usage = _table(value.get("x_groq")).get("usage") or (_table(first[0]).get("usage") if isinstance(first, list) and first else None)
    if isinstance(usage, dict):
        _openai_figures(usage, seen)


_OPENAI_NAMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("input", ("input_tokens", "prompt_tokens")),
    ("output", ("output_tokens", "completion_tokens")),
    ("total", ("total_tokens",)),
    ("cache_read", ("prompt_cache_hit_tokens", "cache_read_input_tokens")),
    ("cache_write", ("cache_creation_input_tokens",)),
)
_OPENAI_DETAILS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("cache_read", "input", ("cached_tokens",)),
    ("cache_write", "input", ("cache_write_tokens", "cache_creation_tokens")),
    ("reasoning", "output", ("reasoning_tokens",)),
)


def _openai_figures(usage: Mapping[str, Any], seen: _Seen) -> None:
    for name, spellings in _OPENAI_NAMES:
        for spelling in spellings:
            seen.note(name, usage.get(spelling))
    sides = {
        "input": _table(usage.get("input_tokens_details") or usage.get("prompt_tokens_details")),
        "output": _table(usage.get("output_tokens_details") or usage.get("completion_tokens_details")),
    }
    for name, side, spellings in _OPENAI_DETAILS:
        for spelling in spellings:
            seen.note(name, sides[side].get(spelling))


def _openai_usage(told: Mapping[str, int]) -> Usage | None:
    whole, total, reasoning = told.get("input"), told.get("total"), told.get("reasoning")
    if whole is None:
        return None
    output = told.get("output")
    if output is None:  # embeddings tell a prompt and a total
        if total is None or total < whole:
            return None
        output = total - whole
    elif reasoning and total == whole + output + reasoning:
        output += reasoning  # xAI counts reasoning beside the completion (2026-11)
    read, write = told.get("cache_read", 0), told.get("cache_write", 0)
    # A gateway that translates Anthropic's figures may leave the cache out of the prompt; then it is not in there to subtract.
    fresh = whole - read - write if read + write <= whole else whole
    return Usage(input=fresh, output=output, cache_read=read, cache_write=write, reasoning=reasoning)


# ---- Gemini and Code Assist ------------------------------------------------------------

_GEMINI_NAMES = {
    "promptTokenCount": "input", "candidatesTokenCount": "output", "thoughtsTokenCount": "reasoning", "totalTokenCount": "total",
    "cachedContentTokenCount": "cache_read", "toolUsePromptTokenCount": "tools",
}  # fmt: skip


def _gemini(value: Mapping[str, Any], seen: _Seen) -> None:
    seen.make = _gemini_usage
    inner = value.get("response")
    answer = inner if isinstance(inner, dict) else value  # Code Assist wraps each answer
    seen.identify(answer.get("modelVersion"), answer.get("responseId"))
    if isinstance(metadata := answer.get("usageMetadata"), dict):
        for spelling, name in _GEMINI_NAMES.items():
            seen.note(name, metadata.get(spelling))
    candidates = answer.get("candidates")
    if isinstance(candidates, list) and any(_table(candidate).get("finishReason") for candidate in candidates):
        seen.done = True
    if _table(answer.get("promptFeedback")).get("blockReason"):
        seen.done = True


def _gemini_usage(told: Mapping[str, int]) -> Usage | None:
    """Protobuf's JSON leaves zeros out, so a missing part is zero once the total is there."""
    if "input" not in told and "total" not in told:
        return None
    tools, thoughts, total = told.get("tools", 0), told.get("reasoning"), told.get("total")
    prompt = told.get("input", 0) + tools
    spoken = told.get("output")
    if spoken is None:
        spoken = max(0, total - prompt - (thoughts or 0)) if total is not None else 0
    # Thoughts stand beside the candidates; where the total says they are within them, they are not counted twice.
    within = bool(thoughts) and total == prompt + spoken
    output = spoken if within else spoken + (thoughts or 0)
    read = min(told.get("cache_read", 0), prompt)
    return Usage(input=prompt - read, output=output, cache_read=read, reasoning=thoughts)


_READERS: Mapping[Dialect, Callable[[Mapping[str, Any], _Seen], None]] = {
    Dialect.ANTHROPIC: _anthropic,
    Dialect.RESPONSES: _responses,
    Dialect.CHAT: _chat,
    Dialect.GEMINI: _gemini,
}
_NEEDLES: Mapping[Dialect, tuple[tuple[bytes, ...], re.Pattern[bytes]]] = {
    Dialect.ANTHROPIC: ((b'"message_',), re.compile(rb'"message_')),
    Dialect.RESPONSES: ((b'"response"', b"[DONE]"), re.compile(rb'"response"\s*:|\[DONE\]')),
    Dialect.CHAT: ((b'"usage"', b"[DONE]"), re.compile(rb'"usage"\s*:\s*\{|\[DONE\]')),
    Dialect.GEMINI: ((b"usageMetadata", b"finishReason", b"blockReason"), re.compile(rb"usageMetadata|finishReason|blockReason")),
}
"""What an event with figures has in it: words, found at ten times the speed of a pattern in what has none, and the pattern."""
_WRAPS = ("response", "message")
"""Members that may hold the answer itself, in an event or an envelope."""
_TELLING = (
    "type", "id", "model", "usage", "x_groq", "choices", "responseId", "modelVersion", "usageMetadata", "candidates", "promptFeedback",
)  # fmt: skip
"""Members that the readers above look at."""

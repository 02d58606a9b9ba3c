"""The final text of a headless run, read from what the harness printed. The bytes are hostile: nothing here can raise.

Each kind is a reader of JSON events that knows where the answer and the harness's own word on a failure stand. Where
no event is recognised (the user's own arguments may ask for another output), the text is passed on as it is.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from amem.harnesses.base import AnswerKind
from amem.typed import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a headless run said."""

    text: str
    """The final text; empty when there was none."""
    error: str | None = None
    """The harness's own words on why it failed, where it said so."""


Event = dict[str, Any]


def read(kind: AnswerKind, stdout: bytes) -> Answer:
    """Read the answer of a headless run."""
    text = stdout.decode("utf-8", "replace").strip()
    reader = _READERS.get(kind)
    found = reader(list(_events(text))) if reader is not None else None
    if found is None:
        return Answer(text=text)
    return Answer(text=_encodable(found.text), error=None if found.error is None else _encodable(found.error))


def _encodable(text: str) -> str:
    """Without half surrogate pairs, which JSON can escape and no stream or file can take."""
    return text.encode("utf-8", "replace").decode()


def _events(text: str) -> Iterator[Event]:
    """The JSON objects of a document, an array or a stream of lines; what is none is passed over."""
    whole = _json(text)
    if isinstance(whole, dict):
        yield whole
    elif isinstance(whole, list):
        yield from (item for item in whole if isinstance(item, dict))
    else:
        for line in text.splitlines():
            if line.lstrip().startswith("{") and isinstance(item := _json(line), dict):
                yield item


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _at(event: Event, *path: str) -> Any:
    value: Any = event
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _last(values: Iterator[Any]) -> str:
    """The last text that is not empty."""
    return next((text for value in reversed(list(values)) if (text := _text(value))), "")


def _blocks(content: Any, kind: str = "text") -> str:
    """The joined text of content blocks, or the content itself when it is a string."""
    if not isinstance(content, list):
        return _text(content)
    texts = (block.get("text") for block in content if isinstance(block, dict) and block.get("type") == kind)
    return "".join(text for text in texts if isinstance(text, str)).strip()


def _claude(events: list[Event]) -> Answer | None:
    """Also Qwen's, which prints the same events."""
    if not any(event.get("type") in ("system", "assistant", "result") for event in events):
        return None
    result = next((event for event in reversed(events) if event.get("type") == "result"), None)
    if result is None:
        said = (_blocks(_at(event, "message", "content")) for event in events if event.get("type") == "assistant")
        return Answer(text=_last(said), error="the harness ended without a result")
    text = _text(result.get("result"))
    if result.get("is_error"):
        return Answer(text="", error=text or _text(_at(result, "error", "message")) or _text(result.get("subtype")) or "failed")
    return Answer(text=text)


def _codex(events: list[Event]) -> Answer | None:
    if not any(isinstance(kind := event.get("type"), str) and kind.startswith(("thread.", "turn.", "item.")) for event in events):
        return None
    items = [event["item"] for event in events if event.get("type") == "item.completed" and isinstance(event.get("item"), dict)]
    text = _last(item.get("text") for item in items if item.get("type") == "agent_message")
    if any(event.get("type") == "turn.completed" for event in events):  # an `error` event before it was a warning or a reconnect
        return Answer(text=text)
    failed = (event for event in events if event.get("type") in ("turn.failed", "error"))
    why = _last(_at(event, "error", "message") or event.get("message") for event in failed)
    return Answer(text=text, error=why or "the harness ended without finishing its turn")


def _gemini(events: list[Event]) -> Answer | None:
    last = events[-1] if events else {}
    if "response" not in last and "error" not in last:
        return None
    return Answer(text=_text(last.get("response")), error=_text(_at(last, "error", "message")) or None)


def _grok(events: list[Event]) -> Answer | None:
    for event in reversed(events):
        if event.get("type") == "error":
            return Answer(text="", error=_text(event.get("message")) or "failed")
        if text := _text(event.get("text")) or _text(event.get("response")) or _text(event.get("result")):
            return Answer(text=text)
    return None


def _opencode(events: list[Event]) -> Answer | None:
    if not any(event.get("type") in ("step_start", "text", "error") for event in events):
        return None
    text = _last(_at(event, "part", "text") for event in events if event.get("type") == "text")
    error = _last(
        _at(event, "error", "data", "message") or _at(event, "error", "message") or _at(event, "error", "name")
        for event in events if event.get("type") == "error"
    )  # fmt: skip
    return Answer(text=text, error=error or None)


def _muse(events: list[Event]) -> Answer | None:
    payloads = [payload for event in events if isinstance(payload := event.get("payload"), dict)]
    if not payloads:
        return None
    end = next((payload for payload in reversed(payloads) if payload.get("kind") == "run_terminal"), None)
    if end is None:
        said = (payload.get("text") for payload in payloads if payload.get("kind") == "run_output_delta")
        return Answer(text="".join(text for text in said if isinstance(text, str)).strip(), error="the harness ended without a result")
    if end.get("terminal") != "completed":
        return Answer(text="", error=_text(end.get("reason")) or _text(end.get("text")) or _text(end.get("terminal")) or "failed")
    return Answer(text=_text(end.get("text")))


def _agy(events: list[Event]) -> Answer | None:
    last = events[-1] if events else {}
    if "status" not in last:
        return None
    done = last.get("status") == "SUCCESS"
    text = _text(last.get("response"))
    return Answer(text=text if done else "", error=None if done else text or _text(last.get("status")) or "failed")


_READERS: dict[AnswerKind, Callable[[list[Event]], Answer | None]] = {
    AnswerKind.CLAUDE: _claude,
    AnswerKind.CODEX: _codex,
    AnswerKind.GEMINI: _gemini,
    AnswerKind.QWEN: _claude,
    AnswerKind.GROK: _grok,
    AnswerKind.OPENCODE: _opencode,
    AnswerKind.MUSE: _muse,
    AnswerKind.AGY: _agy,
}

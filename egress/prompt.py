"""How a prompt of amem's own is put to a model, and how what it said is read, in each dialect.

Pure: no socket. A prompt is turns of text, an answer is its text; thoughts and tool calls are left out. What is read was written by
somebody else: whatever it is, it is read or it is None, and nothing is raised.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from urllib.parse import quote

from amem.model.call import Dialect
from amem.typed import Any, NamedTuple

VERSION = {"anthropic-version": "2023-06-01"}


class By(StrEnum):
    """Who speaks in a turn."""

    USER = "user"
    MODEL = "model"


class Turn(NamedTuple):
    """One turn of a conversation."""

    by: By
    text: str


class Prompt(NamedTuple):
    """What is asked of a model."""

    model: str
    turns: Sequence[Turn]
    max_tokens: int
    """Of the answer, thoughts included where the provider counts them so."""
    system: str | None = None


class Stop(StrEnum):
    """Why a model stopped."""

    END = "end"
    LENGTH = "length"
    """At the most tokens that it was asked for: the text is a beginning."""
    FILTERED = "filtered"
    """The model, or its provider, would not say it."""
    OTHER = "other"


class Said(NamedTuple):
    """What a model said."""

    text: str
    """UTF-8 can hold it; empty when it said nothing."""
    stop: Stop


class Form(NamedTuple):
    """How one dialect is written and read."""

    path: Callable[[str], str]
    """The path of a call to this model."""
    body: Callable[[Prompt], Mapping[str, Any]]
    read: Callable[[Mapping[str, Any]], Said | None]
    """What a decoded answer said; None when it is no answer of this dialect."""
    headers: Mapping[str, str] = {}


def read(dialect: Dialect, answer: object) -> Said | None:
    """What a decoded answer said; None when it is no answer of this dialect."""
    said = FORMS[dialect].read(answer) if isinstance(answer, dict) else None
    # Half of a surrogate pair can stand in JSON as an escape; no file or log could take it.
    return said and said._replace(text=said.text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def _items(value: object, key: str) -> list[Mapping[str, Any]] | None:
    """The objects in a list member; None when it is no list."""
    found = value.get(key) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else None


def _texts(items: Sequence[Mapping[str, Any]], *types: str) -> str:
    """The texts of the parts that have one of these types."""
    return "".join(item["text"] for item in items if item.get("type") in types and isinstance(item.get("text"), str))


def _stop(table: Mapping[str, Stop], told: object) -> Stop:
    return table.get(told, Stop.OTHER) if isinstance(told, str) else Stop.OTHER


# ---- Anthropic Messages ----------------------------------------------------------------

_ANTHROPIC_STOPS = {"end_turn": Stop.END, "stop_sequence": Stop.END, "max_tokens": Stop.LENGTH, "refusal": Stop.FILTERED}


def _anthropic_body(prompt: Prompt) -> Mapping[str, Any]:
    names = {By.USER: "user", By.MODEL: "assistant"}
    system = {} if prompt.system is None else {"system": prompt.system}
    messages = [{"role": names[turn.by], "content": turn.text} for turn in prompt.turns]
    return {"model": prompt.model, "max_tokens": prompt.max_tokens, **system, "messages": messages}


def _anthropic_said(answer: Mapping[str, Any]) -> Said | None:
    if (blocks := _items(answer, "content")) is None:
        return None
    return Said(_texts(blocks, "text"), _stop(_ANTHROPIC_STOPS, answer.get("stop_reason")))


# ---- OpenAI Responses ------------------------------------------------------------------

_RESPONSES_STOPS = {"max_output_tokens": Stop.LENGTH, "content_filter": Stop.FILTERED}


def _responses_body(prompt: Prompt) -> Mapping[str, Any]:
    names = {By.USER: ("user", "input_text"), By.MODEL: ("assistant", "output_text")}
    turns = [(*names[turn.by], turn.text) for turn in prompt.turns]
    said = [{"type": "message", "role": role, "content": [{"type": kind, "text": text}]} for role, kind, text in turns]
    system = {} if prompt.system is None else {"instructions": prompt.system}
    # The provider is not to keep it: nobody will ask for it again.
    return {"model": prompt.model, "max_output_tokens": prompt.max_tokens, **system, "input": said, "store": False}


def _responses_said(answer: Mapping[str, Any]) -> Said | None:
    if (items := _items(answer, "output")) is None or answer.get("status") not in ("completed", "incomplete"):
        return None
    parts = [part for item in items if item.get("type") == "message" for part in _items(item, "content") or ()]
    if answer["status"] == "incomplete":
        details = answer.get("incomplete_details")
        stop = _stop(_RESPONSES_STOPS, details.get("reason") if isinstance(details, dict) else None)
    else:
        stop = Stop.FILTERED if any(part.get("type") == "refusal" for part in parts) else Stop.END
    return Said(_texts(parts, "output_text"), stop)


# ---- OpenAI chat completions -----------------------------------------------------------

_CHAT_STOPS = {"stop": Stop.END, "length": Stop.LENGTH, "content_filter": Stop.FILTERED}


def _chat_body(prompt: Prompt) -> Mapping[str, Any]:
    names = {By.USER: "user", By.MODEL: "assistant"}
    messages = [] if prompt.system is None else [{"role": "system", "content": prompt.system}]
    messages += [{"role": names[turn.by], "content": turn.text} for turn in prompt.turns]
    # Not `max_completion_tokens`: only OpenAI's own newest models insist on it, and those are asked by way of Responses.
    return {"model": prompt.model, "max_tokens": prompt.max_tokens, "messages": messages}


def _chat_said(answer: Mapping[str, Any]) -> Said | None:
    choices = _items(answer, "choices")
    message = choices[0].get("message") if choices else None
    if not choices or not isinstance(message, dict):
        return None
    content = message.get("content")
    text = content if isinstance(content, str) else _texts(_items(message, "content") or (), "text")
    refused = isinstance(message.get("refusal"), str)
    return Said(text, Stop.FILTERED if refused else _stop(_CHAT_STOPS, choices[0].get("finish_reason")))


# ---- Gemini ----------------------------------------------------------------------------

_GEMINI_STOPS = {
    "STOP": Stop.END, "MAX_TOKENS": Stop.LENGTH, "SAFETY": Stop.FILTERED, "RECITATION": Stop.FILTERED, "BLOCKLIST": Stop.FILTERED,
    "PROHIBITED_CONTENT": Stop.FILTERED, "SPII": Stop.FILTERED,
}  # fmt: skip


def _gemini_path(model: str) -> str:
    return f"/v1beta/models/{quote(model.removeprefix('models/'), safe='')}:generateContent"


def _gemini_body(prompt: Prompt) -> Mapping[str, Any]:
    names = {By.USER: "user", By.MODEL: "model"}
    system = {} if prompt.system is None else {"systemInstruction": {"parts": [{"text": prompt.system}]}}
    contents = [{"role": names[turn.by], "parts": [{"text": turn.text}]} for turn in prompt.turns]
    return {**system, "contents": contents, "generationConfig": {"maxOutputTokens": prompt.max_tokens}}


def _gemini_said(answer: Mapping[str, Any]) -> Said | None:
    feedback = answer.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return Said("", Stop.FILTERED)
    if not (candidates := _items(answer, "candidates")):
        return None
    parts = [part for part in _items(candidates[0].get("content"), "parts") or () if part.get("thought") is not True]
    text = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return Said(text, _stop(_GEMINI_STOPS, candidates[0].get("finishReason")))


FORMS: Mapping[Dialect, Form] = {
    Dialect.ANTHROPIC: Form(lambda model: "/v1/messages", _anthropic_body, _anthropic_said, VERSION),
    Dialect.RESPONSES: Form(lambda model: "/v1/responses", _responses_body, _responses_said),
    Dialect.CHAT: Form(lambda model: "/v1/chat/completions", _chat_body, _chat_said),
    Dialect.GEMINI: Form(_gemini_path, _gemini_body, _gemini_said),
}

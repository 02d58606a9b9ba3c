"""The wire shapes of the four dialects: an answer as one body, and that body cut into the events of its stream.

Pure functions. `WHOLE[dialect]` builds the body of an unstreamed answer; `STREAM[dialect]` cuts that same body into events,
so that the two forms cannot disagree. `spoken` says what of a usage a dialect can express: the sums a client is compared with.
Event names, orders and fields are those the providers document and the real clients were seen to accept (November 2026).
"""

import json
import uuid
from collections.abc import Callable, Iterator

from amem.model.call import Dialect, Usage
from amem.testing.script import Answer
from amem.typed import Any, NamedTuple

Body = dict[str, Any]


class Event(NamedTuple):
    """One server-sent event; `data` is a JSON value, or a string sent as it is."""

    name: str | None
    data: Any

    def encode(self) -> bytes:
        """The event as it stands on the wire."""
        head = f"event: {self.name}\n" if self.name else ""
        return f"{head}data: {self.data if isinstance(self.data, str) else compact(self.data)}\n\n".encode()


def compact(value: Any) -> str:
    """JSON without spaces, as the providers send it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def spoken(dialect: Dialect, usage: Usage) -> Usage:
    """The usage as a client of this dialect can know it: Gemini has no cache writes; OpenAI always says its reasoning tokens."""
    match dialect:
        case Dialect.ANTHROPIC:
            return usage
        case Dialect.GEMINI:
            return usage._replace(cache_write=0)
        case Dialect.RESPONSES | Dialect.CHAT:
            return usage._replace(reasoning=usage.reasoning or 0)


def _id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:24]


def _pieces(text: str, chunk: int) -> list[str]:
    """Cut a text into deltas of `chunk` characters; 0 chooses a size that keeps long texts at some hundred events."""
    size = chunk or max(24, len(text) // 400)
    return [text[at : at + size] for at in range(0, len(text), size)]


# ---- Anthropic Messages ----------------------------------------------------------------


def _anthropic(answer: Answer, usage: Usage, model: str, created_s: int) -> Body:
    content: list[Body] = []
    if answer.thought is not None:
        content.append({"type": "thinking", "thinking": answer.thought, "signature": "c2NyaXB0ZWQ="})
    if answer.text is not None:
        content.append({"type": "text", "text": answer.text})
    content += [{"type": "tool_use", "id": _id("toolu_"), "name": call.tool.full_name, "input": call.args} for call in answer.calls]
    spent: Body = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
    if usage.reasoning is not None:
        spent["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return {
        "id": _id("msg_"), "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None, "usage": spent,
    }  # fmt: skip


_ANTHROPIC_EMPTY: dict[str, Body] = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}, "tool_use": {"input": {}}}


def _anthropic_stream(body: Body, chunk: int) -> Iterator[Event]:
    def event(name: str, **data: Any) -> Event:
        return Event(name, {"type": name, **data})

    opening = {key: value for key, value in body["usage"].items() if key != "output_tokens_details"} | {"output_tokens": 1}
    yield event("message_start", message={**body, "content": [], "stop_reason": None, "usage": opening})
    for index, block in enumerate(body["content"]):
        yield event("content_block_start", index=index, content_block=block | _ANTHROPIC_EMPTY[block["type"]])
        if index == 0:
            yield event("ping")
        match block["type"]:
            case "thinking":
                deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"], chunk)]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case "text":
                deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"], chunk)]
            case _:
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(compact(block["input"]), chunk)]
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event("message_delta", delta={"stop_reason": body["stop_reason"], "stop_sequence": None}, usage=body["usage"])
    yield event("message_stop")


# ---- OpenAI Responses ------------------------------------------------------------------


def _responses(answer: Answer, usage: Usage, model: str, created_s: int) -> Body:
    output: list[Body] = []
    if answer.thought is not None:
        output.append({
            "type": "reasoning", "id": _id("rs_"), "encrypted_content": "c2NyaXB0ZWQ=",
            "summary": [{"type": "summary_text", "text": answer.thought}],
        })  # fmt: skip
    if answer.text is not None:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        output.append({"type": "message", "id": _id("msg_"), "role": "assistant", "status": "completed", "content": [part]})
    for tool, args in answer.calls:
        item: Body = {"call_id": _id("call_"), "status": "completed"}
        match tool.form:
            case "custom":
                text = args if isinstance(args, str) else compact(args)
                item |= {"type": "custom_tool_call", "id": _id("ctc_"), "name": tool.name, "input": text}
            case "tool_search":
                item |= {"type": "tool_search_call", "id": _id("ts_"), "execution": "client", "arguments": args}
            case _:
                item |= {"type": "function_call", "id": _id("fc_"), "name": tool.name, "arguments": compact(args)}
        output.append(item | ({"namespace": tool.namespace} if tool.namespace else {}))
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "id": _id("resp_"), "object": "response", "created_at": created_s, "status": "completed", "model": model, "output": output,
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
            "total_tokens": prompt + usage.output,
        },
    }  # fmt: skip


def _responses_stream(body: Body, chunk: int) -> Iterator[Event]:
    number = 0

    def event(name: str, **data: Any) -> Event:
        nonlocal number
        number += 1
        return Event(name, {"type": name, "sequence_number": number - 1, **data})

    started = {**body, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=started)
    yield event("response.in_progress", response=started)
    for index, item in enumerate(body["output"]):
        at: dict[str, Any] = {"output_index": index, "item_id": item["id"]}
        match item["type"]:
            case "message":
                part, at = item["content"][0], {**at, "content_index": 0}
                yield event("response.output_item.added", output_index=index, item={**item, "content": [], "status": "in_progress"})
                yield event("response.content_part.added", **at, part={**part, "text": ""})
                for piece in _pieces(part["text"], chunk):
                    yield event("response.output_text.delta", **at, delta=piece)
                yield event("response.output_text.done", **at, text=part["text"])
                yield event("response.content_part.done", **at, part=part)
            case "reasoning":
                part, at = item["summary"][0], {**at, "summary_index": 0}
                yield event("response.output_item.added", output_index=index, item={**item, "summary": []})
                yield event("response.reasoning_summary_part.added", **at, part={**part, "text": ""})
                for piece in _pieces(part["text"], chunk):
                    yield event("response.reasoning_summary_text.delta", **at, delta=piece)
                yield event("response.reasoning_summary_text.done", **at, text=part["text"])
                yield event("response.reasoning_summary_part.done", **at, part=part)
            case "function_call" | "custom_tool_call":
                field, name = {
                    "function_call": ("arguments", "response.function_call_arguments"),
                    "custom_tool_call": ("input", "response.custom_tool_call_input"),
                }[item["type"]]
                yield event("response.output_item.added", output_index=index, item={**item, field: "", "status": "in_progress"})
                for piece in _pieces(item[field], chunk):
                    yield event(f"{name}.delta", **at, delta=piece)
                yield event(f"{name}.done", **at, **{field: item[field]})
            case _:
                yield event("response.output_item.added", output_index=index, item={**item, "status": "in_progress"})
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=body)


# ---- OpenAI chat completions -----------------------------------------------------------


def _chat(answer: Answer, usage: Usage, model: str, created_s: int) -> Body:
    message: Body = {"role": "assistant", "content": answer.text}
    if answer.thought is not None:
        message["reasoning_content"] = answer.thought
    if answer.calls:
        message["tool_calls"] = [_chat_call(call.tool.full_name, call.tool.form, call.args) for call in answer.calls]
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "id": _id("chatcmpl-"), "object": "chat.completion", "created": created_s, "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if answer.calls else "stop"}],
        "usage": {
            "prompt_tokens": prompt, "completion_tokens": usage.output, "total_tokens": prompt + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        },
    }  # fmt: skip


def _chat_call(name: str, form: str, args: Any) -> Body:
    if form == "custom":
        return {"id": _id("call_"), "type": "custom", "custom": {"name": name, "input": args if isinstance(args, str) else compact(args)}}
    return {"id": _id("call_"), "type": "function", "function": {"name": name, "arguments": compact(args)}}


def _chat_stream(body: Body, chunk: int) -> Iterator[Event]:
    base = {"id": body["id"], "object": "chat.completion.chunk", "created": body["created"], "model": body["model"]}
    choice = body["choices"][0]
    message = choice["message"]

    def event(delta: Body, finish: str | None = None) -> Event:
        return Event(None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield event({"role": "assistant", "content": ""})
    for key in ("reasoning_content", "content"):
        for piece in _pieces(message.get(key) or "", chunk):
            yield event({key: piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        form = call["type"]
        field = "arguments" if form == "function" else "input"
        yield event({"tool_calls": [{"index": index, **call, form: {**call[form], field: ""}}]})
        for piece in _pieces(call[form][field], chunk):
            yield event({"tool_calls": [{"index": index, form: {field: piece}}]})
    yield event({}, choice["finish_reason"])
    yield Event(None, {**base, "choices": [], "usage": body["usage"]})
    yield Event(None, "[DONE]")


# ---- Gemini ----------------------------------------------------------------------------


def _gemini(answer: Answer, usage: Usage, model: str, created_s: int) -> Body:
    parts: list[Body] = []
    if answer.thought is not None:
        parts.append({"text": f"**Asking memory** {answer.thought}", "thought": True})
    if answer.text is not None:
        parts.append({"text": answer.text})
    for tool, args in answer.calls:
        parts.append({"functionCall": {"name": tool.full_name, "args": args}, "thoughtSignature": "c2NyaXB0ZWQ="})
    prompt, thoughts = usage.input + usage.cache_read, usage.reasoning or 0
    spent = {"promptTokenCount": prompt, "candidatesTokenCount": usage.output - thoughts, "totalTokenCount": prompt + usage.output}
    if usage.cache_read:
        spent["cachedContentTokenCount"] = usage.cache_read
    if usage.reasoning is not None:
        spent["thoughtsTokenCount"] = thoughts
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": spent, "modelVersion": model, "responseId": _id(""),
    }  # fmt: skip


def _gemini_stream(body: Body, chunk: int) -> Iterator[Event]:
    base = {key: body[key] for key in ("modelVersion", "responseId")}
    prompt = body["usageMetadata"]["promptTokenCount"]
    pieces: list[Body] = []
    for part in body["candidates"][0]["content"]["parts"]:
        pieces += [{**part, "text": piece} for piece in _pieces(part["text"], chunk) or [""]] if "text" in part else [part]
    for index, piece in enumerate(pieces):
        candidate: Body = {"content": {"role": "model", "parts": [piece]}, "index": 0}
        last = index == len(pieces) - 1
        # Each chunk tells the usage so far; only the last is the sum.
        usage = body["usageMetadata"] if last else {"promptTokenCount": prompt, "totalTokenCount": prompt}
        yield Event(None, {"candidates": [candidate | ({"finishReason": "STOP"} if last else {})], "usageMetadata": usage, **base})


WHOLE: dict[Dialect, Callable[[Answer, Usage, str, int], Body]] = {
    Dialect.ANTHROPIC: _anthropic,
    Dialect.RESPONSES: _responses,
    Dialect.CHAT: _chat,
    Dialect.GEMINI: _gemini,
}
"""Answer, usage, model, seconds since 1970 -> the body of an unstreamed answer."""

STREAM: dict[Dialect, Callable[[Body, int], Iterator[Event]]] = {
    Dialect.ANTHROPIC: _anthropic_stream,
    Dialect.RESPONSES: _responses_stream,
    Dialect.CHAT: _chat_stream,
    Dialect.GEMINI: _gemini_stream,
}
"""Body, characters of a delta (0 chooses) -> its events in order."""


# ---- errors ----------------------------------------------------------------------------

_ANTHROPIC_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
}  # fmt: skip
_GOOGLE_ERRORS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL", 503: "UNAVAILABLE",
}  # fmt: skip


def error(kind: str, status: int, message: str) -> Body:
    """The body of an HTTP error in the shape of a dialect; any other kind gets OpenAI's."""
    name = _ANTHROPIC_ERRORS.get(status, "api_error")
    match kind:
        case "anthropic" | "count_tokens":
            return {"type": "error", "error": {"type": name, "message": message}, "request_id": _id("req_")}
        case "gemini" | "gemini_count" | "code_assist":
            return {"error": {"code": status, "message": message, "status": _GOOGLE_ERRORS.get(status, "UNKNOWN")}}
        case _:
            return {"error": {"message": message, "type": name, "code": None, "param": None}}


def error_event(dialect: Dialect, message: str) -> Event:
    """The error that a dialect sends inside a stream that began well."""
    match dialect:
        case Dialect.ANTHROPIC:
            return Event("error", {"type": "error", "error": {"type": "overloaded_error", "message": message}})
        case Dialect.RESPONSES:
            failure = {"code": "server_error", "message": message}
            return Event("response.failed", {"type": "response.failed", "response": {"status": "failed", "error": failure, "output": []}})
        case Dialect.CHAT | Dialect.GEMINI:
            return Event(None, error(dialect, 503, message))

"""Readers of the four streams, written from the providers' documentation: each puts a stream together again as an SDK would.

They are strict: an event out of order, an index that jumps or a delta for a closed block fails. They share no code with `shapes`.
"""

import json
from typing import Any

Body = dict[str, Any]


def sse(raw: bytes) -> list[tuple[str | None, str]]:
    """Name and data of each event of a stream of server-sent events."""
    events = []
    for block in raw.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert set(fields) <= {"event", "data"}, block
        events.append((fields.get("event"), fields["data"]))
    assert raw.endswith(b"\n\n")
    return events


def anthropic(raw: bytes) -> Body:
    """https://docs.anthropic.com/en/docs/build-with-claude/streaming: start, blocks one after another, delta, stop."""
    message: Body = {}
    opened: int | None = None
    arguments = ""
    stopped = False
    for name, text in sse(raw):
        data = json.loads(text)
        assert data["type"] == name and not stopped
        match name:
            case "message_start":
                assert not message
                message = data["message"]
                assert message["content"] == [] and message["stop_reason"] is None
            case "content_block_start":
                assert opened is None and data["index"] == len(message["content"])
                opened, arguments = data["index"], ""
                message["content"].append(data["content_block"])
            case "content_block_delta":
                assert data["index"] == opened
                block, delta = message["content"][-1], data["delta"]
                match block["type"], delta["type"]:
                    case ("text", "text_delta"):
                        block["text"] += delta["text"]
                    case ("thinking", "thinking_delta"):
                        block["thinking"] += delta["thinking"]
                    case ("thinking", "signature_delta"):
                        block["signature"] += delta["signature"]
                    case ("tool_use", "input_json_delta"):
                        arguments += delta["partial_json"]
                    case pair:
                        raise AssertionError(pair)
            case "content_block_stop":
                assert data["index"] == opened
                if message["content"][-1]["type"] == "tool_use":
                    message["content"][-1]["input"] = json.loads(arguments)
                opened = None
            case "message_delta":
                assert opened is None
                message |= data["delta"]
                message["usage"] |= data["usage"]
            case "message_stop":
                stopped = True
            case "ping":
                pass
            case _:
                raise AssertionError(name)
    assert stopped
    return message


def responses(raw: bytes) -> Body:
    """https://platform.openai.com/docs/api-reference/responses-streaming: the deltas must add up to each done item and to the end."""
    fields = {
        "output_text": ("output_text", "text"), "reasoning_summary_text": ("reasoning_summary_text", "text"),
        "function_call_arguments": ("function_call", "arguments"), "custom_tool_call_input": ("custom_tool_call", "input"),
    }  # fmt: skip
    finished: Body = {}
    items: list[Body] = []
    parts: list[Body] = []
    gathered = ""
    for number, (name, text) in enumerate(sse(raw)):
        data = json.loads(text)
        assert name is not None and (data["type"], data["sequence_number"]) == (name, number) and not finished
        kind, _, act = name.removeprefix("response.").rpartition(".")
        match kind, act:
            case ("", "created" | "in_progress"):
                assert data["response"]["status"] == "in_progress" and data["response"]["output"] == []
            case ("output_item", "added"):
                assert data["output_index"] == len(items)
                gathered, parts = "", []
            case ("content_part" | "reasoning_summary_part", "added"):
                assert data["part"]["text"] == ""
                gathered = ""
            case (_, "delta"):
                assert kind in fields and data["output_index"] == len(items)
                gathered += data["delta"]
            case ("content_part" | "reasoning_summary_part", "done"):
                assert data["part"]["text"] == gathered
                parts.append(data["part"])
            case ("output_item", "done"):
                item = data["item"]
                match item["type"]:
                    case "message":
                        assert item["content"] == parts
                    case "reasoning":
                        assert item["summary"] == parts
                    case "function_call":
                        assert item["arguments"] == gathered
                    case "custom_tool_call":
                        assert item["input"] == gathered
                items.append(item)
            case ("", "completed"):
                finished = data["response"]
            case (_, "done"):
                assert data[fields[kind][1]] == gathered
            case _:
                raise AssertionError(name)
    assert finished["output"] == items
    return finished


def chat(raw: bytes) -> Body:
    """https://platform.openai.com/docs/api-reference/chat-streaming: one choice, usage in a chunk without choices, then [DONE]."""
    events = sse(raw)
    assert events[-1] == (None, "[DONE]")
    message: Body = {"content": None}
    body: Body = {}
    for _name, text in events[:-1]:
        chunk = json.loads(text)
        assert chunk["object"] == "chat.completion.chunk"
        head = {key: chunk[key] for key in ("id", "created", "model")}
        assert head == (body.get("head") or head)
        body["head"] = head
        if not chunk["choices"]:
            body["usage"] = chunk["usage"]
            continue
        assert "finish_reason" not in body and "usage" not in body
        choice = chunk["choices"][0]
        for key, value in choice["delta"].items():
            if key == "tool_calls":
                for part in value:
                    calls = message.setdefault("tool_calls", [])
                    if "id" in part:
                        assert part["index"] == len(calls)
                        calls.append({key: value for key, value in part.items() if key != "index"})
                    else:
                        form = calls[part["index"]]["type"]
                        for field, more in part[form].items():
                            calls[part["index"]][form][field] += more
            elif key == "role" or not value:
                message.setdefault(key, value)
                message["role"] = "assistant"
            else:
                message[key] = (message.get(key) or "") + value
        if choice["finish_reason"] is not None:
            body["finish_reason"] = choice["finish_reason"]
    message["content"] = message["content"] or None
    choices = [{"index": 0, "message": message, "finish_reason": body["finish_reason"]}]
    return {**body["head"], "object": "chat.completion", "choices": choices, **({"usage": body["usage"]} if "usage" in body else {})}


def gemini(raw: bytes) -> Body:
    """https://ai.google.dev/api/generate-content: whole responses, one after another; texts add up, the last usage counts."""
    chunks = [json.loads(text) for _name, text in sse(raw)] if raw.startswith(b"data: ") else json.loads(raw)
    parts: list[Body] = []
    for chunk in chunks:
        for part in chunk["candidates"][0]["content"]["parts"]:
            if parts and "text" in part and "text" in parts[-1] and part.get("thought") == parts[-1].get("thought"):
                parts[-1]["text"] += part["text"]
            else:
                parts.append(part)
    assert [("finishReason" in chunk["candidates"][0]) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    last = chunks[-1]
    return {**last, "candidates": [{**last["candidates"][0], "content": {"role": "model", "parts": parts}}]}


READERS = {"anthropic": anthropic, "responses": responses, "chat": chat, "gemini": gemini}

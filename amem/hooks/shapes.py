"""What each harness writes in its transcript, as pieces of turns. Pure; the bytes are hostile, and nothing here raises for what they hold.

A shape is a row of `SHAPES`, named in the harness's own table. An event gives any number of pieces; what is of no turn gives none.
Which piece belongs to which turn is for `turns` to say, alike for all of them.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

USER, ASSISTANT, TOOL = "user", "assistant", "tool"
RETURNED, SUMMARISED, WITHHELD = "returned", "summarised", "withheld"


class Asked(NamedTuple):
    """A tool call as an event gives it."""

    name: str
    arguments: str
    id: str | None = None
    """By which its answer names it."""


class Piece(NamedTuple):
    """A part of a turn, as one event of a transcript gives it."""

    role: str
    text: str = ""
    reasoning: str = ""
    how: str | None = None
    """How the reasoning stands: returned, summarised or withheld; None when there was none."""
    tools: tuple[Asked, ...] = ()
    key: str | None = None
    """The harness's own id of the message, where later events may add to it."""
    replaces: bool = False
    """Whether this is the message anew, and not more of it."""
    glued: bool = False
    """Whether its words go on where those before it stopped, in the middle of a line."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Of tools' answers: the call's id and how many bytes it gave."""


def _claude(event: dict[str, Any]) -> Iterator[Piece]:
    """Claude Code 2.1.332: a line for each content block, the same message id on all blocks of one message."""
    message = _table(event.get("message"))
    if event.get("type") not in ("user", "assistant") or any(event.get(name) for name in ("isSidechain", "isMeta", "isCompactSummary")):
        return
    content = message.get("content")
    if event["type"] == "user":
        if results := _blocks(content, "tool_result"):
            yield _answers((block.get("tool_use_id"), _result(_text(block.get("content")))) for block in results)
        if said := _text(content):
            yield Piece(USER, said)
        return
    key = _string(message.get("id")) or None
    for block in _blocks(content):
        match block.get("type"):
            case "text":
                yield Piece(ASSISTANT, _string(block.get("text")), key=key)
            case "thinking":
                thought = _string(block.get("thinking"))
                yield Piece(ASSISTANT, reasoning=thought, how=SUMMARISED if thought else WITHHELD, key=key)
            case "redacted_thinking":
                yield Piece(ASSISTANT, how=WITHHELD, key=key)
            case "tool_use":
                yield Piece(ASSISTANT, tools=(_call(block.get("name"), block.get("input"), block.get("id")),), key=key)


_REJECTED = "The user doesn't want to proceed with this tool use."
"""What Claude Code tells its model of a call that was interrupted; it goes on with orders, which a note must not repeat as its own."""


def _result(text: str) -> str:
    return "(interrupted by the user)" if text.startswith(_REJECTED) else text


def _codex(event: dict[str, Any]) -> Iterator[Piece]:
    """Codex 0.171.0: the `response_item` lines of a rollout; developer messages are its own instructions."""
    if event.get("type") != "response_item":
        return
    item = _table(event.get("payload"))
    match item.get("type"):
        case "message" if item.get("role") in (USER, ASSISTANT):
            if text := _text(item.get("content")):
                yield Piece(item["role"], text)
        case "reasoning":
            raw, summary = _text(item.get("content")), _text(item.get("summary"))
            yield Piece(ASSISTANT, reasoning=raw or summary, how=RETURNED if raw else SUMMARISED if summary else WITHHELD)
        case "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call":
            space = _string(item.get("namespace"))
            name = f"{space}__{_string(item.get('name'))}" if space else item.get("name") or item["type"]
            arguments = item.get("arguments", item.get("input", item.get("action")))
            yield Piece(ASSISTANT, tools=(_call(name, arguments, item.get("call_id")),))
        case "function_call_output" | "custom_tool_call_output" | "tool_search_output":
            yield _answers([(item.get("call_id"), _text(item.get("output")))])


def _gemini(event: dict[str, Any]) -> Iterator[Piece]:
    """Gemini CLI 0.61.0: a patch log, where a message stands again under the same id and the last one holds."""
    listed = _table(event.get("$set")).get("messages")
    for message in listed if isinstance(listed, list) else [event]:
        key = _string(_table(message).get("id"))
        if not key or _table(message).get("type") not in (USER, "gemini"):
            continue
        if message["type"] == USER:
            if said := _text(message.get("content")):  # else what tools answered, which stands with their calls too
                yield Piece(USER, said, key=key, replaces=True)
            continue
        thoughts = [_table(thought) for thought in _list(message.get("thoughts"))]
        reasoning = "\n".join(f"{_string(thought.get('subject'))}: {_string(thought.get('description'))}" for thought in thoughts)
        calls = [_table(call) for call in _list(message.get("toolCalls"))]
        yield Piece(
            ASSISTANT, _text(message.get("content")), reasoning, SUMMARISED if reasoning else None,
            tuple(_call(call.get("name"), call.get("args"), call.get("id")) for call in calls), key, replaces=True,
        )  # fmt: skip
        if results := [(call.get("id"), _dump(call["result"])) for call in calls if call.get("result")]:
            yield _answers(results)._replace(key=key, replaces=True)


def _qwen(event: dict[str, Any]) -> Iterator[Piece]:
    """Qwen Code 0.24.4: Gemini's parts in Claude's envelope."""
    if event.get("type") not in (USER, ASSISTANT, "tool_result"):
        return
    key = _string(event.get("uuid")) or None
    for part in map(_table, _list(_table(event.get("message")).get("parts"))):
        text = _string(part.get("text"))
        if event["type"] == USER:
            yield from [Piece(USER, text, key=key)] if text else []
        elif call := _table(part.get("functionCall")):
            yield Piece(ASSISTANT, tools=(_call(call.get("name"), call.get("args"), call.get("id")),))
        elif answer := _table(part.get("functionResponse")):
            yield _answers([(answer.get("id"), _dump(answer.get("response")))])
        elif part.get("thought"):
            yield Piece(ASSISTANT, reasoning=text, how=RETURNED)
        elif text:
            yield Piece(ASSISTANT, text)


def _pi(event: dict[str, Any]) -> Iterator[Piece]:
    """pi 1.6.0."""
    message = _table(event.get("message"))
    if event.get("type") != "message":
        return
    content = message.get("content")
    match message.get("role"):
        case "user":
            yield Piece(USER, _text(content))
        case "toolResult":
            yield _answers([(message.get("toolCallId"), _text(content))])
        case "assistant":
            thought = "\n".join(_string(block.get("thinking")) for block in _blocks(content, "thinking"))
            tools = tuple(_call(block.get("name"), block.get("arguments"), block.get("id")) for block in _blocks(content, "toolCall"))
            yield Piece(ASSISTANT, _text(content), thought, RETURNED if thought else None, tools)


def _copilot(event: dict[str, Any]) -> Iterator[Piece]:
    """Copilot CLI 1.0.102. A subagent's events stand among the others, with its id."""
    data = _table(event.get("data"))
    if event.get("agentId") or data.get("parentToolCallId"):
        return
    match event.get("type"):
        case "user.message":
            yield Piece(USER, _string(data.get("content")))
        case "assistant.message":
            thought = _string(data.get("reasoningText"))
            how = RETURNED if thought else WITHHELD if data.get("reasoningOpaque") else None
            calls = map(_table, _list(data.get("toolRequests")))
            tools = tuple(_call(call.get("name"), call.get("arguments"), call.get("toolCallId")) for call in calls)
            yield Piece(ASSISTANT, _string(data.get("content")), thought, how, tools)
        case "tool.execution_complete":
            result = _table(data.get("result"))
            said = _text(result.get("content")) or _string(_table(data.get("error")).get("message"))
            yield _answers([(data.get("toolCallId"), said)])


def _grok(event: dict[str, Any]) -> Iterator[Piece]:
    """Grok Build 1.0.41, `updates.jsonl`: what it shows, in pieces; a compaction rewrites its `chat_history.jsonl`, and not this."""
    update = _table(_table(event.get("params")).get("update"))
    said = _text(update.get("content"))
    match update.get("sessionUpdate"):
        case "user_message_chunk":
            yield Piece(USER, said, key=f"prompt {_table(update.get('_meta')).get('promptIndex')}", glued=True)
        case "agent_message_chunk":
            yield Piece(ASSISTANT, said, glued=True)
        case "agent_thought_chunk":
            yield Piece(ASSISTANT, reasoning=said, how=SUMMARISED, glued=True)
        case "tool_call":
            given = _table(update.get("rawInput"))
            name, arguments = update.get("title"), update.get("rawInput")
            if name == "use_tool" and isinstance(given.get("tool_name"), str):  # MCP tools are called through it
                name, arguments = given["tool_name"], given.get("tool_input")
            yield Piece(ASSISTANT, tools=(_call(name, arguments, update.get("toolCallId")),))
        case "tool_call_update" if update.get("status") in ("completed", "failed"):
            shown = "\n".join(_text(block.get("content")) for block in _blocks(update.get("content"), "content"))
            output = _table(update.get("rawOutput")).get("output")
            yield _answers([(update.get("toolCallId"), shown or _string(_table(output).get("OkayOutput")) or _dump(output))])


def _opencode(event: dict[str, Any]) -> Iterator[Piece]:
    """OpenCode 1.18.33: one line for each message `{"info": …, "parts": […]}`, as `opencode export` lists them."""
    info = _table(event.get("info"))
    role, key = info.get("role"), _string(info.get("id")) or None
    if role not in (USER, ASSISTANT):
        return
    parts = [_table(part) for part in _list(event.get("parts"))]
    for part in parts:
        match part.get("type"):
            case "text" if text := _string(part.get("text")):
                yield Piece(role, text, key=key)
            case "reasoning" if role == ASSISTANT:
                yield Piece(ASSISTANT, reasoning=_string(part.get("text")), how=RETURNED, key=key)
            case "tool":
                tool = _call(part.get("tool"), _table(part.get("state")).get("input"), part.get("callID"))
                yield Piece(ASSISTANT, tools=(tool,), key=key)
    for part in parts:
        if part.get("type") == "tool":
            state = _table(part.get("state"))
            yield _answers([(part.get("callID"), _text(state.get("output")) or _string(state.get("error")))])


def _agy(event: dict[str, Any]) -> Iterator[Piece]:
    """Antigravity CLI, `transcript.jsonl` (public reports, 2026-10; not run here)."""
    match event.get("type"):
        case "USER_INPUT":
            yield Piece(USER, _text(event.get("content")))
        case "PLANNER_RESPONSE":
            thought = _text(event.get("thinking"))
            tools = tuple(_call(call.get("name"), call.get("args")) for call in map(_table, _list(event.get("tool_calls"))))
            yield Piece(ASSISTANT, _text(event.get("content")), thought, RETURNED if thought else None, tools)


def _muse(event: dict[str, Any]) -> Iterator[Piece]:
    """Muse Code, the stream of `exec --json` that the launcher keeps (public reports, 2026-10; not run here)."""
    payload = _table(event.get("payload"))
    if payload.get("kind") == "run_terminal":
        yield Piece(ASSISTANT, _string(payload.get("text")))


class Shape(NamedTuple):
    """How one harness's transcript is read."""

    pieces: Callable[[dict[str, Any]], Iterator[Piece]]
    identity: Callable[[dict[str, Any]], object] = lambda event: None
    """What an event is known by, where the same one may stand there again; anything but a word is nothing."""
    aside: Callable[[dict[str, Any]], bool] = lambda event: False
    """Whether an event says that the whole transcript is a subagent's."""


def _item(event: dict[str, Any]) -> str | None:
    payload = _table(event.get("payload"))
    name = payload.get("id") or payload.get("call_id")
    return f"{payload.get('type')} {name}" if event.get("type") == "response_item" and isinstance(name, str) else None


SHAPES: dict[str, Shape] = {
    "claude": Shape(_claude, lambda event: event.get("uuid")),
    "codex": Shape(_codex, _item, lambda event: "subagent" in _table(_table(event.get("payload")).get("source"))),
    "gemini": Shape(_gemini),
    "qwen": Shape(_qwen, lambda event: event.get("uuid")),
    "pi": Shape(_pi, lambda event: event.get("id")),
    "copilot": Shape(_copilot, lambda event: event.get("id")),
    "grok": Shape(_grok, lambda event: _table(_table(event.get("params")).get("_meta")).get("eventId")),
    "opencode": Shape(_opencode, lambda event: _table(event.get("info")).get("id")),
    "agy": Shape(_agy),
    "muse": Shape(_muse),
}


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _blocks(content: Any, kind: str | None = None) -> list[dict[str, Any]]:
    return [block for block in _list(content) if isinstance(block, dict) and kind in (None, block.get("type"))]


def _text(content: Any) -> str:
    """The text of a string or of blocks that have one; what else a tool answered, as JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return _string(content.get("text")) or _dump(content)
    return "\n".join(text for block in _blocks(content) if (text := _string(block.get("text"))))


def _call(name: Any, arguments: Any, id: Any = None) -> Asked:
    shown = arguments if isinstance(arguments, str) else _dump(arguments if arguments is not None else {})
    return Asked(_string(name) or "tool", shown, _string(id) or None)


def _answers(found: Iterable[tuple[Any, str]]) -> Piece:
    """What tools answered: the id of the call and the text of each."""
    told = list(found)
    sizes = tuple((id, len(text.encode("utf-8", "replace"))) for id, text in told if isinstance(id, str) and id)
    return Piece(TOOL, "\n".join(text for _, text in told), sizes=sizes)


def _dump(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return "…"

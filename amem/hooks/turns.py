"""Read a harness's transcript into numbered turns. Pure; the bytes are hostile, and nothing here raises for what they hold.

Used inside by the hooks and on the host by everything that cites `transcript:<session>#<turn>`, so both count alike: a
turn has its number from the line on which it first appears, whatever is appended later. A turn is what the user said,
what the model said with its reasoning and tool calls, or what the tools answered. Reasoning stays within its turn and
adds none. Subagents' own turns are not counted.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

MAX_LINE_BYTES = 16 << 20
"""A longer line is passed over: no turn is that long, and the harnesses that log whole requests are not read from those."""

USER, ASSISTANT, TOOL = "user", "assistant", "tool"
RETURNED, SUMMARISED, WITHHELD = "returned", "summarised", "withheld"
MARKS = {RETURNED: "[reasoning]", SUMMARISED: "[reasoning] (summarised)", WITHHELD: "[reasoning withheld by the provider]"}


class Piece(NamedTuple):
    """A part of a turn, as one event of a transcript gives it."""

    role: str
    text: str = ""
    reasoning: str = ""
    how: str | None = None
    """How the reasoning stands: returned, summarised or withheld; None when there was none."""
    tools: tuple[str, ...] = ()
    """Tool calls: a name, a space, the arguments as JSON."""
    key: str | None = None
    """The harness's own id of the message, where later events may add to it."""
    replaces: bool = False
    """Whether this is the message anew, and not more of it."""


class Turn(NamedTuple):
    """One turn."""

    n: int
    """From 1."""
    role: str
    text: str
    reasoning: str = ""
    how: str | None = None
    tools: tuple[str, ...] = ()


def read(shape: str, lines: Iterable[bytes]) -> list[Turn]:
    """The turns of a transcript. A shape that is not known has none."""
    pieces = SHAPES.get(shape)
    return [] if pieces is None else _numbered(piece for event in events(lines) for piece in pieces(event))


def render(turn: Turn) -> str:
    """A turn as text: its number and role, its reasoning marked, what was said, the tools that were called."""
    parts = [f"#{turn.n} {turn.role}"]
    if turn.how is not None:
        parts.append(f"{MARKS[turn.how]} {turn.reasoning}".rstrip())
    parts += [turn.text] if turn.text else []
    parts += [f"-> {tool}" for tool in turn.tools]
    return "\n".join(parts)


def events(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON objects of a transcript's lines; a torn or foreign line is passed over."""
    for line in lines:
        if len(line) <= MAX_LINE_BYTES:
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield event


class _Open:
    """A turn while more of it may come. Lists, because a transcript may bring one turn in any number of pieces."""

    __slots__ = ("how", "key", "reasoning", "role", "text", "tools")

    def __init__(self, role: str, key: str | None) -> None:
        self.role, self.key = role, key
        self.clear()

    def clear(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.tools: list[str] = []
        self.how: str | None = None

    def add(self, piece: Piece) -> None:
        if piece.replaces:
            self.clear()
        self.text += filter(None, (piece.text,))
        self.reasoning += filter(None, (piece.reasoning,))
        self.tools += piece.tools
        if self.how in (None, WITHHELD):
            self.how = piece.how or self.how

    def closed(self, n: int) -> Turn:
        return Turn(n, self.role, _clean("\n".join(self.text)), _clean("\n".join(self.reasoning)), self.how, tuple(map(_clean, self.tools)))


def _numbered(pieces: Iterable[Piece]) -> list[Turn]:
    turns: list[_Open] = []
    by_key: dict[tuple[str, str], _Open] = {}
    for piece in pieces:
        turn = by_key.get((piece.role, piece.key)) if piece.key is not None else None
        if turn is None and turns and (turns[-1].role, turns[-1].key) == (piece.role, piece.key) and piece.role != USER:
            turn = turns[-1]
        if turn is None:
            turns.append(turn := _Open(piece.role, piece.key))
        if piece.key is not None:
            by_key[piece.role, piece.key] = turn
        turn.add(piece)
    return [turn.closed(n) for n, turn in enumerate(turns, start=1)]


def _clean(text: str) -> str:
    """The text without lone surrogates, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


# What each harness writes. An event gives any number of pieces; what is of no turn gives none.


def _claude(event: dict[str, Any]) -> Iterator[Piece]:
    """Claude Code 2.1.332: a line for each content block, the same message id on all blocks of one message."""
    message = _table(event.get("message"))
    if event.get("type") not in ("user", "assistant") or event.get("isSidechain") or event.get("isMeta"):
        return
    content = message.get("content")
    if event["type"] == "user":
        results = [_result(_text(block.get("content"))) for block in _blocks(content, "tool_result")]
        if results:
            yield Piece(TOOL, "\n".join(results))
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
                yield Piece(ASSISTANT, tools=(_call(block.get("name"), block.get("input")),), key=key)


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
            yield Piece(ASSISTANT, tools=(_call(name, item.get("arguments", item.get("input", item.get("action")))),))
        case "function_call_output" | "custom_tool_call_output" | "tool_search_output":
            yield Piece(TOOL, _text(item.get("output")))


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
            tuple(_call(call.get("name"), call.get("args")) for call in calls), key, replaces=True,
        )  # fmt: skip
        if results := [_dump(call["result"]) for call in calls if call.get("result")]:
            yield Piece(TOOL, "\n".join(results), key=key, replaces=True)


def _qwen(event: dict[str, Any]) -> Iterator[Piece]:
    """Qwen Code 0.24.4: Gemini's parts in Claude's envelope."""
    if event.get("type") not in (USER, ASSISTANT, "tool_result"):
        return
    for part in map(_table, _list(_table(event.get("message")).get("parts"))):
        text = _string(part.get("text"))
        if event["type"] == USER:
            yield from [Piece(USER, text)] if text else []
        elif call := _table(part.get("functionCall")):
            yield Piece(ASSISTANT, tools=(_call(call.get("name"), call.get("args")),))
        elif answer := _table(part.get("functionResponse")):
            yield Piece(TOOL, _dump(answer.get("response")))
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
            yield Piece(TOOL, _text(content))
        case "assistant":
            thought = "\n".join(_string(block.get("thinking")) for block in _blocks(content, "thinking"))
            tools = tuple(_call(block.get("name"), block.get("arguments")) for block in _blocks(content, "toolCall"))
            yield Piece(ASSISTANT, _text(content), thought, RETURNED if thought else None, tools)


def _copilot(event: dict[str, Any]) -> Iterator[Piece]:
    """Copilot CLI 1.0.102."""
    data = _table(event.get("data"))
    match event.get("type"):
        case "user.message":
            yield Piece(USER, _string(data.get("content")))
        case "assistant.message":
            thought = _string(data.get("reasoningText"))
            how = RETURNED if thought else WITHHELD if data.get("reasoningOpaque") else None
            calls = map(_table, _list(data.get("toolRequests")))
            tools = tuple(_call(call.get("name"), call.get("arguments")) for call in calls)
            yield Piece(ASSISTANT, _string(data.get("content")), thought, how, tools)
        case "tool.execution_complete":
            result = _table(data.get("result"))
            yield Piece(TOOL, _text(result.get("content")) or _string(_table(data.get("error")).get("message")))


def _grok(event: dict[str, Any]) -> Iterator[Piece]:
    """Grok Build 1.0.41, `chat_history.jsonl`."""
    match event.get("type"):
        case "user" if "prompt_index" in event:  # without one it is a reminder of Grok's own
            said = _text(event.get("content")).strip()
            yield Piece(USER, said.removeprefix("<user_query>").removesuffix("</user_query>").strip())
        case "reasoning":
            summary = _text(event.get("summary"))
            yield Piece(ASSISTANT, reasoning=summary, how=SUMMARISED if summary else WITHHELD)
        case "assistant":
            tools = tuple(map(_grok_call, map(_table, _list(event.get("tool_calls")))))
            yield Piece(ASSISTANT, _text(event.get("content")), tools=tools)
        case "tool_result":
            yield Piece(TOOL, _text(event.get("content")))


def _grok_call(call: dict[str, Any]) -> str:
    """MCP tools are called through `use_tool`; what counts is the tool that it names."""
    name, arguments = call.get("name"), call.get("arguments")
    if name == "use_tool":
        named = next(events([arguments.encode("utf-8", "replace")]), {}) if isinstance(arguments, str) else _table(arguments)
        if isinstance(named.get("tool_name"), str):
            return _call(named["tool_name"], named.get("tool_input"))
    return _call(name, arguments)


def _opencode(event: dict[str, Any]) -> Iterator[Piece]:
    """OpenCode 1.18.33: one line for each message `{"info": …, "parts": […]}`, as `opencode export` lists them."""
    role = _table(event.get("info")).get("role")
    if role not in (USER, ASSISTANT):
        return
    parts = [_table(part) for part in _list(event.get("parts"))]
    for part in parts:
        match part.get("type"):
            case "text" if text := _string(part.get("text")):
                yield Piece(role, text)
            case "reasoning" if role == ASSISTANT:
                yield Piece(ASSISTANT, reasoning=_string(part.get("text")), how=RETURNED)
            case "tool":
                yield Piece(ASSISTANT, tools=(_call(part.get("tool"), _table(part.get("state")).get("input")),))
    for state in (_table(part.get("state")) for part in parts if part.get("type") == "tool"):
        yield Piece(TOOL, _text(state.get("output")) or _string(state.get("error")))


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


SHAPES: dict[str, Callable[[dict[str, Any]], Iterator[Piece]]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "pi": _pi,
    "copilot": _copilot,
    "grok": _grok,
    "opencode": _opencode,
    "agy": _agy,
    "muse": _muse,
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


def _call(name: Any, arguments: Any) -> str:
    """One line for a tool call."""
    shown = arguments if isinstance(arguments, str) else _dump(arguments if arguments is not None else {})
    return f"{_string(name) or 'tool'} {shown}"


def _dump(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return "…"

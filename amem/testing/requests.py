"""What a request to the scripted provider asks: its kind, model, offered tools and earlier tool results.

Pure functions over a path and a decoded body. They read the request shapes of the real harnesses and nothing else:
what a body says that no harness sends is ignored, as a provider would ignore it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from amem.model.call import Dialect
from amem.typed import Any, NamedTuple


class Side(StrEnum):
    """Requests that are not model calls."""

    COUNT_TOKENS = "count_tokens"
    GEMINI_COUNT = "gemini_count"
    MODELS = "models"
    CODE_ASSIST = "code_assist"
    IDENTITY = "identity"
    ROOT = "root"
    UNKNOWN = "unknown"


Kind = Dialect | Side

ROUTES: tuple[tuple[str, str, Kind], ...] = (
    ("POST", r"/messages$", Dialect.ANTHROPIC),
    ("POST", r"/messages/count_tokens$", Side.COUNT_TOKENS),
    ("POST", r"/responses$", Dialect.RESPONSES),
    ("POST", r"/chat/completions$", Dialect.CHAT),
    ("POST", r":(?:generateContent|streamGenerateContent)$", Dialect.GEMINI),
    ("POST", r":countTokens$", Side.GEMINI_COUNT),
    # Gemini CLI 0.61 on a Google login, and what it asks before its first call (2026-11).
    ("POST", r"/v1internal:(?:loadCodeAssist|onboardUser|retrieveUserQuota|listExperiments)$", Side.CODE_ASSIST),
    ("GET", r"/api/oauth/profile$", Side.IDENTITY),
    ("POST", r"/tokeninfo$", Side.IDENTITY),
    ("GET", r"/models$", Side.MODELS),
    ("GET", r"^/$", Side.ROOT),
    ("HEAD", r"^/(?:api/hello)?$", Side.ROOT),
)
"""Method, end of path, kind. Any prefix (`/v1`, `/v1beta`, a gateway's own) may stand before."""


class Tool(NamedTuple):
    """A tool that a request offers."""

    name: str
    namespace: str | None = None
    """Codex groups the tools of an MCP server: namespace `mcp__memory`, name `t0`."""
    form: str = "function"
    """`function` (arguments are an object), `custom` (free text) or `tool_search`."""

    @property
    def full_name(self) -> str:
        """The name with its namespace, as harnesses without namespaces write it."""
        return f"{self.namespace}__{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A model call as it came."""

    dialect: Dialect
    model: str
    stream: bool
    tools: tuple[Tool, ...]
    results: tuple[Any, ...]
    """The answers of the tools so far, in order; JSON is decoded."""
    text: str
    """The whole body, to match conversations in."""
    envelope: bool = False
    """Code Assist: the body is inside `request`, the answer inside `response`."""
    usage_chunk: bool = True
    """Chat completions: a stream tells its usage only when `stream_options.include_usage` asks for it."""
    array: bool = False
    """Gemini without `alt=sse` streams one JSON array instead of events."""


def kind(method: str, path: str) -> Kind:
    """Say what a request is by its method and path."""
    return next((k for m, pattern, k in ROUTES if m == method and re.search(pattern, path)), Side.UNKNOWN)


def read(dialect: Dialect, path: str, query: Mapping[str, str], text: str) -> Request:
    """Read a model call. Raises ValueError when the body is not a JSON object."""
    body = json.loads(text)
    if not isinstance(body, dict):
        raise ValueError("the body is not a JSON object")
    envelope = dialect is Dialect.GEMINI and "/v1internal:" in path
    inner = body.get("request") or {} if envelope else body
    gemini = dialect is Dialect.GEMINI
    return Request(
        dialect=dialect,
        model=str(body.get("model") or path.rsplit("/", 1)[-1].split(":")[0]).removeprefix("models/"),
        stream=path.endswith(":streamGenerateContent") if gemini else bool(body.get("stream")),
        tools=tuple(_TOOLS[dialect](inner)),
        results=tuple(_RESULTS[dialect](inner)),
        text=text,
        envelope=envelope,
        usage_chunk=bool((body.get("stream_options") or {}).get("include_usage")) if dialect is Dialect.CHAT else True,
        array=gemini and query.get("alt") != "sse",
    )


# ---- offered tools ---------------------------------------------------------------------


def _anthropic_tools(body: dict[str, Any]) -> Iterable[Tool]:
    return (Tool(tool["name"]) for tool in body.get("tools") or () if "name" in tool)


def _responses_tools(body: dict[str, Any]) -> Iterable[Tool]:
    items = [item for item in body.get("input") or () if isinstance(item, dict)]
    listed = list(body.get("tools") or ())
    # Codex 0.171: "responses lite" models carry the tools as an input item, and a finished tool search offers what it found.
    for item in items:
        if item.get("type") in ("additional_tools", "tool_search_output"):
            listed += item.get("tools") or ()
    for tool in listed:
        match tool.get("type"):
            case "namespace":
                yield from (Tool(inner["name"], tool["name"], inner.get("type", "function")) for inner in tool.get("tools") or ())
            case "tool_search":
                yield Tool("tool_search", form="tool_search")
            case "function" | "custom":
                yield Tool(tool["name"], form=tool["type"])


def _chat_tools(body: dict[str, Any]) -> Iterable[Tool]:
    for tool in body.get("tools") or ():
        form = tool.get("type", "function")
        if form in tool:
            yield Tool(tool[form]["name"], form=form)


def _gemini_tools(body: dict[str, Any]) -> Iterable[Tool]:
    for group in body.get("tools") or ():
        for declared in group.get("functionDeclarations") or group.get("function_declarations") or ():
            yield Tool(declared["name"])


_TOOLS = {
    Dialect.ANTHROPIC: _anthropic_tools,
    Dialect.RESPONSES: _responses_tools,
    Dialect.CHAT: _chat_tools,
    Dialect.GEMINI: _gemini_tools,
}


# ---- earlier results -------------------------------------------------------------------


def _anthropic_results(body: dict[str, Any]) -> Iterable[Any]:
    for message in body.get("messages") or ():
        if isinstance(message.get("content"), list):
            yield from (decode(block.get("content", "")) for block in message["content"] if block.get("type") == "tool_result")


def _responses_results(body: dict[str, Any]) -> Iterable[Any]:
    for item in body.get("input") or ():
        if isinstance(item, dict) and str(item.get("type", "")).endswith(("_call_output", "tool_search_output")):
            yield decode(item.get("output", item.get("tools", "")))


def _chat_results(body: dict[str, Any]) -> Iterable[Any]:
    return (decode(message.get("content", "")) for message in body.get("messages") or () if message.get("role") == "tool")


def _gemini_results(body: dict[str, Any]) -> Iterable[Any]:
    for content in body.get("contents") or ():
        for part in content.get("parts") or ():
            if "functionResponse" in part:
                yield decode(part["functionResponse"].get("response", ""))


_RESULTS = {
    Dialect.ANTHROPIC: _anthropic_results,
    Dialect.RESPONSES: _responses_results,
    Dialect.CHAT: _chat_results,
    Dialect.GEMINI: _gemini_results,
}

_LINE_JSON = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)


def decode(answer: Any) -> Any:
    """The value inside a tool's answer: the first JSON document of its text, else the text.

    Harnesses wrap what a tool returned in text blocks, in `{"output": …}`, or under lines of their own.
    """
    match answer:
        case str():
            found = _first_json(answer)
            return answer if found is None else decode(found) if isinstance(found, (dict, list)) else found
        case {"output": str(inner), **rest} if not rest:
            return decode(inner)
        case {"content": [*blocks], **_rest} if blocks and all(isinstance(b, dict) and "text" in b for b in blocks):
            return decode(blocks)
        case [*blocks] if blocks and all(isinstance(b, dict) and isinstance(b.get("text"), str) for b in blocks):
            return next((value for b in blocks if not isinstance(value := decode(b["text"]), str)), "\n".join(b["text"] for b in blocks))
        case _:
            return answer


def _first_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    for start in _LINE_JSON.finditer(text):
        try:
            return json.JSONDecoder().raw_decode(text, start.end())[0]
        except ValueError:
            continue
    return None

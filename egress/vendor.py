"""What a request asks the provider to do beside thinking: tools that run there, and content that it fetches (B13).

Pure; never raises. Such a tool goes around the sandbox: it reads and sends where the session cannot. So a tool of a type that is not
known to run in the harness counts as one that does not. Names are one word for each kind, whatever a vendor calls it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from amem.egress.flow import Call, Kind
from amem.model.call import Dialect
from amem.typed import Any

WEB_SEARCH = "web_search"
WEB_FETCH = "web_fetch"
CODE = "code_execution"
MCP = "mcp"
URL = "url_content"
"""An image or document that is given by its address: the provider fetches it, and the address itself can carry words out."""

_KINDS = {
    "web_search_preview": WEB_SEARCH, "google_search": WEB_SEARCH, "google_search_retrieval": WEB_SEARCH,
    "enterprise_web_search": WEB_SEARCH, "url_context": WEB_FETCH, "code_interpreter": CODE, "mcp_toolset": MCP, "mcp_servers": MCP,
    "computer": "computer_use", "computer_use_preview": "computer_use", "google_maps": "maps",
}  # fmt: skip
_DATE = re.compile(r"_(?:\d{6,8}|\d{4}_\d\d_\d\d)$")
_ODD = re.compile(r"[^a-z0-9_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_IN_HARNESS: Mapping[Dialect, frozenset[str]] = {
    # The date is cut off: `bash_20250124`. The harness runs these, and the model only sees their answers.
    Dialect.ANTHROPIC: frozenset(("", "custom", "bash", "text_editor", "memory", "tool_search_tool_regex", "tool_search_tool_bm25")),
    Dialect.RESPONSES: frozenset(("", "function", "custom", "namespace", "local_shell", "apply_patch")),
    Dialect.CHAT: frozenset(("", "function", "custom")),
    Dialect.GEMINI: frozenset(("function_declarations",)),
}
_ADDRESS = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")
_SEARCHING_MODEL = re.compile(r":online$|-search-(?:preview|api)\b|-deep-research\b")
"""Models that search whatever the request says: OpenRouter's suffix, OpenAI's search models (2026-11)."""


def server_tools(call: Call) -> tuple[str, ...]:
    """The kinds of what a model call asks to be done at the provider, sorted; empty for a call that asks for nothing of the sort."""
    if call.kind is not Kind.CALL or call.body is None:
        return ()
    body, read = call.body.members, _READERS[call.dialect]
    found = set(read(body))
    if call.dialect is Dialect.GEMINI and isinstance(inner := body.get("request"), dict):  # the envelope of Code Assist
        found.update(read(inner))
    if _SEARCHING_MODEL.search(call.model):
        found.add(WEB_SEARCH)
    return tuple(sorted(found))


def kind_of(name: object) -> str:
    """The word for a vendor's type of tool: without its date, in one spelling; `unknown` for what is no name."""
    if not isinstance(name, str):
        return "unknown"
    plain = _DATE.sub("", _ODD.sub("_", _HUMP.sub("_", name).lower()).strip("_"))[:64]
    return _KINDS.get(plain, plain) or "unknown"


def _tools(dialect: Dialect, tools: object) -> Iterator[str]:
    """Of a list of tools; one in a namespace counts like any other."""
    rows = list(_rows(tools))
    while rows:
        tool = rows.pop()
        told = tool.get("type", "")
        plain = "" if told in ("", None) else kind_of(told)
        if plain == "namespace":
            rows.extend(_rows(tool.get("tools")))
        elif plain not in _IN_HARNESS[dialect] and not _runs_here(plain, tool):
            yield plain


def _runs_here(plain: str, tool: Mapping[str, Any]) -> bool:
    """Of tools that either side can run: whether this one says that the harness does."""
    if plain == "tool_search":  # Codex finds its own tools with it (0.171, 2026-11)
        return tool.get("execution") == "client"
    environment = tool.get("environment")
    return plain == "shell" and isinstance(environment, dict) and environment.get("type") == "local"


def _anthropic(body: Mapping[str, Any]) -> Iterator[str]:
    yield from _tools(Dialect.ANTHROPIC, body.get("tools"))
    if body.get("mcp_servers"):
        yield MCP
    if body.get("container"):
        yield CODE
    for block in _blocks(body.get("messages"), "content"):
        source = block.get("source")
        if isinstance(source, dict) and source.get("type") == "url":
            yield URL


def _responses(body: Mapping[str, Any]) -> Iterator[str]:
    yield from _tools(Dialect.RESPONSES, body.get("tools"))
    for item in _rows(body.get("input")):
        yield from _tools(Dialect.RESPONSES, item.get("tools"))  # `additional_tools` of Responses-lite, and found tools
    for block in _blocks(body.get("input"), "content", "output"):
        if _fetched(block):
            yield URL


def _chat(body: Mapping[str, Any]) -> Iterator[str]:
    yield from _tools(Dialect.CHAT, body.get("tools"))
    parameters = body.get("search_parameters")  # xAI's live search
    searches = parameters and not (isinstance(parameters, dict) and parameters.get("mode") == "off")
    if searches or body.get("web_search_options") is not None or body.get("enable_search"):
        yield WEB_SEARCH
    if body.get("mcp_servers"):
        yield MCP
    for plugin in _rows(body.get("plugins")):  # OpenRouter's
        yield WEB_SEARCH if plugin.get("id") == "web" else kind_of(plugin.get("id"))
    for block in _blocks(body.get("messages"), "content"):
        if _fetched(block):
            yield URL


def _gemini(body: Mapping[str, Any]) -> Iterator[str]:
    tools = body.get("tools")
    for tool in _rows([tools] if isinstance(tools, dict) else tools):
        yield from (plain for name in tool if (plain := kind_of(name)) not in _IN_HARNESS[Dialect.GEMINI])
    for turns in ("contents", "systemInstruction", "system_instruction"):
        for part in _blocks(body.get(turns), "parts"):
            answers = [part.get(name) for name in ("functionResponse", "function_response")]
            for one in (part, *_blocks([answer for answer in answers if isinstance(answer, dict)], "parts")):
                if "fileData" in one or "file_data" in one:
                    yield URL


_READERS: Mapping[Dialect, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    Dialect.ANTHROPIC: _anthropic,
    Dialect.RESPONSES: _responses,
    Dialect.CHAT: _chat,
    Dialect.GEMINI: _gemini,
}


def _rows(found: object) -> Iterable[Mapping[str, Any]]:
    return (row for row in found if isinstance(row, dict)) if isinstance(found, list) else ()


def _blocks(turns: object, *members: str) -> Iterator[Mapping[str, Any]]:
    """The blocks of each turn, and those within a block: a tool's answer has content of its own."""
    for turn in _rows([turns] if isinstance(turns, dict) else turns):
        rows = [block for member in members for block in _rows(_listed(turn.get(member)))]
        while rows:
            block = rows.pop()
            yield block
            rows.extend(row for member in ("content", "output") for row in _rows(_listed(block.get(member))))


def _listed(found: object) -> object:
    return [found] if isinstance(found, dict) else found


def _fetched(block: Mapping[str, Any]) -> bool:
    """Whether a block of an OpenAI dialect has the provider fetch something: an image, film, sound or file given by its address."""
    for name in ("image_url", "file_url", "video_url", "audio_url"):
        media = block.get(name)
        if _remote(media.get("url") if isinstance(media, dict) else media):
            return True
    # Of these the data itself stands in the same place as an address may (DashScope, OpenRouter: 2026-11).
    media = [block.get(name) for name in ("input_audio", "file", "file_data", "video", "image")]
    texts = [text for one in media for text in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else [one])]
    return any(isinstance(text, str) and _ADDRESS.match(text) for text in texts)


def _remote(address: object) -> bool:
    """Whether the provider would have to fetch it: anything but the data itself."""
    return isinstance(address, str) and bool(address) and address.lstrip()[:5].lower() != "data:"

"""Answer a harness's pre-tool hook: may this tool run?

Guards the projection, the record's read-only files at `/memory` inside a session. A read of an entry's file is a `get`: the
verdict names the entries, and the tool runs once they were served (`projection`). A search there is sent to `search`, a write to
`write`. It is no boundary against a program that computes a path, and need not be one: the folder holds only what the session was
served by path already. Pure: an event in, a verdict out. An event that cannot be read is denied.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping

from amem.model.ids import FORMS, is_id
from amem.typed import Any, NamedTuple

PROJECTION = "/memory"
EVENT_LIMIT_BYTES = 8 << 20
"""A harness's event carries the tool's whole input, such as the text of a file being written."""


class Verdict(NamedTuple):
    """Whether the tool may run; `reason` is what the model is told when it may not."""

    allow: bool
    reason: str = ""
    entries: tuple[str, ...] = ()
    """Paths of entries' files that the tool reads: it may run once they were served, and reaches nothing else of the projection."""


class Answer(NamedTuple):
    """What the hook program is told: 204 allow; 200 print the body, exit 0; 403 print the body on stderr, exit 2."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"


class Tool(NamedTuple):
    """Where a tool's input names files."""

    paths: tuple[str, ...] = ()
    command: str | None = None
    """The key that holds a shell command, as text or as a list of words."""
    patch: str | None = None
    """The key that holds a patch in Codex's own form."""
    searches: bool = False
    writes: bool = False


class Shape(NamedTuple):
    """How one harness's event is laid out, and in which shape it takes a denial."""

    tools: Mapping[str, Tool]
    deny: str
    """A row of `_DENIALS`, or `stderr`: the reason on stderr and exit 2."""


_NAME_KEYS = ("tool_name", "toolName")
_INPUT_KEYS = ("tool_input", "toolInput", "toolArgs")
_OWN = re.compile(r"(?:mcp_{1,2})?memory(?:__|_|-)[a-z0-9_]+")
"""amem's own tools, which answer for themselves, under the names that harnesses give them."""

_CLAUDE_TOOLS = {
    "Read": Tool(("file_path",)),
    "Grep": Tool(("path", "glob"), searches=True),
    "Glob": Tool(("path", "pattern"), searches=True),
    "LS": Tool(("path",), searches=True),
    "Edit": Tool(("file_path",), writes=True),
    "MultiEdit": Tool(("file_path",), writes=True),
    "Write": Tool(("file_path",), writes=True),
    "NotebookEdit": Tool(("notebook_path",), writes=True),
    "NotebookRead": Tool(("notebook_path",)),
    "Bash": Tool(command="command"),
}
_CODEX_TOOLS = {
    "Bash": Tool(command="command"),
    "shell": Tool(command="command"),
    "exec_command": Tool(command="cmd"),
    "apply_patch": Tool(patch="command", writes=True),
    "view_image": Tool(("path",)),
}
# Events and denials as seen in the harnesses' own traffic: Claude Code 2.1.332, Codex 0.171, Gemini CLI 0.61, Qwen 0.24,
# Copilot CLI 1.0.102 (2026-11). A harness or a tool without a row is read by what its values look like.
SHAPES: Mapping[str, Shape] = {
    "claude": Shape(_CLAUDE_TOOLS, "claude"),
    "codex": Shape(_CODEX_TOOLS, "claude"),
    "qwen": Shape({}, "claude"),
    "muse": Shape({}, "claude"),
    "gemini": Shape({}, "decision"),
    "agy": Shape({}, "decision"),
    "copilot": Shape({}, "flat"),
}
_OTHER = Shape({}, "stderr")
_DENIALS: Mapping[str, Callable[[str], Mapping[str, Any]]] = {
    "claude": lambda reason: {"hookSpecificOutput": {"hookEventName": "PreToolUse", **_flat(reason)}},
    "flat": lambda reason: _flat(reason),
    "decision": lambda reason: {"decision": "deny", "reason": reason},
}
_COMMAND_KEYS = ("command", "cmd", "script")

_ENTRY_FILE = re.compile(rf"{PROJECTION}/(?:[A-Za-z0-9_-]{{1,64}}/){{0,4}}{FORMS['entry']}\.md", re.ASCII)
_SEARCHERS = frozenset(["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "find", "fd", "fdfind", "ls", "tree", "locate", "du"])
_SEPARATORS = re.compile(r"[;&|()<>`\n$={},:]+")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)


def verdict(body: bytes, harness: str) -> Verdict:
    """Read the raw event and decide it."""
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        event = None
    return decide(event, harness) if isinstance(event, dict) else Verdict(False, "amem: the hook's event is not a JSON object")


def answer(found: Verdict, harness: str) -> Answer:
    """The verdict in the harness's own shape."""
    return Answer(204) if found.allow else denial(found.reason, harness)


def denial(reason: str, harness: str) -> Answer:
    """A refusal in the harness's own shape."""
    deny = SHAPES.get(harness, _OTHER).deny
    if deny == "stderr":
        return Answer(403, reason.encode())
    return Answer(200, json.dumps(_DENIALS[deny](reason)).encode(), "application/json")


def tool_call(event: Mapping[str, Any]) -> tuple[Any, Any]:
    """The tool that an event names, and its input, as they stand there."""
    return _first(event, _NAME_KEYS), _first(event, _INPUT_KEYS)


def decide(event: Mapping[str, Any], harness: str) -> Verdict:
    """Say whether the tool of this event may run."""
    shape = SHAPES.get(harness, _OTHER)
    name, given = tool_call(event)
    if not isinstance(name, str) or not name.strip() or not isinstance(given, (dict, str, type(None))):
        return Verdict(False, "amem: the hook's event names no tool")
    if _OWN.fullmatch(name):
        return Verdict(True)
    cwd = event.get("cwd")
    cwd = cwd if isinstance(cwd, str) and cwd.startswith("/") else "/"
    tool = shape.tools.get(name)
    writes = tool is not None and tool.writes
    entries: dict[str, None] = {}
    for path, searched in _reached(tool, given, cwd):
        if path == PROJECTION or path.startswith(PROJECTION + "/"):
            if writes or searched or _ENTRY_FILE.fullmatch(path) is None:
                return Verdict(False, _redirect(path, searched, writes))
            entries[path] = None
    return Verdict(False, _redirect(next(iter(entries)), False, False), tuple(entries)) if entries else Verdict(True)


def _first(event: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((event[key] for key in keys if key in event), None)


def _flat(reason: str) -> Mapping[str, str]:
    return {"permissionDecision": "deny", "permissionDecisionReason": reason}


def entry_of(path: str) -> str:
    """The id that an entry's file is named by."""
    return posixpath.basename(path).removesuffix(".md")


def _redirect(path: str, searched: bool, written: bool) -> str:
    id = entry_of(path)
    if not searched and not written and is_id("entry", id):
        return f'amem: entries are read with the memory tool `get`: call it with {{"id": "{id}"}}'
    if searched or path == PROJECTION:
        return "amem: the record is searched with the memory tools `search` and `list`, not by path"
    return f"amem: {PROJECTION} is read with the memory tools: `search` to find, `get` to open, `write` to add"


def _reached(tool: Tool | None, given: Mapping[str, Any] | str | None, cwd: str) -> Iterator[tuple[str, bool]]:
    """Every path that a tool's input names, made absolute, and whether the tool searches there."""
    if isinstance(given, str):
        given = {"command": given} if tool is None or tool.command is None else {tool.command: given}
    values = given or {}
    if tool is None:  # a tool nobody described: every value that is a path counts, and what is called a command is one
        for key in _COMMAND_KEYS:
            yield from _command(values.get(key), cwd)
        for text in _texts(values):
            if text.startswith(("/", "./", "../")):
                yield _absolute(text, cwd), False
        return
    for key in tool.paths:
        if isinstance(path := values.get(key), str):
            yield _absolute(_fixed_part(path) if tool.searches else path, cwd), tool.searches
    if tool.searches and not any(isinstance(values.get(key), str) for key in tool.paths[:1]):
        yield _absolute(".", cwd), True
    if tool.patch is not None:
        for text in _texts(values):
            for added, moved in _PATCHED.findall(text):
                yield _absolute((added or moved).strip(), cwd), False
    if tool.command is not None:
        yield from _command(values.get(tool.command), cwd)


def _command(command: object, cwd: str) -> Iterator[tuple[str, bool]]:
    text = " ".join(map(str, command)) if isinstance(command, list) else command
    if not isinstance(text, str):
        return
    words = [word for part in _SEPARATORS.split(text) for word in _words(part)]
    searching = any(posixpath.basename(word) in _SEARCHERS for word in words)
    here = cwd
    yield here, searching  # a shell that stands in the projection reads it by bare names
    for before, word in zip(["", *words], words, strict=False):
        path = _absolute(_fixed_part(word), here)
        if "/" in word or word in (".", "..") or before == "cd":
            yield path, searching
        if before == "cd":
            here = path


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=False)
    except ValueError:  # an open quote, split off by a separator inside it
        return text.replace('"', " ").replace("'", " ").split()


def _fixed_part(pattern: str) -> str:
    """The part of a glob before its first wildcard, so that `/mem*/x` is looked at as what it may reach."""
    cut = re.search(r"[*?\[]", pattern)
    if cut is None:
        return pattern
    head = pattern[: cut.start()]
    return PROJECTION if head and PROJECTION.startswith(head) and head != "/" else (posixpath.dirname(head) or ".")


def _absolute(path: str, cwd: str) -> str:
    joined = posixpath.normpath(posixpath.join(cwd, path))
    return "/" + joined.lstrip("/")


def _texts(value: object) -> Iterator[str]:
    pending = [value]
    while pending:
        match pending.pop():
            case str() as text:
                yield text
            case dict() as table:
                pending.extend(table.values())
            case list() as items:
                pending.extend(items)

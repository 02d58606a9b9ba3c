"""What the scripted provider is told to answer: values, their parser, and the choice of a step.

Pure: no clock, no socket, no state. A script is data (a mapping, or JSON):

    {"steps": [{"tool": "memory.search", "args": {"query": "egress"}},
               {"any": [{"tool": "Bash", "args": {"command": "id"}}, {"tool": "exec_command", "args": {"cmd": "id"}}]},
               {"tool": "memory.get", "args": {"id": "$results[0].hits[0].id"}},
               {"text": "Read ${results[0].hits[0].title}."}]}

Step i answers the request whose history already holds the results of the calls of the steps before it, so the server
keeps no conversation ("by": "history"); or simply the i-th request ("by": "count"). Past the last step the last repeats.
A step that cannot be played (a tool not offered, a reference that leads nowhere) is a `ScriptError`, never a guess.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from amem.errors import ConfigError
from amem.model.call import Usage
from amem.testing.requests import Request, Tool
from amem.typed import Any, NamedTuple

DEFAULT_USAGE = Usage(input=1000, output=30, cache_read=200, cache_write=50)
THOUGHT = "The memory may hold this already, so it is asked first."
GROWTH = 10
"""Input tokens that each further call adds, so that a sum can be told from a last value."""


class ScriptError(Exception):
    """The script does not fit the request that came; the provider answers 400 with this sentence."""


class Wish(NamedTuple):
    """A tool that a step wants called. `args` is an object, or a string given verbatim to a free-form tool."""

    tool: str
    """`Bash`: that name. `memory.search`: tool `search` of the MCP server `memory`, however a harness joins the two."""
    args: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """How an answer goes wrong, after `after` events of its stream (an answer in one piece goes wrong at once)."""

    kind: str
    """`cut`: the connection closes. `stall`: nothing more comes until the client goes or the gate `stall` is released.
    `garbage`: bytes of no protocol, then the end. `error`: the dialect's own error event, then the end."""
    after: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer of the model."""

    text: str | None = None
    calls: tuple[tuple[Wish, ...], ...] = ()
    """The tool calls of one answer; each is a list of alternatives, and the first that is offered is called."""
    usage: Mapping[str, int] = field(default_factory=dict)
    fault: Fault | None = None
    wait: str | None = None
    """The gate that holds the answer until it is released."""
    delay_s: float = 0.0
    repeat: int = 1
    """The text comes this many times over: big streams in a small script."""
    chunk: int = 0
    """Characters of a streamed delta; 0 chooses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An HTTP error in place of an answer."""

    status: int
    path: str = "."
    """A regular expression searched in the request's path."""
    times: int | None = None
    """How many requests get it; None is every one."""
    skip: int = 0
    """How many matching requests pass first."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    message: str = "scripted by the provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Steps for the requests whose body holds a text: a subagent's, a second session's."""

    match: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """All that the provider is told."""

    steps: tuple[Step, ...] = (Step(text="Done."),)
    conversations: tuple[Conversation, ...] = ()
    errors: tuple[Failure, ...] = ()
    by: str = "history"
    reasoning: bool = False
    """Each answer opens with a thought."""
    usage: Mapping[str, int] = field(default_factory=dict)
    side_text: str = "A side answer."
    """What a request that offers no tools gets, when the script has tool steps: titles, summaries, compaction."""
    encoding: str = "identity"
    """`negotiate`: the best of the client's accept-encoding. `gzip`, `deflate`, `br`, `zstd`: that, where it is accepted."""
    key: str | None = None
    """The credential that a request must carry; without it the answer is 401."""
    models: tuple[str, ...] = ("scripted-1",)
    """What the model lists hold."""
    accounts: Mapping[str, Any] = field(default_factory=dict)
    """Whose a login's token is: token -> what is answered to whoever asks with it. 401 for any other."""


class Call(NamedTuple):
    """A tool call of an answer: the tool as it was offered, and what it is called with."""

    tool: Tool
    args: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model says, before it has a wire shape."""

    text: str | None = None
    calls: tuple[Call, ...] = ()
    thought: str | None = None
    chunk: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """The step that answers a request, and its place; for a side call None and -1."""

    step: Step | None
    index: int
    answer: Answer
    usage: Usage


# ---- from data to values ---------------------------------------------------------------


def parse(data: Mapping[str, Any]) -> Script:
    """Read a script. Raises ConfigError that names the key."""
    known = _known(Script, data, "script")
    known["steps"] = tuple(_step(step, f"steps[{i}]") for i, step in enumerate(data.get("steps") or [{"text": "Done."}]))
    known["conversations"] = tuple(
        Conversation(match=str(c["match"]), steps=tuple(_step(step, f"conversations[{n}].steps[{i}]") for i, step in enumerate(c["steps"])))
        for n, c in enumerate(data.get("conversations", ()))
    )
    known["errors"] = tuple(Failure(**_known(Failure, e, f"errors[{i}]")) for i, e in enumerate(data.get("errors", ())))
    known["models"] = tuple(data.get("models", Script.__dataclass_fields__["models"].default))
    if known.get("by", "history") not in ("history", "count"):
        raise ConfigError(f"script: by: {known['by']!r} is neither history nor count")
    _usage_keys(known.get("usage", {}), "usage")
    return Script(**known)


def _known(kind: type, data: Mapping[str, Any], where: str) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    for key in data:
        if key not in names:
            raise ConfigError(f"script: {where}: unknown key {key!r}; known: {', '.join(sorted(names))}")
    return dict(data)


def _step(data: Mapping[str, Any], where: str) -> Step:
    rest = dict(data)
    calls = [_wishes(call, where) for call in rest.pop("calls", ())]
    if "any" in rest or "tool" in rest:
        calls.append(_wishes({key: rest.pop(key) for key in ("any", "tool", "args") if key in rest}, where))
    fault = rest.pop("fault", None)
    known = _known(Step, rest, where)
    if fault is not None:
        known["fault"] = Fault(**_known(Fault, fault, f"{where}.fault"))
        if known["fault"].kind not in ("cut", "stall", "garbage", "error"):
            raise ConfigError(f"script: {where}.fault: unknown kind {known['fault'].kind!r}")
    if not calls and "text" not in known:
        raise ConfigError(f"script: {where}: needs text, tool, any or calls")
    _usage_keys(known.get("usage", {}), f"{where}.usage")
    return Step(**known, calls=tuple(calls))


def _wishes(data: Mapping[str, Any], where: str) -> tuple[Wish, ...]:
    alternatives: Sequence[Mapping[str, Any]] = data.get("any", [data])
    try:
        return tuple(Wish(wish["tool"], wish.get("args", {})) for wish in alternatives)
    except KeyError as exc:
        raise ConfigError(f"script: {where}: a call needs a tool") from exc


def _usage_keys(data: Mapping[str, int], where: str) -> None:
    for key in data:
        if key not in Usage._fields:
            raise ConfigError(f"script: {where}: unknown key {key!r}; known: {', '.join(sorted(Usage._fields))}")


# ---- the choice ------------------------------------------------------------------------


def choose(script: Script, request: Request, served: int) -> Choice:
    """Choose the answer to a request when `served` model calls were answered before it. Raises ScriptError."""
    steps = next((c.steps for c in script.conversations if c.match in request.text), script.steps)
    thought = THOUGHT if script.reasoning else None
    spent = DEFAULT_USAGE._asdict() | ({"reasoning": 7} if thought else {}) | dict(script.usage)
    spent["input"] += GROWTH * served
    if not request.tools and any(step.calls for step in steps):
        return Choice(None, -1, Answer(text=script.side_text), Usage(**spent))
    index = min(served, len(steps) - 1) if script.by == "count" else position(steps, len(request.results))
    step = steps[index]
    text = fill(step.text, request.results) * step.repeat if step.text is not None else None
    calls = tuple(_call(wishes, request) for wishes in step.calls)
    return Choice(step, index, Answer(text=text, calls=calls, thought=thought, chunk=step.chunk), Usage(**spent | dict(step.usage)))


def position(steps: Sequence[Step], results: int) -> int:
    """The step whose turn it is when the history holds this many tool results."""
    for index, step in enumerate(steps):
        results -= len(step.calls)
        if results < 0 or not step.calls:
            return index
    return len(steps) - 1


def _call(wishes: Sequence[Wish], request: Request) -> Call:
    for wish in wishes:
        tool = offered(request.tools, wish.tool)
        if tool is not None:
            return Call(tool, fill(wish.args, request.results))
    names = ", ".join(sorted(tool.full_name for tool in request.tools))
    raise ScriptError(f"no tool {' or '.join(wish.tool for wish in wishes)} among those offered: {names}")


def offered(tools: Sequence[Tool], wanted: str) -> Tool | None:
    """Find a tool. `server.tool` also matches `mcp__server__tool`, `mcp_server_tool`, a namespace, and the bare name last."""
    server, _, name = wanted.rpartition(".")
    exact = next((tool for tool in tools if tool.full_name == wanted or (not server and tool.name == wanted)), None)
    if exact is not None or not server:
        return exact
    joined = re.compile(rf"(?:.*[^A-Za-z0-9])?{re.escape(server)}[^A-Za-z0-9]+{re.escape(name)}")
    return next((t for t in tools if joined.fullmatch(t.full_name)), None) or next((t for t in tools if t.full_name == name), None)


# ---- references to earlier results -----------------------------------------------------

_PATH = r"results(?:\[-?\d+\]|\.\w+)+"
_WHOLE = re.compile(rf"\$({_PATH})")
_INSIDE = re.compile(rf"\$\{{({_PATH})\}}")
_PART = re.compile(r"\[(-?\d+)\]|\.(\w+)")


def fill(value: Any, results: Sequence[Any]) -> Any:
    """Replace `$results[0].hits[0].id` (keeps its type) and `${results[0].title}` (inside a text). Raises ScriptError."""
    match value:
        case str():
            whole = _WHOLE.fullmatch(value)
            return _look_up(whole[1], results) if whole else _INSIDE.sub(lambda m: str(_look_up(m[1], results)), value)
        case Mapping():
            return {key: fill(item, results) for key, item in value.items()}
        case list() | tuple():
            return [fill(item, results) for item in value]
        case _:
            return value


def _look_up(path: str, results: Sequence[Any]) -> Any:
    value: Any = results
    for part in _PART.finditer(path):
        try:
            value = value[int(part[1])] if part[1] is not None else value[part[2]]
        except (LookupError, TypeError) as exc:
            raise ScriptError(f"${path}: nothing at {part[0]} in {str(value)[:200]}") from exc
    return value

"""What a harness asks for when it would start subagents of its own, so that the board can run them instead.

A table of tools and where each keeps its prompt. Pure: an event's tool and input in, the work that was asked for out. A
script that orchestrates agents gives one piece of work for each `agent()` call whose prompt is a literal, else itself.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

MAX_TITLE_CHARACTERS = 120


class Work(NamedTuple):
    """One piece of work that a subagent would have done."""

    title: str
    body: str


class Spawn(NamedTuple):
    """A tool call that would start or direct subagents."""

    work: tuple[Work, ...]
    """Empty where the call directs what was spawned before, or where its prompt cannot be read."""
    sealed: bool = False
    """Whether the prompt is there but encrypted: the model must be told to say it in the clear, to `fan_out`."""


Reader = Callable[[Mapping[str, Any]], Spawn]


def read(harness: str, tool: str, given: Any) -> Spawn | None:
    """The spawn that a tool call is, or None when it is an ordinary tool."""
    reader = TOOLS.get(harness, {}).get(tool)
    return None if reader is None else reader(given if isinstance(given, Mapping) else {})


def _prompt(body_key: str, *title_keys: str) -> Reader:
    def reader(given: Mapping[str, Any]) -> Spawn:
        body = given.get(body_key)
        if not isinstance(body, str) or not body.strip():
            return Spawn(())
        titles = (given.get(key) for key in title_keys)
        title = next((text for text in titles if isinstance(text, str) and text.strip()), body)
        return Spawn((Work(_title(title), body),))

    return reader


def _codex(given: Mapping[str, Any]) -> Spawn:
    """Codex gives its hooks what the backend made of `message`; on a ChatGPT login that is ciphertext (0.171.0, 2026-11)."""
    message = given.get("message")
    if isinstance(message, str) and _SEALED.fullmatch(message.strip()):
        return Spawn((), sealed=True)
    return _prompt("message", "task_name")(given)


def _script(given: Mapping[str, Any]) -> Spawn:
    """Grok puts its script, in Rhai, into a `source`; an `agent()` call is written there as in JavaScript (1.0.41, 2026-11)."""
    source = given.get("source")
    script = source.get("script") if isinstance(source, Mapping) else given.get("script")
    if not isinstance(script, str) or not script.strip():
        return Spawn(())
    found = tuple(_agents(script))
    return Spawn(found or (Work(_title(script), script),))


def _directs(given: Mapping[str, Any]) -> Spawn:
    return Spawn(())


_SEALED = re.compile(r"[A-Za-z0-9+/_=-]{80,}")
"""One long run of base64 and no space: no prompt is written so."""
_COLLABORATION = ("spawn_agent", "send_message", "followup_task", "wait_agent", "interrupt_agent", "list_agents")
_V1 = ("send_input", "wait_agent", "close_agent", "resume_agent")

TOOLS: dict[str, dict[str, Reader]] = {
    # In the request and in hooks the tool is `Agent`; `Task` is what it was called before, and still an alias.
    "claude": {"Agent": _prompt("prompt", "description"), "Task": _prompt("prompt", "description"), "Workflow": _script},
    "codex": {
        **{f"collaboration{name}": _directs for name in _COLLABORATION},
        **dict.fromkeys(_V1, _directs),
        "spawn_agent": _codex,
        "collaborationspawn_agent": _codex,
    },
    "gemini": {"invoke_agent": _prompt("prompt", "agent_name")},
    "qwen": {"agent": _prompt("prompt", "description")},
    "grok": {"spawn_subagent": _prompt("prompt", "description"), "workflow": _script},
    "opencode": {"task": _prompt("prompt", "description")},
    "copilot": {"task": _prompt("prompt", "description")},
}
"""By harness and tool, as hooks name it. pi has no such tool."""


def _title(text: str) -> str:
    """One line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TITLE_CHARACTERS else line[: MAX_TITLE_CHARACTERS - 1] + "…"


_CALL = re.compile(r"(?<![\w.$])agent\s*\(")
_LABEL = re.compile(r"""(?:^|[{,\s])["']?label["']?\s*:\s*""")


def _agents(script: str) -> list[Work]:
    """The `agent()` calls of a script whose prompt is a literal; none at all when one of them has no literal prompt.

    Comments and strings are stepped over, so that a call that only stands in one is none.
    """
    found: list[Work] = []
    at = 0
    while at < len(script):
        skipped = _skip(script, at)
        if skipped > at:
            at = skipped
            continue
        call = _CALL.match(script, at)
        if call is None:
            at += 1
            continue
        prompt, end = _literal(script, _blank(script, call.end()))
        if prompt is None:
            return []
        options, at = _rest(script, end)
        label = _LABEL.search(options)
        title = _literal(options, label.end())[0] if label is not None else None
        if prompt.strip():
            found.append(Work(_title(title or prompt), prompt))
    return found


def _skip(script: str, at: int) -> int:
    """The end of the comment or string that begins at `at`; `at` itself when none does."""
    if script.startswith("//", at):
        end = script.find("\n", at)
        return len(script) if end < 0 else end
    if script.startswith("/*", at):
        end = script.find("*/", at + 2)
        return len(script) if end < 0 else end + 2
    return _string_end(script, at) if script[at] in "\"'`" else at


def _string_end(script: str, at: int) -> int:
    quote, at = script[at], at + 1
    while at < len(script) and script[at] != quote:
        at += 2 if script[at] == "\\" else 1
    return min(at + 1, len(script))


def _blank(script: str, at: int) -> int:
    while at < len(script) and script[at].isspace():
        at += 1
    return at


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}


def _literal(script: str, at: int) -> tuple[str | None, int]:
    """The string literal that begins at `at` and what follows it; None when it is none, or is put together at run time."""
    if at >= len(script) or script[at] not in "\"'`":
        return None, at
    end = _string_end(script, at)
    inner = script[at + 1 : end - 1]
    if script[at] == "`" and re.search(r"(?<!\\)\$\{", inner):
        return None, end
    follows = script[_blank(script, end) : _blank(script, end) + 1]
    if follows not in (",", ")", "}"):  # `"a" + b`, or a script that breaks off
        return None, end
    text = re.sub(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", _unescaped, inner, flags=re.DOTALL)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), end


def _unescaped(found: "re.Match[str]") -> str:
    code = found[1] or found[2] or found[3]
    if code is None:
        return _ESCAPES.get(found[4], found[4])
    return chr(int(code, 16)) if int(code, 16) < 0x110000 else "\N{REPLACEMENT CHARACTER}"


def _rest(script: str, at: int) -> tuple[str, int]:
    """What else stands between the parentheses of a call, and where it ends."""
    depth, start = 1, at
    while at < len(script) and depth:
        skipped = _skip(script, at)
        if skipped > at:
            at = skipped
            continue
        depth += (script[at] in "([{") - (script[at] in ")]}")
        at += 1
    return script[start:at], at

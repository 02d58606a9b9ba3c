"""What a harness asks for when it would start subagents of its own, so that the board can run them instead.

A table of tools and where each keeps its prompt. Pure: an event's tool and input in, the work that was asked for out. A
script that orchestrates agents gives one piece of work for each `agent()` call whose prompt is a literal, else itself.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from amem.typed import Any, NamedTuple

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


MAX_SCRIPT_CHARACTERS = 256 << 10
"""A longer script is one piece of work as it stands: the guard has a deadline."""
_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)"""
    r"""|(?P<word>[\w$]+)"""
    r"""|(?P<string>"(?:[^"\\\n\r]|\\(?:\r\n|.))*"|'(?:[^'\\\n\r]|\\(?:\r\n|.))*')"""
    r"""|(?P<mark>\?\.|\.\.\.|.)""",
    re.DOTALL,
)
_REGEX = re.compile(r"/(?![*/])(?:[^/\\\[\n\r]|\\[^\n\r]|\[(?:[^\]\\\n\r]|\\[^\n\r])*\])+/[A-Za-z]*")
_CHUNK = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
_BEFORE_A_REGEX = frozenset(("return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "await", "yield"))
_HIDING = frozenset(("eval", "Function", "globalThis", "window", "self", "require", "import", "Reflect", "Proxy"))
"""Words by which a script can come to `agent` without its name."""


class _Token(NamedTuple):
    kind: str
    """`word`, `string` (also a template in which nothing is filled in), `template`, `regex` or `mark`."""
    text: str


class _Unclear(Exception):
    """The script cannot be read for certain."""


def _agents(script: str) -> list[Work]:
    """The `agent()` calls of a script, each with a literal prompt; none at all where anything else may start an agent, or may not be one.

    So work is never lost: a script that is not certain becomes one piece of work as a whole. What stands in a comment, a string or a
    regular expression is no call; what is filled into a template is.
    """
    if len(script) > MAX_SCRIPT_CHARACTERS:
        return []
    found: list[Work] = []
    try:
        tokens = list(_tokens(script))
    except _Unclear:
        return []
    texts = [token.text if token.kind in ("word", "mark") else "" for token in (_END, *tokens, _END, _END, _END)]
    for n, token in enumerate(tokens):
        before, after = texts[n], texts[n + 2]
        if (token.kind == "word" and token.text in _HIDING) or (token.kind == "string" and token.text[1:-1] == "agent"):
            return []
        if token == ("mark", "]") and after == "(":  # what is called has a name that is put together, or none
            return []
        if token != ("word", "agent") or before in (".", "?.", "#"):
            continue
        if before in ("{", ",") and after == ":" and not texts[n + 3].replace("$", "_")[:1].isidentifier():
            continue  # a key; `{agent: other}` may give it another name
        prompt = tokens[n + 2] if len(tokens) > n + 3 else _END
        if before == "function" or after != "(" or prompt.kind != "string" or texts[n + 4] not in (",", ")"):
            return []
        text = _unquoted(prompt.text)
        if text.strip():
            found.append(Work(_title(_label(tokens, n + 3) or text), text))
    return found


def _label(tokens: list[_Token], at: int) -> str | None:
    """The literal `label` of the options that stand behind a prompt: the first, at their own level."""
    depth = 0
    for n in range(at + 1, min(len(tokens) - 2, at + 400)):
        kind, text = tokens[n]
        if kind == "mark":
            depth += (text in ("(", "[", "{", "${")) - (text in (")", "]", "}"))
            if depth <= 0:
                return None
        elif depth == 1 and text.strip("\"'") == "label" and tokens[n + 1].text == ":" and tokens[n - 1].text in ("{", ","):
            return _unquoted(tokens[n + 2].text) if tokens[n + 2].kind == "string" else None
    return None


def _tokens(script: str) -> Iterator[_Token]:
    """The tokens of a script without its blanks and comments. Raises _Unclear."""
    at, last = 0, _END
    open_braces: list[str] = []
    while at < len(script):
        found = _TOKEN.match(script, at)
        assert found is not None and found.lastgroup is not None
        token = _Token(found.lastgroup, found[0])
        at = found.end()
        if token.kind == "blank":
            continue
        if token.kind == "mark":
            match token.text:
                case '"' | "'" | "\\":
                    raise _Unclear
                case "/":
                    token, at = _slash(script, at - 1, last)
                case "`":
                    token, at = _chunk(script, at, open_braces, began=True)
                case "{":
                    open_braces.append("{")
                case "}" if open_braces:
                    if open_braces.pop() == "${":
                        token, at = _chunk(script, at, open_braces, began=False)
        last = token
        yield token
    if "${" in open_braces:
        raise _Unclear


def _slash(script: str, at: int, last: _Token) -> tuple[_Token, int]:
    """A regular expression, or a division. After a bracket it may be either; then it must not matter. Raises _Unclear."""
    if script.startswith("/*", at):
        raise _Unclear  # a comment without an end
    found = _REGEX.match(script, at)
    regex = last.text in _BEFORE_A_REGEX if last.kind == "word" else last.kind in ("mark", "end") and last.text not in (")", "]", "}")
    if found is None:
        if regex:
            raise _Unclear
        return _Token("mark", "/"), at + 1
    if regex:
        return _Token("regex", found[0]), found.end()
    if last.text in (")", "}") and re.search("[\"'`]|agent|//|/\\*", found[0]):
        raise _Unclear
    return _Token("mark", "/"), at + 1


def _chunk(script: str, at: int, open_braces: list[str], *, began: bool) -> tuple[_Token, int]:
    """A template up to its end, or to what is filled in. Raises _Unclear for one without an end."""
    found = _CHUNK.match(script, at)
    assert found is not None
    end = found.end()
    if script.startswith("`", end):
        return _Token("string" if began else "template", f"`{found[0]}`"), end + 1
    if script.startswith("${", end):
        open_braces.append("${")
        return _Token("mark", "${"), end + 2
    raise _Unclear


_END = _Token("end", "")
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r": "", "\r\n": ""}


def _unquoted(literal: str) -> str:
    return _ESCAPE.sub(_unescaped, literal[1:-1]).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(found: "re.Match[str]") -> str:
    code = found[1] or found[2] or found[3]
    if code is None:
        return _ESCAPES.get(found[4], found[4])
    return chr(int(code, 16)) if int(code, 16) < 0x110000 else "\N{REPLACEMENT CHARACTER}"

"""The declared changes to a request: a table of named functions, applied only where a route lists them.

Pure. A change that is not in `route.shaping` is never made, and one that was made is named on the call's row and context. The
bodies of all other members stay byte for byte what the harness sent.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from amem.egress.flow import Body, Call, Kind
from amem.egress.routes import Route
from amem.model.call import Dialect
from amem.typed import Any, NamedTuple

OUTPUT_CAP_TOKENS = 32_768


class Shaped(NamedTuple):
    """A call as it leaves, and the names of the changes that were made to it."""

    call: Call
    applied: tuple[str, ...]


Change = Callable[[Call], Call | None]
"""The changed call, or None when there is nothing to change."""


def shape(call: Call, route: Route) -> Shaped:
    """Apply the route's changes in their order, then its obligations. Raises KeyError for a change that does not exist."""
    applied = []
    for name in route.shaping:
        changed = CHANGES[name](call)
        if changed is not None:
            call = changed
            applied.append(name)
    if call.kind is Kind.CALL and call.body is not None:
        for member, value in route.require.items():
            if call.body.get(member) != value:
                call = replace(call, body=call.body.replaced(member, value))
                applied.append(f"require.{member}")
    return Shaped(call, tuple(applied))


def _body(change: Callable[[Dialect, Body], Body | None]) -> Change:
    def changed(call: Call) -> Call | None:
        body = change(call.dialect, call.body) if call.body is not None and call.kind is not Kind.CONTROL else None
        return None if body is None else replace(call, body=body)

    return changed


def _fold_system(dialect: Dialect, body: Body) -> Body | None:
    """A `system` message after the first turn goes into the `system` member.

    Claude Code puts its environment there (2.1.332, 2026-11); Anthropic takes it, and the chat templates behind a gateway refuse a
    system message that is not first.
    """
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    late = [message for message in messages if isinstance(message, dict) and message.get("role") == "system"]
    if not late:
        return None
    blocks = _blocks(body.get("system"))
    for message in late:
        blocks += _blocks(message.get("content"))
    kept = [message for message in messages if not (isinstance(message, dict) and message.get("role") == "system")]
    return body.replaced("messages", kept).replaced("system", blocks)


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content) if isinstance(content, list) else []


_EFFORTS = {"high": "medium", "max": "xhigh", "minimal": "low"}
"""vLLM knows `low`, `medium` and `xhigh`; `high` is Anthropic's alone (2026-10)."""


def _gateway_effort(dialect: Dialect, body: Body) -> Body | None:
    name = "output_config" if dialect is Dialect.ANTHROPIC else "reasoning"
    told = body.get(name)
    effort = told.get("effort") if isinstance(told, dict) else None
    if not isinstance(effort, str) or effort not in _EFFORTS:
        return None
    return body.replaced(name, {**told, "effort": _EFFORTS[effort]})


_OUTPUT_MEMBERS: Mapping[Dialect, tuple[str, ...]] = {
    Dialect.ANTHROPIC: ("max_tokens",),
    Dialect.RESPONSES: ("max_output_tokens",),
    Dialect.CHAT: ("max_completion_tokens", "max_tokens"),
}


def _cap_output(dialect: Dialect, body: Body) -> Body | None:
    """Ask for 32k output tokens at most: a model with a 131k window counts them against the prompt, and harnesses ask for 128k."""
    if dialect is Dialect.GEMINI:
        config = body.get("generationConfig")
        if not isinstance(config, dict) or not _over(config.get("maxOutputTokens")):
            return None
        return body.replaced("generationConfig", {**config, "maxOutputTokens": OUTPUT_CAP_TOKENS})
    changed = None
    for name in _OUTPUT_MEMBERS[dialect]:
        if _over(body.get(name)):
            changed = (changed or body).replaced(name, OUTPUT_CAP_TOKENS)
    if dialect is Dialect.ANTHROPIC and changed is not None:
        thinking = body.get("thinking")
        # A thinking budget must stay below the output that is left (Anthropic's rule, which gateways check too).
        if isinstance(thinking, dict) and isinstance(budget := thinking.get("budget_tokens"), int) and budget >= OUTPUT_CAP_TOKENS:
            changed = changed.replaced("thinking", {**thinking, "budget_tokens": OUTPUT_CAP_TOKENS // 2})
    return changed


def _over(told: Any) -> bool:
    return isinstance(told, int) and not isinstance(told, bool) and told > OUTPUT_CAP_TOKENS


def _fold_function_response(dialect: Dialect, body: Body) -> Body | None:
    """Tool results as turns of the user, before any text of the same turn.

    LiteLLM's translation reads `functionResponse` under the role `user` only, and puts a turn's text before its results, which no
    chat template takes between a call and its result (2026-10).
    """
    contents = body.get("contents")
    if not isinstance(contents, list):
        return None
    folded: list[Any] = []
    for turn in contents:
        parts = turn.get("parts") if isinstance(turn, dict) else None
        results = [part for part in parts if isinstance(part, dict) and "functionResponse" in part] if isinstance(parts, list) else []
        if not results:
            folded.append(turn)
            continue
        rest = [part for part in parts if part not in results] if isinstance(parts, list) else []
        folded.append({**turn, "role": "user", "parts": results} if rest or turn.get("role") != "user" else turn)
        if rest:
            folded.append({"role": "user", "parts": rest})
    return None if folded == contents else body.replaced("contents", folded)


def _ask_usage(dialect: Dialect, body: Body) -> Body | None:
    """Ask a chat stream for its figures, which it leaves out unless it is asked."""
    options = body.get("stream_options")
    if (
        dialect is not Dialect.CHAT
        or body.get("stream") is not True
        or (isinstance(options, dict) and options.get("include_usage") is True)
    ):
        return None
    return body.replaced("stream_options", {**(options if isinstance(options, dict) else {}), "include_usage": True})


def _muse_models(call: Call) -> Call | None:
    """Muse's own catalogue is the list of models at a destination that is not Meta's."""
    return replace(call, path="/v1/models") if call.path == "/muse-code/models" else None


CHANGES: Mapping[str, Change] = {
    "fold_system": _body(_fold_system),
    "gateway_effort": _body(_gateway_effort),
    "cap_output": _body(_cap_output),
    "fold_function_response": _body(_fold_function_response),
    "ask_usage": _body(_ask_usage),
    "muse_models": _muse_models,
}

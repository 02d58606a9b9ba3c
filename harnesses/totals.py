"""What a session used by the harness's own account: its transcripts and usage files, read as hostile input.

Used where the egress saw nothing (a tunnel), and as a cross-check where it did; never added to what was metered. Each
harness counts in its own words: which of them include the cache, the reasoning, the subagents or the compaction is said
beside its reader, as measured in November 2026. A count that is missing, negative or no number is no count.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from amem.model.call import Usage
from amem.typed import Any

UNKNOWN = "unknown"
MAX_MODELS = 100
"""A session's further ones are counted as unknown."""
_LARGEST = (1 << 53) - 1
"""No count is larger, and no sum becomes it: a harness's word must fit wherever counts are kept."""
Event = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Tokens by model."""

    models: Mapping[str, Usage] = field(default_factory=dict)
    window: Mapping[str, Any] = field(default_factory=dict)
    """How much of a plan's window was used, in the harness's words; empty where it says nothing."""


class _Sum:
    """Adds counts up, by model."""

    def __init__(self) -> None:
        self.models: dict[str, Usage] = {}
        self.window: Mapping[str, Any] = {}

    def add(self, model: Any, *, input: int, output: int, read: int = 0, write: int = 0, reasoning: int | None = None) -> None:
        if not (input or output or read or write):
            return
        name = model if isinstance(model, str) and model and (model in self.models or len(self.models) < MAX_MODELS) else UNKNOWN
        had = self.models.get(name, Usage(input=0, output=0))
        self.models[name] = Usage(
            input=min(had.input + input, _LARGEST),
            output=min(had.output + output, _LARGEST),
            cache_read=min(had.cache_read + read, _LARGEST),
            cache_write=min(had.cache_write + write, _LARGEST),
            reasoning=had.reasoning if reasoning is None else min((had.reasoning or 0) + reasoning, _LARGEST),
        )

    def inclusive(self, model: Any, counts: Any, names: tuple[str, str, str, str, str]) -> None:
        """Add counts whose input includes the cache; `names` are those of input, output, cache read, cache write, reasoning."""
        input, output, read, write, reasoning = (_count(counts, name) for name in names)
        self.add(model, input=max(input - read - write, 0), output=output, read=read, write=write, reasoning=reasoning)


def read(shape: str, files: Iterable[Iterable[Event]]) -> Totals:
    """Total the events of a session's files, the last written first, each a stream of JSON objects. An unknown shape used nothing."""
    total = _Sum()
    reader = READERS.get(shape)
    if reader is not None:
        reader(total, files)
    return Totals(models=total.models, window=total.window)


def _claude(total: _Sum, files: Iterable[Iterable[Event]]) -> None:
    """The `cost-state` line written at exit covers all, subagents and compaction too. Without one (a killed run) the last
    usage of each message id, which each of its lines repeats; that misses the compaction's own call.
    """
    whole: Event | None = None
    messages: dict[tuple[int, str], Event] = {}
    for number, events in enumerate(files):
        state: Event | None = None
        for event in events:
            message = _table(event.get("message"))
            if event.get("type") == "cost-state" and isinstance(event.get("modelUsage"), dict):
                state = event["modelUsage"]
            elif event.get("type") == "assistant" and isinstance(message.get("id"), str):
                messages[number, message["id"]] = message
        whole = whole if whole is not None else state
    if whole is not None:
        for model, used in whole.items():
            _exclusive(total, model, used, "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        return
    for message in messages.values():
        used = message.get("usage")
        _exclusive(
            total, message.get("model"), used, "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
        )  # fmt: skip


def _codex(total: _Sum, files: Iterable[Iterable[Event]]) -> None:
    """The last running total of each rollout, which two kinds of line tell. A subagent has a rollout of its own, and its parent's total
    leaves it out.
    """
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens", "reasoning_output_tokens")
    for events in files:
        model: Any = None
        last: Event = {}
        for event in events:
            payload = _table(event.get("payload"))
            if event.get("type") == "turn_context":
                model = payload.get("model") or model
            elif event.get("type") == "token_usage_record":
                last = _table(payload.get("thread_token_usage")) or last
            elif payload.get("type") == "token_count":
                last = _table(_table(payload.get("info")).get("total_token_usage")) or last
                total.window = _table(_table(payload.get("rate_limits")).get("primary")) or total.window
        total.inclusive(model, last, names)


def _gemini(total: _Sum, files: Iterable[Iterable[Event]]) -> None:
    """The last line of each message id. Output leaves the thoughts out; calls of the router and the compression are in no file."""
    messages: dict[tuple[int, str], Event] = {}
    for number, events in enumerate(files):
        for event in events:
            if isinstance(event.get("id"), str) and isinstance(event.get("tokens"), dict):
                messages[number, event["id"]] = event
    for message in messages.values():
        used = message["tokens"]
        cached, thoughts = _count(used, "cached"), _count(used, "thoughts")
        total.add(
            message.get("model"), input=max(_count(used, "input") - cached, 0), output=_count(used, "output") + thoughts,
            read=cached, reasoning=thoughts,
        )  # fmt: skip


def _qwen(total: _Sum, files: Iterable[Iterable[Event]]) -> None:
    """One line a session in `usage_record.jsonl`, subagents and side calls included; output includes the thoughts. Without one (a killed
    run) the calls that its transcripts tell of.
    """
    calls: list[Event] = []
    records = 0
    for events in files:
        for event in events:
            for model, used in _table(event.get("models")).items():
                records += 1
                total.inclusive(model, used, ("inputTokens", "outputTokens", "cachedTokens", "", "thoughtsTokens"))
            told = _table(_table(event.get("systemPayload")).get("uiEvent"))
            if told.get("event.name") == "qwen-code.api_response":
                calls.append(told)
    if not records:
        names = ("input_token_count", "output_token_count", "cached_content_token_count", "", "thoughts_token_count")
        for told in calls:
            total.inclusive(told.get("model"), told, names)


def _grok(total: _Sum, files: Iterable[Iterable[Event]]) -> None:
    """`usage.json`; it leaves out the calls for the title, the summary and the compaction."""
    names = ("inputTokens", "outputTokens", "cachedReadTokens", "cacheCreationTokens", "reasoningTokens")
    for events in files:
        for event in events:
            for model, used in _table(_table(event.get("session")).get("modelUsage")).items():
                total.inclusive(model, used, names)


def _copilot(total: _Sum, files: Iterable[Iterable[Event]]) -> None:
    """The totals of `session.shutdown`, else each call; a compaction's calls are in neither and are added."""
    names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
    for events in files:
        calls: list[Event] = []
        whole: Event | None = None
        for event in events:
            data = _table(event.get("data"))
            match event.get("type"):
                case "session.shutdown" if isinstance(data.get("modelMetrics"), dict):
                    whole = data["modelMetrics"]
                case "session.usage_record":
                    calls.append(_table(data.get("usage")))
                case "session.compaction_complete":
                    used = _table(data.get("compactionTokensUsed"))
                    total.inclusive(used.get("model"), used, names)
        if whole is None:
            for used in calls:
                total.inclusive(used.get("model"), used, names)
        else:
            for model, metrics in whole.items():
                total.inclusive(model, _table(metrics).get("usage"), names)


def _opencode(total: _Sum, files: Iterable[Iterable[Event]]) -> None:
    """Each message of each session; a subagent is a session. Output leaves the reasoning out; the title's call is in no file."""
    for events in files:
        for event in events:
            info = _table(event.get("info"))
            used, cache = _table(info.get("tokens")), _table(_table(info.get("tokens")).get("cache"))
            reasoning = _count(used, "reasoning")
            total.add(
                info.get("modelID"), input=_count(used, "input"), output=_count(used, "output") + reasoning,
                read=_count(cache, "read"), write=_count(cache, "write"), reasoning=reasoning,
            )  # fmt: skip


def _pi(total: _Sum, files: Iterable[Iterable[Event]]) -> None:
    """Each message, compaction and branch summary. Input leaves the cache out; output includes the reasoning."""
    for events in files:
        for event in events:
            holder = _table(event.get("message")) if event.get("type") == "message" else event
            used = _table(holder.get("usage"))
            total.add(
                holder.get("model"), input=_count(used, "input"), output=_count(used, "output"), read=_count(used, "cacheRead"),
                write=_count(used, "cacheWrite"), reasoning=_count(used, "reasoning"),
            )  # fmt: skip


READERS: dict[str, Callable[[_Sum, Iterable[Iterable[Event]]], None]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "grok": _grok,
    "copilot": _copilot,
    "opencode": _opencode,
    "pi": _pi,
}


def _exclusive(total: _Sum, model: Any, used: Any, input: str, output: str, read: str, write: str) -> None:
    total.add(model, input=_count(used, input), output=_count(used, output), read=_count(used, read), write=_count(used, write))


def _table(value: Any) -> Event:
    return value if isinstance(value, dict) else {}


def _count(counts: Any, name: str) -> int:
    value = _table(counts).get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST else 0

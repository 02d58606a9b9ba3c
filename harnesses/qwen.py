"""Qwen Code, on OpenAI's chat completions. Headless it fires no session end: `Stop`, at the end of a good turn, stands in."""

from collections.abc import Mapping

from amem.harnesses.base import DEMO, GATEWAY, AnswerKind, Auth, Harness, Hook, HookKind, LaunchFacts, Version
from amem.harnesses.files import as_json, hook_table
from amem.model.call import Dialect
from amem.typed import Any

HOOKS = (
    Hook(event="PreToolUse", kind=HookKind.PRE_TOOL, timeout_s=15, matcher="*"),
    Hook(event="PreCompact", kind=HookKind.PRE_COMPACT, timeout_s=30),
    # SessionEnd came in none of eight headless runs; only an interactive `/quit` fires it (0.24.4, 2026-11).
    Hook(event="Stop", kind=HookKind.SESSION_END, timeout_s=30),
    Hook(event="SessionEnd", kind=HookKind.SESSION_END, timeout_s=30),
)

SETTINGS_FILE = ".amem/qwen-settings.json"
"""Read as the system's settings, which beat a work tree's `.qwen/settings.json`: that could else switch the hooks off."""


def environment(facts: LaunchFacts) -> Mapping[str, str]:
    """Base URL and placeholder, as OpenAI's clients read them."""
    return {
        "OPENAI_BASE_URL": facts.openai_url,
        "OPENAI_API_KEY": facts.placeholder,
        "QWEN_CODE_SYSTEM_SETTINGS_PATH": f"{facts.home}/{SETTINGS_FILE}",
        "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
    }


def files(facts: LaunchFacts) -> Mapping[str, bytes]:
    """Settings: the auth type, quiet, tools visible to the model, hooks, memory; and none of its own memory beside ours."""
    # On a busy machine the memory server takes longer to start than the five seconds that Qwen waits for it (0.24.4, 2026-11).
    server: dict[str, Any] = {"httpUrl": facts.mcp_url, "trust": True, "discoveryTimeoutMs": 60_000}
    if facts.mcp_headers:
        server["headers"] = facts.mcp_headers
    settings = {
        "$version": 4,
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        # Its own memory costs one more model call a session and writes a MEMORY.md that nobody asked for.
        "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
        "tools": {"toolSearch": {"enabled": False}},
        # An outer loop of seven stays, and ends a run on 429 or 503 in about eighty seconds.
        "model": {"generationConfig": {"maxRetries": 0}},
        # The file tools refuse a path outside the workspace, and the model would take a shell instead.
        "context": {"includeDirectories": ["/memory"]},
        "mcpServers": {"memory": server},
        "disableAllHooks": False,
        "hooks": hook_table(facts, "qwen", HOOKS),
    }
    return {SETTINGS_FILE: as_json(settings)}


def arguments(facts: LaunchFacts) -> tuple[str, ...]:
    """The prompt is positional."""
    model = () if facts.model is None else ("-m", facts.model)
    if not facts.headless:
        return model
    return (facts.prompt_argument, *model, "--yolo", "-o", "json")


HARNESS = Harness(
    name="qwen",
    title="Qwen Code",
    binary="qwen",
    auth=(Auth.KEY, Auth.GATEWAY),
    destinations={Auth.KEY: ("dashscope", "openai", "xai", DEMO), Auth.GATEWAY: (GATEWAY,)},
    dialects=(Dialect.CHAT,),
    environment=environment,
    files=files,
    arguments=arguments,
    install="make harnesses HARNESS=qwen",
    answer=AnswerKind.QWEN,
    hooks=HOOKS,
    mcp_tool="mcp__memory__{tool}",
    refusals={Auth.SUBSCRIPTION: "Qwen's free login tier ended in April 2026"},
    transcripts=(".qwen/projects/*/chats/*.jsonl",),
    transcript_shape="qwen",
    usage=(".qwen/usage_record.jsonl", ".qwen/projects/*/chats/*.jsonl"),
    version=Version(floor=(0, 24), reason="0.15, which npm picks on Node 20 without a word, has other hooks and settings"),
)

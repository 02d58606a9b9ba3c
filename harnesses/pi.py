"""pi: a provider of its own, named after the destination; its hooks are an extension."""

from collections.abc import Mapping

from amem.harnesses.base import DEMO, GATEWAY, AnswerKind, Auth, Harness, Hook, HookKind, LaunchFacts, Version
from amem.harnesses.files import as_json, asset
from amem.model.call import Dialect
from amem.typed import Any

HOOKS = (
    Hook(event="tool_call", kind=HookKind.PRE_TOOL, timeout_s=15),
    Hook(event="session_before_compact", kind=HookKind.PRE_COMPACT, timeout_s=15),
    Hook(event="session_shutdown", kind=HookKind.SESSION_END, timeout_s=15),
)
APIS = {"anthropic": "anthropic-messages", "openai": "openai-responses"}
"""The API a destination is spoken to with; chat completions for any other."""


def environment(facts: LaunchFacts) -> Mapping[str, str]:
    """Quiet."""
    return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}


def files(facts: LaunchFacts) -> Mapping[str, bytes]:
    """Provider, memory server and extension. Without `exposure` the model is shown no memory tool at all."""
    api = APIS.get(facts.destination, "openai-completions")
    provider = {
        "baseUrl": facts.egress_url if api == "anthropic-messages" else facts.openai_url,
        "api": api,
        "apiKey": facts.placeholder,
        "models": [{"id": facts.model, "contextWindow": 131072, "maxTokens": 8192}],
    }
    server: dict[str, Any] = {"url": facts.mcp_url, "exposure": "direct"}
    if facts.mcp_headers:
        server["headers"] = facts.mcp_headers
    return {
        ".pi/agent/models.json": as_json({"providers": {facts.destination: provider}}),
        ".pi/agent/mcp.json": as_json({"mcpServers": {"memory": server}}),
        ".pi/agent/extensions/amem.ts": asset("pi.ts", facts),
    }


def arguments(facts: LaunchFacts) -> tuple[str, ...]:
    """pi picks from the lists of its providers, so a model is always named. It has no permission prompts."""
    model = ("--model", f"{facts.destination}/{facts.model}")
    if not facts.headless:
        return model
    return ("-p", *model, "--session-id", facts.uuid, facts.prompt_argument)


HARNESS = Harness(
    name="pi",
    title="pi",
    binary="pi",
    auth=(Auth.KEY, Auth.GATEWAY),
    destinations={Auth.KEY: ("anthropic", "openai", "xai", "dashscope", DEMO), Auth.GATEWAY: (GATEWAY,)},
    dialects=(Dialect.ANTHROPIC, Dialect.RESPONSES, Dialect.CHAT),
    environment=environment,
    files=files,
    arguments=arguments,
    install="make harnesses HARNESS=pi",
    answer=AnswerKind.TEXT,
    hooks=HOOKS,
    impatient=True,
    mcp_tool="mcp__memory__{tool}",
    refusals={Auth.SUBSCRIPTION: "providers forbid their logins to other programs, and pi has none of its own"},
    model_required=frozenset({Auth.KEY, Auth.GATEWAY}),
    transcripts=(".pi/agent/sessions/*/*.jsonl",),
    transcript_shape="pi",
    usage=(".pi/agent/sessions/*/*.jsonl",),
    version=Version(floor=(1, 0), reason="0.74, which npm picks on Node 20 without a word, has no MCP"),
)

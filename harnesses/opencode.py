"""OpenCode: the egress as base URL of a provider; its hooks are a plugin; a GitHub Copilot login goes through the tunnel."""

from collections.abc import Mapping

from amem.harnesses.base import DEMO, GATEWAY, AnswerKind, Auth, Harness, Hook, HookKind, LaunchFacts, Login, Version, tunnel
from amem.harnesses.files import as_json, asset
from amem.model.call import Dialect
from amem.typed import Any

HOOKS = (
    Hook(event="tool.execute.before", kind=HookKind.PRE_TOOL, timeout_s=15),
    Hook(event="experimental.session.compacting", kind=HookKind.PRE_COMPACT, timeout_s=15),
    Hook(event="session.idle", kind=HookKind.SESSION_END, timeout_s=15),
)
OWN = frozenset({"anthropic", "openai", "xai"})
"""Providers whose catalog and wire shape OpenCode has built in; any other is declared, with one model."""
PROMPT_FILE = ".amem/prompt"


def environment(facts: LaunchFacts) -> Mapping[str, str]:
    """Quiet. With a plugin and no network, a start waits 84 seconds for npm unless it is told that it is offline."""
    env = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "npm_config_offline": "true"}
    return env | tunnel(facts) if facts.auth is Auth.SUBSCRIPTION else env


def files(facts: LaunchFacts) -> Mapping[str, bytes]:
    """Configuration, plugin, and the prompt: as an argument it would reach the model in quotation marks."""
    server: dict[str, Any] = {"type": "remote", "url": facts.mcp_url, "enabled": True}
    if facts.mcp_headers:
        server["headers"] = facts.mcp_headers
    config: dict[str, Any] = {
        "$schema": "https://opencode.ai/config.json", "autoupdate": False, "share": "disabled", "snapshot": False,
        "mcp": {"memory": server},
    }  # fmt: skip
    if facts.auth is not Auth.SUBSCRIPTION:
        config["provider"] = {facts.destination: _provider(facts)}
    if facts.model is not None:
        # The title of a session is written by a small model of its own; a route with one model has no other.
        config |= {"model": _model(facts), "small_model": _model(facts)}
    made = {
        ".config/opencode/opencode.json": as_json(config),
        ".config/opencode/plugin/amem.js": asset("opencode.js", facts),
    }
    return made if facts.prompt is None else made | {PROMPT_FILE: facts.prompt.encode()}


def arguments(facts: LaunchFacts) -> tuple[str, ...]:
    """The prompt is not among them: it comes on stdin."""
    model = () if facts.model is None else ("-m", _model(facts))
    return ("run", *model, "--auto", "--format", "json") if facts.headless else model


def _model(facts: LaunchFacts) -> str:
    return f"{facts.destination}/{facts.model}"


def _provider(facts: LaunchFacts) -> dict[str, Any]:
    """A provider that is built in keeps its catalog; naming the model too lets one through that the catalog has not heard of."""
    provider: dict[str, Any] = {"options": {"baseURL": facts.openai_url, "apiKey": facts.placeholder}}
    if facts.destination in OWN:
        return provider if facts.model is None else provider | {"models": {facts.model: {"name": facts.model}}}
    limit = {"context": 131072, "output": 8192}
    return provider | {"npm": "@ai-sdk/openai-compatible", "models": {str(facts.model): {"name": str(facts.model), "limit": limit}}}


HARNESS = Harness(
    name="opencode",
    title="OpenCode",
    binary="opencode",
    auth=(Auth.KEY, Auth.GATEWAY, Auth.SUBSCRIPTION),
    destinations={
        Auth.KEY: ("anthropic", "openai", "xai", DEMO),
        Auth.GATEWAY: (GATEWAY,),
        Auth.SUBSCRIPTION: ("github-copilot",),
    },
    dialects=(Dialect.ANTHROPIC, Dialect.RESPONSES, Dialect.CHAT),
    environment=environment,
    files=files,
    arguments=arguments,
    install="make harnesses HARNESS=opencode",
    stdin=PROMPT_FILE,
    model_required=frozenset({Auth.GATEWAY, DEMO}),
    answer=AnswerKind.OPENCODE,
    hooks=HOOKS,
    mcp_tool="memory_{tool}",
    login=Login(
        file=".local/share/opencode/auth.json", command="opencode auth login, then GitHub Copilot", rewritten=False, part="github-copilot"
    ),
    tunnel_hosts=("api.githubcopilot.com:443",),
    transcripts=(".amem/opencode/*.jsonl",),
    transcript_shape="opencode",
    usage=(".amem/opencode/*.jsonl", ".amem/opencode/subagents/*.jsonl"),
    # It goes on without permission to write, and ends where the file system is read-only (1.18.33, 2026-11). The file ignores itself.
    demands=((".opencode", ".gitignore", ".gitignore\n"),),
    version=Version(floor=(1,), reason="0.x ends at once: it does not know `run --auto`"),
)

"""Grok Build: a model block of its own on a key or a gateway; a Grok login through the tunnel."""

from collections.abc import Mapping

from amem.harnesses.base import DEMO, GATEWAY, AnswerKind, Auth, Harness, Hook, HookKind, LaunchFacts, Login, tunnel
from amem.harnesses.files import as_json, as_toml, hook_table
from amem.model.call import Dialect
from amem.typed import Any

HOOKS = (
    Hook(event="PreToolUse", kind=HookKind.PRE_TOOL, timeout_s=15),
    Hook(event="PreCompact", kind=HookKind.PRE_COMPACT, timeout_s=30),
    Hook(event="SessionEnd", kind=HookKind.SESSION_END, timeout_s=10),
)
FORWARDED = "grok"
"""The destination of a login whose calls the egress forwards and meters; whether xAI takes them so is not known, so `xai` comes first."""
DEFAULT_MODEL = "grok-4.6"
QUIET = (
    "telemetry", "remote_fetch", "managed_config", "feedback", "title_refresh", "turn_summary", "session_recap", "codebase_indexing",
)  # fmt: skip


def environment(facts: LaunchFacts) -> Mapping[str, str]:
    """Quiet, bounded retries, a session-end hook that may take its time; the proxy for a login."""
    env = {
        "GROK_TELEMETRY_ENABLED": "false",
        "GROK_DISABLE_AUTOUPDATER": "1",
        "GROK_TURN_SUMMARY": "0",
        "GROK_TITLE_REFRESH": "0",
        # Its own bound is 1.5 seconds (1.0.41, 2026-11).
        "GROK_SESSION_END_HOOKS_TIMEOUT_MS": "10000",
    }
    if "web_search" not in facts.server_tools:
        # On a login its searches would run at xAI, outside the sandbox, and through a tunnel nobody would see them asked for.
        env["GROK_BACKEND_SEARCH"] = "false"
    if facts.auth is Auth.SUBSCRIPTION:
        return env | tunnel(facts) | ({"GROK_CLI_CHAT_PROXY_BASE_URL": facts.openai_url} if facts.destination == FORWARDED else {})
    # The proxy URL too: the title call follows it, not the API base, and would else carry the prompt to another host.
    return env | {
        "XAI_API_KEY": facts.placeholder, "GROK_XAI_API_BASE_URL": facts.openai_url, "GROK_CLI_CHAT_PROXY_BASE_URL": facts.openai_url,
    }  # fmt: skip


def files(facts: LaunchFacts) -> Mapping[str, bytes]:
    """`config.toml`, which Grok rewrites, and the hooks in a file of their own, which it trusts."""
    server: dict[str, Any] = {"url": facts.mcp_url, "startup_timeout_sec": 60}
    if facts.mcp_headers:
        server["headers"] = facts.mcp_headers
    # The limits nest about fourfold: one gives four calls on a 500, the default never gives up.
    models: dict[str, Any] = {"max_retries": 1}
    config: dict[str, Any] = {"cli": {"auto_update": False}, "features": dict.fromkeys(QUIET, False), "models": models}
    if facts.auth is not Auth.SUBSCRIPTION:
        model = facts.model or DEFAULT_MODEL
        models |= {"default": model, "session_summary": model}
        config["model"] = {
            model: {
                "model": model,
                "base_url": facts.openai_url,
                "api_key": facts.placeholder,
                "api_backend": "chat_completions",
                "context_window": 131072,
            }
        }
    # Grok also reads Claude Code's settings; a tree's hooks for another harness are none of ours.
    config |= {"compat": {"claude": {"hooks": False}}, "mcp_servers": {"memory": server}}
    return {
        ".grok/config.toml": as_toml(config),
        ".grok/hooks/amem.json": as_json({"hooks": hook_table(facts, "grok", HOOKS)}),
    }


def arguments(facts: LaunchFacts) -> tuple[str, ...]:
    """On a key the model is always named, since without one the catalog's first is taken."""
    named = facts.model or (None if facts.auth is Auth.SUBSCRIPTION else DEFAULT_MODEL)
    model = () if named is None else ("-m", named)
    if not facts.headless:
        return model
    return ("-p", facts.prompt_argument, *model, "--always-approve", "--output-format", "json", "-s", facts.uuid)


HARNESS = Harness(
    name="grok",
    title="Grok Build",
    binary="grok",
    auth=(Auth.SUBSCRIPTION, Auth.KEY, Auth.GATEWAY),
    destinations={Auth.SUBSCRIPTION: ("xai", FORWARDED), Auth.KEY: ("xai", DEMO), Auth.GATEWAY: (GATEWAY,)},
    dialects=(Dialect.CHAT, Dialect.RESPONSES),
    environment=environment,
    files=files,
    arguments=arguments,
    install="make harnesses HARNESS=grok",
    answer=AnswerKind.GROK,
    hooks=HOOKS,
    # Else its model is told that the server "is still connecting" and goes on without its memory (1.0.41, 2026-11).
    hasty=True,
    impatient=True,
    mcp_tool="memory__{tool}",
    login=Login(file=".grok/auth.json", command="grok login", rewritten=True),
    tunnel_hosts=("cli-chat-proxy.grok.com:443", "auth.x.ai:443"),
    transcripts=(".grok/sessions/*/*/updates.jsonl",),
    transcript_shape="grok",
    usage=(".grok/sessions/*/*/usage.json",),
)

"""Codex. On a key or a gateway it has a model provider of its own, the egress; a ChatGPT login goes through the tunnel."""

from collections.abc import Mapping

from amem.harnesses.base import DEMO, GATEWAY, AnswerKind, Auth, Harness, Hook, HookKind, LaunchFacts, Login, Version, tunnel
from amem.harnesses.files import as_json, as_toml, hook_table
from amem.model.call import Dialect
from amem.typed import Any

HOOKS = (
    Hook(event="PreToolUse", kind=HookKind.PRE_TOOL, timeout_s=15),
    Hook(event="PreCompact", kind=HookKind.PRE_COMPACT, timeout_s=30),
    Hook(event="SessionEnd", kind=HookKind.SESSION_END, timeout_s=3),  # clamped to three seconds (0.171.0, 2026-11)
)


def environment(facts: LaunchFacts) -> Mapping[str, str]:
    """The placeholder that `env_key` names, or the proxy for a login."""
    return tunnel(facts) if facts.auth is Auth.SUBSCRIPTION else {"OPENAI_API_KEY": facts.placeholder}


def files(facts: LaunchFacts) -> Mapping[str, bytes]:
    """`config.toml` and `hooks.json`."""
    config: dict[str, Any] = {
        "check_for_update_on_startup": False,
        "show_raw_agent_reasoning": True,
        "model_reasoning_summary": "detailed",
        # Its own sandbox cannot nest in ours, and ours is the boundary.
        "sandbox_mode": "danger-full-access",
    }
    if facts.auth is not Auth.SUBSCRIPTION:
        config |= {"model_provider": "egress", "model_providers": {"egress": _provider(facts)}}
    server: dict[str, Any] = {"url": facts.mcp_url, "required": True}
    if facts.token is not None:
        server["bearer_token_env_var"] = "AMEM_TOKEN"
    config |= {
        "mcp_servers": {"memory": server},
        "projects": {facts.workdir: {"trust_level": "trusted"}},
        "analytics": {"enabled": False},
        # Plugins and apps fetch from github.com and chatgpt.com; the last one would wait for ever on a refused connection.
        "features": {"plugins": False, "apps": False, "unbounded_connection_retries": False},
    }
    if "web_search" not in facts.server_tools:
        # Else it stands in every request of a model that Codex does not know (0.171.0, 2026-11), and each would be refused.
        config["web_search"] = "disabled"
    return {
        ".codex/config.toml": as_toml(config),
        ".codex/hooks.json": as_json({"hooks": hook_table(facts, "codex", HOOKS)}),
    }


def arguments(facts: LaunchFacts) -> tuple[str, ...]:
    """Hooks that were not reviewed are skipped in silence, so the trust flag stands in both forms."""
    # A work tree's `.codex/config.toml` could switch the hooks off; a flag beats it.
    always = ("--dangerously-bypass-hook-trust", "-c", "features.hooks=true", *(() if facts.model is None else ("-m", facts.model)))
    if not facts.headless:
        return always
    return ("exec", facts.prompt_argument, *always, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json")


def roots(binary: str) -> tuple[str, ...]:
    """The vendor folder, which also holds `codex-code-mode-host` and `rg`; a lone binary is itself."""
    folder, found, rest = binary.partition("/vendor/")
    return (f"{folder}/vendor/{rest.partition('/')[0]}",) if found else (binary,)


def _provider(facts: LaunchFacts) -> dict[str, Any]:
    return {
        "name": "egress",
        "base_url": facts.openai_url,
        "env_key": "OPENAI_API_KEY",
        "wire_api": "responses",
        "requires_openai_auth": False,
        # The stream loop retries a 403 five times, the request loop only 5xx: so a refusal is final and an overload is not.
        "stream_max_retries": 0,
        "request_max_retries": 4,
    }


HARNESS = Harness(
    name="codex",
    title="Codex",
    binary="codex",
    auth=(Auth.SUBSCRIPTION, Auth.KEY, Auth.GATEWAY),
    destinations={Auth.SUBSCRIPTION: ("openai",), Auth.KEY: ("openai", "xai", DEMO), Auth.GATEWAY: (GATEWAY,)},
    dialects=(Dialect.RESPONSES,),
    environment=environment,
    files=files,
    arguments=arguments,
    roots=roots,
    answer=AnswerKind.CODEX,
    hooks=HOOKS,
    mcp_tool="mcp__memory__{tool}",
    login=Login(file=".codex/auth.json", command="codex login", rewritten=True),
    tunnel_hosts=("chatgpt.com:443", "auth.openai.com:443"),
    transcripts=(".codex/sessions/*/*/*/rollout-*.jsonl",),
    transcript_shape="codex",
    usage=(".codex/sessions/*/*/*/rollout-*.jsonl",),
    install="make harnesses HARNESS=codex",
    version=Version(floor=(0, 150), reason="0.140 runs none of the hooks, for it does not know the event of a session's end"),
)

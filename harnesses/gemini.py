"""Gemini CLI: its Gemini API base URL on a key or a gateway, the Code Assist endpoint on a Google login."""

from collections.abc import Mapping

from amem.harnesses.base import DEMO, GATEWAY, AnswerKind, Auth, Harness, Hook, HookKind, LaunchFacts, Login, Told, Version, tunnel
from amem.harnesses.files import as_json, hook_table
from amem.model.call import Dialect
from amem.typed import Any

HOOKS = (
    Hook(event="BeforeTool", kind=HookKind.PRE_TOOL, timeout_s=15, matcher=".*"),
    Hook(event="PreCompress", kind=HookKind.PRE_COMPACT, timeout_s=30),
    Hook(event="SessionEnd", kind=HookKind.SESSION_END, timeout_s=30),
)
DEFAULT_MODEL = "gemini-2.5-pro"
"""Without a model 0.61.0 asks a router first, and never gets past one that does not answer as Google's does (2026-11)."""


def environment(facts: LaunchFacts) -> Mapping[str, str]:
    """The base URL of the mode. A login is checked at oauth2.googleapis.com at every start, so it needs the tunnel."""
    if facts.auth is Auth.SUBSCRIPTION:
        return {"CODE_ASSIST_ENDPOINT": facts.egress_url, **tunnel(facts)}
    return {"GOOGLE_GEMINI_BASE_URL": facts.egress_url, "GEMINI_API_KEY": facts.placeholder}


def files(facts: LaunchFacts) -> Mapping[str, bytes]:
    """Settings: the auth type by name (a base URL alone selects one that headless refuses), trust, quiet, hooks, memory."""
    server: dict[str, Any] = {"httpUrl": facts.mcp_url, "trust": True}
    if facts.mcp_headers:
        server["headers"] = facts.mcp_headers
    general: dict[str, Any] = {"enableAutoUpdate": False, "enableAutoUpdateNotification": False}
    if facts.headless:
        general["maxAttempts"] = 3  # ten, the default, wait four minutes on a 429
    settings = {
        "security": {
            "auth": {"selectedType": "oauth-personal" if facts.auth is Auth.SUBSCRIPTION else "gemini-api-key"},
            "folderTrust": {"enabled": False},
        },
        "general": general,
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        # The file tools refuse a path outside the workspace, and the model would take a shell instead.
        "context": {"includeDirectories": ["/memory"]},
        "mcpServers": {"memory": server},
        "hooks": hook_table(facts, "gemini", HOOKS, per_second=1000),
    }
    return {".gemini/settings.json": as_json(settings)}


def arguments(facts: LaunchFacts) -> tuple[str, ...]:
    """JSON output also makes the exit code tell an API error from others."""
    model = facts.model or DEFAULT_MODEL
    if not facts.headless:
        return ("-m", model)
    return ("-p", facts.prompt_argument, "-m", model, "--skip-trust", "--yolo", "-o", "json")


HARNESS = Harness(
    name="gemini",
    title="Gemini CLI",
    binary="gemini",
    auth=(Auth.SUBSCRIPTION, Auth.KEY, Auth.GATEWAY),
    destinations={Auth.SUBSCRIPTION: ("google",), Auth.KEY: ("google", DEMO), Auth.GATEWAY: (GATEWAY,)},
    dialects=(Dialect.GEMINI,),
    environment=environment,
    files=files,
    arguments=arguments,
    install="make harnesses HARNESS=gemini",
    answer=AnswerKind.GEMINI,
    hooks=HOOKS,
    # Only system settings would beat them, and those must belong to uid 0 (0.61.0, 2026-11), which a sandbox does not have.
    masked=(".gemini/settings.json",),
    mcp_tool="mcp_memory_{tool}",
    login=Login(
        file=".gemini/oauth_creds.json",
        command="gemini, then Login with Google",
        rewritten=True,
        expiry=("expiry_date",),
        token=("access_token",),
        account=tuple(Told(name, ".gemini/oauth_creds.json", ("id_token", name)) for name in ("sub", "aud")),
        same=(("refresh_token",),),
    ),
    tunnel_hosts=("oauth2.googleapis.com:443", "www.googleapis.com:443"),
    transcripts=(".gemini/tmp/*/chats/session-*.jsonl",),
    transcript_shape="gemini",
    usage=(".gemini/tmp/*/chats/session-*.jsonl", ".gemini/tmp/*/chats/*/*.jsonl"),
    version=Version(floor=(0, 40), reason="0.20 ends at once: it does not know `--skip-trust`"),
)

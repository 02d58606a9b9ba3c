"""Antigravity CLI. Not to be had on the machine this was written on: all facts are public reports up to October 2026."""

from collections.abc import Mapping

from amem.harnesses.base import DEMO, GATEWAY, AnswerKind, Auth, Harness, Hook, HookKind, LaunchFacts, Login, Version, tunnel
from amem.harnesses.files import as_json, command
from amem.model.call import Dialect
from amem.typed import Any

HOOKS = (
    Hook(event="PreToolUse", kind=HookKind.PRE_TOOL, timeout_s=15),
    # It has neither a compaction nor a session-end event; `Stop` comes at the end of a turn.
    Hook(event="Stop", kind=HookKind.SESSION_END, timeout_s=15),
)


def environment(facts: LaunchFacts) -> Mapping[str, str]:
    """The Gemini API's base URL, or the proxy for a Google login."""
    if facts.auth is Auth.SUBSCRIPTION:
        return tunnel(facts)
    return {"GOOGLE_GEMINI_BASE_URL": facts.egress_url, "GEMINI_API_KEY": facts.placeholder}


def files(facts: LaunchFacts) -> Mapping[str, bytes]:
    """Settings, which must name the provider or the key is ignored; memory server; hooks."""
    server: dict[str, Any] = {"serverUrl": facts.mcp_url}
    if facts.mcp_headers:
        server["headers"] = facts.mcp_headers
    hooks = {
        hook.event: [{"hooks": [{"type": "command", "command": command(facts, "agy", hook), "timeout": hook.timeout_s}]}] for hook in HOOKS
    }
    made = {
        ".gemini/config/mcp_config.json": as_json({"mcpServers": {"memory": server}}),
        ".gemini/config/hooks.json": as_json({"amem": hooks}),
    }
    if facts.auth is Auth.SUBSCRIPTION:
        return made
    return made | {".gemini/antigravity-cli/settings.json": as_json({"modelProvider": "gemini"})}


def arguments(facts: LaunchFacts) -> tuple[str, ...]:
    """`-p` takes the prompt as its value and must be last, so it comes after the user's own arguments."""
    model = () if facts.model is None else ("--model", facts.model)
    if not facts.headless:
        return model
    return (
        "--print-timeout", "24h", "--dangerously-skip-permissions", "--disable-slash-commands", *model, "--output-format", "json",
    )  # fmt: skip


HARNESS = Harness(
    name="agy",
    title="Antigravity CLI",
    binary="agy",
    auth=(Auth.SUBSCRIPTION, Auth.KEY, Auth.GATEWAY),
    destinations={Auth.SUBSCRIPTION: ("google",), Auth.KEY: ("google", DEMO), Auth.GATEWAY: (GATEWAY,)},
    dialects=(Dialect.GEMINI,),
    environment=environment,
    files=files,
    arguments=arguments,
    last=lambda facts: ("-p", facts.prompt_argument),
    install="see antigravity.google; npm and PyPI have none",
    answer=AnswerKind.AGY,
    hooks=HOOKS,
    login=Login(file=".gemini/antigravity-cli/antigravity-oauth-token", command="agy, then sign in", rewritten=True),
    tunnel_hosts=(
        "oauth2.googleapis.com:443",
        "daily-cloudcode-pa.googleapis.com:443",
        "cloudcode-pa.googleapis.com:443",
        "www.googleapis.com:443",
        "lh3.googleusercontent.com:443",
    ),
    transcripts=(".gemini/antigravity-cli/brain/*/.system_generated/logs/transcript.jsonl",),
    transcript_shape="agy",
    version=Version(floor=(1, 1, 13), reason="older ones ignore an API key whatever their settings name"),
)

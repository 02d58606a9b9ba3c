"""Copilot CLI: a provider of one's own (BYOK) on a key or a gateway; a GitHub login through the tunnel."""

from collections.abc import Mapping

from amem.harnesses.base import DEMO, GATEWAY, AnswerKind, Auth, Harness, Hook, HookKind, LaunchFacts, Login, Version, tunnel
from amem.harnesses.files import as_json, command
from amem.model.call import Dialect
from amem.typed import Any

HOOKS = (
    Hook(event="preToolUse", kind=HookKind.PRE_TOOL, timeout_s=15),
    Hook(event="preCompact", kind=HookKind.PRE_COMPACT, timeout_s=30),
    # No hook at its end: `sessionEnd` runs before the last events of the transcript are written (1.0.102, 2026-11), so that the note
    # would lack the last turn. The launcher reads the transcript itself once the program has ended.
)
ANTHROPIC = frozenset({"anthropic"})
"""Destinations spoken to as `anthropic`, whose base URL has no `/v1`; all others by chat completions."""


def environment(facts: LaunchFacts) -> Mapping[str, str]:
    """Offline, which is quiet; or, on a login, the proxy and no update check."""
    if facts.auth is Auth.SUBSCRIPTION:
        return {"COPILOT_AUTO_UPDATE": "false", **tunnel(facts)}
    messages = facts.destination in ANTHROPIC
    env = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": facts.egress_url if messages else facts.openai_url,
        "COPILOT_PROVIDER_TYPE": "anthropic" if messages else "openai",
        "COPILOT_PROVIDER_API_KEY": facts.placeholder,
        "COPILOT_MODEL": str(facts.model),
    }
    return env if messages else env | {"COPILOT_PROVIDER_WIRE_API": "completions"}


def files(facts: LaunchFacts) -> Mapping[str, bytes]:
    """The memory server and the hooks; those of the home need no trust."""
    server: dict[str, Any] = {"type": "http", "url": facts.mcp_url, "tools": ["*"]}
    if facts.mcp_headers:
        server["headers"] = facts.mcp_headers
    hooks = {hook.event: [{"type": "command", "bash": command(facts, "copilot", hook), "timeoutSec": hook.timeout_s}] for hook in HOOKS}
    return {
        ".copilot/config.json": as_json({"trustedFolders": [facts.workdir]}),
        ".copilot/mcp-config.json": as_json({"mcpServers": {"memory": server}}),
        ".copilot/hooks/amem.json": as_json({"version": 1, "hooks": hooks}),
    }


def arguments(facts: LaunchFacts) -> tuple[str, ...]:
    """`-s` keeps stdout to the answer."""
    model = () if facts.model is None else ("--model", facts.model)
    login = ("--disable-client-telemetry", "--disable-builtin-mcps") if facts.auth is Auth.SUBSCRIPTION else ()
    if not facts.headless:
        return (*model, *login)
    return ("-s", "-p", facts.prompt_argument, *model, "--yolo", "--no-ask-user", "--session-id", facts.uuid, *login)


HARNESS = Harness(
    name="copilot",
    title="Copilot CLI",
    binary="copilot",
    auth=(Auth.SUBSCRIPTION, Auth.KEY, Auth.GATEWAY),
    destinations={
        Auth.SUBSCRIPTION: ("github-copilot",),
        Auth.KEY: ("anthropic", "openai", "xai", DEMO),
        Auth.GATEWAY: (GATEWAY,),
    },
    dialects=(Dialect.ANTHROPIC, Dialect.CHAT),
    environment=environment,
    files=files,
    arguments=arguments,
    install="make harnesses HARNESS=copilot",
    answer=AnswerKind.TEXT,
    hooks=HOOKS,
    # The folder is trusted, or it would ask; then any of these may end all hooks, those of Claude Code too (1.0.102, 2026-11).
    masked=tuple(f"{folder}/{name}" for folder in (".github/copilot", ".claude") for name in ("settings.json", "settings.local.json")),
    mcp_tool="memory-{tool}",
    model_required=frozenset({Auth.KEY, Auth.GATEWAY}),
    login=Login(
        file=".copilot/config.json",
        command='copilot login, with "storeTokenPlaintext": true in ~/.copilot/settings.json; or set GH_TOKEN',
        rewritten=False,
        variables=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    ),
    tunnel_hosts=(
        "api.github.com:443",
        "api.individual.githubcopilot.com:443",
        "api.business.githubcopilot.com:443",
        "api.enterprise.githubcopilot.com:443",
    ),
    transcripts=(".copilot/session-state/*/events.jsonl",),
    transcript_shape="copilot",
    usage=(".copilot/session-state/*/events.jsonl",),
    version=Version(floor=(1,), reason="0.x knows no provider but GitHub, and takes the models of its own list only"),
)

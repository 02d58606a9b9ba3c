"""Claude Code, on its base URL in every mode; a subscription's login stays its own and passes through the egress."""

from collections.abc import Mapping

from amem.harnesses.base import (
    DEMO,
    GATEWAY,
    AnswerKind,
    Auth,
    Harness,
    Hook,
    HookKind,
    LaunchFacts,
    Login,
    Told,
    Version,
    session_env,
    tunnel,
)
from amem.harnesses.files import as_json, hook_table
from amem.model.call import Dialect

HOOKS = (
    Hook(event="PreToolUse", kind=HookKind.PRE_TOOL, timeout_s=15, matcher=""),
    Hook(event="PreCompact", kind=HookKind.PRE_COMPACT, timeout_s=30),
    # Without a timeout of its own 2.1.332 cancels this hook after about 1.5 seconds (2026-11).
    Hook(event="SessionEnd", kind=HookKind.SESSION_END, timeout_s=30),
)
MCP_FILE = ".amem/claude-mcp.json"
SETTINGS_FILE = ".amem/claude-settings.json"
"""Given by flag, which beats a work tree's `.claude/settings.json`: that could else end all hooks, or name another egress."""
ROLES = (
    "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_FABLE_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
)  # fmt: skip
"""Claude Code picks a model per role; a route with one model answers only for that one."""


def environment(facts: LaunchFacts) -> Mapping[str, str]:
    """Base URL, placeholder and quiet switch; the gateway route also gets an effort and a context that vLLM takes."""
    # The quiet switch ends telemetry, feature gates, error reports and the update check (2.1.332, sinkhole, 2026-11).
    env = {"ANTHROPIC_BASE_URL": facts.egress_url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    if facts.auth is Auth.SUBSCRIPTION:
        env |= tunnel(facts)
    else:
        env["ANTHROPIC_API_KEY"] = facts.placeholder
    if facts.auth is Auth.GATEWAY:
        env |= {"CLAUDE_CODE_EFFORT_LEVEL": "medium", "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "120000"}
    if facts.model is not None:
        env |= dict.fromkeys(ROLES, facts.model)
    if facts.headless:
        # By default 401, 429, 5xx and a refused connection are retried for three minutes; with five, about fifteen seconds.
        env["CLAUDE_CODE_MAX_RETRIES"] = "5"
    return env


def files(facts: LaunchFacts) -> Mapping[str, bytes]:
    """Settings with the hooks, the memory server, and the state that spares the first-run dialogs."""
    server = {"type": "http", "url": facts.mcp_url, "alwaysLoad": True}  # else the tools are deferred behind ToolSearch
    if facts.mcp_headers:
        server["headers"] = facts.mcp_headers
    settings = {
        "disableAllHooks": False,
        "hooks": hook_table(facts, "claude", HOOKS),
        "env": {**session_env(facts), **environment(facts)},
        "permissions": {"allow": ["mcp__memory"], "additionalDirectories": ["/memory"]},
        "showThinkingSummaries": True,
        "skipDangerousModePermissionPrompt": True,
    }
    state: dict[str, object] = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "projects": {facts.workdir: {"hasTrustDialogAccepted": True}},
    }
    if facts.auth is not Auth.SUBSCRIPTION:
        # A key counts as approved by its last twenty characters.
        state["customApiKeyResponses"] = {"approved": [facts.placeholder[-20:]], "rejected": []}
    return {
        SETTINGS_FILE: as_json(settings),
        ".claude.json": as_json(state),
        MCP_FILE: as_json({"mcpServers": {"memory": server}}),
    }


def arguments(facts: LaunchFacts) -> tuple[str, ...]:
    """`--mcp-config` takes any number of values, so a flag always follows it."""
    files = ("--settings", f"{facts.home}/{SETTINGS_FILE}", "--mcp-config", f"{facts.home}/{MCP_FILE}", "--strict-mcp-config")
    model = () if facts.model is None else ("--model", facts.model)
    if not facts.headless:
        return (*model, *files)
    return (
        "-p", facts.prompt_argument, *model, *files,
        "--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose", "--thinking-display", "summarized",
    )  # fmt: skip


HARNESS = Harness(
    name="claude",
    title="Claude Code",
    binary="claude",
    auth=(Auth.SUBSCRIPTION, Auth.KEY, Auth.GATEWAY),
    destinations={Auth.SUBSCRIPTION: ("anthropic",), Auth.KEY: ("anthropic", DEMO), Auth.GATEWAY: (GATEWAY,)},
    dialects=(Dialect.ANTHROPIC,),
    environment=environment,
    files=files,
    arguments=arguments,
    answer=AnswerKind.CLAUDE,
    hooks=HOOKS,
    mcp_tool="mcp__memory__{tool}",
    login=Login(
        file=".claude/.credentials.json",
        command="claude, then /login",
        rewritten=True,
        expiry=("claudeAiOauth", "expiresAt"),
        token=("claudeAiOauth", "accessToken"),
        account=tuple(Told(name, ".claude.json", ("oauthAccount", f"{name}Uuid")) for name in ("account", "organization")),
    ),
    # The login is refreshed there. The profile call to api.anthropic.com may fail; a tunnel to it would carry unmetered model calls.
    tunnel_hosts=("platform.claude.com:443",),
    transcripts=(".claude/projects/*/*.jsonl",),
    transcript_shape="claude",
    usage=(".claude/projects/*/*.jsonl", ".claude/projects/*/*/subagents/*.jsonl"),
    install="make harnesses HARNESS=claude",
    version=Version(floor=(2,), reason="1.x ends at once: it does not know `--thinking-display`"),
)

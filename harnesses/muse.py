"""Muse Code. Not to be had on the machine this was written on: all facts are public reports up to October 2026."""

from collections.abc import Mapping

from amem.harnesses.base import DEMO, GATEWAY, AnswerKind, Auth, Harness, Hook, HookKind, LaunchFacts, Login, Version
from amem.harnesses.files import as_json, hook_table
from amem.model.call import Dialect
from amem.typed import Any

HOOKS = (
    Hook(event="PreToolUse", kind=HookKind.PRE_TOOL, timeout_s=15),
    Hook(event="PreCompact", kind=HookKind.PRE_COMPACT, timeout_s=30),
    # No SessionEnd is named in its twelve events; `Stop` comes at the end of a turn.
    Hook(event="Stop", kind=HookKind.SESSION_END, timeout_s=15),
)


def environment(facts: LaunchFacts) -> Mapping[str, str]:
    """A key has priority over a login, so a login's launch must not have one."""
    return {} if facts.auth is Auth.SUBSCRIPTION else {"META_API_KEY": facts.placeholder}


def files(facts: LaunchFacts) -> Mapping[str, bytes]:
    """Settings; every command fails without `schema_version`. A server that is down must not be optional."""
    server: dict[str, Any] = {"transport": "streamable_http", "url": facts.mcp_url, "enabled": True, "mode": "required"}
    if facts.mcp_headers:
        server["headers"] = facts.mcp_headers
    # From 1.3.0 the key is `mcpServers`, and a file with both keys loses all servers.
    settings: dict[str, Any] = {"schema_version": 1, "mcpServers": {"memory": server}, "hooks": hook_table(facts, "muse", HOOKS)}
    if not facts.headless:  # only `exec` takes the base URL as a flag
        settings["endpoint_transport"] = {"base_url": facts.openai_url}
    return {".config/muse/settings.json": as_json(settings)}


def arguments(facts: LaunchFacts) -> tuple[str, ...]:
    """`--base-url` belongs to `exec`; the base of an interactive session stands in the settings."""
    model = () if facts.model is None else ("--model", facts.model)
    if not facts.headless:
        return model
    effort = ("--reasoning-effort", "medium") if facts.auth is Auth.GATEWAY else ()
    return (
        "exec", facts.prompt_argument, "--json", "--base-url", facts.openai_url, *model, *effort, "--workspace", facts.workdir,
        "--worktree", "off", "--user-input-auto-resolve", "--no-foreign-personal-context", "--trust-workspace", "--yolo",
        "--session-id", facts.uuid,
    )  # fmt: skip


HARNESS = Harness(
    name="muse",
    title="Muse Code",
    binary="muse",
    auth=(Auth.SUBSCRIPTION, Auth.KEY, Auth.GATEWAY),
    destinations={Auth.SUBSCRIPTION: ("meta",), Auth.KEY: ("meta", DEMO), Auth.GATEWAY: (GATEWAY,)},
    dialects=(Dialect.RESPONSES,),
    environment=environment,
    files=files,
    arguments=arguments,
    install="curl -fsSL https://dev.meta.ai/install.sh | sh",
    answer=AnswerKind.MUSE,
    hooks=HOOKS,
    login=Login(file=".config/muse/auth.json", command="muse login", rewritten=True),
    transcripts=(".local/share/muse/sessions/*/*/*/*/session.jsonl",),
    version=Version(floor=(1, 3), reason="older ones name their MCP servers by another key"),
)

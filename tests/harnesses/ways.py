"""How the provider's model asks each harness for things, what each one's own account leaves out, and how a test launches it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from amem.harnesses import registry, totals
from amem.harnesses.base import Auth
from amem.hooks import turns
from amem.model.call import Usage
from tests.acceptance.conftest import PROJECT, Done, Place
from tests.acceptance.network import Attempts
from tests.harnesses.lab import Lab, token

LIMIT_S = 240
"""No run of a harness takes longer, on a machine with other things to do."""


class Way(NamedTuple):
    """One harness."""

    shell: str
    command: str
    """The key of the shell tool's command."""
    model: str
    plan_model: str | None = None
    """The model on a login, where a made-up one is not taken."""
    more: dict[str, Any] = {}  # noqa: RUF012 - read only
    """What else that tool wants."""
    through: str | None = None
    """The tool through which it calls memory tools that it does not declare."""
    title_retries: int = 0
    """Calls of a refused session besides its first: that of the title."""


D = {"description": "x"}
WAYS = {
    "claude": Way("Bash", "command", "claude-sonnet-5-5", more=D),
    "codex": Way("exec_command", "cmd", "gpt-5.1-codex"),
    "gemini": Way("run_shell_command", "command", "gemini-2.5-pro", more=D),
    "qwen": Way("run_shell_command", "command", "qwen3-coder", more=D | {"is_background": False}),
    # Grok declares no MCP tool to the model, and starts before its servers have answered: `search_tool` is how it asks for them.
    "grok": Way("run_terminal_command", "command", "fake-1", "grok-4.6", D, through="use_tool", title_retries=1),
    "copilot": Way("bash", "command", "fake-1", more=D),
    "opencode": Way("bash", "command", "fake-1", more=D, title_retries=1),
    "pi": Way("bash", "command", "fake-1"),
}
LOGINS: Mapping[str, Any] = {
    "claude": {
        "claudeAiOauth": {
            "accessToken": "sk-ant-oat01-" + "a" * 40, "refreshToken": "sk-ant-ort01-" + "b" * 40, "expiresAt": 1990000000000,
            "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
        }
    },
    "codex": {
        "auth_mode": "chatgpt", "OPENAI_API_KEY": None, "last_refresh": "2026-11-29T00:00:00Z",
        "tokens": {
            "id_token": token(**{"https://api.openai.com/auth": {"chatgpt_plan_type": "plus", "chatgpt_account_id": "acct-lab"}}),
            "access_token": token(**{"https://api.openai.com/auth": {"chatgpt_plan_type": "plus", "chatgpt_account_id": "acct-lab"}}),
            "refresh_token": "rt-" + "r" * 40, "account_id": "acct-lab",
        },
    },
    "gemini": {
        "access_token": "ya29." + "g" * 60, "refresh_token": "1//" + "h" * 60, "token_type": "Bearer", "expiry_date": 1990000000000,
        "scope": "https://www.googleapis.com/auth/cloud-platform openid",
    },
    "grok": {
        "https://auth.x.ai::b1a00492-073a-47ea-816f-4c329264a828": {
            "key": "xai-session-" + "k" * 40, "auth_mode": "external", "create_time": "2026-11-29T00:00:00Z", "user_id": "", "email": None,
            "coding_data_retention_opt_out": True, "refresh_token": "xr-" + "l" * 40, "expires_at": "2033-01-01T00:00:00Z",
            "oidc_issuer": "https://auth.x.ai",
        }
    },
    "copilot": {
        "authTokens": {key: {"token": "gho_" + "c" * 36} for key in ("https://github.com:labuser:github", "https://github.com:labuser")},
        "loggedInUsers": [{"host": "https://github.com", "login": "labuser", "kind": "githubDotCom"}],
        "lastLoggedInUser": {"host": "https://github.com", "login": "labuser"},
    },
    "opencode": {"github-copilot": {"type": "oauth", "refresh": "ghu_" + "o" * 36, "access": "ghu_" + "o" * 36, "expires": 0}},
}  # fmt: skip
"""Made-up logins, in the form that each program writes (facts of November 2026)."""
FORWARDED = {"claude": "anthropic", "gemini": "google"}
"""Harnesses whose model calls pass through the egress on a login, and the destination that they are for; the others' are tunnelled."""


def shell(harness: str, command: str, **more: Any) -> dict[str, Any]:
    """A step that runs a shell command."""
    way = WAYS[harness]
    return {"tool": way.shell, "args": {way.command: command, **way.more}, **more}


def memory(harness: str, tool: str, **given: Any) -> dict[str, Any]:
    """The step that calls a memory tool."""
    through = WAYS[harness].through
    if through is None:
        return {"tool": f"memory.{tool}", "args": given}
    return {"tool": through, "args": {"tool_name": f"memory__{tool}", "tool_input": given}}


def opening(harness: str) -> list[dict[str, Any]]:
    """What comes first where memory tools must be asked for."""
    # A model takes its time, and through a login's tunnel its first call is not held until the memory server is there.
    return [{"tool": "search_tool", "args": {"query": "memory"}, "delay_s": 6.0}] if WAYS[harness].through else []


def set_up(place: Place, harness: str, auth: str, url: str, login: Lab | None = None) -> list[str]:
    """Grant what the mode needs, put a login in place, and give the flags of a launch on it."""
    place.environment |= {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")}
    if auth == Auth.KEY:
        place.destination(url)
        return place.launch_flags()
    flags = ["--auth", auth, "--workdir", str(place.tree)]
    grants = place.root / "grants.toml"
    if auth == Auth.GATEWAY:
        place.environment |= {"LLMAO_URL": url, "LLMAO_KEY": "planted-key-of-the-gateway"}
        return flags
    table = registry.load(harness)
    assert table.login is not None
    home = place.base / "home"
    file = home / table.login.file
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(LOGINS[harness]))
    file.chmod(0o600)
    place.environment |= {"HOME": str(home)}
    if harness in FORWARDED:
        name = FORWARDED[harness]
        grants.write_text(grants.read_text().replace(f"[destinations.{name}]", f'[destinations.{name}]\nbase_url = "{url}"'))
    if login is not None:
        inside = place.tree / "authority.pem"
        inside.write_bytes(login.authority.read_bytes())
        names = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "GROK_EXTRA_CA_BUNDLE", "CODEX_CA_CERTIFICATE")
        place.environment |= {"LAB_PORT": str(login.port), "LAB_TRUST": json.dumps(dict.fromkeys(names, str(inside)))}
    return flags


class Ran(NamedTuple):
    """A launch that ended."""

    done: Done
    asked_for: dict[str, int]
    """The network counters of its namespace."""
    took_s: float


def model_of(harness: str, mode: Auth) -> str:
    """The model that a launch names."""
    way = WAYS[harness]
    return way.plan_model or way.model if mode is Auth.SUBSCRIPTION else way.model


def command_of(place: Place, *words: str) -> list[str]:
    """The command, in the lab where `set_up` made one."""
    command = place.command(*words)
    if any(name.startswith("LAB_") for name in place.environment):
        command[command.index("amem")] = "tests.harnesses.dialled"
    return command


def launch(
    place: Place, harness: str, flags: list[str], *words: str, until: Path | None = None, number: int = signal.SIGTERM
) -> Ran:  # fmt: skip
    """Launch headless, the session's network watched from outside; once `until` is there, the launcher is sent signal `number`."""
    model = model_of(harness, Auth.SUBSCRIPTION if Auth.SUBSCRIPTION in flags else Auth.KEY)
    asked = ("launch", "--harness", harness, *flags, "--model", model, "--json", "--prompt", "do as the test says", *words)
    command = command_of(place, *asked)
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watch = Attempts(process.pid)
    watch.start()
    try:
        while until is not None and not until.exists():
            assert process.poll() is None and time.monotonic() < began + LIMIT_S, "the tool was never called"
            time.sleep(0.05)
        if until is not None:
            process.send_signal(number)
        out, err = process.communicate(timeout=LIMIT_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
        asked_for = watch.end()
    return Ran(Done(process.returncode, out, err), asked_for, time.monotonic() - began)


def told(place: Place, harness: str, session: str) -> dict[str, int]:
    """What the harness says it used, by its own files."""
    home = place.root / "state" / "homes" / session
    paths = [path for pattern in registry.load(harness).usage for path in sorted(home.glob(pattern))]
    return added(list(totals.read(harness, [_events(path) for path in paths]).models.values()))


def _events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes())] if path.suffix == ".json" else list(turns.events(path.read_bytes().splitlines()))


def added(used: list[Usage]) -> dict[str, int]:
    """A sum; not every harness tells a cache write from other fresh input."""
    return {
        "fresh": sum(one.input + one.cache_write for one in used),
        "output": sum(one.output for one in used),
        "cache_read": sum(one.cache_read for one in used),
    }

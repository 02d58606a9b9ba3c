"""The real Claude Code and Codex through the local gateway, a real LiteLLM, in front of the scripted provider.

Three counts of the same tokens agree: the provider's, the egress's, and the spend that LiteLLM wrote into PostgreSQL. LiteLLM's own
database layer downloads its programs when it first starts, which a machine without the open internet cannot; so the rows come from
LiteLLM's own accounting of each call, by a hook (packaging/compose).
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg.rows import dict_row

from amem.egress import own
from amem.egress.answers import Spoken
from amem.egress.prompt import Stop
from amem.model.call import Dialect
from amem.model.label import Label
from amem.settings.credentials import Credentials
from amem.settings.grants import load as load_grants
from amem.settings.root import Root
from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place
from tests.testing.installed import installed

pytestmark = pytest.mark.real

MODELS = {"claude": "claude-sonnet-5-5", "codex": "gpt-5.1-codex"}
STARTS_S = 300.0
CONFIG = """
model_list:
  - model_name: claude-sonnet-5-5
    litellm_params: {{model: anthropic/claude-sonnet-5-5, api_base: "{url}", api_key: upstream}}
  - model_name: gpt-5.1-codex
    litellm_params: {{model: openai/gpt-5.1-codex, api_base: "{url}/v1", api_key: upstream}}
"""


class Gateway(NamedTuple):
    """A local gateway that answers, and a key of it."""

    local: Path
    port: int
    key: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spent(self, calls: int, *, within_s: float = 60.0) -> list[dict[str, Any]]:
        """The rows once there are so many: LiteLLM logs after it answered."""
        password = json.loads((self.local / ".secrets").read_text())["POSTGRES_PASSWORD"]
        until = time.monotonic() + within_s
        where = f"host=127.0.0.1 port={self.port + 1} user=litellm dbname=postgres"
        with psycopg.connect(where, password=password, autocommit=True, row_factory=dict_row) as connection:
            while time.monotonic() < until:
                rows = connection.execute("select * from spend order by at").fetchall()
                if len(rows) >= calls:
                    return rows
                time.sleep(0.05)
        raise AssertionError(f"LiteLLM logged fewer than {calls} calls")


@pytest.fixture
def gateway(provider: Running) -> Iterator[Gateway]:
    if not (PROJECT / "build" / "gateway" / "bin" / "litellm").exists():
        pytest.skip("LiteLLM is not installed: make gateway")
    # Not beneath pytest's folder, which is closed to the user that PostgreSQL has of its own where the tests run as root.
    local = Path(tempfile.mkdtemp(prefix="gateway-"))
    local.chmod(0o755)
    (local / "litellm.yaml").write_text(CONFIG.format(url=provider.url))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1] - 1
    try:
        _stack(local, port, "up")
        _stack(local, port, "key")
        yield Gateway(local, port, (local / ".virtual-key").read_text().strip())
    finally:
        _stack(local, port, "down")
        shutil.rmtree(local)


def _stack(local: Path, port: int, act: str) -> None:
    done = _acted(local, port, act)
    assert done.returncode == 0, done.stderr


def _acted(local: Path, port: int, act: str) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, str(PROJECT / "scripts" / "local-gateway.py"), act, "--containers", "no"]
    return subprocess.run(
        [*words, "--local", str(local), "--port", str(port)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=STARTS_S
    )


def test_a_key_is_needed_is_its_owners_alone_and_goes_on_after_a_restart(gateway: Gateway, place: Place) -> None:
    assert stat.S_IMODE((gateway.local / ".virtual-key").stat().st_mode) == 0o600
    refused = place.amem("models", "--auth", "gateway", LLMAO_URL=gateway.url, LLMAO_KEY="sk-not-a-key")
    assert refused.code == 1 and "not a key of this gateway" in refused.err
    _stack(gateway.local, gateway.port, "down")
    _stack(gateway.local, gateway.port, "up")
    listed = place.amem("models", "--auth", "gateway", "--json", LLMAO_URL=gateway.url, LLMAO_KEY=gateway.key)
    assert set(listed.json["models"]) == set(MODELS.values()), listed.err


def test_what_was_killed_is_started_again_and_what_is_not_up_says_so(gateway: Gateway, place: Place) -> None:
    keys = {"LLMAO_URL": gateway.url, "LLMAO_KEY": gateway.key}
    pid = int((gateway.local / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[0])
    os.kill(pid, signal.SIGKILL)
    told = place.amem("models", "--auth", "gateway", "--check", "claude-sonnet-5-5", **keys)
    assert told.code == 1 and "answered 503: the gateway's PostgreSQL does not answer: make local-up" in told.err
    for act in ("key", "spend"):
        done = _acted(gateway.local, gateway.port, act)
        assert (done.returncode, done.stderr) == (1, f"error: the gateway on {gateway.url} is not up: make local-up\n")
    _stack(gateway.local, gateway.port, "up")
    assert place.amem("models", "--auth", "gateway", "--check", "claude-sonnet-5-5", **keys).code == 0
    elsewhere = _acted(gateway.local, gateway.port + 10, "up")
    assert elsewhere.returncode == 1 and f"runs on port {gateway.port} already" in elsewhere.stderr
    for _ in range(2):
        _stack(gateway.local, gateway.port, "down")
    with socket.create_server(("127.0.0.1", gateway.port)):
        taken = _acted(gateway.local, gateway.port, "up")
    assert taken.returncode == 1 and f"cannot listen on 127.0.0.1:{gateway.port}" in taken.stderr


def test_amems_own_calls_go_through_litellm_in_each_dialect_and_every_count_agrees(
    place: Place, provider: Running, gateway: Gateway
) -> None:
    provider.load({"steps": [{"text": "ready"}]})
    grants = load_grants(place.root / "grants.toml")
    settings = Credentials({"LLMAO_URL": gateway.url, "LLMAO_KEY": gateway.key}, {})

    async def asked() -> list[Spoken]:
        async with own.opened(
            Root(place.root), grants, settings, own.way("gateway", None), role=own.Role.EVALUATOR, domain=next(iter(grants.domains)),
            label=Label.PUBLIC,
        ) as client:  # fmt: skip
            return [
                await client.ask("ready?", model=model, max_tokens=64, system="be brief", dialect=dialect)
                for dialect in client.dialects
                for model in MODELS.values()
            ]

    found = asyncio.run(asked())
    assert [(one.text, one.stop) for one in found] == [("ready", Stop.END)] * len(Dialect) * len(MODELS)
    wrong = place.amem("models", "--auth", "gateway", "--check", "no-such-model", "--json", LLMAO_URL=gateway.url, LLMAO_KEY=gateway.key)
    assert (wrong.code, json.loads(wrong.err)["error"]["reason"]) == (1, "rejected"), wrong.err
    spent = gateway.spent(len(found))
    assert len(spent) == len(found)
    for model in MODELS.values():
        ours = [one.usage for one in found if one.model == model and one.usage is not None]
        theirs = [one for one in spent if one["model_group"] == model]
        assert len(ours) == len(theirs) == len(Dialect)
        assert sum(one.output for one in ours) == sum(one["completion_tokens"] for one in theirs)
        assert sum(one.total - one.output for one in ours) == sum(one["prompt_tokens"] for one in theirs)
    kept = [path for path in place.root.rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if gateway.key.encode() in path.read_bytes()]


def test_claude_and_codex_run_through_litellm_and_every_count_agrees(place: Place, provider: Running, gateway: Gateway) -> None:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    variables = {"LLMAO_URL": gateway.url, "LLMAO_KEY": gateway.key, "XDG_CACHE_HOME": cache}
    listed = place.amem("models", "--auth", "gateway", "--json", **variables).json
    assert (listed["destination"], set(listed["models"])) == ("llmao", set(MODELS.values()))
    for harness, model in MODELS.items():
        installed(harness)
        provider.load(
            {"steps": [{"tool": "memory.t0"}, {"tool": "memory.handoff", "args": {"body": "Nothing is left to do."}}, {"text": "Done."}]}
        )
        words = ("launch", "--harness", harness, "--auth", "gateway", "--model", model, "--workdir", str(place.tree))
        done = place.amem(*words, "--prompt", "load T0 and stop", "--json", **variables)
        assert done.code == 0, done.err
        assert (done.json["auth"], done.json["destination"], done.json["answer"]) == ("gateway", "llmao", "Done.")

    ours = {row["model"]: row for row in place.amem("usage", "--json").json["usage"]}
    told = {name: used for (_, name), used in provider.totals().items()}
    spent = gateway.spent(sum(row["calls"] for row in ours.values()))
    assert ours.keys() == told.keys() == set(MODELS.values())
    for model, row in ours.items():
        assert "partial" not in row and "unmetered" not in row and row["billing"] == "metered"
        for part in ("input", "output", "cache_read", "cache_write"):
            assert row[part] == getattr(told[model], part), (model, part)
        theirs = [one for one in spent if one["model_group"] == model]
        assert len(theirs) == row["calls"]
        assert sum(one["completion_tokens"] for one in theirs) == row["output"]
        assert sum(one["prompt_tokens"] for one in theirs) == row["input"] + row["cache_read"] + row["cache_write"]
        assert sum(one["cache_read"] for one in theirs) == row["cache_read"]

    log = json.dumps(spent, default=str)
    books = place.amem("cost", "--reconcile", "--json", stdin=log)
    assert (books.code, {one["model"]: one["agrees"] for one in books.json["reconciled"]}) == (0, dict.fromkeys(MODELS.values(), True))
    assert place.amem("cost", "--reconcile", stdin=json.dumps(spent[1:], default=str)).code == 3

    # The gateway's key stays in the egress: nothing under the root, and nothing in the tree, has it.
    kept = [path for folder in (place.root, place.tree) for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert kept and not [path for path in kept if gateway.key.encode() in path.read_bytes()]

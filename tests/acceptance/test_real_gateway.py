"""The real Claude Code and Codex through a real LiteLLM, in front of the scripted provider: three counts of the same tokens agree."""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place
from tests.testing.installed import installed

pytestmark = pytest.mark.real

MODELS = {"claude": "claude-sonnet-5-5", "codex": "gpt-5.1-codex"}
KEY = "sk-planted-gateway-key"
STARTS_S = 120.0
SPEND_LOG = """
import json, os
from litellm.integrations.custom_logger import CustomLogger

class Log(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        found = kwargs["standard_logging_object"]
        row = {key: found[key] for key in ("model_group", "prompt_tokens", "completion_tokens", "total_tokens")}
        with open(os.environ["SPEND_LOG"], "a") as log:
            log.write(json.dumps(row) + "\\n")

log = Log()
"""
CONFIG = """
model_list:
  - model_name: claude-sonnet-5-5
    litellm_params: {{model: anthropic/claude-sonnet-5-5, api_base: "{url}", api_key: upstream}}
  - model_name: gpt-5.1-codex
    litellm_params: {{model: openai/gpt-5.1-codex, api_base: "{url}/v1", api_key: upstream}}
litellm_settings: {{callbacks: spend_log.log}}
general_settings: {{master_key: {key}}}
"""


class Gateway(NamedTuple):
    """A LiteLLM that answers."""

    url: str
    log: Path

    def spent(self, calls: int, *, within_s: float = 30.0) -> list[dict[str, Any]]:
        """LiteLLM's rows once it has written so many: it logs after it answered."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            rows = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
            if len(rows) >= calls:
                return rows
            time.sleep(0.05)
        raise AssertionError(f"LiteLLM logged fewer than {calls} calls")


@pytest.fixture
def gateway(provider: Running, tmp_path: Path) -> Iterator[Gateway]:
    program = PROJECT / "build" / "gateway" / "bin" / "litellm"
    if not program.exists():
        pytest.skip("LiteLLM is not installed: make gateway")
    (tmp_path / "spend_log.py").write_text(SPEND_LOG)
    (tmp_path / "config.yaml").write_text(CONFIG.format(url=provider.url, key=KEY))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = Gateway(f"http://127.0.0.1:{port}", tmp_path / "spend.jsonl")
    environment = {**os.environ, "SPEND_LOG": str(found.log), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONPATH": str(tmp_path)}
    words = [str(program), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    with (tmp_path / "litellm.log").open("w") as told:
        process = subprocess.Popen(words, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=told, stderr=told)
        try:
            _wait(process, found.url, tmp_path / "litellm.log")
            yield found
        finally:
            process.terminate()
            process.wait(30)


def _wait(process: "subprocess.Popen[bytes]", url: str, told: Path) -> None:
    until = time.monotonic() + STARTS_S
    while process.poll() is None and time.monotonic() < until:
        try:
            urllib.request.urlopen(f"{url}/health/liveliness", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return
    raise AssertionError(told.read_text()[-2000:])


def test_claude_and_codex_run_through_litellm_and_every_count_agrees(place: Place, provider: Running, gateway: Gateway) -> None:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    variables = {"LLMAO_URL": gateway.url, "LLMAO_KEY": KEY, "XDG_CACHE_HOME": cache}
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

    # The gateway's key stays in the egress: nothing under the root, and nothing in the tree, has it.
    kept = [path for folder in (place.root, place.tree) for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert kept and not [path for path in kept if KEY.encode() in path.read_bytes()]

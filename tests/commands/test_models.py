"""`amem models` as a person types it: where it asks, on whose word, and what it prints."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amem.cli.main import run
from amem.testing.provider import Running, running

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def provider() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.fixture
def amem(tmp_path: Path, provider: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("SERVER_AUTH", "SERVER_PROVIDER", "LLMAO_URL", "LLMAO_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "root"

    def call(*words: str, **environment: str) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            capsys.readouterr()
            code = run(["--root", str(root), *words])
        out, err = capsys.readouterr()
        return code, out, err

    assert call("init", "--owner", "human:asf:you")[0] == 0
    grants = (root / "grants.toml").read_text()
    for name in ("llmao", "openai"):
        grants = grants.replace(f"[destinations.{name}]", f'[destinations.{name}]\nbase_url = "{provider.url}"')
    (root / "grants.toml").write_text(grants)
    return call


def listed(amem: Run, *words: str, **environment: str) -> Any:
    code, out, err = amem("models", "--json", *words, **environment)
    assert code == 0, err
    return json.loads(out)


def test_the_ways_to_a_destination(amem: Run) -> None:
    keys = {"LLMAO_KEY": "sk-placeholder", "OPENAI_API_KEY": "sk-placeholder"}
    gateway = listed(amem, **keys)
    assert gateway["destination"] == "llmao" and gateway["models"]
    assert listed(amem, "--auth", "key", "--provider", "openai", **keys) == {"destination": "openai", "models": gateway["models"]}
    assert listed(amem, "--harness", "codex", **keys)["destination"] == "openai"
    assert listed(amem, "--harness", "codex", "--auth", "gateway", **keys)["destination"] == "llmao"
    assert listed(amem, SERVER_AUTH="key", SERVER_PROVIDER="openai", **keys)["destination"] == "openai"
    assert amem("models", **keys)[1].splitlines() == gateway["models"]


def test_what_cannot_be_asked_says_why(amem: Run) -> None:
    code, out, err = amem("models", "--auth", "key", "--provider", "openai")
    assert (code, out) == (1, "") and "no key for openai" in err
    code, _, err = amem("models", "--auth", "subscription")
    assert code == 2 and "a login belongs to its harness alone" in err
    code, _, err = amem("models", SERVER_AUTH="none")
    assert code == 2 and "amem is to make no calls of its own" in err
    code, _, err = amem("models", SERVER_AUTH="kye")
    assert code == 2 and "expected key or gateway" in err


def test_a_model_is_checked_with_one_word_and_told_with_its_price(amem: Run, provider: Running, tmp_path: Path) -> None:
    key = {"OPENAI_API_KEY": "sk-placeholder"}
    words = ("models", "--provider", "openai", "--check", "m-1-2026")
    provider.load({"steps": [{"text": "ready"}]})
    code, out, err = amem(*words, **key)
    assert (code, err) == (0, "") and out.startswith("ready\nm-1-2026 at openai: 1000 tokens in, 30 out, 250 of a cache; no price in")
    (tmp_path / "root" / "prices.toml").write_text('[models."m-1"]\ninput = 1.0\noutput = 10.0\ncache_read = 0.1\ncache_write = 2.0\n')
    told = json.loads(amem("--json", *words, **key)[1])
    assert told.pop("call").startswith("call-") and told.pop("ms") >= 0
    assert told == {
        "destination": "openai", "model": "m-1-2026", "reported_model": "m-1-2026", "answer": "ready", "stop": "end",
        "input": 1010, "output": 30, "cache_read": 200, "cache_write": 50, "reasoning": 0, "usd": 0.00143,
    }  # fmt: skip
    assert [seen.method for seen in provider.log] == ["POST", "POST"]


def test_a_model_that_does_not_answer_says_why_and_a_limit_refuses(amem: Run, provider: Running, tmp_path: Path) -> None:
    key = {"OPENAI_API_KEY": "sk-placeholder"}
    words = ("models", "--provider", "openai", "--check", "m-1")
    provider.load({"errors": [{"status": 404, "message": "no such model: m-1"}]})
    code, out, err = amem("--json", *words, **key)
    told = json.loads(err)["error"]
    assert (code, out, told.pop("call")[:5]) == (1, "", "call-")
    assert told == {
        "code": "upstream", "message": "openai answered 404: no such model: m-1", "destination": "openai", "reason": "rejected",
        "status": 404,
    }  # fmt: skip
    with (tmp_path / "root" / "grants.toml").open("a") as grants:
        grants.write("\n[spend.openai]\nday_tokens = 10\n")
    code, out, err = amem(*words, **key)
    assert (code, out) == (3, "") and "10 of 10 tokens left" in err
    assert len(provider.log) == 1

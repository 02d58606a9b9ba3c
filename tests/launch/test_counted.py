"""A harness's own account of a session that went through its login's tunnel."""

import json
import os
from pathlib import Path
from typing import Any, cast

import pytest

from amem.egress import meter, reading
from amem.harnesses import registry
from amem.launch import counted
from amem.launch.plan import Asked, plan
from amem.launch.run import Prepared
from amem.model.call import Auth, Billing, ObservedBy
from amem.settings import grants
from amem.settings.credentials import Credentials
from amem.settings.root import Root

SESSION = "ses-0123456z"
TRANSCRIPTS = Path(__file__).parents[1] / "hooks" / "transcripts"
ROLLOUT = ".codex/sessions/2026/11/30/rollout-1.jsonl"
GRANTS = """
owner = "human:asf:you"
[grants.dom-me.principals."agent:*"]
read = "internal"
[destinations.openai]
ceiling = "public"
"""


@pytest.fixture
def root(tmp_path: Path) -> Root:
    found = Root(tmp_path / "root")
    found.state.mkdir(parents=True)
    found.grants.write_text(GRANTS)
    return found


def ready(root: Root, tmp_path: Path, harness: str = "codex") -> Prepared:
    """A session as `counted` looks at it: planned on a login, with a private home."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    environment = {"HOME": "/home/somebody", "PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-placeholder"}
    asked = Asked(harness="command", auth="key", provider="openai", args=("true",), workdir=str(work))
    found = plan(asked, root, grants.load(root.grants), Credentials(environment, {}), environment, "dom-me")
    planned = found._replace(harness=registry.load(harness), auth=Auth.SUBSCRIPTION)
    return Prepared(id=SESSION, plan=planned, launch=cast(Any, None), spec=cast(Any, None), home=str(home), projection=home, board=False)


def left(session: Prepared, name: str, data: bytes) -> Path:
    path = Path(session.home, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_codexs_rollout_becomes_a_row_in_its_name_on_the_plan(root: Root, tmp_path: Path) -> None:
    session = ready(root, tmp_path)
    left(session, ROLLOUT, (TRANSCRIPTS / "codex.jsonl").read_bytes())
    found = counted.read(session)
    counted.keep(root, session, None, found)
    [row] = reading.report(root, ("session", "model"))
    assert (row["source"], row["billing"], row["model"]) == (ObservedBy.HARNESS, Billing.PLAN, "gpt-5.1-codex")
    assert (row["input"], row["output"], row["cache_read"], row["reasoning"]) == (1610, 60, 400, 14)
    assert counted.sentence(found.window) == "12.5 % of the plan's window of 5 hours is used, says the harness"


def test_what_was_metered_is_not_counted_again(root: Root, tmp_path: Path) -> None:
    session = ready(root, tmp_path)
    left(session, ROLLOUT, (TRANSCRIPTS / "codex.jsonl").read_bytes())
    seen = meter.CallRow(
        id="call-000000000001", at="2026-11-30T10:00:00.000Z", session=SESSION, domain="dom-me", principal="agent:codex",
        destination="openai", model="m", dialect="responses", status=200, billing=Billing.PLAN, input=5, output=1,
    )  # fmt: skip
    meter.keep(root, [seen])
    counted.keep(root, session, None, counted.read(session))
    assert [row["source"] for row in reading.report(root, ("session",))] == ["egress"]


def test_calls_that_were_refused_or_a_tunnel_leave_its_word_the_only_one(root: Root, tmp_path: Path) -> None:
    session = ready(root, tmp_path)
    left(session, ROLLOUT, (TRANSCRIPTS / "codex.jsonl").read_bytes())
    common: dict[str, Any] = {"at": "2026-11-30T10:00:00.000Z", "session": SESSION, "domain": "dom-me", "principal": "agent:codex"}
    common |= {"destination": "openai", "billing": Billing.PLAN}
    rows = [
        meter.CallRow(id="call-000000000001", model="m", dialect="responses", status=403, refused="denied", **common),
        meter.CallRow(id="call-000000000002", kind="tunnel", model="chatgpt.com", dialect="tls", status=200, **common),
    ]
    meter.keep(root, rows)
    counted.keep(root, session, None, counted.read(session))
    assert [row["input"] for row in reading.report(root, ("session",), source=ObservedBy.HARNESS)] == [1610]


def test_what_a_sandbox_left_is_read_as_hostile(root: Root, tmp_path: Path) -> None:
    """Links, huge and broken files, counts that are none, names that act on a terminal."""
    session = ready(root, tmp_path)
    (tmp_path / "secret.jsonl").write_bytes((TRANSCRIPTS / "codex.jsonl").read_bytes())
    link = Path(session.home, ROLLOUT)
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "secret.jsonl")
    assert counted.read(session) == counted.Counted({}, {})
    os.mkfifo(link.parent / "rollout-2.jsonl")
    left(session, f"{ROLLOUT[:-7]}3.jsonl", b"[" * 100_000 + b"\n{\n\xff\xfe\n")
    total = {"input_tokens": -5, "output_tokens": "many", "cached_input_tokens": 1 << 70}
    limits = {"primary": {"used_percent": "\x1b[2J", "resets_at": float("inf")}}
    event = {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": total}, "rate_limits": limits}}
    named = {"type": "turn_context", "payload": {"model": "\x1b]0;x\x07" + "m" * 500}}
    left(session, f"{ROLLOUT[:-7]}4.jsonl", json.dumps(event).encode())
    used = {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 3, "output_tokens": 1}}}}
    left(session, f"{ROLLOUT[:-7]}5.jsonl", json.dumps(named).encode() + b"\n" + json.dumps(used).encode())
    found = counted.read(session)
    assert (list(found.models), dict(found.window)) == (["unknown"], {})
    counted.keep(root, session, None, found)


def test_a_harness_that_leaves_nothing_leaves_no_row(root: Root, tmp_path: Path) -> None:
    session = ready(root, tmp_path, "muse")
    counted.keep(root, session, None, counted.read(session))
    assert reading.report(root) == []


def test_no_more_is_read_than_all_of_it_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "MAX_BYTES", 25)
    for number in range(4):
        (tmp_path / f"{number}.jsonl").write_text('{"a": 1}\n\n')
    assert len(list(counted._files(str(tmp_path), ("*.jsonl",)))) == 2

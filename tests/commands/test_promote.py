"""`amem promote`, `approve`, `decline` and `promotions` as people type them."""

import json
import os
import pwd
import shlex
from pathlib import Path
from typing import Any

import pytest

from amem.cli.main import run

BOB = "human:asf:bob"
USER = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def amem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: str) -> tuple[int, Any, str]:
        code = run(["--root", str(tmp_path / "root"), "--json", *words])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else None, err

    assert call("init", "--owner", "human:asf:you")[0] == 0
    grants = tmp_path / "root" / "grants.toml"
    people = f'[people."{BOB}"]\nos_users = ["{USER}"]\n[grants.dom-me.principals."{BOB}"]\nread = "restricted"\nwrite = true\n'
    grants.write_text(f"{grants.read_text()}\n{people}")
    return call


def test_from_a_proposal_to_verified(amem: Any) -> None:
    entry = amem("write", "--type", "fact", "--title", "T", "--body", "Known.")[1]["id"]
    code, _, err = amem("promote", entry, "--to", "curated", "--why", "mine")
    assert (code, json.loads(err)["error"]["reason"]) == (3, "promote_own")
    code, done, _ = amem("promote", entry, "--to", "verified", "--why", "Checked it.")
    assert (code, done["landed"], done["version"]) == (0, False, 1)
    assert amem("approve", done["task"])[0] == 2
    code, _, err = amem("approve", done["task"], "--yes")
    assert (code, json.loads(err)["error"]["reason"]) == (3, "own_proposal")
    code, approved, _ = amem("--as", BOB, "approve", done["task"], "--yes")
    assert (code, approved) == (0, {"task": done["task"], "entry": entry, "version": 2, "tier": "verified", "landed": True})
    [one] = amem("promotions", entry)[1]["promotions"]
    assert (one["landed"], one["why"], one["by"], one["task"]) == (True, "Checked it.", "human:asf:you", done["task"])


def test_the_hints_of_what_is_refused_lead_to_verified(amem: Any) -> None:
    entry = amem("write", "--type", "fact", "--title", "T", "--body", "Known.")[1]["id"]

    def helped(*words: str) -> tuple[int, Any, str]:
        code, _, err = amem(*words)
        hint = json.loads(err)["error"]["hint"]
        assert code == 3 and hint.startswith("amem ")
        return amem(*shlex.split(hint)[1:])  # type: ignore[no-any-return]

    code, proposed, _ = helped("promote", entry, "--to", "curated", "--why", "mine")
    assert (code, proposed["landed"]) == (0, False)
    code, _, err = amem("approve", proposed["task"], "--yes")
    assert json.loads(err)["error"]["hint"].endswith(f" --as {BOB} approve {proposed['task']}")
    assert amem("--as", BOB, "approve", proposed["task"], "--yes")[1]["tier"] == "verified"
    code, _, err = amem("--as", BOB, "approve", proposed["task"], "--yes")
    assert code == 1 and amem(*shlex.split(json.loads(err)["error"]["hint"])[1:])[0] == 0


def test_a_changed_entry_is_a_conflict_and_a_decline_stays(amem: Any) -> None:
    entry = amem("write", "--type", "fact", "--title", "T", "--body", "Known.")[1]["id"]
    task = amem("promote", entry, "--to", "verified", "--why", "Checked it.")[1]["task"]
    assert amem("--as", BOB, "promote", entry, "--to", "curated", "--why", "Read it.")[1]["version"] == 2
    code, _, err = amem("--as", BOB, "approve", task, "--yes")
    assert (code, json.loads(err)["error"]["code"]) == (1, "conflict")
    again = amem("promote", entry, "--to", "verified", "--why", "As it stands.")[1]["task"]
    assert amem("--as", BOB, "decline", again, "--why", "No.")[1] == {"task": again, "entry": entry, "version": 2, "declined": True}
    assert amem("promote", entry, "--to", "verified", "--why", "Please.")[0] == 3
    assert [one.get("declined", False) for one in amem("promotions", entry)[1]["promotions"]] == [False, False, True]


def test_ids_of_another_kind_are_usage_errors(amem: Any) -> None:
    assert amem("promotions", "task-me-0123abcd")[0] == 2
    assert amem("approve", "mem-me-0123456789ab", "--yes")[0] == 2
    assert amem("promotions", "mem-me-0123456789ab")[0] == 3

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from amem.logs import reader
from amem.logs.schema import PolicyDecision
from amem.logs.writer import Writer
from amem.model.label import Label
from amem.policy.door import Door
from amem.policy.engine import PolicyEngine, builtin

from .asks import DATA, call, write

AT = datetime(2026, 11, 30, 7, 25, 57, 123000, tzinfo=UTC)


def test_a_decision_is_in_the_log_before_it_is_known() -> None:
    log: list[PolicyDecision] = []
    door = Door(PolicyEngine(builtin(), DATA), log.append, lambda: AT)
    found = door.decide(call(label=Label.RESTRICTED, task="task-a-0123abcd"))
    assert json.loads(json.dumps(log[0].line())) == {
        "v": 1,
        "event": "policy.decision",
        "at": "2026-11-30T07:25:57.123Z",
        "id": found.id,
        "session": "ses-0123abcd",
        "domain": "dom-a",
        "principal": "agent:codex",
        "observed_by": "amem",
        "action": "model_call",
        "allow": False,
        "task": "task-a-0123abcd",
        "reasons": [{"code": "label_over_ceiling", "label": "restricted", "ceiling": "internal", "destination": "anthropic"}],
        "policy_version": door.version,
        "data_version": found.data_version,
        "input_digest": found.input_digest,
        "input": {
            "label": "restricted", "destination": "anthropic", "ceiling": "internal", "dialect": "anthropic", "model": "m-1",
            "billing": "metered", "role": None,
        },
    }  # fmt: skip
    assert found.input_digest.startswith("sha256:") and len(found.input_digest) == 71


def test_a_held_write_is_logged_as_held() -> None:
    log: list[PolicyDecision] = []
    Door(PolicyEngine(builtin(), DATA), log.append, lambda: AT).decide(write(findings=["secret"]))
    assert (log[0].allow, log[0].hold, log[0].review) == (False, True, "human")


def test_without_the_log_there_is_no_decision() -> None:
    def full(event: PolicyDecision) -> None:
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        Door(PolicyEngine(builtin(), DATA), full, lambda: AT).decide(write())


def test_a_disk_that_is_full_in_the_middle_of_a_line_gives_no_decision_and_the_log_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Writer(tmp_path)
    door = Door(PolicyEngine(builtin(), DATA), log.append, lambda: AT)
    door.decide(write())
    real = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:200]))
        with pytest.raises(OSError, match="short write"):
            door.decide(write(findings=["secret"]))
    after = door.decide(write(findings=["hidden"]))
    log.close()
    path = tmp_path / PolicyDecision.log
    assert [line["id"] for line in reader.events(path)][1:] == [after.id]
    assert reader.verify(path) == [reader.Broken(2, "torn")]


def test_a_swapped_policy_decides_the_next_request() -> None:
    door = Door(PolicyEngine(builtin(), DATA), lambda event: None, lambda: AT)
    assert door.decide(write()).allow
    door.swap(PolicyEngine([("site.rego", 'package amem\ndecision := {"allow": false, "reasons": [{"code": "closed"}]}\n')], DATA))
    assert door.decide(write()).code == "closed"

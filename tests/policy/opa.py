"""OPA as the oracle of the policy: found where `scripts/fetch-oracle.sh` puts it or `$POLICY_ORACLE` says, run in a child."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amem.policy.engine import LABELS, builtin
from amem.policy.grants import resolver
from amem.policy.request import FACTS, Request

_PROJECT = Path(__file__).resolve().parents[2]
CHILD_LIMIT_S = 300


def library() -> Path | None:
    """The folder that OPA's Python binding stands in, or None. Where `$POLICY_ORACLE` names one it must be there: CI skips nothing."""
    named = os.environ.get("POLICY_ORACLE")
    folder = _PROJECT / (named or "build/oracle/lib")
    there = (folder / "opa_bindings").is_dir()
    if named and not there:
        raise FileNotFoundError(f"POLICY_ORACLE={named}: no opa_bindings there: make oracle")
    return folder if there else None


def evaluated(data: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """The input that the engine evaluates for a request."""
    asked = request.input
    grant = resolver(data)(asked.get("domain", ""), asked.get("principal", ""), asked.get("owner"))
    return {**asked, "action": request.action, "grant": grant, **FACTS.get(request.action, lambda _: {})(asked)}


def answers(
    data: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]], modules: Sequence[tuple[str, str]] = builtin(), repeat: int = 1
) -> dict[str, Any]:
    """What OPA answers to each input: `{answers, us}`."""
    folder = library()
    assert folder is not None
    job = {"library": str(folder), "modules": modules, "data": {**data, "labels": LABELS}, "inputs": inputs, "repeat": repeat}
    child = str(Path(__file__).with_name("opa_child.py"))
    done = subprocess.run(
        [sys.executable, "-I", child], input=json.dumps(job), capture_output=True, text=True, timeout=CHILD_LIMIT_S, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def timings(data: Mapping[str, Any], requests: Mapping[str, Request], repeat: int = 300) -> dict[str, float]:
    """Microseconds of one evaluation by OPA, by request; empty where it is not here."""
    if library() is None:
        return {}
    taken = answers(data, [evaluated(data, request) for request in requests.values()], repeat=repeat)["us"]
    return dict(zip(requests, taken, strict=True))

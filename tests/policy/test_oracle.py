"""The built-in policy says the same in regorus and in OPA, over golden and random inputs, whole and mutilated.

What the two are known to read differently (`not f(input.missing)`, mapped addresses) is not in the policy.
"""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from amem.policy import golden
from amem.policy.engine import PolicyEngine, builtin
from amem.policy.request import FACTS, OWNER_ACTS

from . import opa
from .asks import DATA, OWNER, entry

INPUTS = 10_000

pytestmark = pytest.mark.skipif(opa.library() is None, reason="the policy oracle is not here: scripts/fetch-oracle.sh")

LABELS = ["public", "internal", "restricted"]
VALUES: dict[str, Callable[[random.Random], Any]] = {
    "action": lambda r: r.choice(
        [
            "model_call",
            "server_tool",
            "read",
            "write",
            "write",
            "write",
            *sorted(OWNER_ACTS),
            "promote",
            "promote",
            "approve",
            "decline",
            "admit",
            "admit",
            "spend",
            "fetch",
            "fetch",
            "nothing",
        ]
    ),
    "principal": lambda r: r.choice([OWNER, "agent:codex", "agent:x"]),
    "owner": lambda r: r.choice([OWNER, OWNER, "human:acme:eve"]),
    "domain": lambda r: r.choice(["dom-a", "dom-b"]),
    "destination": lambda r: r.choice(["anthropic", "open", "shut", "nowhere"]),
    "ceiling": lambda r: r.choice([*LABELS, None]),
    "handling": lambda r: r.choice(LABELS),
    "label": lambda r: r.choice(LABELS),
    "classification": lambda r: r.choice(LABELS),
    "findings": lambda r: r.choice([[], [], ["secret"], ["hidden", "quotes"]]),
    "superseded_so_far": lambda r: r.choice([0, 1, 19, 20, 21]),
    "max_supersedes": lambda r: r.choice([20, 20, 0]),
    "supersedes": lambda r: [
        entry(tier=r.choice(["raw", "curated", "verified"]), domain=r.choice(["dom-a", "dom-a", "dom-b"]))
        for _ in range(r.choice([0, 0, 1, 2, 3]))
    ],
    "author": lambda r: r.choice(["agent:codex", "agent:x"]),
    "tier": lambda r: r.choice(["raw", "raw", "curated", "verified"]),
    "to": lambda r: r.choice(["curated", "verified"]),
    "why": lambda r: r.random() < 0.8,
    "kind": lambda r: r.choice(["human", "agent"]),
    "type": lambda r: r.choice(["fact", "policy"]),
    "subject": lambda r: "mem-a-0123456789ab",
    "proposer": lambda r: r.choice([OWNER, "agent:codex"]),
    "proposed": lambda r: r.choice([1, 2]),
    "version": lambda r: r.choice([1, 2]),
    "tools": lambda r: r.choice([[], ["mcp"], ["mcp", "web_search"], ["web_fetch"]]),
    "grant": lambda r: {
        "known": r.random() < 0.8,
        "owner": r.random() < 0.3,
        "read": r.choice([*LABELS, "none"]),
        "write": r.random() < 0.7,
        "server_tools": r.choice([[], ["mcp"], ["mcp", "web_search"]]),
        "admit_own": r.random() < 0.7,
    },
    "filer": lambda r: r.choice(["human", "agent", "agent", "system", "tap"]),
    "requires": lambda r: r.choice([[], ["code"], ["code", "deploy"], ["irreversible"]]),
    "held": lambda r: r.choice([None, [], ["code"], ["code", "deploy"], ["irreversible"]]),
    "limits": lambda r: {"session": r.choice([None, 0, 100]), "day": r.choice([None, 500])},
    "spent": lambda r: {"session": r.choice([0, 60, 100, 120]), "day": r.choice([0, 400, 500])},
    "zone": lambda r: "UTC",
    "wanted": lambda r: r.choice([0, 1, 40, 101]),
    "tap": lambda r: r.choice(["web", "search"]),
    "tool": lambda r: r.random() < 0.9,
    "method": lambda r: r.choice(["GET", "GET", "POST"]),
    "methods": lambda r: r.choice([["GET"], ["GET", "POST"], []]),
    "scheme": lambda r: r.choice(["https", "https", "https", "http"]),
    "host": lambda r: r.choice(["a.example", "b.example"]),
    "loopback": lambda r: r.random() < 0.2,
    "addresses": lambda r: [
        r.choice(
            [
                {"address": "1.1.1.1", "inward": False, "loopback": False},
                {"address": "1.1.1.1", "inward": False, "loopback": False},
                {"address": "10.0.0.1", "inward": True, "loopback": False},
                {"address": "127.0.0.1", "inward": True, "loopback": True},
            ]
        )
        for _ in range(r.choice([0, 1, 1, 1, 2]))
    ],
    "reach": lambda r: r.choice([[], ["public"], ["internal", "public"], ["restricted"]]),
}
OTHER = [None, 1, -1, 1.5, "", "none", "20", True, [], [1], {}, {"a": None}]


def random_input(r: random.Random) -> dict[str, Any]:
    """An input of the shape that the builders and the engine give."""
    asked = {name: value(r) for name, value in VALUES.items()}
    return {**asked, **{name: fact for facts in FACTS.values() for name, fact in facts(asked).items()}}


def mutilated(r: random.Random, asked: dict[str, Any]) -> dict[str, Any]:
    """An input with fields missing or of another type, at the top or one below."""
    for _ in range(r.choice([1, 1, 2, 3])):
        below = [
            found
            for found in (
                asked.get("grant"),
                asked.get("spent"),
                asked.get("limits"),
                *_list(asked.get("supersedes")),
                *_list(asked.get("addresses")),
                *_list(asked.get("elsewhere")),
                *_list(asked.get("over")),
            )
            if isinstance(found, dict) and found
        ]
        target = r.choice(below) if below and r.random() < 0.4 else asked
        name = r.choice(sorted(target))
        if r.random() < 0.5:
            del target[name]
        else:
            target[name] = r.choice(OTHER)
    return asked


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def ours(data: dict[str, Any], inputs: list[dict[str, Any]]) -> list[Any]:
    engine = PolicyEngine(builtin(), data, whole=True)
    interpreter = engine._interpreter(engine._way("", ""))
    answers: list[Any] = []
    for asked in inputs:
        interpreter.set_input_json(json.dumps(asked))
        try:
            answers.append(interpreter.eval_rule("data.amem.decision"))
        except RuntimeError:
            answers.append(None)
    return answers


def compare(data: dict[str, Any], inputs: list[dict[str, Any]]) -> list[tuple[Any, Any, Any]]:
    """Every input on which the two differ, with both answers; None is an error, which denies."""
    theirs = opa.answers(data, inputs)["answers"]
    assert len(theirs) == len(inputs)
    told = [(asked, mine, other) for asked, mine, (other, *_) in zip(inputs, ours(data, inputs), theirs, strict=True)]
    return [(asked, mine, other) for asked, mine, other in told if mine != other]


def test_golden_requests_agree() -> None:
    data = json.loads(json.dumps(golden.DATA))
    inputs = [json.loads(json.dumps(opa.evaluated(data, case.request))) for case in golden.cases()]
    assert compare(data, inputs) == []
    assert [bool(answer["allow"]) for answer in ours(data, inputs)] == [case.allow for case in golden.cases()]


def test_random_inputs_agree() -> None:
    r = random.Random(20261130)
    inputs = [random_input(r) for _ in range(INPUTS)]
    differing = compare(DATA, inputs)
    assert differing == [], f"{len(differing)} of {INPUTS} differ, first: {differing[:3]}"
    allowed = 10 * sum(1 for answer in ours(DATA, inputs[::10]) if answer and answer["allow"])
    assert INPUTS * 0.05 < allowed < INPUTS * 0.8, "the inputs would show nothing"


def test_regorus_allows_no_mutilated_input_that_opa_does_not() -> None:
    """The listed differences: over a value of another type regorus errs (and denies) where OPA has undefined, and an undefined
    part of a set's element loses regorus the whole set of reasons. Both only ever take an allow or a reason away."""
    r = random.Random(20261201)
    differing = compare(DATA, [mutilated(r, random_input(r)) for _ in range(INPUTS // 4)])
    assert differing, "the inputs were not mutilated enough to show a difference"
    assert [
        (asked, mine, other)
        for asked, mine, other in differing
        if mine and (mine["allow"] or mine["hold"]) and mine["allow"] != (other or {}).get("allow")
    ] == []


def test_the_oracle_can_disagree() -> None:
    """A difference in the policy's text shows: the comparison is not of a thing with itself."""
    changed = [(name, text.replace("labels[input.label] <= labels[input.ceiling]", "true")) for name, text in builtin()]
    asked: dict[str, Any] = {"action": "model_call", "destination": "anthropic", "label": "public", "ceiling": None, "grant": {}}
    assert opa.answers(DATA, [asked], changed)["answers"] != [[answer] for answer in ours(DATA, [asked])]

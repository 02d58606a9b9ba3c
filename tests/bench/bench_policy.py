"""P5: one decision of the built-in policy, over 50 grants and 20 rules of the record, against OPA on the same policy.

    python -m tests.bench.bench_policy

Ours is the whole of `PolicyEngine.decide`: the request's digest, the evaluation, the record's rules, the grants' line, the
value. "again" is a request that was decided before, as the calls of a session are; "another session" one that differs from it in what no
rule can see; "never seen" is about another principal, destination, model and entry each time; before "first of its kind" the engine is made
to forget all that it decided, so that each is evaluated whatever it is like: what a root pays once for each kind of request.
The 20 rules name a domain, and five of them each action: of another domain they cost nothing; "of its domain" the host judges the first
statements of five, and they are evaluated where one holds. "floor" is the interpreter alone on a policy of one line, with such a request:
what no decision of its can be faster than, and what says how busy the machine was.
A reload is waited for by the decisions that come after the change, as they must be made by it; those under way end under the old policy.
OPA's figure (`$POLICY_ORACLE`, `build/oracle/lib`) is its evaluation alone, in a child process. The published figure of
microsoft/agent-governance-toolkit is 103 µs a call, on its own machine. Rounds are interleaved; the median of all calls is shown.
"""

import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from amem.model.label import Label
from amem.policy import request as ask
from amem.policy.engine import PolicyEngine, builtin
from amem.policy.request import Request
from tests.bench.rows import Row, table
from tests.policy import opa

OWNER = "human:bench:owner"
GOAL_US = 100.0
ROUNDS, CALLS = 20, 100


def data() -> dict[str, Any]:
    """50 grants in five domains, six destinations."""
    return {
        "grants": {
            "owner": OWNER,
            "domains": {
                f"dom-{d}": {
                    "principals": {f"agent:h{d}{p}*": {"read": ("public", "internal")[p % 2], "write": True} for p in range(9)}
                    | {"agent:*": {"read": "internal", "write": True}}
                }
                for d in range(5)
            },
            "destinations": {f"destination-{n}": {"ceiling": "internal"} for n in range(6)},
        }
    }


def rules(domain: str = "dom-9") -> list[tuple[str, str]]:
    """20 rules of the record, over all actions, of one domain: of another one they are not looked at."""
    actions = ("write", "read", "model_call", "fetch")
    return [
        (
            f"pol-L1-{n:03}",
            f'package amem.rules\n\ndeny contains {{"policy": "pol-L1-{n:03}"}} if {{\n\tinput.action == "{actions[n % 4]}"\n'
            f'\tinput.domain == "{domain}"\n\tstartswith(input.principal, "agent:x{n}")\n}}\n',
        )
        for n in range(20)
    ]


def requests() -> dict[str, Request]:
    """One of each action, allowed, and a write that is held."""
    who: dict[str, Any] = {"principal": "agent:codex", "domain": "dom-3", "session": "ses-0123abcd", "task": None}
    replaced = [{"id": "mem-3-0123456789ab", "tier": "raw", "author": "agent:codex", "domain": "dom-3"}]
    put: dict[str, Any] = {
        "type": "fact",
        "classification": Label.INTERNAL,
        "label": Label.INTERNAL,
        "superseded_so_far": 0,
        "max_supersedes": 20,
    }
    return {
        "model_call": ask.model_call(
            **who,
            label=Label.INTERNAL,
            destination="destination-3",
            ceiling=Label.INTERNAL,
            dialect="anthropic",
            model="m",
            billing="metered",
        ),
        "read": ask.read(**who, handling=Label.INTERNAL),
        "write": ask.write(**who, **put, owner=OWNER, supersedes=replaced, findings=[]),
        "write held": ask.write(**who, **put, owner=OWNER, supersedes=replaced, findings=["secret"]),
    }


def another_session(request: Request) -> Iterator[Request]:
    """The request of one session after another."""
    for n in itertools.count():
        yield Request(request.action, {**request.input, "session": f"ses-{n:08d}"})


_SEEN: dict[str, Callable[[Any, int], Any]] = {
    "model_call": lambda asked, n: {"destination": f"destination-{n % 6}", "principal": f"agent:x{n}", "model": f"m-{n}"},
    "read": lambda asked, n: {"principal": f"agent:x{n}"},
    "write": lambda asked, n: {"principal": f"agent:x{n}", "supersedes": ({**asked["supersedes"][0], "id": f"mem-3-{n:012d}"},)},
}


def never_seen(request: Request) -> Iterator[Request]:
    """The request with something else each time in what rules may see: the 20 rules look at the principal."""
    for n in itertools.count():
        yield Request(request.action, {**request.input, **_SEEN[request.action](request.input, n)})


def forget(engine: PolicyEngine) -> None:
    """Make an engine decide as if it had decided nothing yet."""
    for memory in (engine._answers, engine._decided, engine._grants):
        memory.clear()


def floor(request: Request) -> Callable[[], object]:
    """The least that regorus does for a decision: take the request in, evaluate nothing to speak of, give an object back."""
    import regorus

    engine = regorus.Engine()
    engine.add_policy("floor", 'package amem\n\ndecision := {"allow": true, "hold": false, "reasons": []}\n')
    text = json.dumps(dict(request.input))

    def once() -> object:
        engine.set_input_json(text)
        return engine.eval_rule("data.amem.decision")

    return once


def run() -> list[Row]:
    """Measure; a row an action, with and without the record's rules, and one for a reload."""
    asked = requests()
    plain, ruled = PolicyEngine(builtin(), data()), PolicyEngine(builtin(), data(), rules())
    bound = PolicyEngine(builtin(), data(), rules("dom-3"))
    kinds: dict[tuple[str, str], tuple[PolicyEngine, Iterator[Request], bool]] = {}
    for name, request in asked.items():
        fresh = never_seen(request)
        kinds[name, "first of its kind"] = plain, fresh, True
        kinds[name, "first of its kind, 20 rules"] = ruled, fresh, True
        kinds[name, "never seen"] = plain, fresh, False
        kinds[name, "never seen, 20 rules"] = ruled, fresh, False
        kinds[name, "never seen, 20 of its domain"] = bound, fresh, False
        kinds[name, "another session, 20 rules"] = ruled, another_session(request), False
        kinds[name, "again, 20 rules"] = ruled, itertools.repeat(request), False
    taken: dict[tuple[str, str], list[float]] = {key: [] for key in kinds}
    least = floor(asked["write"])
    bottom: list[float] = []
    for _ in range(ROUNDS):
        for key, (engine, wanted, fresh_each) in kinds.items():
            for next_one in itertools.islice(wanted, CALLS):
                if fresh_each:
                    forget(engine)
                start = time.perf_counter()
                engine.decide(next_one)
                taken[key].append((time.perf_counter() - start) * 1e6)
        for _ in range(CALLS):
            start = time.perf_counter()
            least()
            bottom.append((time.perf_counter() - start) * 1e6)
    taken["floor", "a policy of one line"] = bottom
    peer = opa.timings(data(), {name: request for name, request in asked.items()})
    rows = []
    for (name, kind), times in taken.items():
        ours = statistics.median(times)
        theirs = peer.get(name) if kind == "first of its kind" else None
        rows.append(Row("P5", f"{name}, {kind}", ours, "OPA", theirs, "us", "<= 100 us", ours <= GOAL_US))
    start = time.perf_counter()
    for _ in range(10):
        PolicyEngine(builtin(), data(), rules())
    rows.append(Row("P5", "reload, for the next decision", (time.perf_counter() - start) * 1e2, "-", None, "ms", "reported", None))
    return rows


if __name__ == "__main__":
    print(table(run()))

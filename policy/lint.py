"""The load check of a rule that lives in the record: a strange module is looked at in a child with limits, never here.

A rule may only add denials that name its own policy. It is refused by name when it nests too deep (regorus' parser would hang),
stands in another package, defines anything but `deny` and helpers of its own, calls what is not on the list, may mean more work than
`bounds` lets it, does not load, errs or takes too long over the golden requests. The policy in force and the other rules go on without it.
"""

import hashlib
import json
import resource
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import amem
from amem.policy import bounds, sizes
from amem.policy.engine import Module, PolicyEngine, Rule, builtin, syntax
from amem.policy.outline import NESTING_LIMIT, TOO_DEEP, nesting, outline

TEXT_LIMIT = 64 * 1024
CPU_LIMIT_S = 2
MEMORY_LIMIT_BYTES = 1 << 30
WAIT_LIMIT_S = 60
"""For a machine that does not let the child run: what the rule itself may take is the limit before."""
CALLS = frozenset(sizes.BUILTINS)
"""What a rule may call."""


_HOME = Path(amem.__file__).parents[1]
_CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from amem.policy.lint import child
child()
"""


_CHECKED = [
    hashlib.sha256(Path(__file__).with_name(name).read_bytes()).hexdigest() for name in ("lint.py", "bounds.py", "sizes.py", "outline.py")
]
"""What a verdict hangs on beside the rules: how they are looked at."""


_UNKNOWN = "could not be looked at: the load check did not end"


def check(policy: str, text: str, beside: Sequence[Module] = ()) -> str | None:
    """Why the module of a policy entry (its id is `policy`) may not be loaded beside others; None when it may."""
    if len(text) > TEXT_LIMIT:
        return f"longer than {TEXT_LIMIT} characters"
    if nesting(text) > NESTING_LIMIT:
        return TOO_DEEP
    job = json.dumps({"policy": policy, "text": text, "beside": list(beside)})
    command = [sys.executable, "-I", "-c", _CHILD, str(_HOME)]
    try:
        done = subprocess.run(command, input=job, capture_output=True, text=True, timeout=WAIT_LIMIT_S, env={}, check=False)
    except subprocess.TimeoutExpired:
        return _UNKNOWN
    if done.returncode != 0:
        return "took more time or memory than a rule may, or broke the engine"
    why = json.loads(done.stdout)["why"]
    return None if why is None else str(why)


def refused(
    rules: Iterable[Rule], sound: Collection[str] = (), unsound: Collection[str] = ()
) -> tuple[Mapping[str, str], Mapping[str, bool]]:
    """Why rules may not be in force together, by policy, in order; and the verdicts, by the digest of all that one hangs on.

    A verdict that is known by its digest is not found again. Where a check did not end there is none: that rule is out until it does.
    """
    kept: list[Module] = []
    out: dict[str, str] = {}
    verdicts: dict[str, bool] = {}
    for policy, text, _ in rules:
        digest = hashlib.sha256(json.dumps([_CHECKED, policy, text, kept]).encode()).hexdigest()
        if digest in sound:
            why = None
        elif digest in unsound:
            why = "refused by the load check: amem policy lint says why"
        else:
            why = check(policy, text, kept)
        if why != _UNKNOWN:
            verdicts[digest] = why is None
        if why is None:
            kept.append((policy, text))
        else:
            out[policy] = why
    return out, verdicts


def child() -> None:
    """The child's work: read one job, look at its module under limits, write why it may not be loaded."""
    job = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    json.dump({"why": _look(job["policy"], job["text"], [(name, text) for name, text in job["beside"]])}, sys.stdout)


def _look(policy: str, text: str, beside: Sequence[Module]) -> str | None:
    from amem.errors import ConfigError
    from amem.policy import golden

    try:
        engine = PolicyEngine(builtin(), golden.DATA, [*beside, (policy, text)])
        found = outline(syntax(policy, text))
    except ConfigError as error:
        return error.message
    taken = {rule for name, other in beside for rule in outline(syntax(name, other)).rules} - {"deny"}
    for rule in sorted(found.rules):
        if rule != "deny" and not rule.startswith("_"):
            return f"defines {rule}: a rule of the record defines deny, and helpers whose names start with _"
        if rule in taken:
            return f"defines {rule}, which another rule of the record does as well"
    if "deny" not in found.rules:
        return "denies nothing"
    if found.denials != {policy}:
        return f'each denial must be an object with "policy": "{policy}", written out'
    if unknown := sorted(found.calls - CALLS - found.rules):
        return f"calls {unknown[0]}, which a rule of the record may not"
    if (why := _endless(policy, text, beside)) is not None:
        return why
    for case in (*golden.cases(), *golden.heavy()):
        decision = engine.decide(case.request)
        if decision.code == "policy_error":
            return f"{case.name}: {decision.sentence()}"
    return None


def _endless(policy: str, text: str, beside: Sequence[Module]) -> str | None:
    """Why a rule may take too long, or forever, on some request; or longer than is left beside the others."""
    try:
        wanted = bounds.steps(syntax(policy, text), text)
    except bounds.Unbounded as error:
        return f"its work has no bound: {error}"
    if wanted > bounds.STEPS_LIMIT:
        less = "look at less, or put what is the same each time into a helper"
        return f"may take {wanted:.1e} steps on a large request, of {bounds.STEPS_LIMIT} that a rule has: {less}"
    if (all_of := wanted + sum(bounds.steps(syntax(name, other), other) for name, other in beside)) > bounds.STEPS_OF_ALL:
        return f"may take {wanted} steps on a large request, and with the other rules {all_of}; together they have {bounds.STEPS_OF_ALL}"
    return None

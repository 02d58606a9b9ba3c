"""The load check of a rule that lives in the record: a strange module is looked at in a child with limits, never here.

A rule may only add denials that name its own policy. It is refused by name when it nests too deep (regorus' parser would hang),
stands in another package, defines anything but `deny` and helpers of its own, calls what is not on the list, does not load,
errs or takes too long over the golden requests. The policy in force and the other rules go on without it.
"""

import hashlib
import json
import resource
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import amem
from amem.policy.engine import NESTING_LIMIT, Module, PolicyEngine, Rule, builtin, nesting, outline

TEXT_LIMIT = 64 * 1024
CPU_LIMIT_S = 2
MEMORY_LIMIT_BYTES = 1 << 30
WAIT_LIMIT_S = 5
CALLS = frozenset(
    """abs ceil floor round count max min product sort sum all any array.concat array.reverse array.slice and intersection or union
    concat contains endswith format_int indexof indexof_n lower replace split sprintf startswith strings.any_prefix_match
    strings.any_suffix_match strings.reverse substring trim trim_left trim_prefix trim_right trim_space trim_suffix upper regex.is_valid
    regex.match glob.match object.filter object.get object.keys object.remove object.subset object.union to_number
    is_array is_boolean is_null
    is_number is_object is_set is_string type_name""".split()  # noqa: SIM905
)
"""What a rule may call: nothing that reads a clock, draws a number, asks the network, prints, or makes much of little (a range). Address
arithmetic is the host's."""


_HOME = Path(amem.__file__).parents[1]
_CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from amem.policy.lint import child
child()
"""


_CHECKED = [amem.__version__, sorted(CALLS)]
"""What a verdict hangs on beside the rules."""


def check(policy: str, text: str, beside: Sequence[Module] = ()) -> str | None:
    """Why the module of a policy entry (its id is `policy`) may not be loaded beside others; None when it may."""
    if len(text) > TEXT_LIMIT:
        return f"longer than {TEXT_LIMIT} characters"
    if nesting(text) > NESTING_LIMIT:
        return f"brackets stand more than {NESTING_LIMIT} deep"
    job = json.dumps({"policy": policy, "text": text, "beside": list(beside)})
    command = [sys.executable, "-I", "-c", _CHILD, str(_HOME)]
    try:
        done = subprocess.run(command, input=job, capture_output=True, text=True, timeout=WAIT_LIMIT_S, env={}, check=False)
    except subprocess.TimeoutExpired:
        return f"took longer than {WAIT_LIMIT_S} s to load and evaluate"
    if done.returncode != 0:
        return "took more time or memory than a rule may, or broke the engine"
    why = json.loads(done.stdout)["why"]
    return None if why is None else str(why)


def refused(
    rules: Iterable[Rule], sound: Collection[str] = (), unsound: Collection[str] = ()
) -> tuple[Mapping[str, str], Mapping[str, bool]]:
    """Why rules may not be in force together, by policy, in order; and the verdicts, by the digest of all that one hangs on.

    A verdict that is known by its digest is not found again.
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
        found = outline(policy, text)
    except ConfigError as error:
        return error.message
    taken = {rule for name, other in beside for rule in outline(name, other).rules} - {"deny"}
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
    for case in (*golden.cases(), *golden.heavy()):
        decision = engine.decide(case.request)
        if decision.code == "policy_error":
            return f"{case.name}: {decision.sentence()}"
    return None

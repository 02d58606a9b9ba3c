"""What a rule of the record may cost: what rules are for is within the bound, what grows is not, and the bound is one."""

import json
from typing import Any

import pytest
import regorus
from hypothesis import given
from hypothesis import strategies as st

from amem.model.label import Label
from amem.policy import bounds, golden, sizes, whatif
from amem.policy import request as ask
from amem.policy.engine import syntax
from amem.policy.grants import NOBODY
from amem.policy.request import Request
from tests.shared import shared_path

RULE = """package amem.rules

# é
deny contains {{"policy": "pol-L1-001", "code": "no"{facts}}} if {{
	input.action == "write"
	{body}
}}
{more}
"""


def text(body: str, more: str = "", facts: str = "") -> str:
    return RULE.format(body=body.replace("; ", "\n\t"), more=more, facts=facts)


def steps(rule: str) -> int:
    return bounds.steps(syntax("rule", rule), rule)


@pytest.mark.parametrize(
    ("body", "more", "facts"),
    [
        ('input.type == "fact"', "", ', "why": sprintf("%s may not, in %s", [input.principal, input.domain])'),
        ('some e in input.supersedes; e.tier == "verified"', "", ', "entry": e.id, "author": e.author'),
        ('some e in input.supersedes; not startswith(e.id, "mem-"); e.author != input.principal', "", ""),
        ("regex.match(`^mem-[a-z0-9-]+-[0-9a-f]{12}$`, input.subject)", "", ""),
        ("some e in input.supersedes; regex.match(`^mem-[a-z0-9-]+$`, e.id); glob.match(\"agent:*\", [], e.author)", "", ""),
        ("regex.match(`^(?i)agent:(claude|codex|x[0-9]{1,4})$`, input.principal)", "", ""),
        ('not glob.match("*.example.*", ["."], input.host)', "", ""),
        ('some e in input.supersedes; split(e.id, "-")[1] != _own', '_own := split(input.domain, "-")[1]', ""),
        ("some e in input.supersedes; not _mine(e)", "_mine(e) if e.author == input.principal\n_mine(e) if e.author in _us\n"
         '_us := {"agent:codex", "agent:claude"}', ""),
        ("some i; input.supersedes[i].tier == \"curated\"; not input.supersedes[i].author == input.principal", "", ""),
        ('some i, e in input.supersedes; i > 20; e.tier != "raw"', "", ""),
        ("count({e.author | some e in input.supersedes}) > 1", "", ""),
        ('count([1 | input.supersedes[_].tier == "curated"]) > 5', "", ""),
        ('every e in input.supersedes { e.tier == "raw"; e.author != input.owner }', "", ""),
        ("some one in input.requires; not one in input.held", "", ""),
        ("some d; data.grants.domains[d].principals[input.principal].write", "", ""),
        ('some p, granted in data.grants.domains[input.domain].principals; startswith(p, "tap:"); granted.write', "", ""),
        ('_rank[input.label] > _rank[data.grants.destinations["provider"].ceiling]', '_rank := {"public": 0, "internal": 1}', ""),
        ("_size > 3 * count(input.findings) + 1", "_size := count(input.supersedes) if input.supersedes\nelse := 0", ""),
        ("_seen[input.type]", '_seen contains "fact" if input.label == "public"\n_seen contains "method"', ""),
        ('_of[input.type] == "wiki"', '_of[type] := "wiki" if some type in ["fact", "method"]', ""),
        ('concat("/", [lower(input.domain), trim_prefix(input.principal, "agent:")]) == "dom-a/codex"', "", ""),
        ('object.get(input, "task", null) == null; is_string(input.type); count(input.grant.server_tools) < 3', "", ""),
    ],
)  # fmt: skip
def test_what_rules_are_for_is_within_the_bound(body: str, more: str, facts: str) -> None:
    assert steps(text(body, more, facts)) <= bounds.STEPS_LIMIT


def test_the_rules_that_amem_itself_proposes_are_within_the_bound() -> None:
    narrowed = whatif._let_off(text('some e in input.supersedes; e.tier == "verified"'), "_spared")
    assert steps(f'{narrowed}\n_spared if {{\n\tinput.action == "write"\n\tinput.principal == "agent:codex"\n}}\n') <= bounds.STEPS_LIMIT


def test_a_step_is_what_a_rule_can_do_with_one_thing() -> None:
    """More of anything costs more: loops multiply, statements add, and what stands in a rule of its own costs once."""
    one, two = steps(text("some e in input.findings")), steps(text("some e in input.findings; some f in input.findings"))
    assert 6 * one < two < 16 * one
    assert steps(text("some e in input.supersedes")) > 50 * one
    own = steps(text("_all; _all; _all", "_all if every e in input.supersedes { e.tier }"))
    assert own < 1.5 * steps(text("_all", "_all if every e in input.supersedes { e.tier }"))


def shape(value: Any) -> sizes.Shape:
    """The size of a value."""
    if isinstance(value, dict):
        keys = max(map(len, value), default=0)
        return sizes.Shape(keys, len(value), sizes.join(map(shape, value.values())))
    if isinstance(value, (list, tuple)):
        return sizes.Shape(0, len(value), sizes.join(map(shape, value)))
    return sizes.Shape(len(str(value)) if value is not None else 0)


def within(one: sizes.Shape | None, other: sizes.Shape | None) -> bool:
    return one is None or (other is not None and one.text <= other.text and one.many <= other.many and within(one.each, other.each))


def largest() -> list[Request]:
    """A request of each builder, each of its fields as large as it may be."""
    whom, domain = f"human:{'a' * 64}:{'b' * 64}", f"dom-{'d' * 32}"
    who: dict[str, Any] = {"principal": whom, "domain": domain, "session": "ses-01234567", "task": f"task-{'d' * 32}-0123abcd"}
    entry = {"id": f"mem-{'d' * 32}-0123456789ab", "tier": "verified", "author": whom, "domain": domain}
    many = [f"{number:064}" for number in range(ask.MANY)]
    label = Label.RESTRICTED
    hosts = [(f"{'h' * 60}.example.org", each) for each in Label for _ in range(80)]
    return [
        ask.write(
            **who, owner=whom, type="decision", classification=label, label=label,
            supersedes=[{**entry, "domain": f"dom-{'e' * 32}"}] * ask.SUPERSEDES_LIMIT,
            findings=ask.FINDINGS, superseded_so_far=2**31 - 1, max_supersedes=2**31 - 1,
        ),
        ask.admit(**who, requires=many, held=many),
        ask.server_tool(**who, destination="d" * 64, tools=[f"{number:064}" for number in range(ask.TOOLS_LIMIT)]),
        ask.model_call(
            **who, label=label, destination="d" * 64, ceiling=label, dialect="anthropic", model="m" * 256, billing="metered",
            role="recommender",
        ),
        ask.read(**who, handling=label),
        ask.spend(
            **who, destination="d" * 64, wanted=2**53 - 1, spent={"session": 2**53 - 1, "day": 2**53 - 1},
            limits={"session": 2**53 - 1, "day": 2**53 - 1}, zone="z" * 64,
        ),
        ask.fetch(
            **who, label=label, tap="t" * 64, granted=ask.Reach(True, hosts, methods=[16 * chr(65 + n) for n in range(26)]),
            method="M" * 16, url=f"https://{'h' * 60}.example.org",
            addresses=[f"2001:db8:aaaa:bbbb:cccc:dddd:eeee:{number:x}" for number in range(ask.MANY)],
        ),
        ask.owner_act("erase", **who, owner=whom, subject=entry["id"]),
        ask.promote(
            **who, subject=entry["id"], author=whom, tier="curated", to="verified", why=True, classification=label, label=label,
        ),
        ask.judge("approve", **who, subject=entry["id"], type="decision", proposer=whom, proposed=2**31 - 1, version=2**31 - 1),
    ]  # fmt: skip


def test_no_request_is_larger_than_the_bound_takes_it_to_be() -> None:
    found = largest()
    assert {one.action for one in found} | ask.OWNER_ACTS | {ask.DECLINE} == set(ask.BUILDERS)
    for asked in (*found, *(case.request for case in (*golden.cases(), *golden.heavy()))):
        facts = ask.FACTS.get(asked.action, lambda _: {})(asked.input)
        for name, value in (*asked.input.items(), *facts.items(), ("grant", NOBODY)):
            assert within(shape(value), sizes.INPUT.get(name, sizes.WORD)), (asked.action, name)


def test_grants_have_the_shape_that_the_bound_takes_them_to_have() -> None:
    assert within(shape({**golden.DATA["grants"]}), sizes.Shape(300, 32, sizes.join(sizes.GRANTS.values())))
    for name, value in golden.DATA["grants"].items():
        assert within(shape(value), sizes.GRANTS[name]), name


_NAMES = st.sampled_from(["a", "b", "i"])
_LISTS = st.sampled_from(["input.supersedes", "input.requires", "_own"])
_PLAIN = st.one_of(
    st.builds("some {}".format, _NAMES),
    st.builds("some {} in {}".format, _NAMES, _LISTS),
    st.builds("some {}, {} in {}".format, _NAMES, _NAMES, _LISTS),
    st.builds("{}[{}]".format, _LISTS, _NAMES),
    st.builds("{}[_]".format, _LISTS),
    st.builds("{} := 1".format, _NAMES),
    st.builds("{} = 2".format, _NAMES),
    st.builds("{} = {}[{}]".format, _NAMES, _LISTS, _NAMES),
    st.builds("[{}, _] = [{}[{}], {}[_]]".format, _NAMES, _LISTS, _NAMES, _LISTS),
    st.builds("not {}[{}].none".format, _LISTS, _NAMES),
)
_BODIES = st.recursive(
    st.lists(_PLAIN, min_size=1, max_size=4).map("; ".join),
    lambda inner: st.one_of(
        st.builds("count([1 | {}]) >= 0; {}".format, inner, inner),
        st.builds("every z in input.supersedes {{ z == z; {} }}; {}".format, inner, inner),
    ),
    max_leaves=4,
)


@given(_BODIES, st.integers(0, 4))
def test_a_query_has_no_more_answers_than_the_bound_says(body: str, many: int) -> None:
    """Whatever the order of its statements, whatever name stands where: a loop that was not seen would be more answers than steps."""
    rule = f'package amem.rules\n\ndeny contains {{"policy": "pol-L1-001", "n": count([1 | {body}])}} if true\n_own := [7, 8, 9]\n'
    engine = regorus.Engine()
    try:
        engine.add_policy("rule", rule)
        engine.set_input({"supersedes": [{"tier": "raw"}] * many, "requires": ["code"] * many})
        found = json.loads(engine.eval_rule_as_json("data.amem.rules.deny"))
        known = {
            **sizes.INPUT,
            "supersedes": sizes.Shape(0, many, sizes.Shape(10, 1)),
            "requires": sizes.Shape(0, many, sizes.Shape(10)),
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bounds, "INPUT", known)
            bound = steps(rule)
    except (RuntimeError, bounds.Unbounded):
        return  # not a rule, or one that would not be loaded
    assert found[0]["n"] <= bound


def test_rules_of_the_guide_are_within_the_bound() -> None:
    blocks = shared_path("reference/guide.md").read_text().split("```rego\n")[1:]
    for block in blocks:
        if "package amem.rules" in block:
            assert steps(block.split("```")[0]) <= bounds.STEPS_LIMIT

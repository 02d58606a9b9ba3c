"""Rules of the record that are no such thing: each is refused by its name, and the process that looks at it, or decides, goes on."""

import json

import pytest

from amem.errors import ConfigError
from amem.model.label import Label
from amem.policy.engine import PolicyEngine, Rule, builtin
from amem.policy.lint import check, refused
from amem.policy.outline import nesting
from tests.policy.asks import DATA, call, read, write

NAME = "pol-L1-001"
HEAD = f'deny contains {{"policy": "{NAME}", "code": "no"}} if'
GOOD = Rule("pol-L2-002", 'package amem.rules\n\ndeny contains {"policy": "pol-L2-002"} if {\n\tinput.type == "method"\n}\n')


def rule(body: str = "input.x", more: str = "", head: str = HEAD, package: str = "package amem.rules") -> str:
    return f"{package}\n\n{head} {{\n\t{body}\n}}\n{more}\n"


def nest(opening: str, closing: str, depth: int) -> str:
    return opening * depth + "1" + closing * depth


BAD = {
    "a bomb of sets": (rule(f"x := {nest('{', '}', 30)}"), "brackets"),
    "a bomb of objects": (rule("x := " + nest('{"a": ', "}", 30)), "brackets"),
    "a bomb of both, with calls between": (rule("x := " + nest("[count({", "})]", 9)), "brackets"),
    "a bomb behind comments that close it": (rule("x := " + nest("[ # ]\n", "]", 30)), "brackets"),
    "a bomb behind words that close it": (rule("x := " + nest('["]", ', "]", 30)), "brackets"),
    "a bomb behind a word with an escaped quote": (rule(f'y := "a\\"]]"\n\tx := {nest("[", "]", 30)}'), "brackets"),
    "a bomb in an index": (rule("x := y" + nest("[[", "]]", 9)), "brackets"),
    "a bomb in a head": (rule(head=f'deny contains {{"policy": "{NAME}", "x": {nest("[", "]", 12)}}} if'), "brackets"),
    "many small bombs": (rule("\n\t".join(f"x{n} := {nest('[', ']', 8)}" for n in range(9))), "brackets"),
    "a package below": (rule(package="package amem.rules.more"), "not in amem.rules.more"),
    "the root of packages": (rule(package="package amem"), "not in amem"),
    "a package in brackets": (rule(package='package amem["decision"]'), "not in amem.decision"),
    "a second package": (rule(more='package amem\n\ndecision := {"allow": true, "reasons": []}'), "policy/pol-L1-001"),
    "a mark before the package": ("\ufeff" + rule(), "policy/pol-L1-001"),
    "lines that end in another way": (rule().replace("\n", "\r"), "policy/pol-L1-001"),
    "data by a path": (rule(more='data.amem.decision := {"allow": true}'), "shadowed"),
    "data by its name": (rule(more="data := {}"), "shadowed"),
    "input by its name": (rule(more="input := {}"), "shadowed"),
    "the package as a rule": (rule(more='amem.decision := {"allow": true}'), "defines amem"),
    "the decision": (rule(more='decision := {"allow": true, "reasons": []}'), "defines decision"),
    "a default denial": (rule(more="default deny := set()"), "each denial"),
    "a denial that is a function": (rule(more="deny(x) if x"), "each denial"),
    "a denial below": (rule(more="deny.more contains 1"), "each denial"),
    "a denial by key": (rule(head=f'deny["{NAME}"] := {{"policy": "{NAME}"}} if'), "defines ?"),
    "two policies": (rule(head=f'deny contains {{"policy": "{NAME}", "policy": "pol-L0-001"}} if'), "each denial"),
    "two, one of them escaped": (rule(head=f'deny contains {{"policy": "{NAME}", "\\u0070olicy": "pol-L0-001"}} if'), "each denial"),
    "two, one of them worked out": (
        rule('x := concat("", ["pol", "icy"])', head=f'deny contains {{"policy": "{NAME}", x: "pol-L0-001"}} if'), "each denial",
    ),
    "two, one of them raw": (rule(head=f'deny contains {{"policy": "{NAME}", `policy`: "pol-L0-001"}} if'), "each denial"),
    "other data for a moment": (rule("input.type with data.grants as {}"), "no bound"),
    "another builtin for a moment": (rule("count([]) == 0 with count as 1"), "no bound"),
    "an import of the decision": (rule("d.allow", package="package amem.rules\nimport data.amem.decision as d"), "no bound"),
    "the environment": (rule("opa.runtime().env.HOME"), "calls opa.runtime"),
    "a message to the log": (rule("print(input)"), "calls print"),
    "an extension of the host": (rule("amem.f(1)"), "calls amem.f"),
    "the language before this one": (f'package amem.rules\ndeny[x] {{ x := {{"policy": "{NAME}"}} }}\n', "policy/pol-L1-001"),
    "a line without end": (rule(f'x := "{"a" * 3000}"'), "column"),
    "a text without end": (rule(more="# " + "x" * 70_000), "longer"),
    "a code that is none": (rule("true", head=f'deny contains {{"policy": "{NAME}", "code": "No!"}} if'), "malformed"),
    "a fact that is none": (rule("true", head=f'deny contains {{"policy": "{NAME}", "x": {{"a": 1}}}} if'), "malformed"),
    "a division by nothing": (rule("1 / count(input.findings) > 0"), "divide by zero"),
    "a place before the first": (rule('substring(input.action, -1, 2) == "z"'), "negative offset"),
    "a pattern that is none": (rule('regex.match("(", input.action)'), "invalid regex"),
    "nothing": ("", "policy/pol-L1-001"),
    "a number drawn": (rule('rand.intn("x", 5) == 1'), "calls rand.intn"),
    "a trace": (rule('trace("x")'), "calls trace"),
    "a unit": (rule('units.parse_bytes("99999999999Ei") > 1'), "calls units.parse_bytes"),
    "a shift by much": (rule("bits.lsh(1, 100000000) > 1"), "calls bits.lsh"),
    "a walk through all": (rule("walk(input, [path, _]); count(path) > 3"), "calls walk"),
    "a pattern that replaces": (rule("regex.replace(input.model, `a*`, input.model) == input.host"), "calls regex.replace"),
    "a call of itself": (rule("_f(3)", "_f(x) if _f(x - 1)"), "_f calls itself"),
    "two that call each other": (rule("_f(3)", "_f(x) if _g(x)\n_g(x) if _f(x)"), "calls itself"),
    "two that ask for each other": (rule("_a", "_a if _b\n_b if _a"), "asks for itself"),
    "calls that double thirty times": (
        rule("_f30(1)", "_f0(x) if x\n" + "\n".join(f"_f{n}(x) if {{\n\t_f{n - 1}(x)\n\t_f{n - 1}(x)\n}}" for n in range(1, 31))), "steps",
    ),
    "a pattern of patterns": (rule("regex.match(`(a{1,1000}){1,1000}`, input.model)"), "steps"),
    "a pattern that is made": (rule('x := concat("", [input.model, "{1,1000}"])\n\tregex.match(x, input.host)'), "steps"),
    "a text that grows by its own": (
        rule("a0 := input.model\n\t" + "\n\t".join(f'a{n + 1} := replace(a{n}, "a", a{n})' for n in range(4))), "steps",
    ),
    "a text as wide as it says": (rule('count(sprintf("%999999999d", [1])) > 1'), "without a width"),
    "a width from elsewhere": (rule('count(sprintf("%*d", [999999999, 1])) > 1'), "format verb"),
    "pairs of pairs": (
        rule("count(_b) > 0", "_a := {[x, y] | some x, y in input.supersedes}\n_b := {[x, y] | some x in _a; some y in _a}"), "steps",
    ),
    "objects grown together": (rule("object.union(object.union(input, data.grants), input) == {}"), "steps"),
    "pairs of what the host tells": (rule("some g in input.guarded; some h in input.elsewhere; g == h.entry"), "steps"),
    "a number beyond all": (rule("x := 1e999999\n\tx > input.wanted"), "out of range"),
    "a number of many digits": (rule(f"x := {'9' * 900}\n\tx * x > 1"), "out of range"),
    "a number that is none": (rule("x := 1e308 * 10", head=f'deny contains {{"policy": "{NAME}", "x": x}} if'), "serialize number"),
    "a name in other letters": (rule("_é == 1", "_é := 1"), "invalid character"),
    "a name in wide letters": (rule("ｉｎｐｕｔ.x"), "invalid character"),
    "a name with nothing in it": (rule("in\u200bput.x"), "policy/pol-L1-001"),
    "two values at once": (rule("_x == 1", "_x := 1 if input.type\n_x := 2 if input.domain"), "conflicts"),
    "an import of data": (rule(package="package amem.rules\nimport data.secret"), "imports data.secret"),
    "data beyond the grants": (rule("data.labels[input.label] > 0"), "beyond data.grants"),
    "all of data": (rule("some k; data[k].owner == input.principal"), "beyond data.grants"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_it_is_refused_and_says_why(name: str) -> None:
    text, told = BAD[name]
    why = check(NAME, text)
    assert why is not None and told in why, why


def test_the_rules_beside_bad_ones_are_in_force() -> None:
    bad = [Rule(f"pol-L3-{n:03}", text.replace(NAME, f"pol-L3-{n:03}"), "dom-a") for n, (text, _) in enumerate(list(BAD.values())[::4])]
    out, _ = refused([*bad, GOOD])
    assert set(out) == {one.policy for one in bad}
    engine = PolicyEngine(builtin(), DATA, [one for one in (*bad, GOOD) if one.policy not in out])
    assert engine.decide(write(type="method")).citations == ("pol-L2-002",)
    assert all(engine.decide(asked).allow for asked in (write(), read(), call()))


@pytest.mark.parametrize("name", [name for name, (_, told) in BAD.items() if told == "brackets"])
def test_a_bomb_is_seen_before_it_is_parsed(name: str) -> None:
    """In the deciding process as well: a root's own policy, a candidate, a rule that slipped through."""
    with pytest.raises(ConfigError, match="brackets"):
        PolicyEngine(builtin(), DATA, [Rule(NAME, BAD[name][0])])


def test_brackets_in_words_and_comments_open_nothing_and_close_nothing() -> None:
    assert nesting("[[[[") == nesting('["]" [`]` [ # ]]]\n [') == 8
    assert nesting('"[[[[[[[[[[[[" `{{{{{{{{{{{{` # [[[[[[[[[[[[') == 0
    assert nesting('"a\\"]" [[[[ "\\\\" ]') == 8


@pytest.mark.parametrize(
    "body",
    [
        'to_number(input.model) > 7', 'input.label > input.none.of.it', 'count(input.type) / (count(input.session) - 12) > 9',
        'substring(input.principal, count(input.findings) - 1, 3) == "x"', "sum([input.type, 1]) > 2",
        'format_int(1, count(input.findings)) == "1"',
    ],
)  # fmt: skip
def test_a_rule_that_errs_on_some_requests_denies_those_alone(body: str) -> None:
    """What the load check does not come upon: an error is a denial that names itself, and what the rule does not concern goes on."""
    engine = PolicyEngine(builtin(), DATA, [Rule(NAME, rule(f'input.action == "write"\n\t{body}'))])
    found = engine.decide(write())
    assert found.allow or found.code in ("policy_error", "no"), found
    assert engine.decide(read()).allow and engine.decide(call()).allow
    json.dumps([reason.facts for reason in found.reasons])


def test_a_rule_that_has_two_values_for_some_requests_denies_those_alone() -> None:
    more = '_x := 1 if input.type == "method"\n_x := 2 if input.label == "internal"'
    engine = PolicyEngine(builtin(), DATA, [Rule(NAME, rule('input.action == "write"\n\t_x == 3', more))])
    assert engine.decide(write(type="method", label=Label.INTERNAL)).code == "policy_error"
    for asked in (write(type="method"), write(label=Label.INTERNAL), read(), call()):
        assert engine.decide(asked).allow

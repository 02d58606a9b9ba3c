"""A rule of the record that would stall a decision, on any request, is refused when it is looked at: regorus has no timer.

Most of these answer the golden requests at once. They are slow on what somebody else brings: a request that replaces much, many grants, a
long word, a label. Some take the process with them (a recursion ends on its stack, a number or a word without end in its memory).
"""

import pytest

from amem.policy.engine import Rule
from amem.policy.lint import check, refused

NAME = "pol-L1-001"
ONLY = 'input.model == "on this day only"'
SHAPES = {
    "pairs of what is replaced": ("input.supersedes[i].id == input.supersedes[j].author", ""),
    "triples behind a condition": (f"{ONLY}; some a in input.supersedes; some b in input.supersedes; some c in input.supersedes", ""),
    "pairs through a name that gets its value later": ("count([1 | input.supersedes[i]; input.supersedes[j]]) == 0; i := 1", ""),
    "pairs through a function": ("some a in input.supersedes; _near(a)", "_near(a) if { some b in input.supersedes; a.id < b.id }"),
    "pairs through two functions": ("_f(input.supersedes)", "_f(x) if { some a in x; _g(x, a) }\n_g(x, a) if { some b in x; a < b }"),
    "pairs in a comprehension": ("count({[a.id, b.id] | some a in input.supersedes; some b in input.supersedes}) > 9", ""),
    "a comprehension again for each": ("some a in input.supersedes; a.id in {b.id | some b in input.supersedes}", ""),
    "every of every": ("every a in input.supersedes { every b in input.supersedes { a.id != b.author } }", ""),
    "not in a loop over a rule's set": (
        "some a in input.supersedes; not _ids[_] == a.author", "_ids contains e.id if some e in input.supersedes",
    ),
    "all domains by all principals": (f"{ONLY}; some d, p; data.grants.domains[d].principals[p].read == input.label", ""),
    "all grants for each entry": ("some e in input.supersedes; data.grants.domains[_].principals[e.author]", ""),
    "all of the input by all of it": ("input[i][j]; input[k][l] == input[i][j]", ""),
    "a walk": ("walk(input, [path, value]); path[0] == value", ""),
    "a graph": ("count(graph.reachable({}, {})) > 3", ""),
    "a range": ("some n in numbers.range(1, input.superseded_so_far); n < 0", ""),
    "a shift": ("bits.lsh(1, input.superseded_so_far) > 1", ""),
    "a clock": ("time.now_ns() > 0", ""),
    "a word that doubles": (
        f"{ONLY}; " + "; ".join(f'w{n + 1} := concat("", [w{n}, w{n}])' for n in range(30)).replace("w0", "input.model"), "",
    ),
    "a word that doubles in functions": (
        "count(_f0(input.model)) > 5", "\n".join(f'_f{n}(x) := _f{n + 1}(sprintf("%s%s", [x, x]))' for n in range(30)) + "\n_f30(x) := x",
    ),
    "words in the places between letters": (
        'a := replace(input.model, "", input.model); b := replace(a, "", a); c := replace(b, "", b); c != ""', "",
    ),
    "a number that squares": (
        f"{ONLY}; " + "; ".join(f"n{n + 1} := n{n} * n{n}" for n in range(30)).replace("n0", "count(input.model)"), "",
    ),
    "a product of many": ("product([x | some e in input.supersedes; some f in input.supersedes; x := count(e.id)]) > 7", ""),
    "an array that doubles": (
        f"{ONLY}; " + "; ".join(f"a{n + 1} := array.concat(a{n}, a{n})" for n in range(30)).replace("a0", "input.supersedes"), "",
    ),
    "nests that are compared": (
        f"{ONLY}; " + "; ".join(f"a{n + 1} := [a{n}, a{n}]; b{n + 1} := [b{n}, b{n}]" for n in range(40))
        .replace("[a0, a0]", "[input.id]").replace("[b0, b0]", "[input.id]") + "; a40 == b40", "",
    ),
    "nests that are told": (
        f"{ONLY}; " + "; ".join(f"a{n + 1} := [a{n}, a{n}]" for n in range(40)).replace("[a0, a0]", "[input.id]")
        + '; sprintf("%v", [a40]) != ""', "",
    ),
    "a width": (f'{ONLY}; sprintf("%2000000000d", [1]) != ""', ""),
    "a format out of the request": ("sprintf(input.model, [1]) != input.model", ""),
    "parts of parts": (
        'some a in _letters; some b in split(input.principal, ""); some c in _letters; a == b; b == c',
        '_letters := split(input.model, "")',
    ),
    "each replaced one to a pattern of its own": ("some e in input.supersedes; regex.match(e.id, e.author)", ""),
    "a pattern that is in many places at once": ("some e in input.supersedes; regex.match(`(a|b)*a(a|b){400}x`, e.author)", ""),
    "such a pattern over one long word": (
        f'regex.match(`a{"[ab]" * 20}x`, concat("", [e.author | some e in input.supersedes]))', "",
    ),
    "such a pattern of points": (
        f'regex.match(`a{"." * 40}x`, concat("", [e.author | some e in input.supersedes]))', "",
    ),
    "a glob that is in many places at once": ('some e in input.supersedes; glob.match("*a*a*a*a*a*a*b", [], e.author)', ""),
    "a place in a long word": (
        't := concat("", [e.author | some e in input.supersedes]); h := concat("", [substring(t, 0, 60000), "x"]); indexof(t, h) > 0', "",
    ),
    "the places in a long word": (
        't := concat("", [e.author | some e in input.supersedes]); h := substring(t, 0, 60000); indexof_n(t, h) != []', "",
    ),
    "a function of itself": (f"{ONLY}; _f(input.model)", "_f(x) if _f(x)"),
    "a function of itself, round the corner": (f"{ONLY}; _f(1)", "_f(x) := _g(x + 1)\n_g(x) := y if { x > 0; y := _f(x) }"),
    "a rule of itself": (f"{ONLY}; _a", "_a if _b\n_b if count([1 | _a]) > 0"),
    "a count of denials": (f"{ONLY}; count(deny) > 3", ""),
    "the policy again for each": ('some e in input.supersedes; data.amem.decision.allow with input.domain as e.domain', ""),
    "the policy's own": ("data.amem.decision.reasons[_].code == data.amem._write_refused[_].code", ""),
    "a helper of another rule": ("some a in _theirs; a == input.type", ""),
    "a name with two meanings": ("input.supersedes[i]; some i; input.supersedes[i].tier == input.type", ""),
    "another meaning for the input": ("some input in [[1, 2, 3]]; input[_] == 2", ""),
    "a ladder of expressions": ("input.superseded_so_far" + "\n + 1" * 3000 + " > 0", ""),
    "a chain of rules": ("_r0", "\n".join(f"_r{n} if _r{n + 1}" for n in range(2000)) + "\n_r2000 if input.x"),
    "an import": ("gr[_][_][_][_] == gr[_][_][_]", ""),
    "many statements for each entry": ("some e in input.supersedes; " + "; ".join(f'e.id != "mem-{n}"' for n in range(400)), ""),
}  # fmt: skip


def rule(body: str, more: str) -> str:
    inside = body.replace("; ", "\n\t")
    heads = "\nimport data.grants as gr" if "gr[" in body else ""
    return f'package amem.rules\n{heads}\ndeny contains {{"policy": "{NAME}", "code": "no"}} if {{\n\t{inside}\n}}\n\n{more}\n'


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_refused(name: str) -> None:
    why = check(NAME, rule(*SHAPES[name]))
    assert why is not None
    assert any(told in why for told in ("no bound", "steps", "calls ", "undefined variable", "before definition", "took ")), why


def test_many_small_rules_are_bounded_together() -> None:
    """Each is within its own bound; those that came first stay, and who comes too late is named."""
    body = "some e in input.supersedes; " + "; ".join(f'e.id != "mem-{n}"' for n in range(30))
    names = [f"pol-L1-{n:03}" for n in range(1, 7)]
    out, _ = refused([Rule(name, rule(body, "").replace(NAME, name)) for name in names])
    assert out and names[0] not in out and all("together" in why for why in out.values())
    assert list(out) == names[-len(out) :]

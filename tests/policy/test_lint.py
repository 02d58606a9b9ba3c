"""A rule of the record that may not be loaded is refused by name, in a child, and nothing else is touched."""

import pytest

from amem.policy.engine import PolicyEngine, builtin
from amem.policy.lint import LeftOut, check, loadable

from .asks import DATA, write

NAME = "pol-L1-001"


def rule(
    body: str = 'input.type == "fact"', head: str = f'deny contains {{"policy": "{NAME}", "code": "no_facts"}}', more: str = ""
) -> str:
    return f"package amem.rules\n\n{head} if {{\n\t{body}\n}}\n{more}"


def test_a_good_rule_passes_and_denies() -> None:
    good = rule("_is_fact", more='\n_is_fact if startswith(input.type, "fact")\n')
    assert check(NAME, good) is None
    found = PolicyEngine(builtin(), DATA, [(NAME, good)]).decide(write())
    assert not found.allow and found.citations == (NAME,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("package amem.rules\n\nx := " + "[" * 5000 + "]" * 5000, "brackets"),
        ("# " + "x" * 70_000, "longer"),
        (rule().replace("package amem.rules", "package amem"), "package amem.rules"),
        (rule().replace("package amem.rules", "package other"), "package amem.rules"),
        ("package amem.rules\n", "denies nothing"),
        ("not rego", "policy/pol-L1-001"),
        (rule(more="\ndecision := true\n"), "defines decision"),
        (rule(more="\ndefault allow := true\n"), "defines allow"),
        (rule(head=f'deny := {{"policy": "{NAME}"}}'), "each denial"),
        (rule(head='deny contains "words"'), "each denial"),
        (rule(head='deny contains {"policy": "pol-L0-001"}'), "each denial"),
        (rule(head='deny contains {"policy": input.type}'), "each denial"),
        (rule("x > 1"), "policy"),
        (rule("nofunction(1)"), "calls nofunction"),
        (rule('net.cidr_contains("10.0.0.0/8", "10.0.0.1")'), "calls net.cidr_contains"),
        (rule("time.now_ns() > 0"), "calls time.now_ns"),
        (rule('http.send({"url": "http://127.0.0.1"}).status_code == 200'), "calls http.send"),
        (rule('to_number(input.principal) == 1'), "could not be evaluated"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)  # fmt: skip
def test_refused_by_name(text: str, why: str) -> None:
    refused = check(NAME, text)
    assert refused is not None and why in refused, refused


def test_an_endless_rule_is_stopped() -> None:
    endless = rule("count([1 | some a in numbers.range(1, 5000); some b in numbers.range(1, 5000); a * b == 0]) > 0")
    refused = check(NAME, endless)
    assert refused is not None and ("more time or memory" in refused or "took longer" in refused)


def test_a_bad_rule_is_left_out_and_the_others_stay() -> None:
    good = rule()
    same_helper = rule("_a", head='deny contains {"policy": "pol-L1-002"}', more="\n_a if true\n")
    clash = rule("_a", head='deny contains {"policy": "pol-L1-003"}', more="\n_a if false\n")
    kept, out = loadable([(NAME, good), ("pol-L2-001", "package amem\n"), ("pol-L1-002", same_helper), ("pol-L1-003", clash)])
    assert [name for name, _ in kept] == [NAME, "pol-L1-002"]
    assert [left.policy for left in out] == ["pol-L2-001", "pol-L1-003"]
    assert isinstance(out[0], LeftOut) and "_a" in out[1].why

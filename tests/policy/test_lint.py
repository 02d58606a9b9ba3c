"""A rule of the record that may not be loaded is refused by name, in a child, and nothing else is touched."""

import pytest

from amem.policy import lint
from amem.policy.engine import PolicyEngine, Rule, builtin
from amem.policy.lint import check, refused

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


MUCH = "some a in input.supersedes; some b in input.supersedes; some c in input.supersedes; some d in input.supersedes"


@pytest.mark.parametrize(
    "body",
    [
        f'input.action == "write"\n\tcount([1 | {MUCH}; a.id == b.domain; c.id == d.domain]) > 0',
        "count([1 | some a in _m; some b in _m; some c in _m; some d in _m; some e in _m; a * b * c * d * e == 0]) > 0",
    ],
    ids=["over the request", "over its own words"],
)
def test_an_endless_rule_is_refused_and_were_it_not_the_child_would_be_stopped(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = rule(body, more=f"\n_m := {list(range(1, 200))}\n")
    assert "steps on a large request" in (check(NAME, text) or "")
    unbounded = "from amem.policy import bounds; bounds.steps = lambda *given: 0; child()"
    monkeypatch.setattr(lint, "_CHILD", lint._CHILD.replace("child()", unbounded))
    why = check(NAME, text)
    assert why is not None and "more time or memory" in why


def test_a_rule_may_make_no_range() -> None:
    assert "calls numbers.range" in (check(NAME, rule("count(numbers.range(1, 1000000000)) > 0")) or "")


def test_a_rule_that_panics_is_refused_and_this_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text is known that makes this regorus panic (0.13): the child is made to end as a panic ends it, and by a signal."""
    for end in ("import os; os.abort()", "raise BaseException('PanicException')"):
        monkeypatch.setattr(lint, "_CHILD", f"import sys\nsys.stdin.read()\n{end}\n")
        why = check(NAME, rule())
        assert why is not None and "broke the engine" in why
    assert PolicyEngine(builtin(), DATA).decide(write()).allow


def test_a_check_that_does_not_end_leaves_a_rule_out_and_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine, not a bad rule: it would else be out for good."""
    monkeypatch.setattr(lint, "_CHILD", "import signal\nsignal.pause()\n")
    monkeypatch.setattr(lint, "WAIT_LIMIT_S", 0.1)
    out, verdicts = refused([Rule(NAME, rule())])
    assert "did not end" in out[NAME] and verdicts == {}
    monkeypatch.undo()
    assert refused([Rule(NAME, rule())], verdicts) == ({}, dict.fromkeys(refused([Rule(NAME, rule())])[1], True))


def test_a_bad_rule_is_left_out_and_the_others_stay() -> None:
    same_helper = rule("_a", head='deny contains {"policy": "pol-L1-002"}', more="\n_a if true\n")
    clash = rule("_a", head='deny contains {"policy": "pol-L1-003"}', more="\n_a if false\n")
    rules = [Rule(NAME, rule()), Rule("pol-L2-001", "package amem\n"), Rule("pol-L1-002", same_helper), Rule("pol-L1-003", clash)]
    out, verdicts = refused(rules)
    assert list(out) == ["pol-L2-001", "pol-L1-003"] and "_a" in out["pol-L1-003"]
    assert list(verdicts.values()) == [True, False, True, False]


def test_a_verdict_holds_for_exactly_what_it_was_found_on(monkeypatch: pytest.MonkeyPatch) -> None:
    _, verdicts = refused([Rule(NAME, rule())])
    looked: list[str] = []
    monkeypatch.setattr(lint, "check", lambda policy, text, beside: looked.append(policy))
    assert refused([Rule(NAME, rule())], sound=verdicts) == ({}, verdicts) and looked == []
    assert list(refused([Rule(NAME, rule())], unsound=verdicts)[0]) == [NAME] and looked == []
    refused([Rule(NAME, rule() + "# changed\n")], sound=verdicts)
    refused([Rule("pol-L1-002", "package amem.rules\n"), Rule(NAME, rule())], sound=verdicts)
    assert looked == [NAME, "pol-L1-002", NAME]

import asyncio
import gc
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amem.errors import ConfigError, IntegrityError
from amem.model.label import Label
from amem.policy import engine as engine_module
from amem.policy import golden
from amem.policy import request as ask
from amem.policy.decision import Decision
from amem.policy.engine import Exemption, PolicyEngine, Rule, builtin, load, sources
from amem.policy.request import Request

from .asks import DATA, OWNER, call, entry, read, who, write
from .test_oracle import random_input


@pytest.fixture
def engine() -> PolicyEngine:
    return PolicyEngine(builtin(), DATA)


def codes(decision: Decision) -> list[str]:
    return [reason.code for reason in decision.reasons]


def root_policy(text: str, rules: Sequence[tuple[str, str]] = (), data: dict[str, Any] = DATA) -> PolicyEngine:
    return PolicyEngine([("site.rego", text)], data, rules)


ALLOW_ALL = """package amem

decision := {
	"allow": true,
	"hold": false,
	"reasons": [],
	"filter": {"domains": ["dom-a", "dom-b"], "max_label": "restricted", "min_tier": "raw"},
}
"""


@pytest.mark.parametrize("case", list(golden.cases()), ids=lambda case: case.name)
def test_golden(case: golden.Golden) -> None:
    found = PolicyEngine(builtin(), golden.DATA).decide(case.request)
    assert case.holds(found), found


def test_two_decisions_on_one_request_differ_in_their_id_only(engine: PolicyEngine) -> None:
    first, second = engine.decide(read()), engine.decide(read())
    assert first.id != second.id
    assert (first.input_digest, first.policy_version, first.result) == (second.input_digest, second.policy_version, second.result)
    assert first.input_digest != engine.decide(read(handling=Label.PUBLIC)).input_digest


def test_reasons_come_in_the_order_of_the_table_with_their_facts(engine: PolicyEngine) -> None:
    found = engine.decide(
        write(
            principal="agent:gemini",
            classification=Label.PUBLIC,
            label=Label.INTERNAL,
            supersedes=[entry(domain="dom-b", id="mem-b-0123456789ab")],
        )
    )
    assert [(reason.code, dict(reason.facts)) for reason in found.reasons] == [
        ("no_write_grant", {"principal": "agent:gemini", "domain": "dom-a"}),
        ("label_below_session", {"classification": "public", "label": "internal"}),
        ("supersede_other_domain", {"entry": "mem-b-0123456789ab", "other": "dom-b", "domain": "dom-a"}),
    ]
    assert not found.allow and not found.hold and found.review is None


def test_what_a_reasons_sentence_names_is_taken_from_the_request_unless_the_policy_says_it() -> None:
    body = 'decision := {"allow": false, "reasons": [{"code": "no_write_grant", "domain": "dom-z"}, {"code": "closed"}]}'
    said = PolicyEngine([("site.rego", f"package amem\n{body}\n")], DATA).decide(write())
    assert [dict(reason.facts) for reason in said.reasons] == [{"principal": "agent:codex", "domain": "dom-z"}, {}]


def test_one_evaluation_answers_for_all_that_differ_in_what_the_policy_does_not_name() -> None:
    """Each is told its own: the principal, the entries and the session are the request's, not those that were evaluated."""
    engine = PolicyEngine(builtin(), DATA)
    first = engine.decide(write(principal="agent:cline", domain="dom-a"))
    engine_module._running.engines[engine._serial, ("write.rego",)] = object()  # an evaluation would now fail
    second = engine.decide(write(principal="agent:copilot", domain="dom-a", session="ses-0123abce"))
    assert codes(first) == codes(second) == ["no_write_grant"]
    assert [one.reasons[0].facts["principal"] for one in (first, second)] == ["agent:cline", "agent:copilot"]
    assert first.input_digest != second.input_digest


def test_a_held_write_asks_for_a_person_and_says_all_gates(engine: PolicyEngine) -> None:
    found = engine.decide(write(findings=["quotes"], supersedes=[entry(tier="verified")], superseded_so_far=20))
    assert (found.allow, found.hold, found.review) == (False, True, "human")
    assert codes(found) == ["scan_findings", "supersede_verified", "too_many_superseded"]


def test_the_twentieth_replacement_goes_through_and_the_next_is_held(engine: PolicyEngine) -> None:
    assert engine.decide(write(supersedes=[entry()], superseded_so_far=19)).allow
    assert engine.decide(write(supersedes=[entry()], superseded_so_far=20)).hold
    assert engine.decide(write(superseded_so_far=20)).allow, "a write that replaces nothing is not counted"
    assert engine.decide(write(supersedes=[entry()] * 3, superseded_so_far=18)).hold, "three at once do not slip past the gate"


def test_who_says_to_be_the_owner_is_not(engine: PolicyEngine) -> None:
    assert engine.decide(write(principal="agent:codex", owner="human:acme:eve", findings=["secret"])).hold
    assert engine.decide(write(principal=OWNER, owner=OWNER, findings=["secret"])).allow
    assert not engine.decide(write(principal="human:acme:eve", owner="human:acme:eve", findings=["secret"])).allow
    assert engine.decide(write(principal=OWNER, owner="human:acme:eve", findings=["secret"])).hold
    nobodys = {name: value for name, value in write(principal=OWNER, findings=["secret"]).input.items() if name != "owner"}
    assert engine.decide(Request("write", nobodys)).hold


def test_what_was_decided_is_not_evaluated_again_and_has_an_id_of_its_own() -> None:
    engine = PolicyEngine(builtin(), DATA)
    first = engine.decide(write(findings=["secret"]))
    engine_module._running.engines[engine._serial, ("write.rego",)] = object()  # an evaluation would now fail
    again = engine.decide(write(findings=["secret"]))
    assert again._replace(id=first.id) == first and again.id != first.id
    other = engine.decide(write(findings=["secret"], session="ses-0123abce", task="task-a-0123abcd"))
    assert other.code == "scan_findings" and other.input_digest != first.input_digest, "no rule can see the session or the task"
    assert engine.decide(write(findings=["hidden"])).code == "policy_error"


def test_what_is_remembered_is_what_an_evaluation_would_say() -> None:
    r = random.Random(20261202)
    remembers, forgets = PolicyEngine(builtin(), DATA), PolicyEngine(builtin(), DATA, whole=True)
    for _ in range(1500):
        asked = {**random_input(r), "session": f"ses-0123abc{r.choice('de')}"}
        request = Request(asked.pop("action"), {name: value for name, value in asked.items() if name != "grant"})
        forgets._answers.clear()
        forgets._decided.clear()
        assert remembers.decide(request)._replace(id="") == forgets.decide(request)._replace(id=""), request


@pytest.mark.parametrize("asks", ["input", "input.guarded", "input.elsewhere[0].other", "input.superseding"])
def test_any_policy_is_told_what_the_entries_of_a_write_come_to(asks: str) -> None:
    told = 'walk(input, [["guarded"], found])' if asks == "input" else f"found := {asks}"
    body = f'decision := {{"allow": false, "reasons": [{{"code": "told", "found": found}}]}} if {{\n\t{told}\n}}\n'
    engine = PolicyEngine([("site.rego", f"package amem\n\n{body}")], DATA)
    replaced = [entry(tier="verified", domain="dom-b"), entry()]
    found = engine.decide(write(supersedes=replaced, superseded_so_far=3)).reasons[0].facts["found"]
    assert found == {"input.elsewhere[0].other": "dom-b", "input.superseding": 5}.get(asks, ["mem-a-0123456789ab"])


@pytest.mark.parametrize(
    "condition",
    [
        'input.session == "ses-0123abcd"',
        'input["session"] == "ses-0123abcd"',
        'some name, value in input; name == "session"; value == "ses-0123abcd"',
        'object.get(input, "session", "") == "ses-0123abcd"',
        'asked := input; asked.session == "ses-0123abcd"',
        'walk(input, [path, value]); path == ["session"]; value == "ses-0123abcd"',
        'input[name] == "ses-0123abcd"; name == "session"',
    ],
)
def test_what_was_decided_for_one_session_is_not_told_to_another_when_a_rule_can_see_it(condition: str) -> None:
    text = f'package amem.rules\n\ndeny contains {{"policy": "p"}} if {{\n\t{condition.replace("; ", chr(10) + chr(9))}\n}}\n'
    ruled = PolicyEngine(builtin(), DATA, [("p", text)])
    for _ in range(2):
        assert not ruled.decide(read()).allow
        assert ruled.decide(read(session="ses-0123abce")).allow


def test_a_policy_that_reads_the_clock_is_evaluated_each_time() -> None:
    engine = root_policy('package amem\ndecision := {"allow": false, "reasons": [{"code": "at", "ns": time.now_ns()}]}\n')
    first, second = engine.decide(write()), engine.decide(write())
    assert first.reasons[0].facts["ns"] < second.reasons[0].facts["ns"]


@pytest.mark.parametrize(
    "body",
    [
        "decision := {}",
        "decision := null",
        "decision := true",
        'decision := "allow"',
        "decision := [true]",
        'decision := {"allow": "yes"}',
        'decision := {"allow": 1}',
        'decision := {"allow": null}',
        'decision := {"allow": true, "hold": "no"}',
        'decision := {"allow": true, "hold": true}',
        'decision := {"allow": true, "review": "anybody"}',
        'decision := {"allow": true, "reasons": [{"code": "why"}]}',
        'decision := {"allow": true, "reasons": 7}',
        'decision := {"allow": true, "reasons": [{"code": "Not A Code"}]}',
        'decision := {"allow": true, "reasons": [{}]}',
        'decision := {"allow": true} if input.nothing',
        'decision := {"allow": x} if some x in [true, false]',
        'decision := {"allow": true} if to_number("x") == 1',
        'decision := {"allow": true} if count(input.domain.x) == 0',
        "decision := {{1}, {2}}",
        "other := 1",
    ],
)
def test_a_decision_that_is_not_one_denies(body: str) -> None:
    found = root_policy(f"package amem\n{body}\n").decide(write())
    assert not found.allow and not found.hold
    assert codes(found) in (["policy_error"], ["policy_undefined"]), found


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (write(principal="agent:gemini"), "a write without a grant"),
        (write(label=Label.RESTRICTED), "a classification below the session's label"),
        (call(label=Label.RESTRICTED), "a call above the destination's ceiling"),
        (call(ceiling=None), "a call above the destination's ceiling"),
        (call(destination="shut"), "a call above the destination's ceiling"),
        (call(destination="elsewhere"), "a call above the destination's ceiling"),
        (read(domain="dom-b"), "a read without a grant"),
        (read(domain="dom-none"), "a read without a grant"),
    ],
)
def test_a_roots_policy_never_widens_the_grants(request_: Request, why: str) -> None:
    found = root_policy(ALLOW_ALL).decide(request_)
    assert not found.allow
    assert [(reason.code, reason.facts) for reason in found.reasons] == [("beyond_grant", {"why": why})]


def test_a_read_filter_is_cut_down_to_the_grant_and_the_domain() -> None:
    found = root_policy(ALLOW_ALL).decide(read())
    assert found.allow and found.result == {"domains": ["dom-a"], "max_label": "internal", "min_tier": "raw"}
    assert root_policy(ALLOW_ALL).decide(read(handling=Label.PUBLIC)).result["max_label"] == "public"


def test_a_roots_policy_narrows_reads() -> None:
    narrowed = ALLOW_ALL.replace('"restricted"', '"public"').replace('"raw"', '"verified"')
    assert root_policy(narrowed).decide(read(principal=OWNER)).result == {
        "domains": ["dom-a"],
        "max_label": "public",
        "min_tier": "verified",
    }


@pytest.mark.parametrize(
    "filter_",
    [
        '"all"',
        "{}",
        '{"domains": "dom-a", "max_label": "public", "min_tier": "raw"}',
        '{"domains": [], "max_label": "top", "min_tier": "raw"}',
    ],
)
def test_a_malformed_filter_denies(filter_: str) -> None:
    found = root_policy(f'package amem\ndecision := {{"allow": true, "filter": {filter_}}}\n').decide(read())
    assert not found.allow and codes(found) == ["policy_error"]


def test_hold_without_a_write_grant_is_a_refusal() -> None:
    hold = root_policy('package amem\ndecision := {"allow": false, "hold": true, "reasons": [{"code": "x"}]}\n')
    assert hold.decide(write()).hold
    assert not hold.decide(write(principal="agent:gemini")).hold
    assert not hold.decide(call()).hold


RULE = """package amem.rules

deny contains {"policy": "pol-L1-001", "code": "no_facts"} if {
	input.action == "write"
	input.type == "fact"
}
"""


def test_a_records_rule_wins_over_the_policy_and_is_cited() -> None:
    ruled = PolicyEngine(builtin(), DATA, [("pol-L1-001", RULE)])
    found = ruled.decide(write())
    assert not found.allow and not found.hold
    assert found.citations == ("pol-L1-001",)
    assert [(reason.code, reason.facts) for reason in found.reasons] == [("no_facts", {"policy": "pol-L1-001"})]
    assert ruled.decide(write(type="method")).allow
    held = ruled.decide(write(findings=["hidden"]))
    assert not held.hold and codes(held) == ["scan_findings", "no_facts"]
    assert ruled.version != PolicyEngine(builtin(), DATA).version


def deny(policy: str, *statements: str) -> Rule:
    body = "".join(f"\t{statement}\n" for statement in statements)
    return Rule(policy, f'package amem.rules\n\ndeny contains {{"policy": "{policy}"}} if {{\n{body}}}\n')


WRITES, READS, IN_A, IN_B = 'input.action == "write"', 'input.action == "read"', 'input.domain == "dom-a"', 'input.domain == "dom-b"'


def test_a_rule_that_names_its_action_or_domain_costs_the_others_nothing_and_still_denies() -> None:
    ruled = PolicyEngine(builtin(), DATA, [Rule("pol-L1-001", RULE), deny("pol-L1-007", READS), deny("pol-L1-008", IN_B, WRITES)])
    assert {
        (action, domain): [rule.policy for rule in ruled._way(action, domain).rules]
        for action, domain in (("write", "dom-a"), ("write", "dom-b"), ("read", "dom-a"), ("model_call", "dom-b"))
    } == {
        ("write", "dom-a"): ["pol-L1-001"],
        ("write", "dom-b"): ["pol-L1-001", "pol-L1-008"],
        ("read", "dom-a"): ["pol-L1-007"],
        ("model_call", "dom-b"): [],
    }
    assert ruled.decide(read()).citations == ("pol-L1-007",)
    assert ruled.decide(write()).citations == ("pol-L1-001",)
    assert ruled.decide(write(principal=OWNER, domain="dom-b", type="method")).citations == ("pol-L1-008",)
    assert ruled.decide(call()).allow


AS_A_READ = 'input.action == "read" with input as {"action": "read"}'
FIRST = [
    WRITES, READS, IN_A, IN_B, AS_A_READ, "true", f"not {READS}", 'input.type == "fact"', 'input.type != "fact"', 'input.action != "read"',
    'input.action in {"write", "read"}', 'input.domain in {"dom-b"}', 'input.type in ["fact"]', 'input.principal in {"agent:codex", 7}',
    'startswith(input.principal, "agent:")', 'endswith(input.principal, "ann")', 'contains(input.domain, "-b")', 'input.grant == "x"',
    'input.grant.read == "internal"', 'input.task == "x"', 'input.task != "x"', 'startswith(input.task, "t")', 'input.none != "x"',
    'startswith(input.none, "x")', 'input.label > "internal"', 'input["type"] == "fact"', 'input.supersedes != "fact"',
    'contains(input.findings, "secret")', 'input.type == "fact" with input.type as "fact"', '"x" == input.type', 'input.type == input.type',
]  # fmt: skip
"""Statements that the host may judge before an evaluation, and others that are like them; some err."""


@given(st.lists(st.sampled_from(FIRST), min_size=1, max_size=4))
@settings(max_examples=200)
def test_no_rule_is_left_out_that_would_have_denied_or_erred(statements: list[str]) -> None:
    ruled = PolicyEngine(builtin(), DATA, [deny("pol-L1-001", *statements)])
    anyway = PolicyEngine(builtin(), DATA, [deny("pol-L1-001", "true", *statements)])
    for asked in (write(), read(), write(domain="dom-b", principal=OWNER, findings=["secret"]), call()):
        assert codes(ruled.decide(asked)) == codes(anyway.decide(asked)), asked


def test_a_rule_whose_first_statements_fail_is_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    ruled = PolicyEngine(
        builtin(), DATA, [deny("pol-L1-001", WRITES, 'startswith(input.principal, "agent:x")', "count(input.findings) == 0")]
    )
    said: list[str] = []
    kept = ruled._said

    def noted(way: Any, rule: str, seen: str) -> Any:
        said.append(rule)
        return kept(way, rule, seen)

    monkeypatch.setattr(ruled, "_said", noted)
    assert ruled.decide(write()).allow and said == ["data.amem.decision"]
    assert ruled.decide(write(principal="agent:x")).citations == ("pol-L1-001",)
    assert said[1:] == ["data.amem.decision", "data.amem.rules.deny"]


def test_a_rule_whose_denials_are_no_set_denies_all_it_concerns() -> None:
    ruled = PolicyEngine(builtin(), DATA, [Rule("pol-L1-001", f"package amem.rules\n\ndeny := true if {WRITES}\n")])
    assert [codes(ruled.decide(asked)) for asked in (write(), read())] == [["policy_error"], []]


def test_a_rule_of_one_domain_says_nothing_in_another() -> None:
    ruled = PolicyEngine(builtin(), DATA, [Rule("pol-L1-001", RULE, "dom-b"), Rule("pol-L1-002", RULE.replace("001", "002"), "dom-a")])
    assert ruled.decide(write()).citations == ("pol-L1-002",)
    assert ruled.decide(write(principal=OWNER, domain="dom-b")).citations == ("pol-L1-001",)
    assert ruled.concerns("write", "dom-a") and not ruled.concerns("read", "dom-a") and not ruled.concerns("write", "dom-c")


TASK = "task-a-0123abcd"


def excepted(**changed: str) -> tuple[Exemption, ...]:
    usual = {"policy": "pol-L2-009", "domain": "dom-a", "breaches": "pol-L1-001", "task": TASK, "expires_at": "2026-12-01T00:00:00.000Z"}
    return (Exemption(**(usual | changed)),)


def at(day: int) -> Callable[[], datetime]:
    return lambda: datetime(2026, 11, day, 12, tzinfo=UTC)


def test_an_exception_lifts_one_policy_for_one_task_until_it_expires() -> None:
    ruled = PolicyEngine(builtin(), DATA, [("pol-L1-001", RULE)], excepted(), clock=at(30))
    used = ruled.decide(write(task=TASK))
    assert used.allow and used.citations == ("pol-L2-009",), "the exception that was used is cited"
    assert ruled.decide(write(task=TASK, findings=["secret"])).hold, "what the built-in policy holds is held all the same"
    for other in (write(), write(task="task-a-0123abce")):
        assert ruled.decide(other).citations == ("pol-L1-001",)
    later = [datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)]
    ending = PolicyEngine(builtin(), DATA, [("pol-L1-001", RULE)], excepted(), clock=lambda: later.pop(0))
    assert ending.decide(write(task=TASK)).allow
    assert not ending.decide(write(task=TASK)).allow, "what was decided before is not told after it expired"


@pytest.mark.parametrize("other", [{"breaches": "pol-L1-002"}, {"domain": "dom-b"}, {"task": "task-a-0123abce"}])
def test_an_exception_of_something_else_lifts_nothing(other: dict[str, str]) -> None:
    ruled = PolicyEngine(builtin(), DATA, [("pol-L1-001", RULE)], excepted(**other), clock=at(30))
    assert not ruled.decide(write(task=TASK)).allow


def test_of_two_denials_the_one_without_an_exception_stands() -> None:
    ruled = PolicyEngine(builtin(), DATA, [("pol-L1-001", RULE), ("pol-L1-002", RULE.replace("001", "002"))], excepted(), clock=at(30))
    found = ruled.decide(write(task=TASK))
    assert not found.allow and found.citations == ("pol-L2-009", "pol-L1-002") and codes(found) == ["no_facts"]


def test_two_rules_both_speak() -> None:
    other = RULE.replace("001", "002").replace(', "code": "no_facts"', "")
    found = PolicyEngine(builtin(), DATA, [("a", RULE), ("b", other)]).decide(write())
    assert found.citations == ("pol-L1-001", "pol-L1-002")
    assert codes(found) == ["record_rule", "no_facts"]
    assert found.sentence().startswith("refused: policy pol-L1-002 refuses it; ")


@pytest.mark.parametrize("denial", ['"words"', "{}", '{"policy": 7}', '{"policy": "p", "code": "No"}', '{"policy": "p", "x": {"y": 1}}'])
def test_a_malformed_denial_is_no_permission(denial: str) -> None:
    found = PolicyEngine(builtin(), DATA, [("p", f"package amem.rules\ndeny contains {denial}\n")]).decide(write())
    assert not found.allow


def test_a_rule_that_errs_when_reached_denies_and_says_where() -> None:
    erring = 'package amem.rules\ndeny contains {"policy": "p"} if {\n\tinput.action == "read"\n\tnofunction(1)\n}\n'
    ruled = PolicyEngine(builtin(), DATA, [("pol-L2-009", erring)])
    found = ruled.decide(read())
    assert codes(found) == ["policy_error"]
    assert "pol-L2-009:4:" in found.sentence()
    assert "Stack backtrace" not in found.sentence()
    assert ruled.decide(write()).allow, "the statement is not reached: the policy decides as ever"


@pytest.mark.parametrize(
    ("modules", "rules", "data"),
    [
        ([("x.rego", "package other\nallow := true\n")], [], {}),
        ([("x.rego", "package amem.more\nallow := true\n")], [], {}),
        ([*builtin(), ("x.rego", 'package amem.rules\ndeny contains {"policy": "x"} if false\n')], [], {}),
        ([*builtin(), ("x.rego", "package amem.rules\ndeny := []\n")], [], {}),
        ([*builtin(), ("x.rego", "package system\nx := 1\n")], [], {}),
        ([("x.rego", "package amem\ndecision := {\n")], [], {}),
        ([("x.rego", "package amem\np if { x }\n")], [], {}),
        ([("x.rego", "package amem\np { input.x }\n")], [], {}),
        ([("x.rego", "package amem\nx := " + "[" * 5000 + "]" * 5000)], [], {}),
        ([("x.rego", "")], [], {}),
        ([], [], {}),
        (builtin(), [("r", "package amem\ndecision := {\"allow\": true}\n")], {}),
        (builtin(), [("r", "package amem.rules.more\nx := 1\n")], {}),
        (builtin(), [("r", "package amem.rules\nx := " + "{" * 40 + "}" * 40)], {}),
        (builtin(), [], {"amem": {"decision": {"allow": True}}}),
        (builtin(), [], {"x": float("nan")}),
    ],
)  # fmt: skip
def test_a_module_that_may_not_stand_does_not_load(modules: Any, rules: Any, data: Any) -> None:
    with pytest.raises((ConfigError, ValueError)):
        PolicyEngine(modules, data, rules)


def test_one_engine_decides_in_every_thread(engine: PolicyEngine) -> None:
    found: list[Decision] = []
    threads = [threading.Thread(target=lambda: found.append(engine.decide(write()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [decision.allow for decision in found] == [True] * 8


def test_an_engine_dropped_by_another_thread_is_not_freed_there() -> None:
    """An interpreter freed by another thread than its own complains through sys.unraisablehook, which pytest makes a failure."""
    holder = [PolicyEngine(builtin(), DATA)]
    holder[0].decide(write())

    def drop() -> None:
        holder.pop().decide(write())
        gc.collect()

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    gc.collect()
    for _ in range(2 * engine_module._ENGINES_PER_THREAD):
        assert PolicyEngine(builtin(), DATA).decide(write()).allow


def test_a_panic_denies_and_the_next_decision_is_right(engine: PolicyEngine) -> None:
    """The true panic: an interpreter of one thread used in another. Its own thread makes it and lives to free it."""
    ready, over = threading.Event(), threading.Event()

    def other() -> None:
        foreign = engine_module._build(builtin(), (), json.dumps(DATA))
        lent.append(foreign)
        ready.set()
        over.wait()
        del foreign

    lent: list[Any] = []
    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()
    engine_module._running.engines[engine._serial, ("write.rego",)] = lent.pop()
    try:
        found = engine.decide(write())
        assert codes(found) == ["policy_error"] and "unsendable" in found.sentence()
        assert engine.decide(write()).allow
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_an_interrupt_is_not_swallowed(engine: PolicyEngine, interrupt: type[BaseException]) -> None:
    class Interrupted:
        def set_input_json(self, text: str) -> None:
            raise interrupt

    engine_module._running.engines[engine._serial, ("write.rego",)] = Interrupted()
    with pytest.raises(interrupt):
        engine.decide(write())
    assert engine.decide(write()).allow


def test_a_request_that_is_no_json_denies(engine: PolicyEngine) -> None:
    for value in (float("inf"), object(), {1, 2}, "\ud800"):
        found = engine.decide(Request("write", {"domain": "dom-a", "principal": OWNER, "findings": value}))
        assert not found.allow and codes(found)[0] in ("bad_request", "policy_error")


def test_a_request_with_nothing_in_it_denies_for_every_action(engine: PolicyEngine) -> None:
    for action in ("model_call", "read", "write", "erase", ""):
        assert not engine.decide(Request(action, {})).allow


@pytest.mark.parametrize("asked", [call(), read(), write(supersedes=[entry()])], ids=lambda asked: asked.action)
def test_no_field_can_be_missing_from_what_is_allowed(engine: PolicyEngine, asked: Request) -> None:
    """Rego denies nothing over a missing field, so the positive rules must need each field that decides."""
    assert engine.decide(asked).allow
    deciding = {
        "model_call": {"label", "ceiling", "destination"},
        "read": {"domain", "principal", "handling"},
        "write": {"domain", "principal", "classification", "label", "findings", "supersedes"},
    }
    for name in deciding[asked.action]:
        without = {key: value for key, value in asked.input.items() if key != name}
        assert not engine.decide(Request(asked.action, without)).allow, name


def test_a_roots_policy_replaces_the_built_in(tmp_path: Path) -> None:
    assert load(tmp_path, DATA).decide(write()).allow
    (tmp_path / "site.rego").write_text('package amem\ndefault decision := {"allow": false, "reasons": [{"code": "closed"}]}\n')
    closed = load(tmp_path, DATA)
    assert codes(closed.decide(write())) == ["closed"]
    assert [name for name, _ in sources(tmp_path)] == ["site.rego"]
    (tmp_path / "more.rego").write_text("package amem.more\nx := 1\n")
    assert [name for name, _ in sources(tmp_path)] == ["more.rego", "site.rego"]
    assert load(tmp_path, DATA).version != closed.version
    assert load(tmp_path / "absent", DATA).version == PolicyEngine(builtin(), {}).version


def test_a_policy_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.rego").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"bad\.rego"):
        load(tmp_path, DATA)


def test_other_data_leave_the_version_and_change_the_answer(engine: PolicyEngine) -> None:
    other = json.loads(json.dumps(DATA))
    other["grants"]["destinations"]["anthropic"]["ceiling"] = "public"
    narrowed = PolicyEngine(builtin(), other)
    assert narrowed.version == engine.version
    assert engine.decide(call(label=Label.INTERNAL)).allow
    assert not narrowed.decide(call(label=Label.INTERNAL)).allow


def test_an_engine_that_fails_its_self_test_serves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtin()
    wrong = [(name, text.replace("labels[input.classification] >= labels[input.label]", "true")) for name, text in real]
    assert wrong != list(real)
    monkeypatch.setattr(golden, "builtin", lambda: wrong)
    golden.mismatches.cache_clear()
    try:
        with pytest.raises(IntegrityError, match="a write below the session"):
            load(tmp_path, DATA)
    finally:
        golden.mismatches.cache_clear()


def test_importing_the_policy_loads_no_engine() -> None:
    late = ("regorus", "asyncio", "importlib.metadata")
    code = f"import sys, amem.policy.engine, amem.policy.door; print([name for name in {late} if name in sys.modules])"
    environment = os.environ | {"PYTHONPATH": str(Path(engine_module.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "[]\n"


def test_a_refused_call_is_told_what_is_left_and_whose_day_it_is(engine: PolicyEngine) -> None:
    limits = {"session": None, "day": 100}
    asked = ask.spend(**who(), destination="anthropic", wanted=41, spent={"session": 60, "day": 60}, limits=limits, zone="Asia/Kathmandu")
    assert engine.decide(asked).sentence() == (
        "refused: today (Asia/Kathmandu) has 40 of 100 tokens left at anthropic, and this call may use 41 "
        "(prompt and the most output it asks for)"
    )


def test_a_call_is_let_through_where_it_fits_both_limits_and_told_of_each_that_it_does_not_fit(engine: PolicyEngine) -> None:
    """Beside the plain sums, over generated requests; the same engine answers all, so that none is told another's figures."""
    r = random.Random(20261130)
    tokens = [0, 1, 39, 40, 41, 60, 99, 100, 101, 2**53 - 1]
    allowed = 0
    for _ in range(2000):
        spent, limits = ({scope: r.choice(tokens) for scope in ("session", "day")} for _ in range(2))
        most = {scope: r.choice([None, limit, limit]) for scope, limit in limits.items()}
        wanted = r.choice(tokens)
        found = engine.decide(ask.spend(**who(), destination="anthropic", wanted=wanted, spent=spent, limits=most))
        over = [scope for scope, limit in most.items() if limit is not None and spent[scope] + wanted > limit]
        assert (found.allow, codes(found)) == (not over, [f"spend_{scope}" for scope in over])
        for scope, reason in zip(over, found.reasons, strict=True):
            left = max(0, limits[scope] - spent[scope])
            expected = {"destination": "anthropic", "limit": limits[scope], "left": left, "wanted": wanted}
            assert dict(reason.facts) == expected | ({"zone": "UTC"} if scope == "day" else {})
        allowed += found.allow
    assert 200 < allowed < 1800

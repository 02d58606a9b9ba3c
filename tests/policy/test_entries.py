"""Policy entries: what their blocks say, which are in force, and what does not fit among them."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from amem.model.entry import Tier
from amem.model.label import Label
from amem.policy import entries
from amem.policy.engine import Exemption, Rule
from amem.policy.entries import InForce, Policy, Standing, Status

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
REGO = 'package amem.rules\n\ndeny contains {"policy": "pol-L2-031"} if input.action == "write"\n'


def body(rego: str | None = None, more: str = "", **changed: Any) -> str:
    values = {"id": "pol-L2-031", "layer": 2, "rule": "R", "intent": "I", "owner": "human:a:b"} | changed
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items() if value is not None)
    return f"Some words.\n\n```policy\n{lines}{more}```\n" + (f"\n```rego\n{rego}```\n" if rego else "")


def one(policy: str, approved_ms: int | None = 1, tier: Tier = Tier.VERIFIED, domain: str = "dom-a", **changed: Any) -> Standing:
    number = sum(policy.encode()) + (approved_ms or 0)
    text = body(id=policy, layer=int(policy[5]), rego=changed.pop("rego", None), more=changed.pop("more", ""), **changed)
    return Standing(
        entry=f"mem-a-{number:012d}", domain=domain, tier=tier, label=Label.INTERNAL, policy=entries.parse(text), approved_ms=approved_ms
    )


def stand(*found: Standing, refused: Mapping[str, str] | None = None) -> InForce:
    return entries.stand(found, lambda rules: refused or {}, AT)


def where(found: InForce) -> dict[str, Status]:
    return {each.id: each.status for each in found.standings}


def test_a_body_gives_its_policy_and_its_rule() -> None:
    assert entries.parse(body(REGO, implements="pol-L1-002")) == Policy(
        id="pol-L2-031", layer=2, rule="R", intent="I", owner="human:a:b", implements="pol-L1-002", rego=REGO
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("words", "one policy block"),
        (body() + body(), "one policy block"),
        (body(REGO) + f"\n```rego\n{REGO}```\n", "at most one rego"),
        ("```policy\nid = \n```\n", "no TOML"),
        ("```policy\nid = 'pol-L2-031'\n", "one policy block"),
        (body(id="pol-L4-001"), "id: expected"),
        (body(id="pol-L2-31"), "id: expected"),
        (body(id=7), "id: expected a text"),
        (body(layer=1), "layer"),
        (body(rule=""), "rule"),
        (body(intent=None), "intent"),
        (body(owner=None), "owner"),
        (body(note="x"), "no such key"),
        (body(implements="all"), "implements"),
        (body(exception_to="pol-L2-001"), "names all of"),
        (body(task="task-a-0123abcd"), "names all of"),
        (body(exception_to="pol-L2-001", task="any", expires_at="2027-01-01"), "task"),
        (body(exception_to="pol-L2-001", task=["task-a-0123abcd"], expires_at="2027-01-01"), "task"),
        (body(exception_to="pol-L2-001", task="task-a-0123abcd", expires_at="soon"), "expires_at"),
        (body(exception_to="pol-L2-001", task="task-a-0123abcd", expires_at=7), "expires_at"),
        (body(REGO, exception_to="pol-L2-001", task="task-a-0123abcd", expires_at="2027-01-01"), "adds no rule"),
        (body(more="[rubric]\nunblock = 1\n"), "layer 1"),
        (body(id="pol-L1-001", layer=1, more="[rubric]\nother = 1\n"), "rubric"),
        (body(id="pol-L1-001", layer=1, more="[rubric]\nunblock = -1\n"), "rubric"),
        (body(id="pol-L1-001", layer=1, more="[rubric]\nunblock = nan\n"), "rubric.unblock"),
        (body(id="pol-L1-001", layer=1, more='[rubric]\norigins = {"a" = "x"}\n'), "rubric.origins.a"),
        (body(id="pol-L1-001", layer=1, rubric=7), "rubric"),
    ],
)  # fmt: skip
def test_a_body_that_lays_nothing_down_says_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        entries.parse(text)


@pytest.mark.parametrize(
    ("given", "instant"),
    [
        ("2026-12-31", "2027-01-01T00:00:00.000Z"),
        ("2026-12-31T10:00:00+02:00", "2026-12-31T08:00:00.000Z"),
        ("2026-12-31T10:00:00", "2026-12-31T10:00:00.000Z"),
    ],
)
def test_an_exception_ends_at_its_instant_or_with_its_day(given: str, instant: str) -> None:
    quoted = entries.parse(body(exception_to="pol-L2-001", task="task-a-0123abcd", expires_at=given))
    bare = entries.parse(body(exception_to="pol-L2-001", task="task-a-0123abcd", more=f"expires_at = {given}\n"))
    assert quoted.expires_at == bare.expires_at == instant


def test_a_fence_of_another_kind_or_length_ends_nothing() -> None:
    text = '````policy\nid = "pol-L2-031"\nrule = """\n```\nR"""\nintent = "I"\nowner = "O"\n````\n\n~~~rego\n' + REGO + "~~~\n"
    assert entries.parse(text).rule == "```\nR"
    assert entries.parse(text).rego == REGO


def test_only_what_is_approved_is_in_force() -> None:
    found = stand(
        one("pol-L2-001", rego=REGO), one("pol-L2-002", None, Tier.RAW, rego=REGO), one("pol-L2-003", None, Tier.CURATED, rego=REGO),
        one("pol-L2-004", None, Tier.VERIFIED, rego=REGO),
    )  # fmt: skip
    assert where(found) == {
        "pol-L2-001": Status.IN_FORCE, "pol-L2-002": Status.WAITING, "pol-L2-003": Status.WAITING, "pol-L2-004": Status.LEFT_OUT,
    }  # fmt: skip
    assert found.rules == (Rule("pol-L2-001", REGO, "dom-a"),)


def test_a_rule_that_may_not_be_loaded_is_left_out_by_name_and_the_others_stay() -> None:
    asked: list[Sequence[Rule]] = []

    def loadable(rules: Sequence[Rule]) -> Mapping[str, str]:
        asked.append(rules)
        return {"pol-L2-002": "calls http.send"} if rules[0].domain == "dom-a" else {}

    found = entries.stand(
        [one("pol-L2-001", rego=REGO), one("pol-L2-002", 2, rego=REGO), one("pol-L2-002", 3, domain="dom-b", rego=REGO)], loadable, AT
    )
    assert [(rule.policy, rule.domain) for rule in found.rules] == [("pol-L2-002", "dom-b"), ("pol-L2-001", "dom-a")]
    assert [(each.domain, each.id, each.why) for each in found.standings if each.status is Status.LEFT_OUT] == [
        ("dom-a", "pol-L2-002", "calls http.send")
    ]
    assert sorted(len(rules) for rules in asked) == [1, 2], "rules of one domain are looked at together"


def test_of_two_with_one_id_the_one_approved_last_is_in_force() -> None:
    found = stand(one("pol-L2-001", 5, rego=REGO), one("pol-L2-001", 9, rego=REGO + "# newer\n"))
    assert [rule.text for rule in found.rules] == [REGO + "# newer\n"]
    assert [(each.approved_ms, each.status) for each in sorted(found.standings, key=lambda each: each.approved_ms or 0)] == [
        (5, Status.LEFT_OUT), (9, Status.IN_FORCE),
    ]  # fmt: skip


def excepts(policy: str, to: str, until: str = "2027-01-01") -> Standing:
    return one(policy, exception_to=to, task="task-a-0123abcd", expires_at=until)


def test_exceptions_of_layer_0_and_expired_ones_are_not_in_force() -> None:
    found = stand(
        excepts("pol-L2-001", "pol-L1-009"), excepts("pol-L2-002", "pol-L0-001"), excepts("pol-L2-003", "pol-L1-009", "2026-11-29")
    )
    assert where(found) == {"pol-L2-001": Status.IN_FORCE, "pol-L2-002": Status.LEFT_OUT, "pol-L2-003": Status.EXPIRED}
    assert found.exemptions == (Exemption("pol-L2-001", "dom-a", "pol-L1-009", "task-a-0123abcd", "2027-01-02T00:00:00.000Z"),)


def test_the_last_rubric_that_was_approved_is_in_force_in_its_domain() -> None:
    first = one("pol-L1-001", 5, more="[rubric]\nday = 0.5\n")
    last = one("pol-L1-002", 9, more='[rubric]\nunblock = 2\norigins = {"check:" = 1.5}\n')
    assert stand(last, first).rubrics == {"dom-a": {"name": "pol-L1-002", "unblock": 2.0, "origins": {"check:": 1.5}}}


def test_lint_finds_each_conflict_on_the_lower_layer() -> None:
    found = stand(
        one("pol-L1-001"),
        one("pol-L2-001", implements="pol-L1-001"),
        one("pol-L2-002", implements="pol-L0-009"),
        one("pol-L2-003", implements="pol-L3-001"),
        one("pol-L2-004", implements="pol-L2-001"),
        one("pol-L3-001", None, Tier.RAW),
        excepts("pol-L3-002", "pol-L0-001"),
        excepts("pol-L3-003", "pol-L1-001", "2026-11-29"),
        one("pol-L3-004", rego=REGO),
        refused={"pol-L3-004": "calls http.send"},
    )
    assert [(each.kind, each.policy, each.against) for each in entries.lint(found.standings)] == [
        ("implements", "pol-L2-002", "pol-L0-009"),
        ("implements", "pol-L2-003", "pol-L3-001"),
        ("implements", "pol-L2-004", "pol-L2-001"),
        ("unverified", "pol-L3-001", None),
        ("l0_exception", "pol-L3-002", "pol-L0-001"),
        ("expired", "pol-L3-003", "pol-L1-001"),
        ("refused", "pol-L3-004", None),
    ]
    assert entries.lint(stand(one("pol-L1-001"), one("pol-L2-001", implements="pol-L1-001")).standings) == ()

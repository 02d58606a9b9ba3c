import pytest

from amem.policy import reasons
from amem.policy.decision import Decision, Reason


def decision(*why: Reason, allow: bool = False, hold: bool = False) -> Decision:
    return Decision(id="dec-0", action="write", allow=allow, hold=hold, reasons=why, policy_version="v", input_digest="d", result={})


def test_a_refusal_says_each_reason() -> None:
    found = decision(
        Reason("no_write_grant", {"principal": "agent:x", "domain": "dom-a"}),
        Reason("label_below_session", {"classification": "public", "label": "internal"}),
    )
    assert (
        found.sentence()
        == "refused: agent:x may not write in dom-a; public is below the session's label internal: write it as internal, or leave it out"
    )
    assert found.code == "no_write_grant"


def test_a_held_write_names_what_was_found_and_the_command() -> None:
    found = decision(Reason("scan_findings", {"findings": ["hidden", "secret"]}), hold=True)
    assert found.sentence() == "held: the text has what only the owner may put into the record: hidden, secret"
    assert found.hint == "amem quarantine list"


def test_a_decision_without_a_reason_still_says_something() -> None:
    assert decision().sentence() == "refused: no rule allows it"
    assert decision(allow=True).sentence() == "allowed"
    assert decision().code is None and decision().hint is None


def test_a_policys_own_code_is_told_by_its_name_and_after_the_known() -> None:
    assert Reason("weekend", {"day": "Sunday"}).sentence() == "the policy says weekend (day Sunday)"
    assert reasons.place("weekend") > max(reasons.place(code) for code in reasons.REASONS)


@pytest.mark.parametrize("hostile", ["\x1b[2J", "a\nb", "‮evil", "​", "{0.__class__}"])
def test_hostile_facts_cannot_move_the_terminal(hostile: str) -> None:
    told = Reason("unknown_destination", {"destination": hostile}).sentence()
    assert told.isprintable()
    assert "<class" not in told


def test_an_absent_fact_shows_as_a_question_mark() -> None:
    assert Reason("unknown_action", {}).sentence() == "the policy knows no action ?"


@pytest.mark.parametrize("code", reasons.REASONS)
def test_every_sentence_is_a_template_that_fills(code: str) -> None:
    assert "{" not in reasons.sentence(code, {})

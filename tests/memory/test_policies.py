"""Rules of the record in force: who puts one there, when it counts, and what a bad one does to others. From the proposal to the denial."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from amem.ledger.draft import Draft
from amem.memory.demote import demote
from amem.memory.outcomes import Held, Refused, Written
from amem.memory.promote import Promoted, approve, promote
from amem.memory.session import Memory, Session, open_memory, owner_session
from amem.memory.t0 import Page, t0
from amem.model.entry import Entry, Tier
from amem.policy.entries import Status
from amem.record import policies
from amem.settings import grants

from .seed import GRANTS, NOW, OWNER, agent, lines, owner, put, seeded, written

BOB = "human:acme:bob"
BLOCK = """```policy
id = "{id}"
layer = {layer}
rule = "No methods."
intent = "Methods stand in the handbook."
owner = "human:acme:ada"
{more}```
"""
NO_METHODS = """```rego
package amem.rules

deny contains {{"policy": "{id}", "code": "no_methods"}} if {{
	input.action == "write"
	input.type == "{type}"
}}
```
"""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    granted = f'[grants.dom-me.principals."{BOB}"]\nread = "restricted"\nwrite = true\n'
    with seeded(tmp_path, GRANTS.replace("[grants.dom-open]", f"{granted}[grants.dom-open]", 1)) as found:
        yield found


@pytest.fixture
def running(memory: Memory) -> Iterator[Memory]:
    """Another process' memory on the same root, open since before anything happened."""
    other = open_memory(memory.root, grants.load(memory.root.grants), clock=lambda: NOW)
    yield other
    other.close()


def body(id: str = "pol-L2-001", type: str = "method", rego: str = NO_METHODS, more: str = "") -> str:
    return BLOCK.format(id=id, layer=id[5], more=more) + "\n" + rego.format(id=id, type=type)


def laid_down(memory: Memory, session: Session, text: str) -> Entry:
    return written(memory, session, "A policy", type="policy", body=text)


def proposed(memory: Memory, session: Session, entry: Entry) -> str:
    done = promote(memory, session, entry.id, Tier.VERIFIED, "It was agreed on.")
    assert isinstance(done, Promoted) and done.task is not None, done
    return done.task


def in_force(memory: Memory, text: str) -> Entry:
    """An agent's policy that the owner approved."""
    entry = laid_down(memory, agent(memory), text)
    done = approve(memory, owner(memory), proposed(memory, agent(memory, "agent:codex"), entry))
    assert isinstance(done, Promoted) and done.landed, done
    return done.entry


def method(memory: Memory, domain: str = "dom-me", task: str | None = None) -> Written | Held | Refused:
    return put(memory, agent(memory, domain=domain, task=task), "How", type="method")


def why_not(outcome: Written | Held | Refused) -> str:
    assert isinstance(outcome, Refused), outcome
    return outcome.code


def where(memory: Memory) -> dict[str, tuple[Status, str | None]]:
    return {one.id: (one.status, one.why) for one in policies.standing(memory.root, memory.grants).standings}


def test_a_rule_counts_from_its_approval_in_running_sessions_and_is_cited(memory: Memory, running: Memory) -> None:
    entry = laid_down(memory, agent(memory), body())
    assert isinstance(method(running), Written), "raw: it has no effect"
    task = proposed(memory, agent(memory, "agent:codex"), entry)
    assert isinstance(method(running), Written), "proposed: it has no effect"
    approve(memory, owner(memory), task)
    assert why_not(method(running)) == why_not(method(memory)) == "no_methods"
    assert lines(memory, "decisions")[-1]["citations"] == ["pol-L2-001"]
    assert isinstance(method(running, "dom-open"), Written), "another domain's rules are its own"
    assert isinstance(put(running, agent(running)), Written), "another type is not refused"
    demote(memory, owner(memory), entry.id, "it was wrong")
    assert isinstance(method(running), Written)


def test_a_policy_without_the_owners_word_does_not_come_into_force(memory: Memory) -> None:
    entry = laid_down(memory, agent(memory), body())
    task = proposed(memory, agent(memory, "agent:codex"), entry)
    assert why_not(_refused(approve(memory, owner_session(memory, BOB, "dom-me"), task))) == "policy_by_owner"
    assert isinstance(method(memory), Written)


def test_what_the_owner_proposed_another_person_may_approve(memory: Memory) -> None:
    entry = laid_down(memory, owner(memory), body())
    approve(memory, owner_session(memory, BOB, "dom-me"), proposed(memory, owner(memory), entry))
    assert why_not(method(memory)) == "no_methods"


def _refused(outcome: object) -> Refused:
    assert isinstance(outcome, Refused), outcome
    return outcome


def test_a_file_that_says_it_is_verified_is_not_in_force(memory: Memory, running: Memory) -> None:
    entry = laid_down(memory, agent(memory), body())
    memory.index.note(memory.store.replace(replace(memory.store.read(entry.id), version=2, tier=Tier.VERIFIED)))
    assert isinstance(method(running), Written)
    assert where(memory)["pol-L2-001"] == (Status.LEFT_OUT, "verified by its file alone: no person approved it as it stands")


def test_a_rule_that_was_edited_after_its_approval_is_not_in_force(memory: Memory) -> None:
    entry = in_force(memory, body())
    path = memory.store.path(entry.id)
    path.write_text(path.read_text().replace('input.type == "method"', 'input.type != "policy"'))
    memory.index.refresh()
    assert isinstance(put(memory, agent(memory)), Written)
    assert where(memory)["pol-L2-001"][0] is Status.LEFT_OUT


MUCH = "; ".join(f"some {letter} in input.supersedes" for letter in "abcd")
BAD = {
    "a nested-bracket bomb": "```rego\npackage amem.rules\n\nx := " + "[" * 40 + "]" * 40 + "\n```\n",
    "another package": "```rego\npackage amem\n\ndecision := {{\"allow\": true, \"reasons\": []}}\n```\n",
    "an override of data": NO_METHODS.replace("package amem.rules\n", 'package amem.rules\n\nallow := true if data.amem.decision\n'),
    "an endless rule": NO_METHODS.replace('input.type == "{type}"', f"count([1 | {MUCH}]) > 0"),
    "no rego": "```rego\nnot rego\n```\n",
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_rule_is_named_and_left_out_and_nobody_else_is_touched(memory: Memory, running: Memory, name: str) -> None:
    in_force(memory, body("pol-L2-001"))
    in_force(memory, body("pol-L2-666", rego=BAD[name]))
    assert why_not(method(running)) == "no_methods", "the other rule is in force"
    assert isinstance(put(running, agent(running)), Written), "the base policy is in force"
    found = where(memory)
    assert found["pol-L2-001"][0] is Status.IN_FORCE
    assert found["pol-L2-666"][0] is Status.LEFT_OUT and found["pol-L2-666"][1]


def test_an_exception_lets_one_task_through_until_it_ends(memory: Memory) -> None:
    in_force(memory, body())
    task = "task-me-0123abcd"
    more = f'exception_to = "pol-L2-001"\ntask = "{task}"\nexpires_at = {{}}\n'
    in_force(memory, body("pol-L2-002", rego="", more=more.format("2100-01-01")))
    assert isinstance(method(memory, task=task), Written)
    assert lines(memory, "decisions")[-1]["citations"] == ["pol-L2-002"]
    assert why_not(method(memory)) == why_not(method(memory, task="task-me-0123abce")) == "no_methods"


def test_an_exception_is_over_with_the_claim_of_its_task(memory: Memory) -> None:
    in_force(memory, body())
    filed = memory.ledger.create(Draft(domain="dom-me", title="Write it down"), by=OWNER, admit=True)
    task = filed.task.id  # type: ignore[union-attr]
    session = agent(memory)
    taken = memory.ledger.claim_one(task, by=session.principal, session=session.id)
    session.hold(task, taken.fence)  # type: ignore[union-attr]
    more = f'exception_to = "pol-L2-001"\ntask = "{task}"\nexpires_at = 2100-01-01\n'
    in_force(memory, body("pol-L2-002", rego="", more=more))
    assert isinstance(put(memory, session, "How", type="method"), Written)
    memory.ledger.release(task, by="system", fence=taken.fence, session=session.id)  # type: ignore[union-attr]
    assert why_not(put(memory, session, "How else", type="method")) == "no_methods"
    memory.ledger.claim_one(task, by="agent:codex", session="ses-01234567")
    assert why_not(put(memory, session, "How then", type="method")) == "no_methods"


def test_an_exception_that_ended_or_is_to_layer_0_lets_nothing_through(memory: Memory) -> None:
    in_force(memory, body("pol-L0-001", type="method"))
    in_force(memory, body("pol-L2-001", type="question"))
    task = "task-me-0123abcd"
    more = 'exception_to = "{}"\ntask = "' + task + '"\nexpires_at = {}\n'
    in_force(memory, body("pol-L2-002", rego="", more=more.format("pol-L0-001", "2100-01-01")))
    in_force(memory, body("pol-L2-003", rego="", more=more.format("pol-L2-001", "2020-01-01")))
    assert why_not(method(memory, task=task)) == "no_methods"
    assert why_not(put(memory, agent(memory, task=task), "Why", type="question")) == "no_methods"


def test_a_start_asks_nothing_twice_and_the_notes_may_be_lost(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    in_force(memory, body())
    assert why_not(method(memory)) == "no_methods"
    notes = memory.root.state / "policies.json"
    assert os.stat(notes).st_mode & 0o777 == 0o600
    assert "No methods" not in notes.read_text() and "no_methods" not in notes.read_text(), "nothing of an entry's text stands in it"
    with monkeypatch.context() as patch:
        patch.setattr("amem.policy.lint.check", lambda *given: pytest.fail("looked at again"))
        patch.setattr("amem.ledger.opening.open_reading", lambda *given: pytest.fail("asked again"))
        assert policies.engine(memory.root, memory.grants).concerns("write", "dom-me")
    for damage in (lambda: notes.unlink(), lambda: notes.write_text("{"), lambda: notes.write_text(json.dumps({"approved": 7}))):
        damage()
        assert policies.engine(memory.root, memory.grants).concerns("write", "dom-me")


def test_the_load_check_is_made_by_whoever_approves_and_no_decision_waits_for_it(
    memory: Memory, running: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in (body(), body("pol-L2-666", rego=BAD["an endless rule"])):
        in_force(memory, text)
        with monkeypatch.context() as patch:
            patch.setattr("amem.policy.lint.check", lambda *given: pytest.fail("a decision waits for a load check"))
            assert why_not(method(running)) == "no_methods"


def test_an_approval_that_cannot_be_looked_up_stops_everything(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from amem.errors import UnavailableError

    def down(*given: object) -> None:
        raise UnavailableError("the ledger is not there")

    in_force(memory, body())
    (memory.root.state / "policies.json").unlink(missing_ok=True)
    monkeypatch.setattr("amem.ledger.opening.open_reading", down)
    with pytest.raises(UnavailableError):
        open_memory(memory.root, memory.grants)
    with pytest.raises(UnavailableError):
        method(memory)


def test_owner_is_bound_as_well(memory: Memory) -> None:
    in_force(memory, body())
    assert why_not(put(memory, owner(memory), "How", type="method")) == "no_methods"
    assert lines(memory, "decisions")[-1]["principal"] == OWNER


def test_the_rubric_of_an_approved_policy_ranks_the_tasks_of_its_domain(memory: Memory) -> None:
    """On admission, and when the whole board is ranked anew; a proposed one ranks nothing, and another domain is not its business."""
    from amem.ledger.draft import Draft
    from amem.ledger.store import Filed

    def filed(domain: str, **more: object) -> str:
        found = memory.ledger.create(Draft(**{"domain": domain, "title": "T", **more}), by=OWNER, admit=True)  # type: ignore[arg-type]
        assert isinstance(found, Filed)
        return found.task.id

    def raised(domain: str) -> float:
        need = filed(domain)
        filed(domain, depends_on=(need,), priority=5)
        return memory.ledger.show(need).rank

    more = '[rubric]\nunblock = 4.0\norigins = {"drill" = 2.5}\n'
    entry = laid_down(memory, owner(memory), BLOCK.format(id="pol-L1-001", layer=1, more=more))
    task = proposed(memory, owner(memory), entry)
    assert raised("dom-me") == 6.0
    done = approve(memory, owner_session(memory, BOB, "dom-me"), task)
    assert not isinstance(done, Refused), done
    memory.door.generation()
    assert policies.rubric(memory.root, memory.grants, "dom-me") == {"unblock": 4.0, "origins": {"drill": 2.5}, "name": "pol-L1-001"}
    assert raised("dom-me") == 9.0 and raised("dom-open") == 6.0
    drill = filed("dom-me", origin="drill:x")
    assert {move.id: move.rank for move in memory.ledger.rescore("dom-me", by=OWNER)}[drill] == 5.5


def test_the_opening_page_tells_what_is_in_force_layer_0_in_full(memory: Memory) -> None:
    long = "Nothing leaves the house without its owner's word, " * 8
    in_force(memory, body("pol-L0-001", rego="").replace("No methods.", long.strip()))
    in_force(memory, body("pol-L2-001").replace("No methods.", long.strip()))
    in_force(memory, body("pol-L2-666", rego=BAD["no rego"]))
    more = 'exception_to = "pol-L2-001"\ntask = "task-me-0123abcd"\nexpires_at = 2100-01-01\n'
    in_force(memory, body("pol-L2-002", rego="", more=more))
    laid_down(memory, agent(memory), body("pol-L3-001"))
    page = t0(memory, agent(memory))
    assert isinstance(page, Page)
    rules = [line for line in page.text.splitlines() if line.startswith("- pol-")]
    assert rules[0].split()[1] == "pol-L0-001"
    assert sorted(line.split()[1] for line in rules) == ["pol-L0-001", "pol-L2-001", "pol-L2-002"]
    assert long.strip() in rules[0]
    assert "pol-L2-001 does not bind task-me-0123abcd until 2100-01-02" in page.text
    assert page.text.count(long.strip()) == 1, "by its id and a few words, below layer 0"
    assert memory.door.version in page.text
    assert len(page.policies) == 3

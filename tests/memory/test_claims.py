"""The same claim elsewhere: named when one of them is replaced or withdrawn, with one task; nothing is told of what may not be read."""

from amem.ledger.reading import Filter
from amem.memory.claims import RECONCILE, same_elsewhere
from amem.memory.demote import demote
from amem.memory.outcomes import Written
from amem.memory.session import Memory

from .seed import agent, owner, put, written

CLAIM = "The weekly import needs the token in the vault, because the tracker refuses a session cookie."


def test_a_near_duplicate_is_named_and_one_task_filed(memory: Memory) -> None:
    old = written(memory, agent(memory), "Import token", body=CLAIM)
    same = written(memory, agent(memory), "Token for the import", body=CLAIM.replace("weekly ", "nightly ") + " Seen twice.")
    written(memory, agent(memory), "Import schedule", body="The weekly import runs on Mondays at nine, after the backup.")
    outcome = put(memory, agent(memory), "Import token", body="The tracker takes a cookie by now.", supersedes=[old.id])
    assert isinstance(outcome, Written)
    assert outcome.same == (same.id,)
    (task,) = memory.ledger.list(Filter(domains=("dom-me",), origin=RECONCILE)).tasks
    assert (task.origin, task.creator, task.status) == (f"{RECONCILE}{old.id}", "system:amem", "proposed")
    body = memory.ledger.text("dom-me", task.body) or ""
    assert same.id in body
    assert "tracker" not in body
    same_elsewhere(memory, agent(memory), [old.id], outcome.entry.id)
    assert memory.ledger.list(Filter(domains=("dom-me",), origin=RECONCILE)).total == 1


def test_what_the_session_may_not_read_is_not_named(memory: Memory) -> None:
    old = written(memory, owner(memory), "Import token", body=CLAIM, classification="public")
    secret = written(memory, owner(memory), "Import token again", body=CLAIM, classification="restricted")
    outcome = put(memory, agent(memory), "Cookie", body="A cookie will do.", supersedes=[old.id], classification="public")
    assert isinstance(outcome, Written)
    assert outcome.same == ()
    demote(memory, owner(memory), outcome.entry.id, "wrong")
    assert same_elsewhere(memory, owner(memory), [old.id], None) == (secret.id,)


def test_short_and_other_entries_are_not_the_same(memory: Memory) -> None:
    old = written(memory, agent(memory), "Make", body="Use make.")
    written(memory, agent(memory), "Make it", body="Use make 4.")
    decision = written(memory, agent(memory), "Import token", body=CLAIM, type="decision")
    written(memory, agent(memory), "Import token", body=CLAIM)
    for one in (old, decision):
        outcome = put(memory, agent(memory), "New", body="Other words altogether.", supersedes=[one.id])
        assert isinstance(outcome, Written)
        assert outcome.same == ()

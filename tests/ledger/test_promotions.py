"""Promotions in both databases."""

from amem.ledger.draft import Draft
from amem.ledger.promotions import State
from amem.ledger.store import Filed, Ledger, Refused
from amem.ledger.task import Status
from tests.ledger.worlds import BOT, DOM, ME

ENTRY = "mem-me-0123456789ab"


def draft(version: int) -> Draft:
    return Draft(domain=DOM, title=f"Approve {version}", requires=("human",), origin=f"promote:{ENTRY}@{version}")


def test_promotions_are_kept_in_order(ledger: Ledger) -> None:
    assert ledger.promotions(ENTRY) == ()
    number = ledger.promotion(ENTRY, 1, "curated", by=BOT, why="Checked.")
    assert [one.state for one in ledger.promotions(ENTRY)] == [State.BEGUN]
    ledger.landed(ENTRY, number)
    filed = ledger.propose(ENTRY, 2, draft(2), by=BOT, why="Twice.")
    assert isinstance(filed, Filed)
    assert isinstance(ledger.propose(ENTRY, 2, draft(2), by=ME, why="Again."), Refused)
    done = ledger.settle(ENTRY, filed.task.id, by=ME, state=State.LANDED)
    assert not isinstance(done, Refused)
    assert [(one.version, one.to, one.by, one.why, one.state, one.task) for one in ledger.promotions(ENTRY)] == [
        (1, "curated", BOT, "Checked.", State.LANDED, None),
        (2, "verified", BOT, "Twice.", State.LANDED, filed.task.id),
    ]
    assert ledger.show(filed.task.id).status is Status.COMPLETED
    assert isinstance(ledger.settle(ENTRY, filed.task.id, by=ME, state=State.DECLINED), Refused)
    assert ledger.reindex(DOM, check=True).repaired == ()


def test_a_newer_proposal_closes_the_older_and_a_declined_version_stays_so(ledger: Ledger) -> None:
    first = ledger.propose(ENTRY, 1, draft(1), by=BOT, why="One.")
    second = ledger.propose(ENTRY, 2, draft(2), by=BOT, why="Two.")
    assert isinstance(first, Filed)
    assert isinstance(second, Filed)
    assert ledger.show(first.task.id).status is Status.INVALIDATED
    assert not isinstance(ledger.settle(ENTRY, second.task.id, by=ME, state=State.DECLINED, why="No."), Refused)
    refused = ledger.propose(ENTRY, 2, draft(2), by=ME, why="Please.")
    assert isinstance(refused, Refused)
    assert "declined" in refused.reason
    assert isinstance(ledger.propose(ENTRY, 3, draft(3), by=ME, why="Changed."), Filed)
    assert [one.state for one in ledger.promotions(ENTRY)] == [State.CLOSED, State.DECLINED, State.PROPOSED]


def test_a_refused_proposal_leaves_nothing(ledger: Ledger) -> None:
    first = ledger.propose(ENTRY, 1, draft(1), by=BOT, why="One.")
    assert isinstance(first, Filed)
    before = ledger.promotions(ENTRY)
    assert isinstance(ledger.propose(ENTRY, 1, draft(1), by=ME, why="Two."), Refused)
    assert ledger.promotions(ENTRY) == before

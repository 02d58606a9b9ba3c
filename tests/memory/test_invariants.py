"""What must hold of a curation, and that it does whatever its writer says."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from amem.errors import RefusedError
from amem.ledger.draft import Draft
from amem.ledger.store import Filed
from amem.memory.invariants import INVARIANTS, Curation, Kind, broken, checked, decided, kind
from amem.memory.outcomes import Refused, Written
from amem.memory.session import Memory, Session
from amem.memory.verify import verify
from amem.model.entry import Tier
from amem.model.label import Label
from tests.record.made import entry

from .seed import agent, lines, owner, put, written

ONE = entry("One", "The body.\n", domain="dom-me", tier=Tier.RAW, classification=Label.INTERNAL)
TWO = replace(ONE, id="mem-me-000000000002", title="Two", classification=Label.RESTRICTED)
AFTER = replace(ONE, id="mem-me-000000000003", tier=Tier.CURATED, supersedes=(ONE.id,), summary="Better.")
BOTH = replace(AFTER, supersedes=(ONE.id, TWO.id), classification=Label.RESTRICTED, body="Both.\n")


@pytest.mark.parametrize(
    ("curation", "failed"),
    [
        (Curation(Kind.RESUMMARISE, (ONE,), (AFTER,), "a", "b"), ()),
        (Curation(Kind.RESUMMARISE, (ONE,), (replace(AFTER, body="The body. \n"),)), ("body_identical",)),
        (Curation(Kind.RESUMMARISE, (ONE,), (replace(AFTER, type="decision"),)), ("type_kept",)),  # type: ignore[arg-type]
        (Curation(Kind.MERGE, (ONE, TWO), (BOTH,)), ()),
        (Curation(Kind.MERGE, (ONE, TWO), (replace(BOTH, classification=Label.INTERNAL),)), ("label_of_all",)),
        (Curation(Kind.MERGE, (ONE, TWO), (replace(BOTH, supersedes=(ONE.id,)),)), ("all_replaced",)),
        (Curation(Kind.MERGE, (ONE, TWO), (replace(BOTH, tier=Tier.VERIFIED),)), ("no_tier_rises",)),
        (Curation(Kind.MERGE, (replace(ONE, tier=Tier.VERIFIED), TWO), (BOTH,)), ("verified_stays",)),
        (Curation(Kind.CORRECT, (ONE,), (AFTER,), "a", "a"), ("other_checker",)),
        (Curation(Kind.CORRECT, (ONE,), (replace(AFTER, domain="dom-x"),)), ("one_domain",)),
        (Curation(Kind.CORRECT, (), ()), ("something_changes", "one_domain")),
    ],
)
def test_each_rule_is_broken_by_what_it_is_about(curation: Curation, failed: tuple[str, ...]) -> None:
    assert broken(curation) == failed
    assert {name for name, holds in checked(curation).items() if not holds} == set(failed)


def test_every_rule_has_a_curation_that_breaks_it() -> None:
    tried = {name for mark in test_each_rule_is_broken_by_what_it_is_about.pytestmark for _, failed in mark.args[1] for name in failed}  # type: ignore[attr-defined]
    assert tried == set(INVARIANTS)


def test_an_origin_that_is_no_curators_curates_nothing() -> None:
    assert [kind(origin) for origin in (None, "task:x", "promote:mem", "librarian:merge", "librarian:verify", "check:summary")] == [
        None, None, None, Kind.MERGE, Kind.CORRECT, Kind.CORRECT,
    ]  # fmt: skip


def curator(memory: Memory, origin: str) -> Session:
    made = memory.ledger.create(Draft(domain="dom-me", title="Curate", origin=origin), by="system:amem", admit=True)
    assert isinstance(made, Filed)
    session = agent(memory, "agent:librarian")
    claimed = memory.ledger.claim_one(made.task.id, by=session.principal, session=session.id)
    session.hold(made.task.id, claimed.fence)  # type: ignore[union-attr]
    return session


def test_a_curators_write_lands_curated_and_verifies(memory: Memory) -> None:
    old = written(memory, agent(memory), "Zebra", body="Stripes.")
    session = curator(memory, "librarian:resummarise")
    outcome = put(memory, session, "Zebra", body="Stripes.", summary="It has stripes.", supersedes=[old.id])
    assert isinstance(outcome, Written)
    assert outcome.entry.tier is Tier.CURATED
    assert written(memory, session, "New").tier is Tier.RAW
    assert verify(memory.root, memory.store, memory.grants, memory.ledger, frozenset()).broken == ()


def test_a_curators_write_that_breaks_a_rule_is_refused_by_name(memory: Memory) -> None:
    old = written(memory, agent(memory), "Zebra", body="Stripes.")
    outcome = put(memory, curator(memory, "librarian:resummarise"), "Zebra", body="Spots.", supersedes=[old.id])
    assert isinstance(outcome, Refused)
    assert outcome.facts["invariants"] == ["body_identical"]
    assert memory.store.read(old.id).status == "active"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda memory, session: session.hold(session.task, 99),
        lambda memory, session: memory.ledger.release(session.task, by=session.principal, fence=session.fence, why="w"),
        lambda memory, session: session.hold(None, None),
    ],
)
def test_a_claim_that_is_over_or_made_up_curates_nothing(memory: Memory, spoil: Callable[[Memory, Session], object]) -> None:
    old = written(memory, agent(memory), "Zebra", body="Stripes.")
    session = curator(memory, "librarian:merge")
    spoil(memory, session)
    assert written(memory, session, "Zebra", supersedes=[old.id]).tier is Tier.RAW


def test_what_a_model_said_is_kept_and_no_model_decides(memory: Memory) -> None:
    curation = Curation(Kind.MERGE, (ONE, TWO), (BOTH,), "m", "n")
    decided(
        memory, owner(memory), "evaluator", "the same", call="call-000000000000", model="n", rubric="merge", rubric_version="3",
        confidence=0.8, alternatives=["split"], curation=curation, escalated=True, gate="owner",
    )  # fmt: skip
    (line,) = lines(memory, "curation")
    assert (line["role"], line["confidence"], line["alternatives"], line["escalated"]) == ("evaluator", 0.8, ["split"], True)
    assert line["invariants"] == checked(curation)
    for role in ("decider", "router"):
        with pytest.raises(RefusedError, match="code, never a model"):
            decided(memory, owner(memory), role, "yes", model="n")
        decided(memory, owner(memory), role, "yes")
    with pytest.raises(ValueError, match="role"):
        decided(memory, owner(memory), "judge", "yes")
    with pytest.raises(ValueError, match="confidence"):
        decided(memory, owner(memory), "decider", "yes", confidence=2.0)

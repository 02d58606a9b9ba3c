"""Labels in the ledger: what a listing leaves out, and what a fan-out carries on."""

import pytest

from amem.ledger.draft import Draft
from amem.ledger.reading import Filter
from amem.ledger.store import FannedOut, Filed, Holding, Ledger, Spawn
from amem.model.label import Label

OWNER = "human:acme:ada"


def filed(ledger: Ledger, title: str, label: Label | None, body: str = "") -> str:
    found = ledger.create(Draft(domain="dom-me", title=title, body=body, label=label), by=OWNER, admit=True)
    assert isinstance(found, Filed)
    return found.task.id


@pytest.mark.parametrize(
    ("without", "shown"),
    [
        ((), {"none", "public", "internal", "restricted"}),
        (("restricted",), {"none", "public", "internal"}),
        (("restricted", "internal"), {"none", "public"}),
        (("restricted", ""), {"public", "internal"}),
        (("public", "internal", "restricted", ""), set()),
    ],
)
def test_a_listing_neither_shows_nor_counts_what_it_is_without(ledger: Ledger, without: tuple[str, ...], shown: set[str]) -> None:
    for label in (None, *Label):
        filed(ledger, label.value if label else "none", label)
    # Words that look like a label are not one.
    ledger.create(Draft(domain="dom-me", title="public", check=('"label":"restricted"',), label=Label.PUBLIC), by=OWNER, admit=True)
    page = ledger.list(Filter(("dom-me",), without=without))
    assert {task.title for task in page.tasks} == shown
    assert page.total == len(page.tasks)


def test_a_fan_out_carries_the_label_to_parts_and_continuation(ledger: Ledger) -> None:
    task = filed(ledger, "Count", Label.PUBLIC)
    taken = ledger.claim("dom-me", by="agent:claude", session="ses-00000001")
    assert taken is not None
    found = ledger.fan_out(
        [Spawn("Left", "Count left.")], domain="dom-me", by="agent:claude", under=Holding(task, taken.fence, "ses-00000001"),
        session="ses-00000001", admit_own=True, label=Label.RESTRICTED,
    )  # fmt: skip
    assert isinstance(found, FannedOut) and found.continuation is not None
    assert [one.task.label for one in found.children] == ["restricted"]
    assert found.continuation.label == "restricted"

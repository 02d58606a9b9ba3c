"""Edits behind amem that would send readers elsewhere, or take trust away: `verify` names each."""

from dataclasses import replace

import pytest

from amem.memory.promote import promote
from amem.memory.session import Memory
from amem.memory.verify import Broken
from amem.model.entry import Entry, Status, Tier
from amem.record import markdown
from tests.memory.seed import agent, owner, written
from tests.memory.test_verify import verified


def edited(memory: Memory, entry: Entry) -> tuple[Broken, ...]:
    memory.store.path(entry.id).write_bytes(markdown.format(entry))
    return verified(memory).broken


def test_a_replaced_entry_that_is_turned_to_another_successor_shows(memory: Memory) -> None:
    old, other = written(memory, agent(memory), "Old"), written(memory, agent(memory), "Other")
    new = written(memory, agent(memory), "New", supersedes=[old.id])
    now = memory.store.read(old.id)
    assert now.superseded_by == new.id and edited(memory, now) == ()
    for successor in (other.id, old.id, "mem-me-000000000000", None):
        assert edited(memory, replace(now, superseded_by=successor)) == (Broken("entry", old.id, "changed"),)


def test_an_entry_of_a_lower_tier_than_it_was_promoted_to_shows_in_any_version(memory: Memory) -> None:
    entry = written(memory, agent(memory))
    promote(memory, owner(memory), entry.id, Tier.CURATED, "Checked.")
    now = memory.store.read(entry.id)
    for version in (now.version, now.version + 1):
        assert edited(memory, replace(now, tier=Tier.RAW, version=version)) == (Broken("entry", entry.id, "changed"),)
    assert edited(memory, replace(now, tier=Tier.RAW, version=entry.version)) == (Broken("entry", entry.id, "rolled_back"),)
    assert edited(memory, now) == ()


@pytest.mark.parametrize("status", [Status.SUPERSEDED, Status.DEMOTED, Status.ERASED])
def test_an_entry_that_is_taken_out_by_its_file_alone_shows(memory: Memory, status: Status) -> None:
    entry = written(memory, agent(memory))
    assert edited(memory, replace(entry, status=status)) == (Broken("entry", entry.id, "changed"),)

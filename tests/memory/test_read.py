from dataclasses import replace
from pathlib import Path

import pytest

from amem.memory import read
from amem.memory.outcomes import Entries, Gone, Hits, Moved, NotFound, Refused, Served
from amem.memory.session import Memory
from amem.model.entry import EntryType, Status, Tier
from amem.model.label import Label
from tests.memory.seed import GRANTS, OWNER, agent, lines, owner, seeded, written

NARROW = """
package amem
default decision := {"allow": false, "hold": false, "reasons": [{"code": "unknown_action"}]}
decision := {"allow": true, "hold": false, "reasons": [], "filter": _filter} if input.action == "read"
decision := {"allow": true, "hold": false, "reasons": []} if input.action == "write"
_filter := {"domains": [input.domain], "max_label": _label, "min_tier": "raw"}
default _label := "public"
_label := "restricted" if input.principal == data.grants.owner
"""


def ids(found: Hits | Entries | Refused) -> list[str]:
    assert not isinstance(found, Refused), found
    return [each.id for each in (found.hits if isinstance(found, Hits) else found.rows)]


def three(memory: Memory) -> list[str]:
    """One zebra entry of each label, public first."""
    return [written(memory, owner(memory), f"Zebra, {label}", classification=label).id for label in Label]


def test_search_serves_what_grants_and_handling_allow(memory: Memory) -> None:
    public, internal, restricted = three(memory)
    assert set(ids(read.search(memory, agent(memory), "zebra"))) == {public, internal}
    assert ids(read.search(memory, agent(memory, "agent:reader"), "zebra")) == [public]
    assert ids(read.search(memory, agent(memory, handling=Label.PUBLIC), "zebra")) == [public]
    assert set(ids(read.search(memory, owner(memory), "zebra"))) == {public, internal, restricted}
    found = read.search(memory, agent(memory), "zebra", limit=1)
    assert isinstance(found, Hits)
    assert (found.total, found.more) == (2, True)


def test_label_rises_with_what_is_served_and_not_with_what_is_asked(memory: Memory) -> None:
    public, internal, _ = three(memory)
    kept: list[Label] = []
    session = agent(memory, persist=kept.append)
    read.search(memory, session, "nothing like it")
    read.get(memory, session, public)
    read.entries(memory, session, type=[EntryType.DECISION])
    assert (session.label, kept) == (Label.PUBLIC, [])
    read.search(memory, session, "zebra")
    assert (session.label, kept) == (Label.INTERNAL, [Label.INTERNAL])
    other = agent(memory)
    read.get(memory, other, internal)
    assert other.label is Label.INTERNAL
    listing = agent(memory)
    read.entries(memory, listing)
    assert listing.label is Label.INTERNAL


def test_every_read_is_logged_with_the_label_after_it(memory: Memory) -> None:
    public, internal, _ = three(memory)
    session = agent(memory, task="task-me-01234567")
    read.get(memory, session, public)
    read.search(memory, session, "zebra")
    read.entries(memory, session)
    read.search(memory, session, "unheard-of")
    assert [(line["tool"], set(line.get("entries", ())), line["label"]) for line in lines(memory, "reads")] == [
        ("get", {public}, "public"),
        ("search", {public, internal}, "internal"),
        ("list", {public, internal}, "internal"),
        ("search", set(), "internal"),
    ]
    assert {line["task"] for line in lines(memory, "reads")} == {"task-me-01234567"}
    assert all(line["tokens"] > 0 for line in lines(memory, "reads")[:3])


def test_nothing_is_served_when_the_read_cannot_be_logged(memory: Memory) -> None:
    three(memory)
    session = agent(memory)
    (memory.root.state / "reads.jsonl").mkdir()
    for attempt in (lambda: read.search(memory, session, "zebra"), lambda: read.entries(memory, session)):
        with pytest.raises(OSError, match="reads"):
            attempt()


def test_nothing_is_served_when_the_label_cannot_be_kept(memory: Memory) -> None:
    three(memory)

    def persist(_: Label) -> None:
        raise OSError("the disk is full")

    session = agent(memory, persist=persist)
    for _ in range(2):
        with pytest.raises(OSError, match="full"):
            read.search(memory, session, "zebra")
    assert session.label is Label.INTERNAL
    assert lines(memory, "reads") == []


def test_policy_is_asked_once_a_session_and_domain(memory: Memory) -> None:
    three(memory)
    session = agent(memory)
    while memory.door.generation() != memory.door.generation():
        pass  # the root's files are so new that each look reads them again, and each reading asks anew
    for _ in range(3):
        read.search(memory, session, "zebra")
        read.entries(memory, session, domains=("dom-open",))
    asked = [line for line in lines(memory, "decisions") if line["action"] == "read" and line["session"] == session.id]
    assert [line["domain"] for line in asked] == ["dom-me", "dom-open"]


def test_root_policy_narrows_agents_and_not_the_owner(tmp_path: Path) -> None:
    with seeded(tmp_path) as before:
        before.root.policy.mkdir()
        (before.root.policy / "amem.rego").write_text(NARROW)
    from amem.memory.session import open_memory
    from amem.settings import grants

    memory = open_memory(before.root, grants.load(before.root.grants))
    public, internal, restricted = three(memory)
    session = agent(memory)
    assert ids(read.search(memory, session, "zebra")) == [public]
    assert ids(read.entries(memory, session)) == [public]
    assert read.get(memory, session, internal) == NotFound(internal)
    assert set(ids(read.entries(memory, owner(memory)))) == {public, internal, restricted}
    memory.close()


def test_other_domain_shows_nowhere(memory: Memory) -> None:
    hidden = written(memory, owner(memory, "dom-hidden"), "Zebra of another domain", classification="public")
    session = agent(memory)
    found = read.search(memory, session, "zebra")
    assert isinstance(found, Hits)
    assert (found.hits, found.total) == ((), 0)
    listed = read.entries(memory, session)
    assert isinstance(listed, Entries)
    assert (listed.rows, listed.total) == ((), 0)
    assert read.get(memory, session, hidden.id) == NotFound(hidden.id)
    refused = [read.search(memory, session, "zebra", domains=(name,)) for name in ("dom-hidden", "dom-absent")]
    told = [each.reason.replace("dom-hidden", "D").replace("dom-absent", "D") for each in refused if isinstance(each, Refused)]
    assert len(told) == 2
    assert len(set(told)) == 1


def test_another_domain_that_was_granted_is_read_by_name_alone(memory: Memory) -> None:
    open_entry = written(memory, owner(memory, "dom-open"), "Zebra in the open", classification="restricted")
    session = agent(memory)
    assert ids(read.search(memory, session, "zebra")) == []
    assert ids(read.search(memory, session, "zebra", domains=("dom-open",))) == []  # the handling of the session holds there too
    wide = agent(memory, domain="dom-open")
    assert ids(read.search(memory, wide, "zebra")) == [open_entry.id]


def test_owner_reads_all_domains_at_once(memory: Memory) -> None:
    each = [written(memory, owner(memory, domain), "Zebra").id for domain in ("dom-me", "dom-open", "dom-hidden")]
    assert set(ids(read.search(memory, owner(memory), "zebra", domains=tuple(memory.grants.domains)))) == set(each)


def test_redirect_ends_at_the_current_version(memory: Memory) -> None:
    session = agent(memory)
    chain = [written(memory, session, "Zebra 0")]
    for number in (1, 2, 3):
        chain.append(written(memory, session, f"Zebra {number}", supersedes=[chain[-1].id]))
    for entry in chain[:-1]:
        found = read.get(memory, session, entry.id)
        assert isinstance(found, Served)
        assert (found.row.id, found.body, found.redirected_from) == (chain[-1].id, chain[-1].body, entry.id)
    assert read.get(memory, session, chain[0].id, redirect=False) == Moved(chain[0].id, chain[-1].id)
    assert ids(read.search(memory, session, "zebra")) == [chain[-1].id]


def test_redirect_tells_nothing_that_a_search_would_not(memory: Memory) -> None:
    session, person = agent(memory), owner(memory)
    public = written(memory, person, "Zebra", classification="public")
    secret = written(memory, person, "Zebra, for the owner", classification="restricted", supersedes=[public.id])
    later = written(memory, person, "Zebra, open again", classification="public", supersedes=[secret.id])
    assert read.get(memory, session, secret.id) == NotFound(secret.id)
    found = read.get(memory, session, public.id)
    assert isinstance(found, Served)
    assert found.row.id == later.id
    hidden = written(memory, person, "Zebra, hidden", classification="restricted", supersedes=[later.id])
    for entry in (public, later):
        assert read.get(memory, session, entry.id) == Gone(entry.id)
        assert read.get(memory, session, entry.id, redirect=False) == Gone(entry.id)
    assert isinstance(read.get(memory, person, public.id), Served)
    assert read.get(memory, session, hidden.id) == NotFound(hidden.id)


def test_demoted_entry_is_gone(memory: Memory) -> None:
    entry = written(memory, owner(memory))
    memory.index.note(memory.store.replace(replace(entry, version=2, status=Status.DEMOTED)))
    assert read.get(memory, agent(memory), entry.id) == Gone(entry.id)
    secret = written(memory, owner(memory), classification="restricted")
    memory.index.note(memory.store.replace(replace(secret, version=2, status=Status.DEMOTED)))
    assert read.get(memory, agent(memory), secret.id) == NotFound(secret.id)


def test_version_up_to_the_current_one_is_served(memory: Memory) -> None:
    entry = written(memory, owner(memory))
    memory.index.note(memory.store.replace(replace(entry, version=2, tier=Tier.CURATED)))
    session = agent(memory)
    assert isinstance(read.get(memory, session, entry.id, version=1), Served)
    assert isinstance(read.get(memory, session, entry.id, version=2), Served)
    assert read.get(memory, session, entry.id, version=3) == NotFound(entry.id)


def test_hand_edit_that_lowers_a_label_is_not_believed(memory: Memory) -> None:
    secret = written(memory, owner(memory), "Zebra", classification="restricted")
    path = memory.store.path(secret.id)
    path.write_text(path.read_text().replace('"restricted"', '"public"').replace("at length", "edited"))
    session = agent(memory)
    assert read.get(memory, session, secret.id) == NotFound(secret.id)
    assert ids(read.search(memory, session, "zebra")) == []
    person = owner(memory)
    found = read.get(memory, person, secret.id)
    assert isinstance(found, Served)
    assert "edited" in found.body
    assert person.label is Label.RESTRICTED


def test_unknown_principal_reads_nothing(tmp_path: Path) -> None:
    with seeded(tmp_path, GRANTS) as memory:
        three(memory)
        found = read.search(memory, agent(memory, "human:acme:eve"), "zebra")
        assert isinstance(found, Refused)
        assert found.code == "no_read_grant"
        assert lines(memory, "decisions")[-1]["allow"] is False
        assert lines(memory, "decisions")[-1]["principal"] != OWNER

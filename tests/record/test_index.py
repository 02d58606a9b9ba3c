import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.logs.schema import MemoryWrite
from amem.logs.writer import append
from amem.model.entry import Entry, EntryType, Status, Tier
from amem.model.label import Label
from amem.record import index as index_module
from amem.record import search
from amem.record.index import Index
from amem.record.rows import Filter
from amem.settings.root import Root
from tests.record.made import EVERYTHING, QUICK, entry

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    opened = Index.open(Root(tmp_path), clock=lambda: NOW)
    yield opened
    opened.close()


def stored(index: Index, made: Entry) -> Entry:
    index.upsert(index.store.put(made))
    return made


def titles(index: Index, query: str, filter: Filter = EVERYTHING, **asked: Any) -> list[str]:
    return [hit.title for hit in index.search(query, filter, **asked).hits]


def dump(index: Index) -> list[list[Any]]:
    """Everything the index knows, without numbers that depend on the order in which it was told."""
    columns = (
        "id, version, type, title, domain, label, tier, mark, status, author, written_at, sources, supersedes, superseded_by, digest, name"
    )
    run = index.tables.connection.execute
    found = [run(f"select {columns} from entry order by id").fetchall(), run("select * from link order by old, new").fetchall()]
    found.append(run("select domain, label, tier, live from acl where live > 0 order by 1, 2, 3").fetchall())
    found.append(run("select e.id, c.length, c.said, c.text from cover c join entry e on e.n = c.n order by e.id").fetchall())
    for domain, n in run("select domain, n from words order by domain").fetchall():
        if run("select 1 from acl where live > 0 and domain = ?", (domain,)).fetchone() is None:
            continue
        said = f"select e.id from f{n} join entry e on e.n = f{n}.rowid where f{n} match 'fact OR \"\ue000fact\"' order by e.id"
        found.append([(domain,), *run(said).fetchall()])
        run(f"create virtual table temp.said using fts5vocab(main, f{n}, 'row')")
        found.append(run("select term, doc, cnt from temp.said where term not glob '\ue000[0-9]*' order by term").fetchall())
        run("drop table temp.said")
    return found


# ------------------------------------------------------------------ search


def test_a_question_finds_summaries_first_and_no_body(index: Index) -> None:
    stored(index, entry("Deploying", "Run make ship.\n" * 30, summary="How a release goes out"))
    hit = index.search("how do we release?", EVERYTHING).hits[0]
    assert (hit.title, hit.summary, hit.score, hit.tokens) == ("Deploying", "How a release goes out", 1.0, 113)
    assert not hasattr(hit, "body")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "the",
        '"',
        '""" OR',
        "acl : q1z",
        "NEAR(",
        "* ^ - +",
        "🎉",
        "\x00",
        "a\x00b",
        "\ue0001",
        "x" * 10_000,
        "a b " * 5_000,
        "é" * 900,
        "猫",
    ],
)
def test_no_question_is_an_error(index: Index, query: str) -> None:
    stored(index, entry("Nothing of the kind", "\ue0001"))
    index.search(query, EVERYTHING)


@QUICK
@given(query=st.text())
def test_any_text_is_a_question(tmp_path_factory: pytest.TempPathFactory, query: str) -> None:
    opened = Index.open(Root(tmp_path_factory.mktemp("root")))
    stored(opened, entry("a b c OR", query))
    opened.search(query, Filter(domains=("dom-me",), max_label=Label.INTERNAL))
    opened.close()


def test_words_are_found_by_stem_prefix_accent_and_case(index: Index) -> None:
    stored(index, entry("Crème", "The configuration of RUNNING services"))
    for query in ("creme", "CRÈME", "run", "config", "configure"):
        assert titles(index, query) == ["Crème"], query


@pytest.mark.parametrize("query", ["東京", "京", "天気", "GPU", "を使う", "สวัสดี", "한국"])
def test_scripts_without_spaces_are_found_by_their_parts(index: Index, query: str) -> None:
    stored(index, entry("東京都の天気", "GPUを使う สวัสดีครับ 한국어를", classification=Label.PUBLIC))
    stored(index, entry("Other", "Nothing", classification=Label.PUBLIC))
    assert titles(index, query) == ["東京都の天気"]


def test_a_body_with_an_acl_token_in_it_does_not_make_an_entry_readable(index: Index) -> None:
    stored(index, entry("Public note", "harbour", classification=Label.PUBLIC))
    for n in range(1, 4):
        stored(index, entry("Secret", f"harbour \ue000{n}", classification=Label.RESTRICTED))
    assert titles(index, "harbour", Filter(max_label=Label.PUBLIC)) == ["Public note"]


def test_no_question_reaches_who_may_read(index: Index) -> None:
    stored(index, entry("harbour"))
    for token in (*map(search.acl_token, range(1, 9)), search.type_token("fact")):
        assert titles(index, token) == titles(index, f"acl : {token}") == titles(index, f'"{token}"') == []
    assert titles(index, "harbour") == ["harbour"]


def test_pages_do_not_overlap_and_say_whether_there_is_more(index: Index) -> None:
    for n in range(7):
        stored(index, entry(f"harbour {n}"))
    first, second = index.search("harbour", EVERYTHING, limit=4), index.search("harbour", EVERYTHING, limit=4, offset=4)
    assert (first.total, first.more, second.more) == (7, True, False)
    assert len({hit.id for hit in first.hits + second.hits}) == 7
    assert [hit.score for hit in second.hits] == [0.71, 0.67, 0.62]


def test_mode_says_whether_the_best_has_every_word(index: Index) -> None:
    stored(index, entry("red boat"))
    assert index.search("red boat", EVERYTHING).mode == "all"
    assert index.search("red car", EVERYTHING).mode == "any"


def test_parts_of_a_source_are_found_by_what_stands_beside_them(index: Index) -> None:
    turns = ["When did you see the lighthouse?", "Last Sunday, in the rain.", "Nice."]
    for n, text in enumerate(turns, start=1):
        stored(index, entry(f"turn {n}", text, sources=(f"transcript:ses-01234567#{n}",)))
    assert set(titles(index, "lighthouse")) == {"turn 1", "turn 2"}


def test_what_stands_beside_is_never_of_another_label(index: Index) -> None:
    stored(index, entry("secret turn", "The lighthouse code.", sources=("transcript:ses-01234567#1",), classification=Label.RESTRICTED))
    stored(index, entry("open turn", "Nice weather.", sources=("transcript:ses-01234567#2",)))
    assert titles(index, "lighthouse", Filter(max_label=Label.INTERNAL)) == []


# ------------------------------------------------------------------ who may read


def _many(index: Index) -> None:
    combinations = product(("dom-me", "dom-you", "dom-us"), Label, Tier, ("harbour", "harbour lighthouse", "boat harbour " * 9))
    for n, (domain, label, tier, body) in enumerate(combinations):
        made = entry(f"note {n}", body, domain=domain, classification=label, tier=tier, type=list(EntryType)[n % 3])
        index.store.put(made)
    index.rebuild()


DOMAINS = [None, (), ("dom-me",), ("dom-me", "dom-you"), ("dom-none",)]


def test_every_way_of_asking_gives_the_same_hits_and_nothing_else(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    _many(index)
    readable = {row.id: row for row in index.list(EVERYTHING, limit=0).rows}
    for domains, label, tier, types in product(DOMAINS, Label, Tier, [(), (EntryType.FACT,)]):
        filter = Filter(domains=domains, max_label=label, min_tier=tier)
        found = []
        for wide_from in (0.0, 2.0):  # always beside the match, never
            monkeypatch.setattr(index_module, "WIDE_FROM", wide_from)
            found.append(index.search("boat lighthouse harbour", filter, type=types, limit=100))
        assert found[0] == found[1]
        wanted = {
            row.id
            for row in readable.values()
            if filter.admits(row.domain, row.classification, row.tier) and (not types or row.type in types)
        }
        assert {hit.id for hit in found[0].hits} == wanted
        assert found[0].total == len(wanted)
        assert {row.id for row in index.list(filter, type=types, limit=0).rows} == wanted
        assert sum(index.counts(filter).values()) == (len(wanted) if not types else sum(index.counts(filter).values()))


def test_a_search_asks_within_what_may_be_read(index: Index) -> None:
    _many(index)
    mine = Filter(domains=("dom-me",), max_label=Label.INTERNAL, min_tier=Tier.CURATED)
    hits = index.search("harbour", mine, label=Label.RESTRICTED, tier=Tier.RAW, limit=100).hits
    assert {(hit.domain, hit.classification, hit.tier) for hit in hits} == set(
        product(["dom-me"], [Label.PUBLIC, Label.INTERNAL], [Tier.CURATED, Tier.VERIFIED])
    )
    assert {hit.classification for hit in index.search("harbour", mine, label=Label.PUBLIC, limit=100).hits} == {Label.PUBLIC}


def test_scores_are_the_same_whatever_is_hidden(tmp_path: Path) -> None:
    found = []
    for hidden in (0, 30):
        opened = Index.open(Root(tmp_path / str(hidden)))
        for n in range(3):
            stored(opened, entry(f"harbour {'harbour ' * n}"))
        for _ in range(hidden):
            stored(opened, entry("harbour", domain="dom-you"))
        found.append([hit.score for hit in opened.search("harbour", Filter(domains=("dom-me",), max_label=Label.INTERNAL)).hits])
        opened.close()
    assert found[0] == found[1] == [1.0, 0.91, 0.83]


# ------------------------------------------------------------------ chains


def test_a_superseded_entry_is_found_no_more_and_leads_to_the_end_of_its_chain(index: Index) -> None:
    first = stored(index, entry("harbour one"))
    second = stored(index, entry("harbour two", supersedes=(first.id,)))
    third = stored(index, entry("harbour three", supersedes=(second.id,)))
    assert titles(index, "harbour") == ["harbour three"]
    assert [index.resolve(item.id) for item in (first, second, third)] == [third.id] * 3
    row = index.get(first.id)
    assert row is not None and (row.status, row.superseded_by) == (Status.SUPERSEDED, second.id)


def test_an_entry_of_another_domain_supersedes_nothing(index: Index) -> None:
    first = stored(index, entry("harbour"))
    stored(index, entry("intruder", domain="dom-you", supersedes=(first.id,)))
    assert titles(index, "harbour") == ["harbour"]
    assert index.resolve(first.id) == first.id


def test_chains_that_go_in_a_circle_end_nowhere(index: Index) -> None:
    one, two = entry("harbour one"), entry("harbour two")
    one, two = replace(one, supersedes=(two.id,)), replace(two, supersedes=(one.id,))
    stored(index, one)
    stored(index, two)
    assert index.resolve(one.id) is None
    assert titles(index, "harbour") == []


def test_an_entry_comes_back_when_its_successor_is_withdrawn(index: Index) -> None:
    first = stored(index, entry("harbour one"))
    second = stored(index, entry("harbour two", supersedes=(first.id,)))
    withdrawn = replace(second, version=2, status=Status.DEMOTED)
    index.upsert(index.store.replace(withdrawn))
    assert titles(index, "harbour") == ["harbour one"]


def test_a_crash_before_the_mark_is_repaired_by_a_rebuild(index: Index) -> None:
    first, second = entry("harbour one"), None
    path = index.store.put(first)
    second = entry("harbour two", supersedes=(first.id,))
    index.store.put(second)
    report = index.rebuild()
    assert report.repaired == (first.id,)
    marked = index.store.load(path).entry
    assert (marked.status, marked.superseded_by, marked.version) == (Status.SUPERSEDED, second.id, 2)
    assert index.rebuild().repaired == ()


# ------------------------------------------------------------------ hand edits


def test_a_hand_edit_is_served_as_it_is_now(index: Index) -> None:
    made = stored(index, entry("harbour", "old words", summary="old words"))
    path = index.store.path(made.id)
    before = path.stat()
    path.write_text(path.read_text().replace("old words", "new words"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # the change time cannot be set back
    assert index.search("harbour", EVERYTHING).hits[0].summary == "new words"
    read = index.read(made.id)
    assert read is not None and read.entry.body == "new words"
    assert titles(index, "new") == ["harbour"]


def test_a_hit_is_compared_with_its_file_before_it_is_served(index: Index) -> None:
    made = stored(index, entry("harbour", summary="old"))
    path = index.store.path(made.id)
    path.write_text(path.read_text().replace('"old"', '"new"'))
    assert index.search("harbour", EVERYTHING).hits[0].summary == "new"
    path.write_text(path.read_text().replace("harbour", "seaside"))
    assert titles(index, "harbour") == []
    path.unlink()
    assert titles(index, "seaside") == []
    assert index.get(made.id) is None


@pytest.mark.parametrize("how", ["get", "refresh", "rebuild", "removed between", "index deleted"])
def test_a_label_lowered_behind_amem_is_not_lowered(index: Index, how: str) -> None:
    made = stored(index, entry("harbour", classification=Label.RESTRICTED))
    append(
        index.root.state,
        MemoryWrite(
            at="2026-11-30T07:25:57.123Z", entry=made.id, type="fact", classification="restricted", digest="sha256:", label="restricted"
        ),
    )
    path = index.store.path(made.id)
    lowered = path.read_text().replace('"restricted"', '"public"')
    if how == "removed between":
        path.unlink()
        assert index.get(made.id) is None
    path.write_text(lowered)
    if how == "index deleted":
        index.close()
        for file in index.root.state.glob("index.sqlite*"):
            file.unlink()
        index = Index.open(index.root)
    match how:
        case "rebuild" | "index deleted":
            assert index.rebuild().raised == (made.id,)
        case "refresh" | "removed between":
            assert index.refresh(full=True).raised == (made.id,)
    row, read = index.get(made.id), index.read(made.id)
    assert row is not None and row.classification is Label.RESTRICTED
    assert read is not None and read.entry.classification is Label.RESTRICTED
    assert titles(index, "harbour", Filter(max_label=Label.INTERNAL)) == []
    index.close()


def test_the_owners_act_lowers_a_label(index: Index) -> None:
    made = stored(index, entry("harbour", classification=Label.RESTRICTED))
    lowered = replace(made, version=2, classification=Label.PUBLIC)
    index.upsert(index.store.replace(lowered), lowers=True)
    assert titles(index, "harbour", Filter(max_label=Label.PUBLIC)) == ["harbour"]


# ------------------------------------------------------------------ refresh


def test_a_refresh_notices_what_came_left_and_moved(index: Index) -> None:
    _, gone, moved = (stored(index, entry(f"harbour {name}")) for name in ("kept", "gone", "moved"))
    index.refresh()
    came = entry("harbour came")
    index.store.put(came)
    index.store.path(gone.id).unlink()
    path = index.store.path(moved.id)
    elsewhere = index.root.record / "dom-me" / "notes"
    elsewhere.mkdir()
    path.rename(elsewhere / "renamed.md")
    report = index.refresh()
    assert (report.entries, report.added, report.removed, report.moved) == (3, 1, 1, 1)
    assert [(problem.path, problem.kind) for problem in report.problems] == [("dom-me/notes/renamed.md", "misplaced")]
    assert set(titles(index, "harbour")) == {"harbour kept", "harbour moved", "harbour came"}
    again = index.refresh()
    assert (again.added, again.changed, again.moved, again.removed) == (0, 0, 0, 0)


def test_a_malformed_file_is_reported_and_kept_and_served_no_more(index: Index) -> None:
    made = stored(index, entry("harbour"))
    path = index.store.path(made.id)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"---\n", b"", 1))
    stray = index.root.record / "stray.md"
    stray.write_text("no front matter")
    report = index.refresh(full=True)
    assert [problem.path for problem in report.malformed] == [index.store.relative(path), "stray.md"]
    assert index.get(made.id) is None and titles(index, "harbour") == []
    assert stray.exists() and path.exists()
    path.write_bytes(whole)
    assert [problem.path for problem in index.refresh(full=True).problems] == ["stray.md"]
    assert titles(index, "harbour") == ["harbour"]


@pytest.mark.parametrize("how", ["refresh", "rebuild"])
def test_of_two_files_with_one_id_the_one_in_its_place_counts(index: Index, how: str) -> None:
    made = stored(index, entry("harbour"))
    path = index.store.path(made.id)
    copy = index.root.record / "dom-me" / "1-copy.md"
    copy.write_text(path.read_text().replace("harbour", "impostor"))
    report = index.refresh() if how == "refresh" else index.rebuild()
    assert [(problem.path, problem.kind) for problem in report.problems] == [("dom-me/1-copy.md", "duplicate")]
    assert titles(index, "harbour impostor") == ["harbour"]
    path.unlink()
    index.refresh()
    assert [(problem.path, problem.kind) for problem in index.problems()] == [("dom-me/1-copy.md", "misplaced")]
    assert titles(index, "harbour impostor") == ["impostor"]


def test_a_write_in_place_is_noticed_by_a_full_refresh(index: Index) -> None:
    made = stored(index, entry("harbour", "old"))
    path = index.store.path(made.id)
    path.write_text(path.read_text() + " lighthouse")
    assert index.refresh(full=True).changed == 1
    assert titles(index, "lighthouse") == ["harbour"]


# ------------------------------------------------------------------ the whole


def _history(index: Index) -> None:
    """A bit of everything that can happen to entries, through the index."""
    made = [stored(index, entry(f"note {n}", f"harbour {n}", classification=list(Label)[n % 3], tier=list(Tier)[n % 3])) for n in range(12)]
    turns = [stored(index, entry(f"turn {n}", f"lighthouse {n}", sources=(f"transcript:ses-01234567#{n}",))) for n in (3, 1, 2)]
    stored(index, entry("newer", "harbour", supersedes=(made[0].id, turns[0].id)))
    demoted = replace(made[1], version=2, status=Status.DEMOTED)
    index.upsert(index.store.replace(demoted))
    promoted = replace(made[2], version=2, tier=Tier.VERIFIED)
    index.upsert(index.store.replace(promoted))
    index.store.path(made[3].id).unlink()
    index.refresh()


def test_an_index_kept_up_to_date_equals_a_rebuilt_one(index: Index) -> None:
    _history(index)
    index.rebuild()  # writes the marks
    before = dump(index)
    index.rebuild()
    assert dump(index) == before
    other = Index.open(Root(index.root.path))
    for file in index.root.state.glob("index.sqlite*"):
        file.unlink()
    fresh = Index.open(index.root)
    fresh.refresh()
    assert dump(fresh) == before
    fresh.close()
    other.close()


def test_looking_at_one_file_reads_no_whole_folder(index: Index) -> None:
    stored(index, entry("harbour"))
    plans: list[str] = []
    run = index.tables.connection.execute
    asked: list[str] = []
    index.tables.connection.set_trace_callback(asked.append)
    made = stored(index, entry("lighthouse"))
    index.note(index.store.path(made.id))
    index.read(made.id)
    index.tables.connection.set_trace_callback(None)
    for sql in asked:
        if sql.lower().startswith(("select", "update", "delete", "with")):
            plans += [f"{row[3]}: {sql}" for row in run(f"explain query plan {sql}")]
    assert [plan for plan in plans if plan.startswith("SCAN") and "SCAN acl" not in plan and "SCAN c" not in plan] == []
    assert any("entry_place" in plan for plan in plans)


def test_an_index_of_another_version_is_made_anew(index: Index) -> None:
    stored(index, entry("harbour"))
    index.tables.connection.execute("pragma user_version = 999")
    again = Index.open(index.root)
    assert again.refresh().entries == 1
    again.close()


def test_a_rebuild_by_another_process_mixes_up_nobodys_readers(index: Index) -> None:
    labels = [Label.RESTRICTED, Label.INTERNAL, Label.PUBLIC]
    for label in labels:  # numbers are given in this order, and in the order of names by the rebuild
        stored(index, entry("harbour", classification=label, id=f"mem-me-{9 - label.rank}00000000000"))
    numbers = "select label, n from acl order by label"
    before = index.tables.connection.execute(numbers).fetchall()
    other = Index.open(index.root)
    for path in sorted(index.root.record.rglob("*.md")):
        made = index.store.load(path).entry
        path.unlink()
        index.store.put(replace(made, id=f"mem-me-{made.classification.rank}00000000000"))
    other.rebuild()
    assert index.tables.connection.execute(numbers).fetchall() != before
    for label in labels:
        stored(index, entry("lighthouse", classification=label))
    for label in labels:
        assert {hit.classification for hit in index.search("lighthouse", Filter(max_label=label)).hits} == set(labels[2 - label.rank :])
    other.close()


@pytest.mark.parametrize("ask", ["search", "list", "counts"])
def test_who_may_read_and_what_is_shown_come_from_one_state(index: Index, ask: str) -> None:
    """Between two statements another process may put a rebuilt index in place, in which a number means other readers."""
    stored(index, entry("harbour"))
    asked: list[str] = []
    index.tables.connection.set_trace_callback(asked.append)
    match ask:
        case "search":
            index.search("harbour", EVERYTHING)
        case "list":
            index.list(EVERYTHING)
        case "counts":
            index.counts(EVERYTHING)
    index.tables.connection.set_trace_callback(None)
    assert [asked[0], asked[-1]] == ["begin", "commit"]
    assert len(asked) >= 4


def test_the_index_file_is_for_the_owner_alone(index: Index) -> None:
    assert {path.name: path.stat().st_mode & 0o777 for path in index.root.state.glob("index.sqlite*")} == {
        name: 0o600 for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite-shm")
    }


def test_a_rebuild_sweeps_what_killed_writers_left(index: Index) -> None:
    made = stored(index, entry("harbour"))
    folder = index.store.path(made.id).parent
    old, young, foreign = folder / f".{made.id}.md.1.0123456789ab", folder / f".{made.id}.md.2.0123456789ab", folder / ".notes.md.swp"
    for path in (old, young, foreign, scratch := index.root.state / ".index.sqlite.1.new"):
        path.write_text("half")
        if path is not young:
            os.utime(path, (0, 0))
    index.rebuild()
    assert [path.exists() for path in (old, young, foreign, scratch)] == [False, True, True, False]


# ------------------------------------------------------------------ lists


def test_a_list_is_filtered_sorted_and_paged(index: Index) -> None:
    for n, name in enumerate("cab"):
        stored(index, entry(name, written_at=f"2026-11-{n + 1:02}T00:00:00.000Z", author=f"agent:{name}", session=f"ses-0000000{n}"))
    assert [row.title for row in index.list(EVERYTHING).rows] == ["b", "a", "c"]
    assert [row.title for row in index.list(EVERYTHING, sort="title").rows] == ["a", "b", "c"]
    page = index.list(EVERYTHING, sort="title", limit=2)
    assert (page.total, page.more, [row.title for row in page.rows]) == (3, True, ["a", "b"])
    assert [row.title for row in index.list(EVERYTHING, since="2026-11-02").rows] == ["b", "a"]
    assert [row.title for row in index.list(EVERYTHING, author="agent:a").rows] == ["a"]
    assert [row.title for row in index.list(EVERYTHING, session="ses-00000002").rows] == ["b"]


@pytest.mark.parametrize(
    ("fields", "due"),
    [
        ({"review_by": "2026-11-30"}, True),
        ({"review_by": "2026-12-01"}, False),
        ({"tier": Tier.RAW, "written_at": "2026-10-31T00:00:00.000Z"}, True),
        ({"tier": Tier.RAW, "written_at": "2026-11-02T00:00:00.000Z"}, False),
        ({"tier": Tier.RAW, "written_at": "2026-01-01T00:00:00.000Z", "review_by": "2027-01-01"}, False),
        ({"tier": Tier.CURATED, "written_at": "2020-01-01T00:00:00.000Z"}, False),
        ({"review_by": "2020-01-01", "status": Status.DEMOTED}, False),
    ],
)
def test_an_entry_is_due_past_its_date_or_raw_and_old(index: Index, fields: dict[str, Any], due: bool) -> None:
    made = stored(index, entry("harbour", **fields))
    row = index.get(made.id)
    assert row is not None and row.due is due
    assert [item.id for item in index.list(EVERYTHING, due=True).rows] == ([made.id] if due else [])


def test_a_row_holds_every_field_of_the_front_matter(index: Index) -> None:
    made = entry(
        "harbour", summary="s", session="ses-01234567", task="task-me-01234567", left_by="hook", owner="human:a:b", review_by="2027-01-01",
        sources=("file:a", "file:b"), supersedes=("mem-me-0123456789ab",), basis="observed", valid_from_at="2026-01-01T00:00:00.000Z",
        valid_to_at="2027-01-01T00:00:00.000Z", lineage=Tier.RAW, type=EntryType.HANDOFF,
    )  # fmt: skip
    stored(index, made)
    row = index.get(made.id)
    names = [name for name in Entry.__dataclass_fields__ if name not in ("body", "extra")]
    assert {name: getattr(row, name) for name in names} == {name: getattr(made, name) for name in names}


def test_what_another_process_wrote_is_seen(index: Index) -> None:
    other = Index.open(index.root)
    stored(other, entry("harbour"))
    assert titles(index, "harbour") == ["harbour"]
    other.close()


def test_the_index_survives_a_file_that_is_no_database(tmp_path: Path) -> None:
    root = Root(tmp_path)
    root.state.mkdir()
    root.index.write_bytes(b"not a database, but long enough to be looked at" * 100)
    opened = Index.open(root)
    stored(opened, entry("harbour"))
    assert titles(opened, "harbour") == ["harbour"]
    opened.close()


def test_a_damaged_index_is_rebuilt(index: Index) -> None:
    for n in range(50):
        stored(index, entry(f"harbour {n}"))
    index.tables.connection.execute("pragma wal_checkpoint(truncate)")
    index.close()
    with index.root.index.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 40_960)
    damaged = Index.open(index.root)
    assert damaged.rebuild().entries == 50
    assert len(titles(damaged, "harbour", limit=100)) == 50
    damaged.close()

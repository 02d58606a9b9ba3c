"""Kept transcripts: who is served which turn, what a sweep leaves, and that nothing of them is found in another way."""

import json
import os
import shutil
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amem.egress import meter
from amem.errors import ConflictError, NotFoundError, RefusedError
from amem.memory import demote, read, t0
from amem.memory import erase as erasing
from amem.memory import transcripts as served
from amem.memory.outcomes import Refused
from amem.memory.session import Memory, Session
from amem.model.clock import stamp
from amem.model.label import Label
from amem.record import transcripts
from amem.record.sealed import Sealer
from amem.record.transcripts import Kept
from tests.memory.seed import NOW, agent, lines, owner, written

SES = "ses-0123abcd"
SECRET = "ghp_" + "a1B2" * 9


def keep(memory: Memory, of: str = SES, *, turns: list[dict[str, Any]] | None = None, label: Label = Label.INTERNAL, **more: Any) -> Kept:
    rows = turns if turns is not None else [{"n": n, "role": "user" if n % 2 else "assistant", "text": f"turn {n}"} for n in range(1, 9)]
    domain = more.pop("domain", "dom-me")
    kept = Kept(
        **{
            "path": transcripts.place(memory.root, domain, of), "session": of, "domain": domain, "harness": "claude",
            "classification": label, "kept_at": stamp(NOW), "turns": len(rows), **more,
        }
    )  # fmt: skip
    transcripts.keep(kept, rows, Sealer(memory.root.state).masked)
    return kept


def shown(memory: Memory, session: Session, first: int, last: int, **more: Any) -> list[int]:
    try:
        return [row["n"] for row in served.turns(memory, session, SES, first, last, **more).rows]
    except NotFoundError:
        return []


def test_a_turn_is_served_only_where_an_entry_cites_it_that_the_reader_may_read(memory: Memory) -> None:
    keep(memory)
    assert shown(memory, owner(memory), 1, 8) == [], "not to the owner either"
    cites = written(memory, owner(memory), "Counted", body=f"As in transcript:{SES}#2-3.", classification=Label.INTERNAL)
    by_source = written(memory, owner(memory), "Sourced", sources=[f"transcript:{SES}#6"], classification=Label.PUBLIC)
    written(memory, owner(memory), "Closed", body=f"transcript:{SES}#8", classification=Label.RESTRICTED)
    found = served.turns(memory, agent(memory), SES, 1, 8)
    assert ([row["text"] for row in found.rows], found.cited_by) == (["turn 2", "turn 3", "turn 6"], (cites.id, by_source.id))
    assert found.uncited == (1, 4, 5, 7, 8)
    assert shown(memory, owner(memory), 1, 8) == [2, 3, 6, 8]
    assert shown(memory, agent(memory, "agent:reader"), 1, 8) == [], "the transcript's own label is above what it may read"
    assert shown(memory, agent(memory, domain="dom-open"), 1, 8) == [2, 3, 6]


def test_reading_a_turn_raises_the_label_and_is_logged(memory: Memory) -> None:
    keep(memory)
    entry = written(memory, owner(memory), "Counted", body=f"transcript:{SES}#2", classification=Label.PUBLIC)
    session = agent(memory)
    served.turns(memory, session, SES, 2, 2)
    assert session.label is Label.INTERNAL
    (line,) = [line for line in lines(memory, "reads") if line["tool"] == "transcript_turn"]
    assert (line["entries"], line["tokens"], line["label"], line["session"]) == ([entry.id], 2, "internal", session.id)


@pytest.mark.parametrize(
    "text",
    [
        f"transcript:{SES}", f"transcript:{SES}#", f"transcript:{SES}#0", f"transcript:{SES}#3-2", f"transcript:{SES}#2-",
        f"transcript:{SES}x#2",
        f"transcript:{SES}#99999999", f"transcript:{SES}#-2", "transcript:ses-0123abce#2", f"#2 of {SES}", f"transcript:{SES}#\u0662",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_citation_is_none(memory: Memory, text: str) -> None:
    keep(memory)
    written(memory, owner(memory), "Counted", body=text)
    assert shown(memory, owner(memory), 1, 8) == []


def test_a_citation_of_everything_reaches_no_further_than_its_last_turns(memory: Memory) -> None:
    keep(memory, turns=[{"n": n, "role": "user", "text": "x"} for n in range(1, 1503)])
    written(memory, owner(memory), "Counted", body=f"transcript:{SES}#1-1502")
    assert shown(memory, owner(memory), 1, 1502) == list(range(503, 1503))


def test_what_nothing_cites_is_shown_by_a_logged_act(memory: Memory) -> None:
    keep(memory, turns=[{"n": 1, "role": "user", "text": f"use {SECRET} here"}])
    assert SECRET.encode() not in transcripts.place(memory.root, "dom-me", SES).read_bytes()
    found = served.turns(memory, owner(memory), SES, 1, 1, uncited=True)
    assert "amem-sealed." in found.rows[0]["text"]
    found = served.turns(memory, owner(memory), SES, 1, 1, uncited=True, unmask=True)
    assert found.rows[0]["text"] == f"use {SECRET} here"
    assert [(line["act"], line["subject"]) for line in lines(memory, "writes") if line["event"] == "memory.act"] == [
        ("uncited", f"transcript:{SES}#1-1"), ("uncited unmask", f"transcript:{SES}#1-1"),
    ]  # fmt: skip


def test_a_transcript_is_never_found_by_other_means(memory: Memory) -> None:
    keep(memory, turns=[{"n": 1, "role": "user", "text": "zanzibar pelican"}])
    entry = written(memory, owner(memory), "Counted", body=f"transcript:{SES}#1")
    session = owner(memory)
    memory.index.refresh(full=True)
    memory.index.rebuild()
    assert read.search(memory, session, "zanzibar pelican").total == 0  # type: ignore[union-attr]
    assert [row.id for row in read.entries(memory, session, status=None, limit=0).rows] == [entry.id]  # type: ignore[union-attr]
    page = t0.t0(memory, session)
    assert not isinstance(page, Refused) and "zanzibar" not in page.text
    assert memory.index.problems() == ()


def test_who_lists_sees_what_may_be_read_and_how_often_it_is_cited(memory: Memory) -> None:
    keep(memory)
    keep(memory, "ses-0123abce", label=Label.RESTRICTED)
    keep(memory, "ses-0123abcf", domain="dom-hidden", label=Label.RESTRICTED)
    written(memory, owner(memory), "Counted", body=f"transcript:{SES}#2 and transcript:{SES}#4")
    domains = tuple(memory.grants.domains)
    found = served.listed(memory, owner(memory), domains)
    assert [one.session for one in found] == ["ses-0123abcf", "ses-0123abce", SES]
    assert [len(served.cited_by(memory, owner(memory), one)) for one in found] == [0, 0, 1]
    assert [one.session for one in served.listed(memory, agent(memory), domains)] == [SES]


def sweep(memory: Memory, session: Session, days: int = 31, **more: Any) -> served.Swept:
    running = more.pop("running", lambda id: False)
    return served.sweep(memory, session, tuple(memory.grants.domains), NOW + timedelta(days=days), running, **more)


def test_a_sweep_leaves_cited_turns_as_excerpts_and_drops_the_rest(memory: Memory) -> None:
    keep(memory)
    keep(memory, "ses-0123abce")
    entry = written(memory, owner(memory), "Counted", body=f"transcript:{SES}#2-3")
    assert sweep(memory, owner(memory), days=29) == served.Swept()
    foreseen = sweep(memory, owner(memory), dry_run=True)
    assert lines(memory, "transcripts") == []
    found = sweep(memory, owner(memory))
    assert found == foreseen
    assert (found.kept, found.transcripts) == (((SES, 2, entry.id), (SES, 3, entry.id)), (SES, "ses-0123abce"))
    assert not transcripts.place(memory.root, "dom-me", "ses-0123abce").exists()
    assert b"turn 4" not in transcripts.place(memory.root, "dom-me", SES).read_bytes()
    assert shown(memory, agent(memory), 1, 8) == [2, 3]
    assert [(line["session"], line.get("turns")) for line in lines(memory, "transcripts")] == [(SES, [2, 3]), ("ses-0123abce", None)]
    assert sweep(memory, owner(memory)).transcripts == (), "a second sweep has nothing to do"


def test_a_flood_of_mentions_makes_no_citation_be_forgotten(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "MAX_CITING", 3)
    keep(memory)
    written(memory, owner(memory), "Counted", body="Long words about other things. " * 20 + f"transcript:{SES}#2")
    for n in range(6):
        written(memory, owner(memory), f"Flood {n}", body=f"{SES} {SES} {SES}")
    assert [turn for _, turn, _ in sweep(memory, owner(memory)).kept] == [2]


def test_an_excerpt_follows_the_entry_that_cites_it(memory: Memory) -> None:
    keep(memory)
    first = written(memory, owner(memory), "Counted", body=f"transcript:{SES}#2")
    second = written(memory, owner(memory), "Counted again", body=f"transcript:{SES}#4")
    sweep(memory, owner(memory))
    demote.demote(memory, owner(memory), first.id, "wrong")
    assert shown(memory, owner(memory), 1, 8) == [4], "out of service with its entry"
    pruned: list[str] = []
    served.prune(memory, owner(memory), pruned.append)
    assert pruned == [f"record/dom-me/.transcripts/{SES}.jsonl"]
    assert b"turn 2" not in transcripts.place(memory.root, "dom-me", SES).read_bytes()
    receipt = erasing.erase(memory, owner(memory), (second.id,), "not for us")
    assert (f"record/dom-me/.transcripts/{SES}.jsonl", "masked") in receipt.removed
    assert shown(memory, owner(memory), 1, 8, uncited=True) == []


def test_a_running_session_and_one_without_a_clock_are_left_alone(memory: Memory) -> None:
    keep(memory)
    assert sweep(memory, owner(memory), running=lambda id: id == SES).transcripts == ()
    folder = memory.root.record / "dom-me" / ".contexts" / "ses-0123abce"
    folder.mkdir(parents=True)
    (folder / "calls.jsonl").write_text('{"n":1}\n')
    (folder.parent / "ses-0123abcf").symlink_to(memory.root.record)
    assert sweep(memory, owner(memory)).contexts == ()
    (folder / "calls.jsonl").write_text(json.dumps({"n": 1, "at": stamp(NOW)}) + "\n")
    assert sweep(memory, owner(memory), days=29).contexts == ()
    assert sweep(memory, owner(memory), running=lambda id: True).contexts == ()
    assert sweep(memory, owner(memory)).contexts == ("ses-0123abce",)
    assert not folder.exists() and memory.root.record.exists()


def test_only_the_owner_sweeps_and_erases(memory: Memory) -> None:
    kept = keep(memory)
    with pytest.raises(RefusedError):
        sweep(memory, agent(memory))
    with pytest.raises(RefusedError):
        served.erase(memory, agent(memory), SES, "because")
    assert kept.path.read_bytes().count(b"\n") == 9


def test_an_erasure_leaves_a_stub_and_a_receipt_and_names_who_cites_it(memory: Memory) -> None:
    kept = keep(memory)
    entry = written(memory, owner(memory), "Counted", body=f"transcript:{SES}#2")
    receipt = served.erase(memory, owner(memory), SES, "names of customers")
    assert (receipt["citing"], receipt["removed"]) == ([entry.id], [{"path": f"record/dom-me/.transcripts/{SES}.jsonl", "how": "erased"}])
    assert json.loads((memory.root.state / "erased" / f"{receipt['id']}.json").read_text()) == receipt
    assert kept.path.read_bytes().count(b"\n") == 1
    assert shown(memory, owner(memory), 1, 8, uncited=True) == []
    (stub,) = served.listed(memory, owner(memory), ("dom-me",))
    assert (stub.erased_at, stub.turns, served.cited_by(memory, owner(memory), stub)) == (stamp(NOW), 8, [entry.id])
    with pytest.raises(ConflictError):
        served.erase(memory, owner(memory), SES, "again")
    sweep(memory, owner(memory))
    assert kept.path.exists(), "the stub stays"


def test_erasing_an_entry_reaches_what_the_transcript_quotes_of_it(memory: Memory) -> None:
    secret = "the vault stands behind the northern greenhouse wall"
    entry = written(memory, owner(memory), "Vault", body=f"Note: {secret}.")
    call = {"name": "mcp__memory__write", "arguments": json.dumps({"type": "fact", "body": f"Note: {secret}."})}
    keep(
        memory,
        turns=[
            {"n": 1, "role": "assistant", "text": f"I noted that {secret}.", "tools": [call]},
            {"n": 2, "role": "user", "text": "thanks"},
        ],
    )
    erasing.erase(memory, owner(memory), (entry.id,), "wrong place")
    kept = transcripts.place(memory.root, "dom-me", SES)
    assert not kept.exists() or b"greenhouse wall" not in kept.read_bytes()


# ---- the file itself ---------------------------------------------------------------------


def test_a_long_transcript_keeps_its_last_words_and_every_number(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "MAX_BYTES", 1000)
    monkeypatch.setattr(transcripts, "MAX_TEXT_BYTES", 100)
    kept = keep(memory, turns=[{"n": n, "role": "user", "text": f"turn {n} " + "x" * n * 10} for n in range(1, 40)])
    rows = list(transcripts.rows(kept))
    assert [row["n"] for row in rows] == list(range(1, 40))
    assert rows[0] == {"n": 1, "role": "user", "text": "", "left_out": True}
    assert rows[-1]["text"].startswith("turn 39 x") and "bytes left out" in rows[-1]["text"]
    assert sum(len(row["text"]) for row in rows) < 1000
    assert shown(memory, owner(memory), 1, 1, uncited=True) == []


def test_a_credential_is_sealed_before_a_text_is_cut(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "MAX_TEXT_BYTES", 40)
    kept = keep(
        memory, turns=[{"n": 1, "role": "user", "text": "y" * 10 + SECRET + "z" * 10, "tools": [{"name": SECRET, "arguments": SECRET}]}]
    )
    data = kept.path.read_bytes()
    assert all(SECRET[at : at + 12].encode() not in data for at in range(len(SECRET) - 11))


def test_a_transcript_is_written_whole_and_for_its_owner_alone(memory: Memory) -> None:
    kept = keep(memory)
    keep(memory, turns=[{"n": 1, "role": "user", "text": "again"}])
    assert [path.name for path in kept.path.parent.iterdir()] == [f"{SES}.jsonl"]
    assert kept.path.stat().st_mode & 0o777 == 0o600 and kept.path.parent.stat().st_mode & 0o077 == 0
    with pytest.raises(RuntimeError):
        transcripts.write(kept, _failing())
    assert [row["text"] for row in transcripts.rows(kept)] == ["again"]
    assert len(list(kept.path.parent.iterdir())) == 1


def _failing() -> Any:
    yield b"x"
    raise RuntimeError


@settings(max_examples=60)
@given(
    data=st.binary(max_size=120)
    | st.sampled_from([b"{}", b"[]", b'{"v":1,"harness":"x","classification":"secret","kept_at":"now","turns":1}'])
)
def test_no_file_makes_a_list_fail(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    root = _root(tmp_path_factory)
    path = transcripts.place(root, "dom-me", SES)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for kept in transcripts.all_kept(root, ("dom-me", "dom-none")):
        list(transcripts.rows(kept))


def test_what_is_put_in_its_place_is_passed_over_and_holds_nobody(memory: Memory) -> None:
    kept = keep(memory, turns=[{"n": 9, "role": "user", "text": "ok"}])
    good: dict[str, Any] = {"n": 1, "role": "user", "text": "x"}
    calls: list[Any] = [[{"name": 1}], [{"name": "Bash"}], [7], "no", {}]
    wrong: list[Any] = [good | {"tools": call} for call in calls] + [
        good | {"role": 3},
        good | {"text": None},
        good | {"n": "6"},
        [],
        7,
        None,
    ]
    with kept.path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in wrong)
    folder = kept.path.parent
    os.mkfifo(folder / "ses-0000000a.jsonl")
    (folder / "ses-0000000b.jsonl").symlink_to(kept.path)
    (folder / "ses-0000000c.jsonl").mkdir()
    head = kept.path.read_text().splitlines()[0]
    (folder / "ses-0000000d.jsonl").write_text(json.dumps(json.loads(head) | {"erased_at": {}}) + "\n")
    (folder / "ses-0000000e.jsonl").write_text("x" * 10_000 + head + "\n")
    assert [one.session for one in served.listed(memory, owner(memory), ("dom-me",))] == [SES]
    assert shown(memory, owner(memory), 1, 9, uncited=True, unmask=True) == [9]


def _root(factory: pytest.TempPathFactory) -> Any:
    from amem.settings.root import Root

    return Root(Path(factory.mktemp("root")))


def test_a_text_that_is_no_utf_8_is_kept(memory: Memory) -> None:
    kept = keep(
        memory, turns=[{"n": 1, "role": "user", "text": "a\ud800b", "tools": [{"name": os.fsdecode(b"\xff"), "arguments": "\udc80"}]}]
    )
    assert [row["text"] for row in transcripts.rows(kept)] == ["a?b"]


ROW = {
    "harness": "claude", "auth": "key", "destination": "anthropic", "backend": "namespaces", "label": "public", "ceiling": "internal",
    "handling": "internal", "domain": "dom-me", "workdir": "/tree", "started_at": stamp(NOW),
}  # fmt: skip


def homes(memory: Memory, *ids: str) -> list[Path]:
    made = []
    with closing(meter.connect(memory.root.usage)) as usage:
        for id in ids:
            meter.enter_session(usage, {"id": id, **ROW})
            home = memory.root.homes / id
            (home / ".claude").mkdir(parents=True)
            (home / ".claude" / "words.jsonl").write_text("turn 1")
            made.append(home)
    return made


def test_a_sweep_drops_the_private_homes_of_sessions_that_are_past_their_time(memory: Memory) -> None:
    _, lost, runs, link = homes(memory, SES, "ses-0123abce", "ses-0123abcf", "ses-0123abcg")
    meter.end_session(memory.root, SES, exit=0, reason="", ended_at=stamp(NOW + timedelta(days=3)))
    (memory.root.homes / "ses-unknown0").mkdir()
    shutil.rmtree(link)
    link.symlink_to(runs)

    def found(days: int, **more: Any) -> tuple[str, ...]:
        return sweep(memory, owner(memory), days=days, running=lambda id: id == runs.name, **more).homes

    assert found(29) == ()
    assert found(31, dry_run=True) == (lost.name,) and lost.exists()
    assert found(31) == (lost.name,)
    assert found(34) == (SES,)
    assert [path.name for path in sorted(memory.root.homes.iterdir())] == [runs.name, link.name, "ses-unknown0"]
    assert [(line["session"], line["home"]) for line in lines(memory, "transcripts")] == [(lost.name, True), (SES, True)]
    assert found(34) == () and (runs / ".claude").exists()

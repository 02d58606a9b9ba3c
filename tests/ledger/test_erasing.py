"""Erasing the words of a task: nothing of them is left in any file or table, and what happened still replays to the projection."""

from pathlib import Path

import psycopg
import pytest

from amem.errors import NotFoundError
from amem.ledger.draft import Draft
from amem.ledger.projection import ERASED
from amem.ledger.store import Filed, Ledger
from amem.ledger.task import Status, Task
from tests.ledger.worlds import DOM, HANDOFF, ME, PostgresWorld, SqliteWorld, World, admitted, closing

SECRET = "xyzzy-plugh"
OTHER = "mem-me-aaaaaaaaaaaa"


def told(ledger: Ledger) -> str:
    """A task that says the secret wherever it can, and its id."""
    words = {"title": f"Call {SECRET}", "body": f"At {SECRET}'s place.", "check": (f"grep {SECRET} file",), "requires": (SECRET,)}
    filed = ledger.create(Draft(domain=DOM, subject=SECRET, **words), by=ME, admit=True)  # type: ignore[arg-type]
    assert isinstance(filed, Filed)
    task = filed.task.id
    ledger.post(task, by=ME, text=f"{SECRET} called back.")
    for fence, blocker in enumerate((f"{SECRET} is out", f"no number of {SECRET}", "a storm"), 1):
        held = ledger.claim_one(task, by="agent:a", capabilities=("*",))
        assert isinstance(held, Task)
        ledger.release(task, by="agent:a", fence=fence, why=f"why {SECRET}", blocker=blocker, handoff=HANDOFF)
    ledger.block(task, by=ME, on=f"{SECRET} must call")
    ledger.unblock(task, by=ME, why=f"{SECRET} called")
    ledger.graded(task, by=ME, verdict="failed", round=1, grader=f"judge-{SECRET}")
    return task


def test_nothing_of_the_words_is_left_and_the_history_is(world: World) -> None:
    with world.open() as ledger:
        task, other = told(ledger), admitted(ledger, "Another").id
        before = [(event.kind, event.by, event.at_ms, event.fence) for event in ledger.events(task)]
        assert ledger.mentioning(DOM, lambda text: SECRET in text) == (task,)
        done = ledger.erase(task, by=ME)
        assert (done.title, done.status, done.check, done.body, done.handoffs) == (ERASED, Status.INVALIDATED, (), None, (HANDOFF,))
        assert done.requires == ()
        events = ledger.events(task)
        assert [(event.kind, event.by, event.at_ms, event.fence) for event in events][: len(before)] == before
        assert [event.kind for event in events[-2:]] == ["invalidated", "erased"]
        assert SECRET not in repr(events) and SECRET not in repr(ledger.show(task))
        assert ledger.mentioning(DOM, lambda text: SECRET in text) == ()
        assert ledger.reindex(DOM, check=True).repaired == ()
        assert ledger.show(other).title == "Another"
        assert ledger.erase(task, by=ME).title == ERASED
        for domain in (DOM, "dom-nothing-was-filed-in"):
            assert ledger.erase_whys(domain, (), lambda why: True) == 0
            assert ledger.all_promotions(domain) == () == ledger.mentioning(domain, lambda text: SECRET in text)
            ledger.scrub(domain)
        assert ledger.claim_one(other, by="agent:a", capabilities=("*",))


def test_no_byte_of_it_is_left_in_any_file_of_the_database(tmp_path: Path) -> None:
    with closing(SqliteWorld(tmp_path)) as world, world.open() as ledger:
        task = told(ledger)
        whys = {"mem-me-0123456789ab": f"{SECRET} said so", "mem-me-zzzzzzzzzzzz": f"As {SECRET} says", OTHER: "It holds."}
        for entry, why in whys.items():
            ledger.promotion(entry, 1, "curated", by=ME, why=why)
        files = list((tmp_path / "state").glob("ledger.sqlite*"))
        assert any(SECRET.encode() in file.read_bytes() for file in files)
        ledger.erase(task, by=ME)
        assert ledger.erase_whys(DOM, ("mem-me-0123456789ab",), lambda why: SECRET in why) == 2
        ledger.scrub(DOM)
        assert [file.name for file in (tmp_path / "state").iterdir() if SECRET.encode() in file.read_bytes()] == []
        assert [ledger.promotions(one)[0].why for one in whys] == [None, None, "It holds."]
        assert ledger.erase_whys(DOM, ("mem-me-0123456789ab",), lambda why: SECRET in why) == 0


def test_what_the_server_learned_of_the_values_is_learned_anew(pg_dsn: str) -> None:
    """What a planner keeps of a column is a copy of its values, beside the table that is rewritten."""
    with closing(PostgresWorld(pg_dsn)) as world, world.open() as ledger, psycopg.connect(pg_dsn, autocommit=True) as connection:
        task = told(ledger)
        for n in range(20):
            admitted(ledger, f"Another {n}")
        connection.execute("analyze")
        known = "select count(*) from pg_stats where concat(most_common_vals::text, histogram_bounds::text) like %s"
        assert connection.execute(known, (f"%{SECRET}%",)).fetchone() != (0,)
        ledger.erase(task, by=ME)
        ledger.scrub(DOM)
        assert connection.execute(known, (f"%{SECRET}%",)).fetchone() == (0,)


def test_a_text_that_another_task_has_stays_with_that_one(ledger: Ledger) -> None:
    one, other = (ledger.create(Draft(domain=DOM, title=title, body="The same words."), by=ME, admit=True) for title in "ab")
    assert isinstance(one, Filed) and isinstance(other, Filed)
    ledger.erase(one.task.id, by=ME)
    assert ledger.text(DOM, ledger.show(other.task.id).body) == "The same words."
    ledger.erase(other.task.id, by=ME)
    assert ledger.text(DOM, other.task.body) is None


def test_a_worker_whose_task_was_erased_is_over(ledger: Ledger) -> None:
    task = admitted(ledger, "T").id
    held = ledger.claim_one(task, by="agent:a", capabilities=("*",))
    assert isinstance(held, Task)
    ledger.erase(task, by=ME)
    assert not isinstance(ledger.complete(task, by="agent:a", fence=1, handoff=HANDOFF), Task)
    with pytest.raises(NotFoundError):
        ledger.erase("task-me-zzzzzzzz", by=ME)

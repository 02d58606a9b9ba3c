"""What comes first, and why."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from amem.ledger import rank
from amem.ledger.rank import Move, Rubric
from amem.ledger.task import Status, Task
from tests.ledger.test_projection import PLAIN

DAY_MS = 86_400_000
FLAT = Rubric(day=0.0)


def task(name: str, priority: int = 3, **more: object) -> Task:
    return PLAIN._replace(id=name, priority=priority, rank=float(priority), status=Status.ADMITTED, **more)


def moved(tasks: list[Task], **more: object) -> dict[str, float]:
    return {move.id: move.rank for move in rank.rescored(tasks, at_ms=1, **{"rubric": FLAT, **more})}


def test_delegated_work_never_outranks_what_it_serves() -> None:
    assert rank.filed(9, None) == (9, 9.0)
    assert rank.filed(9, task("p", 4)) == (4, 4.0)
    assert rank.filed(9, task("p", 4)._replace(rank=2.5)) == (4, 2.5)
    assert rank.filed(1, task("p", 4)) == (1, 1.0)


def test_admission_raises_to_its_rank_plus_the_weight_and_lowers_nothing() -> None:
    top = task("top", 5)
    low, high, done = task("low", 1), task("high", 9), task("done", 1)._replace(status=Status.COMPLETED)
    assert rank.raised(top, [low, high, done]) == (Move("low", 1.0, 6.0, "top waits on it", "top"),)


def test_what_was_filed_from_a_task_lifts_nothing_above_it() -> None:
    held, need = task("held", 5), task("need", 2)
    part = task("part", 5, parent="held", depends_on=("need",))
    assert [(one.id, one.rank) for one in rank.raised(part, [need], FLAT, held)] == [("need", 5.0)]
    assert [one.rank for one in rank.raised(part, [need], FLAT, held._replace(status=Status.COMPLETED))] == [6.0]
    assert [one.rank for one in rank.raised(part, [need, held], FLAT, held)] == [6.0, 6.0]  # it waits on that one too
    assert {one.id: one.rank for one in rank.rescored([held, need, part], at_ms=1, rubric=FLAT)} == {"need": 5.0}


def test_blocker_rises_above_the_task_it_blocks_all_the_way_down() -> None:
    assert moved([task("a", 1), task("b", 2, depends_on=("a",)), task("c", 7, depends_on=("b",))]) == {"b": 8.0, "a": 9.0}


def test_child_rises_to_its_parent() -> None:
    assert moved([task("p", 6), task("c", 2, parent="p"), task("g", 1, parent="c")]) == {"c": 6.0, "g": 6.0}


def test_proposed_task_moves_nothing_but_is_ranked_itself() -> None:
    proposed = task("c", 9, depends_on=("a",), created_ms=1 - DAY_MS)._replace(status=Status.PROPOSED)
    assert moved([task("a", 1), proposed], rubric=Rubric()) == {"c": 9.1}


def test_days_of_waiting_and_the_longest_origin_prefix_count_from_the_filed_priority() -> None:
    rubric = Rubric(origins={"tap:": -1.0, "tap:mail": 2.0}, day=0.5)
    old = task("a", 3, origin="tap:mail-7", created_ms=0)._replace(rank=77.0)
    assert rank.rescored([old], at_ms=2 * DAY_MS + 5, rubric=rubric) == (
        Move("a", 77.0, 6.0, "filed at 3, origin tap:mail +2, 2 days of waiting +1"),
    )


def test_curation_under_its_floor_puts_the_best_that_an_agent_can_do_first() -> None:
    tasks = [
        task("work", 9), task("person", 8, origin="librarian:verify", requires=("human",)), task("best", 3, origin="librarian:verify"),
        task("other", 2, origin="check:summary"),
    ]  # fmt: skip
    assert moved(tasks, completed=100, curated=5) == {"best": 10.0}
    assert moved(tasks, completed=100, curated=10) == {}
    assert moved(tasks, completed=0, curated=0) == {}


def test_circle_of_a_child_that_waits_on_its_own_parent_comes_to_an_end() -> None:
    assert moved([task("p", 5), task("c", 9, parent="p", depends_on=("p",))]) == {"p": 10.0}


def test_chain_of_any_length_is_ranked() -> None:
    tasks = [task(f"t{i}", 1, depends_on=(f"t{i - 1}",) if i else ()) for i in range(5000)]
    assert moved(tasks)["t0"] == 5000.0


@st.composite
def graphs(draw: st.DrawFn) -> list[Task]:
    tasks: list[Task] = []
    for number in range(draw(st.integers(1, 8))):
        names = [one.id for one in tasks]
        needs = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=3))) if names else ()
        parent = draw(st.sampled_from([None, *names]))
        status = draw(st.sampled_from([Status.PROPOSED, Status.ADMITTED, Status.CLAIMED, Status.BLOCKED]))
        one = task(f"t{number}", draw(st.integers(0, 9)), depends_on=needs, parent=parent)
        tasks.append(one._replace(status=status, rank=draw(st.floats(0, 50).map(lambda x: round(x, 3)))))
    return tasks


@settings(max_examples=60)
@given(graphs())
def test_rescore_twice_is_once_and_what_blocks_stands_above(tasks: list[Task]) -> None:
    moves = rank.rescored(tasks, at_ms=1, rubric=FLAT)
    after = {one.id: one for one in tasks}
    for move in moves:
        assert move.was == after[move.id].rank != move.rank
        after[move.id] = after[move.id]._replace(rank=move.rank)
    assert rank.rescored(list(after.values()), at_ms=1, rubric=FLAT) == ()
    for one in after.values():
        for need in one.depends_on:
            if one.status is not Status.PROPOSED:
                free = one.parent is None or one.parent in one.depends_on
                assert after[need].rank >= one.rank + free - 1e-6


@pytest.mark.parametrize(("origin", "family"), [(None, "filed"), ("task:task-me-00000000", "task"), ("librarian:verify", "librarian")])
def test_family(origin: str | None, family: str) -> None:
    assert rank.family(origin) == family

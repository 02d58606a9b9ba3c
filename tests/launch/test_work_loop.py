import pytest

from amem.launch.loop import LONGEST_WAIT_S, MOST_FAILURES, Pace


def test_a_done_task_is_followed_by_the_next_at_once() -> None:
    pace = Pace(30, 0)
    assert [pace.after(0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert pace.exit(0) == 0


def test_nothing_to_claim_waits_as_long_as_was_said() -> None:
    pace = Pace(45, 0)
    assert [pace.after(3), pace.after(3)] == [45, 45]
    assert pace.exit(3) == 3


def test_tasks_that_come_back_are_taken_ever_more_slowly() -> None:
    pace = Pace(30, 0)
    waits = [pace.after(4) for _ in range(9)]
    assert waits == [1, 2, 4, 8, 16, 32, LONGEST_WAIT_S, LONGEST_WAIT_S, LONGEST_WAIT_S]
    assert pace.told(1.0) is None, "it failed at nothing"
    assert pace.after(0) == 0.0 and pace.after(4) == 1
    assert pace.exit(0) == 4


def test_so_many_tasks_and_no_more_whatever_became_of_them() -> None:
    pace = Pace(30, 3)
    assert pace.after(0) == 0.0
    assert pace.after(3) == 30, "finding none is no task"
    assert pace.after(4) == 1
    assert pace.after(0) is None


def test_failures_are_tried_again_within_bounds() -> None:
    pace = Pace(30, 0)
    waits: list[float | None] = []
    for number in range(1, MOST_FAILURES + 1):
        waits.append(pace.after(1))
        assert str(pace.told(1.0)).startswith(f"failed {number} of {MOST_FAILURES} times running; the next try is in 1 s")
    assert waits[-1] is None and None not in waits[:-1]
    assert pace.exit(1) == 1


def test_a_failure_that_passed_is_forgotten() -> None:
    pace = Pace(30, 0)
    for _ in range(3):
        assert [pace.after(1) for _ in range(MOST_FAILURES - 1)].count(None) == 0
        pace.after(0)
    assert pace.exit(0) == 0


@pytest.mark.parametrize("code", [2, 125, 126, 127, 130])
def test_what_another_try_does_not_change_ends_it(code: int) -> None:
    pace = Pace(30, 0)
    pace.after(0)
    assert pace.after(code) is None
    assert pace.exit(code) == code

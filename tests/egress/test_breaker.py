import pytest

from amem.egress.breaker import FAILURES, FIRST_REST_S, LONGEST_REST_S, Breaker, Resting


def opened(at_s: float = 0.0) -> Breaker:
    found = Breaker()
    for _ in range(FAILURES):
        assert found.ask(at_s) is None
        found.told(False, at_s)
    return found


def test_it_opens_after_failures_in_a_row_only() -> None:
    found = Breaker()
    for _ in range(3):
        for _ in range(FAILURES - 1):
            found.told(False, 0.0)
        found.told(True, 0.0)
    assert found.ask(0.0) is None
    assert opened(7.0).ask(7.0) == Resting(FIRST_REST_S)


def test_after_its_rest_one_call_tries_and_the_others_wait_for_it() -> None:
    found = opened()
    assert found.ask(FIRST_REST_S - 1) == Resting(1.0)
    assert found.ask(FIRST_REST_S) is None
    assert isinstance(found.ask(FIRST_REST_S), Resting)
    found.told(True, FIRST_REST_S)
    assert [found.ask(FIRST_REST_S) for _ in range(3)] == [None] * 3


def test_a_trial_that_fails_rests_twice_as_long_up_to_a_bound() -> None:
    found, now_s, rests = opened(), 0.0, []
    for _ in range(8):
        resting = found.ask(now_s)
        assert resting is not None
        rests.append(resting.seconds)
        now_s += resting.seconds
        assert found.ask(now_s) is None
        found.told(False, now_s)
    assert rests[:3] == [FIRST_REST_S, 2 * FIRST_REST_S, 4 * FIRST_REST_S]
    assert rests[-1] == LONGEST_REST_S


def test_a_trial_that_never_left_lets_the_next_one_try() -> None:
    found = opened()
    assert found.ask(FIRST_REST_S) is None
    found.left()
    assert found.ask(FIRST_REST_S) is None


@pytest.mark.parametrize("late", [False, True])
def test_a_failure_of_a_call_from_before_the_rest_does_not_shorten_it(late: bool) -> None:
    found = opened()
    if late:
        found.told(False, 10.0)
    assert isinstance(found.ask(FIRST_REST_S - 0.5), Resting)

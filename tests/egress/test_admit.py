import pytest

from amem.egress.admit import WAITING_PER_SLOT, Busy, Verdict, admit


@pytest.mark.parametrize(
    ("most", "running", "waiting", "verdict"),
    [
        (1, 0, 0, Verdict.GO),
        (1, 1, 0, Verdict.WAIT),
        (2, 1, 1, Verdict.WAIT),  # a slot is free and somebody waits for it
        (2, 2, 2 * WAITING_PER_SLOT - 1, Verdict.WAIT),
        (2, 2, 2 * WAITING_PER_SLOT, Verdict.BUSY),
    ],
)
def test_a_call_goes_waits_or_is_told_to_come_back(most: int, running: int, waiting: int, verdict: Verdict) -> None:
    assert admit(most, running, waiting) is verdict


def test_busy_names_the_limit_and_a_time() -> None:
    assert Busy("demo", 3).sentence == "3 calls are under way at demo, which is the most that grants.toml allows, and more wait"
    assert Busy("demo", 3).retry_after_s > 0

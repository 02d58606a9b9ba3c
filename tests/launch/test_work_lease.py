import threading
from collections.abc import Callable

import pytest

from amem.launch.lease import BEATS, Beat, Keeper, Lease


def test_a_heartbeat_is_due_several_times_in_a_lease() -> None:
    lease = Lease(600, 1000.0)
    assert lease.wait_s(1000.0) == 600 / BEATS
    lease.beaten(Beat.RENEWED, 1150.0, 1151.0)
    assert lease.wait_s(1151.0) == 149.0


def test_one_lost_heartbeat_is_harmless() -> None:
    lease = Lease(600, 0.0)
    lease.beaten(Beat.LOST, 150.0, 180.0)
    assert not lease.over and lease.wait_s(180.0) == 30.0
    lease.beaten(Beat.RENEWED, 210.0, 210.0)
    assert not lease.expired(809.9) and lease.expired(810.0)


def test_the_watchdog_counts_from_sending_not_from_the_answer() -> None:
    lease = Lease(600, 0.0)
    lease.beaten(Beat.RENEWED, 100.0, 650.0)  # the answer took its time; the ledger may have renewed at once
    assert not lease.over
    lease.beaten(Beat.LOST, 660.0, 700.0)
    assert lease.over


@pytest.mark.parametrize("lost", range(1, 40))
def test_no_answer_for_a_whole_lease_is_over_however_often_it_was_tried(lost: int) -> None:
    lease, now = Lease(100, 0.0), 0.0
    for _ in range(lost):
        now += lease.wait_s(now)
        lease.beaten(Beat.LOST, now, now)
        if lease.over:
            break
    assert lease.over == (now >= 100)
    assert now <= 100, "the end of the lease is not slept through"


def test_a_claim_that_is_over_is_over_at_once() -> None:
    lease = Lease(600, 0.0)
    lease.beaten(Beat.OVER, 150.0, 150.0)
    assert lease.over


def kept(beats: list[Beat], clock: Callable[[], float]) -> tuple[Keeper, list[str], threading.Event]:
    told: list[str] = []
    over = threading.Event()

    def lost(why: str) -> None:
        told.append(why)
        over.set()

    return Keeper(lambda: beats.pop(0) if len(beats) > 1 else beats[0], 0.004, clock(), lost, clock), told, over


def test_the_worker_is_told_when_the_claim_is_over() -> None:
    now = iter(range(10**6))
    keeper, told, over = kept([Beat.RENEWED, Beat.LOST, Beat.OVER], lambda: next(now) * 0.0001)
    keeper.start()
    assert over.wait(30)
    keeper.stop()
    assert told == [keeper.lost] and "over" in told[0]


def test_the_worker_is_told_when_nothing_gets_through() -> None:
    now = iter(range(10**6))
    keeper, told, over = kept([Beat.LOST], lambda: next(now) * 0.0001)
    keeper.start()
    assert over.wait(30)
    keeper.stop()
    assert told == ["no heartbeat got through for a whole lease"]


def test_what_a_heartbeat_says_after_the_worker_is_done_does_not_count() -> None:
    asked, go = threading.Event(), threading.Event()

    def beat() -> Beat:
        asked.set()
        go.wait(30)
        return Beat.OVER

    told: list[str] = []
    keeper = Keeper(beat, 0.001, 0.0, told.append, lambda: 0.0009)
    keeper.start()
    assert asked.wait(30)
    ending = threading.Thread(target=keeper.stop)
    ending.start()
    keeper._stopping.wait(30)
    go.set()
    ending.join()
    assert keeper.lost is None and told == []

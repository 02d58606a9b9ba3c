"""What a worker says of Ctrl-C: what it ends depends on whether a task is under way."""

import queue
import signal
from typing import Any

import pytest

from amem.launch.interrupts import AFTER_THIS, NONE_AFTER, NOW, Interrupts, held_back


class Harness:
    """Stands for a running session; it only hears what it is sent."""

    def __init__(self) -> None:
        self.heard: queue.Queue[int] = queue.Queue()

    def signal(self, number: int) -> None:
        self.heard.put(number)

    def kill(self) -> None:
        self.heard.put(signal.SIGKILL)


def strike(interrupts: Interrupts) -> None:
    """Ctrl-C, to the thread that takes it: the tests' own process has others that would."""
    assert interrupts._thread.ident is not None
    signal.pthread_kill(interrupts._thread.ident, signal.SIGINT)


@pytest.mark.parametrize(("at_work", "first"), [(False, NONE_AFTER), (True, AFTER_THIS)])
def test_the_first_one_lets_a_task_end_and_the_second_does_not(at_work: bool, first: str) -> None:
    said: queue.Queue[str] = queue.Queue()
    harness: Any = Harness()
    with held_back(), Interrupts(said.put) as interrupts:
        if at_work:
            interrupts.attend(harness)
        strike(interrupts)
        assert said.get(timeout=30) == first
        assert interrupts.asked.wait(30) and not interrupts.struck
        strike(interrupts)
        assert said.get(timeout=30) == NOW
        if at_work:
            assert harness.heard.get(timeout=30) == signal.SIGTERM
    assert interrupts.struck

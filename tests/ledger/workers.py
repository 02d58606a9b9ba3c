"""Worker processes that claim and complete until nothing is left, for the fault tests. Forked, so that many start at once.

The parent must hold no open ledger when it forks.
"""

import multiprocessing
import random
import signal
import time
from collections.abc import Callable

from amem.ledger.reading import Filter
from amem.ledger.store import Ledger
from amem.ledger.task import ANYTHING, Task
from tests.ledger.worlds import DOM, HANDOFF

Open = Callable[[], Ledger]
FORK = multiprocessing.get_context("fork")


def drain(open_ledger: Open, name: str, lease_ms: int) -> None:
    """Claim and complete until no task of DOM is open. Waits a moment, as a worker does, when nothing can be claimed now."""
    with open_ledger() as ledger:
        while True:
            task = ledger.claim(DOM, by=name, capabilities=ANYTHING, lease_ms=lease_ms)
            if task is None:
                if not ledger.list(Filter(domains=(DOM,), limit=1)).total:
                    return
                time.sleep(0.02)
            elif random.random() < 0.9 or isinstance(ledger.heartbeat(task.id, by=name, fence=task.fence, lease_ms=lease_ms), Task):
                ledger.complete(task.id, by=name, fence=task.fence, handoff=HANDOFF)


def crash_and_finish(open_ledger: Open, *, workers: int, kills: int, lease_ms: int, patience_s: float, disturb: Callable[[], None]) -> int:
    """Run that many workers, kill one at random again and again and start another in its place, then let them finish.

    `disturb` is called between kills. Return how many died. Raises AssertionError when they do not come to an end.
    """
    until = time.monotonic() + patience_s
    running: list[multiprocessing.Process] = []
    count = 0

    def start() -> None:
        nonlocal count
        count += 1
        process = FORK.Process(target=drain, args=(open_ledger, f"agent:w{count}", lease_ms), daemon=True)
        process.start()
        running.append(process)

    died = 0
    try:
        for _ in range(workers):
            start()
        for _ in range(kills):
            # A random moment of the victim's life, not a wait for anything.
            time.sleep(random.uniform(0.0, 0.06))
            victim = random.choice(running)
            victim.kill()
            victim.join()
            assert victim.exitcode in (0, -signal.SIGKILL), "a worker died of itself"
            died += victim.exitcode == -signal.SIGKILL
            running.remove(victim)
            start()
            disturb()
        for process in running:
            process.join(max(0.0, until - time.monotonic()))
            assert process.exitcode == 0, f"a worker did not come to its end: {process.exitcode}"
    finally:
        for process in running:
            process.kill()
            process.join()
    return died

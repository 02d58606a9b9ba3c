"""The report of a silent session: once for each silence, never after the end."""

import queue
import threading

from amem.launch.stall import Watch


def test_each_silence_is_told_once() -> None:
    told: queue.Queue[str] = queue.Queue()
    with Watch("ses-0123abcd", told.put, silence_s=0.02) as watch:
        assert "amem session stop ses-0123abcd" in told.get(timeout=30)
        watch.heard()
        told.get(timeout=30)
    left = told.qsize()
    assert left == 0 and not any(thread.name == "stall" for thread in threading.enumerate())


def test_signs_of_life_keep_it_quiet() -> None:
    told: list[str] = []
    with Watch("ses-0123abcd", told.append, silence_s=3600) as watch:
        watch.heard()
    assert told == []

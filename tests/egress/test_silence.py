import asyncio
from pathlib import Path

import aiohttp
import pytest

from amem.egress.gate import SILENT
from amem.egress.silence import IMPATIENCE, REST_S, SILENCES, Silences
from amem.logs.schema import PolicyDecision
from amem.model.call import Dialect
from tests.egress.support import call, session

STALL = {"text": "word " * 40, "chunk": 5, "fault": {"kind": "stall", "after": 3}}
HUNG = {"text": "x", "wait": "never"}
IDLE_S = 600.0
DEMO = ("demo", "m-1")


def fallen(times: int, at_s: float = 0.0, part: float = 1.0) -> Silences:
    found = Silences(IDLE_S)
    for _ in range(times):
        found.ended(DEMO, at_s, whole=False, silent_s=IDLE_S * part)
    return found


def test_only_silences_one_after_another_count() -> None:
    found = Silences(IDLE_S)
    for _ in range(5):
        for _ in range(SILENCES - 1):
            found.ended(DEMO, 0.0, whole=False, silent_s=IDLE_S)
        found.ended(DEMO, 0.0, whole=True, silent_s=0.0)
    assert not found.resting(DEMO, 0.0)
    assert fallen(SILENCES).resting(DEMO, 0.0)
    assert not fallen(SILENCES).resting(("demo", "another"), 0.0)


@pytest.mark.parametrize(("part", "resting"), [(0.0, False), (0.9 / IMPATIENCE, False), (1.1 / IMPATIENCE, True)])
def test_a_harness_that_gives_an_answer_up_by_itself_counts_when_it_waited_long(part: float, resting: bool) -> None:
    """Somebody who breaks off after a moment says nothing of the provider."""
    assert fallen(9, part=part).resting(DEMO, 1.0) == resting


def test_after_its_rest_a_destination_is_tried_as_if_nothing_had_been() -> None:
    found = fallen(SILENCES, 100.0)
    assert found.resting(DEMO, 100.0 + REST_S - 1)
    assert not found.resting(DEMO, 100.0 + REST_S)
    found.ended(DEMO, 200.0, whole=False, silent_s=IDLE_S)
    assert not found.resting(DEMO, 200.0)


@pytest.mark.parametrize("step", [STALL, HUNG], ids=["in the middle", "from the start"])
def test_after_two_silences_the_harness_is_told_no_and_why(tmp_path: Path, step: dict[str, object]) -> None:
    """A 403, which no harness tries again; it is in the log, and the launcher is told."""

    async def run() -> None:
        notes: list[PolicyDecision] = []
        told: list[str] = []
        async with session(tmp_path, {"by": "count", "steps": [step] * 9}, idle_s=0.2, note=notes.append, silent=told.append) as s:
            for _ in range(SILENCES):
                try:
                    assert (await s.post(*call(Dialect.CHAT, stream=True)))[0] == 504
                except aiohttp.ClientError:
                    assert step is STALL
            assert told == []
            status, answer, _ = await s.post(*call(Dialect.CHAT, stream=True))
            assert (status, len(s.provider.log)) == (403, SILENCES)
            assert b"fell silent" in answer and len(told) == 1 and told[0].encode() in answer
            assert [(note.allow, note.reasons[0]["code"]) for note in notes] == [(False, SILENT)]
            assert [row["refused"] for row in s.rows()] == [*[None] * SILENCES, SILENT]

    asyncio.run(run())


def test_an_answer_that_comes_whole_begins_anew(tmp_path: Path) -> None:
    async def run() -> None:
        steps = [STALL, {"text": "whole"}, STALL, {"text": "whole again"}]
        async with session(tmp_path, {"by": "count", "steps": steps}, idle_s=0.2) as s:
            for step in steps:
                if step is STALL:
                    with pytest.raises(aiohttp.ClientError):
                        await s.post(*call(Dialect.CHAT, stream=True))
                else:
                    assert (await s.post(*call(Dialect.CHAT, stream=True)))[0] == 200

    asyncio.run(run())

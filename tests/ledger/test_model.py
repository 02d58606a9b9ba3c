"""Both backends against one model: random operations, random time, and after every step the same answers and the same projection.

The model is the pure projection over the events that the operations should have appended, kept by rules written here a second time and
as plainly as possible: who may claim what, whose fence holds, what waits on what.
"""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from amem.ledger.draft import Draft
from amem.ledger.projection import State, project
from amem.ledger.store import Refused
from amem.ledger.task import Task
from tests.ledger import servers
from tests.ledger.worlds import DOM, HANDOFF, ME, PostgresWorld, SqliteWorld, World

LEASE_MS = 1000
CAPABILITIES = [(), ("code",), ("code", "gpu")]
REQUIRES = [(), (), ("code",), ("gpu",)]


@dataclass
class Model:
    """What one task should be."""

    order: int
    priority: int
    requires: tuple[str, ...]
    needs: list[str]
    rank: float
    status: str = "proposed"
    fence: int = 0
    ends: int = 0
    blocker: str | None = None
    runs: int = 0
    of: str | None = None
    """What it is a retry of."""


class Machine(RuleBasedStateMachine):
    """Operations on one ledger."""

    make: Any

    def __init__(self) -> None:
        super().__init__()
        self.world: World = type(self).make()
        self.ledger = self.world.open()
        self.model: dict[str, Model] = {}
        self.state = State()
        self.seen = 0
        self.now = 0

    def teardown(self) -> None:
        self.world.close()

    @initialize()
    def start(self) -> None:
        self.file(3, (), 0, True)

    # -- what the rules say ------------------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Give back what ended: only a claim does this, and what looks at the task itself."""
        for one in self.model.values():
            if one.status == "claimed" and one.ends <= self.now:
                one.status = "admitted"

    def open_needs(self, one: Model) -> int:
        return sum(self.model[need].status != "completed" for need in one.needs)

    def ready(self, capabilities: tuple[str, ...]) -> str | None:
        fit = [
            (-one.rank, one.order, name)
            for name, one in self.model.items()
            if one.status == "admitted" and not self.open_needs(one) and set(one.requires) <= set(capabilities)
        ]
        return min(fit)[2] if fit else None

    def holds(self, name: str, fence: int) -> bool:
        one = self.model[name]
        return one.status == "claimed" and one.fence == fence and one.ends > self.now

    def upstream(self, name: str) -> set[str]:
        found: set[str] = set()
        rest = list(self.model[name].needs)
        while rest:
            need = rest.pop()
            if need not in found and self.model[need].status not in ("completed", "invalidated"):
                found.add(need)
                rest += self.model[need].needs
        return found

    def standing(self, need: str) -> str:
        """The latest retry of a need that was invalidated, else the need."""
        while self.model[need].status == "invalidated":
            later = [name for name, one in self.model.items() if one.of == need]
            if not later:
                break
            need = later[-1]
        return need

    def admit_model(self, name: str) -> None:
        one = self.model[name]
        one.status = "admitted"
        for need in self.upstream(name):
            self.model[need].rank = max(self.model[need].rank, one.rank + 1)

    # -- the operations ----------------------------------------------------------------------------------------------------------

    @rule(priority=st.integers(0, 9), requires=st.sampled_from(REQUIRES), needs=st.integers(0, 7), admit=st.booleans())
    def file(self, priority: int, requires: tuple[str, ...], needs: int, admit: bool) -> None:
        names = list(self.model)
        depends = tuple(name for bit, name in enumerate(reversed(names[-3:])) if needs >> bit & 1)
        answer = self.ledger.create(
            Draft(domain=DOM, title="t", priority=priority, requires=requires, depends_on=depends), by=ME, admit=admit
        )
        assert isinstance(answer, Refused) == any(self.model[need].status == "invalidated" for need in depends), answer
        if isinstance(answer, Refused):
            return
        task = answer.task
        self.model[task.id] = Model(len(self.model), priority, requires, list(depends), float(priority))
        if admit:
            self.admit_model(task.id)
        assert task.open_needs == self.open_needs(self.model[task.id])

    @rule(data=st.data())
    def admit(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.model)))
        answer = self.ledger.admit([name], by=ME)
        match self.model[name].status:
            case "proposed":
                self.admit_model(name)
            case "admitted":
                pass
            case _:
                assert isinstance(answer, Refused)
                return
        assert not isinstance(answer, Refused)

    @rule(capabilities=st.sampled_from(CAPABILITIES), by=st.sampled_from(["agent:a", "agent:b"]))
    def claim(self, capabilities: tuple[str, ...], by: str) -> None:
        self.sweep()
        expected = self.ready(capabilities)
        task = self.ledger.claim(DOM, by=by, capabilities=capabilities, lease_ms=LEASE_MS)
        assert (task.id if task else None) == expected
        if task is not None:
            self.claimed(task)

    def claimed(self, task: Task) -> None:
        one = self.model[task.id]
        one.status, one.fence, one.ends = "claimed", one.fence + 1, self.now + LEASE_MS
        assert task.fence == one.fence

    @rule(data=st.data(), fence=st.integers(0, 1), act=st.sampled_from(["beat", "beat again", "complete", "release", "handoff"]))
    def act(self, data: st.DataObject, fence: int, act: str) -> None:
        name = data.draw(st.sampled_from([name for name, one in self.model.items() if one.fence] or list(self.model)))
        one = self.model[name]
        number = one.fence - fence
        holder = self.ledger.show(name).holder or "agent:a"
        holds = self.holds(name, number)
        match act:
            case "beat":
                answer = self.ledger.heartbeat(name, by=holder, fence=number, lease_ms=LEASE_MS)
            case "beat again":
                answer = self.ledger.heartbeat(name, by=holder, fence=number)
            case "complete":
                again = one.status == "completed" and number == one.fence
                answer = self.ledger.complete(name, by=holder, fence=number, handoff=HANDOFF)
                if again:
                    assert isinstance(answer, Task)
                    return
            case "release":
                blocker = data.draw(st.sampled_from([None, "no key", "No  Key"]))
                history = self.ledger.events(name)
                last = next(e for e in reversed(history) if e.kind not in ("rescored", "posted"))
                again = (last.kind, last.by, last.fence) == ("released", holder, number)
                answer = self.ledger.release(name, by=holder, fence=number, blocker=blocker)
                if again:
                    assert isinstance(answer, Task)
                    return
                if holds:
                    one.runs = one.runs + 1 if blocker and one.blocker else int(bool(blocker))
                    one.blocker = blocker
            case _:
                answer = self.ledger.handoff_left(name, by=holder, fence=number, handoff=HANDOFF)
        assert isinstance(answer, Task) == holds, (act, answer, one, number, self.now)
        if holds and act.startswith("beat"):
            one.ends = self.now + LEASE_MS
        elif holds and act == "complete":
            one.status = "completed"
        elif holds and act == "release":
            one.status = "blocked" if one.runs >= 3 else "admitted"

    @rule(data=st.data())
    def invalidate(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.model)))
        closing = self.ledger.invalidate(name, by=ME, why="no more")
        one = self.model[name]
        assert (name in closing.closed) == (one.status not in ("completed", "invalidated"))
        if name in closing.closed:
            one.status = "invalidated"

    @rule(data=st.data())
    def unblock(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.model)))
        answer = self.ledger.unblock(name, by=ME)
        one = self.model[name]
        assert isinstance(answer, Task) == (one.status == "blocked")
        if one.status == "blocked":
            one.status, one.runs, one.blocker = "admitted", 0, None

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.model)))
        old = self.model[name]
        answer = self.ledger.retry(name, by=ME)
        later = [one for one in self.model.values() if one.of == name]
        if any(one.status not in ("completed", "invalidated") for one in (old, *later[-1:])):
            assert isinstance(answer, Refused)
            return
        assert isinstance(answer, Task)
        needs = list(dict.fromkeys(self.standing(need) for need in old.needs))
        new = self.model[answer.id] = Model(len(self.model), old.priority, old.requires, needs, float(old.priority), of=name)
        waiting = [one for one in self.model.values() if one.status not in ("completed", "invalidated") and name in one.needs]
        for one in waiting:
            one.needs = [answer.id if need == name else need for need in one.needs]
        self.admit_model(answer.id)
        top = max((one.rank for one in waiting if one.status != "proposed"), default=-1.0)
        for one in (new, *(self.model[need] for need in self.upstream(answer.id))):
            one.rank = max(one.rank, top + 1)

    @rule(ms=st.sampled_from([1, LEASE_MS // 2, LEASE_MS - 1, LEASE_MS, 3 * LEASE_MS]))
    def wait(self, ms: int) -> None:
        self.world.tick(ms)
        self.now += ms

    @precondition(lambda self: len(self.model) > 3)
    @rule()
    def reopen(self) -> None:
        self.ledger.close()
        self.ledger = self.world.open()

    # -- after every step --------------------------------------------------------------------------------------------------------

    @invariant()
    def table_is_what_the_events_come_to(self) -> None:
        """Step by step, so that every prefix of the events gives the state that stood after it."""
        if not self.model:
            return
        events = self.world.events()
        for event in events[self.seen :]:
            self.state = project(self.state, event)
        self.seen = len(events)
        assert self.world.table() == dict(self.state.tasks)
        for name, one in self.model.items():
            task = self.state.tasks[name]
            # A lease that ended is given back only when somebody claims: until then the table still names its holder.
            assert (task.status, task.rank, task.fence, task.open_needs, list(task.depends_on)) == (
                one.status, one.rank, one.fence, self.open_needs(one), one.needs,
            )  # fmt: skip

    @invariant()
    def nobody_waits_in_a_circle(self) -> None:
        for name in self.model:
            assert name not in self.upstream(name)

    @invariant()
    def nothing_is_claimed_or_completed_twice(self) -> None:
        if self.model:
            acts = [(event.task, event.fence, event.kind) for event in self.world.events() if event.kind in ("claimed", "completed")]
            assert len(acts) == len(set(acts))


def _run(make: Any, examples: int) -> None:
    machine = type("Machine", (Machine,), {"make": staticmethod(make)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
            database=None,
            report_multiple_bugs=False,
            phases=(Phase.explicit, Phase.generate),
        ),
    )


def test_sqlite_against_the_model() -> None:
    with TemporaryDirectory() as folder:
        number = iter(range(1_000_000))
        _run(lambda: SqliteWorld(Path(folder) / str(next(number))), 40)


def test_postgres_against_the_model(pg: servers.Server) -> None:
    """One database, a space of its own for each example: making a database each time would be most of the work."""
    with servers.database(pg) as dsn:
        number = iter(range(1_000_000))
        _run(lambda: PostgresWorld(dsn, space=f"example-{next(number)}"), 15)


@pytest.mark.parametrize("status", ["completed", "invalidated"])
def test_the_model_itself_notices_a_wrong_table(status: str, sqlite_world: World) -> None:
    """The check that the machines rest on can fail."""
    ledger = sqlite_world.open()
    ledger.create(Draft(domain=DOM, title="t"), by=ME)
    sqlite_world.check()
    sqlite_world.sql(f"update task set status = '{status}'")
    with pytest.raises(AssertionError):
        sqlite_world.check()

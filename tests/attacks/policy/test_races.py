"""Acts on one entry by two people at the same moment, and decisions while the policy changes under them.

What one of two did is whole, and the other is told; nobody decides against half a policy; no line of the log is lost.
"""

import os
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from amem.errors import UnavailableError
from amem.ledger.promotions import State
from amem.logs import reader
from amem.logs.schema import PolicyDecision
from amem.memory.outcomes import Refused, Written
from amem.memory.promote import Promoted, approve, promote
from amem.memory.session import Memory, open_memory
from amem.model.clock import now
from amem.model.entry import Entry, Status, Tier
from amem.model.label import Label
from amem.policy import request
from amem.policy.door import Door
from amem.policy.live import Live
from amem.record import policies
from amem.settings import grants
from tests.memory.seed import OWNER, agent, lines, owner, put, written
from tests.memory.test_policies import body

from .actors import Actor

ROUNDS = 6
BOB, CLEO, CODEX = "human:acme:bob", "human:acme:cleo", "agent:codex"


def proposed(memory: Memory, entry: Entry) -> str:
    done = promote(memory, agent(memory, CODEX), entry.id, Tier.VERIFIED, "it was checked")
    assert isinstance(done, Promoted) and done.task is not None, done
    return done.task


def raced(actors: list[Actor], *acts: tuple[str, str, str]) -> list[str]:
    for actor, act in zip(actors, acts, strict=True):
        actor.tell(*act)
    return [actor.answer() for actor in actors]


def of(memory: Memory, entry: Entry) -> tuple[Status, Tier, int, list[State]]:
    found = memory.store.read(entry.id)
    return found.status, found.tier, found.version, [one.state for one in memory.ledger.promotions(entry.id)]


def test_two_approve_the_same_proposal(memory: Memory, actors: list[Actor]) -> None:
    for number in range(ROUNDS):
        entry = written(memory, agent(memory), f"Known {number}")
        task = proposed(memory, entry)
        assert sorted(raced(actors, ("approve", BOB, task), ("approve", OWNER, task))) == ["ConflictError", "done"]
        assert of(memory, entry) == (Status.ACTIVE, Tier.VERIFIED, 2, [State.LANDED])


def test_one_approves_what_another_declines(memory: Memory, actors: list[Actor]) -> None:
    seen = set()
    for number in range(ROUNDS):
        entry = written(memory, agent(memory), f"Known {number}")
        task = proposed(memory, entry)
        said = raced(actors, ("approve", BOB, task), ("decline", CLEO, task))
        seen.add(tuple(said))
        landed = (Status.ACTIVE, Tier.VERIFIED, 2, [State.LANDED])
        declined = (Status.ACTIVE, Tier.RAW, 1, [State.DECLINED])
        assert (said, of(memory, entry)) in ((["done", "ConflictError"], landed), (["ConflictError", "done"], declined))
    assert seen


def test_one_approves_what_the_owner_demotes(memory: Memory, actors: list[Actor]) -> None:
    """A policy: whatever comes first, one that the owner took out of service is not in force."""
    for number in range(ROUNDS):
        entry = written(memory, agent(memory), f"Rule {number}", type="policy", body=body(f"pol-L2-{number + 1:03}"))
        task = proposed(memory, entry)
        approved, gone = raced(actors, ("approve", OWNER, task), ("demote", OWNER, entry.id))
        status, tier, version, _ = of(memory, entry)
        assert "done" in (approved, gone) and {approved, gone} <= {"done", "ConflictError"}
        assert (status is Status.DEMOTED) == (gone == "done")
        assert tier is (Tier.VERIFIED if approved == "done" else Tier.RAW) and version == 1 + [approved, gone].count("done")
        standing = {one.entry: one.status for one in policies.standing(memory.root, memory.grants).standings}
        assert (standing.get(entry.id) == "in_force") == (status is Status.ACTIVE)


def test_one_approves_what_the_owner_erases(memory: Memory, actors: list[Actor]) -> None:
    for number in range(ROUNDS // 2):
        entry = written(memory, agent(memory), f"Known {number}", body=f"Only here: kestrel-{number}-quartz.")
        task = proposed(memory, entry)
        approved, erased = raced(actors, ("approve", BOB, task), ("erase", OWNER, entry.id))
        assert erased == "done" and approved in ("done", "ConflictError", "NotFoundError"), (approved, erased)
        assert memory.store.read(entry.id).status is Status.ERASED
        everything = b"".join(path.read_bytes() for path in memory.root.path.rglob("*") if path.is_file())
        assert f"kestrel-{number}-quartz".encode() not in everything
        assert memory.ledger.show(task).status.open is False


def test_two_propose_the_same_version(memory: Memory, actors: list[Actor]) -> None:
    for number in range(ROUNDS):
        entry = written(memory, agent(memory), f"Known {number}")
        assert sorted(raced(actors, ("propose", CODEX, entry.id), ("propose", BOB, entry.id))) == ["conflict", "done"]
        assert of(memory, entry)[3] == [State.PROPOSED]


THREADS, DECISIONS = 8, 60


def test_rules_come_and_go_while_eight_threads_decide(memory: Memory, actors: list[Actor]) -> None:
    """Another process approves rules and takes one out of service. A version of the policy gives one answer; each decision has its line."""
    running = open_memory(memory.root, memory.grants)
    session = agent(running)
    entries = [
        written(memory, agent(memory), f"Rule {n}", type="policy", body=body(f"pol-L2-{n:03}", type=("method", "question")[n % 2]))
        for n in range(6)
    ]  # fmt: skip
    tasks = [proposed(memory, entry) for entry in entries]
    before = len(lines(memory, "decisions"))
    gone = threading.Event()
    told: list[tuple[str, str, bool, tuple[str, ...]]] = []

    def decide(number: int) -> int:
        kinds = ("method", "question", "fact")
        count = 0
        while count < DECISIONS or not gone.is_set():
            asked = request.write(
                principal=session.principal, owner=OWNER, domain="dom-me", session=session.id, task=None, type=kinds[count % 3],
                classification=Label.INTERNAL, label=Label.PUBLIC, supersedes=(), findings=(), superseded_so_far=count % 5,
                max_supersedes=9,
            )  # fmt: skip
            found = running.door.decide(asked)
            told.append((found.policy_version, kinds[count % 3], found.allow, tuple(sorted(found.citations))))
            count += 1
        return count

    with ThreadPoolExecutor(THREADS) as pool:
        deciding = [pool.submit(decide, number) for number in range(THREADS)]
        for entry, task in zip(entries, tasks, strict=True):
            actors[0].tell("approve", OWNER, task)
            assert actors[0].answer() == "done"
            if entry is entries[2]:
                actors[1].tell("demote", OWNER, entries[0].id)
                assert actors[1].answer() == "done"
        gone.set()
        total = sum(one.result(timeout=300) for one in deciding)
    total += decide(THREADS)  # a thread may have ended on what was in force just before the last change
    running.close()
    assert len(told) == total
    answers = {(version, kind): (allow, cited) for version, kind, allow, cited in told}
    assert all(answers[version, kind] == (allow, cited) for version, kind, allow, cited in told), "one policy, two answers"
    assert len({version for version, *_ in told}) > 1, "nothing changed meanwhile"
    last = answers[policies.engine(memory.root, memory.grants).version, "question"]
    assert last == (False, ("pol-L2-001", "pol-L2-003", "pol-L2-005"))
    logged = [line for line in lines(memory, "decisions")[before:] if line.get("session") == session.id]
    assert Counter(line["policy_version"] for line in logged) == Counter(version for version, *_ in told)
    assert reader.verify(memory.root.state / PolicyDecision.log) == []


PAIR = {
    "a.rego": 'package amem\n\ndecision := {{"allow": false, "reasons": [{{"code": "from_{0}", "other": _other}}]}}\n',
    "b.rego": 'package amem\n\n_other := "{0}"\n# {1}\n',
}


def test_a_roots_policy_is_exchanged_in_flight(memory: Memory, tmp_path: Path) -> None:
    """Two modules that belong together, in a folder that is exchanged whole while four threads decide: never one of each."""
    policy = memory.root.policy
    versions = [tmp_path / f"policy-{word}" for word in ("one", "two")]
    for word, folder in zip(("one", "two"), versions, strict=True):
        folder.mkdir()
        for name, text in PAIR.items():
            (folder / name).write_text(text.format(word, "x" * 200_000))
    if policy.exists():
        policy.rmdir()
    policy.symlink_to(versions[0])
    found = grants.load(memory.root.grants)
    live = Live(memory.root, found)
    door = Door(live.start(), lambda event: None, now)
    door.watch(live.look)
    asked = request.read(principal=CODEX, domain="dom-me", session="ses-01234567", handling=Label.PUBLIC)
    over = threading.Event()
    seen: Counter[tuple[str, str]] = Counter()

    def decide() -> None:
        while not over.is_set():
            with suppress(UnavailableError):  # nothing is decided: the folder changed each time that it was read
                (reason,) = door.decide(asked).reasons
                seen[reason.code, str(reason.facts.get("other"))] += 1

    def exchange(folder: Path) -> None:
        swapped = tmp_path / "swapped"
        swapped.symlink_to(folder)
        os.replace(swapped, policy)

    with ThreadPoolExecutor(4) as pool:
        deciding = [pool.submit(decide) for _ in range(4)]
        try:
            for number in range(60):
                exchange(versions[(number + 1) % 2])
            for word, folder in zip(("one", "two"), versions, strict=True):  # those may all have been over before the first decision
                exchange(folder)
                while (f"from_{word}", word) not in seen and not any(each.done() for each in deciding):
                    time.sleep(0)
        finally:
            over.set()
        for one in deciding:
            one.result(timeout=120)
    assert set(seen) == {("from_one", "one"), ("from_two", "two")}, seen
    shutil.rmtree(versions[0])


def test_what_was_looked_up_first_is_not_put_in_force_last(memory: Memory) -> None:
    """One thread sees a change and is held up before it puts it in force; another sees the next: the later one stays."""
    door = Door(policies.engine(memory.root, memory.grants), lambda event: None, now)
    first, second = (policies.engine(memory.root, memory.grants) for _ in range(2))
    waiting, go = threading.Event(), threading.Event()
    queue = [first, second]

    def look() -> object:
        found = queue.pop(0)
        if found is first:
            waiting.set()
            assert go.wait(60)
        return found

    door.watch(look)  # type: ignore[arg-type]
    one = threading.Thread(target=door.generation)
    one.start()
    assert waiting.wait(60)
    other = threading.Thread(target=door.generation)
    other.start()
    go.set()
    one.join(60)
    other.join(60)
    assert door._engine is second


def test_an_exception_ends_in_the_middle_of_a_session_and_with_the_clock(memory: Memory) -> None:
    """The clock of the moment says whether it is over, at each decision: also one that is set on by a year, or back."""
    instant = [datetime(2026, 11, 30, 12, tzinfo=UTC)]
    rule = written(memory, agent(memory), "Rule", type="policy", body=body())
    task = "task-me-0123abcd"
    ends = instant[0] + timedelta(hours=1)
    more = f'exception_to = "pol-L2-001"\ntask = "{task}"\nexpires_at = {ends.isoformat()}\n'
    lifted = written(memory, agent(memory), "Exception", type="policy", body=body("pol-L2-002", rego="", more=more))
    for entry in (rule, lifted):
        assert isinstance(approve(memory, owner(memory), proposed(memory, entry)), Promoted)
    running = open_memory(memory.root, memory.grants, clock=lambda: instant[0])
    session = agent(running, task=task)

    def may() -> bool:
        done = put(running, session, f"How {instant[0]}", type="method")
        assert isinstance(done, Written) or (isinstance(done, Refused) and done.code == "no_methods"), done
        return isinstance(done, Written)

    for minutes, expected in ((0, True), (59, True), (60, False), (600_000, False), (30, True), (60, False)):
        instant[0] = ends + timedelta(minutes=minutes - 60)
        assert may() is expected, minutes
    running.close()

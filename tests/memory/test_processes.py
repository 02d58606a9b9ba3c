"""Many processes on one root, and many threads on one memory, at once and through the whole walk.

Nothing fails, nothing is lost, the logs stay linked.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from amem.logs.reader import verify
from amem.memory import read
from amem.memory.outcomes import Hits, Served, Written
from amem.memory.session import Memory
from amem.memory.t0 import Page, t0
from amem.model.entry import Status
from amem.model.label import Label
from amem.record.rows import Filter, Row
from tests.memory.seed import agent, lines, put, written

PROCESSES = 8
WRITES = 50

PROGRAM = """
import json, sys
from pathlib import Path
from amem.memory import read
from amem.memory.draft import draft
from amem.memory.outcomes import Hits, Served, Written
from amem.memory.session import agent_session, open_memory
from amem.memory.write import write
from amem.model import ids
from amem.settings import grants
from amem.settings.root import Root

path, number, writes, shared = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
root = Root(Path(path))
memory = open_memory(root, grants.load(root.grants))
session = agent_session(memory, id=ids.draw("session"), principal=f"agent:p{number}", domain="dom-me")
print("ready", flush=True)
sys.stdin.readline()
written, replaced = [], []
for n in range(writes):
    done = write(memory, session, draft(type="fact", title=f"Zebra {number} {n}", body=f"Body of {number} {n}."))
    assert isinstance(done, Written), done
    written.append(done.entry.id)
    found = read.search(memory, session, f"zebra {number} {n}", limit=5)
    assert isinstance(found, Hits) and found.hits
    opened = read.get(memory, session, done.entry.id)
    assert isinstance(opened, Served) and opened.body == f"Body of {number} {n}.", opened
    if n == writes // 2:  # all of them try to replace the same entry
        outcome = write(memory, session, draft(type="fact", title="Successor", body="s", supersedes=[shared]))
        if isinstance(outcome, Written):
            replaced.append(outcome.entry.id)
memory.close()
print(json.dumps([written, replaced]))
"""


def test_eight_processes_lose_nothing(memory: Memory, tmp_path: Path) -> None:
    shared = written(memory, agent(memory), "Shared")
    program = tmp_path / "worker.py"
    program.write_text(PROGRAM)
    workers = [
        subprocess.Popen(
            [sys.executable, str(program), str(memory.root.path), str(number), str(WRITES), shared.id],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(PROCESSES)
    ]  # fmt: skip
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n", worker.communicate()[1]
    results = []
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        out, err = worker.communicate(timeout=300)
        assert worker.returncode == 0, err
        results.append(json.loads(out))
    mine = {id for done, _ in results for id in done}
    successors = {id for _, done in results for id in done}
    assert len(mine) == PROCESSES * WRITES
    assert len(successors) >= 1

    on_disk = {path.stem for path, _ in memory.store.walk()}
    assert on_disk == mine | successors | {shared.id}
    everything = Filter(max_label=Label.RESTRICTED)

    def rows() -> dict[str, Row]:
        return {row.id: row for row in memory.index.list(everything, status=None, limit=0).rows}

    before = rows()
    assert set(before) == on_disk
    memory.index.rebuild()
    assert rows() == before
    assert memory.store.read(shared.id).status is Status.SUPERSEDED

    for log in ("decisions", "reads", "writes"):
        assert verify(memory.root.state / f"{log}.jsonl") == []
    assert {line["entry"] for line in lines(memory, "writes")} == on_disk
    assert len(lines(memory, "reads")) == 2 * PROCESSES * WRITES


def test_sessions_in_threads_share_one_memory(memory: Memory) -> None:
    old = [written(memory, agent(memory), f"Old {n}") for n in range(4)]

    def work(number: int) -> tuple[list[str], int]:
        session, mine = agent(memory, f"agent:t{number}"), list[str]()
        for n in range(10):
            mine.append(written(memory, session, f"Zebra {number} {n}").id)
            found = read.search(memory, session, f"zebra {number} {n}")
            assert isinstance(found, Hits)
            assert found.hits
            assert isinstance(read.get(memory, session, mine[-1]), Served)
            assert isinstance(t0(memory, session), Page)
        replaced = [put(memory, session, "New", supersedes=[entry.id]) for entry in old]
        return mine, sum(isinstance(each, Written) for each in replaced)

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(work, range(6)))
    assert len({id for mine, _ in results for id in mine}) == 60
    assert sum(count for _, count in results) >= len(old)
    for log in ("decisions", "reads", "writes"):
        assert verify(memory.root.state / f"{log}.jsonl") == []

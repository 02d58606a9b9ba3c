"""The tasks that one operation has in hand, in one transaction.

`Work` keeps the state before and after, applies each event with the pure projection, and writes both at the end. It never
decides anything.
"""

from collections.abc import Collection, Sequence

from amem.ledger import events as ev
from amem.ledger import rows
from amem.ledger.backend import Tx
from amem.ledger.projection import changed, replay, touched
from amem.ledger.rank import DEFAULT, Rubric, family
from amem.ledger.task import Task, not_found
from amem.typed import Any


class Work:
    """The tasks that one operation has loaded and locked, and what it does to them."""

    def __init__(self, tx: Tx, rubric: Rubric = DEFAULT) -> None:
        self.tx = tx
        self.rubric = rubric
        self.tasks: dict[str, Task] = {}
        self.log: list[tuple[ev.Event, Task]] = []
        self._before: dict[str, Task] = {}
        self._waiting: dict[str, frozenset[str]] = {}
        self._texts: dict[str, str] = {}
        self._now: int | None = None

    def load(self, ids: Collection[str]) -> list[Task]:
        """Load and lock those of the tasks that are there, in the order asked for."""
        missing = [one for one in dict.fromkeys(ids) if one not in self.tasks]
        if missing:
            for row in self.tx.rows("lock", {"ids": missing}):
                task = rows.task(row)
                self.tasks[task.id] = self._before[task.id] = task
        return [self.tasks[one] for one in ids if one in self.tasks]

    def get(self, task: str) -> Task:
        """Load and lock one task. Raises NotFoundError."""
        found = self.load([task])
        if not found:
            raise not_found(task)
        return found[0]

    def ids(self, query: str, **values: Any) -> list[str]:
        """The ids that a statement finds."""
        return [row[0] for row in self.tx.rows(query, {"domain": self.tx.domain, **values})]

    def at(self, *tasks: Task) -> int:
        """The time of an event about these tasks: the clock's, never before their latest."""
        if self._now is None:
            self._now = self.tx.now()
        return max(self._now, *(task.changed_ms for task in tasks), 0)

    def keep(self, text: str, digest: str) -> None:
        """Keep a long text beside the events."""
        self._texts[digest] = text

    def do(self, event: ev.Event) -> Task:
        """Apply one event to the tasks in hand and return the event's own task after it."""
        wanted = self._whose(event)
        if wanted is not None and wanted not in self._waiting:
            self._waiting[wanted] = frozenset(self.ids("waiting", id=wanted))
        self.load([one for one in touched(event, self._waiting) if one not in self.tasks])
        new = changed(self.tasks, self._waiting, event)
        self.tasks.update((task.id, task) for task in new)
        self.log.append((event, new[0]))
        return new[0]

    def flush(self) -> None:
        """Write every event, then every task that differs."""
        for digest, text in self._texts.items():
            self.tx.run("keep_text", {"digest": digest, "text": text})
        seqs: dict[str, int] = {}
        for event, _ in self.log:
            seq = append(self.tx, event)
            if isinstance(event, ev.Created):
                seqs[event.task] = seq
        for task in self.tasks.values():
            before = self._before.get(task.id)
            if before is None:
                self.tx.insert({**row(task), "seq": seqs[task.id], "domain": self.tx.domain})
            elif before is not task and (columns := rows.changes(before, task)):
                self.tx.update(task.id, columns)
            if before is None or before.depends_on != task.depends_on:
                needs(self.tx, task, fresh=before is None)

    @staticmethod
    def _whose(event: ev.Event) -> str | None:
        match event:
            case ev.Completed():
                return event.task
            case ev.Created(replaces=old):
                return old
            case _:
                return None


def row(task: Task) -> dict[str, Any]:
    """Every column of a new row but `seq` and `domain`."""
    return {**rows.columns(task), "family": family(task.origin)}


def append(tx: Tx, event: ev.Event) -> int:
    """Append an event and return its number."""
    values = {
        "task": event.task, "kind": event.kind, "principal": event.by, "at_ms": event.at_ms, "fence": event.fence, "data": ev.data(event),
    }  # fmt: skip
    return int(tx.rows("append", values)[0][0])


def fill(tx: Tx, events: Sequence[ev.Event]) -> None:
    """Put events, and what they come to, into an empty domain."""
    seqs: dict[str, int] = {}
    for event in events:
        seq = append(tx, event)
        if isinstance(event, ev.Created):
            seqs[event.task] = seq
    for task in replay(events).tasks.values():
        tx.insert({**row(task), "seq": seqs[task.id], "domain": tx.domain})
        needs(tx, task, fresh=True)


def needs(tx: Tx, task: Task, *, fresh: bool) -> None:
    """Write whom a task waits on."""
    if not fresh:
        tx.run("drop_needs", {"task": task.id})
    for need in task.depends_on:
        tx.run("add_need", {"task": task.id, "on_task": need})

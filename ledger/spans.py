"""Each transition of a task as a span, `task.<event>`: the task as it is at that time, and none of its words but why it was closed."""

import hashlib

from amem.telemetry import Span, tracer
from amem.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from amem.ledger.events import Event
    from amem.ledger.store import Observe
    from amem.ledger.task import Task


def observer() -> "Observe | None":
    """What the ledger tells of each event; None where no collector is named."""
    found = tracer()
    if found is None:
        return None
    return lambda event, task: found.add(span(event, task))


def span(event: "Event", task: "Task") -> Span:
    """The span of one event. All of a task's are one trace."""
    at_ns = event.at_ms * 1_000_000
    return Span(
        name=f"task.{event.kind}", trace=hashlib.sha256(task.id.encode()).digest()[:16], start_ns=at_ns, end_ns=at_ns,
        attributes={
            "task.id": task.id, "task.domain": task.domain, "task.status": task.status.value, "task.priority": task.priority,
            "task.rank": float(task.rank), "task.attempts": task.fence, "task.creator": task.creator, "task.holder": task.holder,
            "task.origin": task.origin, "task.by": event.by, "task.session": task.session,
            "task.reason": task.reason if event.kind == "invalidated" else None,
        },
    )  # fmt: skip

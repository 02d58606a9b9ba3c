"""What a session used by its harness's own account, where the egress could not see its calls: they went through a login's tunnel.

Read from a private home that a sandbox wrote, so as hostile input: through the one safe reader, bounded, and never raised for. What it
says is kept as the harness's word (`source: harness`), on the plan, and counts against no spend limit; a session that was metered is
not counted a second time.
"""

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO

from amem.harnesses import totals
from amem.hooks import turns
from amem.launch.leftover import matching
from amem.model import clock, ids
from amem.model.call import Billing, ObservedBy, Usage
from amem.sandbox.reader import Refused, read_file
from amem.typed import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from amem.launch.run import Prepared
    from amem.settings.root import Root

MAX_FILES = 200
MAX_FILE_BYTES = 64 << 20
MAX_BYTES = 512 << 20
"""Of all files together: empty ones of that size cost a session nothing, and its launcher a minute."""
_WINDOW = ("used_percent", "window_minutes", "resets_at", "resets_in_seconds")


class Counted(NamedTuple):
    """A harness's own account of a session."""

    models: Mapping[str, Usage]
    window: Mapping[str, float]
    """How much of the plan's window is used, where it says so."""


def read(ready: "Prepared") -> Counted:
    """Add up what the harness left in the private home; nothing where it leaves nothing that can be read."""
    harness = ready.plan.harness
    found = totals.read(harness.name, _files(ready.home, harness.usage, harness.transcript_shape))
    window: dict[str, float] = {name: found.window[name] for name in _WINDOW if _number(found.window.get(name))}
    return Counted({_name(model): used for model, used in found.models.items()}, window)


def _files(home: str, patterns: tuple[str, ...], shape: str | None = None) -> Iterator[Iterable[totals.Event]]:
    """The events of each file, the last one written first, one file in memory at a time."""
    left = MAX_BYTES
    for path in matching(home, patterns)[:MAX_FILES]:
        data = read_file(home, path, min(left, MAX_FILE_BYTES))
        if not isinstance(data, Refused):
            left -= len(data)
            yield turns.unrepeated(shape, turns.events([data] if path.endswith(".json") else BytesIO(data)))


def keep(root: "Root", ready: "Prepared", task: str | None, counted: Counted) -> None:
    """Write the account into the usage store, unless the egress metered this session. Raises database.Error."""
    from amem.egress import meter, reading

    metered = reading.report(root, session=ready.id, source=ObservedBy.EGRESS)
    if not counted.models or any(row["input"] or row["output"] for row in metered):
        return
    plan, at = ready.plan, clock.stamp(clock.now())
    meter.keep(root, (
        meter.CallRow(
            id=ids.draw("call"), at=at, session=ready.id, domain=plan.domain, principal=plan.principal, task=task,
            destination=plan.destination, model=model, dialect=next(iter(plan.harness.dialects), "tls"), status=200,
            billing=Billing.PLAN, source=ObservedBy.HARNESS, input=used.input, output=used.output, cache_read=used.cache_read,
            cache_write=used.cache_write, reasoning=used.reasoning,
        )
        for model, used in counted.models.items()
    ))  # fmt: skip


def sentence(window: Mapping[str, float]) -> str | None:
    """How much of the plan is used, for a person."""
    if "used_percent" not in window:
        return None
    hours = window.get("window_minutes", 0) / 60
    return f"{window['used_percent']:g} % of the plan's window{f' of {hours:g} hours' if hours else ''} is used, says the harness"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12


def _name(model: str) -> str:
    """A model's name as a row may hold it: short, and nothing that acts on a terminal."""
    return model[:128] if model.isprintable() else totals.UNKNOWN

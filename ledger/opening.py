"""Which ledger a root has: SQLite under the root, or the server that `[ledger] url` names. psycopg is imported only for the latter."""

import os
from contextlib import suppress
from pathlib import Path

from amem.ledger.backend import Backend
from amem.ledger.reading import Reading
from amem.settings.grants import Grants
from amem.settings.root import Root
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amem.ledger.events import Event
    from amem.ledger.store import Ledger, Observe
    from amem.ledger.task import Task

COLLECTORS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""As in `telemetry`, which is not imported without one."""


def open_ledger(
    root: Root, grants: Grants, observe: "Observe | None" = None, rubric: "Callable[[str], Mapping[str, Any] | None] | None" = None
) -> "Ledger":
    """Open the root's ledger; the caller closes it. `rubric` finds what a domain's policies say of ranks; nothing is the default.

    Raises UnavailableError, ConfigError.
    """
    from amem.ledger import rank
    from amem.ledger.operations import Operations

    told = [each for each in (observe, spans()) if each is not None]
    heard = told[0] if len(told) == 1 else _each(told) if told else None
    return Operations(_backend(root, grants), heard, lambda domain: rank.rubric(rubric(domain) if rubric is not None else None))


def _each(observers: "Sequence[Observe]") -> "Observe":
    def observe(event: "Event", task: "Task") -> None:
        for each in observers:
            each(event, task)

    return observe


def spans() -> "Observe | None":
    """Tells an OpenTelemetry collector of each transition, where the environment names one."""
    if not any(os.environ.get(name) for name in COLLECTORS):
        return None
    from amem.ledger.spans import observer

    return observer()


def open_reading(root: Root, grants: Grants) -> Reading:
    """The same for questions alone: it loads none of the rules, and starts in half the time."""
    return Reading(_backend(root, grants))


def identity(root: Root, grants: Grants) -> str:
    """Which ledger a root has, in a word that goes into a log."""
    if grants.ledger_url is None:
        return "sqlite"
    return f"postgres:{grants.ledger_space or own_space(root.state / 'ledger.space')}"


def _backend(root: Root, grants: Grants) -> Backend:
    if grants.ledger_url is None:
        from amem.ledger.sqlite import Sqlite

        return Sqlite(root.ledger)
    from amem.ledger.postgres import Postgres

    return Postgres(grants.ledger_url, space=grants.ledger_space or own_space(root.state / "ledger.space"))


def own_space(path: Path) -> str:
    """The space of a root that names none: random, drawn on first use and kept in this file, so that no other root has it."""
    drawn = f"root-{os.urandom(8).hex()}"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{drawn}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="ascii") as file:
        file.write(drawn + "\n")
        os.fsync(file.fileno())
    # A link is made whole or not at all, and never over one that is there: the first process wins.
    with suppress(FileExistsError):
        os.link(fresh, path)
    os.unlink(fresh)
    return path.read_text(encoding="ascii").strip()

"""A work tree that is kept around a session, for `session diff` and `session undo`; only a launch with `--snapshot` loads it."""

from collections.abc import Callable, Sequence

from amem.errors import UnavailableError
from amem.launch.attend import Outcome
from amem.launch.snapshot import Store
from amem.settings.root import Root

FIRST = "keeping the tree as it is, for undo; only the first time is every file read"


class Kept:
    """The tree as it was before the session, and then as it was after it. What no snapshot has is told with the outcome."""

    def __init__(self, root: Root, workdir: str, session: str, outcome: Outcome) -> None:
        self._store = Store(root, workdir)
        self._session = session
        self._outcome = outcome

    def before(self, note: Callable[[str], None]) -> None:
        """Keep the tree as it is. Raises UnavailableError."""
        self._outcome.notes += _not_kept(self._store.take(self._session, "before", lambda: note(FIRST)))

    def after(self, *, moved: bool) -> None:
        """Keep the tree as the session left it. Where that cannot be, the session still ended as it did."""
        try:
            if moved:
                raise UnavailableError("another folder stands there now, or none")
            were = self._store.about(self._session).left_out
            self._outcome.notes += _not_kept([path for path in self._store.take(self._session, "after") if path not in were])
        except (UnavailableError, OSError) as error:
            self._outcome.notes.append(f"the tree was not kept as the session left it: {getattr(error, 'message', error)}")


def _not_kept(paths: Sequence[str]) -> list[str]:
    """The sentence about files that a snapshot does not have, if there are any."""
    named = ", ".join(paths[:8]) + (f" and {len(paths) - 8} more" if len(paths) > 8 else "")
    return [f"not in the snapshot, too large, not readable or of a name that git does not take: {named}"] if paths else []

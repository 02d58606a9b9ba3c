"""What the machine says no with, in our words: a full disk, a file of another user, a damaged database. Loaded once something failed.

Each answer names the file, the reason, and one command that shows more of it or mends it.
"""

import errno
import os
import shlex
from contextlib import suppress
from pathlib import Path

from amem.errors import AmemError, IntegrityError, UnavailableError
from amem.settings.root import Root

_OF_DATABASE = ("OperationalError", "DatabaseError")
"""SQLite's words; its module is not named here, because most commands never load it."""


def told(error: Exception, root: Root) -> AmemError | None:
    """The machine's no; None for a fault of ours."""
    if isinstance(error, OSError):
        return _of_file(error, root)
    return _of_database(error, root) if type(error).__name__ in _OF_DATABASE else None


def _of_file(error: OSError, root: Root) -> AmemError:
    named = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    what = f"{named}: " if named else "the current directory: " if error.errno == errno.ENOENT else ""
    return UnavailableError(f"{what}{error.strerror or error}", hint=_look(error.errno, named, root))


def _look(number: int | None, path: str, root: Root) -> str:
    """The command that shows why."""
    if number in (errno.ENOSPC, errno.EDQUOT):
        return "df -h; df -i"
    if number == errno.EROFS and path:
        return f"findmnt -T {shlex.quote(_there(path))}"
    if not path or (Path(path).is_relative_to(root.path) and number in (errno.EACCES, errno.EPERM)):
        return "amem doctor"  # it knows how everything of a root should be
    return f"namei -l {shlex.quote(path)}"  # owner and mode of each folder on the way


def _there(path: str) -> str:
    """The nearest folder on the way to a path that is there."""
    while not os.path.exists(path) and path not in ("", "/"):
        path = os.path.dirname(path)
    return path or "."


def _of_database(error: Exception, root: Root) -> AmemError:
    """SQLite says what is wrong and not of which file: each of the root's is asked."""
    from amem.settings import database

    if "readonly" in str(error):
        number = errno.EROFS if os.path.exists(root.state) and os.statvfs(root.state).f_flag & os.ST_RDONLY else errno.EACCES
        return UnavailableError(f"{root.state}: {os.strerror(number)}", hint=_look(number, str(root.state), root))
    if "full" in str(error):
        return UnavailableError(f"{root.state}: {error}", hint="df -h; df -i")
    with suppress(database.Error):
        for path in (root.index, root.usage, root.ledger):
            if path.exists() and database.damage(path) is not None:  # what it finds there can be many lines of its own
                return IntegrityError(f"{path}: {error}", hint="amem reindex" if path == root.index else "amem doctor")
    return UnavailableError(f"a database under {root.state}: {error}", hint="amem doctor")

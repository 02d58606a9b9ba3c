"""Which SQLite library amem uses, and how a database under a root is opened.

SQLite before 3.51.3 can corrupt a WAL file when two connections write and checkpoint at the same moment, and amem is many
processes on one file; so the wheel with a newer library is used, and an older one is refused. Two SQLite libraries
must never open one file in one process: this module is the only place that picks.
"""

from pathlib import Path

from amem.errors import UnavailableError
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
else:
    try:
        import pysqlite3.dbapi2 as sqlite3
    except ImportError:  # a platform without a wheel: the interpreter's own, if it is new enough
        import sqlite3

Connection = sqlite3.Connection
Row = sqlite3.Row
Error = sqlite3.Error
OperationalError = sqlite3.OperationalError
IntegrityError = sqlite3.IntegrityError

_OLDEST = (3, 51, 3)


def connect(path: Path, *, durable: bool, read_only: bool = False, **options: Any) -> sqlite3.Connection:
    """Open a database in WAL mode with a busy timeout of 10 s, in explicit-transaction mode.

    `durable` syncs every commit (the ledger, usage); without it a power cut may lose the last commits of what can be
    rebuilt (the index). Raises UnavailableError on a library too old.
    """
    if sqlite3.sqlite_version_info < _OLDEST:
        raise UnavailableError(
            f"SQLite {sqlite3.sqlite_version} can corrupt a shared file; {'.'.join(map(str, _OLDEST))} or newer is needed",
            hint="python3 -m pip install pysqlite3",
        )
    if read_only:
        connection: sqlite3.Connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None, **options)
    else:
        connection = sqlite3.connect(path, isolation_level=None, **options)
        connection.execute("pragma journal_mode=wal")
        connection.execute(f"pragma synchronous={'full' if durable else 'normal'}")
    connection.execute("pragma busy_timeout=10000")
    return connection


def damage(path: Path) -> str | None:
    """What SQLite finds wrong with the file of a database; None for one that is whole.

    Raises database.OperationalError where it was kept from looking, by a full disk above all.
    """
    try:
        connection = connect(path, durable=False, read_only=True)
        try:
            found = str(connection.execute("pragma quick_check(1)").fetchone()[0])
        finally:
            connection.close()
    except OperationalError:
        raise
    except Error as error:
        return str(error)
    return None if found == "ok" else found

"""A real PostgreSQL for tests and benchmarks: the one `MEMORY_PG_URL` names, else one of our own from the system's programs.

Our own listens on a Unix socket in a temporary folder, belongs to the user `postgres` when we are root (PostgreSQL refuses root),
and is gone when the context ends.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path


class Absent(Exception):
    """There is no PostgreSQL here; the text says why."""


class Server:
    """One cluster: its address, and the switch to stop and start it where it is our own."""

    def __init__(self, dsn: str, folder: Path | None = None, programs: Path | None = None, durable: bool = True) -> None:
        self.dsn = dsn
        self._sync = "on" if durable else "off"
        self._folder = folder
        self._programs = programs

    @property
    def own(self) -> bool:
        """Whether it is ours to restart."""
        return self._folder is not None

    def start(self) -> None:
        self._control("start", "-w", "-t", "30", "-l", f"{self._folder}/log", "-o", f"-k {self._folder} -h '' -c fsync={self._sync}")

    def stop(self, mode: str = "fast") -> None:
        self._control("stop", "-w", "-t", "30", "-m", mode)

    def _control(self, *words: str) -> None:
        run([f"{self._programs}/pg_ctl", "-D", f"{self._folder}/data", *words])


@contextlib.contextmanager
def server(*, url: str | None = None, durable: bool = False) -> Iterator[Server]:
    """A running server; one of our own syncs its commits only where it is `durable`. Raises Absent."""
    url = url or os.environ.get("MEMORY_PG_URL")
    if url:
        yield Server(url)
        return
    programs = newest_programs()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
        run([f"{programs}/initdb", "-D", f"{folder}/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
        ours = Server(f"host={folder} user=postgres dbname=postgres", folder, programs, durable)
        ours.start()
        try:
            yield ours
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                ours.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def newest_programs() -> Path:
    """The folder of the newest server programs. Raises Absent."""
    found = sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise Absent("no PostgreSQL on this machine: set MEMORY_PG_URL, or apt-get install postgresql")
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            raise Absent("PostgreSQL refuses to run as root and there is no user postgres") from None
    return found[-1].parent


def run(command: list[str]) -> None:
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--", *command]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


@contextlib.contextmanager
def database(server: Server) -> Iterator[str]:
    """The address of a new, empty database; dropped afterwards."""
    import psycopg
    from psycopg.conninfo import make_conninfo

    name = f"amem_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        # Copying the template's files is several times faster than logging them, where the server knows how.
        how = " strategy file_copy" if connection.info.server_version >= 150000 else ""
        connection.execute(f"create database {name}{how}".encode())
    try:
        yield make_conninfo(server.dsn, dbname=name)
    finally:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"drop database {name} with (force)".encode())

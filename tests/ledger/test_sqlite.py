"""What only SQLite can do to a ledger: files, locks, the clock of one machine."""

import errno
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from amem.errors import IntegrityError, UnavailableError
from amem.ledger.operations import Operations
from amem.ledger.sqlite import HostClock, Sqlite
from amem.ledger.store import Ledger
from amem.ledger.task import Status
from amem.settings import database
from tests.ledger.worlds import BOT, DOM, START_MS, admitted, claimed, completed, filed, listing


class Host:
    """A machine whose clocks the test sets."""

    def __init__(self) -> None:
        self.boot, self.up_ms, self.wall_ms = "one", 1_000, START_MS

    def open(self, path: Path) -> Ledger:
        return Operations(Sqlite(path, host=HostClock(lambda: self.boot, lambda: self.up_ms, lambda: self.wall_ms)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.sqlite"


def test_files_are_the_owners_alone(path: Path) -> None:
    with Operations(Sqlite(path)) as ledger:
        filed(ledger)
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


def test_link_in_the_place_of_the_file_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnavailableError, match=r"ledger\.sqlite"):
        Sqlite(path)
    assert not (tmp_path / "elsewhere").exists()


def test_opening_it_again_keeps_the_locks_of_the_first_connection(path: Path) -> None:
    """POSIX drops every lock that a process has on a file when it closes any descriptor of that file."""
    script = (
        "import sys; from pathlib import Path; from amem.ledger.sqlite import Sqlite; first = Sqlite(Path(sys.argv[1]))\n"
        "second = Sqlite(Path(sys.argv[1])); inode = Path(sys.argv[1]).stat().st_ino\n"
        "print(sum(f':{inode} ' in line for line in open('/proc/locks')))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 1


def test_what_was_answered_is_there_after_a_power_cut(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is what the files held when they were last synced."""
    disk = tmp_path / "disk"

    def sync(file: int) -> None:
        assert os.path.samestat(os.fstat(file), os.stat(f"{path}-wal"))
        shutil.copytree(path.parent, disk, dirs_exist_ok=True)

    monkeypatch.setattr("amem.ledger.sqlite._sync", sync)

    def after_the_cut(task: str) -> list[str]:
        with Operations(Sqlite(shutil.copytree(disk, tmp_path / "later", dirs_exist_ok=True) / path.name)) as ledger:
            return [event.kind for event in ledger.events(task)]

    with Operations(Sqlite(path)) as ledger:
        task = admitted(ledger)
        assert after_the_cut(task.id) == ["created", "admitted"]
        claim = claimed(ledger)
        assert after_the_cut(task.id) == ["created", "admitted", "claimed"]
        completed(ledger, claim)
        assert after_the_cut(task.id)[-1] == "completed"


def test_answer_that_was_lost_is_synced_before_it_is_given_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever committed may have been killed before the disk had it."""
    synced: list[int] = []
    with Operations(Sqlite(path)) as one, Operations(Sqlite(path)) as two:
        admitted(one)
        task = claimed(one)
        completed(one, task)
        monkeypatch.setattr("amem.ledger.sqlite._sync", synced.append)
        assert completed(two, task).status is Status.COMPLETED
    assert synced


def test_others_write_while_one_waits_for_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = []

    def sync(file: int) -> None:
        with open(f"{path}.turn") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            turns.append(file)

    with Operations(Sqlite(path)) as ledger:
        monkeypatch.setattr("amem.ledger.sqlite._sync", sync)
        filed(ledger)
    assert turns


def test_disk_that_fails_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sync(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with Operations(Sqlite(path)) as ledger:
        monkeypatch.setattr("amem.ledger.sqlite._sync", sync)
        with pytest.raises(UnavailableError, match="Input/output error: what was asked may have happened"):
            filed(ledger)


def test_log_is_synced_before_it_goes_into_the_database(path: Path) -> None:
    backend = Sqlite(path)
    assert backend._connection.execute("pragma synchronous").fetchone() == (1,)
    assert backend._connection.execute("pragma journal_mode").fetchone() == ("wal",)
    backend.close()


@pytest.mark.parametrize("step_ms", [-7_200_000, 7_200_000])
def test_step_of_the_wall_clock_ends_no_lease_and_prolongs_none(path: Path, step_ms: int) -> None:
    host = Host()
    with host.open(path) as ledger:
        admitted(ledger)
        task = claimed(ledger, lease_ms=60_000)
        host.wall_ms += step_ms
        host.up_ms += 59_000
        assert ledger.heartbeat(task.id, by=BOT, fence=1, lease_ms=60_000).status is Status.CLAIMED
        host.up_ms += 60_000
        assert claimed(ledger, by="agent:other").fence == 2


def test_time_goes_on_when_the_wall_clock_was_set_back(path: Path) -> None:
    host = Host()
    with host.open(path) as ledger:
        before = filed(ledger).created_ms
        host.wall_ms -= 7_200_000
        host.up_ms += 500
        assert filed(ledger).created_ms == before + 500


def test_clock_never_goes_back_over_a_boot(path: Path) -> None:
    host = Host()
    with host.open(path) as ledger:
        before = filed(ledger).created_ms
    host.boot, host.up_ms, host.wall_ms = "two", 5, START_MS - 86_400_000
    with host.open(path) as ledger:
        after = filed(ledger).created_ms
        assert after >= before
        host.up_ms += 10
        assert filed(ledger).created_ms == after + 10


def test_clock_that_was_set_wrong_is_put_right_once_nobody_holds_a_lease(path: Path) -> None:
    host = Host()
    host.wall_ms = START_MS - 86_400_000
    with host.open(path) as ledger:
        admitted(ledger)
        task = claimed(ledger, lease_ms=60_000)
        host.wall_ms = START_MS
        assert ledger.now_ms() < START_MS - 86_000_000
        completed(ledger, task)
        assert filed(ledger).created_ms == START_MS


def test_lease_outlasts_a_boot_by_the_wall_clock(path: Path) -> None:
    host = Host()
    with host.open(path) as ledger:
        admitted(ledger)
        claimed(ledger, lease_ms=600_000)
    host.boot, host.up_ms, host.wall_ms = "two", 30_000, host.wall_ms + 120_000
    with host.open(path) as ledger:
        assert ledger.claim(DOM, by="agent:other") is None
        host.up_ms += 600_000
        assert claimed(ledger, by="agent:other").fence == 2


def test_first_opening_from_many_threads_at_once(path: Path) -> None:
    start, failures = threading.Barrier(8), []

    def work() -> None:
        start.wait()
        try:
            with Operations(Sqlite(path)) as ledger:
                filed(ledger)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Operations(Sqlite(path)) as ledger:
        assert ledger.list(listing()).total == 8


def test_one_ledger_serves_many_threads(path: Path) -> None:
    with Operations(Sqlite(path)) as ledger:
        for _ in range(40):
            admitted(ledger)
        got: list[str] = []

        def work() -> None:
            while (task := ledger.claim(DOM, by=BOT)) is not None:
                got.append(task.id)
                completed(ledger, task)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == len(set(got)) == 40


def test_file_that_is_no_database_is_said(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database, " * 500)
    with pytest.raises((IntegrityError, UnavailableError), match=r"ledger\.sqlite"):
        Sqlite(path)


def test_ledger_of_a_later_amem_is_left_alone(path: Path) -> None:
    Sqlite(path).close()
    connection = database.connect(path, durable=True)
    connection.execute("pragma user_version = 99")
    connection.close()
    with pytest.raises(UnavailableError, match="later amem"):
        Sqlite(path)


def test_an_operation_that_fails_midway_leaves_nothing(path: Path) -> None:
    with Operations(Sqlite(path)) as ledger:
        task = admitted(ledger)
        connection = database.connect(path, durable=True)
        connection.execute("create trigger full before update on task begin select raise(abort, 'database or disk is full'); end")
        with pytest.raises((IntegrityError, UnavailableError)):
            ledger.post(task.id, by=BOT, text="x")
        connection.execute("drop trigger full")
        connection.close()
        assert [event.kind for event in ledger.events(task.id)] == ["created", "admitted"]
        assert ledger.text(DOM, "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881") is None


def test_locks_are_let_go_when_an_operation_fails(path: Path) -> None:
    with Operations(Sqlite(path)) as one, Operations(Sqlite(path)) as two:
        with pytest.raises(ZeroDivisionError):
            one._backend.change(DOM, lambda tx: 1 // 0)
        filed(two)
        assert os.path.exists(f"{path}.turn")

"""The limits of a session, for real: what the kernel holds, what PID 1 ends, and which of them is named."""

import fcntl
import os
import socket
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from amem.sandbox import init
from tests.sandbox.launching import Place

MIB = 1 << 20

HOLDS = """
import os, sys, time
each, count = int(sys.argv[1]), int(sys.argv[2])
for _ in range(count):
    if os.fork() == 0:
        kept = bytearray(b"x") * (each << 20)
        time.sleep(600)
        os._exit(len(kept) % 2)
print("all forked", flush=True)
time.sleep(600)
"""
"""`count` processes that each hold so many MiB, and wait."""

SHARES = """
import ctypes, mmap, os, sys, time
each, count, apart, hidden = int(sys.argv[1]) << 20, int(sys.argv[2]), sys.argv[3] == "apart", sys.argv[4:] == ["hidden"]
common = mmap.mmap(-1, each)
for _ in range(count):
    if os.fork() == 0:
        if hidden:
            ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE
        kept = mmap.mmap(-1, each) if apart else common
        for at in range(0, each, 4096):
            kept[at] = 1
        time.sleep(600)
time.sleep(600)
"""
"""`count` processes with so many MiB of shared memory, each of its own or all of the same."""

KEEPS = """
import ctypes, os, sys, time
size, way = int(sys.argv[1]) << 20, sys.argv[2]
libc = ctypes.CDLL(None)
if way == "segment":
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(0, ctypes.c_size_t(size), 0o1600)
    at = ctypes.c_void_p(libc.shmat(segment, None, 0))
    ctypes.memset(at, 1, size)
    libc.shmdt(at)
else:
    if way == "hidden file":
        libc.prctl(4, 0)  # PR_SET_DUMPABLE
    kept = os.memfd_create("kept")
    for _ in range(size >> 20):
        os.write(kept, b"x" * (1 << 20))
time.sleep(600)
"""
"""One process with so many MiB that it has not mapped."""

TABLES = """
import mmap, sys, time
kept = mmap.mmap(-1, (int(sys.argv[1]) << 20) // 4096 << 21, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
kept.madvise(15)  # MADV_NOHUGEPAGE
for at in range(0, len(kept), 2 << 20):
    kept[at]
time.sleep(600)
"""
"""One process for which the kernel keeps so many MiB of page tables, and that has nothing in them."""

SWAPS = """
import mmap, os, sys, time
each, count, kind = int(sys.argv[1]) << 20, int(sys.argv[2]), sys.argv[3]
common = mmap.mmap(-1, each)
for _ in range(count):
    if os.fork() == 0:
        kept = common if kind == "common" else mmap.mmap(-1, each, mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_" + kind))
        for at in range(0, each, 4096):
            kept[at : at + 16] = os.urandom(16)
        kept.madvise(21)  # MADV_PAGEOUT
        time.sleep(600)
    time.sleep(0.3)
time.sleep(600)
"""
"""`count` processes that each have so many MiB swapped out, and next to nothing in memory."""

FORKS = """
import os, sys, time
made = 0
try:
    while made < int(sys.argv[1]):
        if os.fork() == 0:
            time.sleep(600)
        made += 1
except BlockingIOError:
    pass
print("forked", made, flush=True)
sys.exit(7)
"""


def test_memory_of_all_processes_together_ends_the_session_and_is_named(here: Place) -> None:
    done = here.launch("{python}", "-c", HOLDS, "60", "8", spec={"limits": {"memory_bytes": 256 * MIB}}, timeout_s=50)
    assert (done["code"], done["limit"]) == (137, "memory"), done


def test_memory_below_the_limit_ends_nothing(here: Place) -> None:
    done = here.launch("{python}", "-c", HOLDS, "20", "4", spec={"limits": {"memory_bytes": 256 * MIB}}, timeout_s=4)
    assert (done["code"], done["limit"]) == (124, None)


@pytest.fixture
def no_other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One at a time of those that fill shared memory: a session that hides its own is taken to have all that came to the machine."""
    with open(tmp_path_factory.getbasetemp().parent / "shared-memory.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.usefixtures("no_other")
@pytest.mark.parametrize("hidden", [(), ("hidden",)], ids=["shown", "hidden"])
def test_shared_memory_counts_and_cannot_be_hidden(here: Place, hidden: tuple[str, ...]) -> None:
    """No limit of a process holds it: it is no data of its own."""
    done = here.launch("{python}", "-c", SHARES, "60", "8", "apart", *hidden, spec={"limits": {"memory_bytes": 256 * MIB}}, timeout_s=50)
    assert (done["code"], done["limit"]) == (137, "memory"), done


@pytest.mark.usefixtures("no_other")
@pytest.mark.parametrize("way", ["file", "hidden file", "segment"])
def test_memory_that_nobody_maps_counts(here: Place, way: str) -> None:
    done = here.launch("{python}", "-c", KEEPS, "600", way, spec={"limits": {"memory_bytes": 256 * MIB}}, timeout_s=50)
    assert (done["code"], done["limit"]) == (137, "memory"), done
    done = here.launch("{python}", "-c", KEEPS, "100", way, spec={"limits": {"memory_bytes": 256 * MIB}}, timeout_s=4)
    assert (done["code"], done["limit"]) == (124, None), done


@pytest.mark.usefixtures("no_other")
def test_memory_that_the_kernel_keeps_for_an_empty_room_counts(here: Place) -> None:
    done = here.launch("{python}", "-c", TABLES, "600", spec={"limits": {"memory_bytes": 256 * MIB}}, timeout_s=50)
    assert (done["code"], done["limit"]) == (137, "memory"), done
    done = here.launch("{python}", "-c", TABLES, "100", spec={"limits": {"memory_bytes": 256 * MIB}}, timeout_s=4)
    assert (done["code"], done["limit"]) == (124, None), done


@pytest.mark.usefixtures("no_other")
def test_what_many_share_counts_once(here: Place) -> None:
    done = here.launch("{python}", "-c", SHARES, "60", "8", "common", spec={"limits": {"memory_bytes": 256 * MIB}}, timeout_s=4)
    assert (done["code"], done["limit"]) == (124, None), done


def swap_free() -> int:
    return int(Path("/proc/meminfo").read_text().partition("SwapFree:")[2].split()[0]) >> 10


@pytest.mark.usefixtures("no_other")
@pytest.mark.skipif(swap_free() < 500, reason="this machine has no swap to put memory into")
@pytest.mark.parametrize("kind", ["PRIVATE", "SHARED"])
def test_memory_that_was_swapped_out_counts(here: Place, kind: str) -> None:
    done = here.launch("{python}", "-c", SWAPS, "50", "8", kind, spec={"limits": {"memory_bytes": 128 * MIB}}, timeout_s=50)
    assert (done["code"], done["limit"]) == (137, "memory"), done
    done = here.launch("{python}", "-c", SWAPS, "50", "8", "common", spec={"limits": {"memory_bytes": 256 * MIB}}, timeout_s=5)
    assert (done["code"], done["limit"]) == (124, None), done


NOWHERE = {"/proc/meminfo": "SwapTotal: 0 kB\nSwapFree: 0 kB\nShmem: 0 kB\nPageTables: 0 kB\n", "/proc/sysvipc/shm": "rss swap\n"}
AWAY = {"/proc/meminfo": "SwapTotal: 900 kB\nSwapFree: 0 kB\nShmem: 0 kB\nPageTables: 5000 kB\n"}


def process(pid: int, swap: int, part: int, private: int, *, hidden: bool = False) -> dict[str, str]:
    """What /proc has of a process with this many KiB of swap in all, by its part, and of its own."""
    rollup = {} if hidden else {f"/proc/{pid}/smaps_rollup": f"Pss_Anon: 4 kB\nPss_Shmem: 0 kB\nSwap: {swap} kB\nSwapPss: {part} kB\n"}
    return {f"/proc/{pid}/status": f"VmSwap: {private} kB\nVmPTE: 0 kB\n", f"/proc/{pid}/statm": "9 1 0 0 0 0 0\n", **rollup}


@pytest.mark.parametrize(
    ("found", "kib"),
    [
        (process(7, 800, 800, 800), 804),
        (process(7, 800, 400, 800) | process(8, 800, 400, 800), 808),  # after a fork
        (process(7, 800, 0, 0) | process(8, 800, 0, 0), 908),  # the same shared memory, which is not more than was swapped out at all
        (process(7, 800, 0, 800, hidden=True), 900),  # no less than was swapped out meanwhile
        ({**process(7, 0, 0, 0), "/proc/sysvipc/shm": "rss swap\n1024 819200\n"}, 805),
    ],
)
def test_what_was_swapped_out_is_added_up_by_whose_it_is(monkeypatch: pytest.MonkeyPatch, found: dict[str, str], kib: int) -> None:
    files = NOWHERE | found

    def read(path: str, mode: str) -> BytesIO:
        if path not in files:
            raise PermissionError(path)
        return BytesIO(files[path].encode())

    def names(folder: str) -> list[str]:
        if folder != "/proc" and folder.replace("/fd", "/smaps_rollup") not in files:
            raise PermissionError(folder)
        return [path.split("/")[2] for path in files if path.endswith("/statm")] if folder == "/proc" else []

    monkeypatch.setattr(init, "open", read, raising=False)
    one_task = os.stat_result((0, 0, 0, 3, *[0] * 6))
    monkeypatch.setattr(init, "os", SimpleNamespace(listdir=names, stat=lambda path: one_task))
    told: list[tuple[object, ...]] = []
    monkeypatch.setattr(init, "send", lambda link, message: told.append(message))
    with socket.socket() as link:
        context = init.Context(link)
        context.shared, context.tables = init._of_all()
        files |= AWAY  # and page tables of others, which are not the session's though one of it hides what it has open
        assert not init._over_bounds(context, (kib << 10, 9)), "counted more than there is"
        assert init._over_bounds(context, ((kib << 10) - 1, 9)), "counted less than there is"
    assert told == [("limit", "memory")]


def test_control_without_the_limits_nobody_looks(here: Place) -> None:
    done = here.launch("{python}", "-c", HOLDS, "60", "8", spec={"limits": {"memory_bytes": 256 * MIB}}, without=["limits"], timeout_s=4)
    assert (done["code"], done["limit"]) == (124, None)


def test_one_process_gets_no_more_than_the_limit_at_once(here: Place) -> None:
    done = here.launch("{python}", "-c", f"kept = bytearray({512 * MIB})", spec={"limits": {"memory_bytes": 256 * MIB}})
    assert done["code"] == 1 and "MemoryError" in done["err"]


def test_processes_are_bounded_and_a_harness_that_fails_for_it_is_told_so(here: Place) -> None:
    done = here.launch("{python}", "-c", FORKS, "200", spec={"limits": {"processes": 40}}, timeout_s=50)
    made = int(done["out"].split()[1])
    assert (done["code"], done["limit"]) == (7, "processes") and 30 <= made < 40, done


def test_processes_below_the_limit_are_not_named(here: Place) -> None:
    done = here.launch("{python}", "-c", FORKS, "20", spec={"limits": {"processes": 40}}, timeout_s=50)
    assert (done["code"], done["limit"], done["out"]) == (7, None, "forked 20\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="not run by root")
def test_where_the_kernel_does_not_count_roots_processes_the_session_is_ended(here: Place) -> None:
    """kuid 0 has no RLIMIT_NPROC: what PID 1 sees is all there is."""
    if here.who != "root":
        pytest.skip("an ordinary user's processes are counted")
    waits = FORKS.replace("sys.exit(7)", "time.sleep(600)")
    done = here.launch("{python}", "-c", waits, "200", spec={"limits": {"processes": 40}}, no_idmap=True, timeout_s=50)
    assert (done["code"], done["limit"]) == (137, "processes"), done


def test_a_file_beyond_its_limit_ends_the_program_that_writes_it(here: Place) -> None:
    done = here.launch("sh", "-c", "exec cat /dev/zero > big", spec={"limits": {"file_size_bytes": MIB}}, timeout_s=50)
    assert done["code"] == 153  # SIGXFSZ
    assert (here.work / "big").stat().st_size == MIB


def test_open_files_and_temporary_space_are_bounded(here: Place) -> None:
    script = "ulimit -n; for n in tmp var/tmp dev/shm; do cat /dev/zero > /$n/fill 2>/dev/null; stat -c '%n %s' /$n/fill; rm /$n/fill; done"
    done = here.launch("sh", "-c", script, spec={"limits": {"tmp_bytes": 64 * MIB, "open_files": 1000}}, timeout_s=50)
    assert done["out"].split() == [
        "1000", *(word for name in ("tmp", "var/tmp", "dev/shm") for word in (f"/{name}/fill", str(64 * MIB))),
    ], done  # fmt: skip


@pytest.mark.parametrize("script", ["echo x; exec sleep 600", "echo x; exit 3"])
def test_a_session_of_which_the_kernel_killed_a_process_for_its_memory_is_ended_and_told_so(here: Place, script: str) -> None:
    report = here.launch("sh", "-c", script, scope=True)
    assert (report["code"] in (3, 137), report["limit"], report["closed"]) == (True, "memory", True)

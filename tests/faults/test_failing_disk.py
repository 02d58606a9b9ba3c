"""A disk that fails under the row of a session: its harness has begun to load itself, and must not go on."""

import os
import subprocess
import sys

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place, confinement, place, provider
from tests.faults.test_killed_launcher import alive

__all__ = ["confinement", "place", "provider"]  # fixtures

FAILING = """
import errno, os, sys
from amem.egress import meter
def to_disk(path, *, folder=False):
    raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
meter.to_disk = to_disk
from amem.cli.main import _stage, run
sys.exit(run(sys.argv[1:], _stage(sys.argv[1:])))
"""


def test_no_harness_outlives_a_row_that_cannot_be_kept(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    words = ["--root", str(place.root), "launch", "--harness", "command", *place.launch_flags(), "--", "sh", "-c", "sleep 600"]
    done = subprocess.run(
        [sys.executable, "-c", FAILING, *words],
        cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert os.strerror(5) in done.stderr
    row = place.amem("session", "list", "--json").json["sessions"][0]
    assert row["exit"] == 1
    assert row["state"] != "running"
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and _runs(pid, row["id"])]


def _runs(pid: str, session: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return session.encode() in environ.read() and bool(alive({int(pid)}))
    except OSError:
        return False

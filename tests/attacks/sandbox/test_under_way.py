"""What one session has under way in sockets, which the kernel counts for all of a user's programs, stops no other launch of the user's."""

import errno
import json
import resource
import subprocess

import pytest

from tests.sandbox.launching import Place

HOLD = """
import array, signal, socket
kept, most = [], 0
try:
    while True:
        kept += socket.socketpair()
        for _ in range(2):
            kept[-1].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1] * 250))])
            most += 250
except OSError as error:
    print("held", most, error.errno, ".", flush=True)
signal.pause()
"""


MOST = resource.getrlimit(resource.RLIMIT_NOFILE)[1]


@pytest.mark.skipif(MOST < 8192, reason="nobody here may have more files open than a session")
def test_what_a_session_has_under_way_stops_no_other_launch(here: Place) -> None:
    (here.work / "hold.py").write_text(HOLD)
    holds = here.start("{python}", "-I", f"{here.work}/hold.py")
    holds.until(b"held")
    most, number = map(int, holds.until(b".").split())
    assert (most >= 4096, number) == (True, errno.ETOOMANYREFS)
    started = {}
    for limit in ("-Sn 512", "-n 2048"):  # the second leaves nothing to raise: the launch that cannot be saved names why (the control)
        command = ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *here.command({"spec": {"argv": ["echo", "started"]}})]
        done = subprocess.run(
            command, **here.ids(), env=here.env(), cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
        )
        started[limit] = json.loads(done.stderr.splitlines()[-1])
    assert started["-Sn 512"]["out"] == "started\n", started
    assert "descriptors under way" in started["-n 2048"]["error"], started

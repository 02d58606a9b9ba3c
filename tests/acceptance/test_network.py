"""The watch on a session's network, by which the real harnesses are judged, sees what is asked for last of all."""

import os
import subprocess
import sys

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place
from tests.acceptance.network import Attempts

ASKS = """
import os, socket
with socket.create_connection(("127.0.0.1", int(os.environ["MEMORY_MCP_URL"].split(":")[2].split("/")[0])), 20):
    print("connected", flush=True)
    open("go").read()
for address in ("192.0.2.1", "2001:db8::1"):
    try:
        socket.create_connection((address, 443), 20)
    except OSError:
        continue
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:  # which a program with a resolver of its own asks
    resolver.sendto(b"a question", ("127.0.0.1", 53))
"""


def test_what_is_asked_for_at_the_end_of_a_session_is_counted(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    os.mkfifo(place.tree / "go")
    launcher = subprocess.Popen(
        place.command("launch", "--harness", "command", *place.launch_flags(), "--", sys.executable, "-c", ASKS), cwd=PROJECT,
        env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    watch = Attempts(launcher.pid)
    watch.start()
    try:
        assert launcher.stdout is not None and launcher.stdout.readline() == "connected\n"
        watch.join(60)
        assert not watch.is_alive(), "the session's network was not found"
        (place.tree / "go").write_text("")
        _, err = launcher.communicate(timeout=60)
    finally:
        launcher.kill()
        launcher.wait()
        counted = watch.end()
    assert launcher.returncode == 0, err
    assert all(counted.values()), counted

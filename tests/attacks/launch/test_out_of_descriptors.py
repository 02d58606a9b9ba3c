"""A session that opens connections without end uses up its own share, not what its launcher lives on or says at its end."""

import resource
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import Place, confinement, place, provider

__all__ = ["confinement", "place", "provider"]

FLOOD = """
import http.client, socket, sys
open(".envrc", "w").close()
held = []
for _ in range(1500):
    try:
        held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2))
    except OSError:
        break
print(len(held) > 1000)
for each in held:
    each.close()
for tried in range(1000):
    asked = http.client.HTTPConnection("127.0.0.1", 7431, timeout=100)
    try:
        asked.request("GET", "/v1/models")
        print(asked.getresponse().status)
        break
    except (OSError, http.client.HTTPException):  # it has not seen yet that those are closed
        asked.close()
"""


@contextmanager
def few_files() -> Iterator[None]:
    """What most systems give a process that does not ask for more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def service() -> Iterator[int]:
    """A server of the host that keeps whatever connects."""
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        held = []

        def keep() -> None:
            while True:
                try:
                    held.append(listening.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=keep)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(20)
            for each in held:
                each.close()


@pytest.mark.parametrize("where", ["egress", "host port"])
def test_a_flood_ends_no_egress_and_hides_nothing(place: Place, provider: Running, where: str) -> None:
    place.destination(provider.url)
    with service() as port, few_files():
        flags, target = ((), 7431) if where == "egress" else (("--host-port", str(port)), port)
        done = place.launch(*flags, "--", sys.executable, "-c", FLOOD, str(target))
    assert done.code == 0, done.err[:2000]
    assert done.out.split()[0] == "True"
    assert done.out.split()[1].isdigit(), done.out
    assert ".envrc appeared: programs outside the sandbox obey these" in done.err
    assert "Traceback" not in done.err and len(done.err) < 2000, done.err[:2000]

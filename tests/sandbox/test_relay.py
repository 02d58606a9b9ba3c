"""The relay against a real Unix-socket server: whole bytes, half-closes, back pressure, failures."""

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amem.sandbox.relay import MOST, Relay, listen


class Far:
    """A Unix-socket server that hands each connection to a function, in a thread."""

    def __init__(self, path: Path, handle: Callable[[socket.socket], None]) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.bind(str(path))
        self.sock.listen(64)
        self.handle = handle
        self.threads: list[threading.Thread] = []
        self.main = threading.Thread(target=self._accept)
        self.main.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.sock.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            thread.start()
            self.threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            self.handle(connection)

    def close(self) -> None:
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.main.join(10)
        for thread in self.threads:
            thread.join(10)


class Joined:
    def __init__(self, path: Path, most: int = MOST) -> None:
        self.path = path
        self.listener = listen(0)
        self.port = self.listener.getsockname()[1]
        self.relay = Relay(self.listener, str(path), most)
        self.thread = threading.Thread(target=self.relay.serve)
        self.thread.start()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def stop(self) -> None:
        self.relay.stop()
        self.thread.join(10)
        assert not self.thread.is_alive()


@pytest.fixture
def joined(tmp_path: Path) -> Iterator[Joined]:
    made = Joined(tmp_path / "egress.sock")
    yield made
    made.stop()


def everything(sock: socket.socket) -> bytes:
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def test_bytes_pass_both_ways_and_a_half_close_is_passed_on(joined: Joined) -> None:
    def upper(connection: socket.socket) -> None:
        connection.sendall(everything(connection).upper())  # answers only after the far end of the request

    far = Far(joined.path, upper)
    request = os.urandom(0) + b"a small request " * 20_000
    with joined.connect() as near:
        sender = threading.Thread(target=lambda: (near.sendall(request), near.shutdown(socket.SHUT_WR)))
        sender.start()
        assert everything(near) == request.upper()
        sender.join()
    far.close()


def test_many_connections_at_once_do_not_mix(joined: Joined) -> None:
    far = Far(joined.path, lambda connection: connection.sendall(everything(connection)))
    nears = [joined.connect() for _ in range(50)]
    for number, near in enumerate(nears):
        near.sendall(struct.pack("=I", number) * 100)
    for number, near in reversed(list(enumerate(nears))):
        near.shutdown(socket.SHUT_WR)
        assert everything(near) == struct.pack("=I", number) * 100
        near.close()
    far.close()


def test_slow_reader_holds_its_writer_back(joined: Joined) -> None:
    sent = [0]
    blocked = threading.Event()
    go = threading.Event()

    def flood(connection: socket.socket) -> None:
        connection.settimeout(0.5)
        try:
            while sent[0] < 1 << 28:
                sent[0] += connection.send(bytes(1 << 16))
        except TimeoutError:
            blocked.set()
        go.wait(10)

    far = Far(joined.path, flood)
    with joined.connect() as near:
        assert blocked.wait(20), "the relay swallowed everything: no back pressure"
        assert sent[0] < 64 << 20
        go.set()
        assert len(everything(near)) == sent[0]
    far.close()


def test_no_egress_closes_the_connection_at_once(joined: Joined) -> None:
    with joined.connect() as near:
        assert near.recv(1) == b""
    with joined.connect() as near:
        assert near.recv(1) == b""


def test_client_that_resets_leaves_nothing(joined: Joined) -> None:
    seen = threading.Semaphore(0)

    def wait_for_end(connection: socket.socket) -> None:
        with contextlib.suppress(ConnectionResetError):
            everything(connection)
        seen.release()

    far = Far(joined.path, wait_for_end)
    for _ in range(20):
        near = joined.connect()
        near.sendall(b"half a request")
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        near.close()
    for _ in range(20):
        assert seen.acquire(timeout=10)
    far.close()
    with joined.connect() as near:  # answered after the resets above were dealt with
        assert near.recv(1) == b""
    assert joined.relay.open_connections == 0


def test_egress_that_hangs_up_ends_the_connection_though_the_client_holds_on(joined: Joined) -> None:
    far = Far(joined.path, lambda connection: connection.sendall(b"bye"))
    with joined.connect() as near:
        assert everything(near) == b"bye"
        far.close()
        with joined.connect() as other:
            assert other.recv(1) == b""
        assert joined.relay.open_connections == 0


def test_one_connection_too_many_waits_until_another_ends(tmp_path: Path) -> None:
    joined = Joined(tmp_path / "egress.sock", most=2)
    far = Far(joined.path, lambda connection: connection.sendall(connection.recv(1) * 2))
    waiting: list[socket.socket] = []
    try:
        held = [joined.connect() for _ in range(2)]
        waiting = [joined.connect() for _ in range(3)]
        for near in (*waiting, *held):
            near.sendall(b"x")
        for near in held:
            assert everything(near) == b"xx"  # whoever is not held was there first, and was not taken
            assert joined.relay.open_connections <= 2
            near.close()
        for near in waiting:
            assert everything(near) == b"xx"
            near.close()
    finally:
        joined.stop()
        far.close()


def test_listens_on_loopback_only() -> None:
    with listen(0) as sock:
        assert sock.family == socket.AF_INET
        assert sock.getsockname()[0] == "127.0.0.1"

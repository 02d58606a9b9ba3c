"""A Unix-socket proxy before PostgreSQL that can swallow the answer to a COMMIT and cut the line: what a lost network looks like."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path


class Proxy:
    """Forwards bytes both ways. `cut_after_commit` counts the commits whose answers will be lost."""

    def __init__(self, listener: socket.socket, upstream: str) -> None:
        self.cut_after_commit = 0
        self.cut = 0
        self._listener = listener
        self._upstream = upstream
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._upstream)
            self._sockets += [client, server]
            for target, pair in ((self._forth, (client, server)), (self._back, (server, client))):
                self._threads.append(threading.Thread(target=target, args=pair, daemon=True))
                self._threads[-1].start()

    def close(self) -> None:
        self._end(*self._sockets)
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if b"COMMIT" in data and self.cut_after_commit:
                    self.cut_after_commit -= 1
                    self.cut += 1
                    # The client's line goes first; the server still gets the COMMIT and does it.
                    client.shutdown(socket.SHUT_RDWR)
                    server.sendall(data)
                    continue
                server.sendall(data)
        self._end(client, server)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        self._end(client, server)

    @staticmethod
    def _end(*sockets: socket.socket) -> None:
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def before(upstream: Path, folder: Path) -> Iterator[Proxy]:
    """A proxy whose socket lies in `folder`, before the socket `upstream`."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / ".s.PGSQL.5432"))
    os.chmod(folder, 0o755)
    listener.listen()
    proxy = Proxy(listener, str(upstream))
    thread = threading.Thread(target=proxy.serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        proxy.close()

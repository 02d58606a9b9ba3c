"""Ports that the owner opens between a session and the host's loopback, each by its own flag; by default there is none.

A port inside (`--port`) listens on the host's 127.0.0.1 under the same number, and is joined to sockets that were made inside: a socket
connects in the network namespace it was made in, whoever connects it. A port of the host (`--host-port`) listens inside, and is joined to
the host's. What passes is neither read nor metered; which ports were open stands in `state/sessions.jsonl`.
"""

import errno
import os
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from amem.errors import UnavailableError
from amem.model import clock
from amem.sandbox import calls, relay
from amem.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from amem.launch.run import Prepared
    from amem.sandbox.run import Running

_CONNECT_S = 5.0
_MOST = 128
"""Connections of all ports together: what is inside could else use up the launcher's descriptors, and with them the egress (shown)."""


class Ports:
    """The open ports of one session. Raises UnavailableError where a port is taken on the host."""

    def __init__(self, ports: tuple[int, ...], host_ports: tuple[int, ...]) -> None:
        self._ports = ports
        self._host_ports = host_ports
        self._most = max(1, _MOST // max(1, len(ports) + len(host_ports)))
        self._relays: list[relay.Relay] = []
        self._threads: list[threading.Thread] = []
        self._pool: list[int] = []
        self._lock = threading.Lock()  # guards _pool, which every relay's thread takes from
        self._listeners: list[socket.socket] = []
        try:
            for port in ports:
                self._listeners.append(relay.listen(port))
        except OSError as error:
            self.end()
            why = f"--port {port}: {error.strerror} on this machine's 127.0.0.1"
            hint = "name a port of 1024 or more" if error.errno == errno.EACCES else f"ss -ltnp sport = {port}"
            raise UnavailableError(why, hint=hint) from error

    def serve(self, running: "Running") -> None:
        """Join them to the sandbox, until `end`."""
        self._pool += running.socket_fds
        inside = [socket.socket(fileno=fd) for fd in running.host_port_fds]
        running.socket_fds = running.host_port_fds = ()
        for listener, port in zip(self._listeners, self._ports, strict=True):
            self._join(listener, partial(self._to_the_inside, port))
        self._listeners = []
        for listener, port in zip(inside, self._host_ports, strict=True):
            self._join(listener, partial(_to_the_host, port))

    def end(self) -> None:
        """Close every port and connection."""
        for each in self._relays:
            each.stop()
        for thread in self._threads:
            thread.join()
        for listener in self._listeners:
            listener.close()
        with self._lock:
            for fd in self._pool:
                os.close(fd)
            self._pool.clear()

    def _join(self, listener: socket.socket, dial: Callable[[], socket.socket]) -> None:
        found = relay.Relay(listener, dial, self._most)
        thread = threading.Thread(target=found.serve, name="amem-port", daemon=True)
        self._relays.append(found)
        self._threads.append(thread)
        thread.start()

    def _to_the_inside(self, port: int) -> socket.socket:
        with self._lock:
            if not self._pool:
                raise BlockingIOError("every socket of the inside is in use")
            fd = self._pool.pop()
        return _connected(_Lent(fd, self._take_back), port)

    def _take_back(self, fd: int) -> None:
        with self._lock:
            self._pool.append(fd)


class _Lent(socket.socket):
    """A socket of the inside. Closed, it ends its connection and goes back, to be connected again."""

    def __init__(self, fd: int, give_back: Callable[[int], None]) -> None:
        super().__init__(fileno=fd)
        self._give_back = give_back

    def close(self) -> None:
        """End the connection."""
        fd = self.detach()
        if fd >= 0:
            calls.disconnect(fd)
            self._give_back(fd)


def _to_the_host(port: int) -> socket.socket:
    return _connected(socket.socket(socket.AF_INET, socket.SOCK_STREAM), port)


def _connected(found: socket.socket, port: int) -> socket.socket:
    """A socket, connected to a port of the loopback that it belongs to. Raises OSError, and has closed it."""
    try:
        found.settimeout(_CONNECT_S)  # loopback answers at once, but for a listener whose backlog is full
        found.connect(("127.0.0.1", port))
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        found.close()
        raise
    return found


def opened(state: Path, ready: "Prepared", note: Callable[[str], None]) -> Ports:
    """Open the ports of a session, logged before they are. Raises UnavailableError."""
    from amem.logs import writer
    from amem.logs.schema import SessionPort

    sandbox = ready.spec
    ports = Ports(sandbox.ports, sandbox.host_ports)
    for way, numbers in (("inside", sandbox.ports), ("host", sandbox.host_ports)):
        for port in numbers:
            at, found = clock.stamp(clock.now()), ready.plan
            event = SessionPort(at=at, session=ready.id, domain=found.domain, principal=found.principal, port=port, of=way)
            writer.append(state, event)
    if sandbox.ports:
        note(f"127.0.0.1:{', '.join(map(str, sandbox.ports))} leads into the session, for every user and page of this machine")
    return ports

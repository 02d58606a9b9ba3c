"""Forward one loopback port to a Unix socket: for runtimes where no descriptor can cross.

Runs inside such a sandbox, so: standard library only, one thread, no configuration. The default backend needs no relay; its listening
socket is made inside and passed out. Half-closes pass on; a slow reader stops its writer; a Unix socket that does not answer closes the
connection at once.
"""

import errno
import select
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 1 << 16
BACKLOG = 1024
MOST = 1024
"""Connections at a time; more wait to be accepted."""


class _End:
    """One side of a connection and what still has to go out on it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.other: _End = self
        self.waiting = bytearray()
        self.ended = False
        """This side will send nothing more."""
        self.shut = False
        """Nothing more goes out on this side."""
        self.gone = False
        """Its peer closed both ways; the kernel would report that without end."""
        self.events = 0


class Relay:
    """Accepts on a listening socket and joins each connection with one to a Unix socket, or to what the caller dials."""

    def __init__(self, listener: socket.socket, target: "str | Callable[[], socket.socket]", most: int = MOST) -> None:
        """`target`: the path of the Unix socket, or what makes a connection and raises OSError where it cannot. `most`: as MOST."""
        self._listener = listener
        self._dial = _unix(target) if isinstance(target, str) else target
        self._poll = select.epoll()
        self._ends: dict[int, _End] = {}
        self._most = most
        self._full = False
        """Nothing is accepted until a connection ends: a listener that is polled and left alone would spin."""
        self._wake, self._stop = socket.socketpair()
        listener.setblocking(False)
        self._poll.register(listener.fileno(), select.EPOLLIN)
        self._poll.register(self._wake.fileno(), select.EPOLLIN)

    def serve(self) -> None:
        """Forward until `stop`; then every connection is closed."""
        while True:
            for fd, events in self._poll.poll():
                if fd == self._wake.fileno():
                    return self._close_all()
                if fd == self._listener.fileno():
                    self._accept()
                elif fd in self._ends:
                    self._advance(self._ends[fd], events)

    def stop(self) -> None:
        """End `serve`; from any thread."""
        self._stop.send(b"x")

    @property
    def open_connections(self) -> int:
        """How many connections are being forwarded."""
        return len(self._ends) // 2

    def _accept(self) -> None:
        try:
            near, _ = self._listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE) and self._ends:
                return self._pause()
            if error.errno in (errno.EAGAIN, errno.ECONNABORTED, errno.EMFILE, errno.ENFILE, errno.EINTR):
                return
            raise
        try:
            far = self._dial()
        except OSError:
            near.close()
            return
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ends = _End(near), _End(far)
        for end, other in (ends, ends[::-1]):
            end.sock.setblocking(False)
            end.other = other
            self._ends[end.sock.fileno()] = end
            self._poll.register(end.sock.fileno(), 0)
        for end in ends:
            self._listen_for(end)
        if self.open_connections >= self._most:
            self._pause()

    def _pause(self) -> None:
        self._full = True
        self._poll.modify(self._listener.fileno(), 0)

    def _advance(self, end: _End, events: int) -> None:
        try:
            if events & select.EPOLLOUT:
                self._flush(end)
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) and not end.ended and not end.other.waiting:
                self._read(end)
            elif events & select.EPOLLERR:
                raise ConnectionResetError
            elif events & select.EPOLLHUP and end.ended:
                self._give_up(end)
        except OSError:
            return self._close(end)
        if end.ended and end.other.ended and end.shut and end.other.shut:
            return self._close(end)
        self._listen_for(end)
        self._listen_for(end.other)

    def _give_up(self, end: _End) -> None:
        """Nothing can reach this side any more: stop reading for it, let the other side have what still waits."""
        self._poll.unregister(end.sock.fileno())
        end.gone = end.shut = end.other.ended = True
        end.waiting.clear()
        self._flush(end.other)

    def _read(self, end: _End) -> None:
        try:
            data = end.sock.recv(CHUNK)
        except BlockingIOError:
            return
        if data:
            end.other.waiting += data
        else:
            end.ended = True
        self._flush(end.other)

    def _flush(self, end: _End) -> None:
        while end.waiting:
            try:
                sent = end.sock.send(end.waiting)
            except BlockingIOError:
                return
            del end.waiting[:sent]
        if end.other.ended and not end.shut:
            end.shut = True
            end.sock.shutdown(socket.SHUT_WR)

    def _listen_for(self, end: _End) -> None:
        """Read only while the other side keeps up; ask to write only while something waits."""
        if end.gone:
            return
        readable = not end.ended and not end.other.waiting
        events = (select.EPOLLIN if readable else 0) | (select.EPOLLOUT if end.waiting else 0)
        if events != end.events:
            end.events = events
            self._poll.modify(end.sock.fileno(), events)

    def _close(self, end: _End) -> None:
        for each in (end, end.other):
            if self._ends.pop(each.sock.fileno(), None) is not None:
                if not each.gone:
                    self._poll.unregister(each.sock.fileno())  # closing alone does not, where another descriptor is open
                each.sock.close()
        if self._full:
            self._full = False
            self._poll.modify(self._listener.fileno(), select.EPOLLIN)

    def _close_all(self) -> None:
        for end in list(self._ends.values()):
            self._close(end)
        for sock in (self._listener, self._wake, self._stop):
            sock.close()
        self._poll.close()


def _unix(path: str) -> "Callable[[], socket.socket]":
    def dial() -> socket.socket:
        far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            far.settimeout(5)  # a full backlog there; nothing else can make a connect on a Unix socket wait
            far.connect(path)
        except OSError:
            far.close()
            raise
        return far

    return dial


def listen(port: int) -> socket.socket:
    """A listening socket on 127.0.0.1 (IPv4 by its own family: a namespace may have no ::1)."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen(BACKLOG)
    return sock

"""The sandbox's network: a loopback interface and one listening socket, and nothing else.

A socket belongs to the network namespace it was made in, whoever accepts on it: the listener is made inside and passed out.
The one door to pyroute2, which only `interfaces` loads (it costs 170 ms): never on the way of a launch.
"""

import _socket
import fcntl
import os
import struct

_SIOCSIFFLAGS = 0x8914
_UP_RUNNING = 0x1 | 0x40
BACKLOG = 1024


def loopback_up() -> None:
    """Bring `lo` up; 127.0.0.1 and ::1 appear by themselves. Raises OSError."""
    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(sock.fileno(), _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP_RUNNING))
    sock.close()


def listen(port: int) -> int:
    """A listening TCP socket on 127.0.0.1:port of the present namespace, as a descriptor. Raises OSError."""
    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    sock.bind(("127.0.0.1", port))
    sock.listen(BACKLOG)
    return sock.detach()


def unconnected() -> int:
    """A TCP socket that, whoever connects it, connects in the present namespace. Raises OSError."""
    return _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC).detach()


def send_fds(sock: _socket.socket, data: bytes, fds: list[int]) -> None:
    """Send bytes with descriptors beside the first of them, all of it."""
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f"={len(fds)}i", *fds))] if fds else []
    sent = sock.sendmsg([data], rights)
    if sent < len(data):
        sock.sendall(data[sent:])


def interfaces(pid: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The interfaces of a process's network namespace with their addresses, as netlink tells them; a proof from outside.

    Raises OSError when the namespace may not be entered.
    """
    from pyroute2 import NetNS

    with NetNS(f"/proc/{os.getpid() if pid == 0 else pid}/ns/net", flags=0) as netns:
        names = {link["index"]: link.get_attr("IFLA_IFNAME") for link in netns.get_links()}
        addresses: dict[int, list[str]] = {index: [] for index in names}
        for address in netns.get_addr():
            addresses[address["index"]].append(address.get_attr("IFA_ADDRESS"))
        return tuple((names[index], tuple(sorted(addresses[index]))) for index in sorted(names))

"""What a session asked its network for, seen from outside through the counters of its network namespace."""

import threading
from pathlib import Path


class Attempts(threading.Thread):
    """Follows the counters of the namespace of the first session that starts under a launcher, until it ends.

    A name looked up at the made-up resolver counts as `UdpNoPorts`, an address outside loopback as `IpOutNoRoutes`.
    """

    def __init__(self, launcher: int) -> None:
        super().__init__(daemon=True)
        self.counters: dict[str, int] = {}
        self._launcher = launcher
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.01):
            for process in _descendants(self._launcher):
                # A process on its way out has no namespace to name any more, and might have had the host's.
                space = _namespace(process)
                if space and space != _namespace(self._launcher) and (found := _counters(Path(f"/proc/{process}/net"))):
                    self.counters = found
                    break

    def end(self) -> dict[str, int]:
        """Stop watching: the last counters seen of `UdpNoPorts`, `IpOutNoRoutes`, `Ip6OutNoRoutes`, `TcpActiveOpens`."""
        self._ended.set()
        self.join()
        return self.counters


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found[1:]


def _namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    except OSError:
        return ""


def _counters(net: Path) -> dict[str, int]:
    try:
        lines = (net / "snmp").read_text().splitlines()
        found = {
            f"{head.split(':')[0]}{name}": int(value)
            for head, values in zip(lines[::2], lines[1::2], strict=True)
            for name, value in zip(head.split()[1:], values.split()[1:], strict=True)
        }
        found |= {name: int(value) for name, value in (line.split() for line in (net / "snmp6").read_text().splitlines())}
    except (OSError, ValueError):
        return {}
    return {name: found[name] for name in ("UdpNoPorts", "IpOutNoRoutes", "Ip6OutNoRoutes", "TcpActiveOpens")}

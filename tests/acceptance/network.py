"""What a session asked its network for, seen from outside through the counters of its network namespace."""

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO


class Attempts(threading.Thread):
    """Finds the namespace of the first session that starts under a launcher; its counters are there until they are asked for.

    A name looked up at the made-up resolver counts as `UdpNoPorts`, an address outside loopback as `IpOutNoRoutes`.
    """

    def __init__(self, launcher: int) -> None:
        super().__init__(daemon=True)
        self._launcher = launcher
        self._ended = threading.Event()
        self._files: list[TextIO] = []

    def run(self) -> None:
        """Look until something in a namespace has connected; nothing has in one that is made to see whether one can be."""
        held = ""
        while not self._ended.wait(0.01) and not _counters(self._files).get("TcpActiveOpens"):
            for process in _descendants(self._launcher):
                # A process on its way out has no namespace to name any more, and might have had the host's.
                space = _namespace(process)
                if space and space != _namespace(self._launcher):
                    if space != held and (files := _opened(Path(f"/proc/{process}/net"))):
                        self._close()
                        held, self._files = space, files
                    break

    def end(self) -> dict[str, int]:
        """Stop watching: the last counters of `UdpNoPorts`, `IpOutNoRoutes`, `Ip6OutNoRoutes`, `TcpActiveOpens`."""
        self._ended.set()
        self.join()
        counters = _counters(self._files)
        self._close()
        return counters

    def _close(self) -> None:
        for file in self._files:
            file.close()


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


def _opened(net: Path) -> list[TextIO]:
    """The files of the counters: a namespace stays for as long as they are open, whoever was in it."""
    with ExitStack() as stack:
        try:
            files = [stack.enter_context((net / name).open()) for name in ("snmp", "snmp6")]
        except OSError:
            return []
        stack.pop_all()
        return files


def _counters(files: list[TextIO]) -> dict[str, int]:
    if not files:
        return {}
    for file in files:
        file.seek(0)
    lines, more = (file.read().splitlines() for file in files)
    found = {
        f"{head.split(':')[0]}{name}": int(value)
        for head, values in zip(lines[::2], lines[1::2], strict=True)
        for name, value in zip(head.split()[1:], values.split()[1:], strict=True)
    }
    found |= {name: int(value) for name, value in (line.split() for line in more)}
    return {name: found[name] for name in ("UdpNoPorts", "IpOutNoRoutes", "Ip6OutNoRoutes", "TcpActiveOpens")}

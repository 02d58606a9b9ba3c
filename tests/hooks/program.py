"""The hook program as the launcher lays it out, and a guard on loopback that answers what a test scripts."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import amem

ALLOW = b"HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n"


def answer(status: str, body: bytes) -> bytes:
    """A whole answer."""
    return b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


@dataclass
class Guard:
    """A listening guard: what it was sent, and what it sends."""

    port: int
    reply: bytes
    seen: list[bytes] = field(default_factory=list)


@contextmanager
def guard(reply: bytes) -> Iterator[Guard]:
    """Answer every request with `reply`, byte for byte, and close."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Guard(port=listener.getsockname()[1], reply=reply)
        thread = threading.Thread(target=_serve, args=(listener, found))
        thread.start()
        try:
            yield found
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listener: socket.socket, found: Guard) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, connection.makefile("rb") as stream:
            head = b""
            length = 0
            while (line := stream.readline()) not in (b"\r\n", b""):
                head += line
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            found.seen.append(head + b"\r\n" + stream.read(length))
            connection.sendall(found.reply)


def lay_out(folder: Path) -> Path:
    """Write the three-line program beside a link to the package, as `/opt/memory` has them."""
    lib = folder / "lib"
    lib.mkdir(parents=True)
    (lib / "amem").symlink_to(Path(amem.__file__).parent)
    memory = folder / "memory"
    memory.write_text(
        f"#!{sys.executable} -ISB\nimport sys; sys.path.insert(0, {str(lib)!r})\nfrom amem.hooks.run import main; main()\n"
    )  # fmt: skip
    memory.chmod(0o755)
    return memory


def run(memory: Path, *arguments: str, event: bytes = b"{}", env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[bytes]":
    """Run the program with nothing but `env` in its environment."""
    return subprocess.run([memory, *arguments], input=event, capture_output=True, env=env or {}, check=False, timeout=60)


def at(port: int, home: Path | None = None) -> dict[str, str]:
    """The environment of a session whose egress listens on `port`."""
    return {"MEMORY_MCP_URL": f"http://127.0.0.1:{port}/mcp", "AMEM_SESSION": "ses-0123abcd", "HOME": os.fspath(home or "/nonexistent")}

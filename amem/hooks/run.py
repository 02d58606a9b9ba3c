"""The program at `/opt/memory/memory`: the harness's hooks, and the relay.

`hook pre-tool` runs once for each tool call, so it imports nothing but builtins and `_socket`: it passes the event on as
it came, and the guard on the host reads it. A harness takes any exit but 2 for a leave to go on (Claude Code 2.1, Codex
0.171, 2026-11), so whatever goes wrong here ends with 2 and a reason: a guard that cannot be asked has not said yes.
The other two hooks only leave a note; they end with 0 come what may, since a note is not worth breaking a harness for.
"""

import posix
import sys
from time import monotonic

DEADLINE_S = 8.0
"""Below the shortest time that any harness table gives this hook; a hook that is too late lets the tool run."""
EVENT_LIMIT_BYTES = 8 << 20
ANSWER_LIMIT_BYTES = 1 << 20
USAGE = "usage: memory hook pre-tool|pre-compact|session-end [HARNESS] | relay PORT SOCKET [PROGRAM…] | version\n"
# Antigravity takes an answer that says nothing for a denial; all others take it for a leave (public reports, 2026-10).
ALLOWED = {"agy": b'{"decision":"allow"}'}


class Unguarded(Exception):
    """The guard gave no answer that can be trusted."""


def main() -> None:
    """Run the program that `sys.argv` asks for, and end the process."""
    try:
        code = run(sys.argv[1:])
    except Exception as error:  # the outer edge: exit 1 would let a tool run
        _write(2, f"amem: the memory hook failed: {error.__class__.__name__}: {error}\n".encode())
        code = 2
    posix._exit(code)


def run(argv: list[str]) -> int:
    """Do what the arguments say and return the exit code."""
    match argv:
        case ["hook", "pre-tool", *harness] if len(harness) < 2:
            return pre_tool("".join(harness))
        case ["hook", "pre-compact" | "session-end" as kind, *harness] if len(harness) < 2:
            from amem.hooks import outbox

            outbox.leave(kind, "".join(harness), read_event)
            return 0
        case ["relay", port, path, *program]:
            from amem.hooks import relaying

            return relaying.run(int(port), path, program)
        case ["version"]:
            from amem import __version__

            _write(1, f"{__version__}\n".encode())
            return 0
    _write(2, USAGE.encode())
    return 2


def pre_tool(harness: str) -> int:
    """Ask the guard whether the tool may run, and say so in the way the harness understands."""
    try:
        status, body = ask(f"/hook/pre-tool?harness={_name(harness)}", read_event())
    except (OSError, ValueError, Unguarded) as error:
        _write(2, f"amem: the guard cannot be asked, so the tool may not run: {error}\n".encode())
        return 2
    if status == 403:
        _write(2, body.rstrip(b"\n") + b"\n")
        return 2
    _write(1, body if status == 200 else ALLOWED.get(harness, b""))
    return 0


def read_event() -> bytes:
    """The harness's event, from stdin to its end. Raises Unguarded above the limit."""
    event = bytearray()
    while piece := posix.read(0, 1 << 16):
        event += piece
        if len(event) > EVENT_LIMIT_BYTES:
            raise Unguarded(f"the event is above {EVENT_LIMIT_BYTES} bytes")
    return bytes(event)


def ask(target: str, event: bytes) -> tuple[int, bytes]:
    """POST the event to the guard: its status (200, 204 or 403) and body. Raises OSError or Unguarded."""
    import _socket

    port, token = egress()
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    head = (
        f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{bearer}"
        f"Content-Type: application/json\r\nContent-Length: {len(event)}\r\n\r\n"
    )
    until = monotonic() + DEADLINE_S
    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        connection.settimeout(DEADLINE_S)
        connection.connect(("127.0.0.1", port))
        connection.sendall(head.encode() + event)
        answer = bytearray()
        while piece := connection.recv(1 << 16):
            answer += piece
            if len(answer) > ANSWER_LIMIT_BYTES:
                raise Unguarded("its answer is too long")
            connection.settimeout(max(until - monotonic(), 0.001))
    finally:
        connection.close()
    return parse(bytes(answer))


def parse(answer: bytes) -> tuple[int, bytes]:
    """Status and body of a whole HTTP answer. Raises Unguarded for anything cut short or unexpected."""
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found or not head.startswith(b"HTTP/1.1 "):
        raise Unguarded("its answer was cut short")
    line, *headers = head.split(b"\r\n")
    status = line[9:12]
    if status not in (b"200", b"204", b"403"):
        raise Unguarded(f"it answered {line[9:].decode('ascii', 'replace')}")
    length = 0 if status == b"204" else None
    for header in headers:
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if length != len(body):
        raise Unguarded("its answer was cut short")
    return int(status), body


def egress() -> tuple[int, str]:
    """The port of the egress, and the bearer where there is one. Raises Unguarded.

    The file beside the program is read-only inside and wins: the environment is what a harness lets a work tree's own
    settings add to.
    """
    try:
        descriptor = posix.open(sys.argv[0].rpartition("/")[0] + "/port", posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        port = _env(b"MEMORY_MCP_URL").removeprefix("http://127.0.0.1:").partition("/")[0]
    else:
        port = posix.read(descriptor, 6).decode().strip()
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise Unguarded("no port of the egress is known")
    return int(port), _env(b"AMEM_TOKEN")


def _env(name: bytes) -> str:
    return posix.environ.get(name, b"").decode("utf-8", "replace")


def _name(harness: str) -> str:
    """A harness's name, as it may stand in a request target. Raises ValueError."""
    if not (harness.isascii() and harness.isalpha()):
        raise ValueError(f"{harness!r} is no harness")
    return harness


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[posix.write(descriptor, data) :]

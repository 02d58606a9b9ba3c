"""P9: memory tools through the port, against a bare SDK server whose one tool does nothing.

    python -m tests.bench.bench_server

Each server is a process of its own; the load is raw POSTs of `tools/call` on warm connections, one at a time for p50 and
eight at once for calls/s, the servers in turn within each round. Ours is the whole walk: arguments, scan, policy, decision
log, entry file with fsync, index, write log. "bare durable file" is the part of it that is the disk's: a file made, synced,
named, and its folder synced, on the same disk in the same rounds; "write, above the disk" is a write without that. The peer
is `MCPServer` of the SDK under uvicorn, stateless, JSON answers. "a get and a durable file" is a write's floor: nothing is scanned,
decided or indexed in it. Tried, and no faster on two busy cores: the folder's fsync in a thread while the entry is indexed;
fdatasync, a file without a name, a rename, or one fsync after the link in place of two.
"""

import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.rows import Row, table

ENTRIES = 1000
ROUNDS, CALLS = 8, 25
PARALLEL, BURST = 8, 160
GOAL = 3.0

OURS = """
import asyncio, sys
from pathlib import Path
from aiohttp import web
from amem.memory.session import agent_session, open_memory
from amem.model import ids
from amem.server.app import application
from amem.settings import grants
from amem.settings.root import Root

root = Root(Path(sys.argv[1]))
memory = open_memory(root, grants.load(root.grants))
session = agent_session(memory, id=ids.draw("session"), principal="agent:bench", domain="dom-me")

async def main():
    runner = web.AppRunner(application(memory, session), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()

asyncio.run(main())
memory.close()
"""
PEER = """
import asyncio, socket, sys, threading
import uvicorn
from mcp.server import MCPServer

server = MCPServer("empty", log_level="WARNING")

@server.tool()
def empty() -> str:
    return ""

listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets no TCP_NODELAY on protocol 0
listener.bind(("127.0.0.1", 0))
listener.listen(64)
app = server.streamable_http_app(json_response=True, stateless_http=True, host="127.0.0.1")
running = uvicorn.Server(uvicorn.Config(app, log_level="warning"))

def end():
    sys.stdin.read()
    running.should_exit = True

threading.Thread(target=end, daemon=True).start()
print(listener.getsockname()[1], flush=True)
asyncio.run(running.serve(sockets=[listener]))
"""
GRANTS = """
owner = "human:bench:owner"
[grants.dom-me.principals."agent:*"]
read = "internal"
write = true
"""


class Caller:
    """One warm connection."""

    _ids = itertools.count(1)

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __call__(self, tool: str, **arguments: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-06-18",
        }
        self._connection.request("POST", "/mcp", json.dumps(message), headers)
        found = json.loads(self._connection.getresponse().read())["result"]
        assert not found.get("isError"), found
        return found

    def close(self) -> None:
        self._connection.close()


@contextmanager
def server(program: str, *arguments: str) -> Iterator[int]:
    """The port of a running server process."""
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def run() -> list[Row]:
    """Measure; p50 of each tool and calls/s, beside the empty tool."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        root.mkdir(mode=0o700)
        (root / "grants.toml").write_text(GRANTS)
        with server(OURS, str(root)) as ours, server(PEER) as peer:
            return list(_measure(ours, peer, Path(folder)))


def _measure(ours: int, peer: int, folder: Path) -> Iterator[Row]:
    call = Caller(ours)
    stored = [json.loads(call("write", **_entry(n))["content"][0]["text"])["id"] for n in range(ENTRIES)]
    empty = Caller(peer)  # only now: the peer closes a connection that is idle for five seconds
    numbers = itertools.count(ENTRIES)
    ids = itertools.cycle(stored)
    tools = {
        "empty tool": lambda: empty("empty"),
        "bare durable file": lambda: _durable(folder / f"{next(numbers)}"),
        "search": lambda: call("search", query=f"zebra herd {next(numbers) % 97}"),
        "get": lambda: call("get", id=next(ids)),
        "write": lambda: call("write", **_entry(next(numbers))),
        "t0": lambda: call("t0"),
    }
    taken: dict[str, list[float]] = {name: [] for name in tools}
    for _ in range(ROUNDS):
        for name, tool in tools.items():
            for _ in range(CALLS if name != "t0" else 5):
                start = time.perf_counter()
                tool()
                taken[name].append((time.perf_counter() - start) * 1e3)
    floor = statistics.median(taken["empty tool"])
    for name in ("search", "get", "write", "t0"):
        ours_ms = statistics.median(taken[name])
        judged = name == "write"
        goal = f"<= {GOAL:g} x" if judged else "-"
        yield Row("P9", f"{name}, p50", ours_ms, "empty tool", floor, "ms", goal, ours_ms <= GOAL * floor if judged else None)
    disk = statistics.median(taken["bare durable file"])
    above = statistics.median(taken["write"]) - disk
    yield Row("P9", "write, above the disk", above, "empty tool", floor, "ms", "-", None)
    yield Row("P9", "bare durable file", disk, "empty tool", floor, "ms", "-", None)
    yield Row("P9", "a get and a durable file", statistics.median(taken["get"]) + disk, "empty tool", floor, "ms", "-", None)
    call.close()
    empty.close()
    peer_rate = _rate(peer, "empty", lambda n: {})
    for name, arguments in (("search", lambda n: {"query": f"zebra herd {n % 97}"}), ("write", _entry)):
        yield Row("P9", f"{name}, {PARALLEL} at once", _rate(ours, name, arguments), "empty tool", peer_rate, "calls/s", "-", None)


def _durable(path: Path) -> None:
    temporary = path.with_suffix(".new")
    with temporary.open("xb") as file:
        file.write(b"x" * 1500)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)


def _rate(port: int, tool: str, arguments: Any) -> float:
    def work(worker: int) -> None:
        caller = Caller(port)
        for n in range(BURST // PARALLEL):
            caller(tool, **arguments(worker * BURST + n))
        caller.close()

    with ThreadPoolExecutor(PARALLEL) as pool:
        start = time.perf_counter()
        list(pool.map(work, range(PARALLEL)))
        return BURST / (time.perf_counter() - start)


def _entry(n: int) -> dict[str, Any]:
    body = f"# Zebra {n}\n\nHerd {n % 97} was seen near the river at noon. " + "It rested in the shade of the acacia and drank. " * 20
    return {"type": "fact", "title": f"Zebra {n} of herd {n % 97}", "body": body}


if __name__ == "__main__":
    print(table(run()))

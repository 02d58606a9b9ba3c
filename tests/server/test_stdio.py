import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from amem.memory.session import Memory
from amem.server.stdio import Relay
from amem.server.tools import TOOLS
from tests.memory.seed import AGENT, lines
from tests.server.serving import within

START = "import sys; from amem.server.stdio import main; sys.exit(main(*sys.argv[1:]))"


def command(memory: Memory, domain: str = "dom-me") -> list[str]:
    return [sys.executable, "-P", "-c", START, str(memory.root.path), domain, AGENT]


class Upstream:
    """An HTTP server on a Unix socket that records what it was sent and answers from a table."""

    def __init__(self, path: Path, answers: dict[str, tuple[int, bytes]]) -> None:
        self.seen: list[tuple[dict[str, str], Any]] = []
        self._answers = answers
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while stream.readline():
                headers: dict[str, str] = {}
                while line := stream.readline().decode("latin-1").strip():
                    name, _, value = line.partition(":")
                    headers[name.lower()] = value.strip()
                message = json.loads(stream.read(int(headers["content-length"])))
                self.seen.append((headers, message))
                status, body = self._answers.get(message.get("method", ""), (202, b""))
                connection.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def upstream(folder: Path, **answers: tuple[int, Any]) -> Iterator[Upstream]:
    table = {
        name.replace("__", "/"): (status, body if isinstance(body, bytes) else json.dumps(body).encode())
        for name, (status, body) in answers.items()
    }
    found = Upstream(folder / "s", table)
    try:
        yield found
    finally:
        found.close()


def relayed(folder: Path, *messages: Any) -> list[Any]:
    out = io.BytesIO()
    lines_in = [message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n" for message in messages]
    Relay(str(folder / "s"), out).run(lines_in)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def rpc(method: str, id: int | None = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, **({} if id is None else {"id": id})}


def test_relay_says_version_method_and_name_in_the_headers(tmp_path: Path) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}}
    done = {"jsonrpc": "2.0", "id": 2, "result": {}}
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    with upstream(tmp_path, initialize=(200, hello), tools__call=(200, done), tools__list=(200, done)) as server:
        answers = relayed(
            tmp_path,
            rpc("initialize"),
            rpc("notifications/initialized", None),
            rpc("tools/call", 2, name="t0"),
            rpc("tools/list", 3, _meta=meta),
        )
    assert sorted(answer["id"] for answer in answers) == [1, 2, 3]
    assert answers[0] == hello
    told = {message["method"]: headers for headers, message in server.seen}
    assert told["initialize"]["mcp-protocol-version"] == "2025-03-26"
    assert (told["tools/call"]["mcp-protocol-version"], told["tools/call"]["mcp-method"], told["tools/call"]["mcp-name"]) == (
        "2025-06-18", "tools/call", "t0",
    )  # fmt: skip
    assert told["tools/list"]["mcp-protocol-version"] == "2026-07-28"
    assert told["notifications/initialized"]["mcp-protocol-version"] == "2025-06-18"


def test_header_cannot_be_split_by_a_name(tmp_path: Path) -> None:
    with upstream(tmp_path, tools__call=(200, {"result": {}})) as server:
        relayed(tmp_path, rpc("tools/call", name="t0\r\nX-Evil: 1\r\n\r\n"))
    assert "x-evil" not in server.seen[0][0]
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("line", "code"), [(b"not json\n", -32700), (b"[1]\n", -32600), (b"[" * 100_000 + b"\n", -32700), (b'"x"\n', -32600)]
)
def test_line_that_is_no_message_is_told_and_not_sent(tmp_path: Path, line: bytes, code: int) -> None:
    with upstream(tmp_path) as server:
        (answer,) = relayed(tmp_path, line, b"\n")
    assert (answer["error"]["code"], server.seen) == (code, [])


@pytest.mark.parametrize("answer", [(500, b"oops"), (200, b""), (200, [1])])
def test_answer_that_is_no_message_becomes_an_error(tmp_path: Path, answer: tuple[int, Any]) -> None:
    with upstream(tmp_path, ping=answer):
        (told,) = relayed(tmp_path, rpc("ping", 7))
    assert told["id"] == 7
    assert "error" in told


def test_server_that_is_gone_answers_every_request_with_an_error(tmp_path: Path) -> None:
    answers = relayed(tmp_path, *(rpc("ping", number) for number in range(20)), rpc("notifications/x", None))
    assert sorted(answer["id"] for answer in answers) == list(range(20))
    assert all("does not answer" in answer["error"]["message"] for answer in answers)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_official_client_uses_the_memory_over_stdio(memory: Memory, mode: str) -> None:
    from mcp import StdioServerParameters
    from mcp.client import Client

    program, *arguments = command(memory)

    async def use() -> None:
        async with Client(StdioServerParameters(command=program, args=arguments), mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
            stored = await client.call_tool("write", {"type": "fact", "title": "Zebra", "body": "Stripes."})
            assert not stored.is_error
            found = await client.call_tool("search", {"query": "zebra"})
            assert json.loads(found.content[0].text)["total"] == 1  # type: ignore[union-attr]

    within(use)
    assert lines(memory, "writes")[0]["principal"] == AGENT


def test_server_that_cannot_start_says_why_and_ends(memory: Memory) -> None:
    memory.root.grants.write_text("owner = 3\n")
    done = subprocess.run(command(memory), input=json.dumps(rpc("ping")).encode() + b"\n", capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    assert b"amem: " in done.stderr
    assert b"Traceback" not in done.stderr
    assert "error" in json.loads(done.stdout)


def test_tree_it_is_started_in_is_not_imported(memory: Memory, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("amem", "json", "aiohttp", "mcp", "asyncio"):
        (tree / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r})\nraise SystemExit(9)\n")
    line = json.dumps(rpc("ping")).encode() + b"\n"
    done = subprocess.run(command(memory), input=line, capture_output=True, timeout=60, check=False, cwd=tree)
    assert json.loads(done.stdout)["result"] == {}, done.stderr
    assert not (tmp_path / "imported").exists()


def test_ctrl_c_ends_it_without_a_trace_of_ours(memory: Memory) -> None:
    root = memory.root.path
    amem = [sys.executable, "-m", "amem", "--root", str(root), "serve", "--domain", "dom-me"]
    with subprocess.Popen(amem, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as relay:
        assert relay.stdin is not None and relay.stdout is not None and relay.stderr is not None
        relay.stdin.write(json.dumps(rpc("ping")).encode() + b"\n")
        relay.stdin.flush()
        assert b'"id":1' in relay.stdout.readline()
        os.killpg(relay.pid, signal.SIGINT)
        assert relay.wait(60) == 130
        assert relay.stderr.read().strip() == b""


def test_a_folder_too_deep_for_a_socket_is_left_for_another(memory: Memory, tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 20)
    deep.mkdir()
    line, environment = json.dumps(rpc("ping")).encode() + b"\n", {**os.environ, "TMPDIR": str(deep)}
    done = subprocess.run(command(memory), input=line, capture_output=True, timeout=60, check=False, env=environment)
    assert json.loads(done.stdout)["result"] == {}, done.stderr


@pytest.fixture
def here() -> Iterator[Path]:
    """A folder with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as made:
        yield Path(made)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_child_ends_when_the_relay_is_killed_and_leaves_nothing(memory: Memory, here: Path, by: signal.Signals) -> None:
    relay = subprocess.Popen(command(memory), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(here)})
    assert relay.stdin is not None
    assert relay.stdout is not None
    relay.stdin.write(json.dumps(rpc("ping")).encode() + b"\n")
    relay.stdin.flush()
    assert b'"id":1' in relay.stdout.readline()
    children = Path(f"/proc/{relay.pid}/task/{relay.pid}/children").read_text().split()
    assert len(children) == 1
    handle = os.pidfd_open(int(children[0]))
    assert len(list(here.rglob("memory.sock"))) == 1
    relay.send_signal(by)
    relay.wait()
    relay.stdin.close()
    relay.stdout.close()
    import select

    ready, _, _ = select.select([handle], [], [], 30)
    os.close(handle)
    assert ready and list(here.iterdir()) == []

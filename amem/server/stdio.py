"""`amem serve`: the memory server on standard input and output, for a harness that starts it as a program.

This process is a relay made of the standard library: a line in is a POST to the real server, its answer a line out. The
real server is a child on a Unix socket that only this user can reach, whose listener is made here, before the child starts,
so that what is sent meanwhile waits. The child ends when this process does, however that happens: it holds one end of
a pipe, and takes the socket away. The relay forwards and understands no tool.
"""

import http.client
import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any

WORKERS = 4
LINE_LIMIT_BYTES = 8 << 20
ANSWER_TIMEOUT_S = 600.0
LONGEST_FOLDER = 80
"""Bytes: the path of a socket has 107 (unix(7)), some of them for the names in that folder."""
FIRST_VERSION = "2025-03-26"
"""What a message without a version is taken for, before the handshake is done (MCP 2025-06-18, transports)."""
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_ALONE = ("initialize", "server/discover")
"""Nothing else is sent while one of these is under way: what comes after depends on what it answers."""
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose subject is repeated in the `Mcp-Name` header, and the key it stands under."""


def main(root: str, domain: str, principal: str) -> int:
    """Serve until standard input ends; 0, or the child's own code when it ended first."""
    usual = tempfile.gettempdir()
    short = usual if len(os.fsencode(usual)) <= LONGEST_FOLDER else "/tmp"
    with tempfile.TemporaryDirectory(prefix="amem-", dir=short) as folder:  # made 0700
        path = os.path.join(folder, "memory.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            listener.listen(64)
            alive, held = os.pipe()
            command = [sys.executable, "-P", "-m", "amem.server.stdio", str(listener.fileno()), str(alive), root, domain, principal, path]
            child = subprocess.Popen(
                command, pass_fds=(listener.fileno(), alive), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                process_group=0,  # a Ctrl-C is this process's, and the pipe tells the child
            )  # fmt: skip
            os.close(alive)
        try:
            Relay(path, sys.stdout.buffer).run(sys.stdin.buffer, ended=lambda: child.poll() is not None)
        finally:
            os.close(held)
            code = child.wait()
    return code


class Relay:
    """Forwards lines to the server at a Unix socket and its answers back, several at once."""

    def __init__(self, path: str, writer: IO[bytes]) -> None:
        self._path = path
        self._writer = writer
        self._writing = threading.Lock()  # guards _writer: a line goes out whole
        self._version = FIRST_VERSION
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue(maxsize=64)

    def run(self, lines: Iterable[bytes], *, ended: Callable[[], bool] = lambda: False) -> None:
        """Relay every line until there are no more; answers under way are waited for."""
        threads = [threading.Thread(target=self._work, name=f"relay-{number}", daemon=True) for number in range(WORKERS)]
        for thread in threads:
            thread.start()
        for line in lines:
            if ended():
                break
            message = _message(line)
            if isinstance(message, _Unread):
                self._answer({"jsonrpc": "2.0", "id": None, "error": {"code": message.code, "message": message.why}})
            elif message is not None:
                if message.get("method") in _ALONE:
                    self._lines.join()
                    self._lines.put(message)
                    self._lines.join()
                else:
                    self._lines.put(message)
        for _ in threads:
            self._lines.put(None)
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        with closing(_UnixConnection(self._path)) as connection:
            while True:
                message = self._lines.get()
                try:
                    if message is None:
                        return
                    self._forward(connection, message)
                finally:
                    self._lines.task_done()

    def _forward(self, connection: http.client.HTTPConnection, message: dict[str, Any]) -> None:
        id = message.get("id")
        try:
            status, body = self._post(connection, message)
            answer = json.loads(body) if body.strip() else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            status, answer = 503, {"error": {"code": -32000, "message": f"the memory server does not answer: {error}"}}
        if id is None:
            return  # a notification, or an answer to a request this server never makes: nothing comes back
        if not isinstance(answer, dict):
            answer = {"error": {"code": -32000, "message": f"the memory server answered {status} without JSON"}}
        if message.get("method") == "initialize" and isinstance(found := answer.get("result"), dict):
            self._version = str(found.get("protocolVersion", self._version))
        self._answer({"jsonrpc": "2.0", **answer, "id": id})

    def _post(self, connection: http.client.HTTPConnection, message: dict[str, Any]) -> tuple[int, bytes]:
        headers = {
            "Host": "localhost",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self._version,
        }
        params = message.get("params")
        if isinstance(params, dict):
            meta = params.get("_meta")
            if isinstance(meta, dict) and isinstance(version := meta.get(_VERSION_KEY), str):
                headers["MCP-Protocol-Version"] = _header(version)
        method = message.get("method")
        if isinstance(method, str):
            headers["Mcp-Method"] = _header(method)
            key = _NAMED.get(method)
            if key and isinstance(params, dict) and isinstance(name := params.get(key), str):
                headers["Mcp-Name"] = _header(name)
        body = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
        try:
            connection.request("POST", "/mcp", body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except BaseException:
            connection.close()
            raise

    def _answer(self, answer: dict[str, Any]) -> None:
        line = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        with self._writing:
            self._writer.write(line)
            self._writer.flush()


class _Unread:
    def __init__(self, code: int, why: str) -> None:
        self.code = code
        self.why = why


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=ANSWER_TIMEOUT_S)
        self._unix_path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._unix_path)


def _message(line: bytes) -> dict[str, Any] | _Unread | None:
    """The message of a line; None for an empty one."""
    if not line.strip():
        return None
    if len(line) > LINE_LIMIT_BYTES:
        return _Unread(-32600, f"a message may have {LINE_LIMIT_BYTES} bytes")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return _Unread(-32700, "not a line of JSON")
    return found if isinstance(found, dict) else _Unread(-32600, "a message is one JSON object")


def _header(text: str) -> str:
    """A value that cannot end its header line; what does not fit is refused by the server, which compares it with the body."""
    return "".join(character if " " <= character <= "~" else "?" for character in text[:1024])


def serve(listener_fd: int, alive_fd: int, root: str, domain: str, principal: str) -> None:
    """The child: the whole memory server on a listener, until the pipe's other end is closed."""
    import asyncio

    from aiohttp import web

    from amem.memory.session import agent_session, open_memory
    from amem.model import ids
    from amem.server.app import application
    from amem.settings import grants
    from amem.settings.root import Root

    where = Root(Path(root)).existing()
    memory = open_memory(where, grants.load(where.grants))
    session = agent_session(memory, id=ids.draw("session"), principal=principal, domain=domain, harness="stdio")

    async def run() -> None:
        runner = web.AppRunner(application(memory, session), access_log=None)
        await runner.setup()
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(alive_fd, ended.set)
        await web.SockSite(runner, socket.socket(fileno=listener_fd)).start()
        await ended.wait()
        await runner.cleanup()

    try:
        asyncio.run(run())
    finally:
        memory.close()


def _take_away(path: str) -> None:
    """Remove the socket and its folder: a relay that was killed cannot."""
    with suppress(OSError):
        os.unlink(path)
        os.rmdir(os.path.dirname(path))


if __name__ == "__main__":
    from amem.errors import AmemError

    try:
        serve(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:6])
    except AmemError as error:
        sys.exit(f"amem: {error.message}" + (f"\ntry: {error.hint}" if error.hint else ""))
    finally:
        _take_away(sys.argv[6])

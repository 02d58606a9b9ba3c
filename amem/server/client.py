"""A small MCP client for amem's own use of a memory server: the 2025-06-18 handshake over HTTP, one call after another.

Standard library only; no SDK. Not for servers of strangers: it expects JSON answers, as this server gives them.
"""

import http.client
import itertools
import json
import socket
from collections.abc import Callable
from types import TracebackType
from urllib.parse import urlsplit

from amem.errors import AmemError, UnavailableError, UpstreamError
from amem.typed import Any, NamedTuple

PROTOCOL = "2025-06-18"
ANSWER_LIMIT_BYTES = 16 << 20
TIMEOUT_S = 60.0


class Answer(NamedTuple):
    """What a tool answered: the JSON object, the fenced text beside it, and whether it is a refusal."""

    data: dict[str, Any]
    text: str | None
    refused: bool


class Client:
    """A connection to a memory server at `http://host:port/path`: over TCP, a Unix socket (`socket_path`), or what `dial` connects."""

    def __init__(
        self, url: str, *, token: str | None = None, socket_path: str | None = None, dial: Callable[[], socket.socket] | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise UnavailableError(f"{url}: a memory server is reached over http on this machine")
        self._path = parts.path or "/"
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection = _Connection(parts.hostname, parts.port, dial or (_unix(socket_path) if socket_path else None))
        self._ids = itertools.count(1)
        self.instructions: str | None = None
        """What the server says about its tools, after `open`."""

    def __enter__(self) -> "Client":
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def open(self) -> None:
        """Shake hands. Raises UnavailableError, UpstreamError; the connection is closed then."""
        who = {"name": "amem", "version": "1"}
        try:
            result = self._request("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": who})
        except AmemError:
            self.close()
            raise
        self._headers["MCP-Protocol-Version"] = str(result.get("protocolVersion", PROTOCOL))
        self.instructions = result.get("instructions")
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tools(self) -> list[dict[str, Any]]:
        """The server's tools. Raises UnavailableError, UpstreamError."""
        listed: list[dict[str, Any]] = self._request("tools/list", {})["tools"]
        return listed

    def call(self, name: str, **arguments: Any) -> Answer:
        """Call a tool. A refusal is an answer. Raises UnavailableError, UpstreamError."""
        result = self._request("tools/call", {"name": name, "arguments": arguments})
        texts = [block["text"] for block in result["content"] if block.get("type") == "text"]
        try:
            data = json.loads(texts[0])
        except (IndexError, ValueError) as error:
            raise UpstreamError(f"{name}: the memory server's answer holds no JSON object") from error
        return Answer(data, texts[1] if len(texts) > 1 else None, bool(result.get("isError")))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = self._post({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})
        if not isinstance(answer, dict) or "result" not in answer:
            error = answer.get("error") if isinstance(answer, dict) else None
            told = error.get("message") if isinstance(error, dict) else None
            raise UpstreamError(f"{method}: {told or 'the memory server gave no result'}")
        result: dict[str, Any] = answer["result"]
        return result

    def _post(self, message: dict[str, Any]) -> Any:
        try:
            self._connection.request("POST", self._path, json.dumps(message).encode(), self._headers)
            response = self._connection.getresponse()
            body = response.read(ANSWER_LIMIT_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()  # the next request opens a new one; this one may or may not have been heeded
            raise UnavailableError(f"the memory server does not answer: {error}") from error
        if len(body) > ANSWER_LIMIT_BYTES:
            self._connection.close()
            raise UpstreamError("the memory server's answer is too long")
        if response.status == 202:
            return None
        try:
            return json.loads(body)
        except ValueError:
            raise UpstreamError(f"the memory server answered {response.status} without JSON") from None


class _Connection(http.client.HTTPConnection):
    def __init__(self, host: str, port: int | None, dial: Callable[[], socket.socket] | None) -> None:
        super().__init__(host, port, timeout=TIMEOUT_S)
        self._dial = dial

    def connect(self) -> None:
        if self._dial is None:
            super().connect()
            return
        self.sock = self._dial()
        self.sock.settimeout(self.timeout)


def _unix(path: str) -> Callable[[], socket.socket]:
    def dial() -> socket.socket:
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            found.settimeout(TIMEOUT_S)
            found.connect(path)
        except OSError:
            found.close()
            raise
        return found

    return dial

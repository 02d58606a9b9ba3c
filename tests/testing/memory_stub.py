"""A memory server of two minutes' making: enough MCP for a client to list and call tools, in both framings.

It stands in for `amem.server` where the client is what is tested. The real one has its own tests.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HIT = {"id": "mem-demo-0123456789ab", "type": "fact", "title": "doc.md: Egress", "summary": "One door.", "score": 1.0, "tokens": 9}
ANSWERS: dict[str, list[Any]] = {
    "t0": [{"tokens": 12, "entries": [HIT["id"]]}, "You are agent:test in dom-demo."],
    "search": [{"hits": [HIT], "total": 1, "more": False, "mode": "all"}],
    "get": [{"id": HIT["id"], "title": HIT["title"]}, "The body, fenced."],
    "write": [{"id": "mem-demo-ba9876543210", "version": 1, "tier": "raw"}],
    "handoff": [{"id": "mem-demo-aaaaaaaaaaaa"}],
}
"""Tool -> its blocks: one JSON object, and for some a long text after it."""
TOOLS = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in [*ANSWERS, "list"]]


class Stub:
    """What the stub was asked, in order."""

    def __init__(self) -> None:
        self.url = ""
        self.methods: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []


@contextmanager
def memory_stub(*, events: bool = False, refuse: str = "") -> Iterator[Stub]:
    """Serve while the block lasts. `events`: answer as an event stream; `refuse`: the tool that answers isError."""
    stub = Stub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            stub.methods.append(message["method"])
            stub.headers.append({name.lower(): value for name, value in self.headers.items()})
            if "id" not in message:
                return self._send(202, b"", "application/json")
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **_answer(message)}).encode()
            if events:
                return self._send(200, b": hello\n\nevent: message\ndata: " + body + b"\n\n", "text/event-stream")
            return self._send(200, body, "application/json")

        def do_GET(self) -> None:
            self._send(405, b"", "text/plain")

        do_DELETE = do_GET

        def _send(self, status: int, body: bytes, media: str) -> None:
            self.send_response(status)
            self.send_header("content-type", media)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    def _answer(message: dict[str, Any]) -> dict[str, Any]:
        params = message.get("params") or {}
        match message["method"]:
            case "initialize":
                version = params["protocolVersion"]
                info = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "memory", "version": "0"}}
                return {"result": info}
            case "tools/list":
                return {"result": {"tools": TOOLS}}
            case "tools/call":
                name = params["name"]
                stub.calls.append((name, params.get("arguments") or {}))
                blocks = [{"type": "text", "text": b if isinstance(b, str) else json.dumps(b)} for b in ANSWERS[name]]
                return {"result": {"content": blocks, "isError": name == refuse}}
            case method:
                return {"error": {"code": -32601, "message": f"no method {method}"}}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    stub.url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

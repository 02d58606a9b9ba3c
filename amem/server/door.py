"""The memory tools as a launcher is served them, over a connection that only it has: calls and answers as over MCP, without its SDK.

The SDK takes most of a second to import; a worker that finds no task, or is about to start its harness, shall not wait for it. Speaks what
`client` speaks and nothing more.
"""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web

from amem.memory.session import Memory, Session
from amem.server import replies, tools
from amem.server.client import PROTOCOL
from amem.typed import Any

BODY_LIMIT_BYTES = 4 << 20


def application(memory: Memory, session: Session, worker: ThreadPoolExecutor) -> web.Application:
    """An application that answers the launcher in its own name; the tools run in `worker`, which is the caller's."""

    async def answer(request: web.Request) -> web.Response:
        message = json.loads(await request.read())
        method, params = message["method"], message.get("params", {})
        match method:
            case "initialize":
                result: dict[str, Any] = {"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": {"name": "memory"}}
            case "tools/call":
                result = await call(params["name"], params.get("arguments", {}))
            case _ if "id" not in message:
                return web.Response(status=202)
            case _:
                error = {"code": -32601, "message": f"{method}: not spoken here"}
                return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def call(name: str, arguments: object) -> dict[str, Any]:
        def run() -> replies.Reply:
            return tools.call(memory, session, name, arguments, "launcher")

        reply = await asyncio.get_running_loop().run_in_executor(worker, replies.answer, run)
        return {"content": [{"type": "text", "text": text} for text in replies.blocks(reply)], "isError": reply.refused}

    app = web.Application(client_max_size=BODY_LIMIT_BYTES)
    app.router.add_post("/mcp", answer)
    return app

import http.client
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from amem.memory.session import Memory, Session
from amem.model.label import Label
from amem.server import app as served
from amem.server.app import McpApp, add_routes, application
from amem.server.tools import INSTRUCTIONS, TOOLS
from amem.settings.credentials import Secret
from tests.memory.seed import agent, lines, owner, written
from tests.server.serving import serving, within

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2.1.332"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Answer:
    """A raw HTTP answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.json: Any = json.loads(body) if body and headers.get("content-type", "").startswith("application/json") else None


def send(url: str, message: Any, *, method: str = "POST", path: str = "/mcp", **headers: str) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = message if isinstance(message, (bytes, type(None))) else json.dumps(message).encode()
    connection.request(method, path, body, {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}})
    response = connection.getresponse()
    found = Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    connection.close()
    return found


def rpc(method: str, id: int | None = 1, **params: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return message if id is None else {**message, "id": id}


def test_codex_handshake_of_2025_06_18(memory: Memory) -> None:
    session = agent(memory, "agent:codex")
    with serving(lambda: application(memory, session)) as url:
        hello = send(
            url, rpc("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "codex", "version": "0.171"})
        )
        assert hello.json["result"]["protocolVersion"] == "2025-06-18"
        assert hello.json["result"]["instructions"] == INSTRUCTIONS
        assert hello.json["result"]["serverInfo"]["name"] == "memory"
        assert send(url, rpc("notifications/initialized", None), MCP_Protocol_Version="2025-06-18").status == 202
        assert send(url, None, method="GET", Accept="text/event-stream").status == 405
        listed = send(url, rpc("tools/list", 2), MCP_Protocol_Version="2025-06-18").json["result"]["tools"]
        assert [tool["name"] for tool in listed] == list(TOOLS)
        assert all("outputSchema" not in tool for tool in listed)
        called = send(url, rpc("tools/call", 3, name="t0", arguments={}), MCP_Protocol_Version="2025-06-18").json["result"]
        assert called["isError"] is False
        assert [block["type"] for block in called["content"]] == ["text", "text"]
        assert json.loads(called["content"][0]["text"])["entries"] == []
        assert session.id in called["content"][1]["text"]
        assert "structuredContent" not in called
        ended = send(url, None, method="DELETE")
        assert (ended.status, ended.headers["allow"]) == (405, "POST")


def test_claude_calls_of_2026_07_28(memory: Memory) -> None:
    session = agent(memory)
    with serving(lambda: application(memory, session)) as url:

        def modern(method: str, subject: str | None = None, **params: Any) -> Answer:
            headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method, **({"Mcp_Name": subject} if subject else {})}
            return send(url, rpc(method, **params, _meta=META), **headers)

        found = modern("server/discover").json["result"]
        assert MODERN in found["supportedVersions"]
        assert found["instructions"] == INSTRUCTIONS
        assert modern("prompts/list").json["result"]["prompts"] == []
        assert modern("resources/list").json["result"]["resources"] == []
        assert modern("resources/templates/list").json["result"]["resourceTemplates"] == []
        assert [tool["name"] for tool in modern("tools/list").json["result"]["tools"]] == list(TOOLS)
        arguments = {"type": "fact", "title": "Zebra", "body": "It has stripes."}
        called = modern("tools/call", "write", name="write", arguments=arguments).json["result"]
        told = json.loads(called["content"][0]["text"])
        assert memory.store.read(told["id"]).title == "Zebra"
        assert (told["tier"], told["classification"]) == ("raw", "internal")
        mismatch = modern("tools/call", "t0", name="write", arguments=arguments)
        assert mismatch.status == 400
        assert len(lines(memory, "writes")) == 1


@pytest.mark.parametrize("mode", ["legacy", MODERN, "auto"])
def test_official_client_reads_and_writes_in_both_eras(memory: Memory, mode: str) -> None:
    from mcp.client import Client

    session = agent(memory)

    async def use(url: str) -> None:
        async with Client(f"{url}/mcp", mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
            for title in ("Zebra one", "Zebra two"):
                stored = await client.call_tool("write", {"type": "fact", "title": title, "body": f"# {title}\n\nStripes."})
                assert not stored.is_error
            found = json.loads((await client.call_tool("search", {"query": "zebra"})).content[0].text)  # type: ignore[union-attr]
            assert found["total"] == 2
            opened = await client.call_tool("get", {"id": found["hits"][0]["id"]})
            assert len(opened.content) == 2
            assert "Stripes." in opened.content[1].text  # type: ignore[union-attr]
            assert "body" not in json.loads(opened.content[0].text)  # type: ignore[union-attr]
            missing = await client.call_tool("get", {"id": "mem-me-00000000000z"})
            assert missing.is_error
            left = await client.call_tool("handoff", {"body": "Done here.", "done": ["all"]})
            assert not left.is_error

    with serving(lambda: application(memory, session)) as url:
        within(lambda: use(url))
    assert len(session.handoffs) == 1
    assert session.label is Label.INTERNAL


def test_listener_names_the_session_and_no_argument_does(memory: Memory) -> None:
    written(memory, owner(memory), "Zebra", classification="public")
    first, second = agent(memory, "agent:claude"), agent(memory, "agent:codex")
    with serving(lambda: application(memory, first)) as one, serving(lambda: application(memory, second)) as two:
        for url, session in ((one, first), (two, second)):
            told = send(url, rpc("tools/call", name="search", arguments={"query": "zebra", "session": "ses-00000000"}))
            assert json.loads(told.json["result"]["content"][0]["text"])["code"] == "invalid"
            send(url, rpc("tools/call", name="search", arguments={"query": "zebra"}))
            assert (lines(memory, "reads")[-1]["session"], lines(memory, "reads")[-1]["principal"]) == (session.id, session.principal)


def test_call_without_the_session_token_is_refused_before_it_is_read(memory: Memory) -> None:
    session = agent(memory)
    token = "tok-6b0c"
    with serving(lambda: application(memory, session, token=Secret(token))) as url:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"bearer {token}"}, {"Authorization": f"Bearer {token}é"}):
            encoded = {name: value.encode().decode("latin-1") for name, value in headers.items()}
            assert send(url, rpc("tools/list"), **encoded).status == 401
            assert send(url, {}, path="/hook/pre-tool", **encoded).status == 403
        assert send(url, rpc("tools/list"), Authorization=f"Bearer {token}").status == 200
        assert send(url, {"tool_name": "x"}, path="/hook/pre-tool", Authorization=f"Bearer {token}").status == 204


def test_rebound_name_and_foreign_page_are_refused(memory: Memory) -> None:
    with serving(lambda: application(memory, agent(memory))) as url:
        assert send(url, rpc("tools/list"), Host="attacker.example:80").status == 421
        assert send(url, rpc("tools/list"), Origin="http://attacker.example").status == 403
        for origin in ("http://127.0.0.1:1", "https://" + url[7:], "null", "", "http://attacker.example:80"):
            assert send(url, rpc("tools/list"), Origin=origin).status == 403
        assert send(url, rpc("tools/list"), Host="attacker.example:80", Origin="http://attacker.example:80").status == 421
        assert send(url, rpc("tools/list"), Origin=url).status == 200
        assert send(url, rpc("tools/list"), Host="localhost:1").status == 200


def test_body_above_the_limit_is_refused(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "BODY_LIMIT_BYTES", 1000)
    with serving(lambda: application(memory, agent(memory))) as url:
        assert send(url, b"x" * 1001).status == 413
        assert send(url, rpc("tools/list")).status == 200


def test_requests_before_the_server_is_imported_wait(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked, release = served._import, threading.Event(), threading.Event()

    def slow() -> Callable[[McpApp, int], Any]:
        asked.set()
        release.wait()
        return real()

    monkeypatch.setattr(served, "_import", slow)

    def make() -> web.Application:
        app = application(memory, agent(memory))

        async def other(_: web.Request) -> web.Response:
            return web.json_response({"served": True})

        app.router.add_post("/v1/messages", other)
        return app

    with serving(make) as url, ThreadPoolExecutor() as pool:
        waiting = pool.submit(send, url, rpc("tools/list"))
        asked.wait()
        assert send(url, {}, path="/v1/messages").json == {"served": True}
        assert not waiting.done()
        release.set()
        assert waiting.result().status == 200


def test_server_that_cannot_start_says_so_and_the_rest_is_served(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Callable[[McpApp, int], Any]:
        raise ImportError("no module named mcp")

    monkeypatch.setattr(served, "_import", broken)
    with pytest.raises(ImportError, match="no module named mcp"), serving(lambda: application(memory, agent(memory))) as url:
        assert send(url, rpc("tools/list")).status == 503
        assert send(url, {"tool_name": "x"}, path="/hook/pre-tool").status == 204


def test_guard_answers_in_the_shape_of_the_session_harness(memory: Memory) -> None:
    event = {"tool_name": "Bash", "tool_input": {"command": "cat /memory/x.md"}, "cwd": "/r"}
    with serving(lambda: application(memory, agent(memory))) as url:
        denied = send(url, event, path="/hook/pre-tool")
        assert denied.status == 200
        assert denied.json["hookSpecificOutput"]["permissionDecision"] == "deny"
        assert send(url, event, path="/hook/pre-tool?harness=grok").status == 403
        assert send(url, {**event, "tool_input": {"command": "ls"}}, path="/hook/pre-tool?harness=codex").status == 204
        assert send(url, b"not json", path="/hook/pre-tool").json["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_calls_at_once_are_all_answered_and_none_lost(memory: Memory) -> None:
    session = agent(memory)

    def call(number: int) -> Any:
        arguments = {"type": "fact", "title": f"Zebra {number}", "body": "b"}
        return send(url, rpc("tools/call", number + 1, name="write", arguments=arguments)).json

    with serving(lambda: application(memory, session)) as url, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(call, range(40)))
    assert [answer["id"] for answer in answers] == list(range(1, 41))
    assert len({json.loads(answer["result"]["content"][0]["text"])["id"] for answer in answers}) == 40
    assert len(session.entries) == len(list(memory.store.walk())) == 40


def test_routes_leave_other_paths_to_the_application(memory: Memory) -> None:
    def make() -> web.Application:
        app = web.Application()
        add_routes(app, McpApp(memory, agent(memory)))

        async def rest(request: web.Request) -> web.Response:
            return web.json_response({"path": request.path})

        app.router.add_route("*", "/{rest:.*}", rest)
        return app

    with serving(make) as url:
        assert send(url, None, method="GET").status == 405
        assert send(url, None, method="GET", path="/v1/models").json == {"path": "/v1/models"}
        assert send(url, rpc("tools/list")).status == 200


def test_session_label_is_what_the_egress_sees_after_a_read(memory: Memory) -> None:
    written(memory, owner(memory), "Zebra")
    session: Session = agent(memory)
    with serving(lambda: application(memory, session)) as url:
        assert session.label is Label.PUBLIC
        send(url, rpc("tools/call", name="search", arguments={"query": "zebra"}))
        assert session.label is Label.INTERNAL

import pytest
from aiohttp import web

from amem.errors import UnavailableError, UpstreamError
from amem.memory.session import Memory
from amem.server.app import application
from amem.server.client import Client
from amem.server.tools import INSTRUCTIONS, TOOLS
from amem.settings.credentials import Secret
from tests.memory.seed import agent
from tests.server.serving import serving


def test_client_shakes_hands_and_calls(memory: Memory) -> None:
    with serving(lambda: application(memory, agent(memory))) as url, Client(f"{url}/mcp") as client:
        assert client.instructions == INSTRUCTIONS
        assert [tool["name"] for tool in client.tools()] == list(TOOLS)
        stored = client.call("write", type="fact", title="Zebra", body="Stripes.")
        assert not stored.refused
        opened = client.call("get", id=stored.data["id"])
        assert opened.text is not None
        assert "Stripes." in opened.text
        missing = client.call("get", id="mem-me-00000000000z")
        assert (missing.refused, missing.data["code"], missing.text) == (True, "not_found", None)


def test_client_carries_its_token(memory: Memory) -> None:
    with serving(lambda: application(memory, agent(memory), token=Secret("t0ken"))) as url:
        with Client(f"{url}/mcp", token="t0ken") as client:
            assert client.tools()
        with pytest.raises(UpstreamError, match="bearer"):
            Client(f"{url}/mcp", token="wrong").open()


def test_client_says_what_is_not_there() -> None:
    with pytest.raises(UnavailableError, match="does not answer"):
        Client("http://127.0.0.1:1/mcp").open()
    with pytest.raises(UnavailableError, match="over http"):
        Client("https://127.0.0.1/mcp")


@pytest.mark.parametrize("body", ["", "no json", "[]", '{"jsonrpc":"2.0","id":1}', '{"jsonrpc":"2.0","id":1,"error":"x"}'])
def test_answer_that_is_none_is_an_upstream_error(body: str) -> None:
    def make() -> web.Application:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(text=body, content_type="application/json")

        app = web.Application()
        app.router.add_post("/mcp", answer)
        return app

    with serving(make) as url, pytest.raises(UpstreamError):
        Client(f"{url}/mcp").open()

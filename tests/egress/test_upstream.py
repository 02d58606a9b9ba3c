"""Why a destination was not reached is said in words of ours, and with nothing of what was sent."""

import asyncio
import socket
import ssl

import pytest

from amem.egress.destinations import Header
from amem.egress.routes import Route
from amem.egress.upstream import Upstream, why_unreached
from amem.model.call import Auth, Billing


def route(url: str) -> Route:
    return Route(
        destination="demo", base_url=url, ceiling=None, billing=Billing.METERED, auth=Auth.KEY, header=Header("authorization"), inward=True
    )  # fmt: skip


def reached(url: str) -> str:
    async def send() -> str:
        upstream = Upstream([route(url)], idle_s=20)
        try:
            await upstream.send("GET", url, [("x-secret", "planted")], None)
        except Exception as error:
            return why_unreached(error)
        finally:
            await upstream.close()
        return ""

    return asyncio.run(send())


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_port_that_nobody_listens_on_is_called_so() -> None:
    assert reached(f"http://127.0.0.1:{closed_port()}/v1?key=planted") == "Connection refused"


def test_a_name_that_is_none_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert reached("http://nowhere.invalid/v1?key=planted") == "its name cannot be resolved from here"


def test_a_server_without_tls_is_called_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        import threading

        def speak_plainly() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

        threading.Thread(target=speak_plainly, daemon=True).start()
        assert reached(f"https://127.0.0.1:{server.getsockname()[1]}/v1") == "it does not speak TLS as is due"


def test_what_else_may_be_is_told_by_its_class_alone() -> None:
    assert why_unreached(ValueError("https://host/?key=planted")) == "ValueError"
    assert why_unreached(ssl.SSLError()) == "SSLError"

"""A tunnel goes to a listed host and no other, whatever the client says outside or inside TLS; every refusal is logged first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from amem.egress import tunnel
from amem.egress.routes import Way
from amem.egress.tunnel import TunnelError, dial_public
from amem.logs.schema import PolicyDecision
from amem.model.call import Dialect
from amem.model.label import Label
from amem.settings.credentials import Secret
from tests.egress import hellos
from tests.egress.support import Session, call, session

HOST = "api.example.com"
HELLO = hellos.real(HOST)
CONNECT = f"CONNECT {HOST}:443 HTTP/1.1\r\nhost: {HOST}:443\r\n\r\n".encode()
OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"


@dataclass
class Far:
    """The host at the other end: what reached it, and what was dialled."""

    dialled: list[tuple[str, int]] = field(default_factory=list)
    got: bytearray = field(default_factory=bytearray)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    reply: bytes = b""
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, size: int) -> bytes:
        async with asyncio.timeout(20):
            while len(self.got) < size:
                self.changed.clear()
                await self.changed.wait()
        return bytes(self.got)


@asynccontextmanager
async def tunnelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **access: Any
) -> AsyncIterator[tuple[Session, Far, list[PolicyDecision]]]:
    far, notes = Far(), []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65536):
                far.got += piece
                far.changed.set()
                writer.write(far.reply or piece)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            far.gone.set()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def dial(host: str, number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        far.dialled.append((host, number))
        return await asyncio.open_connection("127.0.0.1", port)

    monkeypatch.setattr(tunnel, "dial_public", dial)
    given = {"tunnels": {HOST: Way("demo", Label.INTERNAL)}, "note": notes.append, "auth": "subscription", "credential": None, **access}
    async with session(tmp_path, **given) as s:
        yield s, far, notes
    server.close()


async def opened(s: Session, first: bytes = CONNECT) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", s.port)
    writer.write(first)
    return reader, writer


async def ended(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(20):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


def test_a_listed_host_gets_the_clients_bytes_and_the_client_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with tunnelled(tmp_path, monkeypatch) as (s, far, notes):
            reader, writer = await opened(s)
            assert await reader.readexactly(len(OPEN)) == OPEN
            for at in range(0, len(HELLO), 100):
                writer.write(HELLO[at : at + 100])
                await writer.drain()
            assert await far.until(len(HELLO)) == HELLO
            assert await reader.readexactly(len(HELLO)) == HELLO
            big = b"\x17\x03\x03" + bytes(range(256)) * 4000
            writer.write(big)
            assert await reader.readexactly(len(big)) == big
            assert far.dialled == [(HOST, 443)]
            assert [(asked.input["destination"], allowed) for asked, allowed in s.door.log] == [("demo", True)]
            assert notes == []
            writer.write_eof()
            assert await ended(reader) == b""
            writer.close()
            row = await s.row()
            assert (row["kind"], row["model"], row["status"], row["unmetered_reason"]) == ("tunnel", HOST, 200, "tunnel")

    asyncio.run(run())


def test_model_calls_go_on_beside_tunnels_on_the_same_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with tunnelled(tmp_path, monkeypatch) as (s, _, _):
            _, writer = await opened(s)
            for piece in (b"P", b"C", b"CON"):  # a client whose first bytes come slowly, and are those of no CONNECT
                _, slow = await opened(s, piece)
                slow.close()
            assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 200
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "first",
    [
        f"CONNECT evil.example:443 HTTP/1.1\r\nhost: {HOST}:443\r\n\r\n",
        f"CONNECT x.{HOST}:443 HTTP/1.1\r\n\r\n",
        f"CONNECT {HOST}.:443 HTTP/1.1\r\n\r\n",
        f"CONNECT {HOST}:22 HTTP/1.1\r\n\r\n",
        f"CONNECT {HOST}:80 HTTP/1.1\r\n\r\n",
        "CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n",
        "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
        "CONNECT 169.254.169.254:443 HTTP/1.1\r\n\r\n",
        f"CONNECT {HOST}@evil.example:443 HTTP/1.1\r\n\r\n",
        f"CONNECT {HOST}:443@evil.example:443 HTTP/1.1\r\n\r\n",
        f"CONNECT  {HOST}:443 HTTP/1.1\r\n\r\n",
        f"CONNECT {HOST}:443 HTTP/1.1\r\nhost: x\ny: z\r\n\r\n",
        f"CONNECT {HOST}:443 HTTP/1.1\r\nhost: x\r\n folded\r\n\r\n",
        f"CONNECT {HOST}:443 HTTP/1.1\r\ncontent-length: 5\r\n\r\n",
        f"CONNECT {HOST}:443 HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
        f"CONNECT {HOST}:443443443 HTTP/1.1\r\n\r\n",
        f"CONNECT {HOST} HTTP/1.1\r\n\r\n",
        f"CONNECT {HOST}:443 HTTP/2\r\n\r\n",
        f"CONNECT {HOST}:443 HTTP/1.1\r\nx: " + "a" * 20_000 + "\r\n\r\n",
    ],
)
def test_any_other_host_port_or_spelling_is_refused_and_nothing_is_dialled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    async def run() -> None:
        async with tunnelled(tmp_path, monkeypatch) as (s, far, notes):
            reader, writer = await opened(s, first.encode())
            writer.write(HELLO)
            answer = await ended(reader)
            writer.close()
            assert answer[:12] in (b"HTTP/1.1 403", b"HTTP/1.1 400", b"HTTP/1.1 431", b"")
            assert OPEN not in answer
            assert (far.dialled, s.door.log) == ([], [])
            assert all(not note.allow and note.action == "tunnel" for note in notes)
            if answer.startswith(b"HTTP/1.1 403"):
                assert len(notes) == 1

    asyncio.run(run())


def hidden(kind: int) -> bytes:
    return hellos.changed(HOST, lambda found: [*found, (kind, b"\x00" * 32)])


@pytest.mark.parametrize(
    "sent",
    [
        hellos.real("evil.example"),
        hellos.real(f"x.{HOST}"),
        hellos.real(None),
        hidden(0xFE0D),
        hidden(0xFFCE),
        hellos.changed(HOST, lambda found: [hellos.name_extension(HOST.encode(), b"evil.example"), *(e for e in found if e[0])]),
        b"GET / HTTP/1.1\r\nhost: api.example.com\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        HELLO[:100] + b"\x00" * len(HELLO),
        hellos.records(hellos.message(hellos.real("evil.example")), [1, 20, 3]),
    ],
)
def test_a_client_that_names_another_host_inside_is_cut_before_a_byte_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    async def run() -> None:
        async with tunnelled(tmp_path, monkeypatch) as (s, far, notes):
            reader, writer = await opened(s)
            assert await reader.readexactly(len(OPEN)) == OPEN
            writer.write(sent)
            assert await ended(reader) == b""
            writer.close()
            assert (far.dialled, bytes(far.got)) == ([], b"")
            assert [note.reasons[0]["code"] for note in notes] in (["tunnel_other_name"], ["tunnel_no_hello"])
            row = await s.row()
            assert (row["status"], row["kind"]) == (403, "tunnel")

    asyncio.run(run())


def test_a_hello_that_never_ends_ends_the_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnel, "HELLO_TIMEOUT_S", 0.2)

    async def run() -> None:
        async with tunnelled(tmp_path, monkeypatch) as (s, far, _):
            for first in (CONNECT + HELLO[:50], CONNECT[:20]):
                reader, writer = await opened(s, first)
                assert await ended(reader) in (OPEN, b"")
                writer.close()
            assert far.dialled == []

    asyncio.run(run())


def test_a_session_over_the_ceiling_opens_no_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with tunnelled(tmp_path, monkeypatch) as (s, far, _):
            s.label[0] = Label.RESTRICTED
            reader, writer = await opened(s)
            answer = await ended(reader)
            writer.close()
            assert answer.startswith(b"HTTP/1.1 403")
            assert b"above the ceiling" in answer
            assert [allowed for _, allowed in s.door.log] == [False]
            assert far.dialled == []

    asyncio.run(run())


@pytest.mark.parametrize("what", ["label", "stopped", "generation"])
def test_what_let_a_tunnel_open_must_hold_for_every_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    async def run() -> None:
        generation, why = [0], [None]
        async with tunnelled(tmp_path, monkeypatch, generation=lambda: generation[0], stopped=lambda: why[0]) as (s, far, notes):
            reader, writer = await opened(s)
            writer.write(HELLO)
            await reader.readexactly(len(OPEN) + len(HELLO))
            match what:
                case "label":
                    s.label[0] = Label.RESTRICTED
                case "stopped":
                    why[0] = "stopped by the owner"  # type: ignore[call-overload]
                case _:
                    generation[0] += 1
            writer.write(b"a secret that was just read")
            assert await ended(reader) == b""
            writer.close()
            assert bytes(far.got) == HELLO
            async with asyncio.timeout(20):
                await far.gone.wait()
            assert [note.reasons[0]["code"] for note in notes] == {
                "label": ["label_over_ceiling"],
                "stopped": [],
                "generation": ["tunnel_older_policy"],
            }[what]

    asyncio.run(run())


def test_a_silent_tunnel_is_closed_after_the_idle_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with tunnelled(tmp_path, monkeypatch, idle_s=0.2) as (s, _, _):
            reader, writer = await opened(s, CONNECT + HELLO)
            assert await ended(reader) == OPEN + HELLO
            writer.close()
            assert (await s.row())["status"] == 200

    asyncio.run(run())


def test_the_end_of_the_egress_ends_its_tunnels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with tunnelled(tmp_path, monkeypatch) as (s, far, _):
            reader, writer = await opened(s, CONNECT + HELLO)
            await reader.readexactly(len(OPEN) + len(HELLO))
        async with asyncio.timeout(20):
            await far.gone.wait()
        writer.close()

    asyncio.run(run())


def test_on_a_port_of_the_host_a_tunnel_needs_the_sessions_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with tunnelled(tmp_path, monkeypatch, token=Secret("session-token")) as (s, far, _):
            reader, writer = await opened(s)
            assert (await ended(reader)).startswith(b"HTTP/1.1 403")
            writer.close()
            assert far.dialled == []
            head = CONNECT.replace(b"\r\n\r\n", b"\r\nproxy-authorization: Bearer session-token\r\n\r\n")
            reader, writer = await opened(s, head)
            assert await reader.readexactly(len(OPEN)) == OPEN
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("carried", "status"),
    [
        ("Basic YW1lbTpzZXNzaW9uLXRva2Vu", b"200"),  # amem:session-token, as a client makes it of the proxy's address
        ("basic YW1lbTpzZXNzaW9uLXRva2Vu", b"200"),
        ("Basic c2Vzc2lvbi10b2tlbjphbWVt", b"403"),  # the two the other way round
        ("Basic YW1lbTo=", b"403"),
        ("Basic session-token", b"400"),
        ("Bearer account-secret", b"403"),  # the login's own credential is no bearer of the session
    ],
)
def test_a_proxys_password_is_the_sessions_token_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, carried: str, status: bytes
) -> None:
    async def run() -> None:
        access = {"token": Secret("session-token"), "pinned": (Secret("account-secret"),)}
        async with tunnelled(tmp_path, monkeypatch, **access) as (s, far, _):
            reader, writer = await opened(s, CONNECT.replace(b"\r\n\r\n", f"\r\nproxy-authorization: {carried}\r\n\r\n".encode()))
            assert (await reader.readexactly(12)).endswith(status)
            assert far.dialled == []  # not before the hello
            writer.close()

    asyncio.run(run())


def test_on_a_login_its_own_credential_lets_a_model_call_in_and_the_token_does_not(tmp_path: Path) -> None:
    """A harness on its login presents that; another account's would go out as another account, whatever else it knows."""

    async def run() -> None:
        access = {"token": Secret("session-token"), "pinned": (Secret("account-secret"),), "auth": "subscription", "credential": None}
        async with session(tmp_path, **access) as s:
            path, body = call(Dialect.ANTHROPIC)
            for wrong in ({}, {"authorization": "Bearer session-token"}, {"authorization": "Bearer another-account"}):
                assert (await s.post(path, body, wrong))[0] == 403
            assert s.provider.log == []
            assert (await s.post(path, body, {"authorization": "Bearer account-secret"}))[0] != 403

    asyncio.run(run())


def test_without_a_login_there_is_no_tunnel_at_all(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            answer = await s.raw(CONNECT)
            assert b" 200 " not in answer[:20]
            assert s.door.log == []

    asyncio.run(run())


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["1.1.1.1", "10.0.0.1"], ["::ffff:127.0.0.1"], []])
def test_a_listed_name_that_leads_inward_is_not_dialled(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> None:
    async def run() -> None:
        async def resolve(host: str, port: int, **_: Any) -> list[Any]:
            return [(2, 1, 6, "", (address, port)) for address in addresses]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
        with pytest.raises(TunnelError, match="inward"):
            await dial_public(HOST, 443)

    asyncio.run(run())

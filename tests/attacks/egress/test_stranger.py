"""Another account is no way out: whatever a session presents as its refreshed login, and whatever comes back when that is asked about."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from amem.egress import whose
from amem.egress.destinations import Identity
from amem.logs.schema import PolicyDecision
from amem.model.call import Dialect
from tests.egress.support import call, session
from tests.egress.test_whose import ANOTHERS, ELSEWHERE, FACTS, FIRST, FRESH, IDENTITY, IN_FRONT, MINE, ask, asked, on_a_login

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture(autouse=True)
def _no_second_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine, the times in which nothing is asked again are not over within a test."""
    monkeypatch.setattr(whose, "AGAIN_S", 1e6)
    monkeypatch.setattr(whose, "PER_S", 1e6)


@pytest.mark.parametrize("whose_it_is", [ANOTHERS, ELSEWHERE], ids=["account", "organization"])
def test_the_attackers_account_is_refused_for_good_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, whose_it_is: dict[str, Any]
) -> None:
    async def run() -> None:
        notes: list[PolicyDecision] = []
        async with session(tmp_path, {"accounts": {FRESH: whose_it_is}}, **on_a_login(notes), route=IN_FRONT) as s:
            for _ in range(3):
                status, answer = await ask(s, FRESH)
                assert status == 403 and b"it is another's" in answer
            assert [exchange.path for exchange in s.provider.log] == [IDENTITY], "the call did not leave"
            assert [(note.allow, note.reasons) for note in notes] == [(False, ({"code": "another_account", "destination": "anthropic"},))]
            assert FRESH not in repr(notes)

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    assert FRESH not in caplog.text


def test_of_two_credentials_none_leaves(tmp_path: Path) -> None:
    """The egress would know the one and the provider believe the other."""

    async def run() -> None:
        async with session(tmp_path, {"accounts": {FRESH: MINE}}, **on_a_login(), route=IN_FRONT) as s:
            path, body = call(Dialect.ANTHROPIC)
            for more in (
                {"x-api-key": "attackers"},
                {"x-goog-api-key": "attackers"},
                {"api-key": "attackers"},
            ):
                assert (await ask(s, FIRST, **more))[0] == 403
                assert (await ask(s, FRESH, **more))[0] == 403
            head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\nauthorization: Bearer {FIRST}\r\n"
            assert b" 403 " in await s.raw(f"{head}Authorization: Bearer attackers\r\n\r\n".encode() + body)
            assert s.provider.log == []

    asyncio.run(run())


@pytest.mark.parametrize(
    "token",
    [
        "short", "x" * 5000, FRESH + " " + FRESH, FRESH + "\tx", FRESH + ", Bearer attackers", FRESH + "%0d%0ax-api-key: x", FRESH + "é",
        "{" + FRESH + "}", FRESH + "=x", "=" * 40, FRESH + "?account=mine", FRESH + "#",
    ],
)  # fmt: skip
def test_what_is_no_token_is_not_even_asked_about(tmp_path: Path, token: str) -> None:
    async def run() -> None:
        async with session(tmp_path, {"accounts": {FRESH: MINE}}, **on_a_login(), route=IN_FRONT) as s:
            path, body = call(Dialect.ANTHROPIC)
            head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\nauthorization: Bearer {token}\r\n\r\n"
            answer = await s.raw(head.encode() + body)
            assert b" 403 " in answer.split(b"\r\n")[0] or b" 400 " in answer.split(b"\r\n")[0]
            assert s.provider.log == []

    asyncio.run(run())


def test_no_cookie_leaves_beside_a_login(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, **on_a_login(), route=IN_FRONT) as s:
            assert (await ask(s, FIRST, cookie="sessionKey=attackers"))[0] == 200
            assert "cookie" not in s.provider.log[0].headers

    asyncio.run(run())


@pytest.mark.parametrize("where", ["x-api-key", "x-goog-api-key", "api-key"])
def test_a_key_is_no_refreshed_login(tmp_path: Path, where: str) -> None:
    async def run() -> None:
        async with session(tmp_path, {"accounts": {FRESH: MINE}}, **on_a_login(), route=IN_FRONT) as s:
            path, body = call(Dialect.ANTHROPIC)
            assert (await s.post(path, body, {where: FRESH}))[0] == 403
            assert (await s.post(f"{path}?key={FRESH}", body))[0] == 403
            assert s.provider.log == []

    asyncio.run(run())


def test_a_flood_of_tokens_is_bounded_and_does_not_cost_the_known_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, {"accounts": {FRESH: MINE}}, **on_a_login(), route=IN_FRONT) as s:
            statuses = [(await ask(s, f"attackers-{n:040}"))[0] for n in range(30)]
            assert statuses == [403] * whose.MOST_NEW + [503] * (30 - whose.MOST_NEW)
            assert len(asked(s)) == whose.MOST_NEW and (await ask(s, FIRST))[0] == 200
            status, answer = await ask(s, FRESH)
            assert status == 503 and b"more new tokens" in answer

    asyncio.run(run())


def test_after_the_flood_the_login_goes_on_and_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whose, "PER_S", 0.0)
    monkeypatch.setattr(whose, "KEPT", 4)

    async def run() -> None:
        async with session(tmp_path, {"accounts": {FRESH: MINE}}, **on_a_login(), route=IN_FRONT) as s:
            for n in range(20):
                assert (await ask(s, f"attackers-{n:040}"))[0] == 403
            assert (await ask(s, FRESH))[0] == 200

    asyncio.run(run())


async def endless(request: web.Request) -> web.StreamResponse:
    out = web.StreamResponse()
    await out.prepare(request)
    while True:
        await out.write(b" " * 65536)


async def padded(request: web.Request) -> web.StreamResponse:
    out = web.StreamResponse()
    await out.prepare(request)
    await out.write(json.dumps(MINE).encode())
    while True:
        await out.write(b" " * 65536)


async def silent(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def trickling(request: web.Request) -> web.StreamResponse:
    out = web.StreamResponse()
    await out.prepare(request)
    await out.write(json.dumps(MINE).encode())
    await asyncio.Event().wait()
    raise AssertionError


async def elsewhere(request: web.Request) -> web.StreamResponse:
    if request.path != IDENTITY:
        return web.json_response(MINE)
    raise web.HTTPFound("/mine")


async def packed(request: web.Request) -> web.StreamResponse:
    return web.Response(body=json.dumps(MINE).encode(), headers={"content-encoding": "br"})


async def cut(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def created(request: web.Request) -> web.StreamResponse:
    return web.json_response(MINE, status=201)


def saying(body: bytes) -> Handler:
    async def say(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    return say


def named(account: Any) -> Handler:
    return saying(json.dumps(MINE | {"account": account}).encode())


LIES: dict[str, Handler] = {
    "endless": endless, "padded": padded, "silent": silent, "trickling": trickling, "elsewhere": elsewhere, "packed": packed, "cut": cut,
    "created": created, "nothing": saying(b""),
    "no json": saying(b"11111111-mine"), "no text": saying(b"\xff\xfe"), "deep": saying(b"[" * 60000),
    "a list": saying(json.dumps([MINE]).encode()), "no account": named(None), "a number": named({"uuid": 1}), "empty": named({"uuid": ""}),
    "a list of mine": named({"uuid": ["11111111-mine"]}), "longer": named({"uuid": "11111111-mine2"}),
    "upper": named({"uuid": "11111111-MINE"}), "no organization": saying(b'{"account": {"uuid": "11111111-mine"}}'),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_whatever_else_comes_back_does_not_let_a_token_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    if lie in ("silent", "trickling"):
        monkeypatch.setattr(whose, "ASK_S", 0.2)  # it always runs out: the answer never ends

    async def run() -> None:
        seen: list[str] = []

        async def serve(request: web.Request) -> web.StreamResponse:
            seen.append(request.path)
            return await LIES[lie](request)

        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", serve)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            base = f"http://127.0.0.1:{runner.addresses[0][1]}"
            async with session(tmp_path, base_url=base, **on_a_login(), route=IN_FRONT) as s:
                status, _ = await ask(s, FRESH)
                assert status in (403, 503)
                assert (await ask(s, FRESH))[0] == status
                assert set(seen) == {IDENTITY} and len(seen) <= (2 if lie == "cut" else 1), "the client asks a cut connection once more"
        finally:
            await runner.cleanup()

    asyncio.run(run())


def test_a_provider_that_cannot_be_reached_lets_nothing_pass(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, base_url="http://127.0.0.1:1", **on_a_login(), route=IN_FRONT) as s:
            status, answer = await ask(s, FRESH)
            assert status == 503 and FRESH.encode() not in answer

    asyncio.run(run())


def test_a_judgement_that_cannot_be_logged_lets_nothing_pass(tmp_path: Path) -> None:
    def note(_: PolicyDecision) -> None:
        raise OSError("the log is full")

    async def run() -> None:
        async with session(tmp_path, {"accounts": {FRESH: MINE}}, **on_a_login() | {"note": note}, route=IN_FRONT) as s:
            assert (await ask(s, FRESH))[0] == 403
            assert (await ask(s, FRESH))[0] == 403

    asyncio.run(run())


def test_a_client_that_leaves_does_not_take_the_answer_with_it(tmp_path: Path) -> None:
    """Nor does a call that was given up while its token was asked about leave without it."""

    async def run() -> None:
        gate, begun = asyncio.Event(), asyncio.Event()

        async def serve(request: web.Request) -> web.StreamResponse:
            begun.set()
            await gate.wait()
            return web.json_response(MINE)

        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", serve)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            base = f"http://127.0.0.1:{runner.addresses[0][1]}"
            async with session(tmp_path, base_url=base, **on_a_login(), route=IN_FRONT) as s:
                first = asyncio.create_task(ask(s, FRESH))
                await begun.wait()
                first.cancel()
                gate.set()
                assert (await ask(s, FRESH))[0] == 200
        finally:
            await runner.cleanup()

    asyncio.run(run())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_no_answer_without_the_account_in_its_place_is_taken(answer: Any) -> None:
    identity = Identity("GET", "https://provider.example/", {"account": ("account", "uuid")})
    for facts in (FACTS, {}, {"account": ""}):
        assert whose._compare(json.dumps(answer).encode(), identity, facts).same is not True

"""A login that was refreshed inside goes on: the provider says whose the new token is, once, and its word is remembered."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amem.egress import whose
from amem.egress.access import Access, Account
from amem.egress.destinations import DESTINATIONS
from amem.egress.gate import Gate
from amem.egress.meter import Meter
from amem.egress.routes import Auth
from amem.harnesses import registry
from amem.logs.schema import PolicyDecision
from amem.model.call import Dialect
from amem.model.label import Label
from amem.settings.credentials import Secret
from amem.settings.root import Root
from amem.testing.provider import running
from tests.egress.support import Door, Session, call, routes_to, session

FIRST, FRESH, LATER = ("sk-ant-oat01-" + letter * 40 for letter in "abc")
MINE, ANOTHERS, ELSEWHERE = (
    {"account": {"uuid": uuid}, "organization": {"uuid": organization}}
    for uuid, organization in (
        ("11111111-mine", "33333333-ours"),
        ("22222222-anothers", "33333333-ours"),
        ("11111111-mine", "44444444-theirs"),
    )
)
FACTS = {"account": "11111111-mine", "organization": "33333333-ours"}
IDENTITY = "/api/oauth/profile"
IN_FRONT: dict[str, Any] = {"row": "anthropic", "auth": Auth.SUBSCRIPTION}


def on_a_login(notes: list[PolicyDecision] | None = None, **more: Any) -> dict[str, Any]:
    """What an egress on a login of `MINE` has, its destination `anthropic`."""
    return {
        "auth": "subscription", "credential": None, "pinned": (Secret(FIRST),), "account": Account(FACTS),
        "note": notes.append if notes is not None else None, **more,
    }  # fmt: skip


async def ask(s: Session, token: str, **headers: str) -> tuple[int, bytes]:
    path, body = call(Dialect.ANTHROPIC)
    status, answer, _ = await s.post(path, body, {"authorization": f"Bearer {token}", **headers})
    return status, answer


def asked(s: Session) -> list[str]:
    return [exchange.headers["authorization"] for exchange in s.provider.log if exchange.path == IDENTITY]


def test_a_token_of_the_same_account_passes_and_is_asked_about_once(tmp_path: Path) -> None:
    async def run() -> None:
        notes: list[PolicyDecision] = []
        async with session(tmp_path, {"accounts": {FRESH: MINE}}, **on_a_login(notes), route=IN_FRONT) as s:
            assert (await ask(s, FIRST))[0] == 200 and asked(s) == []
            statuses = await asyncio.gather(*(ask(s, FRESH) for _ in range(5)))
            assert {status for status, _ in statuses} == {200}
            assert (await ask(s, FRESH))[0] == (await ask(s, FIRST))[0] == 200
            assert asked(s) == [f"Bearer {FRESH}"], "all calls waited for one answer"
            models = [exchange.headers["authorization"] for exchange in s.provider.log if exchange.path != IDENTITY]
            assert sorted(models) == sorted([f"Bearer {FIRST}"] * 2 + [f"Bearer {FRESH}"] * 6)
            assert [(note.action, note.allow, note.reasons[0]["code"]) for note in notes] == [("model_call", True, "same_account")]

    asyncio.run(run())


def test_a_token_of_which_nobody_says_whose_it_is_waits_for_the_next_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whose, "AGAIN_S", 1e6)

    async def run() -> None:
        async with session(
            tmp_path, {"errors": [{"path": IDENTITY, "status": 500, "times": 1}], "accounts": {FRESH: MINE}}, **on_a_login(), route=IN_FRONT
        ) as s:
            status, answer = await ask(s, FRESH)
            assert status == 503 and b"did not say: status 500" in answer
            assert (await ask(s, FRESH))[0] == 503 and len(asked(s)) == 1, "not asked again at once"
            monkeypatch.setattr(whose, "AGAIN_S", 0.0)
            s.provider.load({"errors": [{"path": IDENTITY, "status": 500, "times": 1}], "accounts": {LATER: MINE}})
            assert (await ask(s, LATER))[0] == 503
            assert (await ask(s, LATER))[0] == 200

    asyncio.run(run())


def test_where_the_host_does_not_say_whose_its_login_is_nobody_is_asked(tmp_path: Path) -> None:
    async def run() -> None:
        for account in (None, Account({}), Account({"email": "me@example.org"})):
            async with session(tmp_path, {"accounts": {FRESH: MINE}}, **on_a_login(account=account), route=IN_FRONT) as s:
                status, answer = await ask(s, FRESH)
                assert status == 403 and b"nobody can be asked" in answer and s.provider.log == []

    asyncio.run(run())


def test_above_the_ceiling_and_after_a_stop_nobody_is_asked(tmp_path: Path) -> None:
    async def run() -> None:
        stopped: list[str | None] = [None]
        async with session(tmp_path, {"accounts": {FRESH: MINE}}, **on_a_login(stopped=lambda: stopped[0]), route=IN_FRONT) as s:
            s.label[0] = Label.RESTRICTED
            assert (await ask(s, FRESH))[0] == 403
            s.label[0], stopped[0] = Label.PUBLIC, "it was stopped"
            assert (await ask(s, LATER))[0] == 403
            assert s.provider.log == []

    asyncio.run(run())


def test_the_question_goes_to_the_provider_or_to_the_base_that_grants_toml_names() -> None:
    def urls(base_url: str | None, row: str = "anthropic", auth: Auth = Auth.SUBSCRIPTION) -> set[str]:
        return {route.identity.url for route in routes_to(base_url, row=row, auth=auth).values() if route.identity is not None}

    assert urls(None) == {"https://api.anthropic.com/api/oauth/profile"}
    assert urls(None, "google") == {"https://oauth2.googleapis.com/tokeninfo"}
    assert urls("http://127.0.0.1:9/relay/") == {"http://127.0.0.1:9/relay/api/oauth/profile"}
    assert urls(None, "openai") == urls(None, auth=Auth.KEY) == set()


def test_each_login_whose_account_is_read_can_be_asked_about() -> None:
    """The names that a harness's table gives an account are those that its destination tells, of the harnesses that are forwarded."""
    told = {
        name: {each.name for each in login.account} for name in registry.names() if (login := registry.load(name).login) and login.account
    }
    assert told == {"claude": set(tells("anthropic")), "gemini": set(tells("google"))}


def tells(row: str) -> Mapping[str, tuple[str, ...]]:
    identity = DESTINATIONS[row].identity
    assert identity is not None
    return identity.tells


def test_of_a_google_token_person_and_program_have_to_be_the_same(tmp_path: Path) -> None:
    async def run() -> None:
        accounts = {FRESH: {"sub": "1", "aud": "gemini-cli"}, LATER: {"sub": "1", "aud": "another-program"}}
        login = on_a_login(account=Account({"sub": "1", "aud": "gemini-cli"}))
        async with session(tmp_path, {"accounts": accounts}, **login, route={"row": "google", "auth": Auth.SUBSCRIPTION}) as s:
            path, body = call(Dialect.GEMINI)
            assert (await s.post(path, body, {"authorization": f"Bearer {FRESH}"}))[0] == 200
            assert (await s.post(path, body, {"authorization": f"Bearer {LATER}"}))[0] == 403
            assert [exchange.method for exchange in s.provider.log if exchange.path == "/tokeninfo"] == ["POST", "POST"]

    asyncio.run(run())


def test_a_token_that_a_session_left_without_a_call_is_asked_about_afterwards(tmp_path: Path) -> None:
    with running({"accounts": {FRESH: MINE, LATER: ANOTHERS}}) as provider:
        root = Root(tmp_path)
        root.state.mkdir()
        meter = Meter(root)
        door = Door()
        access = Access(
            session="ses-0123456z", principal="agent:claude", domain="dom-me", label=lambda: Label.PUBLIC, decide=door.decide,
            routes=routes_to(provider.url, **IN_FRONT), **on_a_login(),
        )  # fmt: skip
        gate = Gate(access, meter)
        assert whose.ask_now(access, gate, FIRST) is None and provider.log == []
        assert whose.ask_now(access, gate, FRESH) is None
        assert whose.ask_now(access, gate, FRESH) is None and len(provider.log) == 1
        assert "another's" in (whose.ask_now(access, gate, LATER) or "")
        assert [request.action for request, _ in door.log] == ["model_call"] * 2, "the policy is asked first"
        meter.close()

"""amem's own calls: through an egress like a harness's, in a role, and lists of models in every shape."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

from amem.egress import own, reading
from amem.egress.breaker import FAILURES
from amem.egress.own import Lane, Own, Role, Way
from amem.egress.routes import Auth
from amem.errors import RefusedError, UpstreamError, UsageError
from amem.model.label import Label
from amem.settings import database
from amem.settings.credentials import Credentials
from amem.settings.grants import DestinationGrant, DomainGrant, Grants, Spend
from amem.settings.root import Root
from amem.testing.provider import running

T = TypeVar("T")
BODY = json.dumps({"model": "m-1", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}).encode()


def ask(
    tmp_path: Path,
    url: str,
    act: Callable[[Own], Awaitable[T]],
    *,
    destination: str = "demo",
    label: Label = Label.PUBLIC,
    spend: Mapping[str, Spend] | None = None,
    auth: Auth = Auth.KEY,
) -> T:
    grants = Grants(
        owner="human:o:n",
        domains={"dom-me": DomainGrant()},
        destinations={destination: DestinationGrant(ceiling=Label.INTERNAL, base_url=url)},
        spend=spend or {},
    )
    names = ("DEMO_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "LLMAO_KEY")
    keys = Credentials(dict.fromkeys(names, "the-long-key"), {})

    async def run() -> T:
        way = Way(destination, auth)
        async with own.opened(Root(tmp_path), grants, keys, way, role=Role.EVALUATOR, domain="dom-me", label=label) as client:
            return await act(client)

    return asyncio.run(run())


def rows(tmp_path: Path) -> list[tuple[Any, ...]]:
    connection = database.connect(Root(tmp_path).usage, durable=False)
    try:
        return list(connection.execute("select principal, role, model, status, input, refused from calls").fetchall())
    finally:
        connection.close()


def decisions(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "state" / "decisions.jsonl").read_text().splitlines()]


def test_a_call_is_decided_metered_and_has_its_role(tmp_path: Path) -> None:
    with running() as provider:
        answer = ask(tmp_path, provider.url, lambda client: client.call("/v1/messages", BODY))
        used = sum(one.input for one in provider.totals().values())
    assert (answer.status, answer.json()["type"]) == (200, "message")
    assert rows(tmp_path) == [("system:amem", "evaluator", "m-1", 200, used, None)]
    assert [(line["action"], line["allow"], line["principal"]) for line in decisions(tmp_path)] == [("model_call", True, "system:amem")]
    [contexts] = (tmp_path / "record" / "dom-me" / ".contexts").iterdir()
    assert any(contexts.iterdir())


def test_a_label_over_the_ceiling_and_a_spent_budget_stop_own_calls_too(tmp_path: Path) -> None:
    with running() as provider:
        with pytest.raises(RefusedError, match="restricted is above the ceiling internal of demo"):
            ask(tmp_path, provider.url, lambda client: client.call("/v1/messages", BODY), label=Label.RESTRICTED)
        with pytest.raises(RefusedError, match="this session has 10 of 10 tokens left"):
            ask(tmp_path, provider.url, lambda client: client.call("/v1/messages", BODY), spend={"demo": Spend(session_tokens=10)})
        assert provider.totals() == {}
    assert [row[-1] for row in rows(tmp_path)] == ["label_over_ceiling", "spend_session"]


def test_a_list_of_models_spends_nothing_and_has_no_row(tmp_path: Path) -> None:
    with running() as provider:
        models = ask(tmp_path, provider.url, Own.models, spend={"demo": Spend(session_tokens=0)})
    assert models
    assert rows(tmp_path) == []
    assert len(decisions(tmp_path)) == 1


async def _serving(answer: Callable[[web.Request], web.Response], act: Callable[[str], Awaitable[T]]) -> T:
    app = web.Application()

    async def handle(request: web.Request) -> web.Response:
        return answer(request)

    app.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        return await act(f"http://127.0.0.1:{runner.addresses[0][1]}")
    finally:
        await runner.cleanup()


def listed(tmp_path: Path, destination: str, answer: Callable[[web.Request], web.Response]) -> tuple[str, ...]:
    async def act(url: str) -> tuple[str, ...]:
        return await asyncio.to_thread(
            ask, tmp_path, url, Own.models, destination=destination, auth=Auth.GATEWAY if destination == "llmao" else Auth.KEY
        )

    return asyncio.run(_serving(answer, act))


def paged(cursor: str, pages: Mapping[str, Any]) -> Callable[[web.Request], web.Response]:
    return lambda request: web.json_response(pages[request.query.get(cursor, "")])


PAGES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai": ("authorization", "", {"": {"object": "list", "data": [{"id": "a"}, {"id": "b"}, {"id": "a"}, {"id": 3}, "junk"]}}),
    "anthropic": (
        "x-api-key",
        "after_id",
        {"": {"data": [{"id": "a"}], "has_more": True, "last_id": "a"}, "a": {"data": [{"id": "b"}], "has_more": False, "last_id": "b"}},
    ),
    "google": (
        "x-goog-api-key",
        "pageToken",
        {"": {"models": [{"name": "models/a"}], "nextPageToken": "2"}, "2": {"models": [{"name": "models/b"}]}},
    ),
    "llmao": ("authorization", "", {"": {"data": [{"id": "a"}, {"id": "b"}], "object": "list"}}),
}


@pytest.mark.parametrize("destination", PAGES)
def test_each_dialect_lists_all_its_pages_on_its_own_credential(tmp_path: Path, destination: str) -> None:
    header, cursor, pages = PAGES[destination]
    seen: list[str] = []

    def answer(request: web.Request) -> web.Response:
        seen.append(request.headers[header].removeprefix("Bearer "))
        return web.json_response(pages[request.query.get(cursor, "")])

    assert listed(tmp_path, destination, answer) == ("a", "b")
    assert seen == ["the-long-key"] * len(pages)


def test_a_cursor_that_stands_still_ends_the_list(tmp_path: Path) -> None:
    page = {"data": [{"id": "a"}], "has_more": True, "last_id": "a"}
    assert listed(tmp_path, "anthropic", lambda request: web.json_response(page)) == ("a",)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda: web.json_response({"error": {"message": "bad key \x1b[31m"}}, status=401), r"openai answered 401: bad key \\x1b\[31m"),
        (lambda: web.json_response(["a"]), "no list of models"),
        (lambda: web.Response(body=b"<html>"), "not JSON"),
        (lambda: web.json_response({"error": {"message": "no"}}, status=403), "openai answered 403: no"),
    ],
)
def test_what_is_no_list_is_an_upstream_error(tmp_path: Path, answer: Callable[[], web.Response], told: str) -> None:
    with pytest.raises(UpstreamError, match=told):
        listed(tmp_path, "openai", lambda request: answer())


def test_the_way_of_own_calls() -> None:
    gateway = Way("llmao", Auth.GATEWAY)
    assert own.way(None, None) == own.way("gateway", None) == own.way(None, "llmao") == own.way("gateway", "llmao") == gateway
    assert own.way("key", "openai") == own.way(None, "openai") == Way("openai", Auth.KEY)
    for auth, provider, why in (
        ("subscription", None, "a login belongs to its harness alone"),
        ("key", None, "which destination"),
        ("gateway", "openai", "takes no provider"),
        ("kay", "openai", "expected key or gateway"),
    ):
        with pytest.raises(UsageError, match=why):
            own.way(auth, provider)


def test_a_destination_that_keeps_failing_is_left_alone(tmp_path: Path) -> None:
    async def until_it_rests(client: Own) -> None:
        for _ in range(FAILURES):
            assert (await client.call("/v1/messages", BODY)).status == 500
        for _ in range(3):
            with pytest.raises(UpstreamError, match="demo failed 5 times running, and is left alone"):
                await client.call("/v1/messages", BODY)
        assert await client.models()  # a list is no model call

    with running({"errors": [{"status": 500, "message": "no", "path": "messages", "times": 99}]}) as provider:
        ask(tmp_path, provider.url, until_it_rests)
        assert len([seen for seen in provider.log if seen.method == "POST"]) == FAILURES


def test_a_request_of_our_own_fault_and_a_refusal_are_no_failures(tmp_path: Path) -> None:
    async def wrong(client: Own) -> None:
        for _ in range(FAILURES + 2):
            assert (await client.call("/v1/messages", b"{}")).status == 400

    with running() as provider:
        ask(tmp_path, provider.url, wrong)


def test_calls_for_a_session_count_towards_it(tmp_path: Path) -> None:
    grants = Grants(owner="human:o:n", domains={"dom-me": DomainGrant()}, destinations={"demo": DestinationGrant(ceiling=Label.PUBLIC)})

    async def run(url: str) -> str:
        way = Way("demo", Auth.KEY)
        granted = grants._replace(destinations={"demo": DestinationGrant(ceiling=Label.PUBLIC, base_url=url)})
        keys = Credentials({"DEMO_API_KEY": "sk-placeholder"}, {})
        async with own.opened(
            Root(tmp_path),
            granted,
            keys,
            way,
            role=Role.EVALUATOR,
            domain="dom-me",
            label=Label.PUBLIC,
            session="ses-0123456z",
            lane=Lane.CURATION,
        ) as client:
            await client.call("/v1/messages", BODY)
            return client.session

    with running() as provider:
        assert asyncio.run(run(provider.url)) == "ses-0123456z"
    [row] = reading.report(Root(tmp_path), ("session",))
    assert (row["session"], row["calls"]) == ("ses-0123456z", 1)


def test_a_store_from_before_roles_is_brought_up_to_date(tmp_path: Path) -> None:
    with running() as provider:
        ask(tmp_path, provider.url, Own.models)
        connection = database.connect(Root(tmp_path).usage, durable=True)
        connection.execute("alter table calls drop column role")
        connection.execute("alter table calls drop column alarm")
        connection.execute("pragma user_version = 0")
        connection.close()
        ask(tmp_path, provider.url, lambda client: client.call("/v1/messages", BODY))
    assert [row[1] for row in rows(tmp_path)] == ["evaluator"]

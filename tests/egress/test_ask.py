"""A prompt of amem's own in, a text out: in each dialect, metered in its role, and every failure of a known kind."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

from amem.egress import own
from amem.egress.answers import CallError, Spoken, Why
from amem.egress.destinations import DESTINATIONS
from amem.egress.own import Lane, Own, Role, Way
from amem.egress.prompt import By, Stop, Turn
from amem.egress.routes import Auth
from amem.errors import RefusedError
from amem.memory.invariants import ROLES
from amem.model.call import Dialect
from amem.model.label import Label
from amem.settings import database
from amem.settings.credentials import Credentials
from amem.settings.grants import DestinationGrant, DomainGrant, Grants, Spend
from amem.settings.root import Root
from amem.testing.provider import running
from amem.testing.script import DEFAULT_USAGE

T = TypeVar("T")
KEY = "sk-planted-4be1-never-shown"
NAMES = [row.key_env for row in DESTINATIONS.values()]


class Asking:
    """A client for one test, whose waits take no time and are remembered."""

    def __init__(self, root: Path) -> None:
        self.root = Root(root)
        self.waits: list[float] = []

    async def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    def run(
        self, url: str, act: Callable[[Own], Awaitable[T]], *, destination: str = "demo", label: Label = Label.PUBLIC, **more: Any
    ) -> T:
        concurrency = more.pop("concurrency", {})
        grants = Grants(
            owner="human:o:n",
            domains={"dom-me": DomainGrant()},
            destinations={destination: DestinationGrant(ceiling=Label.INTERNAL, base_url=url, concurrency=concurrency)},
            spend=more.pop("spend", {}),
        )
        auth = Auth.GATEWAY if destination == "llmao" else Auth.KEY
        keys = Credentials(dict.fromkeys(NAMES, KEY), {})

        async def run() -> T:
            async with own.opened(
                self.root, grants, keys, Way(destination, auth), role=Role.EVALUATOR, domain="dom-me", label=label, **more
            ) as client:
                client._pause = self._wait
                return await act(client)

        return asyncio.run(run())

    def rows(self, columns: str) -> list[tuple[Any, ...]]:
        connection = database.connect(self.root.usage, durable=False)
        try:
            return list(connection.execute(f"select {columns} from calls order by at, rowid").fetchall())
        finally:
            connection.close()

    def fails(self, url: str, act: Callable[[Own], Awaitable[Spoken]], **more: Any) -> CallError:
        with pytest.raises(CallError) as caught:
            self.run(url, act, **more)
        assert KEY not in f"{caught.value.message}{caught.value.facts}"
        return caught.value


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path)


def ready(client: Own) -> Awaitable[Spoken]:
    return client.ask("ready?", model="m-1", max_tokens=64, system="be brief")


@pytest.mark.parametrize("dialect", Dialect)
def test_a_prompt_in_and_a_text_out_in_each_dialect(asking: Asking, dialect: Dialect) -> None:
    turns = [Turn(By.USER, "one"), Turn(By.MODEL, "two"), Turn(By.USER, "ready?")]
    with running({"steps": [{"text": "ready"}], "reasoning": True}) as provider:
        spoken = asking.run(provider.url, lambda client: client.ask(turns, model="m-1", max_tokens=64, system="be brief", dialect=dialect))
        [used], [seen] = provider.totals().values(), provider.log
    assert (spoken.text, spoken.stop, spoken.model, spoken.reported, spoken.usage) == ("ready", Stop.END, "m-1", "m-1", used)
    assert asking.rows("id, principal, role, dialect, model, status, input, output") == [
        (spoken.call, "system:amem", "evaluator", str(dialect), "m-1", 200, used.input, used.output)
    ]
    [decision] = [json.loads(line) for line in (asking.root.state / "decisions.jsonl").read_text().splitlines()]
    assert (decision["action"], decision["allow"], decision["input"]["role"]) == ("model_call", True, "evaluator")
    assert "amem-asked" not in seen.headers and "amem-asked" not in seen.headers.get("connection", "")


@pytest.mark.parametrize(
    ("destination", "dialect"),
    [
        ("anthropic", Dialect.ANTHROPIC), ("openai", Dialect.RESPONSES), ("google", Dialect.GEMINI), ("xai", Dialect.RESPONSES),
        ("meta", Dialect.RESPONSES), ("dashscope", Dialect.CHAT), ("llmao", Dialect.CHAT),
    ],
)  # fmt: skip
def test_each_destination_is_asked_as_it_speaks_best_and_on_its_key(asking: Asking, destination: str, dialect: Dialect) -> None:
    with running({"steps": [{"text": "ready"}], "key": KEY}) as provider:
        assert asking.run(provider.url, ready, destination=destination).text == "ready"
    assert asking.rows("dialect, destination, billing") == [(str(dialect), destination, "metered")]


def test_a_model_is_in_no_role_that_is_codes(asking: Asking) -> None:
    assert {str(role) for role in Role} == {role for role, code in ROLES.items() if not code}


def test_a_label_over_the_ceiling_and_a_spent_budget_are_refusals_with_a_reason(asking: Asking) -> None:
    with running() as provider:
        with pytest.raises(RefusedError) as over:
            asking.run(provider.url, ready, label=Label.RESTRICTED)
        with pytest.raises(RefusedError) as spent:
            asking.run(provider.url, ready, spend={"demo": Spend(day_tokens=10)})
        assert provider.log == []
    assert [error.value.facts["reason"] for error in (over, spent)] == ["label_over_ceiling", "spend_day"]
    assert asking.rows("id, refused") == [(one.value.facts["call"], one.value.facts["reason"]) for one in (over, spent)]
    assert asking.waits == []


def test_what_may_be_better_is_tried_again_after_as_long_as_the_provider_says(asking: Asking) -> None:
    errors = [
        {"status": 529, "message": "overloaded", "times": 1},
        {"status": 429, "message": "slow down", "times": 1, "headers": {"retry-after": "7"}},
    ]
    with running({"errors": errors}) as provider:
        assert asking.run(provider.url, ready).text == "Done."
        assert len(provider.log) == 3
    assert asking.waits == [1.0, 7.0]
    assert asking.rows("status") == [(529,), (429,), (200,)]


def test_tries_end_and_a_wait_beyond_the_time_is_not_begun(asking: Asking) -> None:
    with running({"errors": [{"status": 500, "message": f"no {KEY}"}]}) as provider:
        error = asking.fails(provider.url, ready)
        assert (error.why, error.status, len(provider.log)) == (Why.FAILED, 500, own.TRIES)
        assert asking.waits == [1.0, 2.0]
        provider.load({"errors": [{"status": 429, "headers": {"retry-after": "601"}}]})
        error = asking.fails(provider.url, ready)
    assert (error.why, error.retry_after_s, asking.waits) == (Why.LIMITED, 601.0, [1.0, 2.0])
    assert error.facts["reason"] == "limited" and error.facts["retry_after_s"] == 601.0
    assert error.call == asking.rows("id")[-1][0]


@pytest.mark.parametrize("told", ["soon", "-1", "1e9", "", "٣", "99999999", "nan"])
def test_a_wait_that_is_no_number_of_seconds_is_ours_to_choose(asking: Asking, told: str) -> None:
    def answer(request: web.Request) -> web.Response:
        return web.json_response({"error": "no"}, status=503, headers={"retry-after": told})

    assert serving(asking, answer, fails=True).why is Why.FAILED
    assert asking.waits == [1.0, 2.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_our_own_fault_is_not_tried_again(asking: Asking, status: int) -> None:
    with running({"errors": [{"status": status, "message": "amem: no \x1b[2J"}]}) as provider:
        error = asking.fails(provider.url, ready)
        assert len(provider.log) == 1
    # A provider that speaks in the egress's words is a provider all the same.
    assert (error.why, error.message) == (Why.REJECTED, f"demo answered {status}: amem: no \\x1b[2J")


def serving(asking: Asking, answer: Callable[[web.Request], web.StreamResponse | Awaitable[web.StreamResponse]], *, fails: bool) -> Any:
    async def run() -> Any:
        app = web.Application()

        async def handle(request: web.Request) -> web.StreamResponse:
            found = answer(request)
            return found if isinstance(found, web.StreamResponse) else await found

        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            return await asyncio.to_thread(asking.fails if fails else asking.run, url, ready)
        finally:
            await runner.cleanup()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"[" * 100_000, b"{}", b'{"content": 3}', b"\xff\xfe", b'{"content": [' + b"[]," * 600_000 + b"[]]}", b"null"],
)
def test_an_answer_that_cannot_be_read_is_told_as_one(asking: Asking, body: bytes) -> None:
    error = serving(asking, lambda request: web.Response(body=body, content_type="application/json"), fails=True)
    assert (error.why, error.status, asking.waits) == (Why.UNREADABLE, 200, [])
    assert error.call == asking.rows("id")[0][0] and len(error.message) < 1200


@pytest.mark.parametrize("promised", [True, False])
def test_an_answer_that_breaks_off_is_tried_again_and_counted_each_time(asking: Asking, promised: bool) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        out = web.StreamResponse(headers={"content-type": "application/json"})
        if promised:
            out.content_length = 400
        await out.prepare(request)
        await out.write(b'{"type": "message", "content": [{"type": "text", "text": "rea')
        assert request.transport is not None
        request.transport.abort()
        return out

    assert serving(asking, answer, fails=True).why is Why.CUT
    assert asking.waits == [1.0, 2.0]
    assert len(asking.rows("id")) == own.TRIES


def test_nobody_there_and_a_redirect(asking: Asking) -> None:
    with running() as provider:
        gone = provider.url
    error = asking.fails(gone, ready)
    assert (error.why, error.status, len(asking.rows("id"))) == (Why.UNREACHABLE, 502, own.TRIES)
    asking.waits.clear()
    error = serving(asking, lambda request: web.Response(status=307, headers={"location": "http://127.0.0.1:1/"}), fails=True)
    assert (error.why, asking.waits) == (Why.REJECTED, [])


def test_an_answer_that_does_not_come_in_time_is_let_go_and_counted(asking: Asking) -> None:
    with running({"steps": [{"text": "late", "wait": "never"}]}) as provider:
        error = asking.fails(provider.url, lambda client: client.ask("ready?", model="m-1", max_tokens=64, within_s=0.2))
        provider.until(lambda one: one.log[0].outcome == "gone")
    assert (error.why, error.message) == (Why.LATE, "demo gave no answer within 0 s")
    assert asking.rows("status, partial") == [(499, 1)]


def test_too_many_at_once_is_busy_and_no_failure_of_the_destination(asking: Asking) -> None:
    async def many(client: Own) -> list[Any]:
        asks = [asyncio.create_task(client.ask("ready?", model="m-1", max_tokens=64, tries=1)) for _ in range(12)]
        await asyncio.wait(asks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.to_thread(provider.release, "go")
        return await asyncio.gather(*asks, return_exceptions=True)

    with running({"steps": [{"text": "ready", "wait": "go"}]}) as provider:
        found = asking.run(provider.url, many, concurrency={"own": 1, "curation": 1}, lane=Lane.CURATION)
    busy = [one for one in found if isinstance(one, CallError)]
    assert {(one.why, one.retry_after_s) for one in busy} == {(Why.BUSY, 8.0)} and len(busy) == 7
    assert [one.text for one in found if isinstance(one, Spoken)] == ["ready"] * 5
    assert len({one.call for one in found}) == 12


def test_each_of_many_calls_at_once_hears_of_its_own_row(asking: Asking) -> None:
    async def many(client: Own) -> list[Spoken]:
        return await asyncio.gather(*(client.ask("ready?", model=f"m-{n}", max_tokens=64) for n in range(24)))

    with running() as provider:
        found = asking.run(provider.url, many)
    assert {(one.call, one.model, one.usage.input if one.usage else None) for one in found} == set(asking.rows("id, model, input"))
    assert [one.model for one in found] == [f"m-{n}" for n in range(24)]


def test_what_was_not_told_is_unknown(asking: Asking) -> None:
    body = {"type": "message", "role": "assistant", "model": "m-1", "content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"}
    spoken = serving(asking, lambda request: web.json_response(body), fails=False)
    assert (spoken.text, spoken.usage) == ("a", None)


def test_a_model_whose_name_is_no_name_in_a_path_is_rejected(asking: Asking) -> None:
    with running() as provider:
        for name in ("m/../../secrets", "m?key=x", "m:streamGenerateContent", ""):
            error = asking.fails(provider.url, lambda client, name=name: client.ask("a", model=name, max_tokens=9, dialect=Dialect.GEMINI))  # type: ignore[misc]
            assert error.why is Why.REJECTED
        assert provider.log == []


def test_a_change_of_grants_holds_from_the_next_call_on(asking: Asking) -> None:
    written = 'owner = "human:o:n"\n[grants.dom-me]\n'

    async def twice(client: Own) -> object:
        assert (await client.ask("a", model="m-1", max_tokens=9)).usage == DEFAULT_USAGE
        asking.root.grants.write_text(written)
        with pytest.raises(RefusedError, match="demo is not a destination") as refused:
            await client.ask("a", model="m-1", max_tokens=9)
        return refused.value.facts["reason"]

    asking.root.grants.write_text(f'{written}[destinations.demo]\nceiling = "internal"\n')
    with running() as provider:
        reason = asking.run(provider.url, twice)
    assert asking.rows("refused") == [(None,), (reason,)]


def test_no_key_stands_in_any_file_of_the_root(asking: Asking) -> None:
    with running({"errors": [{"status": 401, "message": f"bad key {KEY}", "headers": {"x-your-key": KEY}}]}) as provider:
        asking.fails(provider.url, ready)
        provider.load({"steps": [{"text": f"the key is {KEY}"}]})
        assert KEY not in asking.run(provider.url, ready).text
    files = [path for path in asking.root.path.rglob("*") if path.is_file()]
    assert len(files) > 3 and not [path for path in files if KEY.encode() in path.read_bytes()]

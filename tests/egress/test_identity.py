"""Who answered: alarms on the rows, and obligations that were not kept."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from amem.egress import meter, reading
from amem.egress.identity import SENTENCES, is_release
from amem.egress.meter import CallRow, Meter
from amem.logs.schema import PolicyDecision
from amem.model.call import Billing, Dialect
from amem.settings.root import Root
from tests.egress.support import call, session


@pytest.mark.parametrize(
    ("asked", "reported", "same"),
    [
        ("claude-sonnet-5-5", "claude-sonnet-5-5-20260901", True),
        ("claude-sonnet-5-5-20260901", "claude-sonnet-5-5", True),
        ("gpt-5.1-latest", "gpt-5.1-2026-08-07", True),
        ("openai/gpt-5.1-codex", "gpt-5.1-codex", True),
        ("Qwen3.8-27B", "qwen3.8-27b", True),
        ("gemini-2.5-pro", "gemini-2.5-pro-preview-06-05", True),
        ("grok-4", "grok-4-0709", True),
        ("claude-opus-5", "claude-haiku-5", False),
        ("claude-sonnet-5", "claude-sonnet-5-5", False),
        ("gpt-5", "gpt-5.1", False),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-5.1", "gpt-4.1", False),
    ],
)
def test_a_release_of_a_model_is_that_model(asked: str, reported: str, same: bool) -> None:
    assert is_release(asked, reported) is same


def row(number: int, **more: Any) -> CallRow:
    told = {"destination": "openai", "model": "m-1", "response_id_class": "chatcmpl-", "reported_model": "m-1", "status": 200}
    return CallRow(**{
        "id": f"call-{number:012d}", "at": f"2026-11-30T10:00:{number:02d}.000Z", "session": "ses-0123456z", "domain": "dom-me",
        "principal": "agent:x", "dialect": "chat", "billing": Billing.METERED, "input": 1, "output": 1, **told, **more,
    })  # fmt: skip


def alarms(root: Root, batches: Sequence[Sequence[CallRow]]) -> list[str | None]:
    """The alarms of rows, each batch written by a process of its own."""
    root.state.mkdir(parents=True, exist_ok=True)
    for batch in batches:
        writer = Meter(root)
        for one in batch:
            writer.record(one)
        writer.close()
    connection = meter.connect(root.usage)
    try:
        return [found for (found,) in connection.execute("select alarm from calls order by id")]
    finally:
        connection.close()


@pytest.mark.parametrize("apart", [False, True], ids=["one process", "each in a process"])
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row(0), row(1)], [None, None]),
        ([row(0), row(1, response_id_class="gen-"), row(2, response_id_class="gen-")], [None, "backend_changed", None]),
        ([row(0, response_id_class="opaque28"), row(1, response_id_class="opaque22")], [None, None]),
        ([row(0, reported_model="m-1-20260101"), row(1, reported_model="m-1-20260601")], [None, "model_changed"]),
        ([row(0, reported_model="other")], ["other_model"]),
        ([row(0, destination="llmao", reported_model="qwen")], [None]),
        ([row(0, destination="llmao", reported_model="a"), row(1, destination="llmao", reported_model="b")], [None, "model_changed"]),
        ([row(0), row(1, destination="xai", response_id_class="gen-"), row(2, model="m-2", reported_model="m-2")], [None, None, None]),
        ([row(0), row(1, status=500, response_id_class=None, reported_model=None), row(2)], [None, None, None]),
        ([row(0, alarm="require_broken"), row(1)], ["require_broken", None]),
    ],
)  # fmt: skip
def test_a_change_of_who_answers_is_an_alarm_once(tmp_path: Path, rows: list[CallRow], expected: list[str | None], apart: bool) -> None:
    assert alarms(Root(tmp_path), [[one] for one in rows] if apart else [rows]) == expected
    assert set(expected) - {None} <= set(SENTENCES)
    [*_, found] = reading.report(Root(tmp_path), ("day",))
    assert found.get("alarms", 0) == sum(one is not None for one in expected)


GEO = {"require": {"inference_geo": "us"}}


@asynccontextmanager
async def elsewhere(usage: dict[str, Any]) -> AsyncIterator[tuple[str, list[Any]]]:
    """A provider that tells where it computed, and what it was asked."""
    came: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        came.append(await request.json())
        return web.json_response({"id": "msg_1", "type": "message", "model": "m-1", "content": [], "usage": usage})

    app = web.Application()
    app.router.add_post("/v1/messages", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await web.SockSite(runner, listener).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", came
        finally:
            await runner.cleanup()


@pytest.mark.parametrize(
    ("geo", "alarm", "then"),
    [("us", None, 200), (None, "require_untold", 200), ("eu", "require_broken", 403)],
    ids=["kept", "untold", "broken"],
)
def test_an_obligation_is_asked_for_and_looked_for_in_the_answer(tmp_path: Path, geo: str | None, alarm: str | None, then: int) -> None:
    """After an answer from elsewhere nothing more leaves: the session would go on sending what must not go there."""

    async def run() -> None:
        notes: list[PolicyDecision] = []
        usage = {"input_tokens": 7, "output_tokens": 2} | ({"inference_geo": geo} if geo else {})
        async with elsewhere(usage) as (url, came), session(tmp_path, base_url=url, route=GEO, note=notes.append) as s:
            assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 200
            assert came[0]["inference_geo"] == "us"
            status, told, _ = await s.post(*call(Dialect.ANTHROPIC))
            assert (status, len(came)) == (then, 2 if then == 200 else 1)
            first = s.rows()[0]
            assert (first["alarm"], first["input"], first["shaping"]) == (alarm, 7, "require.inference_geo")
            if then == 403:
                assert b"outside of what grants.toml requires: inference_geo us" in told
                assert [(note.allow, note.reasons[0]["code"]) for note in notes] == [(False, "require_broken")]

    asyncio.run(run())

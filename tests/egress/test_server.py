import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from amem.egress.routes import Auth
from amem.model.call import Dialect
from amem.model.label import Label
from amem.settings.credentials import Secret
from tests.egress.support import KEY, SESSION, call, session

each_dialect = pytest.mark.parametrize("dialect", Dialect)
each_framing = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
USAGE = {"input": 1200, "output": 45, "cache_read": 300, "cache_write": 0}
TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")


@each_dialect
@each_framing
@pytest.mark.parametrize("encoding", ["identity", "gzip", "deflate", "br", "zstd"])
def test_an_answer_passes_in_its_encoding_and_its_usage_is_the_providers(
    tmp_path: Path, dialect: Dialect, stream: bool, encoding: str
) -> None:
    async def run() -> None:
        script = {"steps": [{"text": "Four. " * 50, "usage": USAGE}], "encoding": encoding, "reasoning": True}
        async with session(tmp_path, script) as s:
            path, body = call(dialect, stream=stream)
            wanted = {"accept-encoding": encoding}
            status, _, headers = await s.post(path, body, wanted)
            assert status == 200
            assert headers.get("content-encoding", "identity") == encoding
            row = await s.row()
            told = s.provider.log[-1].usage
            assert told is not None
            assert {name: row[name] for name in TOKENS[:4]} == {name: getattr(told, name) for name in TOKENS[:4]}
            assert (row["reasoning"] or 0) == (told.reasoning or 0)
            assert (row["status"], row["partial"], row["unmetered_reason"], row["model"], row["dialect"]) == (200, 0, None, "m-1", dialect)

    asyncio.run(run())


@each_dialect
def test_the_request_that_leaves_is_the_harnesss_but_for_the_credential(tmp_path: Path, dialect: Dialect) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            path, body = call(dialect, note="ünïcode \u2028", spaced=[1, 2])
            body = body.replace(b": ", b" :\t")  # a spelling of its own
            await s.post(path, body, {"x-api-key": "mine", "authorization": "Bearer mine", "x-goog-api-key": "mine",
                                      "anthropic-beta": "a,b",
                                      "user-agent": "claude-cli/2.1"})  # fmt: skip
            seen = s.provider.log[0]
            assert seen.body == body
            assert seen.path == path
            assert "mine" not in json.dumps(seen.headers)
            credential = {Dialect.ANTHROPIC: ("x-api-key", KEY), Dialect.GEMINI: ("x-goog-api-key", KEY)}.get(
                dialect, ("authorization", f"Bearer {KEY}")
            )
            assert seen.headers.pop(credential[0]) == credential[1]
            assert seen.headers == {
                "host": f"127.0.0.1:{s.provider.port}", "content-type": "application/json", "content-length": str(len(body)),
                "anthropic-beta": "a,b", "user-agent": "claude-cli/2.1",
            }  # fmt: skip

    asyncio.run(run())


@each_dialect
@each_framing
def test_call_over_ceiling_never_reaches_upstream(tmp_path: Path, dialect: Dialect, stream: bool) -> None:
    async def run() -> None:
        async with session(tmp_path, route={"ceiling": Label.PUBLIC}) as s:
            path, body = call(dialect, stream=stream)
            assert (await s.post(path, body))[0] == 200
            s.label[0] = Label.INTERNAL  # the session read something
            status, answer, _ = await s.post(path, body)
            assert status == 403
            assert b"label internal is above the ceiling public of demo" in answer
            assert len(s.provider.log) == 1
            assert [allowed for _, allowed in s.door.log] == [True, False]
            rows = s.rows()
            assert [(row["status"], row["refused"], row["input"] is None) for row in rows] == [
                (200, None, False),
                (403, "label_over_ceiling", True),
            ]

    asyncio.run(run())


def test_the_decision_is_made_before_anything_leaves(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            at_decision: list[int] = []
            s.door.on_decide = lambda: at_decision.append(len(s.provider.log))
            await s.post(*call(Dialect.ANTHROPIC))
            assert at_decision == [0]
            asked = s.door.log[0][0]
            assert (asked.action, asked.input["session"], asked.input["model"], asked.input["dialect"]) == (
                "model_call",
                SESSION,
                "m-1",
                "anthropic",
            )

    asyncio.run(run())


@pytest.mark.parametrize("fault", [OSError("disk full"), ValueError("x"), RuntimeError("panic")])
def test_a_decision_that_fails_or_cannot_be_logged_lets_nothing_out(
    tmp_path: Path, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            s.door.fault = fault
            status, answer, _ = await s.post(*call(Dialect.CHAT))
            assert status == 403
            assert b"could not decide" in answer
            assert s.provider.log == []
            assert s.rows()[0]["refused"] == "policy_error"

    with caplog.at_level(logging.CRITICAL):
        asyncio.run(run())


def test_a_usage_store_that_cannot_be_written_stops_calls(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            s.meter.fault = "the usage store cannot be written: disk full"
            status, answer, _ = await s.post(*call(Dialect.CHAT))
            assert (status, s.provider.log) == (403, [])
            assert b"disk full" in answer
            s.meter.fault = None

    asyncio.run(run())


def test_the_kill_switch_refuses_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        why: list[str | None] = [None]
        async with session(tmp_path, stopped=lambda: why[0]) as s:
            assert (await s.post(*call(Dialect.CHAT)))[0] == 200
            why[0] = "the owner stopped this session"
            status, answer, _ = await s.post(*call(Dialect.CHAT))
            assert (status, len(s.provider.log)) == (403, 1)
            assert b"the owner stopped this session" in answer

    asyncio.run(run())


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/messages", b"not json", 400),
        ("POST", "/v1/messages", b'{"messages":[]}', 400),
        ("POST", "/v1/messages", b'{"model":"a","model":"b"}', 400),
        ("POST", "/v1/files", b"{}", 404),
        ("DELETE", "/v1/messages", b"", 404),
        ("GET", "/v1/responses/resp_1", b"", 404),
        ("POST", "/v1/messages/../messages", b"{}", 400),
        ("POST", "/v1internal:loadCodeAssist", b"{}", 403),
    ],
)  # fmt: skip
def test_what_is_no_clear_call_is_answered_here(tmp_path: Path, method: str, path: str, body: bytes, status: int) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            head = f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
            answer = await s.raw(head + body)
            assert answer.startswith(b"HTTP/1.1 %d " % status)
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
            assert s.provider.log == []

    asyncio.run(run())


def test_probes_are_answered_here_and_model_lists_pass_without_a_row(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, {"models": ["m-1", "m-2"]}) as s:
            for method, path in (("HEAD", "/"), ("GET", "/"), ("HEAD", "/api/hello")):
                async with s.client.request(method, s.url + path) as answer:
                    assert answer.status == 200
            assert s.provider.log == []
            async with s.client.get(s.url + "/v1/models", headers={"authorization": "Bearer mine"}) as answer:
                assert "m-2" in await answer.text()
            assert s.provider.log[0].headers["authorization"] == f"Bearer {KEY}"
            assert s.rows() == []
            s.label[0] = Label.RESTRICTED
            async with s.client.get(s.url + "/v1/models/a-secret-in-a-name") as answer:
                assert answer.status == 403
            assert len(s.provider.log) == 1

    asyncio.run(run())


def test_counting_tokens_is_decided_and_kept_apart_from_calls(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path) as s:
            path, body = call(Dialect.ANTHROPIC)
            assert (await s.post(path + "/count_tokens", body))[0] == 200
            assert len(s.door.log) == 1
            row = await s.row()
            assert (row["kind"], row["input"], row["unmetered_reason"]) == ("count", None, None)

    asyncio.run(run())


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 529])
def test_an_upstream_error_passes_as_it_came_and_shows_under_its_status(tmp_path: Path, status: int) -> None:
    async def run() -> None:
        script = {"errors": [{"status": status, "headers": {"retry-after": "7", "request-id": "req_9"}, "message": "no, because"}]}
        async with session(tmp_path, script) as s:
            got, answer, headers = await s.post(*call(Dialect.ANTHROPIC))
            assert (got, headers["retry-after"]) == (status, "7")
            assert b"no, because" in answer
            assert len(s.provider.log) == 1  # nothing is sent twice
            row = await s.row()
            assert (row["status"], row["input"], row["request_id"]) == (status, None, "req_9")

    asyncio.run(run())


def test_an_upstream_that_repeats_the_key_does_not_tell_it_to_the_harness(tmp_path: Path) -> None:
    async def run() -> None:
        for encoding in ("identity", "gzip"):
            script = {"encoding": encoding, "errors": [{"status": 401, "message": f"bad key {KEY}", "headers": {"x-echo": f"key={KEY}"}}]}
            (tmp_path / encoding).mkdir()
            async with session(tmp_path / encoding, script) as s:
                status, answer, headers = await s.post(*call(Dialect.CHAT), {"accept-encoding": "gzip"})
                assert status == 401
                assert b"bad key ****" in answer
                assert KEY not in str(headers)

    asyncio.run(run())


@pytest.mark.parametrize("length", [True, False], ids=["with a length", "chunked"])
def test_status_headers_and_every_byte_of_an_answer_pass(tmp_path: Path, length: bool) -> None:
    payload = bytes(range(256)) * 9000  # no text, no JSON, larger than one write

    async def run() -> None:
        async def handler(_: web.Request) -> web.StreamResponse:
            headers = {"content-type": "application/odd", "x-one": "1", "connection": "x-two", "x-two": "2", "retry-after": "5"}
            out = web.StreamResponse(status=203, reason="Quite So", headers=headers)
            if length:
                out.content_length = len(payload)
            await out.prepare(_)
            for start in range(0, len(payload), 70_001):
                await out.write(payload[start : start + 70_001])
            await out.write_eof()
            return out

        runner, base = await _upstream(handler)
        async with session(tmp_path, base_url=base) as s:
            status, answer, headers = await s.post(*call(Dialect.CHAT))
            assert (status, answer == payload) == (203, True)
            assert (headers["content-type"], headers["x-one"], headers["retry-after"]) == ("application/odd", "1", "5")
            assert "x-two" not in headers
            assert headers.get("content-length") == (str(len(payload)) if length else None)
            row = await s.row()
            assert (row["input"], row["unmetered_reason"]) == (None, "unknown_shape")
        await runner.cleanup()

    asyncio.run(run())


async def _upstream(handler: Any) -> tuple[web.AppRunner, str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def test_redirects_are_not_followed(tmp_path: Path) -> None:
    async def run() -> None:
        seen: list[str] = []

        async def handler(request: web.Request) -> web.Response:
            seen.append(request.path)
            return web.Response(status=307, headers={"location": "/elsewhere"})

        runner, base = await _upstream(handler)
        async with session(tmp_path, base_url=base) as s:
            status, _, headers = await s.post(*call(Dialect.CHAT))
            assert (status, seen) == (502, ["/v1/chat/completions"])
            assert "location" not in {name.lower() for name in headers}
            row = await s.row()
            assert (row["status"], row["unmetered_reason"]) == (502, "upstream_redirects")
        await runner.cleanup()

    asyncio.run(run())


def test_an_upstream_that_is_not_there_is_a_502_without_its_address(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, base_url="http://127.0.0.1:1") as s:
            status, answer, _ = await s.post(*call(Dialect.ANTHROPIC))
            assert status == 502
            assert json.loads(answer)["error"]["type"] == "api_error"
            assert KEY.encode() not in answer

    asyncio.run(run())


def test_a_silent_upstream_is_given_up_after_the_idle_limit(tmp_path: Path) -> None:
    async def run() -> None:
        script = {"steps": [{"text": "x", "wait": "never"}]}
        async with session(tmp_path, script, idle_s=0.05) as s:
            status, answer, _ = await s.post(*call(Dialect.ANTHROPIC))
            assert status == 504
            assert json.loads(answer)["error"]["type"] == "timeout_error"

    asyncio.run(run())


def test_a_stream_that_falls_silent_is_cut_and_recorded_with_what_it_told(tmp_path: Path) -> None:
    async def run() -> None:
        script = {"steps": [{"text": "word " * 40, "chunk": 5, "fault": {"kind": "stall", "after": 3}, "usage": USAGE}]}
        async with session(tmp_path, script, idle_s=0.2) as s:
            with pytest.raises(aiohttp.ClientError):
                await s.post(*call(Dialect.ANTHROPIC, stream=True))
            row = await s.row()
            assert (row["status"], row["partial"], row["input"], row["cache_read"]) == (200, 1, 1200, 300)

    asyncio.run(run())


@each_dialect
def test_an_answer_that_the_provider_cuts_is_cut_for_the_harness_too(tmp_path: Path, dialect: Dialect) -> None:
    async def run() -> None:
        script = {"steps": [{"text": "word " * 40, "chunk": 5, "fault": {"kind": "cut", "after": 3}}]}
        async with session(tmp_path, script) as s:
            with pytest.raises(aiohttp.ClientError):
                await s.post(*call(dialect, stream=True))
            row = await s.row()
            assert row["partial"] == 1 or row["unmetered_reason"] == "cut"
            assert len(s.provider.log) == 1

    asyncio.run(run())


def test_a_whole_answer_that_is_cut_becomes_a_502(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, {"steps": [{"text": "x", "fault": {"kind": "cut"}}]}) as s:
            status, _, _ = await s.post(*call(Dialect.CHAT))
            row = await s.row()
            assert (status, row["status"], row["unmetered_reason"]) == (502, 502, "upstream_cut")

    asyncio.run(run())


def test_garbage_passes_and_is_unmetered(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, {"steps": [{"text": "x", "fault": {"kind": "garbage", "after": 0}}]}) as s:
            status, answer, _ = await s.post(*call(Dialect.CHAT, stream=True))
            assert status == 200
            assert b"<html>" in answer
            row = await s.row()
            assert row["input"] is None
            assert row["unmetered_reason"] is not None

    asyncio.run(run())


@each_framing
def test_a_harness_that_leaves_early_ends_the_call_upstream_and_its_usage_is_kept(tmp_path: Path, stream: bool) -> None:
    async def run() -> None:
        fault = {"kind": "stall", "after": 3}
        step = {"text": "word " * 40, "chunk": 5, "usage": USAGE, **({"fault": fault} if stream else {"wait": "never"})}
        async with session(tmp_path, {"steps": [step]}) as s:
            path, body = call(Dialect.ANTHROPIC, stream=stream)
            reader, writer = await asyncio.open_connection("127.0.0.1", s.port)
            head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            if stream:
                await reader.readuntil(b"message_start")
            await s.provider.until(lambda p: bool(p.log) and p.log[0].outcome == "held")
            writer.transport.abort()
            await s.provider.until(lambda p: p.log[0].outcome == "gone")
            row = await s.row()
            assert row["partial"] == 1
            assert (row["status"], row["input"]) == ((200, 1200) if stream else (499, None))

    asyncio.run(run())


def test_each_event_of_a_stream_passes_before_the_next_is_there(tmp_path: Path) -> None:
    async def run() -> None:
        gate = asyncio.Event()

        async def handler(request: web.Request) -> web.StreamResponse:
            out = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await out.prepare(request)
            await out.write(b"data: first\n\n")
            await gate.wait()
            await out.write(b"data: [DONE]\n\n")
            await out.write_eof()
            return out

        runner, base = await _upstream(handler)
        async with session(tmp_path, base_url=base) as s:
            path, body = call(Dialect.CHAT, stream=True)
            async with s.client.post(s.url + path, data=body) as answer:
                assert await answer.content.readuntil(b"\n\n") == b"data: first\n\n"
                gate.set()
                assert await answer.content.read() == b"data: [DONE]\n\n"
        await runner.cleanup()

    asyncio.run(run())


def test_256_streams_at_once_all_end_whole_and_are_all_counted(tmp_path: Path) -> None:
    async def run() -> None:
        script = {"steps": [{"text": "word " * 10, "usage": USAGE, "wait": "all"}]}
        async with session(tmp_path, script) as s:
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=connector) as client:
                path, body = call(Dialect.ANTHROPIC, stream=True)

                async def one() -> bytes:
                    async with client.post(s.url + path, data=body) as answer:
                        return await answer.read()

                tasks = [asyncio.create_task(one()) for _ in range(256)]
                await s.provider.until(lambda p: len(p.log) == 256)
                s.provider.release("all")
                answers = await asyncio.gather(*tasks)
            assert all(b"message_stop" in answer for answer in answers)
            rows = s.rows()
            assert len(rows) == 256
            total = s.provider.totals()[("anthropic", "m-1")]
            assert (sum(row["input"] for row in rows), sum(row["output"] for row in rows)) == (total.input, total.output)

    asyncio.run(run())


def test_a_large_request_and_a_large_answer_pass(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, {"steps": [{"text": "lorem ipsum " * 1000, "repeat": 400, "chunk": 4096}]}) as s:
            path, body = call(Dialect.CHAT, stream=True, filler="x" * (3 << 20))
            status, answer, _ = await s.post(path, body)
            assert status == 200
            assert len(answer) > 4 << 20
            assert s.provider.log[0].body == body
            assert (await s.row())["partial"] == 0

    asyncio.run(run())


def test_a_compressed_request_is_read_and_goes_on_as_it_came(tmp_path: Path) -> None:
    import zstandard

    async def run() -> None:
        seen: list[tuple[str | None, bytes]] = []

        async def handler(request: web.Request) -> web.Response:
            seen.append((request.headers.get("content-encoding"), await request.read()))
            return web.json_response({"model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 1}})

        app = web.Application()
        app.router.add_post("/{path:.*}", handler)
        runner = web.AppRunner(app, auto_decompress=False)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with session(tmp_path, base_url=f"http://127.0.0.1:{runner.addresses[0][1]}") as s:
            path, body = call(Dialect.CHAT)
            packed = zstandard.compress(body)
            assert (await s.post(path, packed, {"content-encoding": "zstd"}))[0] == 200
            assert seen == [("zstd", packed)]
            assert s.door.log[0][0].input["model"] == "m-1"
            for bad in ("lzma", "gzip"):
                assert (await s.post(path, packed, {"content-encoding": bad}))[0] == 400
            bomb = zstandard.compress(b" " * (65 << 20))
            assert (await s.post(path, bomb, {"content-encoding": "zstd"}))[0] == 400
            assert len(seen) == 1
        await runner.cleanup()

    asyncio.run(run())


def test_on_a_login_only_its_own_account_passes(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(
            tmp_path, auth="subscription", credential=None, pinned=(Secret("login-token"),), route={"auth": Auth.SUBSCRIPTION}
        ) as s:
            path, body = call(Dialect.ANTHROPIC)
            assert (await s.post(path, body, {"authorization": "Bearer login-token"}))[0] == 200
            assert s.provider.log[0].headers["authorization"] == "Bearer login-token"
            for other in ({"authorization": "Bearer attackers"}, {"x-api-key": "attackers"}, {}):
                assert (await s.post(path, body, other))[0] == 403
            assert len(s.provider.log) == 1

    asyncio.run(run())


def test_on_a_port_of_the_host_a_call_needs_the_sessions_token(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, token=Secret("session-token")) as s:
            path, body = call(Dialect.ANTHROPIC)
            for wrong in ({}, {"x-api-key": "other"}, {"authorization": "Bearer sessionXtoken"}):
                assert (await s.post(path, body, wrong))[0] == 403
            assert s.provider.log == []
            assert (await s.post(path, body, {"x-api-key": "session-token"}))[0] == 200
            assert "session-token" not in json.dumps(s.provider.log[0].headers)

    asyncio.run(run())


def test_what_is_mounted_beside_the_calls_is_served_and_not_torn_by_a_client_that_leaves(tmp_path: Path) -> None:
    async def run() -> None:
        begun, gate, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def write(request: web.Request) -> web.Response:
            begun.set()
            await gate.wait()
            ended.set()
            return web.Response(text="written")

        async with session(tmp_path, extra=lambda app: app.router.add_post("/mcp", write) and None) as s:
            _, writer = await asyncio.open_connection("127.0.0.1", s.port)
            writer.write(b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
            await begun.wait()
            writer.transport.abort()
            assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 200  # by now the egress has seen that the client left
            gate.set()
            async with asyncio.timeout(20):
                await ended.wait()
            writer.close()

    asyncio.run(run())


def test_closing_the_egress_ends_open_calls_and_records_them(tmp_path: Path) -> None:
    async def run() -> None:
        script = {"steps": [{"text": "word " * 40, "chunk": 5, "fault": {"kind": "stall", "after": 3}, "usage": USAGE}]}
        kept: list[Any] = []
        async with session(tmp_path, script) as s:
            path, body = call(Dialect.ANTHROPIC, stream=True)
            _, writer = await asyncio.open_connection("127.0.0.1", s.port)
            writer.write(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            await s.provider.until(lambda p: bool(p.log) and p.log[0].outcome == "held")
            kept.append(s)
        writer.close()
        from tests.egress.test_meter import stored

        assert [(row["partial"], row["input"]) for row in stored(kept[0].root)] == [(1, 1200)]

    asyncio.run(run())


def test_only_the_routes_declared_changes_are_made_and_they_are_named(tmp_path: Path) -> None:
    async def run() -> None:
        late = {"role": "system", "content": "# Environment"}
        asked = {"messages": [{"role": "user", "content": "hi"}, late], "max_tokens": 128_000}
        async with session(tmp_path, route={"shaping": ("fold_system", "cap_output")}) as s:
            path, body = call(Dialect.ANTHROPIC, **asked)
            assert (await s.post(path, body))[0] == 200
            seen = s.provider.log[0]
            expected = {
                "model": "m-1",
                "max_tokens": 32_768,
                "messages": asked["messages"][:1],
                "system": [{"type": "text", "text": "# Environment"}],
            }
            assert seen.json == expected
            assert seen.headers["content-length"] == str(len(seen.body))
            assert (await s.row())["shaping"] == "fold_system,cap_output"
        (tmp_path / "plain").mkdir()
        async with session(tmp_path / "plain") as s:
            await s.post(path, body)
            assert s.provider.log[0].body == body
            assert (await s.row())["shaping"] is None

    asyncio.run(run())


def test_a_fault_of_the_egress_is_an_answer_in_shape_and_sends_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with session(tmp_path, route={"shaping": ("no_such_change",)}) as s:
            status, answer, _ = await s.post(*call(Dialect.ANTHROPIC))
            assert (status, s.provider.log) == (500, [])
            assert json.loads(answer)["error"]["type"] == "api_error"

    with caplog.at_level(logging.CRITICAL):
        asyncio.run(run())

"""The scripted provider over real sockets: answers, streams, faults, encodings, its log and its sums."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import brotli
import pytest
import zstandard

from amem.errors import ConfigError
from amem.model.call import Usage
from amem.testing.exchanges import Exchange, read_log, totals
from amem.testing.provider import GARBAGE, STALL_GATE, Provider, running

from .readers import READERS, sse

CALLS = {
    "anthropic": ("/v1/messages", {"model": "m", "stream": True}),
    "responses": ("/v1/responses", {"model": "m", "stream": True}),
    "chat": ("/v1/chat/completions", {"model": "m", "stream": True, "stream_options": {"include_usage": True}}),
    "gemini": ("/v1beta/models/m:streamGenerateContent?alt=sse", {}),
}
HELLO = {"steps": [{"text": "Hello, world."}]}
SPENT = Usage(input=1000, output=30, cache_read=200, cache_write=50)


def post(url: str, body: Any, **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, exc.read()


def get(url: str, **headers: str) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
        return json.loads(response.read())


@pytest.mark.parametrize("dialect", CALLS)
def test_each_dialect_streams_and_is_summed(dialect: str) -> None:
    path, body = CALLS[dialect]
    with running({**HELLO, "reasoning": True}) as provider:
        status, raw = post(provider.url + path, body)
        told = READERS[dialect](raw)
        sums = provider.totals()
    assert status == 200 and "Hello, world." in json.dumps(told)
    expected = Usage(input=1000, output=30, cache_read=200, cache_write=0 if dialect == "gemini" else 50, reasoning=7)
    assert sums == {(dialect, "m"): expected}
    assert (provider.log[0].outcome, provider.log[0].kind, provider.log[0].status) == ("sent", dialect, 200)


@pytest.mark.parametrize("dialect", CALLS)
def test_each_dialect_answers_in_one_piece(dialect: str) -> None:
    path, body = CALLS[dialect]
    path = path.replace("streamGenerateContent?alt=sse", "generateContent")
    with running(HELLO) as provider:
        status, raw = post(provider.url + path, {**body, "stream": False})
    assert status == 200 and "Hello, world." in json.dumps(json.loads(raw))


def test_chat_tells_its_usage_in_a_stream_only_when_asked() -> None:
    with running(HELLO) as provider:
        _status, raw = post(provider.url + "/v1/chat/completions", {"model": "m", "stream": True})
    assert "usage" not in READERS["chat"](raw)


def test_gemini_without_sse_streams_an_array() -> None:
    with running({"steps": [{"text": "Hello", "chunk": 2}]}) as provider:
        _status, raw = post(provider.url + "/v1beta/models/m:streamGenerateContent", {})
    assert len(json.loads(raw)) == 3
    assert READERS["gemini"](raw)["candidates"][0]["content"]["parts"] == [{"text": "Hello"}]


def test_code_assist_has_its_envelope() -> None:
    with running(HELLO) as provider:
        _status, raw = post(provider.url + "/v1internal:streamGenerateContent?alt=sse", {"model": "m", "request": {"contents": []}})
        _status, whole = post(provider.url + "/v1internal:generateContent", {"model": "m", "request": {"contents": []}})
        _status, set_up = post(provider.url + "/v1internal:loadCodeAssist", {})
    assert all("response" in json.loads(text) for _name, text in sse(raw))
    assert json.loads(whole)["response"]["modelVersion"] == "m"
    assert json.loads(set_up)["currentTier"]["id"] == "standard-tier"


def test_side_requests() -> None:
    with running({**HELLO, "models": ["one", "two"]}) as provider:
        body = {"model": "m", "messages": [{"role": "user", "content": "x" * 400}]}
        _status, counted = post(provider.url + "/v1/messages/count_tokens", body)
        lists = [
            get(provider.url + "/v1/models")["data"][1]["id"],
            get(provider.url + "/v1/models", **{"anthropic-version": "2023-06-01"})["last_id"],
            get(provider.url + "/v1beta/models?key=k")["models"][1]["name"],
            get(provider.url + "/v1/models?client_version=1"),
        ]
        status, _body = post(provider.url + "/v1/embeddings", {})
    assert json.loads(counted)["input_tokens"] == -(-len(json.dumps(body)) // 4)
    assert lists == ["two", "two", "models/two", {"models": []}]
    assert (status, provider.log[-1].kind) == (404, "unknown")
    assert provider.totals() == {}


# ---- what goes wrong -------------------------------------------------------------------


def test_errors_are_counted_and_shaped() -> None:
    told = {
        **HELLO,
        "errors": [{"path": "messages", "status": 429, "skip": 1, "times": 1, "headers": {"retry-after": "1"}, "message": "slow"}],
    }
    with running(told) as provider:
        answers = [post(provider.url + "/v1/messages", {"model": "m"}) for _ in range(3)]
    assert [status for status, _ in answers] == [200, 429, 200]
    assert json.loads(answers[1][1])["error"] == {"type": "rate_limit_error", "message": "slow"}
    assert [e.outcome for e in provider.log] == ["sent", "failed", "sent"]


def test_a_key_is_asked_for_wherever_a_dialect_carries_it() -> None:
    with running({**HELLO, "key": "sk-real"}) as provider:
        url, body = provider.url + "/v1/messages", {"model": "m"}
        statuses = [
            post(url, body)[0],
            post(url, body, **{"x-api-key": "sk-other"})[0],
            post(url, body, **{"x-api-key": "sk-real"})[0],
            post(url, body, authorization="Bearer sk-real")[0],
            post(url, body, **{"x-goog-api-key": "sk-real"})[0],
            post(url + "?key=sk-real", body)[0],
        ]
    assert statuses == [401, 401, 200, 200, 200, 200]


def test_a_script_that_does_not_fit_is_told_in_the_answer() -> None:
    with running({"steps": [{"tool": "memory.get", "args": {"id": "$results[0].id"}}]}) as provider:
        body = {"model": "m", "tools": [{"name": "Bash"}]}
        missing = post(provider.url + "/v1/messages", body)
        body["tools"] = [{"name": "mcp__memory__get"}]
        dangling = post(provider.url + "/v1/messages", body)
        broken = post(provider.url + "/v1/messages", "no object")
    assert [status for status, _ in (missing, dangling, broken)] == [400, 400, 400]
    assert b"no tool memory.get among those offered: Bash" in missing[1] and b"nothing at [0]" in dangling[1]
    assert provider.totals() == {}


def test_a_wrong_script_is_refused_before_anything_listens() -> None:
    with pytest.raises(ConfigError, match="unknown key"), running({"stepz": []}):
        pass


async_cases = pytest.mark.parametrize("dialect", CALLS)


def run(check: Callable[[Provider, aiohttp.ClientSession], Any], told: Any) -> Provider:
    """Run a check against a provider in one event loop."""

    async def inside() -> Provider:
        async with Provider(told) as provider, aiohttp.ClientSession(auto_decompress=False) as client, asyncio.timeout(30):
            await check(provider, client)
        return provider

    return asyncio.run(inside())


def faulty(kind: str, after: int = 2) -> dict[str, Any]:
    return {"steps": [{"text": "Hello, world.", "chunk": 1, "fault": {"kind": kind, "after": after}}]}


@async_cases
def test_a_cut_stream_ends_without_its_end(dialect: str) -> None:
    path, body = CALLS[dialect]

    async def check(provider: Provider, client: aiohttp.ClientSession) -> None:
        got = b""
        with pytest.raises(aiohttp.ClientPayloadError):
            async with client.post(provider.url + path, json=body) as response:
                async for data in response.content.iter_any():
                    got += data
        assert len(sse(got)) == 2

    provider = run(check, faulty("cut"))
    assert (provider.log[0].outcome, provider.totals()) == ("cut", {})


@async_cases
def test_a_stalled_stream_waits_and_notices_that_the_client_has_gone(dialect: str) -> None:
    path, body = CALLS[dialect]

    async def check(provider: Provider, client: aiohttp.ClientSession) -> None:
        async with client.post(provider.url + path, json=body) as response:
            got = b""
            while len(sse(got) if got.endswith(b"\n\n") else []) < 2:
                got += await response.content.readany()
            await provider.until(lambda p: p.log[0].outcome == "held")
            response.close()
        await provider.until(lambda p: p.log[0].outcome == "gone")

    assert run(check, faulty("stall")).totals() == {}


def test_a_stalled_stream_can_be_released() -> None:
    async def check(provider: Provider, client: aiohttp.ClientSession) -> None:
        async with client.post(provider.url + "/v1/messages", json={"model": "m", "stream": True}) as response:
            await provider.until(lambda p: p.log[0].outcome == "held")
            provider.release(STALL_GATE)
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()

    assert run(check, faulty("stall")).log[0].outcome == "cut"


@async_cases
def test_garbage_follows_good_events(dialect: str) -> None:
    path, body = CALLS[dialect]
    with running(faulty("garbage")) as provider:
        _status, raw = post(provider.url + path, body)
    assert raw.endswith(GARBAGE) and len(sse(raw.removesuffix(GARBAGE))) == 2
    assert (provider.log[0].outcome, provider.totals()) == ("garbage", {})


@async_cases
def test_an_error_inside_a_stream_has_the_dialects_shape(dialect: str) -> None:
    path, body = CALLS[dialect]
    with running(faulty("error")) as provider:
        _status, raw = post(provider.url + path, body)
    name, text = sse(raw)[2]
    last = json.loads(text)
    assert name == {"anthropic": "error", "responses": "response.failed"}.get(dialect)
    assert (last["response"]["error"] if dialect == "responses" else last["error"])["message"] == "scripted by the provider"


def test_a_fault_past_the_end_still_bites() -> None:
    with running(faulty("garbage", after=10_000)) as provider:
        assert post(provider.url + "/v1/messages", {"model": "m", "stream": True})[1].endswith(GARBAGE)


def test_an_answer_in_one_piece_goes_wrong_too() -> None:
    async def check(provider: Provider, client: aiohttp.ClientSession) -> None:
        with pytest.raises(aiohttp.ClientPayloadError):
            async with client.post(provider.url + "/v1/messages", json={"model": "m"}) as response:
                await response.read()
        provider.load(faulty("garbage"))
        async with client.post(provider.url + "/v1/messages", json={"model": "m"}) as response:
            with pytest.raises(ValueError):
                json.loads(await response.read())
        provider.load(faulty("error"))
        async with client.post(provider.url + "/v1/messages", json={"model": "m"}) as response:
            assert response.status == 503

    run(check, faulty("cut"))


# ---- gates, sizes, encodings -----------------------------------------------------------


def test_an_answer_waits_at_its_gate() -> None:
    async def check(provider: Provider, client: aiohttp.ClientSession) -> None:
        asked = asyncio.create_task(client.post(provider.url + "/v1/messages", json={"model": "m"}))
        await provider.until(lambda p: any(e.outcome == "held" for e in p.log))
        assert not asked.done()
        provider.release("go")
        async with await asked as response:
            assert response.status == 200

    run(check, {"steps": [{"text": "x", "wait": "go"}]})


def test_waiting_for_what_does_not_come_ends() -> None:
    async def check(provider: Provider, client: aiohttp.ClientSession) -> None:
        with pytest.raises(TimeoutError):
            await provider.until(lambda p: False, timeout_s=0.01)

    run(check, HELLO)


def test_twenty_megabytes_come_whole() -> None:
    with running({"steps": [{"text": "0123456789abcdef", "repeat": 20 << 16}]}) as provider:
        _status, raw = post(provider.url + "/v1/messages", {"model": "m", "stream": True})
    assert READERS["anthropic"](raw)["content"] == [{"type": "text", "text": "0123456789abcdef" * (20 << 16)}]


DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda raw: zlib.decompress(raw, wbits=31),
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": lambda raw: zstandard.ZstdDecompressor().decompressobj().decompress(raw),
    "identity": lambda raw: raw,
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("told", "accepted", "encoding"),
    [
        ("gzip", "gzip", "gzip"),
        ("deflate", "gzip, deflate", "deflate"),
        ("br", "br;q=1.0, gzip", "br"),
        ("zstd", "zstd", "zstd"),
        ("negotiate", "gzip, br", "br"),
        ("negotiate", "gzip, br;q=0", "gzip"),
        ("negotiate", "", "identity"),
        ("zstd", "gzip", "identity"),
        ("identity", "gzip", "identity"),
    ],
)
def test_encodings_are_those_the_client_accepts(told: str, accepted: str, encoding: str, stream: bool) -> None:
    with running({**HELLO, "encoding": told}) as provider:
        request = urllib.request.Request(
            provider.url + "/v1/messages", json.dumps({"model": "m", "stream": stream}).encode(), {"accept-encoding": accepted}
        )
        with urllib.request.urlopen(request) as response:
            named, raw = response.headers.get("content-encoding", "identity"), response.read()
    plain = DECODERS[encoding](raw)
    assert named == encoding
    assert (READERS["anthropic"](plain) if stream else json.loads(plain))["content"] == [{"type": "text", "text": "Hello, world."}]


INCREMENTAL: dict[str, Callable[[], Callable[[bytes], bytes]]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31).decompress,
    "deflate": lambda: zlib.decompressobj().decompress,
    "br": lambda: brotli.Decompressor().process,
    "zstd": lambda: zstandard.ZstdDecompressor().decompressobj().decompress,
}


@pytest.mark.parametrize("encoding", INCREMENTAL)
def test_an_encoded_stream_is_flushed_event_by_event(encoding: str) -> None:
    """What came before a stall can be decoded: a meter that reads along sees the usage of the first event."""

    decode = INCREMENTAL[encoding]()

    async def check(provider: Provider, client: aiohttp.ClientSession) -> None:
        headers = {"accept-encoding": encoding}
        async with client.post(provider.url + "/v1/messages", json={"model": "m", "stream": True}, headers=headers) as response:
            got = b""
            while got.count(b"\n\n") < 2:
                got += decode(await response.content.readany())
            assert b"message_start" in got

    run(check, {**faulty("stall"), "encoding": encoding})


# ---- log, sums, programs ---------------------------------------------------------------


def test_the_log_keeps_what_was_sent_and_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with running({**HELLO, "errors": [{"status": 500, "path": "responses"}]}, log=path) as provider:
        post(provider.url + "/v1/messages?beta=true", {"model": "m"}, **{"x-api-key": "k"})
        post(provider.url + "/v1/responses", {"model": "m"})
        urllib.request.urlopen(urllib.request.Request(provider.url + "/", method="HEAD")).close()
        told = provider.totals()
    read = read_log(path)
    assert read == provider.log and totals(read) == told
    assert (read[0].query, read[0].headers["x-api-key"], read[0].json) == ("beta=true", "k", {"model": "m"})


def test_bytes_that_are_no_text_survive_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        json.dumps(Exchange(n=1, at_s=0.5, method="POST", path="/", query="", headers={}, body=b"\xff\x00", kind="unknown").line())
    )
    assert read_log(path)[0].body == b"\xff\x00"


def test_sums_are_per_dialect_and_model_and_of_whole_answers_only() -> None:
    def exchange(kind: str, model: str, outcome: str, usage: Usage | None) -> Exchange:
        return Exchange(
            n=1, at_s=0, method="POST", path="/", query="", headers={}, body=b"", kind=kind, model=model, outcome=outcome, usage=usage
        )

    more = Usage(input=1, output=2, cache_read=3, cache_write=4, reasoning=5)
    sums = totals([
        exchange("chat", "a", "sent", SPENT), exchange("chat", "a", "sent", more), exchange("chat", "b", "sent", more),
        exchange("chat", "a", "cut", more), exchange("chat", "a", "gone", more), exchange("models", "", "sent", None),
    ])  # fmt: skip
    assert sums == {("chat", "a"): Usage(input=1001, output=32, cache_read=203, cache_write=54, reasoning=5), ("chat", "b"): more}


def test_another_script_starts_at_its_first_step() -> None:
    with running({"by": "count", "steps": [{"text": "one"}, {"text": "two"}]}) as provider:
        post(provider.url + "/v1/messages", {"model": "m"})
        provider.load({"by": "count", "steps": [{"text": "three"}, {"text": "four"}]})
        assert b"three" in post(provider.url + "/v1/messages", {"model": "m"})[1]
        assert len(provider.log) == 2


def test_importing_the_fakes_loads_no_http_library() -> None:
    code = "import sys, amem.testing.provider, amem.testing.demo; print(sorted({'aiohttp', 'brotli'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": _ROOT})
    assert ran.stdout == "[]\n"


_ROOT = str(Path(__file__).resolve().parents[2])


def test_as_a_program_it_says_its_port_and_ends_on_a_signal(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps({"steps": [{"text": "x", "wait": "go"}]}))
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "amem.testing.provider", "--ready-fd", str(writer), "--port-file", str(tmp_path / "port")]
    command += ["--log", str(tmp_path / "log.jsonl"), "--script", str(tmp_path / "script.json")]
    process = subprocess.Popen(command, pass_fds=[writer], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": _ROOT})
    os.close(writer)
    try:
        with os.fdopen(reader) as ready:
            port = ready.readline().strip()
        assert port == (tmp_path / "port").read_text().strip()
        url = f"http://127.0.0.1:{port}"
        post(url + "/__ctl/release", {"gate": "go"})
        assert post(url + "/v1/messages", {"model": "m"})[0] == 200
        stats = get(url + "/__ctl/stats")
        assert (stats["requests"], stats["calls"], stats["totals"][0]["input"]) == (1, 1, 1000)
        post(url + "/__ctl/script", HELLO)
        assert b"Hello, world." in post(url + "/v1/messages", {"model": "m"})[1]
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=30)
    assert (process.returncode, said.decode().strip()) == (0, port)
    assert totals(read_log(tmp_path / "log.jsonl"))[("anthropic", "m")].output == 60


def test_as_a_program_it_refuses_a_wrong_script(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('{"steps": [{"txt": 1}]}')
    command = [sys.executable, "-m", "amem.testing.provider", "--script", str(tmp_path / "script.json")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": _ROOT})
    assert ran.returncode == 2 and "unknown key 'txt'" in ran.stderr

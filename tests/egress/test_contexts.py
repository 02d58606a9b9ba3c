import asyncio
import gzip
import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amem.egress import contexts
from amem.egress.contexts import Contexts
from amem.errors import IntegrityError
from amem.model.call import Dialect
from amem.model.label import Label
from amem.record.sealed import Sealer
from tests.egress.support import KEY, call, session


def kept(folder: Path) -> list[dict[str, Any]]:
    return contexts.read(folder)


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_call_is_kept_as_it_left_and_as_its_answer_came(tmp_path: Path, dialect: Dialect, stream: bool) -> None:
    async def run() -> None:
        keeper = Contexts(tmp_path / "ctx")
        async with session(tmp_path, {"encoding": "negotiate"}, contexts=keeper) as s:
            path, body = call(dialect, stream=stream)
            s.label[0] = Label.INTERNAL
            _, answer, _ = await s.post(path, body, {"accept-encoding": "gzip"})
            await asyncio.to_thread(keeper.close)
            [line] = kept(tmp_path / "ctx")
            row = await s.row()
            assert (line["n"], line["call"], line["model"], line["label"], line["status"]) == (1, row["id"], "m-1", "internal", 200)
            assert (line["dialect"], line["path"], line["observed_by"], line["content_encoding"]) == (dialect, path, "egress", "gzip")
            assert contexts.body(tmp_path / "ctx", line["request"]) == body
            assert contexts.body(tmp_path / "ctx", line["response"]) == answer

    asyncio.run(run())
    files = [path for path in (tmp_path / "ctx").rglob("*") if path.is_file()]
    assert files
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_the_same_body_is_stored_once_and_its_tools_and_changes_are_named(tmp_path: Path) -> None:
    async def run() -> None:
        keeper = Contexts(tmp_path / "ctx")
        tools = [{"name": "search", "input_schema": {"type": "object"}}]
        script = {"steps": [{"tool": "search", "args": {"q": "x"}}]}
        async with session(tmp_path, script, contexts=keeper, route={"shaping": ("cap_output",)}) as s:
            path, body = call(Dialect.ANTHROPIC, tools=tools, max_tokens=99_999)
            for _ in range(3):
                assert (await s.post(path, body))[0] == 200
            await asyncio.to_thread(keeper.close)
            lines = kept(tmp_path / "ctx")
            assert [line["n"] for line in lines] == [1, 2, 3]
            assert {line["request"] for line in lines} == {lines[0]["request"]}
            assert all(line["tools"] == ["search"] and line["shaping"] == ["cap_output"] for line in lines)
            left = contexts.body(tmp_path / "ctx", lines[0]["request"])
            assert left == s.provider.log[0].body
            assert json.loads(left)["max_tokens"] == 32_768

    asyncio.run(run())


def test_a_refused_call_leaves_no_context_and_a_cut_one_says_so(tmp_path: Path) -> None:
    async def run() -> None:
        keeper = Contexts(tmp_path / "ctx")
        script = {"steps": [{"text": "word " * 40, "chunk": 5, "fault": {"kind": "cut", "after": 3}}]}
        async with session(tmp_path, script, contexts=keeper, route={"ceiling": Label.PUBLIC}) as s:
            s.label[0] = Label.INTERNAL
            assert (await s.post(*call(Dialect.ANTHROPIC)))[0] == 403
            s.label[0] = Label.PUBLIC
            with pytest.raises(Exception, match=r"payload|closed|disconnected|Connection"):
                await s.post(*call(Dialect.ANTHROPIC, stream=True))
            await s.row()
            await asyncio.to_thread(keeper.close)
            [line] = kept(tmp_path / "ctx")
            assert line["partial"] is True
            assert b"message_start" in contexts.body(tmp_path / "ctx", line["response"])

    asyncio.run(run())


@pytest.mark.parametrize("stream", [False, True], ids=["error", "stream"])
def test_a_key_that_the_upstream_repeats_is_in_no_context(tmp_path: Path, stream: bool) -> None:
    async def run() -> None:
        keeper = Contexts(tmp_path / "ctx")
        script: dict[str, Any] = (
            {"steps": [{"text": f"your key is {KEY}", "chunk": 1000}]} if stream else {"errors": [{"status": 401, "message": KEY}]}
        )
        async with session(tmp_path, script, contexts=keeper) as s:
            _, answer, _ = await s.post(*call(Dialect.CHAT, stream=stream))
            assert b"*" * len(KEY) in answer
            await asyncio.to_thread(keeper.close)
            [line] = kept(tmp_path / "ctx")
            assert KEY.encode() not in contexts.body(tmp_path / "ctx", line["response"])
            assert KEY.encode() not in answer

    asyncio.run(run())


def test_a_folder_that_cannot_be_written_stops_no_call_and_is_said_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        blocked = tmp_path / "ctx"
        blocked.write_text("a file stands where the folder should be")
        keeper = Contexts(blocked)
        async with session(tmp_path, contexts=keeper) as s:
            assert (await s.post(*call(Dialect.CHAT)))[0] == 200
            await s.row()
            async with asyncio.timeout(20):
                while not caplog.records:
                    await asyncio.sleep(0.01)
            blocked.unlink()
            assert (await s.post(*call(Dialect.CHAT)))[0] == 200
            await asyncio.to_thread(keeper.close)
            assert kept(blocked)[-1]["missed_before"] >= 1

    asyncio.run(run())


@pytest.mark.parametrize("name", ["", "sha256-", "../calls.jsonl", "sha256-" + "g/" * 32, "sha256-" + "." * 64])
def test_a_body_has_no_other_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not the name"):
        contexts.body(tmp_path, name)


@pytest.mark.parametrize("damage", [lambda data: data[:-6], lambda data: b"not zstandard", lambda data: b""], ids=["cut", "other", "empty"])
def test_a_body_that_is_not_what_its_name_says_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    keeper = Contexts(tmp_path)
    one = begun("call-0")
    keeper.begin(one)
    one.feed(b"four " * 100)
    keeper.end(one)
    keeper.close()
    [line] = kept(tmp_path)
    assert contexts.body(tmp_path, line["response"]) == b"four " * 100
    blob = tmp_path / "blobs" / f"{line['response']}.zst"
    blob.write_bytes(damage(blob.read_bytes()))
    with pytest.raises(IntegrityError, match="not what was kept"):
        contexts.body(tmp_path, line["response"])


def test_an_answer_that_comes_faster_than_it_can_be_written_is_left_out_and_its_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that writes is held; what may wait for it has a bound, and the next call is kept again."""
    monkeypatch.setattr("amem.egress.contexts._WAITING_BYTES", 1000)
    held, go = threading.Event(), threading.Event()
    keeper = Contexts(tmp_path)
    real = contexts._Answer.write

    def write(answer: contexts._Answer, piece: bytes) -> None:
        held.set()
        assert go.wait(60)
        real(answer, piece)

    monkeypatch.setattr(contexts._Answer, "write", write)
    calls = [begun(f"call-{number:012}") for number in range(2)]
    keeper.begin(calls[0])
    calls[0].feed(b"x")
    assert held.wait(60)
    for _ in range(100):
        calls[0].feed(b"y" * 900)
    assert keeper._taken < 3000
    keeper.end(calls[0])
    go.set()
    keeper.begin(calls[1])
    until = time.monotonic() + 60
    while keeper._taken != keeper._written:
        assert time.monotonic() < until
        time.sleep(0.01)
    calls[1].feed(b"z")
    keeper.end(calls[1])
    keeper.close()
    first, second = contexts.read(tmp_path)
    assert (first["dropped"], "response" in first) == (True, False)
    assert ("dropped" in second, contexts.body(tmp_path, second["response"])) == (False, b"z")
    assert not list((tmp_path / "blobs").glob(".*"))


def begun(name: str) -> contexts.Context:
    told: dict[str, Any] = {"at": "2026-11-30T10:00:00.000Z", "dialect": Dialect.CHAT, "model": "m", "label": Label.PUBLIC}
    return contexts.Context(call=name, shaping=(), path="/v1/x", request=b"{}", **told)


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_credential_is_not_kept_as_it_was_and_comes_back_with_the_roots_key(tmp_path: Path, encoding: str) -> None:
    secret = "ghp_" + "a1B2" * 9
    sealer = Sealer(tmp_path)
    sent, came = f'{{"say": "{secret}"}}'.encode(), f'{{"answer": "no, {secret}"}}'.encode()
    keeper = Contexts(tmp_path / "ctx", sealer.masked)
    kept_call = contexts.Context(
        call="call-1", at="2026", dialect=Dialect.CHAT, model="m", label=Label.PUBLIC, shaping=(), path="/", request=sent,
        content_encoding=encoding,
    )  # fmt: skip
    keeper.begin(kept_call)
    kept_call.feed(gzip.compress(came) if encoding else came)
    keeper.end(kept_call)
    keeper.close()
    (line,) = kept(tmp_path / "ctx")
    assert "content_encoding" not in line  # what was compressed is kept as it reads, and says so
    for name, text in (("request", sent), ("response", came)):
        body = contexts.body(tmp_path / "ctx", line[name])
        assert secret.encode() not in body
        assert sealer.unmasked(body) == text


@pytest.mark.parametrize("encoding", ["", "gzip", "xyz"])
@pytest.mark.parametrize("line", [b"\n\n", b'"', b"x"], ids=["lines", "texts", "neither"])
@pytest.mark.parametrize("planted", [True, False], ids=["planted", "clean"])
def test_of_an_answer_that_is_too_long_to_be_parsed_no_credential_is_kept_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, line: bytes, planted: bool
) -> None:
    monkeypatch.setattr(contexts, "_PARSED_BYTES", 400_000)
    monkeypatch.setattr(contexts, "_PART_BYTES", 50_000)
    monkeypatch.setattr(contexts, "_RUN_BYTES", 400_000)
    secret = b"ghp_" + b"a1B2" * 9
    filler = (b"- " * 700 + line) * 120
    came = b" ".join((filler, secret if planted else b"", filler, filler, secret[: 40 * planted]))
    sealer = Sealer(tmp_path)
    keeper = Contexts(tmp_path / "ctx", sealer.masked)
    kept_call = begun("call-1")
    kept_call.content_encoding = encoding
    keeper.begin(kept_call)
    # Long as it comes, too: what cannot be compressed follows.
    sent = gzip.compress(came + random.Random(7).randbytes(500_000), 1) if encoding == "gzip" else came
    assert len(sent) > 400_000
    for at in range(0, len(sent), 1 << 16):
        kept_call.feed(sent[at : at + (1 << 16)])
    keeper.end(kept_call)
    keeper.close()
    (told,) = kept(tmp_path / "ctx")
    body = contexts.body(tmp_path / "ctx", told["response"])
    assert [path.name for path in (tmp_path / "ctx" / "blobs").iterdir() if path.name.startswith(".")] == []
    if encoding == "xyz" or not planted:
        assert (body, told.get("content_encoding", "")) == (sent, encoding)
        return
    assert "content_encoding" not in told
    assert secret not in body
    assert sealer.unmasked(body).startswith(came)


TOKEN = b'"token":"ghp_%s",' % (b"a1B2" * 9)
LINES = (b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ" * 2 + b"\n") * 20
PEM = b"-----BEGIN PRIVATE KEY-----\n" + LINES + b"-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize("text", [TOKEN, PEM], ids=["a token", "a key of many lines"])
@pytest.mark.parametrize("before", range(0, 3000, 251))
def test_a_long_request_is_sealed_in_parts_as_it_would_be_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, before: int
) -> None:
    """In one go the thread that seals would keep the loop waiting for seconds."""
    monkeypatch.setattr(contexts, "_PART_BYTES", 2000)
    sealer, longest = Sealer(tmp_path), [0]

    def mask(data: bytes) -> bytes:
        longest[0] = max(longest[0], len(data))
        return sealer.masked(data)

    body = b'{"a":"' + b"- " * before + b'",\n' + (text + b'"b":"words",\n') * 20 + b'"c":1}'
    whole = sealer.masked(body)
    keeper = Contexts(tmp_path / "ctx", mask)
    call = begun("call-1")
    call.request = body
    keeper.begin(call)
    keeper.end(call)
    keeper.close()
    (line,) = kept(tmp_path / "ctx")
    found = contexts.body(tmp_path / "ctx", line["request"])
    assert whole != body and len(found) == len(whole) and sealer.unmasked(found) == body
    assert longest[0] < 2 * before + 2000 + 2 * len(PEM)

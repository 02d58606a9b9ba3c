"""The key in the egress's hands is found in no place that the session, a log or a crash could show."""

import asyncio
import logging
import traceback
from pathlib import Path

import pytest

from amem.egress.meter import CallRow
from amem.egress.server import Access
from amem.model.call import Dialect
from amem.model.label import Label
from amem.settings.credentials import Secret
from tests.egress.support import KEY, call, routes_to, session

SCRIPT = {
    "steps": [{"text": "fine", "usage": {"input": 5, "output": 2}}],
    "errors": [{"status": 401, "message": f"bad key {KEY}", "path": "chat", "headers": {"x-echo": KEY}}],
}


def test_the_key_is_in_no_answer_log_row_repr_or_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with session(tmp_path, SCRIPT) as s:
            shown: list[str] = [repr(s.door.log)]
            for dialect in Dialect:
                for stream in (False, True):
                    status, body, headers = await s.post(*call(dialect, stream=stream))
                    shown += [str(status), body.decode(), str(headers)]
            s.label[0] = Label.RESTRICTED
            shown.append(str(await s.post(*call(Dialect.ANTHROPIC))))
            s.door.fault = ValueError("broken")
            shown.append(str(await s.post(*call(Dialect.ANTHROPIC))))
            shown += [str(s.rows()), *(record.getMessage() + str(record.exc_info) for record in caplog.records)]
            assert any(KEY in str(seen.headers) for seen in s.provider.log)  # it did leave, where it belongs
            assert not [text for text in shown if KEY in text]

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    found = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert found == []


def test_the_key_is_not_in_the_repr_of_what_holds_it() -> None:
    access = Access(
        session="ses-00000000", principal="agent:x", domain="dom-me", auth="key", routes=routes_to("http://127.0.0.1:1"),
        credential=Secret(KEY), token=Secret(KEY), pinned=(Secret(KEY),), label=lambda: Label.PUBLIC, decide=lambda _: None,  # type: ignore[arg-type,return-value]
    )  # fmt: skip
    assert KEY not in repr(access) + str(access) + f"{access.credential}"
    assert "Secret(***)" in repr(access)
    assert CallRow.__annotations__.keys().isdisjoint({"headers", "body", "key", "credential"})


def test_the_key_is_not_in_the_traceback_of_a_failed_send(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with session(tmp_path, base_url="http://127.0.0.1:1") as s:
            status, answer, _ = await s.post(*call(Dialect.ANTHROPIC))
            assert status == 502
            assert KEY.encode() not in answer

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    texts = [
        record.getMessage() + "".join(traceback.format_exception(*record.exc_info) if record.exc_info else ()) for record in caplog.records
    ]
    assert not [text for text in texts if KEY in text]

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from amem.egress import meter, reading
from amem.egress.identity import response_id_class
from amem.egress.meter import CallRow, Meter
from amem.model.call import Billing
from amem.settings import database
from amem.settings.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    made = Root(tmp_path)
    made.state.mkdir()
    return made


def row(n: int, **changes: Any) -> CallRow:
    values: dict[str, Any] = {
        "id": f"call-{n:012d}",
        "at": f"2026-11-{1 + n // 10:02d}T12:00:{n % 60:02d}.000Z",
        "session": "ses-00000001",
        "domain": "dom-me",
        "principal": "agent:claude",
        "destination": "demo",
        "model": "m-1",
        "dialect": "anthropic",
        "status": 200,
        "billing": Billing.METERED,
        "input": 10,
        "output": 5,
        "cache_read": 1,
        "cache_write": 2,
    }
    return CallRow(**{**values, **changes})


UNKNOWN: dict[str, Any] = {"input": None, "output": None, "cache_read": None, "cache_write": None}


def stored(root: Root) -> list[dict[str, Any]]:
    connection = database.connect(root.usage, durable=False)
    try:
        cursor = connection.execute("select * from calls order by rowid")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
    finally:
        connection.close()


def recorded(root: Root, *rows: CallRow) -> None:
    writer = Meter(root)
    for item in rows:
        writer.record(item)
    writer.close()


def test_a_row_is_kept_as_it_was_given_and_once(root: Root) -> None:
    given = row(1, task="task-me-00000000", partial=True, reasoning=3, ms=12, first_ms=4, response_id_class="msg_")
    recorded(root, given, given._replace(input=99, output=99))
    [found] = stored(root)
    assert {name: found[name] for name in ("id", "input", "output", "cache_read", "cache_write", "reasoning", "partial", "ms", "task")} == {
        "id": given.id,
        "input": 10,
        "output": 5,
        "cache_read": 1,
        "cache_write": 2,
        "reasoning": 3,
        "partial": 1,
        "ms": 12,
        "task": "task-me-00000000",
    }
    assert root.usage.stat().st_mode & 0o777 == 0o600


def test_many_threads_lose_no_row(root: Root) -> None:
    writer = Meter(root)

    def work(start: int) -> None:
        for n in range(start, start + 500):
            writer.record(row(n))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 4000, 500)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    assert len(stored(root)) == 4000


def test_two_meters_on_one_root_lose_no_row(root: Root) -> None:
    first, second = Meter(root), Meter(root)
    for n in range(200):
        (first if n % 2 else second).record(row(n))
    first.close()
    second.close()
    assert len(stored(root)) == 200


def test_a_store_that_cannot_be_written_is_said_and_the_rows_are_written_later(root: Root) -> None:
    writer = Meter(root)
    writer.record(row(3))
    writer.flush()  # a row was written, so its connection is open and makes no table any more
    blocker = meter.connect(root.usage)
    blocker.execute("alter table calls rename to gone")
    writer.record(row(1))
    writer.flush()
    assert writer.fault is not None
    assert "cannot be written" in writer.fault
    blocker.execute("alter table gone rename to calls")
    writer.record(row(2))
    writer.flush()
    assert writer.fault is None
    writer.close()
    blocker.close()
    assert {found["id"] for found in stored(root)} == {row(3).id, row(1).id, row(2).id}


def test_a_row_that_nobody_can_write_stops_the_calls_and_not_the_thread(root: Root) -> None:
    writer = Meter(root)
    try:
        writer.record(row(1, reported_model="\ud800"))
        writer.flush()
        assert writer.fault is not None
        writer.record(row(2))
        writer.flush()
        assert writer.fault is not None
    finally:
        writer.close()


def started(root: Root, **changes: Any) -> None:
    meter.start_session(
        root,
        {
            "id": "ses-00000001",
            "harness": "claude",
            "auth": "key",
            "destination": "demo",
            "backend": "namespaces",
            "label": "public",
            "ceiling": "internal",
            "handling": "internal",
            "domain": "dom-me",
            "workdir": "/w",
            "pid": 1,
            "started_at": "2026-11-01T00:00:00.000Z",
            **changes,
        },
    )


def test_a_session_is_kept_with_what_it_used(root: Root) -> None:
    started(root)
    recorded(root, row(1), row(2))
    [found] = reading.sessions(root)
    assert (found["state"], found["calls"], found["tokens"], found["metered"]) == ("running", 2, 36, True)
    meter.end_session(root, "ses-00000001", exit=4, ended_at="2026-11-01T00:01:00.000Z", reason="no handoff")
    meter.end_session(root, "ses-00000001", exit=0, ended_at="2026-11-01T00:02:00.000Z")
    [found] = reading.sessions(root, session="ses-00000001")
    assert (found["state"], found["exit"], found["reason"], found["ended_at"]) == ("ended", 4, "no handoff", "2026-11-01T00:01:00.000Z")


def test_a_sessions_label_only_rises(root: Root) -> None:
    started(root)
    for label, expected in (("internal", "internal"), ("public", "internal"), ("restricted", "restricted"), ("internal", "restricted")):
        meter.raise_label(root, "ses-00000001", label)
        assert reading.sessions(root)[0]["label"] == expected


def test_a_session_is_started_once_and_with_known_columns(root: Root) -> None:
    started(root)
    with pytest.raises((database.IntegrityError, sqlite3.IntegrityError)):
        started(root)
    with pytest.raises(ValueError, match="ended_at"):
        started(root, id="ses-00000002", ended_at="x")


@pytest.mark.parametrize(
    ("response_id", "expected"),
    [
        ("msg_01BE9", "msg_"),
        ("chatcmpl-abc", "chatcmpl-"),
        ("resp_0f", "resp_"),
        ("gen-17", "gen-"),
        ("2m7Vaca_HdfC1", "opaque13"),
        (None, None),
        ("", None),
        ("msg_", "opaque4"),
    ],
)
def test_the_class_of_an_answers_id(response_id: str | None, expected: str | None) -> None:
    assert response_id_class(response_id) == expected


def test_a_commit_without_waiting_leaves_the_connection_as_it_was(root: Root) -> None:
    connection = meter.connect(root.usage, durable=False)

    def waits() -> tuple[int, ...]:
        return tuple(connection.execute(f"pragma {name}").fetchone()[0] for name in ("synchronous", "wal_autocheckpoint"))

    before = waits()
    with pytest.raises(ValueError, match="not of a session"), meter.unsynced(connection):
        assert waits() == (0, 0)
        meter.enter_session(connection, {"id": "ses-aaaaaaaa", "odd": 1})
    assert waits() == before == (1, 1000)
    connection.close()

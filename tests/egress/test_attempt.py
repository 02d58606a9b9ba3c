"""The row of a call: whose leaving makes its figures a floor."""

import json
from pathlib import Path

import pytest

from amem.egress.access import Access
from amem.egress.attempt import Attempt
from amem.egress.flow import Call, Kind
from amem.egress.usage import UsageReader
from amem.model.call import Dialect
from amem.model.label import Label
from tests.egress.support import SESSION, Door, routes_to

CREATED = {"type": "response.created", "response": {"id": "resp_1", "model": "m-1", "status": "in_progress"}}
COMPLETED = {
    "type": "response.completed",
    "response": {
        "id": "resp_1",
        "model": "m-1",
        "status": "completed",
        "usage": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11},
    },
}


@pytest.mark.parametrize(("events", "floor"), [((CREATED, COMPLETED), False), ((CREATED,), True), ((), True)])
def test_a_harness_that_leaves_after_the_last_event_has_had_the_whole_answer(
    tmp_path: Path, events: tuple[object, ...], floor: bool
) -> None:
    routes = routes_to("http://127.0.0.1:1")
    access = Access(
        session=SESSION, principal="agent:codex", domain="dom-me", auth="key", routes=routes, credential=None,
        label=lambda: Label.PUBLIC, decide=Door().decide,
    )  # fmt: skip
    call = Call(kind=Kind.CALL, dialect=Dialect.RESPONSES, path="/v1/responses", query="", model="m-1", stream=True, body=None)
    attempt = Attempt("call-0123456789ab", "2026-11-30T07:25:57.123Z", 0.0, call, routes[Dialect.RESPONSES], status=200)
    attempt.reader = UsageReader(Dialect.RESPONSES, "text/event-stream", "")
    attempt.partial = True  # as the server sets it when the harness goes before the stream was closed
    for event in events:
        for _ in attempt.passed(f"data: {json.dumps(event)}\n\n".encode()):
            pass
    row = attempt.row(access, 1.0)
    assert (row.partial, row.input) == (floor, None if floor else 9)

import json

import pytest

from amem.egress import replies
from amem.model.call import Dialect

WHY = "the session's label internal is above the ceiling public of demo"


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        (Dialect.ANTHROPIC, {"type": "error", "error": {"type": "permission_error", "message": f"amem: {WHY}"}}),
        (
            Dialect.RESPONSES,
            {"error": {"message": f"amem: {WHY}", "type": "permission_error", "param": None, "code": "label_over_ceiling"}},
        ),
        (Dialect.CHAT, {"error": {"message": f"amem: {WHY}", "type": "permission_error", "param": None, "code": "label_over_ceiling"}}),
        (
            Dialect.GEMINI,
            {
                "error": {
                    "code": 403,
                    "message": f"amem: {WHY}",
                    "status": "PERMISSION_DENIED",
                    "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "LABEL_OVER_CEILING", "domain": "amem"}],
                }
            },
        ),
    ],
)
def test_a_refusal_is_the_permission_error_of_the_dialect(dialect: Dialect, expected: object) -> None:
    reply = replies.refusal(dialect, "label_over_ceiling", WHY)
    assert (reply.status, json.loads(reply.body)) == (403, expected)
    assert reply.headers == {"content-type": "application/json", "x-should-retry": "false"}


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500, 502, 503, 504])
def test_every_error_has_a_shape_in_every_dialect(dialect: Dialect, status: int) -> None:
    reply = replies.error(dialect, status, "some_code", "why")
    body = json.loads(reply.body)
    assert reply.status == status
    assert body["error"]["message"] == "amem: why"
    assert reply.headers["x-should-retry"] == ("true" if status >= 500 else "false")


@pytest.mark.parametrize("dialect", Dialect)
def test_busy_says_when_to_come_back(dialect: Dialect) -> None:
    reply = replies.busy(dialect, "too many", 7)
    assert (reply.status, reply.headers["retry-after"]) == (429, "7")

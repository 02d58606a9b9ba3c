"""Answers that the egress gives itself, in the shape of the caller's dialect.

Pure. A refusal is a permission error (403), because harnesses do not retry one (measured, 2026-11: Claude Code, Gemini CLI and
Qwen Code send a 403 once and a 401, 429 or 500 for minutes); the message says who refused and why.
"""

import json
from collections.abc import Callable, Mapping

from amem.model.call import Dialect
from amem.typed import Any, NamedTuple


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


_ANTHROPIC = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
    429: "rate_limit_error", 500: "api_error", 502: "api_error", 503: "api_error", 504: "timeout_error",
}  # fmt: skip
_OPENAI = {
    400: "invalid_request_error", 401: "invalid_request_error", 403: "permission_error", 404: "invalid_request_error",
    413: "invalid_request_error", 429: "rate_limit_error", 500: "server_error", 502: "server_error", 503: "server_error",
    504: "server_error",
}  # fmt: skip
_GOOGLE = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


def _anthropic(status: int, code: str, message: str) -> Any:
    return {"type": "error", "error": {"type": _ANTHROPIC[status], "message": message}}


def _openai(status: int, code: str, message: str) -> Any:
    return {"error": {"message": message, "type": _OPENAI[status], "param": None, "code": code}}


def _google(status: int, code: str, message: str) -> Any:
    detail = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code.upper(), "domain": "amem"}
    return {"error": {"code": status, "message": message, "status": _GOOGLE[status], "details": [detail]}}


_SHAPES: Mapping[Dialect, Callable[[int, str, str], Any]] = {
    Dialect.ANTHROPIC: _anthropic,
    Dialect.RESPONSES: _openai,
    Dialect.CHAT: _openai,
    Dialect.GEMINI: _google,
}


def error(dialect: Dialect, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    """An error answer. `status` is one of 400, 401, 403, 404, 413, 429, 500, 502, 503, 504."""
    body = json.dumps(_SHAPES[dialect](status, code, f"amem: {message}"), ensure_ascii=False).encode()
    # Both vendors' client libraries obey this header; what failed further out may well work the next time.
    retry = "true" if status >= 500 else "false"
    return Reply(status, body, {"content-type": "application/json", "x-should-retry": retry, **(headers or {})})


def refusal(dialect: Dialect, code: str, reason: str) -> Reply:
    """A refusal: 403 with the dialect's permission error. `code` is a reason's, `reason` its sentence."""
    return error(dialect, 403, code, reason)


def busy(dialect: Dialect, reason: str, retry_after_s: int) -> Reply:
    """Too many calls at once: 429, with when to come back."""
    return error(dialect, 429, "busy", reason, {"retry-after": str(retry_after_s), "x-should-retry": "true"})

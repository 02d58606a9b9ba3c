"""What comes back from a model call of amem's own: an answer, what a model said, or a failure of a known kind.

Pure. The row that the egress keeps of a call says what became of it; what an answer's text says of itself is somebody else's word.
"""

import json
import re
from collections.abc import Mapping
from enum import StrEnum

from amem.egress import weight
from amem.egress.meter import CallRow
from amem.egress.prompt import Stop
from amem.errors import UpstreamError
from amem.model.call import Usage
from amem.policy.reasons import visible
from amem.typed import Any, NamedTuple

OURS = "amem: "
"""How a sentence of the egress begins (`replies.error`)."""
_LONGEST_ERROR_BYTES = 1 << 18


class Why(StrEnum):
    """What went wrong with a call that was let out, or that could have been."""

    BUSY = "busy"
    """So many calls of amem's own are under way that this one did not leave (B11)."""
    LIMITED = "limited"
    """The provider has enough for now: 429."""
    FAILED = "failed"
    """The provider's fault: a status of 500 or above."""
    UNREACHABLE = "unreachable"
    CUT = "cut"
    SILENT = "silent"
    """Nothing came for so long that it was given up."""
    REJECTED = "rejected"
    """Our fault: the provider, or the egress, does not take the request."""
    UNREADABLE = "unreadable"
    """It answered, and not in its dialect."""
    RESTING = "resting"
    """It failed so often that it is left alone for a while."""
    LATE = "late"
    """It did not come within the time that the caller has."""


AGAIN = frozenset((Why.BUSY, Why.LIMITED, Why.FAILED, Why.UNREACHABLE, Why.CUT))
"""What may be better the next time. What was silent has taken its time already."""
REASONS = {
    "upstream_silent": Why.SILENT, "upstream_cut": Why.CUT, "upstream_failed": Why.UNREACHABLE, "upstream_inward": Why.REJECTED,
    "upstream_redirects": Why.REJECTED, "upstream_switches": Why.REJECTED, "cut": Why.CUT,
}  # fmt: skip
"""The codes of a row that say why there is no whole answer."""


class CallError(UpstreamError):
    """There is no answer to use; `why` says what kind of failure it was, `call` is its row."""

    def __init__(
        self,
        why: Why,
        message: str,
        *,
        destination: str,
        status: int | None = None,
        retry_after_s: float | None = None,
        call: str | None = None,
    ) -> None:
        facts: dict[str, Any] = {"status": status, "retry_after_s": retry_after_s, "call": call}
        super().__init__(
            message, destination=destination, reason=why.value, **{key: value for key, value in facts.items() if value is not None}
        )
        self.why = why
        self.status = status
        self.retry_after_s = retry_after_s
        self.call = call


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    row: CallRow | None = None
    """What is kept of the call; None for what has no row: a list, or a request that nobody could read."""

    def json(self) -> Any:
        """The body, decoded. Raises UpstreamError."""
        if weight.is_heavy(self.body):
            raise UpstreamError("the answer is not JSON of a size to be read")
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise UpstreamError("the answer is not JSON") from error


class Spoken(NamedTuple):
    """What a model said to a prompt, and what is known of the call."""

    text: str
    stop: Stop
    call: str
    """The id of its row, as a `ModelDecision` names it."""
    model: str
    """As it was asked for."""
    reported: str | None
    """As the answer names it."""
    usage: Usage | None
    """None where the answer did not say."""
    ms: int


def failed(answer: Answer, destination: str) -> CallError:
    """What an answer that is no good one means."""
    row, said = answer.row, message(answer.body)
    ours = said.startswith(OURS) and (row is None or row.refused is not None or row.unmetered_reason in REASONS)
    told = said.removeprefix(OURS) if ours else f"{destination} answered {answer.status}: {said}"
    call = row.id if row is not None else None
    again_s = _retry_after_s(answer.headers)
    return CallError(_why(answer), told, destination=destination, status=answer.status, retry_after_s=again_s, call=call)


def _why(answer: Answer) -> Why:
    row = answer.row
    if row is not None and row.refused is not None:
        return Why.BUSY  # any other refusal was raised as one
    if row is not None and (known := REASONS.get(row.unmetered_reason or "")) is not None:
        return known
    if answer.status == 429:
        return Why.BUSY if row is None else Why.LIMITED
    return Why.FAILED if answer.status >= 500 else Why.REJECTED


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer says to wait; None where it does not say, or says it as no number."""
    said = headers.get("retry-after", "").strip()
    return float(said) if re.fullmatch(r"\d{1,6}(?:\.\d{1,6})?", said, re.ASCII) else None


def message(body: bytes) -> str:
    """The message of an error answer in any dialect, short and inert."""
    try:
        found = json.loads(body) if len(body) <= _LONGEST_ERROR_BYTES else None
    except (ValueError, RecursionError):
        found = None
    error = found.get("error") if isinstance(found, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return visible(said[:1000]) if isinstance(said, str) else visible(body[:200].decode("utf-8", "replace"))

"""What a tool answers, and how it reaches a model: one JSON object in a text block; long text, fenced as data, in a second.

The outer edge of a tool call: whatever a tool raises becomes a refusal here, and is logged here, once.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from amem.errors import AmemError, UsageError
from amem.memory.outcomes import Gone, Held, NotFound, Refused
from amem.typed import Any

_log = logging.getLogger(__name__)

CODES = frozenset(["invalid", "not_found", "gone", "refused", "held", "over_label", "unavailable", "conflict", "stale_fence", "budget"])
"""What a refusal's `code` can be."""
_REASON_CODES = {"label_below_session": "over_label", "why_below_session": "over_label"}
"""Reasons of the policy that have a code of their own; every other one is `refused`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A tool's answer."""

    data: Mapping[str, Any]
    text: str | None = None
    """Long text, left out of `data`; what somebody wrote in it stands in a fence."""
    refused: bool = False


def blocks(reply: Reply) -> list[str]:
    """The text blocks of an answer."""
    first = json.dumps(reply.data, ensure_ascii=False, separators=(",", ":"))
    return [first] if reply.text is None else [first, reply.text]


def refusal(code: str, reason: str, hint: str | None = None, **facts: Any) -> Reply:
    """A refusal with one of `CODES`."""
    assert code in CODES, code
    data = {"code": code, "reason": reason, "hint": hint, **facts}
    return Reply(data={key: value for key, value in data.items() if value is not None}, refused=True)


def refused(outcome: Refused) -> Reply:
    """The reply to what was refused."""
    code = outcome.code if outcome.code in CODES else _REASON_CODES.get(outcome.code, "refused")
    return refusal(code, outcome.reason, outcome.hint, **{**outcome.facts, "decision": outcome.decision})


def held(outcome: Held) -> Reply:
    """The reply to a write that waits for the owner."""
    findings = [{"class": finding.cls, "excerpt": finding.excerpt} for finding in outcome.findings]
    hint = "the owner decides; do not write it again in other words"
    facts = {"held": outcome.id, "task": outcome.task, "findings": findings or None, "decision": outcome.decision}
    return refusal("held", outcome.reason, hint, **facts)


def missing(outcome: Gone | NotFound) -> Reply:
    """The reply about an entry that is not served."""
    match outcome:
        case Gone(id):
            return refusal("gone", f"{id} is no longer served, and nothing you may read replaces it", id=id)
        case NotFound(id):
            return refusal("not_found", f"there is no entry {id} for you", "search", id=id)


def answer(run: Callable[[], Reply]) -> Reply:
    """Run a tool; what it raises becomes a refusal."""
    try:
        return run()
    except UsageError as error:
        return refusal("invalid", error.message, error.hint)
    except AmemError as error:
        _log.warning("a tool failed: %s", error.message)
        return refusal("conflict" if error.code == "conflict" else "unavailable", error.message, error.hint)
    except Exception:
        _log.exception("a tool failed")
        return refusal("unavailable", "the memory server failed at this call; nothing was served")

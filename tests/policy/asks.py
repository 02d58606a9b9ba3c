"""Requests of the usual shape for these tests, each field changed by name."""

from typing import Any

from amem.model.label import Label
from amem.policy import request as ask
from amem.policy.request import Request

OWNER = "human:acme:ann"
DATA: dict[str, Any] = {
    "grants": {
        "owner": OWNER,
        "domains": {
            "dom-a": {
                "default": "internal",
                "principals": {
                    "agent:*": {"read": "public", "write": False},
                    "agent:codex": {"read": "internal", "write": True},
                    "agent:c*": {"read": "restricted", "write": False},
                },
            },
            "dom-b": {"default": "public", "admit_own": True, "principals": {}},
        },
        "destinations": {"anthropic": {"ceiling": "internal"}, "open": {"ceiling": "restricted"}, "shut": {"ceiling": None}},
        "gates": {"max_supersedes_per_session": 20},
    }
}


def who(**changed: Any) -> dict[str, Any]:
    return {"principal": "agent:codex", "domain": "dom-a", "session": "ses-0123abcd", "task": None} | changed


def call(**changed: Any) -> Request:
    usual = {
        "label": Label.PUBLIC,
        "destination": "anthropic",
        "ceiling": Label.INTERNAL,
        "dialect": "anthropic",
        "model": "m-1",
        "billing": "metered",
    }
    return ask.model_call(**(who() | usual | changed))


def read(**changed: Any) -> Request:
    return ask.read(**(who() | {"handling": Label.RESTRICTED} | changed))


def write(**changed: Any) -> Request:
    usual = {
        "owner": OWNER,
        "type": "fact",
        "classification": Label.INTERNAL,
        "label": Label.PUBLIC,
        "supersedes": (),
        "findings": (),
        "superseded_so_far": 0,
        "max_supersedes": 20,
    }
    return ask.write(**(who() | usual | changed))


def entry(**changed: Any) -> dict[str, Any]:
    return {"id": "mem-a-0123456789ab", "tier": "raw", "author": "agent:codex", "domain": "dom-a"} | changed

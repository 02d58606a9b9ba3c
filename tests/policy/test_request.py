import json
from typing import Any

import pytest

from amem.model.label import Label

from .asks import call, entry, read, write


def test_a_request_holds_plain_values_only() -> None:
    asked = write(supersedes=[entry()], findings=["secret", "hidden", "secret"], task="task-a-0123abcd")
    assert asked.action == "write"
    assert json.loads(json.dumps(dict(asked.input))) == {
        "principal": "agent:codex",
        "owner": "human:acme:ann",
        "domain": "dom-a",
        "session": "ses-0123abcd",
        "task": "task-a-0123abcd",
        "type": "fact",
        "classification": "internal",
        "label": "public",
        "supersedes": [{"id": "mem-a-0123456789ab", "tier": "raw", "author": "agent:codex", "domain": "dom-a"}],
        "findings": ["hidden", "secret"],
        "superseded_so_far": 0,
        "max_supersedes": 20,
    }
    assert all(type(value) in (str, int, tuple, type(None)) for value in asked.input.values())


def test_a_request_cannot_be_changed_after_it_was_checked() -> None:
    with pytest.raises(TypeError):
        read().input["domain"] = "dom-b"  # type: ignore[index]


@pytest.mark.parametrize(
    ("ask", "changed"),
    [
        (call, {"principal": "agent:codex\n"}),
        (call, {"principal": "codex"}),
        (call, {"principal": None}),
        (call, {"domain": "../dom-a"}),
        (call, {"session": "ses-"}),
        (call, {"session": ""}),
        (call, {"task": "task"}),
        (call, {"label": "secret"}),
        (call, {"label": None}),
        (call, {"label": 0}),
        (call, {"ceiling": "high"}),
        (call, {"destination": ""}),
        (call, {"destination": "a/b"}),
        (call, {"dialect": "soap"}),
        (call, {"model": "m\x1b[2J"}),
        (call, {"model": "m" * 300}),
        (call, {"model": None}),
        (call, {"billing": "free"}),
        (call, {"role": "decider"}),
        (read, {"handling": None}),
        (read, {"domain": None}),
        (write, {"owner": ""}),
        (write, {"type": "note"}),
        (write, {"classification": ""}),
        (write, {"findings": ["other"]}),
        (write, {"findings": [None]}),
        (write, {"superseded_so_far": -1}),
        (write, {"superseded_so_far": True}),
        (write, {"superseded_so_far": 1.0}),
        (write, {"max_supersedes": None}),
        (write, {"supersedes": [{"id": "mem-a-0123456789ab"}]}),
        (write, {"supersedes": [entry() | {"extra": 1}]}),
        (write, {"supersedes": [entry(tier="gold")]}),
        (write, {"supersedes": [entry(id="mem-a-../../x")]}),
        (write, {"supersedes": [entry(author=None)]}),
        (write, {"supersedes": [entry()] * 1001}),
    ],
)
def test_another_shape_is_refused_before_anything_is_asked(ask: Any, changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        ask(**changed)


def test_a_route_without_a_ceiling_can_be_asked_about() -> None:
    assert call(ceiling=None).input["ceiling"] is None
    assert call(label=Label.RESTRICTED).input["label"] == "restricted"

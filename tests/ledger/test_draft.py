"""What may be filed, and the sentence for what may not."""

from typing import Any

import pytest

from amem.errors import UsageError
from amem.ledger.draft import MAX_BODY_BYTES, Draft


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"title": ""}, "needs a title"),
        ({"title": "  "}, "needs a title"),
        ({"title": "a" * 201}, "201 characters, at most 200"),
        ({"title": "a\x1b[31mb"}, r"control character U\+001B at position 2"),
        ({"title": "two\nlines"}, r"U\+000A"),
        ({"title": "right\u202eleft"}, r"U\+202E"),
        ({"body": "x" * (1 << 20)}, f"1048576 bytes, at most {MAX_BODY_BYTES}"),
        ({"body": "é" * (MAX_BODY_BYTES // 2 + 1)}, "bytes, at most"),
        ({"body": "a\0b"}, "NUL"),
        ({"body": "\ud800"}, "surrogate"),
        ({"priority": 10}, "expected 0 to 9"),
        ({"priority": -1}, "expected 0 to 9"),
        ({"requires": ("Code",)}, "lower-case"),
        ({"requires": ("a b",)}, "lower-case"),
        ({"requires": tuple(f"r{i}" for i in range(17))}, "at most 16"),
        ({"depends_on": tuple(f"task-me-{i:08d}" for i in range(101))}, "at most 100"),
        ({"depends_on": ("task-me-short",)}, "not a task's id"),
        ({"depends_on": ("task-you-00000000",)}, "another domain"),
        ({"check": (" ",)}, "empty command"),
        ({"budget_tokens": 0}, "at least 1"),
        ({"origin": "nonsense"}, "<kind>:<what>"),
        ({"origin": "tap:a\nb"}, "<kind>:<what>"),
        ({"domain": "../me"}, "not a domain"),
    ],
)
def test_what_cannot_be_filed_is_refused_in_a_sentence(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Draft(**{"domain": "dom-me", "title": "T", **keys})


def test_requirements_are_sorted_and_dependencies_kept_in_order_once_each() -> None:
    draft = Draft(
        domain="dom-me", title="Überprüfe 日本語 🙂", requires=("human", "code", "human"),
        depends_on=("task-me-bbbbbbbb", "task-me-aaaaaaaa", "task-me-bbbbbbbb"), body="x" * MAX_BODY_BYTES,
    )  # fmt: skip
    assert draft.requires == ("code", "human")
    assert draft.depends_on == ("task-me-bbbbbbbb", "task-me-aaaaaaaa")

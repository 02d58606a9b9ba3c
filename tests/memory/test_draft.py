from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.errors import UsageError
from amem.memory.draft import BODY_LIMIT_BYTES, SUMMARY_LIMIT, Draft, draft, first_sentence, shorten
from amem.model.entry import EntryType
from amem.model.label import Label

ID = "mem-me-0123456789ab"


def made(**changes: Any) -> Draft:
    return draft(**{"type": "fact", "title": "A title", "body": "A body.", **changes})


def test_draft_is_the_checked_value() -> None:
    found = made(
        type="decision", title="  Use tabs ", body="# Why\n\nTabs won. Spaces lost.", classification="public", supersedes=[ID, ID],
        sources=[f"{ID}@2", "file:docs/a b.md", "transcript:ses-0123456z#1-3", "source:src-0123456z", "context:ses-0123456z#4"],
        review_by="2027-01-31", basis="observed", valid_from="2026-01-01", valid_to="2026-02-01T00:00:00+01:00",
    )  # fmt: skip
    assert found == Draft(
        type=EntryType.DECISION, title="Use tabs", body="# Why\n\nTabs won. Spaces lost.", summary="Tabs won.",
        classification=Label.PUBLIC, supersedes=(ID,),
        sources=(f"{ID}@2", "file:docs/a b.md", "transcript:ses-0123456z#1-3", "source:src-0123456z", "context:ses-0123456z#4"),
        review_by="2027-01-31", basis="observed", valid_from_at="2026-01-01T00:00:00.000Z", valid_to_at="2026-01-31T23:00:00.000Z",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"type": "tale"}, "type: expected fact"),
        ({"title": "  "}, "title: is empty"),
        ({"title": "a\nb"}, "title: one line"),
        ({"title": "a\x1b[31mb"}, "title: one line"),
        ({"title": "a\u2028b"}, "title: one line"),
        ({"title": "t" * 201}, "title: 201 characters"),
        ({"title": "\ud800"}, "title: holds half"),
        ({"summary": "s" * (SUMMARY_LIMIT + 1)}, "summary: 501 characters"),
        ({"body": " \n "}, "body: is empty"),
        ({"body": "a\0b"}, "body: holds a NUL"),
        ({"body": "\udfff"}, "body: holds half"),
        ({"body": "é" * (BODY_LIMIT_BYTES // 2 + 1)}, "body: 524290 bytes"),
        ({"classification": "secret"}, "classification: expected public"),
        ({"supersedes": ["mem-me-../../x"]}, "supersedes: expected an entry's id"),
        ({"supersedes": [f"mem-me-{n:012d}" for n in range(101)]}, "supersedes: 101 given"),
        ({"sources": ["https://example.org"]}, "sources: expected mem-"),
        ({"sources": ["mem-me-0123456789ab#1"]}, "sources: expected mem-"),
        ({"sources": ["file:a\nb"]}, "sources: expected mem-"),
        ({"review_by": "soon"}, "review_by: expected a date"),
        ({"owner": "bob"}, "owner: expected human:"),
        ({"type": "convention"}, "owner: a convention names its owner"),
        ({"basis": "guessed"}, "basis: expected one of stated"),
        ({"valid_from": "then"}, "valid_from: expected a date"),
        ({"valid_from": "2026-02-01", "valid_to": "2026-01-01"}, "valid_to: is before"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(**changes)
    assert told in caught.value.message


@pytest.mark.parametrize(
    ("body", "summary"),
    [
        ("One. Two.", "One."),
        ("# Heading\n\nText under it goes on\nover lines. More.", "Text under it goes on over lines."),
        ("- item one\n- item two", "item one item two"),
        ("```\ncode()\n```\n", "code()"),
        ("# Only a heading", ""),
        ("No end " * 60, ("No end " * 34).rstrip() + "…"),
    ],
)
def test_summary_is_the_first_sentence(body: str, summary: str) -> None:
    assert first_sentence(body) == summary


@given(st.text(), st.text(), st.text())
def test_a_draft_is_right_or_refused(title: str, body: str, source: str) -> None:
    try:
        found = made(title=title, body=body, sources=[source] if source else [])
    except UsageError:
        return
    assert found.body == body
    assert found.title == title.strip()
    assert found.title.isprintable() or not any(ord(character) < 32 for character in found.title)
    assert 0 < len(found.summary) <= SUMMARY_LIMIT
    assert "\n" not in found.summary + found.title


@given(st.text(), st.integers(4, 400))
def test_shorten_keeps_to_its_limit(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= limit
    assert shorten(text, limit) == text or shorten(text, limit).endswith("…")

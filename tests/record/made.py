"""Entries for the tests of the record, each field as valid as can be."""

from typing import Any

from hypothesis import settings

from amem.model.entry import Entry, EntryType, Status, Tier
from amem.model.ids import draw
from amem.model.label import Label
from amem.record.rows import Filter

QUICK = settings(max_examples=60)
"""A deadline would be a timing assertion."""
EVERYTHING = Filter(max_label=Label.RESTRICTED)


def entry(title: str = "A title", body: str = "A body.\n", *, domain: str = "dom-me", **fields: Any) -> Entry:
    values: dict[str, Any] = {
        "id": draw("entry", domain),
        "version": 1,
        "type": EntryType.FACT,
        "title": title,
        "summary": "",
        "domain": domain,
        "classification": Label.INTERNAL,
        "tier": Tier.CURATED,
        "status": Status.ACTIVE,
        "author": "human:asf:you",
        "written_at": "2026-11-30T07:25:57.123Z",
        "body": body,
    }
    return Entry(**{**values, **fields})

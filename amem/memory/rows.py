"""Entries and hits as the JSON that commands and tools share: snake_case keys, absent rather than null. Pure."""

from amem.record.rows import Hit, Row
from amem.typed import Any

_ENTRY_KEYS = (
    "id", "version", "type", "title", "summary", "domain", "classification", "tier", "status", "author", "session", "task", "left_by",
    "written_at", "review_by", "due", "owner", "sources", "supersedes", "superseded_by", "lineage", "basis", "valid_from_at", "valid_to_at",
    "tokens",
)  # fmt: skip
_SUMMARY_KEYS = ("id", "type", "title", "summary", "domain", "classification", "tier", "lineage", "due", "tokens")
_HIT_KEYS = (*_SUMMARY_KEYS[:-1], "score", "tokens")


def entry(row: Row) -> dict[str, Any]:
    """The Entry shape, without its body."""
    return _present(row, _ENTRY_KEYS)


def hit(found: Hit) -> dict[str, Any]:
    """The Hit shape."""
    return _present(found, _HIT_KEYS)


def summary(row: Row) -> dict[str, Any]:
    """The Hit shape of an entry that nobody searched for, so that it has no score."""
    return _present(row, _SUMMARY_KEYS)


def _present(value: object, keys: tuple[str, ...]) -> dict[str, Any]:
    pairs = ((key, getattr(value, key)) for key in keys)
    return {key: found for key, found in pairs if found is not None and found != () and found is not False}

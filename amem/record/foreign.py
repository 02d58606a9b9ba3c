"""Read front matter that amem did not write: any YAML a person's editor leaves.

Values are read as JSON would read them (`true`, `12`, `1.5`, `null`), and everything else stays the text that was
written: `no`, `12:30:00`, `2026-11-30` and `1_000` are strings. It builds plain values from parser events, so no tag can make
an object; aliases, anchors, tags and duplicate keys are refused, and depth is bounded. Imported late: PyYAML is slow to import.
"""

import re
from collections.abc import Iterator

import yaml

from amem.record.markdown import Malformed, finite
from amem.typed import Any

_MAX_DEPTH = 16
_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,4000})")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "": None, "~": None}
_TEXT_KEYS = frozenset(("title", "summary", "author", "owner", "basis", "review_by", "written_at", "valid_from_at", "valid_to_at"))
"""Keys whose value is text whatever it looks like: an unquoted `title: 2026` is a title."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(front: str) -> dict[str, Any]:
    """Read the text between the fences. Raises Malformed."""
    try:
        events = iter(yaml.parse(front, Loader=_LOADER))
        next(events), next(events)  # the start of the stream and of the document
        found = _value(next(events), events, depth=0, top=True)
        if not isinstance(found, dict):
            raise Malformed("the front matter is no mapping")
        next(events)
        if not isinstance(next(events), yaml.StreamEndEvent):
            raise Malformed("the front matter is more than one document")
        return found
    except (yaml.YAMLError, StopIteration, ValueError, UnicodeError) as error:
        problem = getattr(error, "problem", None) or str(error) or "it ends too early"
        raise Malformed(f"the front matter is not YAML: {problem}") from error


def _value(event: Any, events: Iterator[Any], *, depth: int, top: bool = False) -> Any:
    if depth > _MAX_DEPTH:
        raise Malformed(f"front matter nested deeper than {_MAX_DEPTH}")
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise Malformed("front matter with an anchor or an alias")
    if getattr(event, "tag", None):
        raise Malformed(f"front matter with a tag: {event.tag[:40]}")
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(_value(event, events, depth=depth + 1))
        return items
    if isinstance(event, yaml.MappingStartEvent):
        return _mapping(events, depth, top)
    raise Malformed("the front matter is empty")


def _mapping(events: Iterator[Any], depth: int, top: bool) -> dict[str, Any]:
    made: dict[str, Any] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        if not isinstance(event, yaml.ScalarEvent) or event.anchor or event.tag:
            raise Malformed("a key of the front matter is no plain text")
        key = event.value
        if key in made:
            raise Malformed(f"{key[:80]}: comes twice")
        event = next(events)
        text = top and key in _TEXT_KEYS and isinstance(event, yaml.ScalarEvent) and not event.anchor and not event.tag
        made[key] = event.value if text and event.value not in ("", "~", "null") else _value(event, events, depth=depth + 1)
    return made


def _scalar(event: Any) -> Any:
    text: str = event.value
    text.encode()  # half a surrogate pair, written as an escape, is no text
    if event.style:  # quoted or a block: what it looks like means nothing
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    return finite(text) if _FLOAT.fullmatch(text) else text

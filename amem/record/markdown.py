"""An entry as the bytes of its Markdown file, and back. Pure.

The file is YAML front matter between `---` lines, then the body, byte for byte. amem writes every value as JSON (a subset of
YAML), one key a line, in the order of `KEYS`, so that its own files are read by the JSON scanner in a few
microseconds; whatever a person's editor made of a file goes through `amem.record.foreign`. Both readers refuse duplicate
keys, and both end in the same checks. What cannot be read whole is `Malformed`: reported and kept, never half-read.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar, cast

from amem.errors import IntegrityError
from amem.model import clock
from amem.model.entry import Entry, EntryType, Status, Tier
from amem.model.ids import domain_of, is_id
from amem.model.label import Label

KEYS = (
    "id", "version", "type", "title", "summary", "domain", "classification", "tier", "status", "author", "session", "task", "left_by",
    "owner", "written_at", "review_by", "sources", "supersedes", "superseded_by", "basis", "valid_from_at", "valid_to_at", "lineage",
)  # fmt: skip
"""Every key that means something, in the order it is written. Another one is kept in `Entry.extra`."""
_KNOWN = frozenset(KEYS)
MAX_FRONT_MATTER_BYTES = 64 << 10
BASES = ("stated", "observed", "inferred")
LEFT_BY = ("agent", "hook", "launcher")

W = TypeVar("W", bound=StrEnum)


class Malformed(IntegrityError):
    """A file of the record that is no entry; `why` says what is wrong with it."""

    code = "malformed"

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Parts(NamedTuple):
    """A file cut in two: the text between the fences and the body."""

    front: str
    body: str


def format(entry: Entry) -> bytes:
    """Write an entry as its file. Raises Malformed for what could not be read back: a text that is not Unicode, an extra key that means
    something else, front matter above its bound.
    """
    lines = ["---"]
    lines += [f"{key}: {_json(value)}" for key in KEYS if (value := getattr(entry, key)) is not None and value != ()]
    for key, value in entry.extra.items():
        if key in _KNOWN:
            raise Malformed(f"extra key {key!r} has a meaning of its own")
        lines.append(f"{key if _PLAIN_KEY.fullmatch(key) else _json(key)}: {_json(value)}")
    lines.append("---\n")
    if sum(map(len, lines[1:-1])) + len(lines) - 3 > MAX_FRONT_MATTER_BYTES:
        raise Malformed(f"front matter longer than {MAX_FRONT_MATTER_BYTES} characters")
    try:
        return "\n".join(lines).encode() + entry.body.encode()
    except UnicodeEncodeError as error:
        raise Malformed(f"not Unicode text: {error.reason}") from error


def fixed(entry: Entry) -> str:
    """`sha256:…` of all of an entry that only an erasure may change: not its version, tier, status, successor and label."""
    same = replace(entry, version=1, tier=Tier.RAW, status=Status.ACTIVE, superseded_by=None, classification=Label.PUBLIC)
    return "sha256:" + hashlib.sha256(format(same)).hexdigest()


def parse(data: bytes) -> Entry:
    """Read an entry's file. Raises Malformed."""
    parts = split(data)
    values = own_form(parts.front)
    if values is None:
        from amem.record.foreign import load  # a person's YAML: rare, and its library is slow to import

        values = load(parts.front)
    return _entry(values, parts.body)


def split(data: bytes) -> Parts:
    """Cut a file at its two fences. Raises Malformed."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8 at byte {error.start}") from error
    opening = _FENCE.match(text, 1 if text.startswith("\ufeff") else 0)  # an editor's byte order mark is no content
    if opening is None:
        raise Malformed("does not begin with ---")
    closing = _CLOSING.search(text, opening.end() - 1)
    if closing is None:
        raise Malformed("the front matter is not closed with ---")
    if closing.start() - opening.end() > MAX_FRONT_MATTER_BYTES:
        raise Malformed(f"front matter longer than {MAX_FRONT_MATTER_BYTES} characters")
    return Parts(text[opening.end() : closing.start() + 1], text[closing.end() :])


def own_form(front: str) -> dict[str, Any] | None:
    """Read `key: JSON` lines, or return None when a line is not of that form or a key comes twice."""
    values: dict[str, Any] = {}
    at, end = 0, len(front)
    try:
        while at < end:
            colon = front.index(": ", at)
            key = front[at:colon]
            if key not in _KNOWN and not _PLAIN_KEY.fullmatch(key):
                key, stop = _SCAN(front, at)
                if not isinstance(key, str) or front[stop : stop + 2] != ": ":
                    return None
                colon = stop
            if key in values:
                return None
            values[key], stop = _SCAN(front, colon + 2)
            if front[stop : stop + 1] != "\n":
                return None
            at = stop + 1
        if "\\u" in front:
            json.dumps(values, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, StopIteration, RecursionError):
        return None
    return values


def _entry(values: Mapping[str, Any], body: str) -> Entry:
    """Check every value and make the entry. Raises Malformed that names the key."""
    try:
        entry_id = _text(values, "id")
        domain = _text(values, "domain")
        if not is_id("entry", entry_id):
            raise Malformed(f"id: {entry_id[:80]!r} is no entry id")
        if domain != domain_of(entry_id):
            raise Malformed(f"domain: {domain[:80]!r} is not the one in {entry_id}")
        return Entry(
            id=entry_id,
            version=_version(values["version"]),
            type=_word(EntryType, values, "type"),
            title=_text(values, "title"),
            summary=_text(values, "summary") if "summary" in values else "",
            domain=domain,
            classification=_word(Label, values, "classification"),
            tier=_word(Tier, values, "tier"),
            status=_word(Status, values, "status"),
            author=_text(values, "author"),
            written_at=_instant("written_at", _text(values, "written_at")),
            body=body,
            session=_maybe_id(values, "session"),
            task=_maybe_id(values, "task"),
            left_by=_one_of(values, "left_by", LEFT_BY),
            owner=_maybe(values, "owner"),
            review_by=_date(values, "review_by"),
            sources=_texts(values, "sources"),
            supersedes=_ids(values, "supersedes"),
            superseded_by=_maybe_id(values, "superseded_by", "entry"),
            basis=_one_of(values, "basis", BASES),
            valid_from_at=_maybe_instant(values, "valid_from_at"),
            valid_to_at=_maybe_instant(values, "valid_to_at"),
            lineage=_word(Tier, values, "lineage") if values.get("lineage") is not None else None,
            extra={key: value for key, value in values.items() if key not in _KNOWN},
        )
    except KeyError as error:
        raise Malformed(f"{error.args[0]}: missing") from error


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values[key]
    if not isinstance(value, str):
        raise Malformed(f"{key}: expected text")
    return value


def _maybe(values: Mapping[str, Any], key: str) -> str | None:
    return None if values.get(key) is None else _text(values, key)


def _maybe_id(values: Mapping[str, Any], key: str, kind: str | None = None) -> str | None:
    value = _maybe(values, key)
    if value is not None and not is_id(kind or key, value):
        raise Malformed(f"{key}: {value[:80]!r} is no {kind or key} id")
    return value


def _texts(values: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = values.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Malformed(f"{key}: expected a list of texts")
    return tuple(value)


def _ids(values: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = _texts(values, key)
    for item in found:
        if not is_id("entry", item):
            raise Malformed(f"{key}: {item[:80]!r} is no entry id")
    return found


def _version(value: Any) -> int:
    # bool is an int to Python, and no version to anybody
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 1 << 31:
        raise Malformed("version: expected a whole number from 1")
    return value


def _word(kind: type[W], values: Mapping[str, Any], key: str) -> W:
    word = _WORDS[kind].get(text := _text(values, key))
    if word is None:
        raise Malformed(f"{key}: expected {', '.join(kind)}, found {text[:80]!r}")
    return cast(W, word)


def _one_of(values: Mapping[str, Any], key: str, words: tuple[str, ...]) -> str | None:
    text = _maybe(values, key)
    if text is not None and text not in words:
        raise Malformed(f"{key}: expected {', '.join(words)}, found {text[:80]!r}")
    return text


def _instant(key: str, text: str) -> str:
    if _STAMP.fullmatch(text):
        return text
    try:
        return clock.stamp(clock.parse(text))
    except (ValueError, OverflowError):
        raise Malformed(f"{key}: {text[:80]!r} is no instant") from None


def _maybe_instant(values: Mapping[str, Any], key: str) -> str | None:
    text = _maybe(values, key)
    return None if text is None else _instant(key, text)


def _date(values: Mapping[str, Any], key: str) -> str | None:
    text = _maybe(values, key)
    if text is None:
        return None
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise Malformed(f"{key}: {text[:80]!r} is no date") from None


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs. Raises ValueError when a key comes twice."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key comes twice")
    return made


def finite(text: str) -> float:
    """Read a number. Raises ValueError for one that no float holds."""
    value = float(text)
    if value - value != 0:
        raise ValueError(f"{text} is no finite number")
    return value


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Malformed(f"cannot be written as JSON: {error}") from error
    # YAML ends a line at these, or refuses them; JSON lets them stand.
    return text if text.isascii() and "\x7f" not in text else _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_WORDS: dict[type[StrEnum], dict[str, StrEnum]] = {kind: {word.value: word for word in kind} for kind in (EntryType, Label, Tier, Status)}
_FENCE = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"\n---[ \t]*(?:\r?\n|\Z)")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_STAMP = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z", re.ASCII)
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SCAN: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(
    object_pairs_hook=unique, parse_float=finite, parse_constant=_refuse
).scan_once  # type: ignore[attr-defined]

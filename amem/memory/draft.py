"""A write as it was asked for, checked once. A `Draft` cannot be wrong; what is wrong with one is a UsageError.

Pure. Shared by the tools and the command line, so that both refuse the same things in the same words.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from amem.errors import UsageError
from amem.model import clock, principal
from amem.model.entry import EntryType
from amem.model.ids import is_id
from amem.model.label import Label
from amem.typed import TypeVar

TITLE_LIMIT = 200
SUMMARY_LIMIT = 500
BODY_LIMIT_BYTES = 512 << 10
LIST_LIMIT = 100
BASES = ("stated", "observed", "inferred")

CITATION = re.compile(
    r"(?P<entry>mem-[a-z0-9-]{14,60})(?:@[1-9][0-9]{0,8})?"
    r"|transcript:ses-[0-9a-z]{8}#[1-9][0-9]{0,8}(?:-[1-9][0-9]{0,8})?"
    r"|context:ses-[0-9a-z]{8}#[1-9][0-9]{0,8}"
    r"|source:src-[0-9a-z]{8}"
    r"|task-[a-z0-9-]{9,60}"
    r"|file:[^\x00-\x1f\x7f]{1,300}"
)
_FORMS = "mem-…, mem-…@<version>, transcript:<session>#<turn>, context:<session>#<n>, source:<id>, task-… or file:<path>"
_LINE_BREAKERS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
_BODY_CONTROLS = re.compile(r"\x00")
_SENTENCE = re.compile(r"(.+?[.!?…。])(?:\s|$)", re.DOTALL)

W = TypeVar("W", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry as its writer gave it. Make one with `draft`."""

    type: EntryType
    title: str
    body: str
    summary: str
    classification: Label | None = None
    """None: the domain's default, and never below the session's label."""
    supersedes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    review_by: str | None = None
    owner: str | None = None
    basis: str | None = None
    valid_from_at: str | None = None
    valid_to_at: str | None = None


def draft(
    *,
    type: str,
    title: str,
    body: str,
    summary: str | None = None,
    classification: str | None = None,
    supersedes: Iterable[str] = (),
    sources: Iterable[str] = (),
    review_by: str | None = None,
    owner: str | None = None,
    basis: str | None = None,
    valid_from: str | None = None,
    valid_to: str | None = None,
) -> Draft:
    """Check a write. Raises UsageError that names the argument."""
    kind = word("type", type, EntryType)
    text = _body(body)
    name = line("title", title, TITLE_LIMIT)
    if owner is not None and not principal.is_principal(owner):
        raise UsageError(f"owner: expected human:<org>:<name> or another principal, found {owner!r}")
    if kind is EntryType.CONVENTION and owner is None:
        raise UsageError("owner: a convention names its owner, as human:<org>:<name>")
    if basis is not None and basis not in BASES:
        raise UsageError(f"basis: expected one of {', '.join(BASES)}, found {basis!r}")
    starts, ends = _instant("valid_from", valid_from), _instant("valid_to", valid_to)
    if starts and ends and ends < starts:
        raise UsageError("valid_to: is before valid_from")
    return Draft(
        type=kind,
        title=name,
        body=text,
        summary=line("summary", summary, SUMMARY_LIMIT) if summary else first_sentence(text) or name,
        classification=None if classification is None else word("classification", classification, Label),
        supersedes=_list("supersedes", supersedes, lambda id: is_id("entry", id), "an entry's id, mem-…"),
        sources=citations("sources", sources),
        review_by=_date("review_by", review_by),
        owner=owner,
        basis=basis,
        valid_from_at=starts,
        valid_to_at=ends,
    )


def line(name: str, text: str, limit: int) -> str:
    """One line of text without control characters. Raises UsageError."""
    found = text.strip()
    if not found:
        raise UsageError(f"{name}: is empty")
    if len(found) > limit:
        raise UsageError(f"{name}: {len(found)} characters; {limit} is the most")
    if _LINE_BREAKERS.search(found):
        raise UsageError(f"{name}: one line without control characters is expected")
    _encodable(name, found)
    return found


def word(name: str, text: str, words: type[W]) -> W:
    """A word of a closed set. Raises UsageError that names them all."""
    try:
        return words(text)
    except ValueError:
        raise UsageError(f"{name}: expected {', '.join(words)}, found {text!r}") from None


def citations(name: str, refs: Iterable[str]) -> tuple[str, ...]:
    """References to what a text rests on, each in a form amem can follow. Raises UsageError."""
    return _list(name, refs, _is_citation, _FORMS)


def first_sentence(body: str) -> str:
    """The first sentence of a body's first paragraph, as a summary: headings and markup left out, cut at a word."""
    for paragraph in re.split(r"\n\s*\n", body[: 8 * SUMMARY_LIMIT]):
        lines = [part.strip().lstrip("#>*-+ ").strip() for part in paragraph.splitlines() if not part.lstrip().startswith(("```", "~~~"))]
        text = _LINE_BREAKERS.sub(" ", " ".join(filter(None, lines)))
        if text and not (paragraph.lstrip().startswith("#") and "\n" not in paragraph.strip()):
            match = _SENTENCE.match(text)
            return shorten(match[1] if match else text, 240)
    return ""


def shorten(text: str, limit: int) -> str:
    """`text` in at most `limit` characters, cut at a word where one ends near."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip(" ,;:") + "…"


def _is_citation(text: str) -> bool:
    match = CITATION.fullmatch(text)
    if match is None:
        return False
    entry = match["entry"]
    return entry is None or is_id("entry", entry)


def _body(text: str) -> str:
    size = len(_encodable("body", text))
    if not text.strip():
        raise UsageError("body: is empty")
    if size > BODY_LIMIT_BYTES:
        raise UsageError(f"body: {size} bytes; {BODY_LIMIT_BYTES} is the most", hint="split it into several entries")
    if _BODY_CONTROLS.search(text):
        raise UsageError("body: holds a NUL character")
    return text


def _encodable(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name}: holds half of a surrogate pair, which is no text") from None


def _list(name: str, values: Iterable[str], holds: Callable[[str], bool], form: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(values))
    if len(found) > LIST_LIMIT:
        raise UsageError(f"{name}: {len(found)} given; {LIST_LIMIT} is the most")
    for value in found:
        if not holds(value):
            raise UsageError(f"{name}: expected {form}, found {shorten(value, 80)!r}")
    return found


def _date(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"{name}: expected a date, YYYY-MM-DD, found {shorten(text, 40)!r}") from None


def _instant(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return clock.stamp(clock.parse(text))
    except (ValueError, OverflowError):
        raise UsageError(f"{name}: expected a date or an RFC 3339 instant, found {shorten(text, 40)!r}") from None

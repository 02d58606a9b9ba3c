"""Scan a text for what must not go into shared memory unseen.

Owns nothing but the order of the looks. It says what it found and never decides: the policy holds a write with findings. It
never raises for what a text is, takes time in proportion to the text's length, and stops when it has
found enough, so that a text cannot flood its reader. Pure.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from amem.policy import scan_codes, scan_phrases, scan_secrets
from amem.policy.reasons import visible
from amem.policy.scan_codes import Cut, cut, run_together, stretches
from amem.policy.scan_needles import Needles
from amem.policy.scan_phrases import phrases
from amem.policy.scan_secrets import SHOWN, secrets
from amem.policy.scan_text import hidden, mended, odd_characters, plain, unleet
from amem.policy.scan_words import FOREIGN_SCRIPT, LEET, PLAIN, foreign, hits, sentences, span, word_starts

EXCERPT_LENGTH = 160
DEPTH_LIMIT = 3
"""Encodings within encodings that are followed."""
ENOUGH = 16
"""With so many findings a text is not looked at any further: what would be found tells its reader nothing new."""


class Finding(NamedTuple):
    """Something found: its class, what it reads like (visible, short, never a whole credential), and where it starts."""

    cls: str
    """`instruction`, `broadcast`, `tool_syntax`, `hidden`, `payload`, `secret`, or `quotes`: an attack that the text quotes."""
    excerpt: str
    start: int
    """Characters from the start of the text; of an encoded stretch, where that starts."""


def scan(text: str) -> tuple[Finding, ...]:
    """What was found, in the order of the text; empty when there is nothing. Linear in the text's length."""
    found = sorted(set(islice(_find(text), ENOUGH)), key=lambda finding: (finding.start, finding.cls))
    return tuple(found)


def _find(text: str) -> Iterator[Finding]:
    whole = _cut(text)
    for found in hidden(text, whole.odd):
        yield _finding("hidden", text, found.start, found.start + found.length)
    for name, start, end in secrets(text, whole.low, whole.long_words, whole.there):
        yield Finding("secret", f"{name}: {visible(text[start : start + SHOWN])}… ({end - start} characters)", start)
    yield from _spoken(whole)
    if (whole_words := mended(whole.low)) is not None:
        for said in _spoken(_cut(whole_words)):
            yield Finding(said.cls, said.excerpt, 0)
    budget = 2 * len(text) + 4096
    waiting = [(0, stretches(whole, outermost=True), 1)]
    while waiting:
        origin, source, depth = waiting[-1]
        if (stretch := next(source, None)) is None:
            waiting.pop()
            continue
        start = origin or stretch.start
        if stretch.length:
            yield _finding("payload", text, start, start + stretch.length)
            continue
        budget -= len(stretch.text)
        if budget < 0:
            yield Finding("payload", "more is encoded here than is looked into", start)
            return
        inside = _cut(stretch.text)
        for inner in _spoken(inside):
            yield Finding(inner.cls, inner.excerpt, start)
        if depth < DEPTH_LIMIT and stretch.deeper:
            waiting.append((start, stretches(inside, outermost=depth == 1), depth + 1))


def _cut(text: str) -> Cut:
    return cut(text, plain(text), odd_characters(text), _NEEDLES)


_NEEDLES = Needles(scan_phrases.NEEDLES | scan_secrets.NEEDLES | scan_codes.NEEDLES)


def _spoken(of: Cut) -> Iterator[Finding]:
    """What a text says to its reader, in words, in letters that stand for others, or in words run together."""
    low, shown = of.low, of.text if len(of.low) == len(of.text) else of.low
    words = sentences(low)
    concepts = PLAIN.concepts(words)
    line = "".join(concepts)
    for hit in hits(line):
        yield _said(hit.cls, shown, *span(low, concepts, hit))
    for cls, start, end in phrases(low, of.there):
        yield _said(cls, shown, start, end)
    if of.odd and FOREIGN_SCRIPT.search(low) and (place := foreign(low)) is not None:
        yield _said("instruction", low, *place)
    if "," in line:
        yield from _digited(low, words, concepts)
    for spelled in _SPELLED.finditer(of.shape):
        first, last = spelled.span()
        told = PLAIN.line([*of.words[max(0, first - 12) : first], "".join(of.words[first:last]), *of.words[last : last + 12]])
        for hit in hits(told):
            yield Finding(hit.cls, visible(" ".join(of.words[first : last + 12])[:EXCERPT_LENGTH]), 0)
    for run in run_together(of):
        yield from _compact(low.find(run), run)


def _digited(low: str, words: list[str], concepts: list[str]) -> Iterator[Finding]:
    """What words with digits among their letters say, read as letters: apart, and without their spaces."""
    starts: list[int] = []
    for region in _DIGITED.finditer("".join(["," if "," in told else "." for told in concepts])):
        starts = starts or word_starts(low)
        letters = [unleet(word) for word in words[region.start() : region.end()]]
        for hit in hits(LEET.line(letters)):
            yield Finding(hit.cls, visible(" ".join(letters)[:EXCERPT_LENGTH]), starts[region.start()])
        yield from _compact(starts[region.start()], "".join(letters))


_SPELLED = re.compile("1{4,}")
"""Letters with spaces between them: one word of a sentence, perhaps."""
_DIGITED = re.compile(r"(?:\.{0,2},){3,}\.{0,3}")
"""Words that have digits among their letters, close to each other."""


def _compact(start: int, text: str) -> Iterator[Finding]:
    for hit in hits(LEET.compact(re.sub(r"[^a-z]+", "", unleet(text)))):
        yield Finding(hit.cls, visible(text[:EXCERPT_LENGTH]), max(0, start))


def _said(cls: str, text: str, start: int, end: int) -> Finding:
    return _finding("quotes" if cls in _QUOTABLE and _quoted(text, start, end) else cls, text, start, end)


def _finding(cls: str, text: str, start: int, end: int) -> Finding:
    around = max(0, (EXCERPT_LENGTH - (end - start)) // 2)
    return Finding(cls, visible(" ".join(text[max(0, start - around) : end + around].split()))[:EXCERPT_LENGTH], start)


_QUOTABLE = ("instruction", "broadcast", "tool_syntax")
_QUOTE_REACH = 200
_OPENING = "\"'`“‘«„‹「『"
_CLOSING = "\"'`”’»“›」』"
_TOLD = re.compile(
    r"(?i:\b(?:examples?|e\.g|such as|like|phrases?|quot\w{1,6}|attacks?|attackers?|inject\w{1,5}|jailbreaks?|malicious|adversar\w{1,6}"
    r"|detect\w{1,5}|payloads?|samples?|strings?|patterns?|fixtures?|tests?|says|said|reads|contain\w{0,4}|included?|classif\w{1,8}"
    r"|refus\w{1,4}|block\w{0,3}|flag\w{0,4}|report\w{0,4}|documentation|described?|exemples?|beispiele?|ejemplos?|esempi\w?|пример\w{0,3})\b)"
    r"|例|예시"
)


def _quoted(text: str, start: int, end: int) -> bool:
    """Whether a place stands in quotation marks, code or a quotation, in a text that says why it quotes it."""
    # A word holds the marks that stick to it, and a place may reach past the quotation: what closes it stands anywhere after the start.
    before, after = text[max(0, start - _QUOTE_REACH) : start + 2], text[start + 2 : end + _QUOTE_REACH]
    line = before.rpartition("\n")[2]
    marked = line.lstrip().startswith(">") or any(
        mark in line and close in after.partition("\n")[0] for mark, close in zip(_OPENING, _CLOSING, strict=True)
    )
    fenced = text.count("```", 0, start) % 2 == 1
    return (marked or fenced) and _TOLD.search(before + after) is not None

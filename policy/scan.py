"""Scan a text for what must not go into shared memory unseen.

Owns nothing but the order of the looks. It says what it found and never decides: the policy holds a write with findings. It
never raises for what a text is, takes time in proportion to the text's length, and stops when it has
found enough, so that a text cannot flood its reader. Pure.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from amem.policy import scan_ciphers, scan_phrases, scan_secrets
from amem.policy.reasons import visible
from amem.policy.scan_codes import opaque, stretches
from amem.policy.scan_needles import Needles
from amem.policy.scan_phrases import phrases
from amem.policy.scan_rules import SPACED, UNSPACED
from amem.policy.scan_secrets import SHOWN, secrets
from amem.policy.scan_shapes import Cut, cut, run_together
from amem.policy.scan_text import hidden, mended, odd_characters, plain, unleet
from amem.policy.scan_words import FOREIGN_SCRIPT, PLAIN, Places, foreign, leet, sentences, trie
from amem.typed import NamedTuple

EXCERPT_LENGTH = 160
DEPTH_LIMIT = 3
"""Encodings within encodings that are followed."""
ENOUGH = 8
"""With so many findings a text is not looked at any further: what would be found tells its reader nothing new."""
_EACH = 2
"""So many findings of one class are told in one look: they leave room for another's."""


class Finding(NamedTuple):
    """Something found: its class, what it reads like (visible, short, never a whole credential), and where it starts."""

    cls: str
    """`instruction`, `broadcast`, `tool_syntax`, `hidden`, `payload`, `secret`, or `quotes`: an attack that the text quotes."""
    excerpt: str
    start: int
    """Characters from the start of the text; of an encoded stretch, where that starts."""


def scan(text: str) -> tuple[Finding, ...]:
    """What was found, in the order of the text; empty when there is nothing. Linear in the text's length."""
    found = sorted(set(islice(_find(text), ENOUGH)), key=lambda finding: (finding.start, finding.cls, finding.excerpt))
    return tuple(found)


def _find(text: str) -> Iterator[Finding]:
    whole = _cut(text)
    for found in islice(hidden(text, whole.odd), _EACH):
        yield _finding("hidden", text, found.start, found.start + found.length)
    for name, start, end in islice(secrets(text, whole.low, whole.long_words, whole.there), _EACH):
        yield Finding("secret", f"{name}: {visible(text[start : start + SHOWN])}… ({end - start} characters)", start)
    loud = 0
    for said in _spoken(whole):
        yield said
        loud += said.cls != "quotes"
        if loud == _EACH:
            break
    if loud:
        # It is held for what it says in plain words: in other letters it is not read, but for what must never be filed.
        for stretch in islice(opaque(whole), _EACH):
            yield _finding("payload", text, stretch.start, stretch.start + stretch.length)
    else:
        yield from _read_otherwise(whole)


def _read_otherwise(whole: Cut) -> Iterator[Finding]:
    """What a text says in words that are broken apart, and in what it encodes."""
    text = whole.text
    for piece in mended(whole.low):
        for said in _spoken(_cut(piece.text)):
            yield Finding(said.cls, said.excerpt, piece.start)
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


_NEEDLES = Needles(scan_phrases.NEEDLES | scan_secrets.NEEDLES | scan_ciphers.NEEDLES)


def _spoken(of: Cut) -> Iterator[Finding]:
    """What a text says to its reader. What is quoted does not hide what is said after it: they are two classes."""
    told: Counter[str] = Counter()
    reading = _Reading(of)
    for cls, start, end in reading.heard():
        if told[cls] < _EACH and told[cls := reading.heard_as(cls, start, end)] < _EACH:
            told[cls] += 1
            yield reading.finding(cls, start, end)
    if not told.keys() - {"quotes"}:  # else it is held for what it says in plain words
        yield from reading.made_out()


class _Reading:
    """A text that is read for what it says to its reader: in words, in letters that stand for others, in words run together."""

    def __init__(self, of: Cut) -> None:
        self._of = of
        self._words = sentences(of.low)
        self._concepts = PLAIN.concepts(self._words)
        self._line = "".join(self._concepts)
        self._places = Places(of.low, self._words, self._concepts)
        self._shown = of.text if len(of.low) == len(of.text) else of.low

    def heard(self) -> Iterator[tuple[str, int, int]]:
        """What is said in plain words: its class, where it starts and ends."""
        of = self._of
        for hit in SPACED.hits(self._line):
            yield hit.cls, *self._places.span(hit.first, hit.last)
        yield from phrases(of.low, of.there)
        if of.odd and FOREIGN_SCRIPT.search(of.low):
            told, places = foreign(of.low)
            for hit in UNSPACED.hits(told):
                yield hit.cls, places[hit.first], min(len(of.low), places[hit.last] + 12)

    def made_out(self) -> Iterator[Finding]:
        """What is said in words that are not written as words."""
        of = self._of
        if "," in self._line:
            for region in _DIGITED.finditer("".join(["," if "," in told else "." for told in self._concepts])):
                first, last = max(0, region.start() - 2), region.end() + 3
                yield from self._unleeted(self._places.of_word(first), [unleet(word) for word in self._words[first:last]])
        for broken in _BROKEN_UP.finditer(self._line):
            first = max(0, broken.start() - 1)
            for hit in SPACED.hits(self._line[first : broken.end()].replace("|", "")):
                yield _finding(hit.cls, of.low, *self._places.span(first, broken.end() - 1))
        for spelled in _SPELLED.finditer(of.shape):
            first, last = spelled.span()
            line = PLAIN.line([*of.words[max(0, first - 12) : first], "".join(of.words[first:last]), *of.words[last : last + 12]])
            for hit in SPACED.hits(line):
                yield Finding(hit.cls, visible(" ".join(of.words[first : last + 12])[:EXCERPT_LENGTH]), 0)
        for run in run_together(of):
            yield from _compact(of.low.find(run[:8]), run)

    def _unleeted(self, start: int, letters: list[str]) -> Iterator[Finding]:
        """What words with digits among their letters say, read as letters: apart, and without their spaces."""
        for hit in SPACED.hits(leet().line(letters)):
            yield Finding(hit.cls, visible(" ".join(letters)[:EXCERPT_LENGTH]), start)
        yield from _compact(start, "".join(letters))

    def heard_as(self, cls: str, start: int, end: int) -> str:
        """The class of what was heard: `quotes` where the text quotes it."""
        return "quotes" if cls in _QUOTABLE and self._quoted(start, end) else cls

    def finding(self, cls: str, start: int, end: int) -> Finding:
        """What was heard, with what stands around it."""
        return _finding(cls, self._shown, start, end)

    @cached_property
    def _fences(self) -> list[int]:
        return [fence.start() for fence in _FENCE.finditer(self._shown)]

    def _quoted(self, start: int, end: int) -> bool:
        """Whether a place stands in quotation marks, code or a quotation, in a text that says why it quotes it."""
        # A word holds the marks that stick to it, and a place may reach past the quotation: what closes it stands anywhere after the start.
        before, after = self._shown[max(0, start - _QUOTE_REACH) : start + 2], self._shown[start + 2 : end + _QUOTE_REACH]
        line, rest = before.rpartition("\n")[2], after.partition("\n")[0]
        marked = line.lstrip().startswith(">") or any(_CLOSES[mark] in rest for mark in _CLOSES.keys() & line)
        if not marked and bisect_left(self._fences, start) % 2 == 0:
            return False
        return _TOLD.search((before + after).lower()) is not None


_SPELLED = re.compile("1{4,}")
"""Letters with spaces between them: one word of a sentence, perhaps."""
_BROKEN_UP = re.compile(r"\|(?:[^|]{1,3}\|){3,}[^|]{0,3}")
"""Words of which few together are a sentence."""
_DIGITED = re.compile(r",(?:\.{0,2},){2,}")
"""Words that have digits among their letters, close to each other."""


def _compact(start: int, text: str) -> Iterator[Finding]:
    for hit in SPACED.hits(leet().compact(re.sub(r"[^a-z]+", "", unleet(text)))):
        yield Finding(hit.cls, visible(text[:EXCERPT_LENGTH]), max(0, start))


def _finding(cls: str, text: str, start: int, end: int) -> Finding:
    around = max(0, (EXCERPT_LENGTH - (end - start)) // 2)
    return Finding(cls, visible(" ".join(text[max(0, start - around) : end + around].split()))[:EXCERPT_LENGTH], start)


_QUOTABLE = ("instruction", "broadcast", "tool_syntax")
_QUOTE_REACH = 200
_CLOSES = dict(zip("\"'`“‘«„‹「『", "\"'`”’»“›」』", strict=True))
"""Quotation marks, and what closes each."""
_TELLING = """exampl phrase quote quoti attack inject jailbreak malicious adversar detect payload sample string pattern fixture test says
    said reads contain includ classif refus block flag report docum descri exempl beispiel ejempl esempi пример such like e.g"""
_TOLD = re.compile(f"(?<![^\\W\\d_]){trie(_TELLING.split())}|例|예시")
"""How words begin that say why a text quotes something."""
_FENCE = re.compile("```")

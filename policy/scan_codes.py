# ruff: noqa: E501  (a table of patterns)
"""Where the encoded stretches of a text stand, and what they read as.

`stretches` yields what reads as text, to be scanned again, and what is long and reads as nothing. It does not decide; what one run
reads as is `scan_decoders`'s. Each pattern is one pass over the words that can hold it, and the caller bounds how much is decoded in
all. Pure.
"""

import re
from collections.abc import Iterator
from itertools import accumulate

from amem.policy.scan_ciphers import CIPHERS, NEEDLES
from amem.policy.scan_decoders import (
    ASCII85,
    BINARY,
    BRAILLE,
    DUMP,
    HEX_ALONE,
    MORSE,
    NATO,
    NUMBERS,
    PROGRAM,
    UU,
    Decoder,
    from_alphabet,
    is_dense,
    is_opaque,
    unescape,
)
from amem.policy.scan_shapes import TRAILING, Cut, Word
from amem.policy.scan_text import latin, spoken
from amem.typed import NamedTuple

_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{40,80}(?:\r?\n[ \t]{0,8})){1,20000}[A-Za-z0-9+/_-]{1,80}={0,2}|(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}={0,2}"
)
_BASE64_LEAST = 20
_BASE64_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}={0,2}")
"""One on one line."""
_ESCAPE = (
    r"(?:%[0-9a-fA-F]{2}|&(?:amp;)?#(?:[xX][0-9a-fA-F]{1,8}|[0-9]{1,8});?|&[lg]t;|\\u\{[0-9a-fA-F]{1,6}\}|\\U[0-9a-fA-F]{8}|\\0[0-9a-fA-F]{5}|\\u[0-9a-fA-F]{4,6}|\\x[0-9a-fA-F]{2}|\\[0-9a-fA-F]{2,6}(?=\s)"
    r"|U\+[0-9a-fA-F]{4,6}|=[0-9A-F]{2})"
)
_ESCAPED = re.compile(rf"{_ESCAPE}(?:[^\\&%=\n]{{0,24}}?{_ESCAPE}){{2,4000}}[^\\&%=\n]{{0,40}}")
_WORD_BEFORE = re.compile(r"\w{1,24}$")
_SIGNS_OF_ESCAPES = ("%", "&#", "&amp;#", "\\", "=", "U+")
_SEAM = re.compile(r"[\"'`]\s{0,4}[+,.&\\]\s{0,4}[\"'`]|\n[ \t]{0,8}[>|#*/]{1,3}[ \t]{0,4}")
"""What stands between two parts of a string, or of a quotation."""
_SEAMED = re.compile(rf"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{{4,80}}(?:(?:{_SEAM.pattern})[A-Za-z0-9+/_=-]{{2,80}}){{1,4000}}")
_NUMBERS = re.compile(r"\d{2,3},\d{2,3},\d{2,3},")
_LINE = 40
_CIPHER_REACH = 150
_WORD = re.compile(r"(\S+)")
_GROUPS = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_EVEN = re.compile("([\x08-\x27])\\1{2,}|([\x04-\x07])\\2{5,}")
"""Lengths of words of which many stand in a row: `chr` of a length is a letter of the pattern."""
_OF_RUNS = {"codes": NUMBERS, "marks": (MORSE,), "names": (NATO,)}
"""What reads a run of words of one shape."""
_RUNS = re.compile(r"(?P<codes>0{8,})|(?P<marks>-{8,})|(?P<names>o{7,})")
_RUNS_BEGIN = ("0" * 8, "-" * 8, "o" * 7)
_MARKS_OF_MORSE = ".-·−_"


class Stretch(NamedTuple):
    """An encoded stretch: where it starts in the text, and what it reads as."""

    start: int
    text: str
    """Empty for a long stretch that reads as nothing."""
    length: int = 0
    """Of one that reads as nothing."""
    deeper: bool = True
    """Whether more may be encoded within it."""


def stretches(of: Cut, outermost: bool) -> Iterator[Stretch]:
    """The encoded stretches of a text: what reads as text when decoded, and what is long and reads as nothing.

    The old ciphers are tried on the outermost text, and on what is encoded in it.
    """
    if of.odd:
        if any("\ufe00" <= c <= "\ufe0f" or c >= "\U000e0000" for c in of.odd) and (said := spoken(of.text)):
            yield Stretch(0, said, deeper=False)
        for piece in latin(of.low, of.odd):
            yield Stretch(piece.start, piece.text, deeper=False)
        if any("\u2800" <= c <= "\u28ff" for c in of.odd):
            yield from _each(of.text, 0, (BRAILLE,))
    yield from _of_long_words(of)
    if any(sign in of.text for sign in _SIGNS_OF_ESCAPES):
        for match in _ESCAPED.finditer(of.text):
            before = _WORD_BEFORE.search(of.text, max(0, match.start() - 24), match.start())
            yield Stretch(match.start(), unescape((before[0] if before else "") + match[0]))
    if "\nM" in of.text or " M" in of.text:
        yield from _each(of.text, 0, (UU,))
    if "0010" in of.text:
        yield from _each(of.text, 0, (DUMP,))
    if "chr(" in of.text:
        yield from _each(of.text, 0, (PROGRAM,))
    if _SEAM.search(of.text):
        for match in _SEAMED.finditer(of.text):
            if (read := from_alphabet(_SEAM.sub("", match[0]).strip("\"'`"))) is not None:
                yield Stretch(match.start(), read)
    for start, joined in _even(of):
        if is_dense(joined) and (read := from_alphabet(joined)) is not None:
            yield Stretch(start, read)
    if any(run in of.shape for run in _RUNS_BEGIN):
        bounds = list(accumulate(map(len, _WORD.split(of.text))))  # where each word starts and ends, one after the other
        for found in _RUNS.finditer(of.shape) if len(bounds) == 2 * len(of.shape) + 1 else ():
            start, end = bounds[2 * found.start()], bounds[2 * found.end() - 1]
            yield from _each(of.text[start:end], start, _OF_RUNS[found.lastgroup or ""])
    for word in sorted(of.there & NEEDLES) if outermost else ():
        text = of.text if len(of.text) == len(of.low) else of.low
        at, end = of.low.find(word), 0
        while at >= 0:
            start, end = max(end, at - _CIPHER_REACH), at + 2 * _CIPHER_REACH
            for cipher in CIPHERS[word]:
                yield Stretch(start, cipher(text[start:end]), deeper=False)
            at = of.low.find(word, end)


def opaque(of: Cut) -> Iterator[Stretch]:
    """The long stretches of a text that read as nothing."""
    return (stretch for stretch in _of_long_words(of) if stretch.length)


def _even(of: Cut) -> Iterator[tuple[int, str]]:
    """Base64 broken into groups of one length, shorter than a line: where it starts, and the groups joined."""
    words: list[str] = []
    place = 0
    for found in _EVEN.finditer("".join(map(chr, map(len, of.words)))):
        words = words or of.text.split()
        if len(words) != len(of.words):
            return
        first, last = found.span()
        if last < len(words) and len(words[last]) < len(words[first]) and not words[last - 1].endswith("="):
            last += 1
        joined = "".join(words[first:last])
        if _GROUPS.fullmatch(joined):
            place = of.text.find(words[first], place)
            yield place, joined


def _of_long_words(of: Cut) -> Iterator[Stretch]:
    """What long words spell: each alone, and what is broken into lines of one length together."""
    lines: list[Word] = []
    for start, word in of.long_words:
        if lines and not (len(lines[-1].text) >= _LINE and start - lines[-1].start - len(lines[-1].text) <= 10):
            yield from _of_lines(of.text, lines)
            lines = []
        if len(word) >= _LINE or lines:
            lines.append(Word(start, word))
        if HEX_ALONE.fullmatch(bare := word.rstrip(TRAILING)) and not BINARY.pattern.match(bare):
            yield from _of_alphabet(bare, start)
            continue
        for run in _BASE64_RUN.finditer(word) if len(word) >= _BASE64_LEAST else ():
            yield from _of_alphabet(run[0], start + run.start())
        if word[0] in "0123456789\\" or (len(word) >= _LINE and _NUMBERS.search(word)):
            yield from _each(word, start, NUMBERS)
        elif word[0] in _MARKS_OF_MORSE:
            yield from _each(word, start, (MORSE,))
        if len(word) >= _LINE:
            yield from _each(word, start, (ASCII85,))
    yield from _of_lines(of.text, lines)


def _of_lines(text: str, lines: list[Word]) -> Iterator[Stretch]:
    if len(lines) > 1:
        start, end = lines[0].start, lines[-1].start + len(lines[-1].text)
        block = text[start:end]
        for run in _BASE64.finditer(block):
            if "\n" in run[0]:
                yield from _of_alphabet(run[0], start + run.start())


def _of_alphabet(run: str, start: int) -> Iterator[Stretch]:
    """A run in the letters of base64: what it reads as, or that it is long and reads as nothing."""
    if (read := from_alphabet(run)) is not None:
        yield Stretch(start, read)
    elif is_opaque(run):
        yield Stretch(start, "", length=len(run), deeper=False)


def _each(text: str, start: int, decoders: tuple[Decoder, ...]) -> Iterator[Stretch]:
    for pattern, decode in decoders:
        for match in pattern.finditer(text):
            if (read := decode(match[0])) is not None:
                yield Stretch(start + match.start(), read)

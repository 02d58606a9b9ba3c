"""A text cut into words, with the shape of each; and the words that do not stand apart. Pure."""

import re
from collections.abc import Iterator

from amem.policy.scan_decoders import HEX_ALONE, SPELLING
from amem.policy.scan_memo import Memo
from amem.policy.scan_needles import Needles
from amem.typed import NamedTuple

TRAILING = ".,;:)\"'"
"""What may stick to the end of a word."""
_LONG = 16
_WIDE_WORD = 40
_CODE = re.compile(r"(?:0x|\\x|\\u|u\+|&#x?|\\)?[0-9a-f]{2,8}[,;]{0,2}")
_LONG_WORDS = re.compile(r"[WL]")
_SPELLED = re.compile(r"[1\-]{8,}")
_BETWEEN = re.compile(r"[\W_]")
_SPACED = re.compile(r"(?<![^\W_])(?:[^\W_][^\w\n]{1,3}){7,}[^\W_](?![^\W_])|(?<![^\W_])(?:[^\W_]_{1,2}){7,}[^\W_]")
_LONG_WORD = re.compile(r"(?<![^\W_])[^\W_]{26,}")
_JOINED = re.compile(r"(?<![^\W_])[^\W_]{2,20}(?:[_./\\+~*=-][^\W_]{1,20}){4,}")


class Word(NamedTuple):
    """A word between spaces, and where it starts."""

    start: int
    text: str


class Cut(NamedTuple):
    """A text cut into words, and the words' shapes: so that a look is taken only where the words can hold what it looks for."""

    text: str
    low: str
    """The text in plain form."""
    words: list[str]
    """The words of `low`, as they stand between spaces."""
    shape: str
    """One character a word, see `_shape`."""
    odd: set[str]
    long_words: list[Word]
    """The words of `text` of sixteen characters and more."""
    there: set[str]
    """Of what is looked for in a plain text, see `scan_needles`, what `low` may hold."""


def cut(text: str, low: str, odd: set[str], needles: Needles) -> Cut:
    """Cut a text, given it in plain form and its odd characters."""
    words = low.split()
    shape = "".join(map(_SHAPES.__getitem__, words))
    long_words: list[Word] = []
    at = 0
    if len(low) != len(text):
        for word in text.split():
            if len(word) >= _LONG:
                at = text.find(word, at)
                long_words.append(Word(at, word))
                at += len(word)
    else:
        for found in _LONG_WORDS.finditer(shape):
            word = words[found.start()]
            at = low.find(word, at)
            long_words.append(Word(at, text[at : at + len(word)]))
            at += len(word)
    return Cut(text, low, words, shape, odd, long_words, needles.there(words))


def run_together(of: Cut) -> Iterator[str]:
    """The stretches of a plain text whose words do not stand apart: spelled out, joined, or in one."""
    for match in _SPELLED.finditer(of.shape):
        if 2 * match[0].count("1") >= len(match[0]):
            yield _bare("".join(of.words[match.start() : match.end()]))
    for match in _LONG_WORDS.finditer(of.shape):
        word = of.words[match.start()].rstrip(TRAILING)
        if word.isalnum():
            if len(word) >= 26 and not HEX_ALONE.fullmatch(word):
                yield word
        else:
            signs = len(_BETWEEN.findall(word))
            for pattern, least in ((_SPACED, 7), (_LONG_WORD, 0), (_JOINED, 4)):
                if signs >= least and (least or len(word) >= 26):
                    for run in pattern.finditer(word):
                        yield _bare(run[0])


def _bare(run: str) -> str:
    return re.sub(r"[^\w@$!|]+|_", "", run)


def _shape(word: str) -> str:
    """`W` a wide word, `L` a long one, `1` one letter, `0` a number or a code, `-` marks only, `o` a word of the spelling alphabet,
    `b` another of eight characters and more, `.` else."""
    if len(word) >= _WIDE_WORD:
        return "W"
    if len(word) >= _LONG:
        return "L"
    if len(word) <= 4 and sum(map(str.isalnum, word)) == 1:
        return "1"
    if _CODE.fullmatch(word):
        return "0"
    if not any(map(str.isalnum, word)):
        return "-"
    return "o" if word.strip(".,-") in SPELLING else "b" if len(word) >= 8 else "."


_SHAPES = Memo(_shape)

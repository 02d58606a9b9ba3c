"""From a question to a MATCH expression, and from matches to an order. Pure: no database here.

Every word of a question is quoted, so that none is an operator or a column's name, and the tokens of the `acl` column begin with a
character that no word has, so that none is one of those either. (To hold the words to the text columns by name would do the same
for twice the time.)
The recipe was measured on real questions: content words joined by OR, a prefix from five letters on, then
the first `WINDOW` reordered by the share of the question's words that an entry has, those with every word first.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from amem.typed import NamedTuple

WINDOW = 100
"""Matches that are reordered; a search goes no deeper. With 200 the measures of recall were the same (2026-11)."""
MAX_WORDS = 32
"""Words of a question that count: the first ones. A pasted page would otherwise be a thousand lookups."""
_PREFIX_FROM = 5
_PARAGRAPH = 300
"""Characters from which on an entry is long enough for its score to be taken as it is."""
_SOURCE = 0.6
"""How much the source of a match counts beside the match."""
_MARK = "\ue000"
"""Begins what is looked up in `acl`: a private-use character is a letter to FTS5 and none to `_WORD`."""

_STOP = """
a about above after again against all also am an and any are as at be because been before being below between both but by can
could did do does doing don't down during each few for from further had has have having he her here hers herself him himself his
how i if in into is it its itself just let me more most my myself no nor not now of off on once only or other our ours out over
own same she should so some such than that the their theirs them then there these they this those through to too under until up
upon us very was we were what when where which while who whom whose why will with would you your yours yourself
"""
STOP = frozenset(_STOP.split())
"""Words that leave a question, never the index."""

_LETTERS = re.compile(r"[^\W_]+")
_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_RUN = re.compile(
    "[\u0e00-\u0e7f\u0e80-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]+"
)
"""Scripts that write no spaces between words, or glue endings on: Thai, Lao, Tibetan, Burmese, Khmer, kana, Han, Hangul."""
_ACCENTED = re.compile("[\u00aa-\u024f\u0300-\u036f\u1e00-\u1eff\uff00-\uff5e]")


class Question(NamedTuple):
    """A question ready to be asked."""

    match: str
    """The MATCH expression; empty when nothing in the question can be looked up."""
    stems: tuple[str, ...]
    """What `beginnings` must hold for each word to count as there."""


class Text(NamedTuple):
    """A text ready for the index."""

    spaced: str
    """What the word columns get."""
    grams: str
    """Pairs of characters of its unspaced runs, as digits that no stemmer touches."""


def question(query: str) -> Question:
    """Read what somebody typed; anything is a question, nothing is an error."""
    terms: dict[str, str] = {}  # FTS5 term -> stem, in order
    for word in content(query):
        if len(terms) >= MAX_WORDS:
            break
        if _RUN.search(word):
            for run in _RUN.findall(word):
                terms |= {f'"{_digits(pair)}"' + ("*" if len(pair) == 1 else ""): fold(pair) for pair in _pairs(run)}
            words = _WORD.findall(_RUN.sub(" ", word))
        else:
            words = [word]
        terms |= {_quoted(plain) + ("*" if len(plain) >= _PREFIX_FROM else ""): _stem(plain) for plain in words}
    chosen = list(terms)[:MAX_WORDS]
    return Question(f"({' OR '.join(chosen)})" if chosen else "", tuple(terms[term] for term in chosen))


def content(query: str) -> list[str]:
    """The distinct words that carry meaning, in order; all of them when none does."""
    words = dict.fromkeys(_bare(word) for word in _WORD.findall(query.lower()))
    return [word for word in words if word not in STOP] or list(words)


def prepared(text: str) -> Text:
    """Take the unspaced runs out of a text, as pairs."""
    if text.isascii() or not _RUN.search(text):
        return Text(text, "")
    return Text(_RUN.sub(" ", text), " ".join(_digits(pair) for run in _RUN.findall(text) for pair in _pairs(run)))


def beginnings(text: str) -> str:
    """How the distinct words of a text begin, a line each: what a question looks at. Words of scripts without spaces stand whole."""
    if text.isascii():
        found = {word[:_PREFIX_FROM]: None for word in text.lower().translate(_SPACES).split()}
    else:
        words = dict.fromkeys(_LETTERS.findall(text.lower()))
        found = {fold(word) if _RUN.search(word) else _stem(word): None for word in words}
    return "\n".join(found)


def fold(text: str) -> str:
    """Lower case, and without accents, as the index folds."""
    if not text.isascii() and _ACCENTED.search(text):
        text = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not "\u0300" <= letter <= "\u036f")
    return text.lower()


def narrowed(match: str, acls: Iterable[int] = (), types: Iterable[str] = ()) -> str:
    """The expression with what may be read and what is asked for as tokens of the `acl` column."""
    for tokens in ([acl_token(acl) for acl in acls], [type_token(name) for name in types]):
        if tokens:
            match = f"{match} AND acl : ({' OR '.join(map(_quoted, tokens))})"
    return match


def acl_token(acl: int) -> str:
    """The token of a combination of domain, label and tier."""
    return f"{_MARK}{acl}"


def type_token(name: str) -> str:
    """The token of an entry type."""
    return f"{_MARK}{name}"


class Ranked(NamedTuple):
    """Row numbers, best first, and whether the best has every word."""

    order: list[int]
    whole: bool


def ranked(matches: Sequence[tuple[int, float, int | None, int, str]], stems: Sequence[str]) -> Ranked:
    """Reorder matches, each `(row, bm25 (smaller is better), series, length in characters, beginnings)`, best first.

    The strength of a match is its score, damped by the square root of the share of words it has and of how far it
    is from a full paragraph: bm25 favours entries of a line or two too much. Where matches are parts of one source, half as
    much again is for how well that source answers, by its three best parts. Those with every word come first.
    """
    if not matches:
        return Ranked([], False)
    count = len(stems)
    shares = [(0.1 + has / count) ** 0.5 for has in range(count + 1)]
    # One pass a word: most of the time of a search that is not SQLite's is spent here.
    texts = [match[4] for match in matches]
    found = [sum(words) for words in zip(*([stem in text for text in texts] for stem in stems), strict=True)]
    strengths = [
        (has != count, bm25 * shares[has] * (1.0 if length >= _PARAGRAPH else (0.1 + 0.9 * length / _PARAGRAPH) ** 0.5), n, series)
        for (n, bm25, series, length, _), has in zip(matches, found, strict=True)
    ]
    sources: dict[int, list[float]] = {}
    for _, strength, _, series in strengths:
        if series is not None:
            sources.setdefault(series, []).append(strength)
    if sources:
        strengths = _lifted(strengths, {series: sum(sorted(values)[:3]) / 3 for series, values in sources.items()})
    strengths.sort()
    return Ranked([item[2] for item in strengths], not strengths[0][0])


def _lifted(
    strengths: Sequence[tuple[bool, float, int, int | None]], sources: dict[int, float]
) -> list[tuple[bool, float, int, int | None]]:
    """Add what the source of each match says for it; a match of no source is its own."""
    own = [sources[series] if series is not None else strength for _, strength, _, series in strengths]
    share = _SOURCE * min(item[1] for item in strengths) / min(own)
    return [(partial, strength + share * source, n, None) for (partial, strength, n, _), source in zip(strengths, own, strict=True)]


def _bare(word: str) -> str:
    """A word without a possessive ending."""
    return word[:-2] if word.endswith(("'s", "’s")) else word


def _stem(word: str) -> str:
    """What an entry must hold for a word to count as there: how it begins, or the longest part of it when an apostrophe parts it."""
    return fold(max(_LETTERS.findall(word), key=len))[:_PREFIX_FROM]


def _quoted(word: str) -> str:
    """An FTS5 string that can only be read as text."""
    return '"' + word.replace('"', '""') + '"'


def _pairs(run: str) -> list[str]:
    """The pairs of neighbours in a run; a run of one is itself."""
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def _digits(pair: str) -> str:
    return "".join(f"{ord(letter):06d}" for letter in pair)

"""What of a text another text carries when it quotes it: runs of words, and words so long that nobody writes them by chance. Pure.

Both texts are read the same way first: escapes undone, forms of one character made the same, case folded, white space and marks left out;
and the other one in every spelling of `spellings`. So a passage is found in a prompt, in a tool's answer inside a prompt, and in a
transcript of both; backwards too.
"""

import codecs
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from amem.memory.spellings import Unread, paired, readings
from amem.policy.scan_text import INVISIBLE
from amem.typed import Any, NamedTuple

RUN_WORDS = 6
_LEAST_RUN = 3
WORD_CHARACTERS = 16
ERASED = "[erased]"
"""What stands where a passage stood."""

_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrtbf\"/\\])")
_WORD = re.compile(r"[^\W_]+")
_LONG = re.compile(rf"[\w-]{{{WORD_CHARACTERS},}}")
_UNSPACED = 12
_PARTS = (re.compile(r"((?<=[.!?。])\s+|\n)"), re.compile(r"(\n)"), re.compile(r"(\n\s*\n)"))
_UNSAID = re.compile(r"[bcdfghjklmnpqrstvwxz]{6,}")
_HEX = re.compile(r"[0-9a-f-]+")
_HASH_CHARACTERS = (32, 36, 40, 64)
_ID = re.compile(r"(?:mem|task|ses|held|src|dec|call)-[a-z0-9-]+")
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\^_])")
_TOKEN = re.compile(rf"[\w-]{{{_UNSPACED},}}")
_UNSEEN = re.compile(f"[{INVISIBLE}]")
_FEW = 256
_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())
_NO_LETTERS = re.compile(r"[\W_]+")
_TURNS: tuple[Callable[[str], str], ...] = (lambda text: text[::-1], lambda text: codecs.encode(text, "rot13"))
"""Ways to write a text that need not be undone to be seen: what is looked for is turned the same way."""
_STEP = 1 << 20
_OVERLAP = 4096


class Passages(NamedTuple):
    """What to look for."""

    runs: frozenset[str]
    """Each of `RUN_WORDS` words, one space between; fewer where a whole text has no more."""
    words: frozenset[str]

    def __or__(self, other: "Passages") -> "Passages":
        return Passages(self.runs | other.runs, self.words | other.words)

    def found(self, text: str) -> bool:
        """Say whether the text carries any of them, in whatever spelling. What is too much to be read counts as not."""
        try:
            return any(map(self.said, readings(text))) if self else False
        except Unread:
            return False

    def said(self, text: str) -> bool:
        """Say whether the text carries any of them as it stands."""
        sought = _sought(self)
        for start in range(0, max(1, len(text)), _STEP):  # so that a page of 20 MB is never held three times
            part = plain(text[start : start + _STEP + _OVERLAP])
            if sought.words.within(part) or (sought.unsaid and sought.unsaid.within(_joined(part))):
                return True
            words = _WORD.findall(part)
            begun = not sought.beginnings.isdisjoint(zip(words, words[1:], words[2:], strict=False))
            if begun and not sought.runs.isdisjoint(_runs(words, sought.lengths)):
                return True
        return False

    def __bool__(self) -> bool:
        return bool(self.runs or self.words)

    def without(self, texts: Iterable[str]) -> "Passages":
        """Those that none of these texts has."""
        runs, words, lengths = set(self.runs), set(self.words), _lengths(self.runs)
        for text in texts:
            part = plain(text)
            words -= {word for word in words if word in part}
            runs.difference_update(_runs(_WORD.findall(part), lengths))
        return Passages(frozenset(runs), frozenset(words))


NOTHING = Passages(frozenset(), frozenset())


def passages(*texts: str) -> Passages:
    """The passages of some texts: a title, a summary, a body. A text of a few words is one passage."""
    runs: set[str] = set()
    words: set[str] = set()
    for text in texts:
        part = plain(text)
        count = len(said := _WORD.findall(part))
        if count >= RUN_WORDS or (count >= _LEAST_RUN and len(part) >= WORD_CHARACTERS):
            runs.update(_runs(said, (min(count, RUN_WORDS),)))
        for word in _LONG.findall(part):
            words.update(_windows(word) if not word.isascii() else [word.strip("-_")])
    return Passages(frozenset(runs), frozenset(word for word in words if len(word) >= _UNSPACED and not _ID.fullmatch(word)))


@lru_cache(maxsize=8)
def telling(found: Passages) -> Passages:
    """Those that stand for this text wherever they are: words that nobody could say, and that are no hash and no id."""
    words = {word for word in found.words if _unsaid(word) and not (_HEX.fullmatch(word) and len(word) in _HASH_CHARACTERS)}
    return Passages(frozenset(), frozenset(words))


def masked(text: str, found: Passages) -> str:
    """The text with each sentence that carries a passage erased; where passages go over sentences, each line, each paragraph, all."""
    if not found.found(text):
        return text
    for parts in _PARTS:
        text = "".join(ERASED if n % 2 == 0 and found.found(part) else part for n, part in enumerate(parts.split(text)))
        if not found.found(text):
            return text
    return ERASED


def walked(value: Any, found: Passages) -> Any:
    """A JSON value with every text that carries a passage erased whole, and every key."""
    match value:
        case str():
            return ERASED if found.found(value) else value
        case list():
            return [walked(item, found) for item in value]
        case dict():
            return {(ERASED if found.found(key) else key): walked(item, found) for key, item in value.items()}
        case _:
            return value


def streamed(text: str, says: Callable[[str], bool]) -> bool:
    """Say whether a stream of events carries a passage that its pieces cut: whether the texts of one key say it, one after the other."""
    said: dict[str, list[str]] = {}
    for line in text.splitlines():
        line = line.removeprefix("data:").strip()
        if line.startswith("{"):
            try:
                _gathered(json.loads(line), "", said.setdefault)
            except (ValueError, RecursionError):
                continue
    return any(says("".join(pieces)) for pieces in said.values() if len(pieces) > 1)


def plain(text: str) -> str:
    """The text as texts are compared."""
    if "\\" in text:
        text = paired(_ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", text))
    if not text.isascii():
        text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    return text.casefold()


def _joined(part: str) -> str:
    """The letters and digits of a plain text, as if nothing had broken its words: a terminal colours them, a program puts them together."""
    part = _SEQUENCE.sub("", part) if "\x1b" in part else part
    return part.encode().translate(None, _SIGNS).decode() if part.isascii() else _NO_LETTERS.sub("", part)


def _runs(words: list[str], lengths: Iterable[int]) -> Iterable[str]:
    return (" ".join(words[at : at + length]) for length in lengths for at in range(len(words) - length + 1))


@lru_cache(maxsize=8)
def _lengths(runs: frozenset[str]) -> tuple[int, ...]:
    """Of how many words these are."""
    return tuple(sorted({run.count(" ") + 1 for run in runs}))


class _Words(NamedTuple):
    """Words to look for anywhere in a text: a few each on its own, many by how they begin, so that more of them take no longer."""

    few: tuple[str, ...]
    many: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, words: Collection[str]) -> "_Words":
        if len(words) <= _FEW:
            return cls(tuple(words), {})
        many: dict[str, list[str]] = defaultdict(list)
        for word in words:
            many[word[:_UNSPACED]].append(word)
        return cls((), many)

    def __bool__(self) -> bool:
        return bool(self.few or self.many)

    def within(self, part: str) -> bool:
        """Say whether one of them stands in a plain text."""
        if any(word in part for word in self.few):
            return True
        there = {begin for word in _TOKEN.findall(part) for begin in _windows(word) if begin in self.many} if self.many else ()
        return any(word in part for begin in there for word in self.many[begin])


class _Sought(NamedTuple):
    """Passages as they are looked for: forwards, backwards, and as rot13 has them."""

    words: _Words
    unsaid: _Words
    runs: frozenset[str]
    lengths: tuple[int, ...]
    beginnings: frozenset[tuple[str, ...]]
    """The first words of each run: few texts have those, and to look for them takes a fifth of the time."""


@lru_cache(maxsize=8)
def _sought(found: Passages) -> _Sought:
    bare = frozenset(word for one in telling(found).words if len(word := _joined(one)) >= _UNSPACED)
    words, unsaid, runs = (each | {turn(one) for one in each for turn in _TURNS} for each in (found.words, bare, found.runs))
    beginnings = frozenset(tuple(run.split(" ")[:_LEAST_RUN]) for run in runs)
    return _Sought(_Words.of(words), _Words.of(unsaid), runs, _lengths(runs), beginnings)


def _windows(word: str) -> Iterable[str]:
    return (word[at : at + _UNSPACED] for at in range(len(word) - _UNSPACED + 1))


def _unsaid(word: str) -> bool:
    """Letters and digits, or a run of letters that no vowel parts."""
    return (any(c.isdigit() for c in word) and any(c.isalpha() for c in word)) or _UNSAID.search(word) is not None


def _gathered(value: Any, key: str, take: Callable[[str, list[str]], list[str]]) -> None:
    match value:
        case str():
            take(key, []).append(value)
        case list():
            for item in value:
                _gathered(item, key, take)
        case dict():
            for name, item in value.items():
                _gathered(item, name, take)

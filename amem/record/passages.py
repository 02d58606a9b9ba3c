"""What of a text another text carries when it quotes it: runs of words, and words so long that nobody writes them by chance. Pure.

Both texts are read the same way first: escapes of JSON undone however deep, case folded, white space and marks left out.
So a passage is found in a prompt, in a tool's answer inside a prompt, and in a transcript of both.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

RUN_WORDS = 6
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
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
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
        """Say whether the text carries any of them."""
        if not self.runs and not self.words:
            return False
        for start in range(0, max(1, len(text)), _STEP):  # so that a page of 20 MB is never held three times
            part = plain(text[start : start + _STEP + _OVERLAP])
            if any(word in part for word in self.words):
                return True
            if unsaid := telling(self).words:
                joined = _joined(part)
                if any(word in joined for word in unsaid):
                    return True
            if not self.runs.isdisjoint(_runs(part, _lengths(self.runs))):
                return True
        return False

    def without(self, texts: Iterable[str]) -> "Passages":
        """Those that none of these texts has."""
        runs, words, lengths = set(self.runs), set(self.words), _lengths(self.runs)
        for text in texts:
            part = plain(text)
            words -= {word for word in words if word in part}
            runs.difference_update(_runs(part, lengths))
        return Passages(frozenset(runs), frozenset(words))


NOTHING = Passages(frozenset(), frozenset())


def passages(*texts: str) -> Passages:
    """The passages of some texts: a title, a summary, a body. A text of a few words is one passage."""
    runs: set[str] = set()
    words: set[str] = set()
    for text in texts:
        part = plain(text)
        count = len(_WORD.findall(part))
        if count >= RUN_WORDS or (count >= 3 and len(part) >= WORD_CHARACTERS):
            runs.update(_runs(part, (min(count, RUN_WORDS),)))
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


def streamed(text: str, found: Passages) -> bool:
    """Say whether a stream of events carries a passage that its pieces cut: the texts of one key, one after the other."""
    said: dict[str, list[str]] = {}
    for line in text.splitlines():
        line = line.removeprefix("data:").strip()
        if line.startswith("{"):
            try:
                _gathered(json.loads(line), "", said.setdefault)
            except (ValueError, RecursionError):
                continue
    return any(found.found("".join(pieces)) for pieces in said.values())


def plain(text: str) -> str:
    """The text as texts are compared."""
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", text)
    return text.casefold()


def _joined(part: str) -> str:
    """The text as if nothing had broken its words: a terminal wraps them and colours them in the middle."""
    if "\x1b" in part:
        part = _SEQUENCE.sub("", part)
    return "".join(part.split()) if part.isascii() else "".join(_UNSEEN.sub("", part).split())


def _runs(part: str, lengths: Iterable[int]) -> Iterable[str]:
    words = _WORD.findall(part)
    return (" ".join(words[at : at + length]) for length in lengths for at in range(len(words) - length + 1))


@lru_cache(maxsize=8)
def _lengths(runs: frozenset[str]) -> tuple[int, ...]:
    """Of how many words these are."""
    return tuple(sorted({run.count(" ") + 1 for run in runs}))


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

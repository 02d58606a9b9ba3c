"""Which of the texts that the scan looks for can be in a text at all, told from the words that it is made of.

A clean text holds almost none of them, and looking for each in every text was most of the scan. So a word is looked at once in
the life of a process, and a text costs one difference of sets. Pure but for what it remembers, which is bounded.
"""

import re
from collections.abc import Iterable
from functools import cache

_HEAD = 2
_LIMIT = 50_000
_WORD_LIMIT = 64
"""A longer word is looked at each time it comes, not remembered."""


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the tables, made when a text first holds what it is looked for at: most texts need few of them."""
    return re.compile(pattern)


class Needles:
    """Texts in plain form to look for, each by its longest part without a space: it stands in one word wherever the text stands."""

    def __init__(self, needles: Iterable[str]) -> None:
        whole: dict[str, list[str]] = {}
        for needle in sorted(set(needles)):
            whole.setdefault(max(needle.split(), key=len), []).append(needle)
        self._heads: dict[str, list[tuple[str, list[str]]]] = {}
        """The parts by their first two characters: a word that nobody has seen yet costs a look for each of its letters."""
        for part, found in whole.items():
            assert len(part) >= _HEAD, part
            self._heads.setdefault(part[:_HEAD], []).append((part, found))
        self._known: dict[str, tuple[str, ...]] = {}
        self._dull: set[str] = set()

    def there(self, words: Iterable[str]) -> set[str]:
        """Of the needles those that a text of these words may hold; what is not among them is not in it."""
        found: set[str] = set()
        for word in set(words).difference(self._dull):
            held = self._known.get(word)
            found.update(self._learn(word) if held is None else held)
        return found

    def _learn(self, word: str) -> tuple[str, ...]:
        heads, found = self._heads, set[str]()
        for at in range(len(word) - _HEAD + 1):
            for part, whole in heads.get(word[at : at + _HEAD], ()):
                if word.startswith(part, at):
                    found.update(whole)
        held = tuple(found)
        if len(word) <= _WORD_LIMIT:
            if len(self._known) + len(self._dull) >= _LIMIT:
                self._known, self._dull = {}, set()
            if held:
                self._known[word] = held
            else:
                self._dull.add(word)
        return held

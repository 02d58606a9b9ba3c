"""Which of the texts that the scan looks for can be in a text at all, told from the words that it is made of.

A clean text holds almost none of them, and looking for each in every text was most of the scan. So a word is looked at once in
the life of a process, and a text costs one difference of sets. Pure but for what it remembers, which is bounded.
"""

import re
from collections.abc import Iterable
from functools import cache

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
        self._whole: dict[str, list[str]] = {}
        for needle in sorted(set(needles)):
            self._whole.setdefault(max(needle.split(), key=len), []).append(needle)
        self._any = re.compile("|".join(map(re.escape, self._whole)))
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
        held: tuple[str, ...] = ()
        if self._any.search(word) is not None:
            held = tuple(needle for part, whole in self._whole.items() if part in word for needle in whole)
        if len(word) <= _WORD_LIMIT:
            if len(self._known) + len(self._dull) >= _LIMIT:
                self._known, self._dull = {}, set()
            if held:
                self._known[word] = held
            else:
                self._dull.add(word)
        return held

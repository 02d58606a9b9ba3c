"""What was worked out of words, remembered for the life of a process, and bounded.

A text is mostly words that were seen before. `map(memo.__getitem__, words)` costs no step of Python for those.
"""

from collections.abc import Callable

LIMIT = 50_000
WORD_LIMIT = 64
"""A longer word is looked at each time it comes, not remembered."""


class Memo(dict[str, str]):
    """What a function says of each word."""

    def __init__(self, work: Callable[[str], str]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, word: str) -> str:
        said = self._work(word)
        if len(word) <= WORD_LIMIT:
            if len(self) >= LIMIT:
                self.clear()
            self[word] = said
        return said

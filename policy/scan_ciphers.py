"""Old ciphers: letters shifted or mirrored, other signs for them, words and lines backwards.

Each is told by how a word that an attack can hardly do without looks in it, so a text in which no such word stands costs nothing. Pure.
"""

import re
from collections.abc import Callable

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def _shift(by: int) -> Callable[[str], str]:
    table = str.maketrans(_ALPHABET, _ALPHABET[by:] + _ALPHABET[:by])
    return lambda text: text.lower().translate(table)


def _rot47(text: str) -> str:
    return text.translate(_ROT47)


def _atbash(text: str) -> str:
    return text.lower().translate(_ATBASH)


def _backwards(text: str) -> str:
    return text[::-1]


def _words_backwards(text: str) -> str:
    return re.sub(r"[^\W_]+", lambda word: word[0][::-1], text)


_ROT47 = {code: 33 + (code + 14) % 94 for code in range(33, 127)}
_ATBASH = str.maketrans(_ALPHABET, _ALPHABET[::-1])
_PIVOTS = """instruction previous system password reveal assistant secret ignore forget credential directive guideline override
    database customer attacker conversation disregard"""
"""Words that an attack can hardly do without."""
CIPHERS: dict[str, tuple[Callable[[str], str], ...]] = {
    **{_shift(by)(word): (_shift(26 - by),) for by in range(1, 26) for word in _PIVOTS.split()},
    **{_rot47(form).lower(): (_rot47,) for word in _PIVOTS.split() for form in (word, word.capitalize())},
    **{_atbash(word): (_atbash,) for word in _PIVOTS.split()},
    **{_backwards(word): (_backwards, _words_backwards) for word in _PIVOTS.split()},
}
"""What reads a text, by the words that it may hold."""
NEEDLES = frozenset(CIPHERS)

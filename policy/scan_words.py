"""Words and what they mean: a text becomes a line of concepts, one letter for each of its words, in which the rules look.

The words are `scan_lexicon`'s, the rules `scan_rules`'s. What a word means is remembered, so that a text costs one look for each
of its words. So the rules hold for every language in the lexicon and never look at the text's own length. Pure.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from itertools import accumulate

from amem.policy.scan_lexicon import LEXICON, UNSPACED
from amem.policy.scan_memo import WORD_LIMIT, Memo
from amem.policy.scan_text import odd_characters, plain, unleet
from amem.typed import Any

_PART = re.compile(r"[a-z]{2,5}://[^\s\"'`<>)\]]*[^\s\"'`<>)\].,;:!?|]|[^\W_]+|@(?=[\w-]+\.\w)|[。！？؟।]|[.!?;|]+(?=[\"'`)\]»”’*_]*$)")
"""What a word between spaces is made of: its letters, an address, the end of a sentence."""
_OWN_FILE = re.compile(r"(?<!\w)\.(?:env|ssh|aws|netrc|npmrc|kube|gnupg)(?!\w)|id_rsa|id_ed25519|/etc/(?:passwd|shadow)")
"""A file that only its owner reads."""
_MARKER = re.compile(r"[-*#>|+=~_/:\u2013\u2014\u2022]+|\(?(?:\d{1,3}|[a-z])[.)]")
"""A word that begins a list item, a heading, a quotation or a cell: what comes before is another sentence."""
_DIGITED = re.compile(
    r"[a-z][013457@$!]{1,3}[a-z]|^[013457@$]{1,2}[a-z]{1,10}[013457@$]|^[013457@$]{2,3}[a-z]|^[a-z]{1,3}[013457@$]{2}\W*$"
)
_NOT_HEX = re.compile("[g-z@$!]")
_SHORTEST_COMPACT = 4
"""Shorter words are not looked for in text without spaces: they are found everywhere."""


def trie(words: Iterable[str]) -> str:
    """A pattern for the longest of the words that begins at a place, which leaves each place after a character or two."""
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for character in word:
            node = node.setdefault(character, {})
        node[""] = {}
    return _branch(root)


def _branch(node: dict[str, Any]) -> str:
    ends = "" in node
    branches = [re.escape(character) + _branch(below) for character, below in sorted(node.items()) if character]
    if not branches:
        return ""
    together = branches[0] if len(branches) == 1 and not ends else f"(?:{'|'.join(branches)})"
    return together + "?" if ends else together


class Lexicon:
    """The words in one form (plain, or with digits read as letters), and what they mean.

    A word is taken as it stands between spaces, quotation marks and all; what it means is remembered, so that a text costs one
    look for each of its words.
    """

    def __init__(self, form: Callable[[str], str]) -> None:
        self._words: dict[str, str] = {}
        self._stems: dict[int, dict[str, str]] = {}
        self._pairs: dict[str, list[tuple[str, str]]] = {}
        for concept, listed in LEXICON.items():
            for word in listed.split():
                key = form(plain(word.rstrip("*")))
                if "_" in word:
                    first, _, second = key.partition("_")
                    self._pairs.setdefault(first, []).append((second, concept))
                elif word.endswith("*"):
                    self._stems.setdefault(len(key), {}).setdefault(key, concept)
                else:
                    self._words.setdefault(key, concept)
        self._heads = {stem[:3] for stems in self._stems.values() for stem in stems}
        self._known = Memo(self._learn)

    @cached_property
    def _compact(self) -> re.Pattern[str]:
        return re.compile(trie(word for word in self._words if len(word) >= _SHORTEST_COMPACT and word.isascii()))

    def line(self, words: Sequence[str]) -> str:
        """The line of concepts of some words."""
        return "".join(self.concepts(words))

    def concepts(self, words: Sequence[str]) -> list[str]:
        """The concepts of each of some words, `,` for one that has digits among its letters."""
        found = list(map(self._known.__getitem__, words))
        if firsts := self._pairs.keys() & words:
            for at, word in enumerate(words[:-1]):
                if word in firsts:
                    for second, concept in self._pairs[word]:
                        if words[at + 1].startswith(second):
                            found[at] = concept
        return found

    def compact(self, text: str) -> str:
        """The line of concepts of a text whose words are not apart: the known words in it, a gap wherever they do not touch."""
        line, end = [], 0
        for match in self._compact.finditer(text):
            if match.start() - end > 1:
                line.append("." * min(8, (match.start() - end) // 3 + 1))
            line.append(self._words[match[0]])
            end = match.end()
        return "".join(line)

    def _learn(self, word: str) -> str:
        bare = word.rstrip(",:").strip("\"'`()*").replace("\u2019", "'")
        if bare.isalpha() or bare in self._words:
            concepts = self._meaning(bare)
        elif _MARKER.fullmatch(word):
            concepts = "|"
        else:
            concepts = "".join(map(self._meaning, _PART.findall(word))) or "."
            if _OWN_FILE.search(word):
                concepts = "7|" if concepts.endswith("|") else "7"
            if not concepts.strip(".|") and len(word) <= WORD_LIMIT and _DIGITED.search(word) and _NOT_HEX.search(word):
                concepts = "," + concepts[1:]
        return concepts

    def _meaning(self, part: str) -> str:
        if (concept := self._words.get(part)) is not None:
            return concept
        if part[:3] in self._heads:
            for length, stems in self._stems.items():
                if (found := stems.get(part[:length])) is not None:
                    return found
        if part == "@":
            return "E"
        if "://" in part:
            return "8"
        return "." if part[0].isalnum() else "|"


PLAIN = Lexicon(str)


@cache
def leet() -> Lexicon:
    """The lexicon of words whose digits are letters; made when a text first has such a word."""
    return Lexicon(unleet)


_FOREIGN = {plain(word).replace("_", " "): concept for concept, listed in UNSPACED.items() for word in listed.split()}


@cache
def _foreign_words() -> re.Pattern[str]:
    return re.compile(trie([*_FOREIGN, *"。！？؟।.!?"]))


_ADDRESS = re.compile(r"@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,4}")
_FOREIGN_HEADS = {word[0] for word in _FOREIGN if not word.isascii()}


FOREIGN_SCRIPT = re.compile("[\u0370-\u03ff\u0590-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def sentences(text: str) -> list[str]:
    """The words of a text as they stand between spaces; an empty line ends the word before it, and the sentence."""
    return _marked(text).split()


def _marked(text: str) -> str:
    """The text, as long as it was, with a bar where an empty line begins."""
    return text.replace("\n\n", "|\n")


class Places:
    """Where in its text the words of a line of concepts stand; looked for when the first is asked for."""

    def __init__(self, text: str, words: Sequence[str], concepts: Sequence[str]) -> None:
        self._text, self._words, self._concepts = _marked(text), words, concepts
        self._starts: list[int] = []
        self._end = 0

    @cached_property
    def _letters(self) -> list[int]:
        return list(accumulate(map(len, self._concepts)))

    def of_word(self, word: int) -> int:
        """Where a word starts."""
        for earlier in self._words[len(self._starts) : word + 1]:
            self._starts.append(self._text.index(earlier, self._end))
            self._end = self._starts[-1] + len(earlier)
        return self._starts[word]

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Where what the letters from `first` to `last` of the line stand for starts and ends."""
        word = bisect_right(self._letters, last)
        return self.of_word(bisect_right(self._letters, first)), self.of_word(word) + len(self._words[word])


def foreign(text: str) -> tuple[str, list[int]]:
    """The line of concepts of a text in a script without spaces, of the known words alone, and where each of its letters stands."""
    line: list[str] = []
    places: list[int] = []
    end = 0
    for match in _foreign_words().finditer(text) if not _FOREIGN_HEADS.isdisjoint(odd_characters(text)) else ():
        word, start, stop = match[0], match.start(), match.end()
        told = _FOREIGN.get(word, "|")
        if word in _ASCII_MARKS:
            address = _ADDRESS.match(text, start)
            if start < end or (address is None and text[stop : stop + 1].isalnum()):
                continue  # within an address, or a number
            stop = address.end() if address else stop
        if start - end > _FOREIGN_REACH:
            told = "|" + told
        line.append(told)
        places += [start] * len(told)
        end = stop
    return "".join(line), places


_ASCII_MARKS = "@.!?"
_FOREIGN_REACH = 14
"""Characters between two known words that are of one sentence."""

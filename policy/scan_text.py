"""Text as the scan reads it: what hides in it, and the plain form it is matched in.

Owns the tables of characters: invisible ones, confusable ones, digits that stand for letters. Pure; every function is one or
more passes over its text, whatever the text is.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from amem.typed import NamedTuple

INVISIBLE = (
    "\u2800\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that show as nothing, as the inside of a class: default-ignorable code points (Unicode 16) and fillers."""

_SUSPECT = re.compile(f"[{INVISIBLE}\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\U000f0000-\U0010ffff]+")
_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
_MARKS = re.compile("[\u0300-\u036f\u0483-\u0487\u0640\u064b-\u0652\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
"""Marks that combine with letters of any kind; marks that belong to a script of their own are left."""
_PILED = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4,}")
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_SPACING = re.compile("[\u2000-\u200a\u202f\u205f\u00a0]{8,}")
_STYLED = re.compile(
    "[\U0001f1e6-\U0001f1ff]{12,}|(?:[\U0001f1e6-\U0001f1ff] ){6,}"
    "|[\U0001d400-\U0001d7cb]{4,}|[\u24b6-\u24e9]{4,}|[\U0001f130-\U0001f189]{4,}|[\ua730\ua731\u0262\u026a\u0274\u0280\u028f\u029c\u029f\u1d00-\u1d22]{4,}"
)
_STYLES = re.compile("[\U0001f1e6-\U0001f1ff\U0001d400-\U0001d7cb\u24b6-\u24e9\U0001f130-\U0001f189\ua730\ua731\u0262-\u029f\u1d00-\u1d22]")
_SPACES = re.compile("[\u2000-\u200a\u202f\u205f\u00a0]")
_FULLWIDTH = re.compile("[\uff21-\uff3a\uff41-\uff5a]{4,}")
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FLAG = re.compile(
    "\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
"""What follows a black flag in the three flags that are written with tag characters."""
_MIXED = re.compile(
    "(?<![^\\W\\d_])(?:[a-z]{1,30}[\u0370-\u058f\u13a0-\u13ff]{1,30}[a-z]|[\u0370-\u058f\u13a0-\u13ff]{1,30}[a-z]{1,30}[\u0370-\u058f\u13a0-\u13ff])",
    re.IGNORECASE,
)
"""A word that changes its script and changes back: nobody spells that way."""
_NEIGHBOURS = re.compile("[a-z][\u0370-\u058f\u13a0-\u13ff]|[\u0370-\u058f\u13a0-\u13ff][a-z]")

_LOOKALIKES = {
    "a": "аɑαᴀɐ", "b": "Ьƅʙвβ", "c": "сϲᴄɔ", "d": "ԁɗᴅժđ", "e": "еёҽᴇǝεє", "f": "ꜰɟϝ", "g": "ɡցɢƃ", "h": "һհʜɥħн", "i": "іїɩɪᴉıι",
    "j": "јϳᴊɾ", "k": "кᴋʞκ", "l": "ӏⅼʟł", "m": "мᴍɯ", "n": "ոռɴпη", "o": "оοօᴏøσ", "p": "рρᴘ", "q": "ԛգ", "r": "гᴦʀɹ", "s": "ѕꜱ",
    "t": "тτᴛʇŧ", "u": "υսᴜʋцս", "v": "ѵνᴠʌ", "w": "ԝшᴡʍω", "x": "хχ", "y": "уүʏʎγ", "z": "ᴢʐ", "6": "б", "3": "з",
}  # fmt: skip
"""Lower-case letters that look like a Latin one: Cyrillic, Greek, Armenian, small capitals, turned ones (after UTS 39)."""
_PLAIN = str.maketrans({look: latin for latin, looks in _LOOKALIKES.items() for look in looks})
_LEET = str.maketrans("013456789@$!|+€£l", "oieasgtbgasiitesi")
"""Digits and signs as the letters they stand for. `1`, `l`, `!` and `|` all become `i`: the words are looked up in the same form."""


_SPELLED_OUT = re.compile(r"(?<![a-z0-9])[.\-_·/]?(?:[a-z][.\-_·/]){2,80}[a-z]?(?![a-z0-9])")
_SPELLED_LONG = re.compile(r"(?<![a-z0-9])(?:[a-z][.\-_·/]){4}")
"""One word, letter by letter: `i.g.n.o.r.e.`; where one is long, short ones count as well."""
_SPELLED_PART = re.compile(r"[.\-_·/](?:[a-z][.\-_·/]){3}")
"""What a long one holds, and a search finds at once: it begins with a sign."""
_TAG = r"(?:/?[a-z]{1,6}|!--[^>]{0,40})>"
_WITHIN = re.compile(
    r"\*(?<=[a-z].)\*{0,2}(?=[a-z])|_(?<=[a-z].)_(?=[a-z])|~(?<=[a-z].)~(?=[a-z])|=(?<=[a-z ].)\r?\n"
    rf"|<(?<=[a-z].){_TAG}(?:<{_TAG}){{0,3}}(?=[a-z])"
    r"|\"(?<=[a-z].) ?\+ ?[\"'](?=[a-z])|'(?<=[a-z].) ?\+ ?[\"'](?=[a-z])"
)
"""What stands inside a word and is not seen where the text is shown: emphasis, a tag, the seam of two strings.

Each begins with its sign, so that a search passes over the letters."""
_AROUND = re.compile(rf"\*{{1,3}}|<{_TAG}|" r"[\"'] ?\+ ?[\"']")
_WITHIN_LEAST = 2


def mended(low: str) -> Iterator["Piece"]:
    """The pieces of a plain text around what breaks its words apart, without that."""
    broken = "*" in low or "</" in low or "<!--" in low or "+" in low or "__" in low or "~~" in low or "=\n" in low or "=\r" in low
    within = list(_WITHIN.finditer(low)) if broken else []
    for start, end in _around(low, within if len(within) >= _WITHIN_LEAST else ()):
        yield Piece(start, _unspelled(_AROUND.sub("", _WITHIN.sub("", low[start:end]))))
    if _SPELLED_PART.search(low) is not None:
        for start, end in _around(low, _SPELLED_LONG.finditer(low)):
            yield Piece(start, _unspelled(low[start:end]))


def _unspelled(low: str) -> str:
    return _SPELLED_OUT.sub(lambda match: "".join(filter(str.isalpha, match[0])) + " ", low) if _SPELLED_LONG.search(low) else low


class Piece(NamedTuple):
    """A piece of a text, read in another way, and where it starts."""

    start: int
    text: str


_REACH = 240
"""How far around a place the text is read in another way."""


def _around(text: str, places: Iterable[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """The stretches of a text around some places, none of them twice."""
    start = end = 0
    for place in places:
        if place.start() - _REACH > end:
            if end:
                yield start, end
            start = max(0, place.start() - _REACH)
        end = min(len(text), place.end() + _REACH)
    if end:
        yield start, end


class Hidden(NamedTuple):
    """Something that a reader does not see: where it starts and how many characters it is long."""

    start: int
    length: int


def hidden(text: str, odd: set[str]) -> Iterator[Hidden]:
    """What shows as nothing, changes the order of what is shown, or shows as something else; `odd` are the text's odd characters."""
    if not odd:
        return
    for pattern, of in ((_SUSPECT, _SUSPECT), (_PILED, _MARKS), (_SPACING, _SPACES), (_STYLED, _STYLES)):
        if any(map(of.match, odd)):
            for match in pattern.finditer(text):
                if pattern is not _SUSPECT or not _innocent(text, match.start(), match.end()):
                    yield Hidden(match.start(), match.end() - match.start())
    if any("\u0370" <= c <= "\u13ff" for c in odd) and (found := _MIXED.search(text)) is not None:
        yield Hidden(found.start(), found.end() - found.start())
    if any("\uff21" <= c <= "\uff5a" for c in odd) and (found := _FULLWIDTH.search(text)) is not None and not _WIDE.search(text):
        yield Hidden(found.start(), found.end() - found.start())


def odd_characters(text: str) -> set[str]:
    """The characters of a text that are neither printable ASCII nor a plain space."""
    return set(text.encode("utf-8", "surrogatepass").translate(None, _ORDINARY).decode("utf-8", "surrogatepass"))


_ORDINARY = b"\t\n\r\f" + bytes(range(0x20, 0x7F))


def _innocent(text: str, start: int, end: int) -> bool:
    """Whether a run of suspect characters is what its script or an emoji needs."""
    run = text[start:end]
    before, after = text[start - 1 : start], text[end : end + 1]
    if len(run) > 2:
        return before == "\U0001f3f4" and _FLAG.fullmatch(run) is not None
    if run == "\ufeff":
        return start == 0
    if run[0] == "\ufe0f" or run[0] == "\ufe0e":  # how an emoji or a sign is shown; then perhaps joined to the next
        return (
            bool(before)
            and (not before.isalnum() or (before in "0123456789" and after == "\u20e3"))
            and run[1:] in ("", "\u200d", "\ufe0f")
        )
    if run in ("\u200d", "\u200c"):  # joiners: between letters of joining scripts, and in emoji
        return bool(before) and bool(after) and ord(before) > 0x590 and (ord(after) > 0x590 or run == "\u200c")
    if run in ("\u200e", "\u200f", "\u061c"):
        return _RTL.search(text) is not None
    if run == "\u200b":  # words of scripts that put no space between them
        return (bool(before) and "\u0e00" <= before <= "\u109f") or "\u1780" <= before <= "\u17ff"
    return len(run) == 1 and "\U000e0100" <= run <= "\U000e01ef" and "\u3400" <= before <= "\ufaff"


def spoken(text: str) -> str:
    """What the tag characters and variation selectors of a text spell, or an empty text."""
    tags = "".join(chr(ord(c) - 0xE0000) for c in re.findall("[\U000e0020-\U000e007e]", text))
    selectors = re.findall("[\ufe00-\ufe0f\U000e0100-\U000e01ef]", text)
    codes = bytes(ord(c) - 0xFE00 if c < "\ufe10" else ord(c) - 0xE0100 + 16 for c in selectors) if len(selectors) >= 8 else b""
    return tags + ("\n" if tags and codes else "") + codes.decode("latin-1")


def plain(text: str) -> str:
    """The text in lower case, in compatible characters, without what is invisible and without accents."""
    return text.lower() if text.isascii() else _FOREIGN.sub(_fold, text).lower()


_FOREIGN = re.compile("[^\\x00-\\x7f]+")


def _fold(run: re.Match[str]) -> str:
    folded = unicodedata.normalize("NFKD", _INVISIBLE.sub("", run[0]).lower())
    return unicodedata.normalize("NFC", _MARKS.sub("", folded)).translate(_STROKES)


_STROKES = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i", "ð": "d", "þ": "th", "ß": "ss", "æ": "ae", "œ": "oe", "ς": "σ"})
"""Latin letters that stay as they are when accents go; a final sigma is one."""


def latin(text: str, odd: set[str]) -> Iterator[Piece]:
    """The pieces of a plain text around words that mix scripts, with look-alike letters made Latin; `odd` are the text's odd characters."""
    if any("\u0370" <= c <= "\u13ff" for c in odd):
        places = _NEIGHBOURS.finditer(text)
    elif any(map(_TURNED.match, odd)):
        places = _TURNED_RUN.finditer(text)
    else:
        return
    for start, end in _around(text, places):
        yield Piece(start, text[start:end].translate(_PLAIN))


_TURNED = re.compile("[\u0250-\u02af\ua730\ua731\u1d00-\u1d22]")
_TURNED_RUN = re.compile("[\u0250-\u02af\ua730\ua731\u1d00-\u1d22](?:[a-z ]{0,8}[\u0250-\u02af\ua730\ua731\u1d00-\u1d22]){3}")


def unleet(text: str) -> str:
    """A plain text with digits and signs read as letters; look its words up in the same form."""
    return text.translate(_LEET)

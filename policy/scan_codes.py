# ruff: noqa: E501  (a table of patterns)
"""Encoded stretches of a text, decoded: base64 and its kin, escapes, numbers, spaced-out letters, old ciphers.

`stretches` yields what reads as text, to be scanned again, and what is long and reads as nothing. It does not decide. Each
pattern is one pass over the words that can hold it, and the caller bounds how much is decoded in all. Pure.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import accumulate

from amem.policy.scan_memo import Memo
from amem.policy.scan_needles import Needles
from amem.policy.scan_text import latin, spoken
from amem.typed import NamedTuple

OPAQUE_LENGTH = 256
"""An encoded stretch of this many characters that cannot be read is a finding of its own."""
INFLATED_LIMIT = 64 * 1024
_STRETCH_LIMIT = 1 << 20

_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{40,80}(?:\r?\n[ \t]{0,8})){1,20000}[A-Za-z0-9+/_-]{1,80}={0,2}|(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}={0,2}"
)
_BASE64_LEAST = 20
_BASE64_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}={0,2}")
"""One on one line."""
_BASE32 = re.compile(r"(?<![A-Za-z0-9])[A-Z2-7]{24,}={0,6}")
_HEX = re.compile(
    r"(?<![0-9A-Za-z])(?:0x)?[0-9a-fA-F]{24,}(?![0-9A-Za-z])|(?<![0-9A-Za-z])(?:(?:0x|\\x)?(?:[0-9a-fA-F]{2}){1,4}(?:[ ,:;-]{1,2}|(?=\\x))){6,}(?:(?:0x|\\x)?(?:[0-9a-fA-F]{2}){1,4}(?![0-9A-Za-z])|)"
)
_BINARY = re.compile(r"(?<![0-9])(?:[01]{7,8}[ ,\n]?){8,}")
_DECIMAL = re.compile(r"(?<![0-9.])(?:[0-9]{2,3}[ ,;]{1,2}){11,}[0-9]{2,3}(?![0-9.])")
_OCTAL = re.compile(r"(?:\\[0-3]?[0-7]{2}){8,}|(?<![0-9.])(?:[01][0-7]{2}[ ,]){11,}[01][0-7]{2}(?![0-9])")
_MORSE = re.compile(r"(?:[.\-·−_]{1,6}(?: ?[/|] ?| {1,3})){11,}[.\-·−_]{1,6}")
_ASCII85 = re.compile(r"<~[!-u\sz]{16,}~>|(?<!\S)[!-~]{40,}(?!\S)")
_UU = re.compile(r"(?m)(?:(?:^|(?<= ))M[ -`]{60}$\n?){1,2000}(?:^[!-L][ -`]{4,60}$)?")
_DUMP = re.compile(r"(?m)(?:^[0-9a-fA-F]{4,16}:?[ \t]{1,4}(?:[0-9a-fA-F]{2,8}[ \t]{1,2}){1,17}[^\n]{0,40}\n?){2,4000}")
"""Bytes as a dump shows them: an address, their digits, and perhaps their letters."""
_DUMPED = re.compile(r"(?m)^[0-9a-fA-F]{4,16}:?[ \t]{1,4}((?:(?:[0-9a-fA-F]{2}){1,4}[ \t]{1,2}){1,17})")
_BRAILLE = re.compile("[\u2800-\u28ff]{12,}(?:[ \u2800-\u28ff]{0,4000})")
_SPACED = re.compile(r"(?<![^\W_])(?:[^\W_][^\w\n]{1,3}){7,}[^\W_](?![^\W_])|(?<![^\W_])(?:[^\W_]_{1,2}){7,}[^\W_]")
_LONG_WORD = re.compile(r"(?<![^\W_])[^\W_]{26,}")
_JOINED = re.compile(r"(?<![^\W_])[^\W_]{2,20}(?:[_./\\+~*=-][^\W_]{1,20}){4,}")
_NATO = {
    word: word[0]
    for word in [
        "alfa",
        "bravo",
        "charlie",
        "delta",
        "echo",
        "foxtrot",
        "golf",
        "hotel",
        "india",
        "juliett",
        "kilo",
        "lima",
        "mike",
        "november",
        "oscar",
        "papa",
        "quebec",
        "romeo",
        "sierra",
        "tango",
        "uniform",
        "victor",
        "whiskey",
        "xray",
        "yankee",
        "zulu",
    ]
} | {"alpha": "a", "juliet": "j", "x-ray": "x"}
_NATO_RUN = re.compile(rf"(?i)\b(?:(?:{'|'.join(map(re.escape, _NATO))})\b[\s,.-]{{1,3}}){{7,}}(?:{'|'.join(map(re.escape, _NATO))})\b")
_MORSE_CODE = dict(
    zip(
        [
            ".-",
            "-...",
            "-.-.",
            "-..",
            ".",
            "..-.",
            "--.",
            "....",
            "..",
            ".---",
            "-.-",
            ".-..",
            "--",
            "-.",
            "---",
            ".--.",
            "--.-",
            ".-.",
            "...",
            "-",
            "..-",
            "...-",
            ".--",
            "-..-",
            "-.--",
            "--..",
            "-----",
            ".----",
            "..---",
            "...--",
            "....-",
            ".....",
            "-....",
            "--...",
            "---..",
            "----.",
        ],
        "abcdefghijklmnopqrstuvwxyz0123456789",
        strict=True,
    )
)
_BRAILLE_CODE = dict(zip("⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵⠀", "abcdefghijklmnopqrstuvwxyz ", strict=True))
_ESCAPE = (
    r"(?:%[0-9a-fA-F]{2}|&(?:amp;)?#(?:[xX][0-9a-fA-F]{1,8}|[0-9]{1,8});?|&[lg]t;|\\u\{[0-9a-fA-F]{1,6}\}|\\U[0-9a-fA-F]{8}|\\0[0-9a-fA-F]{5}|\\u[0-9a-fA-F]{4,6}|\\x[0-9a-fA-F]{2}|\\[0-9a-fA-F]{2,6}(?=\s)"
    r"|U\+[0-9a-fA-F]{4,6}|=[0-9A-F]{2})"
)
_ESCAPED = re.compile(rf"{_ESCAPE}(?:[^\\&%=\n]{{0,24}}?{_ESCAPE}){{2,4000}}[^\\&%=\n]{{0,40}}")
_PROGRAM = re.compile(r"(?:chr\(\d{2,3}\)[+.,& ]{0,3}){6,4000}")
_WORD_BEFORE = re.compile(r"\w{1,24}$")
_SIGNS_OF_ESCAPES = ("%", "&#", "&amp;#", "\\", "=", "U+")
_SEAM = re.compile(r"[\"'`]\s{0,4}[+,.&\\]\s{0,4}[\"'`]|\n[ \t]{0,8}[>|#*/]{1,3}[ \t]{0,4}")
"""What stands between two parts of a string, or of a quotation."""
_SEAMED = re.compile(rf"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{{4,80}}(?:(?:{_SEAM.pattern})[A-Za-z0-9+/_=-]{{2,80}}){{1,4000}}")
_NUMBERS = re.compile(r"\d{2,3},\d{2,3},\d{2,3},")
_NAMED = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&nbsp;": " "}
_MEDIA = (
    b"\x30\x82",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"RIFF",
    b"wOFF",
    b"wOF2",
    b"%PDF",
    b"\x00\x00\x01\x00",
    b"<svg",
    b"OggS",
    b"ID3",
    b"\x00\x01\x00\x00",
    b"OTTO",
)
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


_ARCHIVES = (b"BZh", b"\xfd7zXZ", b"PK\x03\x04", b"7z\xbc\xaf", b"\x28\xb5\x2f\xfd", b"Rar!")
"""How an archive begins: what is packed so has no place in a note, however short."""
_ARCHIVES_BEGIN = tuple(base64.b64encode(mark)[: len(mark) * 4 // 3].decode() for mark in _ARCHIVES)


class Stretch(NamedTuple):
    """An encoded stretch: where it starts in the text, and what it reads as."""

    start: int
    text: str
    """Empty for a long stretch that reads as nothing."""
    length: int = 0
    """Of one that reads as nothing."""
    deeper: bool = True
    """Whether more may be encoded within it."""


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


def stretches(of: Cut, outermost: bool) -> Iterator[Stretch]:
    """The encoded stretches of a text: what reads as text when decoded, and what is long and reads as nothing.

    The old ciphers are tried on the outermost text, and on what is encoded in it.
    """
    if of.odd:
        if any("\ufe00" <= c <= "\ufe0f" or c >= "\U000e0000" for c in of.odd) and (said := spoken(of.text)):
            yield Stretch(0, said, deeper=False)
        for piece in latin(of.low, of.odd):
            yield Stretch(piece.start, piece.text, deeper=False)
        if any("\u2800" <= c <= "\u28ff" for c in of.odd):
            yield from _each(of.text, 0, ((_BRAILLE, _from_braille),))
    yield from _of_long_words(of)
    if any(sign in of.text for sign in _SIGNS_OF_ESCAPES):
        for match in _ESCAPED.finditer(of.text):
            before = _WORD_BEFORE.search(of.text, max(0, match.start() - 24), match.start())
            yield Stretch(match.start(), _unescape((before[0] if before else "") + match[0]))
    if "\nM" in of.text or " M" in of.text:
        yield from _each(of.text, 0, ((_UU, _from_uu),))
    if "0010" in of.text:
        yield from _each(of.text, 0, ((_DUMP, _from_dump),))
    if "chr(" in of.text:
        yield from _each(of.text, 0, ((_PROGRAM, _unescape),))
    if _SEAM.search(of.text):
        for match in _SEAMED.finditer(of.text):
            if (read := _from_alphabet(_SEAM.sub("", match[0]).strip("\"'`"))) is not None:
                yield Stretch(match.start(), read)
    for start, joined in _even(of):
        if _dense(joined) and (read := _from_alphabet(joined)) is not None:
            yield Stretch(start, read)
    if any(run in of.shape for run in _RUNS_BEGIN):
        bounds = list(accumulate(map(len, _WORD.split(of.text))))  # where each word starts and ends, one after the other
        for found in _RUNS.finditer(of.shape) if len(bounds) == 2 * len(of.shape) + 1 else ():
            start, end = bounds[2 * found.start()], bounds[2 * found.end() - 1]
            yield from _each(of.text[start:end], start, _OF_RUNS[found.lastgroup or ""])
    for word in sorted(of.there & NEEDLES) if outermost else ():
        text = of.text if len(of.text) == len(of.low) else of.low
        at, end = of.low.find(word), 0
        while at >= 0:
            start, end = max(end, at - _CIPHER_REACH), at + 2 * _CIPHER_REACH
            for cipher in _CIPHERS[word]:
                yield Stretch(start, cipher(text[start:end]), deeper=False)
            at = of.low.find(word, end)


def opaque(of: Cut) -> Iterator[Stretch]:
    """The long stretches of a text that read as nothing."""
    return (stretch for stretch in _of_long_words(of) if stretch.length)


def _even(of: Cut) -> Iterator[tuple[int, str]]:
    """Base64 broken into groups of one length, shorter than a line: where it starts, and the groups joined."""
    words: list[str] = []
    place = 0
    for found in _EVEN.finditer("".join(map(chr, map(len, of.words)))):
        words = words or of.text.split()
        if len(words) != len(of.words):
            return
        first, last = found.span()
        if last < len(words) and len(words[last]) < len(words[first]) and not words[last - 1].endswith("="):
            last += 1
        joined = "".join(words[first:last])
        if _GROUPS.fullmatch(joined):
            place = of.text.find(words[first], place)
            yield place, joined


def _of_long_words(of: Cut) -> Iterator[Stretch]:
    """What long words spell: each alone, and what is broken into lines of one length together."""
    lines: list[Word] = []
    for start, word in of.long_words:
        if lines and not (len(lines[-1].text) >= _LINE and start - lines[-1].start - len(lines[-1].text) <= 10):
            yield from _of_lines(of.text, lines)
            lines = []
        if len(word) >= _LINE or lines:
            lines.append(Word(start, word))
        if _HEX_ALONE.fullmatch(bare := word.rstrip(_TRAILING)) and not _BINARY.match(bare):
            yield from _of_alphabet(bare, start)
            continue
        for run in _BASE64_RUN.finditer(word) if len(word) >= _BASE64_LEAST else ():
            yield from _of_alphabet(run[0], start + run.start())
        if word[0] in "0123456789\\" or (len(word) >= _LINE and _NUMBERS.search(word)):
            yield from _each(word, start, _OF_NUMBERS)
        elif word[0] in _MARKS_OF_MORSE:
            yield from _each(word, start, ((_MORSE, _from_morse),))
        if len(word) >= _LINE:
            yield from _each(word, start, ((_ASCII85, _from_ascii85),))
    yield from _of_lines(of.text, lines)


def _of_lines(text: str, lines: list[Word]) -> Iterator[Stretch]:
    if len(lines) > 1:
        start, end = lines[0].start, lines[-1].start + len(lines[-1].text)
        block = text[start:end]
        for run in _BASE64.finditer(block):
            if "\n" in run[0]:
                yield from _of_alphabet(run[0], start + run.start())


def _of_alphabet(run: str, start: int) -> Iterator[Stretch]:
    """A run in the letters of base64: what it reads as, or that it is long and reads as nothing."""
    if (read := _from_alphabet(run)) is not None:
        yield Stretch(start, read)
    elif _opaque(run):
        yield Stretch(start, "", length=len(run), deeper=False)


def _opaque(run: str) -> bool:
    """Whether a run that reads as nothing is an archive, or is long and no picture."""
    if len(run) < OPAQUE_LENGTH and not run.startswith(_ARCHIVES_BEGIN):
        return False
    data = _base64_bytes(run) or b""
    return data.startswith(_ARCHIVES) or (len(run) >= OPAQUE_LENGTH and _dense(run) and not data.startswith(_MEDIA))


def _dense(run: str) -> bool:
    """Whether a run that reads as nothing has what encoded bytes have: letters of both cases and digits, or sixteen digits."""
    if _HEX_ALONE.fullmatch(run):
        return len(run) >= 2 * OPAQUE_LENGTH and len(set(run)) > 8
    return any(map(str.isdigit, run)) and any(map(str.isupper, run)) and any(map(str.islower, run))


def run_together(of: Cut) -> Iterator[str]:
    """The stretches of a plain text whose words do not stand apart: spelled out, joined, or in one."""
    for match in _SPELLED.finditer(of.shape):
        if 2 * match[0].count("1") >= len(match[0]):
            yield _bare("".join(of.words[match.start() : match.end()]))
    for match in _LONG_WORDS.finditer(of.shape):
        word = of.words[match.start()].rstrip(_TRAILING)
        if word.isalnum():
            if len(word) >= 26 and not _HEX_ALONE.fullmatch(word):
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
    """`W` a wide word, `L` a long one, `1` one letter, `0` a number or a code, `-` marks only, `o` a word of the spelling alphabet, `b` another of eight
    characters and more, `.` else."""
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
    return "o" if word.strip(".,-") in _NATO else "b" if len(word) >= 8 else "."


_SHAPES = Memo(_shape)
_LONG = 16
_WIDE_WORD = 40
_LINE = 40
_CIPHER_REACH = 150
_WORD = re.compile(r"(\S+)")
_TRAILING = ".,;:)\"'"
_NOT_HEX = re.compile(r"0x|\\x|[^0-9a-fA-F]")
_HEX_ALONE = re.compile(r"(?:0x)?[0-9a-fA-F]+")
_CODE = re.compile(r"(?:0x|\\x|\\u|u\+|&#x?|\\)?[0-9a-f]{2,8}[,;]{0,2}")
_GROUPS = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_RUNS = re.compile(r"(?P<codes>0{8,})|(?P<marks>-{8,})|(?P<names>o{7,})")
_RUNS_BEGIN = ("0" * 8, "-" * 8, "o" * 7)
_EVEN = re.compile("([\x08-\x27])\\1{2,}|([\x04-\x07])\\2{5,}")
"""Lengths of words of which many stand in a row: `chr` of a length is a letter of the pattern."""
_BETWEEN = re.compile(r"[\W_]")
_SPELLED = re.compile(r"[1\-]{8,}")
_LONG_WORDS = re.compile(r"[WL]")


def _each(text: str, start: int, decoders: "tuple[Decoder, ...]") -> Iterator[Stretch]:
    for pattern, decode in decoders:
        for match in pattern.finditer(text):
            if (read := decode(match[0])) is not None:
                yield Stretch(start + match.start(), read)


def _readable(data: bytes) -> str | None:
    """The text of some bytes when they are one: printable, and with the spaces or the letters that text has."""
    if len(data) < 8:
        return None
    if data.startswith((b"\x1f\x8b", b"\x78")):
        data = _inflated(data, 47)
    for coding in ("utf-8", "utf-16-le", "utf-16-be") if 3 * data.count(0) >= len(data) else ("utf-8",):
        try:
            text = data.decode(coding)
        except UnicodeDecodeError:
            continue
        lettered = sum(map(str.isalpha, text[:400])) * 2 >= len(text[:400]) or _HEX_ALONE.fullmatch(text) is not None
        if lettered and text.replace("\n", " ").replace("\t", " ").replace("\r", " ").isprintable():
            return text
    return None


def _inflated(data: bytes, window: int) -> bytes:
    try:
        return zlib.decompressobj(window).decompress(data, INFLATED_LIMIT)
    except zlib.error:
        return b""


def _base64_bytes(run: str) -> bytes | None:
    packed = "".join(run.split()).rstrip("=").replace("-", "+").replace("_", "/")[:_STRETCH_LIMIT]
    packed = packed[: len(packed) - 1] if len(packed) % 4 == 1 else packed
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4))
    except (binascii.Error, ValueError):
        return None


def _from_alphabet(run: str) -> str | None:
    """A run in the letters of base64: it may be in those of hexadecimal or base32 alone."""
    if _HEX_ALONE.fullmatch(run):
        return _from_hex(run)
    if _BASE32.fullmatch(run.upper()) and (read := _from_base32(run.upper())) is not None:
        return read
    data = _base64_bytes(run)
    if data is None or (read := _readable(data)) is not None:
        return None if data is None else read
    if not _dense(run):
        return None
    return _readable(_inflated(data, -15)) or _readable(_base64_bytes(run[::-1].lstrip("=")) or b"")


def _from_base32(run: str) -> str | None:
    packed = run.rstrip("=")[:_STRETCH_LIMIT]
    try:
        return _readable(base64.b32decode(packed + "=" * (-len(packed) % 8)))
    except (binascii.Error, ValueError):
        return None


def _from_hex(run: str) -> str | None:
    digits = _NOT_HEX.sub("", run)[:_STRETCH_LIMIT]
    return _readable(bytes.fromhex(digits[: len(digits) & ~1]))


def _from_binary(run: str) -> str | None:
    groups = re.findall(r"[01]{7,8}", run) if re.search(r"[ ,\n]", run) else re.findall(r"[01]{8}", run)
    return _readable(bytes(int(group, 2) for group in groups))


def _from_decimal(run: str) -> str | None:
    codes = [int(code) for code in re.findall(r"[0-9]+", run)]
    return _readable(bytes(codes)) if max(codes) < 256 else None


def _from_octal(run: str) -> str | None:
    codes = [int(code, 8) for code in re.findall(r"[0-7]{2,3}", run)]
    return _readable(bytes(codes)) if max(codes) < 256 else None


def _from_morse(run: str) -> str | None:
    marks = run.replace("·", ".").replace("−", "-").replace("_", "-")
    words = re.split(r" ?[/|] ?| {3}", marks)
    letters = [[_MORSE_CODE.get(mark, "") for mark in word.split()] for word in words]
    text = " ".join("".join(word) for word in letters)
    return text if len(text) >= 8 else None


def _from_ascii85(run: str) -> str | None:
    if not run.startswith("<~") and 12 * len(re.findall(r"[!\"#$&'()*+,;<=>?@\[\]^]", run)) < len(run):
        return None  # an address or a path
    try:
        return _readable(base64.a85decode(run.encode(), adobe=run.startswith("<~")))
    except (ValueError, binascii.Error):
        try:
            return _readable(base64.b85decode(run.encode()))
        except (ValueError, binascii.Error):
            return None


def _from_uu(run: str) -> str | None:
    lines = [line for line in run.split("\n") if line and not line.startswith(("begin ", "end", "`"))]
    try:
        return _readable(b"".join(binascii.a2b_uu(line) for line in lines))
    except binascii.Error:
        return None


def _from_dump(run: str) -> str | None:
    return _from_hex("".join(_DUMPED.findall(run)))


def _from_braille(run: str) -> str | None:
    return "".join(_BRAILLE_CODE.get(dots, " ") for dots in run)


def _from_nato(run: str) -> str | None:
    return "".join(_NATO[word] for word in re.findall(r"x-ray|[a-z]+", run.lower()) if word in _NATO)


def _unescape(text: str) -> str:
    """Percent, entity, unicode, quoted-printable and program escapes as what they stand for."""
    for name, character in _NAMED.items():
        text = text.replace(name, character)
    text = re.sub(r"(?:(?:%|=|\\x)[0-9a-fA-F]{2})+", lambda run: _octets(run[0]), text)
    text = re.sub(r"[+.& ]{0,3}chr\((\d{2,3})\)", lambda code: _character(code[1], 10), text)
    text = re.sub(r"\\(?:U|(?=0))([0-9a-fA-F]{8}|0[0-9a-fA-F]{5})", lambda code: _character(code[1], 16), text)
    text = re.sub(r"&#([xX]?)((?<=[xX])[0-9a-fA-F]{1,8}|[0-9]{1,8});?", lambda code: _character(code[2], 16 if code[1] else 10), text)
    return re.sub(r"(?:\\u?\{?|U\+)([0-9a-fA-F]{2,6})\}?\s?", lambda code: _character(code[1], 16), text)


def _octets(run: str) -> str:
    return bytes.fromhex(re.sub(r"[%=]|\\x", "", run)).decode("utf-8", "replace")


def _character(digits: str, base: int) -> str:
    try:
        code = int(digits, base)
    except ValueError:
        return " "
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else " "


Decoder = tuple[re.Pattern[str], Callable[[str], str | None]]
_OF_NUMBERS: tuple[Decoder, ...] = ((_BINARY, _from_binary), (_DECIMAL, _from_decimal), (_OCTAL, _from_octal), (_HEX, _from_hex))
_OF_RUNS: dict[str, tuple[Decoder, ...]] = {
    "codes": _OF_NUMBERS,
    "marks": ((_MORSE, _from_morse),),
    "names": ((_NATO_RUN, _from_nato),),
}
_MARKS_OF_MORSE = ".-·−_"


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
_PIVOTS = (
    "instruction",
    "previous",
    "system",
    "password",
    "reveal",
    "assistant",
    "secret",
    "ignore",
    "forget",
    "credential",
    "directive",
    "guideline",
    "override",
    "database",
    "customer",
    "attacker",
    "conversation",
    "disregard",
)
_CIPHERS: dict[str, tuple[Callable[[str], str], ...]] = {
    **{_shift(by)(word): (_shift(26 - by),) for by in range(1, 26) for word in _PIVOTS},
    **{_rot47(form).lower(): (_rot47,) for word in _PIVOTS for form in (word, word.capitalize())},
    **{_atbash(word): (_atbash,) for word in _PIVOTS},
    **{_backwards(word): (_backwards, _words_backwards) for word in _PIVOTS},
}
"""Old ciphers, by how words that an attack can hardly do without look in them."""
NEEDLES = frozenset(_CIPHERS)

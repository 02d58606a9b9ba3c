# ruff: noqa: E501  (a table of patterns)
"""What an encoded run of characters reads as: base64 and its kin, escapes, numbers, spelling alphabets.

Each `Decoder` is how a run looks and what it is read by. They say what one run reads as; where runs stand in a text is
`scan_codes`'s. What is decoded is bounded. Pure.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Callable

from amem.typed import NamedTuple

OPAQUE_LENGTH = 256
"""An encoded stretch of this many characters that cannot be read is a finding of its own."""
INFLATED_LIMIT = 64 * 1024
"""Bytes that a packed run unpacks to at most."""
_STRETCH_LIMIT = 1 << 20
"""Characters of a run that are decoded at most."""
HEX_ALONE = re.compile(r"(?:0x)?[0-9a-fA-F]+")
_NOT_HEX = re.compile(r"0x|\\x|[^0-9a-fA-F]")
_BASE32 = re.compile(r"(?<![A-Za-z0-9])[A-Z2-7]{24,}={0,6}")
_MORSE_SIGNS = """.- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --..
    ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----."""
_MORSE_CODE = dict(zip(_MORSE_SIGNS.split(), "abcdefghijklmnopqrstuvwxyz0123456789", strict=True))
_SPELLED = """alfa bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa quebec romeo
    sierra tango uniform victor whiskey xray yankee zulu"""
SPELLING = {word: word[0] for word in _SPELLED.split()} | {"alpha": "a", "juliet": "j", "x-ray": "x"}
_BRAILLE_CODE = dict(zip("⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵⠀", "abcdefghijklmnopqrstuvwxyz ", strict=True))
_DUMPED = re.compile(r"(?m)^[0-9a-fA-F]{4,16}:?[ \t]{1,4}((?:(?:[0-9a-fA-F]{2}){1,4}[ \t]{1,2}){1,17})")
_NAMED = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&nbsp;": " "}
_MEDIA = (
    b"\x30\x82", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"wOFF", b"wOF2", b"%PDF",
    b"\x00\x00\x01\x00", b"<svg", b"OggS", b"ID3", b"\x00\x01\x00\x00", b"OTTO",
)  # fmt: skip
"""How a picture, a sound or a font begins."""
_ARCHIVES = (b"BZh", b"\xfd7zXZ", b"PK\x03\x04", b"7z\xbc\xaf", b"\x28\xb5\x2f\xfd", b"Rar!")
"""How an archive begins: what is packed so has no place in a note, however short."""
_ARCHIVES_BEGIN = tuple(base64.b64encode(mark)[: len(mark) * 4 // 3].decode() for mark in _ARCHIVES)


class Decoder(NamedTuple):
    """How a run looks, and what it is read by: None when it is no text."""

    pattern: re.Pattern[str]
    read: Callable[[str], str | None]


def from_alphabet(run: str) -> str | None:
    """A run in the letters of base64: it may be in those of hexadecimal or base32 alone."""
    if HEX_ALONE.fullmatch(run):
        return _from_hex(run)
    if _BASE32.fullmatch(run.upper()) and (read := _from_base32(run.upper())) is not None:
        return read
    data = _base64_bytes(run)
    if data is None or (read := _readable(data)) is not None:
        return None if data is None else read
    if not is_dense(run):
        return None
    return _readable(_inflated(data, -15)) or _readable(_base64_bytes(run[::-1].lstrip("=")) or b"")


def is_opaque(run: str) -> bool:
    """Whether a run that reads as nothing is an archive, or is long and no picture."""
    if len(run) < OPAQUE_LENGTH and not run.startswith(_ARCHIVES_BEGIN):
        return False
    data = _base64_bytes(run) or b""
    return data.startswith(_ARCHIVES) or (len(run) >= OPAQUE_LENGTH and is_dense(run) and not data.startswith(_MEDIA))


def is_dense(run: str) -> bool:
    """Whether a run that reads as nothing has what encoded bytes have: letters of both cases and digits, or sixteen digits."""
    if HEX_ALONE.fullmatch(run):
        return len(run) >= 2 * OPAQUE_LENGTH and len(set(run)) > 8
    return any(map(str.isdigit, run)) and any(map(str.isupper, run)) and any(map(str.islower, run))


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
        lettered = sum(map(str.isalpha, text[:400])) * 2 >= len(text[:400]) or HEX_ALONE.fullmatch(text) is not None
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
    return "".join(SPELLING[word] for word in re.findall(r"x-ray|[a-z]+", run.lower()) if word in SPELLING)


def unescape(text: str) -> str:
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


BINARY = Decoder(re.compile(r"(?<![0-9])(?:[01]{7,8}[ ,\n]?){8,}"), _from_binary)
DECIMAL = Decoder(re.compile(r"(?<![0-9.])(?:[0-9]{2,3}[ ,;]{1,2}){11,}[0-9]{2,3}(?![0-9.])"), _from_decimal)
OCTAL = Decoder(re.compile(r"(?:\\[0-3]?[0-7]{2}){8,}|(?<![0-9.])(?:[01][0-7]{2}[ ,]){11,}[01][0-7]{2}(?![0-9])"), _from_octal)
HEX = Decoder(
    re.compile(
        r"(?<![0-9A-Za-z])(?:0x)?[0-9a-fA-F]{24,}(?![0-9A-Za-z])|(?<![0-9A-Za-z])(?:(?:0x|\\x)?(?:[0-9a-fA-F]{2}){1,4}(?:[ ,:;-]{1,2}|(?=\\x))){6,}(?:(?:0x|\\x)?(?:[0-9a-fA-F]{2}){1,4}(?![0-9A-Za-z])|)"
    ),
    _from_hex,
)
MORSE = Decoder(re.compile(r"(?:[.\-·−_]{1,6}(?: ?[/|] ?| {1,3})){11,}[.\-·−_]{1,6}"), _from_morse)
NATO = Decoder(
    re.compile(rf"(?i)\b(?:(?:{'|'.join(map(re.escape, SPELLING))})\b[\s,.-]{{1,3}}){{7,}}(?:{'|'.join(map(re.escape, SPELLING))})\b"),
    _from_nato,
)
BRAILLE = Decoder(re.compile("[\u2800-\u28ff]{12,}(?:[ \u2800-\u28ff]{0,4000})"), _from_braille)
ASCII85 = Decoder(re.compile(r"<~[!-u\sz]{16,}~>|(?<!\S)[!-~]{40,}(?!\S)"), _from_ascii85)
UU = Decoder(re.compile(r"(?m)(?:(?:^|(?<= ))M[ -`]{60}$\n?){1,2000}(?:^[!-L][ -`]{4,60}$)?"), _from_uu)
DUMP = Decoder(
    re.compile(r"(?m)(?:^[0-9a-fA-F]{4,16}:?[ \t]{1,4}(?:[0-9a-fA-F]{2,8}[ \t]{1,2}){1,17}[^\n]{0,40}\n?){2,4000}"),
    _from_dump,
)
"""Bytes as a dump shows them: an address, their digits, and perhaps their letters."""
PROGRAM = Decoder(re.compile(r"(?:chr\(\d{2,3}\)[+.,& ]{0,3}){6,4000}"), unescape)
NUMBERS = (BINARY, DECIMAL, OCTAL, HEX)

"""How bytes may spell a text: in which characters, escaped, in an alphabet of fewer signs, packed; and one within another. Pure.

The one table of spellings that an erasure knows. Each row finds its stretches and says what they read as; what it reads is looked at in
turn. The work is bounded: what is read from a file is at most a multiple of the file, or the file is said not to be looked at.
"""

import base64
import binascii
import bz2
import heapq
import html
import lzma
import quopri
import re
import string
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from urllib.parse import unquote_to_bytes

from amem.typed import Any

DEEPEST = 4
"""Spellings within spellings that are undone: base64 of gzip in an escaped string is three."""
_FREE_BYTES = 16 << 20
_RATIO = 64
"""So much may be read from a file: the first bytes of it for nothing, and then so many times the file."""
_TRY_BYTES = 512
"""What an attempt to unpack costs, whatever comes of it."""
_STEP_BYTES = 1 << 12
"""So much goes in and comes out of an unpacker at a time: what came out together with a fault is lost."""
_SPARSE = 64
"""Text in characters of two bytes has a NUL in so many bytes at least, of one space; where it has no mark at its beginning."""
_LEAST = 12
"""Bytes that a stretch must spell: no passage is shorter."""


class Unread(Exception):
    """There is more in it than is looked at."""


def readings(data: bytes | str) -> Iterator[str]:
    """Everything that the bytes, or the text, can be read as. Raises Unread where that is more than is looked at."""
    yield from _read(data, 0, _Bound(max(_FREE_BYTES, _RATIO * len(data))))


def escaped(text: str) -> str:
    """The text with escapes undone: of JSON and other quoted strings however deep, of addresses, markup and mail."""
    if "\\" in text:
        text = _BACKSLASHED.sub(_character, _BYTES.sub(_bytes, text))
    if "&" in text:
        text = html.unescape(text)
    if "%" in text:
        text = unquote_to_bytes(_PERCENT_U.sub(_character, text).encode("utf-8", "replace")).decode("utf-8", "replace")
    if "=" in text and _QUOTED.search(text):
        text = quopri.decodestring(text.encode("utf-8", "replace")).decode("utf-8", "replace")
    return paired(text)


def paired(text: str) -> str:
    """The text with the halves of characters beyond the first plane joined, as JSON escapes them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _HALF.search(text) else text


class _Bound:
    """What may still be read."""

    def __init__(self, left: int) -> None:
        self._left = left

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise Unread


def _read(data: bytes | str, depth: int, bound: _Bound) -> Iterator[str]:
    for text in (data,) if isinstance(data, str) else _texts(data):
        yield text
        if depth == DEEPEST:
            continue
        if (plain := escaped(text)) != text:
            bound.spend(len(plain))
            yield from _read(plain, depth + 1, bound)
        for pattern, undo in SPELLINGS:
            inner = b"\n".join(undo([match[0] for match in pattern.finditer(text)]))
            if inner:
                bound.spend(len(inner))
                yield from _read(inner, depth + 1, bound)
    if depth < DEEPEST and isinstance(data, bytes):
        for inner in _packed(data, bound):
            yield from _read(inner, depth + 1, bound)


def _texts(data: bytes) -> Iterator[str]:
    """The bytes as text, or the stretches of them that are text: of the usual characters, and of those of two or four bytes."""
    try:
        yield data.decode()
    except UnicodeDecodeError:
        yield "\n".join(_STRETCH.findall(data.decode("utf-8", "replace")))
        if len(data.translate(None, _PRINTED)) < len(data) // 8:  # of a page of old: a byte a character
            yield data.decode("latin-1")
    if b"\0" in data and (found := _SPREAD.findall(data)):
        yield b"\n".join(found).replace(b"\0", b"").decode("ascii")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or data.count(0) > len(data) // _SPARSE:
        for start in (0, 1):
            for order in ("utf-16-le", "utf-16-be"):
                yield _RUBBISH.sub("\n", data[start:].decode(order, "replace"))


def _packed(data: bytes, bound: _Bound) -> Iterator[bytes]:
    """What is packed in the bytes, wherever a member begins."""
    end = 0
    for start, kind in heapq.merge(*(_begins(data, magic, kind) for magic, kind in _MEMBERS)):
        if start < end:  # within one that was unpacked
            continue
        bound.spend(_TRY_BYTES)
        if kind == "zip":  # the header of a member: the lengths of its name and of what else stands before it
            start += 30 + sum(int.from_bytes(data[at : at + 2], "little") for at in (start + 26, start + 28))
        found, end = _unpacked(_UNPACKERS[kind](), data, start, bound)
        yield found


def _begins(data: bytes, magic: bytes, kind: str, step: int = 1) -> Iterator[tuple[int, str]]:
    at = data.find(magic)
    while at >= 0:
        yield at, kind
        at = data.find(magic, at + step)


def _unpacked(unpacker: Any, data: bytes, start: int, bound: _Bound) -> tuple[bytes, int]:
    """What a member packs, as far as it holds, and where it ends; 0 of one that does not."""
    pieces, at, step = [], start, _TRY_BYTES
    try:
        while not unpacker.eof and at < len(data):
            fed = data[at : at + step]
            at += len(fed)
            if not isinstance(unpacker, _Zstd):  # a block of four bytes can stand for 128 KB, and it has no limit for what comes out
                step = min(2 * step, _STEP_BYTES)
            while True:
                piece = unpacker.decompress(fed, _STEP_BYTES)
                pieces.append(piece)
                bound.spend(len(piece))
                fed = getattr(unpacker, "unconsumed_tail", b"")
                if unpacker.eof or not (fed or not getattr(unpacker, "needs_input", True)):
                    break
    except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError):
        return b"".join(pieces), 0
    return b"".join(pieces), at - len(unpacker.unused_data) if unpacker.eof else 0


class _Zstd:
    """zstd as the others are: its faults are ValueErrors."""

    def __init__(self) -> None:
        import zstandard

        self._inner: Any = zstandard.ZstdDecompressor().decompressobj()
        self._fault: type[Exception] = zstandard.ZstdError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def decompress(self, data: bytes, limit: int) -> bytes:
        try:
            piece: bytes = self._inner.decompress(data)
        except self._fault as error:
            raise ValueError(str(error)) from error
        return piece


_UNPACKERS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(31),
    "zlib": zlib.decompressobj,
    "zip": lambda: zlib.decompressobj(-15),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
    "zstd": _Zstd,
}
_MEMBERS = (
    (b"\x1f\x8b\x08", "gzip"), (b"PK\x03\x04", "zip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x78\x01", "zlib"), (b"\x78\x5e", "zlib"), (b"\x78\x9c", "zlib"), (b"\x78\xda", "zlib"),
)  # fmt: skip
"""How a member begins, wherever it stands."""
_ZLIB = frozenset(magic for magic, kind in _MEMBERS if kind == "zlib")


def _of_hex(runs: list[str]) -> Iterator[bytes]:
    for run in runs:
        digits = re.sub(r"0x|\W|_", "", run)
        for start in (0, 1):
            yield bytes.fromhex(digits[start : len(digits) - (len(digits) - start) % 2])


def _of_dump(runs: list[str]) -> Iterator[bytes]:
    """Listings of bytes as `xxd`, `od` and `hexdump` print them: an address, the bytes, and what they look like."""
    for lines in runs:
        found = (re.sub(r"\s", "", one) for one in _DUMPED.findall(lines))
        yield bytes.fromhex("".join(digits for digits in found if len(digits) % 2 == 0))


def _of_base64(runs: list[str]) -> Iterator[bytes]:
    # It may begin anywhere in the run: what stands before it can be of the same alphabet.
    for run in runs:
        run = "".join(run.split()).replace("-", "+").replace("_", "/")
        for start in range(4):
            yield binascii.a2b_base64(_whole(run[start:], 4, (1,)))


def _of_base32(runs: list[str]) -> Iterator[bytes]:
    for part in (part for run in runs for part in _ONE_CASE.findall("".join(run.split()))):
        for start in range(8):
            yield base64.b32decode(_whole(part[start:].upper(), 8, (1, 3, 6)))


def _of_uu(runs: list[str]) -> Iterator[bytes]:
    for lines in runs:
        pieces = []
        for line in lines.splitlines():
            with suppress(binascii.Error):
                pieces.append(binascii.a2b_uu(line))
        yield b"".join(pieces)


def _of_base85(alphabet: str) -> Callable[[list[str]], Iterator[bytes]]:
    """How runs of five signs for four bytes read, beginning anywhere in them; all runs at once: Python alone is slow at it."""
    values, last = bytes.maketrans(alphabet.encode(), bytes(range(85))), alphabet[-1]
    short = {"z": alphabet[0] * 5, "y": "+<VdL"} if alphabet == _ASCII85 else {}

    def undo(runs: list[str]) -> Iterator[bytes]:
        whole = ["".join(run.split()) for run in runs]
        for sign, group in short.items():
            whole = [run.replace(sign, group) for run in whole]
        for start in range(5) if whole else ():
            parts = [run[start:] for run in whole]
            read = _fours("".join(part + last * (-len(part) % 5) for part in parts).encode().translate(values))
            at, made = 0, list[bytes]()
            for part in parts:
                groups, more = divmod(len(part), 5)
                made.append(read[at : at + 4 * groups + max(more - 1, 0)])
                at += 4 * (groups + (more > 0))
            yield from _likely(b"\n".join(made))
            yield from (one for one in made if one[:2] in _ZLIB)

    return undo


def _likely(data: bytes) -> Iterator[bytes]:
    """What of the bytes can be text, with what stands beside it, or packed: most runs of many signs are no base 85, and read as noise."""
    kinds = data.translate(_KINDS)
    found = sorted(at for text in _TEXT for at, _ in _begins(kinds, text, "", len(text)))
    start = end = 0
    for at in found:
        if at > end + _BESIDE_BYTES:
            yield data[start:end]
            start = max(at - _BESIDE_BYTES, 0)
        end = at + _BESIDE_BYTES
    yield data[start:end]
    if found := [at for magic, kind in _MEMBERS if kind != "zlib" and (at := data.find(magic)) >= 0]:
        yield data[min(found) :]


def _fours(digits: bytes) -> bytes:
    """Four bytes for each five digits of base 85, one number of eight bytes a group: added up as one large number."""
    total, size = 0, len(digits) // 5 * 8
    for place in range(5):
        lanes = bytearray(size)
        lanes[7::8] = digits[place::5]
        total = 85 * total + int.from_bytes(lanes, "big")
    lanes = bytearray(total.to_bytes(size, "big"))
    found = bytearray(size // 2)
    for place in range(4):
        found[place::4] = lanes[4 + place :: 8]
    return bytes(found)


def _whole(run: str, size: int, none: tuple[int, ...]) -> str:
    """The run up to where it can end, padded."""
    while len(run) % size in none:
        run = run[:-1]
    return run + "=" * (-len(run) % size)


def _character(match: re.Match[str]) -> str:
    found = match[0].lstrip("\\%")
    if found[:1] not in ("u", "U"):
        return _NAMED.get(found, found) or " "
    code = int(found[1:].strip("{}"), 16)
    return chr(code) if code < 0x110000 else match[0]


def _bytes(match: re.Match[str]) -> str:
    found = match[0].replace("\\", " ").split()
    data = bytes(int(one[1:], 16) if one[0] == "x" else int(one, 8) for one in found)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


_NAMED = {"n": "\n", "r": "\n", "t": "\t", "b": " ", "f": " "}
_PRINTED = bytes([9, 10, 13, *range(32, 127)])
_STRETCH = re.compile("[^\ufffd\0-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f]{8,}")
_SPREAD = re.compile(rb"(?:[\t\n\r -~]\0{1,3}){8,}[\t\n\r -~]?")
_RUBBISH = re.compile("[\0\ufffd]+")
_BACKSLASHED = re.compile(r"(?<!\\)\\+(?:u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|U[0-9a-fA-F]{8}|[nrtbf\"/\\])")
_BYTES = re.compile(r"(?<!\\)(?:\\+(?:x[0-9a-fA-F]{2}|[0-3][0-7]{2}))+")
_PERCENT_U = re.compile(r"%u[0-9a-fA-F]{4}")
_QUOTED = re.compile(r"=[0-9A-F]{2}|=\r?\n")
_HALF = re.compile("[\ud800-\udfff]")
_DUMPED = re.compile(r"(?m)^[ \t]*[0-9a-fA-F]{4,16}:?[ \t]+((?:[0-9a-fA-F]{2}){1,4}(?:[ \t]{1,2}(?:[0-9a-fA-F]{2}){1,4}){0,15})(?=[ \t]|$)")
_BESIDE_BYTES = 64
_KINDS = bytes(
    ord("a") if code in _PRINTED else ord("c") if 128 <= code < 192 else ord("2") if 195 <= code < 224 else ord("3") if 227 <= code < 238
    else ord("0") if code == 0 else 1
    for code in range(256)
)  # fmt: skip
_TEXT = (b"a" * 8, b"2c" * 4, b"3cc" * 3, b"a0" * 6)
"""What text is at least: of Latin, of other alphabets, of the scripts of East Asia, and in characters of two bytes."""
_ONE_CASE = re.compile(r"[A-Z2-7]{20,}|[a-z2-7]{20,}")
_ALNUM = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ASCII85 = "".join(map(chr, range(33, 118)))
_BASE85 = (_ASCII85, _ALNUM + "!#$%&()*+-;<=>?@^_`{|}~", string.digits + _ALNUM[36:] + _ALNUM[10:36] + ".-:+=^!/*?&<>()[]{}@%$#")
"""Of PostScript and PDF, of git and Python, of ZeroMQ."""


def _in_lines(signs: str, least: int) -> re.Pattern[str]:
    return re.compile(rf"(?<![{signs}])[{signs}]{{{least},}}(?:\r?\n[ \t]{{0,8}}[{signs}]+)*")


SPELLINGS: tuple[tuple[re.Pattern[str], Callable[[list[str]], Iterator[bytes]]], ...] = (
    (re.compile(rf"(?<![0-9a-fA-F])(?:(?:0x)?[0-9a-fA-F]{{2}}[\s:,;-]{{0,2}}){{{_LEAST},}}[0-9a-fA-F]?"), _of_hex),
    (re.compile(rf"(?:{_DUMPED.pattern[4:]}[^\n]*\n?){{1,}}", re.MULTILINE), _of_dump),
    (re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}(?:\r?\n[ \t]{0,8}[A-Za-z0-9+/_-]+)*"), _of_base64),
    (re.compile(r"(?<![A-Za-z2-7])[A-Za-z2-7]{20,}(?:\r?\n[ \t]{0,8}[A-Za-z2-7]+)*"), _of_base32),
    (re.compile(r"(?m)(?:^[!-M][ -`]{12,84}$\r?\n?)+"), _of_uu),
    *((_in_lines(re.escape(signs) + ("yz" if signs == _ASCII85 else ""), 16), _of_base85(signs)) for signs in _BASE85),
)
"""Alphabets of fewer signs: what a stretch looks like, and what it reads as."""

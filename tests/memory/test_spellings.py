"""Every spelling that an erasure must know: found in it, and in another within it; and never more work than there is to read."""

import base64
import binascii
import bz2
import codecs
import gzip
import html
import io
import json
import lzma
import quopri
import subprocess
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from urllib.parse import quote

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from amem.memory import passages, spellings
from amem.memory.spellings import Unread, readings
from amem.memory.traces import carries

TEXTS = (
    "zebra7QuartzCanary19",
    "the old vault opens on Mondays at nine",
    "金庫の暗証番号は月曜日の朝に変わります🦓",
    "Der Tresor öffnet montags um neun Uhr früh",
)
BEFORE, AFTER = "It was said that ", ", and no more."


def _zip(data: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    with zipfile.ZipFile(file := io.BytesIO(), "w", method) as archive:
        archive.writestr("a/first.txt", b"nothing here")
        archive.writestr("notes.txt", data)
    return file.getvalue()


def _tar_gz(data: bytes) -> bytes:
    with tarfile.open(fileobj=(file := io.BytesIO()), mode="w:gz") as archive:
        info = tarfile.TarInfo("notes.txt")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def _wrapped(text: str, columns: int, end: str = "\n") -> str:
    return end.join(text[at : at + columns] for at in range(0, len(text), columns))


B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def _uu(data: bytes) -> bytes:
    return b"".join(binascii.b2a_uu(data[at : at + 45]) for at in range(0, len(data), 45))


def _wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def _xxd(data: bytes) -> bytes:
    rows = [data[at : at + 16] for at in range(0, len(data), 16)]
    return "\n".join(
        f"{n * 16:08x}: {' '.join(row[at : at + 2].hex() for at in range(0, len(row), 2)):39}  ................"
        for n, row in enumerate(rows)
    ).encode()


def _hexdump(data: bytes) -> bytes:
    rows = [data[at : at + 16] for at in range(0, len(data), 16)]
    return "\n".join(f"{n * 16:08x}  {row[:8].hex(' ')}  {row[8:].hex(' '):23}  |................|" for n, row in enumerate(rows)).encode()


SPELLED: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "upper case": lambda text: text.upper().encode(),
    "hex": lambda text: text.encode().hex().encode(),
    "hex upper": lambda text: text.encode().hex().upper().encode(),
    "hex at an odd place": lambda text: b"f" + text.encode().hex().encode(),
    "hex spaced": lambda text: text.encode().hex(" ").encode(),
    "hex with colons": lambda text: text.encode().hex(":").encode(),
    "hex of C": lambda text: ", ".join(f"0x{byte:02x}" for byte in text.encode()).encode(),
    "hex in strings": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()).encode(),
    "hex in lines": lambda text: _wrapped(text.encode().hex(), 30).encode(),
    "xxd": lambda text: _xxd(b"Some words first. " + text.encode()),
    "hexdump": lambda text: _hexdump(b"Some words first. " + text.encode()),
    "percent": lambda text: quote(text, safe="").encode(),
    "percent, all of it": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()).encode(),
    "percent twice": lambda text: quote(quote(text, safe=""), safe="").encode(),
    "percent u": lambda text: "".join(f"%u{ord(c):04x}" if ord(c) < 65536 else quote(c) for c in text).encode(),
    "entities": lambda text: "".join(f"&#{ord(c)};" for c in text).encode(),
    "entities in hex": lambda text: "".join(f"&#x{ord(c):X};" for c in text).encode(),
    "entities twice": lambda text: html.escape("".join(f"&#{ord(c)};" for c in text)).encode(),
    "json": lambda text: json.dumps({"say": text}).encode(),
    "json, all escaped": lambda text: "".join(f"\\u{half}" for half in _wrapped(text.encode("utf-16-be").hex(), 4).split()).encode(),
    "json in json in json": lambda text: json.dumps(json.dumps(json.dumps(text))).encode(),
    "braces": lambda text: "".join(f"\\u{{{ord(c):x}}}" for c in text).encode(),
    "long escapes": lambda text: "".join(f"\\U{ord(c):08x}" for c in text).encode(),
    "octal": lambda text: "".join(f"\\{byte:03o}" for byte in text.encode()).encode(),
    "mail": lambda text: quopri.encodestring(text.encode(), quotetabs=True),
    "mail, all of it": lambda text: "".join(f"={byte:02X}" for byte in text.encode()).encode(),
    "full width": lambda text: _wide(text).encode(),
    "decomposed": lambda text: unicodedata.normalize("NFD", text).encode(),
    "zero width": lambda text: "\u200b".join(text).encode(),
    "reversed": lambda text: text[::-1].encode(),
    "rot13": lambda text: codecs.encode(text, "rot13").encode(),
    "put together": lambda text: (
        " + ".join(f"'{part}'" for part in _wrapped(text, 9).split("\n")).encode() if " " not in text else text.encode()
    ),
    "spaced out": lambda text: " . ".join(text).encode() if " " not in text else text.encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16-le": lambda text: text.encode("utf-16-le"),
    "utf-16-be": lambda text: text.encode("utf-16-be"),
    "utf-32": lambda text: text.encode("utf-32") if text.isascii() else text.encode("utf-16"),
    "base64": lambda text: base64.b64encode(text.encode()),
    "base64 of an address": lambda text: b"https://h/v1/token/" + base64.urlsafe_b64encode(text.encode()),
    "base64 behind 2": lambda text: b"ab" + base64.b64encode(text.encode()),
    "base64 behind 3": lambda text: b"ab/" + base64.b64encode(text.encode()),
    "base64 twice": lambda text: base64.b64encode(base64.b64encode(text.encode())),
    "base64 three times": lambda text: base64.b64encode(base64.b64encode(base64.b64encode(text.encode()))),
    "base64 in lines": lambda text: base64.encodebytes(b"Some words that come first: these ones, yes. " + text.encode()),
    "base64 in lines in json": lambda text: json.dumps(base64.encodebytes(b"Some words first: " * 3 + text.encode()).decode()).encode(),
    "base64 of utf-16": lambda text: base64.b64encode(text.encode("utf-16-le") if text.isascii() else text.encode("utf-16")),
    "base32": lambda text: base64.b32encode(text.encode()),
    "base32 in small": lambda text: base64.b32encode(text.encode()).rstrip(b"=").lower(),
    "base32 behind 3": lambda text: b"ABC" + base64.b32encode(text.encode()),
    "base85": lambda text: base64.b85encode(text.encode()),
    "base85 behind 3": lambda text: b"ab/" + base64.b85encode(text.encode()),
    "base85 of PostScript": lambda text: base64.a85encode(text.encode(), adobe=True, wrapcol=20),
    "base85 of PostScript, with short signs": lambda text: base64.a85encode(b"\0\0\0\0    " + text.encode(), foldspaces=True),
    "base85 of ZeroMQ": lambda text: base64.b85encode(text.encode()).translate(bytes.maketrans(B85, Z85)),
    "base85 in json": lambda text: json.dumps({"say": base64.a85encode(text.encode()).decode()}).encode(),
    "gzip in base85": lambda text: base64.b85encode(gzip.compress(text.encode())),
    "zlib in base85": lambda text: base64.b85encode(zlib.compress(text.encode())),
    "uu": lambda text: b"begin 644 notes\n" + _uu(b"Some words that come first, and then. " + text.encode()) + b"`\nend",
    "hex of base64": lambda text: base64.b64encode(text.encode()).hex().encode(),
    "base64 of hex": lambda text: base64.b64encode(text.encode().hex().encode()),
    "zlib": lambda text: zlib.compress(text.encode()),
    "zlib inside": lambda text: b"\x00\x01obj" + zlib.compress(text.encode(), 9) + b"endobj",
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip, second member": lambda text: gzip.compress(b"first") + gzip.compress(text.encode()),
    "gzip behind others": lambda text: b"x^2 + BZh9 PK" + gzip.compress(text.encode()) + b"tail",
    "gzip cut": lambda text: gzip.compress((text + "\n" + "and so on. " * 900).encode())[:-6],
    "bz2": lambda text: bz2.compress(text.encode()),
    "xz": lambda text: lzma.compress(text.encode()),
    "zstd": lambda text: zstandard.ZstdCompressor().compress(text.encode()),
    "zstd, second frame": lambda text: zstandard.ZstdCompressor().compress(b"first") + zstandard.ZstdCompressor().compress(text.encode()),
    "zip": lambda text: _zip(text.encode()),
    "zip of bz2": lambda text: _zip(text.encode(), zipfile.ZIP_BZIP2),
    "zip in zip": lambda text: _zip(_zip(text.encode())),
    "tar.gz": lambda text: _tar_gz(text.encode()),
    "gzip in base64": lambda text: base64.b64encode(gzip.compress(text.encode())),
    "gzip in base64 in json": lambda text: json.dumps({"blob": base64.encodebytes(gzip.compress(text.encode())).decode()}).encode(),
    "gzip in lines in json": lambda text: json.dumps(_wrapped(base64.b64encode(gzip.compress(text.encode())).decode(), 24)).encode(),
    "base64 with its slashes escaped": lambda text: base64.b64encode(b"\xff\xff\xff???" + text.encode()).replace(b"/", rb"\/"),
    "broken by a terminal": lambda text: "\x1b[31m".join(_wrapped(text, 7).split("\n")).encode() if " " not in text else text.encode(),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("spelling", SPELLED)
def test_a_passage_is_found_however_it_is_spelled(spelling: str, text: str) -> None:
    wanted = passages.passages(text)
    spelled = SPELLED[spelling](f"{BEFORE}{text}{AFTER}" if spelling != "reversed" else text)
    assert carries(spelled, wanted)
    assert carries(b"Some words before.\n" + spelled + b"\nand some after.", wanted)


@pytest.mark.parametrize("spelling", SPELLED)
def test_another_text_is_not_taken_for_it(spelling: str) -> None:
    wanted = passages.passages(*TEXTS)
    assert carries(SPELLED[spelling]("We keep the weekly ledger in the green room; 毎週の帳簿は緑の部屋にあります。"), wanted) is False


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_a_fault(data: bytes) -> None:
    wanted = passages.passages(*TEXTS)
    assert carries(data, wanted) is False
    assert carries(data + b"\n" + TEXTS[0].encode(), wanted)
    assert carries(base64.b64encode(data + b"\n" + TEXTS[0].encode()), wanted)


def _nested(data: bytes, depth: int, pack: Callable[[bytes], bytes]) -> bytes:
    return data if depth == 0 else pack(_nested(data, depth - 1, pack))


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "a bomb": lambda size: gzip.compress(bytes(size << 10)),
    "bombs side by side": lambda size: gzip.compress(bytes(1 << 18)) * (size >> 10),
    "members that begin and do not hold": lambda size: b"\x78\x9c" * (size >> 1),
    "members in one another": lambda size: b"".join(b"\x78\x01\x00\x06\x00\xf9\xff" for _ in range(size // 7)),
    "zstd frames": lambda size: zstandard.ZstdCompressor().compress(b"ab") * (size // 11),
    "one run of base64": lambda size: b"Ab3d" * (size >> 2),
    "one run of hex": lambda size: b"3d" * (size >> 1),
    "one run of capitals": lambda size: b"ABCD2345" * (size >> 3),
    "percent of percent": lambda size: b"%25" * (size // 3),
    "ampersands": lambda size: b"&amp" * (size >> 2),
    "backslashes": lambda size: b"\\" * size,
    "equal signs": lambda size: b"=3D" * (size // 3),
    "one run of base85": lambda size: b"z{Ab3" * (size // 5),
    "zeros of PostScript": lambda size: b"z" * size,
    "uu": lambda size: (b"M" + b"#" * 60 + b"\n") * (size // 62),
    "hex and spaces": lambda size: b"3d , " * (size // 5),
    "lines of a dump": lambda size: b"00000000: 3d3d 3d3d\n" * (size // 20),
    "lines of base64": lambda size: (b"A" * 60 + b"\n") * (size // 61),
    "base64 within base64": lambda size: _nested(b"Ab3d" * (size >> 4), 4, base64.b64encode),
    "NULs": lambda size: bytes(size),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_read_is_bounded_by_what_there_is(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spellings, "_FREE_BYTES", 1 << 20)
    data = HOSTILE[kind](1 << 14)
    read = 0
    try:
        for text in readings(data):
            read += len(text)
    except Unread:
        pass
    assert read <= 3 * max(1 << 20, 64 * len(data))


def test_words_of_which_there_are_many_are_found_like_few() -> None:
    many = passages.passages(" ".join(f"word{n:05}ofalongentry" for n in range(2000)), TEXTS[2] * 20)
    assert many.found("a prefix_word01999ofalongentry")
    assert many.found(TEXTS[2][3:17])
    assert not many.found("word02000ofalongentry and 暗証番号は")
    assert many.found("yrtnegnolafo99910drow")


@pytest.mark.parametrize(
    "command", ["xxd", "xxd -p", "od -A x -t x1", "hexdump -C", "base64", "base32", "uuencode -", "gzip -c", "bzip2 -c", "xz -c", "zstd -c"]
)
def test_what_the_usual_programs_make_of_it_is_found(command: str) -> None:
    try:
        made = subprocess.run(command.split(), input=f"Some words first. {TEXTS[0]}\n".encode(), capture_output=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip(f"{command.split()[0]} is not here")
    assert carries(made, passages.passages(TEXTS[0]))


def test_what_a_model_streams_in_pieces_is_put_together_and_read() -> None:
    said = base64.b64encode(TEXTS[0].encode()).decode()
    for text in (TEXTS[0], said):
        pieces = [json.dumps({"type": "delta", "delta": {"text": text[at : at + 5]}}) for at in range(0, len(text), 5)]
        stream = "".join(f"event: delta\ndata: {piece}\n\n" for piece in pieces)
        assert carries(stream.encode(), passages.passages(TEXTS[0]))

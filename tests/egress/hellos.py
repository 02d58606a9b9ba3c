"""ClientHellos: a real one from OpenSSL, and the same with its extensions changed or its records cut otherwise."""

import contextlib
import ssl
import struct
from collections.abc import Callable, Iterable

Extension = tuple[int, bytes]


def real(host: str | None) -> bytes:
    """What OpenSSL sends first to `host`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=host)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def message(hello: bytes) -> bytes:
    """The handshake message of a hello in one record."""
    return hello[5:]


def records(handshake: bytes, sizes: Iterable[int]) -> bytes:
    """The handshake in records of these sizes; the last size repeats."""
    out, sizes = b"", iter(sizes)
    size = next(sizes)
    while handshake:
        piece, handshake = handshake[:size], handshake[size:]
        out += b"\x16\x03\x01" + struct.pack(">H", len(piece)) + piece
        size = next(sizes, size)
    return out


def changed(host: str | None, change: Callable[[list[Extension]], list[Extension]]) -> bytes:
    """A real hello whose extensions were changed, with every length made right again."""
    handshake = message(real(host))
    body = handshake[4:]
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at : at + 2])
    at += 1 + body[at]
    rest, extensions = body[at + 2 :], []
    while rest:
        kind, length = struct.unpack(">HH", rest[:4])
        extensions.append((kind, rest[4 : 4 + length]))
        rest = rest[4 + length :]
    written = b"".join(struct.pack(">HH", kind, len(data)) + data for kind, data in change(extensions))
    body = body[:at] + struct.pack(">H", len(written)) + written
    return records(b"\x01" + len(body).to_bytes(3) + body, [1 << 14])


def name_extension(*names: bytes, kind: int = 0) -> Extension:
    """A server_name extension with these names."""
    entries = b"".join(bytes([kind]) + struct.pack(">H", len(name)) + name for name in names)
    return 0, struct.pack(">H", len(entries)) + entries

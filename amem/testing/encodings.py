"""Content encodings of an answer: gzip, deflate, br and zstd, in one piece or flushed event by event."""

import zlib
from collections.abc import Callable
from typing import Protocol

PREFERENCE = ("zstd", "br", "gzip", "deflate")
"""What `negotiate` chooses first."""


class _Stream(Protocol):
    def part(self, data: bytes) -> bytes:
        """Encode, and flush so that the reader can decode all of it now."""

    def end(self) -> bytes:
        """Close the stream."""


class Encoder:
    """One answer's encoding."""

    def __init__(self, name: str) -> None:
        """`name` is one of PREFERENCE, or `identity`."""
        self.name = name
        self._stream: _Stream = _STREAMS[name]()

    @property
    def headers(self) -> dict[str, str]:
        """The header that names the encoding; none for identity."""
        return {} if self.name == "identity" else {"content-encoding": self.name}

    def part(self, data: bytes) -> bytes:
        """Encode a part and flush it."""
        return self._stream.part(data)

    def end(self) -> bytes:
        """The last bytes of the stream."""
        return self._stream.end()

    def whole(self, data: bytes) -> bytes:
        """Encode an answer in one piece."""
        return self.part(data) + self.end()


def encoder(wanted: str, accepted: str) -> Encoder:
    """Choose an encoder: `wanted` is a script's word, `accepted` the accept-encoding header."""
    if wanted not in ("identity", "negotiate", *PREFERENCE):
        raise ValueError(f"unknown encoding {wanted!r}")
    offers = {item.split(";")[0].strip().lower() for item in accepted.split(",") if "q=0" not in item.replace(" ", "").split(";")}
    choices = PREFERENCE if wanted == "negotiate" else (wanted,)
    return Encoder(next((name for name in choices if name in offers), "identity"))


class _Identity:
    def part(self, data: bytes) -> bytes:
        return data

    def end(self) -> bytes:
        return b""


class _Zlib:
    def __init__(self, wbits: int) -> None:
        self._compressor = zlib.compressobj(wbits=wbits)

    def part(self, data: bytes) -> bytes:
        return self._compressor.compress(data) + self._compressor.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._compressor.flush()


class _Brotli:
    def __init__(self) -> None:
        import brotli

        self._compressor = brotli.Compressor(quality=4)

    def part(self, data: bytes) -> bytes:
        return bytes(self._compressor.process(data) + self._compressor.flush())

    def end(self) -> bytes:
        return bytes(self._compressor.finish())


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        self._compressor = zstandard.ZstdCompressor().compressobj()
        self._flush_block = zstandard.COMPRESSOBJ_FLUSH_BLOCK

    def part(self, data: bytes) -> bytes:
        return bytes(self._compressor.compress(data) + self._compressor.flush(self._flush_block))

    def end(self) -> bytes:
        return bytes(self._compressor.flush())


_STREAMS: dict[str, Callable[[], _Stream]] = {
    "identity": _Identity,
    "gzip": lambda: _Zlib(31),
    "deflate": lambda: _Zlib(15),
    "br": _Brotli,
    "zstd": _Zstd,
}

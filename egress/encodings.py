"""Decode a copy of a compressed body for the meter, piece by piece and in bounded memory.

Pure. What passes to the harness is never what was decoded here. gzip (also several members), deflate (zlib or raw), br and
zstd, alone or stacked; anything else is unknown, and the call is then unmetered rather than guessed at.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

_STEP_BYTES = 1 << 18
_ZSTD_SLICE_BYTES = 512
"""A zstd block of four bytes can stand for 128 KB, and its decoder has no output limit; so it is fed in slices."""
MAX_RATIO = 100
"""A model that says one word for ever comes to less; a bomb to ten times that and more."""
_FREE_BYTES = 64 << 20
MAX_FRAMES = 4096
"""How many gzip members or zstd frames may follow one another: each takes a decoder of its own, and may stand for nothing."""


class DecodeError(Exception):
    """The bytes are not what the header said, or expand beyond any sense."""


class Decoder(Protocol):
    """Decodes a body in pieces."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The decoded pieces of these bytes, each small and some empty, so that others have their turn. Raises DecodeError."""
        ...


def decoder(content_encoding: str) -> Decoder | None:
    """A decoder for a content-encoding header; None when amem knows it not."""
    if not content_encoding:
        return _PLAIN
    names = [name.strip().lower() for name in content_encoding.split(",") if name.strip()]
    names = [name for name in names if name != "identity"]
    if len(names) > 3 or not all(name in _DECODERS for name in names):
        return None
    return _Chain([_DECODERS[name]() for name in reversed(names)]) if names else _PLAIN


class _Plain:
    def feed(self, data: bytes) -> Iterator[bytes]:
        return iter((data,))


_PLAIN = _Plain()


class _Chain:
    """One codec after the other. Refuses what expands more than `MAX_RATIO` times once it is large, in whichever of them."""

    def __init__(self, steps: list[Decoder]) -> None:
        self._steps = steps
        self._in = 0
        self._out = [0] * len(steps)

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._in += len(data)
        try:
            yield from self._from(0, data)
        except _faults() as error:
            raise DecodeError(str(error)) from error

    def _from(self, step: int, data: bytes) -> Iterator[bytes]:
        if step == len(self._steps):
            yield data
            return
        for piece in self._steps[step].feed(data):
            self._out[step] += len(piece)
            if self._out[step] > _FREE_BYTES and self._out[step] > MAX_RATIO * self._in:
                raise DecodeError("expands beyond any sense")
            yield from self._from(step + 1, piece)
            if step + 1 < len(self._steps):
                yield b""  # much may come out of one codec and nothing out of the next


class _Zlib:
    """gzip, or zlib with a fall-back to raw deflate, which some servers send under the same name."""

    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._inner = zlib.decompressobj(31 if gzip else 15)
        self._head = b""
        self._sure = gzip
        self._frames = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not self._sure:
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return
            self._head = b""
            self._sure = True
            if (data[0] & 0x0F) != 8 or (data[0] << 8 | data[1]) % 31:  # RFC 1950, section 2.2
                self._inner = zlib.decompressobj(-15)
        while data:
            if self._inner.eof:
                if not self._gzip:
                    return
                self._frames = _one_more(self._frames)
                self._inner = zlib.decompressobj(31)
            piece = self._inner.decompress(data, _STEP_BYTES)
            if piece:
                yield piece
            data = self._inner.unused_data if self._inner.eof else self._inner.unconsumed_tail


class _Brotli:
    def __init__(self) -> None:
        import brotli

        inner: Any = brotli.Decompressor()
        self._inner = inner
        self._process: Callable[..., bytes] = inner.process

    def feed(self, data: bytes) -> Iterator[bytes]:
        piece = self._process(data, output_buffer_limit=_STEP_BYTES)
        while piece:
            yield piece
            if self._inner.is_finished() or self._inner.can_accept_more_data():
                return
            piece = self._process(b"", output_buffer_limit=_STEP_BYTES)


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        # 8 MB is the window that RFC 9659 allows on the web.
        self._make: Callable[[], Any] = lambda: zstandard.ZstdDecompressor(max_window_size=8 << 20).decompressobj()
        self._inner: Any = self._make()
        self._frames = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_SLICE_BYTES):
            rest = data[start : start + _ZSTD_SLICE_BYTES]
            while rest:
                if self._inner.eof:
                    self._frames = _one_more(self._frames)
                    self._inner = self._make()
                piece = self._inner.decompress(rest)
                if piece:
                    yield piece
                rest = self._inner.unused_data if self._inner.eof else b""


def _one_more(frames: int) -> int:
    if frames == MAX_FRAMES:
        raise DecodeError("has more frames than anybody sends")
    return frames + 1


_DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": lambda: _Zlib(gzip=True),
    "x-gzip": lambda: _Zlib(gzip=True),
    "deflate": lambda: _Zlib(gzip=False),
    "br": _Brotli,
    "zstd": _Zstd,
}


def _faults() -> tuple[type[BaseException], ...]:
    """The exceptions of the codecs that were imported."""
    import sys

    faults: list[type[BaseException]] = [zlib.error]
    if (brotli := sys.modules.get("brotli")) is not None:
        faults.append(brotli.error)
    if (zstandard := sys.modules.get("zstandard")) is not None:
        faults.append(zstandard.ZstdError)
    return tuple(faults)

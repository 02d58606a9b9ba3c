"""Mask credentials in text that is kept (contexts, transcripts, scrollback), so that only the owner, with the root's key, can undo it.

Each credential of a known format is replaced by its sealed form, which stands in its place and is text in JSON too. The same one is sealed
alike each time, so what was kept once is not kept twice. The key is `state/seal.key`; that it was made is logged, so that one that is gone
is missed and not made again: what was sealed with it would be lost, and nobody told. The seal is a keystream of HMAC-SHA-256 under a nonce
that is the credential's own MAC (as RFC 5297 builds SIV), so a changed one is refused. What a stream cut in two is not seen.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator
from pathlib import Path

from amem.errors import IntegrityError
from amem.logs import reader, writer
from amem.logs.schema import KeyMade
from amem.model.clock import now, stamp
from amem.policy.scan_secrets import FORMATS
from amem.record import keys
from amem.record.store import digest

KEY = "seal.key"
"""Below `state/`."""

_NONCE_BYTES = 16
_LEAST_NEEDLE = 3
"""A format without so much of its own would have every other word looked at, on each call."""
_BEGIN, _END = b"-----BEGIN ", b"PRIVATE KEY"
_BLOCK_BYTES = 16384
_SEALED = re.compile(rb"amem-sealed\.((?:(?!amem-sealed\.)[A-Za-z0-9_-]){22,})\.")
"""One begins where a text had its own first word of a seal before a credential, so none goes on over the beginning of the next."""
_BYTES = tuple(
    (form.needle.encode(), re.compile(form.pattern.encode()), form.back)
    for form in FORMATS
    if len(form.needle) >= _LEAST_NEEDLE and form.name != "private key"
)


class Sealer:
    """Masks with the key of a root, made when it is first needed. Safe to use from several threads."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._known: bytes | None = None

    def masked(self, data: bytes) -> bytes:
        """The bytes with each credential sealed. Raises OSError, IntegrityError (the key is no key, or is gone)."""
        spans = _spans(data)
        if not spans:
            return data
        if self._key() is None:
            self._known = keys.key(self._state / KEY, self._made)
        pieces, at = [], 0
        for start, end in spans:
            pieces += [data[at:start], self._seal(data[start:end])]
            at = end
        return b"".join([*pieces, data[at:]])

    def unmasked(self, data: bytes) -> bytes:
        """The bytes as they were. Raises IntegrityError where a seal does not hold, OSError."""
        plain, broken = self.opened(data)
        if broken:
            raise broken[0]
        return plain

    def opened(self, data: bytes) -> tuple[bytes, list[IntegrityError]]:
        """The bytes as they were, and why seals in it do not hold: those stay: a session can write one.

        Raises IntegrityError (the key is no key, or is gone), OSError.
        """
        if _SEALED.search(data) is None:
            return data, []
        self._key()
        broken: list[IntegrityError] = []

        def plain(found: re.Match[bytes]) -> bytes:
            try:
                return self._open(found[1])
            except IntegrityError as error:
                broken.append(error)
                return found[0]

        return _SEALED.sub(plain, data), broken

    def _seal(self, secret: bytes) -> bytes:
        nonce = self._mac(b"nonce", secret)[:_NONCE_BYTES]
        return b"amem-sealed." + base64.urlsafe_b64encode(nonce + self._stream(nonce, secret)).rstrip(b"=") + b"."

    def _open(self, text: bytes) -> bytes:
        try:
            data = base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))
        except (binascii.Error, ValueError):
            raise IntegrityError("a sealed credential is cut") from None
        nonce = data[:_NONCE_BYTES]
        secret = self._stream(nonce, data[_NONCE_BYTES:])
        if not hmac.compare_digest(self._mac(b"nonce", secret)[:_NONCE_BYTES], nonce):
            raise IntegrityError("a sealed credential was changed, or is of another root's key")
        return secret

    def _stream(self, nonce: bytes, data: bytes) -> bytes:
        blocks = (self._mac(b"stream" + n.to_bytes(4, "big"), nonce) for n in range(-(-len(data) // 32)))
        return bytes(one ^ other for one, other in zip(data, b"".join(blocks), strict=False))

    def _mac(self, what: bytes, data: bytes) -> bytes:
        if self._known is None:
            raise IntegrityError("a sealed credential is of another root's key: none was made here")
        return hmac.new(self._known, what + b"\0" + data, hashlib.sha256).digest()

    def _key(self) -> bytes | None:
        """The key; None where none was made yet."""
        self._known = self._known or keys.kept(self._state / KEY)
        if self._known is None and gone(self._state):
            path = self._state / KEY
            raise IntegrityError(f"{path} is gone: what was sealed with it cannot be read", hint=f"restore {path} from a backup")
        return self._known

    def _made(self, key: bytes) -> None:
        writer.append(self._state, KeyMade(at=stamp(now()), files={KEY: digest(key)}))


def gone(state: Path) -> bool:
    """Say whether the key was made and is not there."""
    return not (state / KEY).exists() and any(KEY in event.get("files", ()) for event in reader.events(state / KeyMade.log))


def _spans(data: bytes) -> list[tuple[int, int]]:
    """Where credentials stand, in order and apart. Sealed ones have no format, so masking twice is masking once."""
    found = list(_blocks(data)) if _END in data else []
    for needle, pattern, back in _BYTES:
        at = data.find(needle)
        while at >= 0:
            for start in range(max(0, at - back), at + 1):
                if (match := pattern.match(data, start)) is not None:
                    found.append(match.span())
                    break
            at = data.find(needle, at + len(needle))
    apart: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if apart and start < apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def _blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """Private keys between their two lines."""
    at = data.find(_BEGIN)
    while at >= 0:
        end = at + len(_BEGIN)
        if _END in data[end : end + 40] and (close := data.find(b"-----END ", end, at + _BLOCK_BYTES)) >= 0:
            last = data.find(b"-----", close + 9, close + 60)
            end = last + 5 if last >= 0 else close + 9
            yield at, end
        at = data.find(_BEGIN, end)

"""Take a secret out of bytes on their way to the harness.

Pure. Some upstreams repeat the key they were given, in an error or an echo. It is replaced by stars, as many as it is long, so that
no length changes; a stream may split it anywhere. In a compressed stream it cannot be seen, and is not looked for.
"""


class Scrubber:
    """`feed` pieces, pass on what comes back, then `end`."""

    def __init__(self, secret: bytes) -> None:
        """`secret` is not empty."""
        self._secret = secret
        self._stars = b"*" * len(secret)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """The bytes that may go on; those at the end that may be the start of the secret wait for the next piece."""
        data = (self._held + data).replace(self._secret, self._stars)
        start = self._possible(data)
        self._held = data[start:]
        return data[:start]

    def end(self) -> bytes:
        """What was still waiting."""
        held, self._held = self._held, b""
        return held

    def _possible(self, data: bytes) -> int:
        """Where the longest end of `data` that the secret could go on from begins."""
        at = max(0, len(data) - len(self._secret) + 1)
        while (at := data.find(self._secret[:1], at)) >= 0:
            if self._secret.startswith(data[at:]):
                return at
            at += 1
        return len(data)


def scrubbed(data: bytes, secret: bytes) -> bytes:
    """`data` without the secret."""
    return data.replace(secret, b"*" * len(secret))

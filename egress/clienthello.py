"""Read the first message of a TLS client, to know which host it names before a byte of it goes anywhere.

Pure. The hello may be split over any segments and records (RFC 8446, section 5.1). What is not exactly a ClientHello is
malformed; a hidden name (Encrypted Client Hello, the GREASE kind too, and its drafts) is told, and so is a missing one.
"""

from dataclasses import dataclass

from amem.typed import NamedTuple

MAX_HELLO_BYTES = 1 << 16
"""Hellos with post-quantum key shares have about 2 KB; nobody needs more than this."""
_CHANGE_CIPHER_SPEC, _HANDSHAKE = 20, 22
_CLIENT_HELLO = 1
_SERVER_NAME, _HOST_NAME = 0, 0
_HIDDEN = frozenset((0xFE0D, 0xFFCE, 0xFE08, 0xFE09, 0xFE0A, 0xFE0B, 0xFE0C, 0xFF02, 0xFF03, 0xFD00))
"""encrypted_client_hello, its drafts, encrypted_server_name, and what only stands inside an encrypted hello."""


class NeedMore(NamedTuple):
    """The hello is not whole yet."""


class ClientHello(NamedTuple):
    """What a whole hello says about its name."""

    server_name: str | None
    """In lower case; None when it names nobody."""
    hidden: bool
    """It has an extension that hides a name, or looks like one that does."""


class Malformed(NamedTuple):
    """These bytes begin no ClientHello."""

    why: str


class _Bad(Exception):
    pass


@dataclass(slots=True)
class HelloReader:
    """`feed` what the client sends until the answer is no longer `NeedMore`. Keeps the records it was given, not the rest."""

    _records: bytes = b""
    _handshake: bytes = b""

    def feed(self, data: bytes) -> NeedMore | ClientHello | Malformed:
        """Take more bytes. What follows the hello in the same bytes is not looked at here."""
        self._records += data
        try:
            while True:
                whole = self._message()
                if whole is not None:
                    return _hello(whole)
                if not self._next_record():
                    return NeedMore()
        except _Bad as bad:
            return Malformed(str(bad))

    @property
    def rest(self) -> bytes:
        """What was fed beyond the record that ended the hello."""
        return self._records

    def _next_record(self) -> bool:
        """Move one whole record's content to the handshake; False when none is whole."""
        head = self._records[:5]
        if head[:1] and head[0] != _HANDSHAKE:
            raise _Bad("it does not begin with a TLS handshake record")
        if len(head) >= 2 and head[1] != 3:
            raise _Bad("its record is of no known version")
        if len(head) < 5:
            return False
        length = head[3] << 8 | head[4]
        if not 0 < length <= 1 << 14:
            raise _Bad("its record has an impossible length")
        if len(self._records) < 5 + length:
            return False
        self._handshake += self._records[5 : 5 + length]
        self._records = self._records[5 + length :]
        return True

    def _message(self) -> bytes | None:
        """The body of the handshake message, once it is whole."""
        if self._handshake[:1] and self._handshake[0] != _CLIENT_HELLO:
            raise _Bad("its first message is no ClientHello")
        if len(self._handshake) < 4:
            return None
        length = int.from_bytes(self._handshake[1:4])
        if length > MAX_HELLO_BYTES:
            raise _Bad("its ClientHello is too long")
        if len(self._handshake) < 4 + length:
            return None
        if len(self._handshake) > 4 + length:
            raise _Bad("something follows the ClientHello in its record")
        return self._handshake[4:]


@dataclass(slots=True)
class AfterHello:
    """Watches what a client sends after its hello, until the handshake cannot name a host any more.

    A server may ask for a second hello (RFC 8446, section 4.1.4); that one must name the same host, and is held until it does.
    """

    host: str
    _held: bytes = b""
    _over: bool = False

    def feed(self, data: bytes) -> bytes | Malformed:
        """The bytes that may go on now."""
        if self._over:
            return data
        self._held += data
        passed = b""
        while self._held:
            kind = self._held[0]
            whole = 5 + int.from_bytes(self._held[3:5])
            if kind == _CHANGE_CIPHER_SPEC:
                if len(self._held) < max(5, whole):
                    return passed
                passed, self._held = passed + self._held[:whole], self._held[whole:]
                continue
            if kind == _HANDSHAKE:
                if len(self._held) < 6:
                    return passed
                if self._held[5] == _CLIENT_HELLO:
                    match HelloReader().feed(self._held):
                        case NeedMore():
                            return passed
                        case Malformed() as malformed:
                            return malformed
                        case ClientHello() as hello:
                            if (why := refusal(hello, self.host)) is not None:
                                return Malformed(why)
            self._over = True
            passed, self._held = passed + self._held, b""
        return passed


class _Cursor:
    """Reads the presentation language of RFC 8446, section 3."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        piece = self._data[self._at : self._at + count]
        if len(piece) != count:
            raise _Bad("its ClientHello is shorter than it says")
        self._at += count
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int, least: int, most: int) -> bytes:
        length = self.number(size)
        if not least <= length <= most:
            raise _Bad("its ClientHello has a field of impossible length")
        return self.take(length)

    def at_end(self) -> bool:
        return self._at == len(self._data)


def _hello(message: bytes) -> ClientHello:
    cursor = _Cursor(message)
    if cursor.number(2) >> 8 != 3:
        raise _Bad("its ClientHello is of no known version")
    cursor.take(32)
    cursor.vector(1, 0, 32)
    suites = cursor.vector(2, 2, 0xFFFE)
    if len(suites) % 2:
        raise _Bad("its list of cipher suites is odd")
    cursor.vector(1, 1, 255)
    if cursor.at_end():
        return ClientHello(None, False)
    extensions = _Cursor(cursor.vector(2, 0, 0xFFFF))
    if not cursor.at_end():
        raise _Bad("something follows the extensions of its ClientHello")
    name: str | None = None
    seen: set[int] = set()
    while not extensions.at_end():
        kind = extensions.number(2)
        data = extensions.vector(2, 0, 0xFFFF)
        if kind in seen:
            raise _Bad("its ClientHello has an extension twice")
        seen.add(kind)
        if kind == _SERVER_NAME:
            name = _server_name(data)
    return ClientHello(name, not seen.isdisjoint(_HIDDEN))


def _server_name(data: bytes) -> str:
    """The one host name (RFC 6066, section 3). Two names, or a name of another kind, could be read either way."""
    cursor = _Cursor(data)
    names = _Cursor(cursor.vector(2, 1, 0xFFFF))
    if not cursor.at_end():
        raise _Bad("something follows its server name")
    if names.number(1) != _HOST_NAME:
        raise _Bad("its server name is of an unknown kind")
    name = names.vector(2, 1, 253)
    if not names.at_end():
        raise _Bad("it names more than one server")
    try:
        text = name.decode("ascii")
    except UnicodeDecodeError:
        raise _Bad("its server name is not ASCII") from None
    if not all(char.isalnum() or char in "-._" for char in text):
        raise _Bad("its server name is no host name")
    return text.lower()


def refusal(hello: ClientHello, host: str) -> str | None:
    """Why a hello may not go to `host` (lower case); None when it names exactly that host and hides nothing."""
    if hello.hidden:
        return "the client hides the name it asks for (Encrypted Client Hello, or GREASE in its place)"
    if hello.server_name is None:
        return "the client names no host"
    if hello.server_name != host:
        return f"the client names {hello.server_name}, and the tunnel was asked for {host}"
    return None

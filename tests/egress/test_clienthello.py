import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.egress import clienthello
from amem.egress.clienthello import AfterHello, ClientHello, HelloReader, Malformed, NeedMore
from tests.egress import hellos

HOST = "api.example.com"
HELLO = hellos.real(HOST)


def read(*pieces: bytes) -> NeedMore | ClientHello | Malformed:
    reader = HelloReader()
    found: NeedMore | ClientHello | Malformed = NeedMore()
    for piece in pieces:
        found = reader.feed(piece)
        if not isinstance(found, NeedMore):
            break
    return found


def test_a_real_hello_is_read_whole_and_at_every_split() -> None:
    assert read(HELLO) == ClientHello(HOST, False)
    for at in range(1, len(HELLO)):
        reader = HelloReader()
        assert reader.feed(HELLO[:at]) == NeedMore()
        assert reader.feed(HELLO[at:]) == ClientHello(HOST, False)
    assert read(*(HELLO[i : i + 1] for i in range(len(HELLO)))) == ClientHello(HOST, False)


@pytest.mark.parametrize("sizes", [[1], [2, 3], [5, 100], [60, 1]])
def test_a_hello_in_many_records_is_one_hello(sizes: list[int]) -> None:
    assert read(hellos.records(hellos.message(HELLO), sizes)) == ClientHello(HOST, False)


def test_a_name_in_capitals_is_the_same_name_and_none_is_none() -> None:
    loud = hellos.changed(HOST, lambda extensions: [hellos.name_extension(b"API.Example.COM")] + [e for e in extensions if e[0] != 0])
    assert read(loud) == ClientHello(HOST, False)
    assert read(hellos.real(None)) == ClientHello(None, False)


@pytest.mark.parametrize("kind", [0xFE0D, 0xFFCE, 0xFE08, 0xFE0A, 0xFD00, 0xFF02])
def test_an_encrypted_hello_and_its_grease_are_told(kind: int) -> None:
    hidden = hellos.changed(HOST, lambda extensions: [*extensions, (kind, b"\x00" * 20)])
    assert read(hidden) == ClientHello(HOST, True)


def test_other_grease_is_no_hidden_name() -> None:
    assert read(hellos.changed(HOST, lambda extensions: [(0x0A0A, b""), *extensions, (0xFAFA, b"\x00")])) == ClientHello(HOST, False)


@pytest.mark.parametrize(
    "extension",
    [
        hellos.name_extension(b"api.example.com", b"evil.example"),
        hellos.name_extension(b"api.example.com", kind=1),
        hellos.name_extension(b""),
        hellos.name_extension(b"api.example.com\x00.evil"),
        hellos.name_extension(b"api.example.com/evil"),
        hellos.name_extension("ä.example".encode()),
        hellos.name_extension(b"a" * 300),
        (0, b""),
        (0, b"\x00\x05abc"),
        (0, hellos.name_extension(b"api.example.com")[1] + b"x"),
    ],
)
def test_a_name_that_could_be_read_otherwise_is_malformed(extension: hellos.Extension) -> None:
    assert isinstance(read(hellos.changed(HOST, lambda found: [extension, *(e for e in found if e[0] != 0)])), Malformed)


def test_an_extension_twice_is_malformed() -> None:
    assert isinstance(read(hellos.changed(HOST, lambda found: [*found, hellos.name_extension(b"evil.example")])), Malformed)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"\x80\x2e\x01\x03\x01",
        b"\x17\x03\x03\x00\x01x",
        b"\x15\x03\x01\x00\x02\x01\x00",
        b"\x16\x02\x00\x00\x01\x01",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
        b"\x16\x03\x01\x00\x04\x01\xff\xff\xff",
        hellos.records(hellos.message(HELLO) + b"\x01\x00\x00\x00", [1 << 14]),
        hellos.records(hellos.message(HELLO)[:200], [100]) + b"\x14\x03\x01\x00\x01\x01",
    ],
)
def test_what_begins_no_hello_is_malformed(data: bytes) -> None:
    assert isinstance(read(data), Malformed)


@given(st.binary(max_size=300))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    read(data)


@given(st.integers(0, len(HELLO) - 1), st.integers(1, 255))
def test_no_changed_byte_makes_it_name_another_host_by_accident(at: int, flip: int) -> None:
    broken = bytearray(HELLO)
    broken[at] ^= flip
    found = read(bytes(broken))
    if isinstance(found, ClientHello) and found.server_name not in (HOST, None):
        assert clienthello.refusal(found, HOST) is not None


@pytest.mark.parametrize(
    ("hello", "allowed"),
    [
        (ClientHello(HOST, False), True),
        (ClientHello(HOST, True), False),
        (ClientHello(None, False), False),
        (ClientHello("evil.example", False), False),
        (ClientHello("x." + HOST, False), False),
        (ClientHello(HOST + ".", False), False),
    ],
)
def test_only_the_hosts_own_name_in_the_open_may_go_on(hello: ClientHello, allowed: bool) -> None:
    assert (clienthello.refusal(hello, HOST) is None) == allowed


CCS = b"\x14\x03\x03\x00\x01\x01"
DATA = b"\x17\x03\x03\x00\x02hi"


def through(*pieces: bytes) -> bytes | Malformed:
    after, passed = AfterHello(HOST), b""
    for piece in pieces:
        found = after.feed(piece)
        if isinstance(found, Malformed):
            return found
        passed += found
    return passed


@pytest.mark.parametrize(
    "stream", [DATA, CCS + DATA, CCS + HELLO + DATA, HELLO + CCS + DATA, b"\x16\x03\x03\x00\x04\x10\x00\x00\x00" + CCS, b"\x15\x03\x03x"]
)
def test_what_follows_a_hello_passes_at_every_split(stream: bytes) -> None:
    for at in range(len(stream)):
        assert through(stream[:at], stream[at:]) == stream
    assert through(*(stream[i : i + 1] for i in range(len(stream)))) == stream


@pytest.mark.parametrize(
    "second", [hellos.real("evil.example"), hellos.real(None), hellos.records(hellos.message(hellos.real("evil.example")), [1, 7])]
)
def test_a_second_hello_that_names_another_host_is_held_and_refused(second: bytes) -> None:
    for first in (b"", CCS):
        after = AfterHello(HOST)
        assert after.feed(first) == first
        for at in range(6, len(second) - 1, 50):
            watch = AfterHello(HOST)
            watch.feed(first)
            assert watch.feed(second[:at]) == b""
            assert isinstance(watch.feed(second[at:]), Malformed)

import pytest

from amem.model.addresses import is_inward


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.9.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:a9fe:a9fe",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "2001:db8::1",
        "2001::1",
        "::7f00:1",
    ],
)
def test_every_spelling_of_an_inward_address_is_inward(address: str) -> None:
    assert is_inward(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "160.79.104.10", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1"]
)
def test_a_public_address_is_not(address: str) -> None:
    assert not is_inward(address)


@pytest.mark.parametrize("text", ["localhost", "", "127.1", "0x7f.1", "2130706433", "1.1.1.1 "])
def test_what_is_no_address_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="IPv4 or IPv6"):
        is_inward(text)

"""Which addresses are inward: this machine, its networks, the cloud's metadata, and every spelling of them.

Pure. A destination's public name that leads inward is an attack or a mistake; both are refused at the dial, on the very address
that would be dialled.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")


def is_inward(text: str) -> bool:
    """Say whether an IP address is not on the public internet. Raises ValueError when it is no address."""
    return _inward(ip_address(text.partition("%")[0]))


def _inward(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return _inward(address.ipv4_mapped)
        if address.sixtofour is not None:
            return _inward(address.sixtofour)
        if address.teredo is not None or address in _NAT64_LOCAL:
            return True
        if address in _NAT64 or address in _COMPATIBLE:
            return _inward(IPv4Address(int(address) & 0xFFFFFFFF))
    return not address.is_global or address.is_multicast or address.is_reserved

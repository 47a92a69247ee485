"""Owns the question under which addresses other machines reach this one.

IPv4 only: what people type into a phone. Inside a container these are the container's.
"""

import contextlib
import socket
import struct
import sys
from ipaddress import IPv4Address

_SIOCGIFADDR = 0x8915
_ELSEWHERE = ("192.0.2.1", 9)
"""An address reserved for documentation: choosing a way there sends nothing."""
_VIRTUAL = ("docker", "br-", "veth", "virbr", "cni", "flannel")
"""Interfaces to this machine's own containers and virtual machines."""


def reachable_at(host: str) -> list[str]:
    """Return the addresses at which others reach what listens on `host`, the likeliest first.

    Empty when it listens for this machine only.
    """
    try:
        listening = IPv4Address("0.0.0.0" if host in ("", "::") else host)
    except ValueError:  # a name, or a single IPv6 address: it says itself what it is
        return [] if host in ("localhost", "::1") else [host]
    if not listening.is_unspecified:
        return [] if listening.is_loopback else [str(listening)]
    found = [*_default_route(), *_interfaces()]
    return [each for each in dict.fromkeys(found) if not IPv4Address(each).is_loopback]


def _default_route() -> list[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError:  # no way out of here: a network of its own, or none
            return []
        return [str(probe.getsockname()[0])]


def _interfaces() -> list[str]:
    """Return each interface's address; elsewhere than on Linux nothing more is known."""
    if sys.platform != "linux":
        return []
    import fcntl  # noqa: PLC0415 - Windows has none

    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            if name.startswith(_VIRTUAL):
                continue
            with contextlib.suppress(OSError):  # an interface without an address
                asked = struct.pack("256s", name.encode())
                found.append(socket.inet_ntoa(fcntl.ioctl(probe, _SIOCGIFADDR, asked)[20:24]))
    return found

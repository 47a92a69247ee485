"""Finds the addresses and names under which other machines reach this one.

IPv4 only: what people type into a phone. Inside a container these are the container's.
"""

import contextlib
import socket
import struct
import sys
from ipaddress import IPv4Address
from pathlib import Path

from edgebox.config.host_names import is_loopback

_RESOLVER = Path("/etc/resolv.conf")
_HOSTS = Path("/etc/hosts")
_SIOCGIFADDR = 0x8915
_ELSEWHERE = ("192.0.2.1", 9)
"""An address reserved for documentation: choosing a route to it sends nothing."""
_VIRTUAL = ("docker", "br-", "veth", "virbr", "cni", "flannel")
"""Interfaces to this machine's own containers and virtual machines."""


def own_names(listens_on: str) -> list[str]:
    """Return the local names of this machine for a server that listens on a host.

    The host name, alone and with mDNS's suffix. If other machines can connect, also with the search
    domains and as in the hosts file.
    """
    full = socket.gethostname().lower().removesuffix(".")
    short = full.split(".", 1)[0]
    names = [full, short, f"{short}.local"]
    if not is_loopback(listens_on):
        names += [f"{short}.{domain}" for domain in _words_after("search", _RESOLVER)]
        names += [f"{short}.{domain}" for domain in _words_after("domain", _RESOLVER)]
        names += [name for name in _names_of_same_host(short) if name.startswith(f"{short}.")]
    return list(dict.fromkeys(names))


def _words_after(key: str, file: Path) -> list[str]:
    lines = (line.split() for line in _lines(file))
    return [
        word.lower().strip(".")
        for key_, *words in filter(None, lines)
        if key_ == key
        for word in words
    ]


def _names_of_same_host(name: str) -> list[str]:
    """Return all names that the hosts file gives to this name's addresses."""
    entries = ([word.lower() for word in line.split("#")[0].split()[1:]] for line in _lines(_HOSTS))
    return [word for words in entries if name in words for word in words]


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def reachable_at(host: str) -> list[str]:
    """Return the addresses at which others reach what listens on `host`, the likeliest first.

    Empty when it listens for this machine only.
    """
    try:
        listening = IPv4Address("0.0.0.0" if host in ("", "::") else host)
    except ValueError:  # a name or a single IPv6 address
        return [] if host in ("localhost", "::1") else [host]
    if not listening.is_unspecified:
        return [] if listening.is_loopback else [str(listening)]
    found = [*_default_route(), *_interfaces()]
    return [each for each in dict.fromkeys(found) if not IPv4Address(each).is_loopback]


def _default_route() -> list[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError:  # no route to other networks
            return []
        return [str(probe.getsockname()[0])]


def _interfaces() -> list[str]:
    """Return each interface's address; empty on systems other than Linux."""
    if sys.platform != "linux":
        return []
    import fcntl  # noqa: PLC0415 - Windows has none

    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            if name.startswith(_VIRTUAL):
                continue
            with contextlib.suppress(OSError):  # an interface without an address
                query = struct.pack("256s", name.encode())
                found.append(socket.inet_ntoa(fcntl.ioctl(probe, _SIOCGIFADDR, query)[20:24]))
    return found

"""Decides by which names the box may be asked for. Pure: no look-ups.

A page of another site can have its own name point at this box (DNS rebinding); to the browser the
box is then a part of that site. What gives it away is the `Host` header, which has that name.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_AUTHORITY = re.compile(r"(?:\[([^\[\]]+)\]|([^\[\]:]+))(?::([0-9]{0,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NAME_LENGTH_MAX = 253
_KEPT_MAX = 512
"""Answers that are remembered: every request asks the same of a few addresses and names."""
_LOOPBACK = "localhost"
_PRIVATE = (".local", ".home.arpa", ".internal", ".lan", ".home")
"""Domains that the public DNS does not have: for mDNS (RFC 6762), homes (RFC 8375), networks of
one's own (reserved by ICANN), and two in wide use that ICANN will not delegate or never has."""


@lru_cache(maxsize=_KEPT_MAX)
def host_of(authority: str) -> str | None:
    """Return the host in what a `Host` header says; None: it says none.

    Lower case, without port, brackets and the dot that ends a full name: "[::1]:8787" is "::1".
    """
    match = _AUTHORITY.fullmatch(authority)
    if match is None or int(match[3] or 0) > 65_535:
        return None
    if match[1] is not None:
        found = address_of(match[1])
        return str(found) if isinstance(found, IPv6Address) else None
    host = match[2].lower().removesuffix(".")
    return host if address_of(host) is not None or _is_name(host) else None


@lru_cache(maxsize=_KEPT_MAX)
def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address that a text is; None: it is none."""
    try:
        return ip_address(host)
    except ValueError:
        return None


@lru_cache(maxsize=_KEPT_MAX)
def peer_address(peer: str | None) -> IPv4Address | IPv6Address | None:
    """Return the address of who is connected, IPv4 in IPv6 as IPv4; None: it has none."""
    address = None if peer is None else address_of(peer)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """The hosts that the box answers to.

    IP addresses always: rebinding takes a name, for only what a name points at can change.
    """

    names: frozenset[str]
    suffixes: tuple[str, ...] = ()
    """".example.com": that name and all below."""
    private: bool = False
    """Also all names that only this network can have given: of one part, and in `_PRIVATE`."""

    @classmethod
    def of(cls, listens_on: str, allowed: Iterable[str], own: Iterable[str]) -> "KnownHosts":
        """Return them by the configuration.

        Args:
            listens_on: `server.host`.
            allowed: `server.allowed_hosts`, checked.
            own: this machine's names.
        """
        allowed = [name.lower().removesuffix(".") for name in allowed]
        names = {*(name.lower().removesuffix(".") for name in own), listens_on.lower()}
        return cls(
            frozenset(names | {name.removeprefix(".") for name in allowed}),
            tuple(name for name in allowed if name.startswith(".")),
            private=not allowed and not is_loopback(listens_on),
        )

    def has(self, host: str) -> bool:
        """Return whether the box answers to a host (`host_of`)."""
        return (
            host in self.names
            or host == _LOOPBACK
            or host.endswith((f".{_LOOPBACK}", *self.suffixes))
            or address_of(host) is not None
            or (self.private and ("." not in host or host.endswith(_PRIVATE)))
        )


def is_loopback(listens_on: str) -> bool:
    """Return whether only this machine reaches what listens on a host."""
    address = address_of(listens_on)
    return listens_on.lower() == _LOOPBACK if address is None else address.is_loopback


def wrong_hosts(allowed: Iterable[str], proxies: Iterable[str]) -> list[str]:
    """Return what is wrong with `server.allowed_hosts` and `server.trusted_proxies`."""
    wrong = [
        f"server.allowed_hosts: {name!r} is no host name; write box.example.com, or .example.com "
        "for it and all names below, without scheme and port"
        for name in allowed
        if not _is_name(name.lower().removesuffix(".").removeprefix("."))
        and address_of(name) is None
    ]
    for proxy in proxies:
        try:
            ip_network(proxy, strict=False)
        except ValueError:
            wrong.append(
                f"server.trusted_proxies: {proxy!r} is no address; write 10.0.0.2 or 10.0.0.0/24"
            )
    return wrong


def _is_name(text: str) -> bool:
    labels = text.split(".")
    return len(text) <= _NAME_LENGTH_MAX and all(map(_LABEL.fullmatch, labels))

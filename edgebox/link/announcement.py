"""What a box announces in the local network by mDNS (RFC 6762, 6763), and how it is read. Pure.

It says how the box is reached and no more: everybody in the network can read it, and anybody can
announce anything.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

SERVICE_TYPE = "_edgebox._tcp.local."
_LABEL_BYTES_MAX = 63
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class FoundBox:
    """A box that announces itself."""

    name: str
    url: str
    """"http://192.168.1.5:8787"."""


def instance_name(box: str, host: str) -> str:
    """Return the name under which a box is announced: "edgebox on gate-pc".

    Args:
        box: its configured name.
        host: of its machine, without a domain.
    """
    text = _UNPRINTABLE.sub(" ", f"{box} on {host}")
    return text.encode()[:_LABEL_BYTES_MAX].decode(errors="ignore")


def host_label(host: str, port: int) -> str:
    """Return the name to which the announced addresses belong; other responders have the host's."""
    plain = re.sub(r"[^a-z0-9-]", "-", host.lower())[:40]
    return f"edgebox-{plain}-{port}.local."


def properties(tls: bool) -> dict[str, str]:
    """Return the announced properties."""
    return {"tls": "1" if tls else "0"}


def found_box(
    service: str, address: str, port: int, said: Mapping[bytes, bytes | None]
) -> FoundBox:
    """Return the box of an announcement.

    Args:
        service: the service's full name.
        address: an IPv4 address of it.
        port: its port.
        said: its properties.
    """
    scheme = "https" if said.get(b"tls") == b"1" else "http"
    name = _UNPRINTABLE.sub(" ", service.removesuffix(f".{SERVICE_TYPE}"))
    return FoundBox(name, f"{scheme}://{address}:{port}")

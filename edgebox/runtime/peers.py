"""Bounds what one network address can bring about, under however many names.

Cameras name themselves, so what is bounded for each camera is not bounded for who sends. Cameras
behind one address have room for all that may be connected. Lives on the event loop.
"""

import ipaddress
from collections.abc import Callable

from edgebox.domain.requests import CameraId
from edgebox.runtime.refusals import BoxFullError
from edgebox.runtime.repeat_limiter import NOTICES_PER_MINUTE, Repeats

NAMES_PER_CAMERA = 2
"""Names that may appear in an hour, to each camera that may be connected."""
_NOTICES_PER_CAMERA = 2
"""Notices in a minute, to each camera that may be connected: it came, and left."""
_HOUR_NS = 3_600_000_000_000
_NETWORK_BITS = 64
"""What one subscriber has of IPv6: every address in it is theirs."""


class Peers:
    """What came from each address lately."""

    def __init__(self, cameras_max: int, clock_ns: Callable[[], int]) -> None:
        """Know of nobody; `cameras_max` may be connected, from anywhere."""
        self._names_max = NAMES_PER_CAMERA * cameras_max
        self._clock_ns = clock_ns
        self._seen_ns: dict[str, dict[CameraId, int]] = {}
        """When each name came last, the oldest first."""
        self._notices = Repeats(NOTICES_PER_MINUTE + _NOTICES_PER_CAMERA * cameras_max)

    def named(self, address: str, camera: CameraId) -> None:
        """Take in that a camera says hello.

        Raises:
            BoxFullError: too many names came from this address within an hour.
        """
        now_ns = self._clock_ns()
        peer = _peer(address)
        names = self._seen_ns.setdefault(peer, {})
        _forget(names, now_ns - _HOUR_NS)
        if names.pop(camera, None) is None and len(names) >= self._names_max:
            raise BoxFullError(
                f"cameras of {self._names_max} names came from {peer} within an hour, the most "
                "this box takes from one address: give cameras names that stay the same"
            )
        names[camera] = now_ns

    def passes(self, address: str) -> bool:
        """Count a notice about what came from an address; say whether it is to be told."""
        return self._notices.passes(_peer(address))

    def end_minute(self) -> dict[str, int]:
        """Return how many notices of each address were not told in the minute that ends."""
        horizon_ns = self._clock_ns() - _HOUR_NS
        for peer, names in list(self._seen_ns.items()):
            _forget(names, horizon_ns)
            if not names:
                del self._seen_ns[peer]
        return self._notices.end_period()


def _forget(names: dict[CameraId, int], horizon_ns: int) -> None:
    while names and names[oldest := next(iter(names))] < horizon_ns:
        del names[oldest]


def _peer(address: str) -> str:
    """Return whom an address belongs to: itself, or its network where one has many."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4 or found.ipv4_mapped is not None:
        return str(found if found.version == 4 else found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _NETWORK_BITS), strict=False))

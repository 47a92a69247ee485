"""Limits notices and camera names per network address.

Cameras choose their names, so a limit per camera does not limit a sender. The limits leave room for
all permitted cameras to be behind one address. Lives on the event loop.
"""

import ipaddress
from collections.abc import Callable
from functools import lru_cache

from edgebox.domain.requests import CameraId
from edgebox.runtime.refusals import BoxFullError
from edgebox.runtime.repeat_limiter import NOTICES_PER_MINUTE, RepeatLimiter

NAMES_PER_CAMERA = 2
"""Names per hour from one address, for each permitted camera."""
_NOTICES_PER_CAMERA = 2
"""Notices per minute from one address, for each permitted camera: it connected and it left."""
_HOUR_NS = 3_600_000_000_000
_NETWORK_BITS = 64
"""Size of the IPv6 network of one subscriber."""


class Peers:
    """Recent names and notices of each address."""

    def __init__(self, cameras_max: int, clock_ns: Callable[[], int]) -> None:
        """Start empty; `cameras_max` cameras may be connected at the same time."""
        self._names_max = NAMES_PER_CAMERA * cameras_max
        self._clock_ns = clock_ns
        self._seen_ns: dict[str, dict[CameraId, int]] = {}
        """Latest connection of each name, the oldest first."""
        self._notices = RepeatLimiter(NOTICES_PER_MINUTE + _NOTICES_PER_CAMERA * cameras_max)

    def named(self, address: str, camera: CameraId) -> None:
        """Record that a camera connects.

        Raises:
            BoxFullError: too many names came from this address within an hour.
        """
        now_ns = self._clock_ns()
        peer = network_of(address)
        names = self._seen_ns.setdefault(peer, {})
        _forget(names, now_ns - _HOUR_NS)
        if names.pop(camera, None) is None and len(names) >= self._names_max:
            raise BoxFullError(
                f"{self._names_max} camera names connected from {peer} within an hour, the most "
                "that this box accepts from one address: give cameras names that stay the same"
            )
        names[camera] = now_ns

    def passes(self, address: str) -> bool:
        """Count a notice about an address; return whether to publish it."""
        return self._notices.passes(network_of(address))

    def end_minute(self) -> dict[str, int]:
        """Return how many notices of each address were held back in this minute."""
        horizon_ns = self._clock_ns() - _HOUR_NS
        for peer, names in list(self._seen_ns.items()):
            _forget(names, horizon_ns)
            if not names:
                del self._seen_ns[peer]
        return self._notices.end_period()


def _forget(names: dict[CameraId, int], horizon_ns: int) -> None:
    while names and names[oldest := next(iter(names))] < horizon_ns:
        del names[oldest]


@lru_cache(maxsize=4_096)  # each request asks several times
def network_of(address: str) -> str:
    """Return the address, or its network if one subscriber has many addresses."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4 or found.ipv4_mapped is not None:
        return str(found if found.version == 4 else found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _NETWORK_BITS), strict=False))

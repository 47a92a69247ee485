"""Limits wrong tokens and codes per network address. Lives on the event loop."""

import math
from collections.abc import Callable

from edgebox.domain.access import TooManyAttemptsError
from edgebox.runtime.peers import network_of

ATTEMPTS_MAX = 10
"""Wrong attempts from one address before it must wait."""
_PERIOD_NS = 60_000_000_000
"""Time in which the right to one attempt after another comes back, all of them."""
_ADDRESSES_MAX = 4096


class AttemptLimiter:
    """A bucket of attempts for each address; only wrong ones are taken from it."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        """Begin with full buckets."""
        self._clock_ns = clock_ns
        self._used: dict[str, tuple[float, int]] = {}
        """(attempts used, instant of that), those who failed last at the end."""

    def check(self, address: str) -> None:
        """Refuse an address that has no attempt left.

        Raises:
            TooManyAttemptsError: says when to try again.
        """
        used = self._used_by(network_of(address))
        if used > ATTEMPTS_MAX - 1:
            wait_s = math.ceil((used - ATTEMPTS_MAX + 1) * _PERIOD_NS / ATTEMPTS_MAX / 1e9)
            raise TooManyAttemptsError(
                f"too many wrong tokens or codes came from {address}: try again in {wait_s} s"
            )

    def failed(self, address: str) -> None:
        """Count a wrong attempt."""
        subscriber = network_of(address)
        used = min(self._used_by(subscriber) + 1, float(ATTEMPTS_MAX))
        self._used.pop(subscriber, None)
        self._used[subscriber] = used, self._clock_ns()
        while len(self._used) > _ADDRESSES_MAX:
            del self._used[next(iter(self._used))]

    def _used_by(self, subscriber: str) -> float:
        used, at_ns = self._used.get(subscriber, (0.0, 0))
        return max(0.0, used - (self._clock_ns() - at_ns) * ATTEMPTS_MAX / _PERIOD_NS)

"""Decides the offset of a camera's clock from the box's, and its uncertainty.

Each ping/pong exchange brackets the offset (box minus camera) soundly: the camera stamped its clock
after the box sent the ping and before the box received the pong. The estimate is the middle of the
bracket that is narrowest now, as in NTP's clock filter (RFC 5905, section 10). There are two
differences. Age counts through the drift allowance instead of a dispersion sum. A bracket that
contradicts an earlier one proves that the camera's clock jumped (a suspended or rebooted camera)
and empties the window. A clock that jumps at one exchange after the other does not run, or counts
another unit than nanoseconds: until it agrees with itself again nothing is mapped with it.
O(window) per exchange, O(1) per frame.

Pure: the instants are arguments.
"""

from collections import deque
from dataclasses import dataclass

WINDOW_NS = 30_000_000_000
DRIFT_PPM = 100.0
"""The maximum drift between two plain crystals; 3 ms over the whole window."""
JUMP_TOLERANCE_NS = 1_000_000
"""Smaller contradictions come from a coarse clock (browsers: 1 ms), not from a jump."""
ERRATIC_JUMPS = 3
ERRATIC_NS = 20_000_000
"""So many jumps in a row, each so large, show that it is no clock. Pings are a second apart: one
that is 1 % off is followed, although each exchange contradicts the one before."""


@dataclass(frozen=True, slots=True)
class _Exchange:
    offset_ns: int
    """Middle of the bracket: box minus camera."""
    rtt_ns: int
    received_ns: int


class ClockEstimate:
    """The offset of one camera's clock, from ping/pong exchanges."""

    def __init__(
        self,
        window_ns: int = WINDOW_NS,
        drift_ppm: float = DRIFT_PPM,
        jump_tolerance_ns: int = JUMP_TOLERANCE_NS,
    ) -> None:
        self.jumps = 0
        """How often the camera's clock has jumped."""
        self.rtt_ns: int | None = None
        """The least round trip of the window; None before the first exchange."""
        self._window_ns = window_ns
        self._drift_ppm = drift_ppm
        self._jump_tolerance_ns = jump_tolerance_ns
        self._window: deque[_Exchange] = deque()
        self._best: _Exchange | None = None
        self._jumps_in_a_row = 0

    @property
    def is_erratic(self) -> bool:
        """Whether it jumps again and again, so that its offset says nothing."""
        return self._jumps_in_a_row >= ERRATIC_JUMPS

    def add(self, sent_ns: int, camera_ns: int, received_ns: int) -> bool:
        """Learn from one exchange.

        Args:
            sent_ns: when the ping left, on the box's clock.
            camera_ns: the camera's clock when it answered.
            received_ns: when the pong arrived, on the box's clock; never falls between calls.

        Returns:
            Whether this exchange proves that the camera's clock has jumped. Instants mapped with
            the old offset since the jump were wrong.

        Raises:
            ValueError: the pong arrived before the ping was sent.
        """
        if received_ns < sent_ns:
            raise ValueError("a pong cannot arrive before its ping is sent")
        rtt_ns = received_ns - sent_ns
        exchange = _Exchange(sent_ns + rtt_ns // 2 - camera_ns, rtt_ns, received_ns)
        jumped = any(self._contradicts(exchange, earlier) for earlier in self._window)
        far = jumped and abs(exchange.offset_ns - self._window[-1].offset_ns) > ERRATIC_NS
        self._jumps_in_a_row = self._jumps_in_a_row + 1 if far else 0
        if jumped:
            self.jumps += 1
            self._window.clear()
        self._window.append(exchange)
        # The newest always stays, so the window is never empty.
        while self._window[0].received_ns < received_ns - self._window_ns:
            self._window.popleft()
        self._best = min(self._window, key=lambda e: self._error_ns(e, received_ns))
        self.rtt_ns = min(exchange.rtt_ns for exchange in self._window)
        return jumped

    @property
    def offset_ns(self) -> int | None:
        """The box's clock minus the camera's; None: not known."""
        return None if self._best is None or self.is_erratic else self._best.offset_ns

    def error_ns(self, now_ns: int) -> int | None:
        """Return the maximum error of `offset_ns`: half its round trip plus drift over its age."""
        if self._best is None or self.is_erratic:
            return None
        return self._error_ns(self._best, now_ns)

    def to_box_ns(self, camera_ns: int) -> int | None:
        """Return an instant of the camera's clock on the box's clock."""
        offset_ns = self.offset_ns
        return None if offset_ns is None else camera_ns + offset_ns

    def _error_ns(self, exchange: _Exchange, now_ns: int) -> int:
        age_ns = max(0, now_ns - exchange.received_ns) + exchange.rtt_ns
        # Rounded up: the middle of an odd bracket was rounded down.
        return (exchange.rtt_ns + 1) // 2 + round(age_ns * self._drift_ppm * 1e-6)

    def _contradicts(self, exchange: _Exchange, earlier: _Exchange) -> bool:
        reach_ns = self._error_ns(earlier, exchange.received_ns) + (exchange.rtt_ns + 1) // 2
        return abs(exchange.offset_ns - earlier.offset_ns) > reach_ns + self._jump_tolerance_ns

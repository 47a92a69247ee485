"""Decides when a byte has left a link whose rate follows a recorded or synthetic trace.

Used by the camera daemon's `--link` and the simulator. The link is a queue in front of one bit
pipe: it sends frames in order, at the trace's rate of that moment, and accumulates no credit while
idle. Latency and loss are not modelled. Pure: no clock, no I/O; the text of a trace file is an
argument.
"""

import math
import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from edgebox.domain.errors import InvalidInputError

NS_PER_S = 1_000_000_000
RATE_MAX_MBPS = 1e6
"""A terabit per second: a higher value is a wrong unit."""
MADE_UP_SECONDS = 300
TRACE_FORMATS = ("mbps", "csv", "mahimahi")
MAHIMAHI_SUFFIXES = (".up", ".down", ".mahi")
_PACKET_BITS = 1500 * 8
_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class BandwidthTrace:
    """A link's rate over time, piecewise constant, repeated for ever.

    `starts_ns` begin at 0 and rise; the last step ends at `period_ns`.
    """

    starts_ns: tuple[int, ...]
    rates_bps: tuple[float, ...]
    period_ns: int

    def __post_init__(self) -> None:
        if not self.starts_ns or len(self.starts_ns) != len(self.rates_bps):
            raise InvalidInputError("a bandwidth trace needs as many instants as rates, at least 1")
        ends = (*self.starts_ns, self.period_ns)
        if ends[0] != 0 or any(left >= right for left, right in pairwise(ends)):
            raise InvalidInputError("a bandwidth trace's instants must start at 0 and rise")
        if not all(0 <= rate <= RATE_MAX_MBPS * 1e6 for rate in self.rates_bps):
            raise InvalidInputError(f"a bandwidth must be from 0 to {RATE_MAX_MBPS:g} Mbit/s")
        if not any(self.rates_bps):
            raise InvalidInputError("a bandwidth trace that is 0 throughout carries nothing")

    @classmethod
    def constant(cls, mbps: float) -> "BandwidthTrace":
        """Return a link with a constant rate."""
        return cls((0,), (mbps * 1e6,), NS_PER_S)

    @classmethod
    def per_second(cls, mbps: Sequence[float]) -> "BandwidthTrace":
        """Return a link with one rate for each second."""
        return cls.stepwise(mbps, 1.0)

    @classmethod
    def stepwise(cls, mbps: Sequence[float], step_s: float) -> "BandwidthTrace":
        """Return a link with one rate for each step of this length."""
        starts = tuple(round(at * step_s * NS_PER_S) for at in range(len(mbps)))
        end_ns = round(len(mbps) * step_s * NS_PER_S)
        return cls(starts, tuple(rate * 1e6 for rate in mbps), end_ns)

    def bps_at(self, at_ns: int) -> float:
        """Return the rate at an instant (>= 0)."""
        return self.rates_bps[bisect_right(self.starts_ns, at_ns % self.period_ns) - 1]


class ShapedLink:
    """One link's transmission queue.

    The trace begins at `origin_ns`.
    """

    def __init__(self, trace: BandwidthTrace, origin_ns: int) -> None:
        self._trace = trace
        self._origin_ns = origin_ns
        self._free_ns = origin_ns
        spans = (right - left for left, right in pairwise((*trace.starts_ns, trace.period_ns)))
        bits = (rate * span / 1e9 for rate, span in zip(trace.rates_bps, spans, strict=True))
        self._bits_before = (0.0, *accumulate(bits))
        self._through = 0.0
        """Bits that the link could have carried when the last one of the queue leaves."""

    def mean_bps(self, from_ns: int, until_ns: int) -> float:
        """Return the mean rate between two instants."""
        bits = self.bits_until(until_ns) - self.bits_until(from_ns)
        return bits / (until_ns - from_ns) * 1e9

    def free_ns(self, now_ns: int) -> int:
        """Return when a frame handed over now would start to leave."""
        return max(now_ns, self._free_ns)

    def leaves_ns(self, now_ns: int, size_bytes: int) -> int:
        """Add a frame to the queue; return the instant at which its last byte has left.

        O(log steps): from the sum of bits up to each step and whole periods at once.
        """
        start_ns = self.free_ns(now_ns)
        if now_ns > self._free_ns:
            self._through = self.bits_until(now_ns)
        # Counted from the last bit, not from its instant, which is rounded up: on a link with
        # pauses, a nanosecond too late may be a whole pause too late.
        self._through += size_bytes * 8
        self._free_ns = max(start_ns, self.instant_of(self._through))
        return self._free_ns

    def left_but_for_ns(self, behind_bytes: int) -> int:
        """Return when the queue has left except for its last bytes."""
        return self.instant_of(max(0.0, self._through - behind_bytes * 8))

    def behind_bytes(self, at_ns: int) -> int:
        """Return how many bytes of the queue have not left at an instant."""
        return max(0, math.ceil((self._through - self.bits_until(at_ns)) / 8))

    def bits_until(self, at_ns: int) -> float:
        """Return what the link could have carried from its origin to an instant."""
        periods, within_ns = divmod(at_ns - self._origin_ns, self._trace.period_ns)
        step = bisect_right(self._trace.starts_ns, within_ns) - 1
        into_step_ns = within_ns - self._trace.starts_ns[step]
        carried = self._bits_before[step] + self._trace.rates_bps[step] * into_step_ns / 1e9
        return periods * self._bits_before[-1] + carried

    def instant_of(self, bits: float) -> int:
        """Return when the link could have carried this many bits since its origin."""
        if bits <= 0:
            return self._origin_ns
        periods, left = divmod(bits, self._bits_before[-1])
        if left == 0:
            periods, left = periods - 1, self._bits_before[-1]
        # The first step by whose end the bits have left. It has a rate: others add nothing.
        step = bisect_left(self._bits_before, left) - 1
        into_ns = (left - self._bits_before[step]) / self._trace.rates_bps[step] * 1e9
        at_ns = int(periods) * self._trace.period_ns + self._trace.starts_ns[step]
        return self._origin_ns + at_ns + math.ceil(into_ns)


def parse_trace(
    text: str, name: str, step_s: float = 1.0, form: str | None = None
) -> BandwidthTrace:
    """Read a trace file, in one of three formats.

    - mbps: one rate in Mbit/s per line and step.
    - csv: lines under `at_s,mbps`. The last step lasts as long as the one before it (1 s if there
      is none), and the instants count from the first.
    - mahimahi: one line per packet of 1,500 bytes that the link could deliver, with the
      millisecond at which it could; the file repeats from its last millisecond on.

    Empty lines and lines that start with `#` are skipped.

    Args:
        text: the file's contents.
        name: the file's name, for messages.
        step_s: how long each rate of an mbps file lasts.
        form: one of `TRACE_FORMATS`; None: mahimahi by the name's suffix
            (`MAHIMAHI_SUFFIXES`), csv by its heading, else mbps.

    Raises:
        InvalidInputError: with the file's name and the line.
    """
    lines = [
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise InvalidInputError(f"{name}:1: no bandwidth in it; expected one rate (Mbit/s) a line")
    headed = lines[0][1].replace(" ", "").lower() == "at_s,mbps"
    if form == "mahimahi" or (form is None and name.lower().endswith(MAHIMAHI_SUFFIXES)):
        return _parse_mahimahi(lines, name)
    if form == "csv" and not headed:
        raise InvalidInputError(f"{name}:{lines[0][0]}: the first line must be at_s,mbps")
    if headed and form != "mbps":
        return _parse_csv(lines[1:], name)
    rates = [_number(line, name, number) for number, line in lines]
    try:
        return BandwidthTrace.stepwise(rates, step_s)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from None


def _parse_mahimahi(lines: Sequence[tuple[int, str]], name: str) -> BandwidthTrace:
    """Turn packets into a rate for each millisecond: that of its packets.

    The packet of millisecond t has left by t, so it belongs to the millisecond before.
    """
    packets: Counter[int] = Counter()
    last_ms = 0
    for number, line in lines:
        if not line.isdecimal() or int(line) > 10**9:
            raise InvalidInputError(
                f"{name}:{number}: expected a whole number of milliseconds, not {line[:40]!r}"
            )
        at_ms = int(line)
        if at_ms < last_ms:
            raise InvalidInputError(f"{name}:{number}: the milliseconds must not fall")
        last_ms = at_ms
        packets[max(0, at_ms - 1)] += 1
    starts_ns: list[int] = []
    rates: list[float] = []
    for at_ms in range(max(1, last_ms)):
        rate = packets[at_ms] * _PACKET_BITS * 1e3
        if not rates or rate != rates[-1]:
            starts_ns.append(at_ms * _MS)
            rates.append(rate)
    return BandwidthTrace(tuple(starts_ns), tuple(rates), max(1, last_ms) * _MS)


def _parse_csv(lines: list[tuple[int, str]], name: str) -> BandwidthTrace:
    if not lines:
        raise InvalidInputError(f"{name}:1: no bandwidth in it; expected lines under at_s,mbps")
    instants: list[int] = []
    rates: list[float] = []
    for number, line in lines:
        cells = line.split(",")
        if len(cells) != 2:
            raise InvalidInputError(f"{name}:{number}: expected at_s,mbps, not {line[:40]!r}")
        at_s = _number(cells[0], name, number)
        rates.append(_number(cells[1], name, number) * 1e6)
        instants.append(round(at_s * NS_PER_S))
        if len(instants) > 1 and instants[-1] <= instants[-2]:
            raise InvalidInputError(f"{name}:{number}: at_s must rise, and {at_s:g} does not")
    starts = tuple(instant - instants[0] for instant in instants)
    last_ns = starts[-1] - starts[-2] if len(starts) > 1 else NS_PER_S
    try:
        return BandwidthTrace(starts, tuple(rates), starts[-1] + last_ns)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from None


def _number(cell: str, name: str, line: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not 0 <= value <= RATE_MAX_MBPS:
        raise InvalidInputError(
            f"{name}:{line}: expected a number from 0 to {RATE_MAX_MBPS:g}, not {cell[:40]!r}"
        )
    return value


def lte_trace(rng: random.Random, seconds: int = MADE_UP_SECONDS) -> BandwidthTrace:
    """Generate an uplink like a phone's in a moving car, about 1 to 20 Mbit/s.

    A lognormal random walk around a level (good, fair, poor) that changes about every 20 s, with
    dips of one to three seconds to a quarter. Not fitted to any one recording.
    """
    rates: list[float] = []
    level_mbps, log_offset, dip_seconds_left = 8.0, 0.0, 0
    for _ in range(seconds):
        if rng.random() < 0.05:
            level_mbps = rng.choice((14.0, 8.0, 8.0, 3.0))
        if rng.random() < 0.03:
            dip_seconds_left = rng.randint(1, 3)
        log_offset = 0.8 * log_offset + rng.gauss(0.0, 0.2)
        rate = min(max(level_mbps * math.exp(log_offset), 1.0), 22.0)
        rates.append(round(rate * 0.25 if dip_seconds_left else rate, 3))
        dip_seconds_left = max(0, dip_seconds_left - 1)
    return BandwidthTrace.per_second(rates)


def wifi_trace(rng: random.Random, seconds: int = MADE_UP_SECONDS) -> BandwidthTrace:
    """Generate a good wireless network shared with others, about 25 to 80 Mbit/s.

    A lognormal random walk around 50 Mbit/s, with an occasional second at half of it.
    """
    rates: list[float] = []
    log_offset = 0.0
    for _ in range(seconds):
        log_offset = 0.7 * log_offset + rng.gauss(0.0, 0.15)
        rate = 50.0 * math.exp(log_offset) * (0.5 if rng.random() < 0.02 else 1.0)
        rates.append(round(min(rate, 90.0), 3))
    return BandwidthTrace.per_second(rates)


MADE_UP = {"lte": lte_trace, "wifi": wifi_trace}

"""Turns what was counted into periods: a second at a time, and minutes of them.

Knows no clock: instants come in as arguments. Nothing is lost between two seconds, whenever they
are taken: each takes what has come since the one before. Seconds that a busy box was too late for
are told apart afterwards, by when each frame was counted.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edgebox.domain.model_family import Variant, VariantName
from edgebox.domain.requests import CameraId
from edgebox.runtime.frame_metrics import CameraMetrics, Metrics
from edgebox.storage.levels import HOUR, MINUTE, SECOND
from edgebox.storage.periods import BOX, Period, Periods

_SECONDS_A_MINUTE = MINUTE.step_ms // SECOND.step_ms
_SECONDS_AN_HOUR = HOUR.step_ms // SECOND.step_ms
_TOLD_APART_MAX = 60
"""Seconds. A box that did nothing for longer was stopped, which is as good as down."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The time from one taking to the next."""

    began_ms: int
    """By the wall clock of that moment, since 1970."""
    began_ns: int
    """By the clock of the metrics."""
    elapsed_ms: int

    def covered_ms(self) -> dict[int, int]:
        """Return by second since 1970 how much of it belongs there.

        All to the second in which it began, a little of the next one included, unless it has gone
        on beyond that.
        """
        end_ms = self.began_ms + self.elapsed_ms
        first, after = self.began_ms // SECOND.step_ms, end_ms // SECOND.step_ms
        if after <= first + 1:
            return {first: self.elapsed_ms}
        # Up to the end, and no empty second after it.
        seconds = range(first, -(-end_ms // SECOND.step_ms))
        if len(seconds) > _TOLD_APART_MAX:
            seconds = seconds[:: len(seconds) - 1]
        return {
            second: min(end_ms, (second + 1) * SECOND.step_ms)
            - max(self.began_ms, second * SECOND.step_ms)
            for second in seconds
        }

    def wall_second(self, clock_s: int) -> int:
        """Return the second since 1970 in which a second of the metrics' clock began."""
        return (self.began_ms + clock_s * 1_000 - self.began_ns // 1_000_000) // SECOND.step_ms


class Rollup:
    """Takes each second's periods from the metrics, and adds them up to minutes."""

    def __init__(
        self,
        metrics: Metrics,
        variants: Mapping[VariantName, Variant],
        names_max: int,
        on_full: Callable[[], None],
    ) -> None:
        """Roll up `metrics`.

        Args:
            metrics: of all cameras.
            variants: tell the width behind a variant's name.
            names_max: cameras that get periods of their own in any one hour. Names may be
                endless, rows may not: the frames of further ones are the box's alone.
            on_full: called when there is a further one, once an hour.
        """
        self._metrics = metrics
        self._widths_px = {str(name): variant.width_px for name, variant in variants.items()}
        self._names_max = names_max
        self._on_full = on_full
        self._full = False
        self._names: set[CameraId] = set()
        self._hour = -1
        self._minutes: dict[int, dict[CameraId, Period]] = {}

    def take(
        self, stretch: Interval, links: Mapping[CameraId, float | None]
    ) -> dict[int, dict[CameraId, Period]]:
        """Return what has happened since the last call, by second since 1970.

        Args:
            stretch: from then until now.
            links: of each camera that is connected, what its uplink is believed to carry, bit/s.

        Returns:
            Of each second periods of the box and of all cameras that were connected or had frames.
        """
        covered_ms = stretch.covered_ms()
        self._begin_hour(min(covered_ms) // _SECONDS_AN_HOUR)
        found = {second: {BOX: Period(covered_ms=ms)} for second, ms in covered_ms.items()}
        for camera, metrics in self._metrics.cameras.items():
            if not metrics.has_news and camera not in links:
                continue
            periods = _news(metrics, stretch, [*covered_ms])
            if camera in links:
                _connect(periods, covered_ms, links[camera])
            admitted = self._admitted(camera)
            for second, period in periods.items():
                period.width_px_sum = sum(
                    self._widths_px.get(name, 0) * count for name, count in period.variants.items()
                )
                found[second][BOX].add(period, links=False)
                if admitted:
                    period.covered_ms = covered_ms[second]
                    found[second][camera] = period
        for second, in_second in found.items():
            minute = self._minutes.setdefault(second // _SECONDS_A_MINUTE, {})
            for camera, period in in_second.items():
                minute.setdefault(camera, Period()).add(period)
        return found

    def finished(self, second: int) -> dict[int, Periods]:
        """Return the minutes that have ended before a second, each once."""
        current = second // _SECONDS_A_MINUTE
        # A clock that was set back ends the minute it came from as well.
        ended = [minute for minute in self._minutes if minute != current]
        return {minute: self._minutes.pop(minute) for minute in ended}

    def rest(self) -> dict[int, Periods]:
        """Return the minutes that have not ended yet: the last word before the end."""
        rest: dict[int, Periods] = dict(self._minutes)
        self._minutes.clear()
        return rest

    def _begin_hour(self, hour: int) -> None:
        if hour != self._hour:
            self._hour = hour
            self._names.clear()
            self._full = False

    def _admitted(self, camera: CameraId) -> bool:
        if camera not in self._names:
            if len(self._names) >= self._names_max:
                if not self._full:
                    self._full = True
                    self._on_full()
                return False
            self._names.add(camera)
        return True


def _news(metrics: CameraMetrics, stretch: Interval, seconds: list[int]) -> dict[int, Period]:
    """Return what a camera's frames did, by one of these seconds since 1970, ascending."""
    periods: dict[int, Period] = {}
    for clock_s, news in metrics.take_updates():
        # The clocks' seconds do not begin together, nor are all told apart.
        at = bisect_right(seconds, stretch.wall_second(clock_s)) - 1
        periods.setdefault(seconds[max(at, 0)], Period()).add(news)
    return periods


def _connect(
    periods: dict[int, Period], covered_ms: Mapping[int, int], bandwidth_bps: float | None
) -> None:
    """Note that a camera was there in all these seconds, and what its uplink carries."""
    for second, ms in covered_ms.items():
        period = periods.setdefault(second, Period())
        period.connected_ms = ms
        if bandwidth_bps:
            rate_bps = round(bandwidth_bps)
            period.estimated.take(rate_bps, 1, rate_bps)

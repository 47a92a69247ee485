"""Turns counts into periods of seconds and minutes.

Without a clock: instants are arguments. Nothing is lost between two seconds, whenever they are
taken: each contains everything since the previous one. Seconds that a busy box missed are
separated afterwards by when each frame was counted.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from edgebox.domain.model_family import Variant, VariantName
from edgebox.domain.requests import CameraId
from edgebox.runtime.frame_metrics import Metrics
from edgebox.storage.levels import HOUR, MINUTE, SECOND
from edgebox.storage.periods import BOX, Period, Periods

_SECONDS_A_MINUTE = MINUTE.step_ms // SECOND.step_ms
_SECONDS_AN_HOUR = HOUR.step_ms // SECOND.step_ms
_SEPARATE_SECONDS_MAX = 60
"""Most seconds separated afterwards. A box that was idle for longer counts as down."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The time between two calls of `take`."""

    began_ms: int
    """Wall clock at the beginning, Unix time."""
    began_ns: int
    """Clock of the metrics at the beginning."""
    elapsed_ms: int

    def covered_ms(self) -> dict[int, int]:
        """Return how much of it belongs to each Unix second.

        All of it belongs to the second in which it began, unless it extends beyond the next second.
        """
        end_ms = self.began_ms + self.elapsed_ms
        first, after = self.began_ms // SECOND.step_ms, end_ms // SECOND.step_ms
        if after <= first + 1:
            return {first: self.elapsed_ms}
        # Up to the end, and no empty second after it.
        seconds = range(first, -(-end_ms // SECOND.step_ms))
        if len(seconds) > _SEPARATE_SECONDS_MAX:
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
    """Collects each second's periods from the metrics, and adds them up to minutes."""

    def __init__(
        self,
        metrics: Metrics,
        variants: Mapping[VariantName, Variant],
        names_max: int,
        on_full: Callable[[], None],
    ) -> None:
        """Roll up `metrics`.

        Args:
            metrics: the metrics of all cameras.
            variants: give the width of each variant; more may come.
            names_max: cameras that get periods of their own in any one hour. It bounds the rows;
                frames of further cameras count for the whole box only.
            on_full: called once an hour if there is a further camera.
        """
        self._metrics = metrics
        self._variants = variants
        self._names_max = names_max
        self._on_full = on_full
        self._full = False
        self._names: set[CameraId] = set()
        self._hour = -1
        self._minutes: dict[int, dict[CameraId, Period]] = {}

    def take(
        self, stretch: Interval, links: Mapping[CameraId, float | None]
    ) -> dict[int, dict[CameraId, Period]]:
        """Return the periods since the last call, by Unix second.

        Args:
            stretch: the time since the last call.
            links: estimated uplink bandwidth of each connected camera, bit/s.

        Returns:
            For each second, periods of the box and of cameras that were connected or had frames.
        """
        covered_ms = stretch.covered_ms()
        self._begin_hour(min(covered_ms) // _SECONDS_AN_HOUR)
        found = {second: {BOX: Period(covered_ms=ms)} for second, ms in covered_ms.items()}
        for camera, metrics in self._metrics.cameras.items():
            if not metrics.has_updates and camera not in links:
                continue
            periods = self._separated(metrics.take_updates(), stretch, [*covered_ms])
            if camera in links:
                _connect(periods, covered_ms, links[camera])
            admitted = self._admitted(camera)
            for second, period in periods.items():
                found[second][BOX].add(period, same_camera=False)
                if admitted:
                    period.covered_ms = covered_ms[second]
                    found[second][camera] = period
        forgotten = self._separated(self._metrics.take_forgotten(), stretch, [*covered_ms])
        for second, period in forgotten.items():
            found[second][BOX].add(period, same_camera=False)
        for second, in_second in found.items():
            minute = self._minutes.setdefault(second // _SECONDS_A_MINUTE, {})
            for camera, period in in_second.items():
                minute.setdefault(camera, Period()).add(period)
        return found

    def finished(self, second: int) -> dict[int, Periods]:
        """Return the minutes that ended before a second, each once."""
        current = second // _SECONDS_A_MINUTE
        # A clock that was set back ends the minute it came from as well.
        ended = [minute for minute in self._minutes if minute != current]
        return {minute: self._minutes.pop(minute) for minute in ended}

    def rest(self) -> dict[int, Periods]:
        """Return the minutes that have not ended yet, when the box stops."""
        rest: dict[int, Periods] = dict(self._minutes)
        self._minutes.clear()
        return rest

    def forget(self, camera: CameraId) -> None:
        """Leave a camera out of the minutes that have not ended; the box keeps its frames."""
        self._names.discard(camera)
        for minute in self._minutes.values():
            minute.pop(camera, None)

    def _separated(
        self, updates: Iterable[tuple[int, Period]], stretch: Interval, seconds: list[int]
    ) -> dict[int, Period]:
        """Return periods by Unix second, with their widths.

        Args:
            updates: by second of the metrics' clock.
            stretch: the time in which they were counted.
            seconds: Unix seconds of this time, ascending.
        """
        periods: dict[int, Period] = {}
        for clock_s, update in updates:
            # The clocks' seconds do not begin together, nor are all told apart.
            at = bisect_right(seconds, stretch.wall_second(clock_s)) - 1
            periods.setdefault(seconds[max(at, 0)], Period()).add(update)
        for period in periods.values():
            period.width_px_sum = sum(
                self._variants[VariantName(name)].width_px * count
                for name, count in period.variants.items()
                if name in self._variants
            )
        return periods

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


def _connect(
    periods: dict[int, Period], covered_ms: Mapping[int, int], bandwidth_bps: float | None
) -> None:
    """Record that a camera was connected in these seconds, and its uplink's bandwidth."""
    for second, ms in covered_ms.items():
        period = periods.setdefault(second, Period())
        period.connected_ms = ms
        if bandwidth_bps:
            rate_bps = round(bandwidth_bps)
            period.estimated.take(rate_bps, 1, rate_bps)

"""Turns what was counted into periods: a second at a time, and minutes of them.

Knows no clock: instants come in as arguments. Nothing is lost between two seconds, whenever they
are taken: each takes what has come since the one before.
"""

from collections.abc import Callable, Mapping

from edgebox.domain.models import Variant, VariantName
from edgebox.domain.requests import CameraId
from edgebox.runtime.metrics import Metrics
from edgebox.storage.levels import HOUR, MINUTE, SECOND
from edgebox.storage.periods import BOX, Period, Periods

_SECONDS_A_MINUTE = MINUTE.step_ms // SECOND.step_ms
_SECONDS_AN_HOUR = HOUR.step_ms // SECOND.step_ms


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
        self, second: int, elapsed_ms: int, links: Mapping[CameraId, float | None]
    ) -> dict[CameraId, Period]:
        """Return what has happened since the last call, by camera and for the box.

        Args:
            second: when that began, in seconds since 1970.
            elapsed_ms: how long it took.
            links: of each camera that is connected, what its uplink is believed to carry, bit/s.

        Returns:
            Periods of the box and of all cameras that were connected or had frames.
        """
        self._begin_hour(second // _SECONDS_AN_HOUR)
        box = Period(covered_ms=elapsed_ms)
        found = {BOX: box}
        for camera, metrics in self._metrics.cameras.items():
            if not metrics.has_news and camera not in links:
                continue
            period = metrics.take_news()
            if camera in links:
                period.connected_ms = elapsed_ms
            if bandwidth_bps := links.get(camera):
                rate_bps = round(bandwidth_bps)
                period.estimated.take(rate_bps, 1, rate_bps)
            period.width_px_sum = sum(
                self._widths_px.get(name, 0) * count for name, count in period.variants.items()
            )
            box.add(period, links=False)
            if self._admitted(camera):
                period.covered_ms = elapsed_ms
                found[camera] = period
        minute = self._minutes.setdefault(second // _SECONDS_A_MINUTE, {})
        for camera, period in found.items():
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

"""Turns each camera's counts into one row a minute."""

from edgebox.domain.models import Variant, VariantName
from edgebox.domain.requests import CameraId
from edgebox.runtime.metrics import Counts, Metrics
from edgebox.storage.rows import CameraMinute

MINUTE_MS = 60_000
_QUANTILES = {"p50": 0.5, "p99": 0.99}


class MinuteRollup:
    """Remembers each camera's counts at the last full minute."""

    def __init__(self, metrics: Metrics, variants: dict[VariantName, Variant]) -> None:
        """Roll up `metrics`; `variants` tells the width behind a variant's name."""
        self._metrics = metrics
        self._widths_px = {str(name): variant.width_px for name, variant in variants.items()}
        self._before: dict[CameraId, Counts] = {}

    def take(self, minute_ms: int, now_ns: int) -> list[CameraMinute]:
        """Return the rows of the minute that has just ended; cameras without news have none.

        Args:
            minute_ms: when the minute began, Unix milliseconds.
            now_ns: the end of the minute on the box's clock.
        """
        rows = []
        # A camera that was forgotten meanwhile starts anew when it comes back.
        before, self._before = self._before, {}
        for camera, metrics in self._metrics.cameras.items():
            counts = metrics.counts.copy()
            news = counts.minus(before.get(camera, Counts()))
            self._before[camera] = counts
            if not (news.captured or news.on_time or news.late or news.dropped):
                continue
            variants = metrics.take_variants()
            answered = sum(variants.values())
            width_sum_px = sum(self._widths_px.get(v, 0) * n for v, n in variants.items())
            rows.append(
                CameraMinute(
                    camera=camera,
                    minute_ms=minute_ms,
                    captured=news.captured,
                    accepted=news.accepted,
                    on_time=news.on_time,
                    late=news.late,
                    dropped=dict(news.dropped),
                    latency_ms=metrics.latency_ms(now_ns, _QUANTILES) or {},
                    mean_px=width_sum_px / answered if answered else None,
                    variants=variants,
                    mismatches=news.mismatches,
                )
            )
        return rows

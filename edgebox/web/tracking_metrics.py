"""Metrics of tracking, for Prometheus. Labels are cameras, and zones and lines by their names."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from edgebox.domain.requests import CameraId
from edgebox.runtime.frame_tracking import FrameTracking


@dataclass(frozen=True, slots=True)
class TrackingNumbers:
    """A copy of one camera's figures."""

    camera: str
    tracks: int
    zones: Mapping[str, int]
    """Objects in each zone."""
    crossings: Mapping[tuple[str, str], int]
    """Crossings of each line and direction."""

    @classmethod
    def of(cls, tracking: FrameTracking, camera: CameraId) -> Self:
        """Copy the figures of a camera."""
        return cls(
            camera,
            tracking.tracks(camera),
            {zone: sum(of.values()) for zone, of in tracking.zone_counts(camera).items()},
            {
                (line, direction): sum(of.values())
                for line, each in tracking.crossings(camera).items()
                for direction, of in each.items()
            },
        )


def tracking_families(cameras: Iterable[TrackingNumbers]) -> Iterator[Metric]:
    """Yield the metrics of cameras; those that are not tracked have none."""
    tracks = GaugeMetricFamily("edgebox_tracks", "Objects that are tracked.", labels=["camera"])
    zones = GaugeMetricFamily("edgebox_zone_objects", "Objects inside.", labels=["camera", "zone"])
    crossings = CounterMetricFamily(
        "edgebox_line_crossings",
        "Objects that crossed since the camera connected.",
        labels=["camera", "line", "direction"],
    )
    for of in cameras:
        if of.tracks or of.zones or of.crossings:
            tracks.add_metric([of.camera], of.tracks)
        for zone, count in of.zones.items():
            zones.add_metric([of.camera, zone], count)
        for (line, direction), count in of.crossings.items():
            crossings.add_metric([of.camera, line, direction], count)
    yield from (tracks, zones, crossings)

"""Builds the defaults of tracking from the configuration; keeps events of zones in the history."""

from collections.abc import Sequence

from edgebox.config.config_file import Config
from edgebox.domain.notifications import Notification, zone_event_text
from edgebox.domain.requests import CameraId
from edgebox.runtime.box import Box
from edgebox.runtime.repeat_limiter import NOTICES_PER_MINUTE, RepeatLimiter
from edgebox.tracking.settings import TrackingDefaults
from edgebox.tracking.tracker import TrackerParameters


def tracking_defaults(config: Config) -> TrackingDefaults:
    """Return which cameras the configuration tracks, and how."""
    tracking = config.tracking
    return TrackingDefaults(
        cameras=tracking.cameras,
        tracker=TrackerParameters(
            score_high=tracking.score_min, lost_ns=round(tracking.lost_s * 1e9)
        ),
        hold_ns=round(tracking.hold_s * 1e9),
        zones=tuple((zone.camera, zone.zone) for zone in config.zones),
        lines=tuple((line.camera, line.line) for line in config.lines),
    )


class ZoneNotices:
    """Publishes what happens in zones as notices: on the page and in the history.

    Of each camera the first of a minute are published, so busy lines are not in the history whole.
    They have a limit of their own: a busy line must not silence what else is said of its camera.
    """

    def __init__(self, box: Box) -> None:
        """Publish what happens on this box."""
        self._box = box
        self._repeats = RepeatLimiter(NOTICES_PER_MINUTE)
        box.tracking.observers.add(self._happened)

    def end_minute(self) -> None:
        """Publish how many notices of each camera were held back in this minute."""
        for camera, count in self._repeats.end_period().items():
            text = f"{camera}: {count} more events of zones and lines within a minute"
            self._box.notices.publish("info", text, camera)

    def _happened(self, camera: CameraId, events: Sequence[Notification]) -> None:
        for event in events:
            text = zone_event_text(event.kind, event.label, event.details)
            if text is not None and self._repeats.passes(camera):
                self._box.notices.publish("info", f"{camera}: {text}", camera)


def missing_classes(box: Box, defaults: TrackingDefaults) -> list[str]:
    """Return what is wrong with the classes of configured zones: those no family finds.

    They are no error: a family may be imported later.
    """
    detectors = (family for family in box.families.values() if family.task == "detect")
    found = {label for family in detectors for label in family.labels}
    return [
        f"{kind} {of.name} waits for {name}, which no model family of this box finds"
        for kind, each in (("zone", defaults.zones), ("line", defaults.lines))
        for _, of in each
        for name in of.classes
        if name not in found
    ]

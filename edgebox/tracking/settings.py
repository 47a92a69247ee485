"""Which cameras are tracked, with which zones and lines. Pure data."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from edgebox.domain.overrides import Overrides
from edgebox.domain.zones import Line, Zone
from edgebox.tracking.tracker import TrackerParameters
from edgebox.tracking.watch import HOLD_NS


@dataclass(frozen=True, slots=True)
class CameraTracking:
    """What is tracked on one camera."""

    zones: tuple[Zone, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class TrackingDefaults:
    """The settings of the configuration file, which those made on the box override."""

    cameras: tuple[str, ...] = ()
    """Patterns of the names of cameras that are tracked."""
    tracker: TrackerParameters = field(default_factory=TrackerParameters)
    hold_ns: int = HOLD_NS
    zones: tuple[tuple[str, Zone], ...] = ()
    """Zones, each with a pattern of the names of its cameras."""
    lines: tuple[tuple[str, Line], ...] = ()

    def of(self, camera: str, overrides: Overrides) -> CameraTracking | None:
        """Return what is in force for a camera; None: it is not tracked.

        Where nobody has said whether it is, a zone or a line says that it is.
        """
        if overrides.tracking is False:
            return None
        zones, lines = overrides.zones, overrides.lines
        if zones is None:
            zones = tuple(zone for pattern, zone in self.zones if fnmatchcase(camera, pattern))
        if lines is None:
            lines = tuple(line for pattern, line in self.lines if fnmatchcase(camera, pattern))
        wanted = overrides.tracking or any(fnmatchcase(camera, name) for name in self.cameras)
        if not (wanted or zones or lines):
            return None
        return CameraTracking(zones, lines)


NOT_TRACKED = TrackingDefaults()
"""No camera is tracked until something is set on the box."""

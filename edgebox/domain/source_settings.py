"""What the box is told of a camera that it fetches pictures from. Pure data."""

from dataclasses import dataclass, fields
from enum import StrEnum

from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import Credentials, SourceAddress


class CaptureTimes(StrEnum):
    """What the capture times of a source come from."""

    REPORTS = "rtcp"
    """Sender reports of the camera."""
    ARRIVAL = "arrival"
    """The arrival, minus the measured path."""
    WRONG_CLOCK = "wrong_clock"
    """The same, since the sender reports of the camera cannot be right."""
    PLAYBACK = "playback"
    """A file, or a device of this machine: a picture is captured when it is due."""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One camera whose pictures the box fetches itself."""

    camera: CameraId
    address: SourceAddress
    substream: SourceAddress | None = None
    """A smaller stream of the same camera, used while its size is enough; None: it has none."""
    credentials: Credentials | None = None
    """Of both streams; None: they need none."""
    app: str = "default"
    family: str | None = None
    """The model family; None: the box's default."""
    pipeline: str | None = None
    slo_ms: float = 300.0
    rate_hz: float = 10.0
    min_rate_hz: float = 0.0
    min_accuracy: float = 0.0
    decoder: str = "software"
    """What decodes its video: "software", or a hardware decoder of FFmpeg by its name."""
    motion_gate: bool = False
    """Whether pictures of a scene that stands still are left out."""

    @property
    def named(self) -> frozenset[str]:
        """The settings that are not as they are by default."""
        return frozenset(of.name for of in fields(self) if getattr(self, of.name) != of.default)

"""Owns what the core knows of one connected camera: its link, its assignment and how its frames do.

Pure.
"""

import math
from dataclasses import dataclass, field

from edgebox.domain.plans import Advice, Assignment
from edgebox.domain.requests import Camera, LinkState
from edgebox.scheduling.calibration import RecentValues

OVERRUN_WINDOW = 128
"""Frames of a camera over which its overrun is measured."""

OVERRUN_QUANTILE = 1 - 1 / (OVERRUN_WINDOW - 1)
"""The second largest of them."""

SENDING_WINDOW = 64
"""Frames of a camera over which the time before it sends them is measured."""

PLACEMENT_WINDOW = 64
"""Frames of a camera over which the share is measured whose first stage ran there."""

BOX_SHARE_MIN = 1 / 8

NEVER_NS = float(1 << 62)
"""Overrun of a frame that was not answered, and the initial value."""


@dataclass(slots=True)
class ConnectedCamera:
    """A connected camera: its state, its assignment and its advice."""

    camera: Camera
    link: LinkState
    assignment: Assignment | None = None
    advice: Advice | None = None
    advised_ns: int = 0
    lowered_ns: int | None = None
    promised: bool = False
    """Whether a plan serves it: it has been planned, and is not best effort."""
    unserved_ns: int | None = None
    """When a plan last made it best effort that had been served; None: never."""
    planned: Assignment | None = None
    """What the last plan gave it, whether its variant can run now or not."""
    planned_bps: float | None = None
    """The bandwidth that the last plan used."""
    overruns: RecentValues = field(default_factory=lambda: RecentValues(OVERRUN_WINDOW, NEVER_NS))
    """How much longer than planned its last frames took, in ns."""

    before_sending: RecentValues = field(default_factory=lambda: RecentValues(SENDING_WINDOW, 0))
    """How long its last frames took from their capture until they were sent, in ns."""

    at_camera: RecentValues = field(default_factory=lambda: RecentValues(PLACEMENT_WINDOW, 0))
    """1 for each of its last frames whose first stage ran at the camera, else 0."""

    def unplan(self) -> None:
        """Forget what plans gave it: they were made for another family."""
        self.assignment = self.advice = self.planned = None
        self.lowered_ns = self.unserved_ns = None
        self.promised = False

    @property
    def box_share(self) -> float:
        """The share of its frames whose first stage runs on the box; never so low that a camera
        whose frames come back to the box finds no room."""
        if not self.at_camera.quantile(1):
            return 1.0
        eighths = math.ceil((1 - self.at_camera.mean) * 8)
        return max(BOX_SHARE_MIN, eighths / 8)

    @property
    def before_sending_ns(self) -> int:
        """How long its frames take before they are sent, the median. Where the link falls, some
        frames also wait for the one before them; that is no property of the camera."""
        return round(self.before_sending.quantile(0.5))

    @property
    def overrun_ns(self) -> int | None:
        """The second largest overrun of its last frames; None: not known."""
        overrun_ns = self.overruns.quantile(OVERRUN_QUANTILE)
        return None if overrun_ns == NEVER_NS else round(overrun_ns)

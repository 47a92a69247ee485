"""Owns what boxes of a fleet tell each other about themselves, and what a box knows of the others.

Every box reports about itself only, about once a second. So what a box knows of another one is a
second old or more, and cameras come and go meanwhile. Pure: no clock, no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NewType

from edgebox.domain.requests import CameraId

BoxName = NewType("BoxName", str)
"""The name of a box, of which each has another in a fleet."""

Service = NewType("Service", str)
"""What a camera needs of a box: a fingerprint of a model family or of a pipeline with its families.
Boxes whose files differ do not have the same one."""

REPORT_PERIOD_NS = 1_000_000_000
"""How often a box reports."""
REPORT_AGE_MAX_NS = 2 * REPORT_PERIOD_NS
"""A box whose latest report is older is taken to be down. Cameras notice that their box is silent
later (`link/failover.py`), so none is sent back to one that is not there."""


@dataclass(frozen=True, slots=True)
class BoxReport:
    """What a box says about itself."""

    box: BoxName
    address: str
    """Where cameras reach it: "http://192.168.1.5:8787"."""
    load: float
    """What its cameras need at their smallest variants, as a share of what it may plan: above 1
    some of them are best effort. What they are given is no measure, because a plan gives few
    cameras larger variants until the box is busy."""
    services: Mapping[Service, float]
    """The frames/s that would be a load of 1, by what they need."""
    cameras: int = 0
    """The number of connected cameras."""
    cameras_max: int = 1_000
    draining: bool = False
    """Whether it takes no cameras: it is about to stop, and sends its own away, or is not ready."""
    ready: bool = True
    """Whether it has begun to serve; one that is draining and ready is about to stop."""
    version: str = ""
    fingerprint: str | None = None
    """SHA-256 of its certificate, in hexadecimal; None: it has none."""
    absent_s: Mapping[CameraId, float] = field(default_factory=dict)
    """The cameras it knows, with the seconds since each was connected; 0: it is."""
    settings: str = ""
    """A digest of the settings of cameras that it knows; empty: it does not share them."""

    def load_of(self, service: Service, rate_hz: float) -> float:
        """Return the load that one camera is to it; it must have the service."""
        return rate_hz / self.services[service]

    def with_load(self, load: float, cameras: int = 1) -> "BoxReport":
        """Return the report as it were with some more cameras."""
        return replace(self, load=self.load + load, cameras=self.cameras + cameras)


@dataclass(slots=True)
class KnownBox:
    """What a box knows of another one."""

    report: BoxReport
    received_ns: int


class KnownBoxes:
    """The latest reports of the other boxes, and what was sent to each since."""

    def __init__(self) -> None:
        self._boxes: dict[BoxName, KnownBox] = {}
        """The one that reported the longest ago is first."""

    def reported(self, report: BoxReport, now_ns: int) -> None:
        """Take in a report that was received; it says what was sent there before."""
        self._boxes.pop(report.box, None)
        self._boxes[report.box] = KnownBox(report, now_ns)
        # Names may be those of containers, of which each start has another.
        while _is_old(first := next(iter(self._boxes.values())), now_ns):
            del self._boxes[first.report.box]

    def sent(self, box: BoxName, load: float) -> None:
        """Count a camera that was sent to a box, which its latest report does not have."""
        known = self._boxes.get(box)
        if known is not None:
            known.report = known.report.with_load(load)

    def fresh(self, now_ns: int) -> list[BoxReport]:
        """Return the boxes that are up, in the order of their names."""
        return [
            known.report for _, known in sorted(self._boxes.items()) if not _is_old(known, now_ns)
        ]


def _is_old(known: KnownBox, now_ns: int) -> bool:
    return now_ns - known.received_ns > REPORT_AGE_MAX_NS

"""Owns one box of a simulated fleet: its cameras, and what it reports. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from edgebox.domain.requests import CameraId
from edgebox.fleet.box_report import BoxName, BoxReport, Service

SERVICE = Service("street")

HELLO_NS = 2_200_000
"""What a hello takes a box: 500 cameras that connect at once are all in after 1.1 s
(`python -m benchmarks.overload_live`)."""


@dataclass(slots=True)
class SimulatedBox:
    """One box."""

    number: int
    frames_per_s: float
    """The frames/s that are a load of 1."""
    up: bool = True
    draining: bool = False
    rate_hz: float = 0.0
    """The frames/s that its connected cameras ask for."""
    cameras: dict[int, None] = field(default_factory=dict)
    """Those that are connected, in the order in which they came."""
    left_ns: dict[int, int] = field(default_factory=dict)
    """When cameras that it knows left it."""
    busy_until_ns: int = 0
    """When it has answered the hellos that have come."""

    @property
    def load(self) -> float:
        """Return its load."""
        return self.rate_hz / self.frames_per_s

    @property
    def serves(self) -> bool:
        """Say whether it takes cameras."""
        return self.up and not self.draining

    def add(self, camera: int, rate_hz: float) -> None:
        """Have a camera connected."""
        self.cameras[camera] = None
        self.left_ns.pop(camera, None)
        self.rate_hz += rate_hz

    def remove(self, camera: int, rate_hz: float, now_ns: int) -> None:
        """Have a camera gone, which is remembered."""
        del self.cameras[camera]
        self.left_ns[camera] = now_ns
        self.rate_hz = self.rate_hz - rate_hz if self.cameras else 0.0

    def report(self, now_ns: int, about: Iterable[int] | None = None) -> BoxReport:
        """Return what it says of itself.

        Args:
            now_ns: the present.
            about: of which cameras it says whether it knows them; None: of all.
        """
        if about is None:
            about = [*self.cameras, *self.left_ns]
        absent_s = {
            CameraId(str(camera)): (
                0.0 if camera in self.cameras else (now_ns - self.left_ns[camera]) / 1e9
            )
            for camera in about
            if camera in self.cameras or camera in self.left_ns
        }
        return BoxReport(
            BoxName(str(self.number)),
            str(self.number),
            self.load,
            {SERVICE: self.frames_per_s},
            len(self.cameras),
            draining=self.draining,
            absent_s=absent_s,
        )

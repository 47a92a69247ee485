"""Owns the redirect policies that a simulated fleet is compared under. Pure.

`edgebox` is the box's own code. `none` redirects nobody: each camera stays at the box it came to
until that is gone. `random` sends each hello to a box at random once. `omniscient` knows the load
of every box at every instant and moves cameras without a pause: no policy can spread them better.
"""

import random
from collections.abc import Callable
from typing import Protocol

from edgebox.domain.requests import CameraId
from edgebox.fleet.box_report import BoxReport, KnownBoxes
from edgebox.fleet.redirect import STAY, Placing, redirect_connected, redirect_hello
from edgebox.simulation.fleet.population import FleetCamera
from edgebox.simulation.fleet.simulated_box import SERVICE, SimulatedBox


class FleetPolicy(Protocol):
    """Where cameras are sent; boxes are named by their number."""

    exact: bool
    """Whether cameras are spread at every instant without a pause."""

    def hello(
        self, camera: int, of: FleetCamera, at: SimulatedBox, redirects: int, now_ns: int
    ) -> int | None:
        """Return where a camera that says hello is sent; None: nowhere."""

    def connected(self, camera: int, of: FleetCamera, at: SimulatedBox, now_ns: int) -> int | None:
        """Return where a camera of a box is sent; None: nowhere."""

    def reported(self, report: BoxReport, now_ns: int) -> None:
        """Hand a report to all other boxes."""


class Rule:
    """The box's own code, each box with what it knows."""

    exact = False

    def __init__(self, boxes: int, rng: random.Random, stay: float = STAY) -> None:
        self._known = [KnownBoxes() for _ in range(boxes)]
        self._rng = rng
        self._stay = stay

    def hello(
        self, camera: int, of: FleetCamera, at: SimulatedBox, redirects: int, now_ns: int
    ) -> int | None:
        """Ask the rule for hellos."""
        placing = Placing(CameraId(str(camera)), SERVICE, of.rate_hz, redirects)
        others = self._known[at.number]
        found = redirect_hello(
            placing, at.report(now_ns, [camera]), others, now_ns, self._rng, stay=self._stay
        )
        return self._sent(at, None if found is None else found.to, of)

    def connected(self, camera: int, of: FleetCamera, at: SimulatedBox, now_ns: int) -> int | None:
        """Ask the rule for connected cameras."""
        placing = Placing(CameraId(str(camera)), SERVICE, of.rate_hz)
        others = self._known[at.number]
        found = redirect_connected(
            placing, at.report(now_ns, [camera]), others, now_ns, self._rng, stay=self._stay
        )
        return self._sent(at, None if found is None else found.to, of)

    def reported(self, report: BoxReport, now_ns: int) -> None:
        """Let every other box take it in."""
        for number, known in enumerate(self._known):
            if str(number) != report.box:
                known.reported(report, now_ns)

    def _sent(self, at: SimulatedBox, to: BoxReport | None, of: FleetCamera) -> int | None:
        if to is None:
            return None
        self._known[at.number].sent(to.box, to.load_of(SERVICE, of.rate_hz))
        return int(to.box)


class NoRedirects:
    """Nobody is sent anywhere."""

    exact = False

    def hello(
        self, camera: int, of: FleetCamera, at: SimulatedBox, redirects: int, now_ns: int
    ) -> int | None:
        """Keep the camera."""
        return None

    def connected(self, camera: int, of: FleetCamera, at: SimulatedBox, now_ns: int) -> int | None:
        """Keep the camera."""
        return None

    def reported(self, report: BoxReport, now_ns: int) -> None:
        """Need no reports."""


class RandomRedirects(NoRedirects):
    """Every hello is sent once to a box at random, and so is the camera of a box that drains."""

    def __init__(self, boxes: list[SimulatedBox], rng: random.Random) -> None:
        self._boxes = boxes
        self._rng = rng

    def hello(
        self, camera: int, of: FleetCamera, at: SimulatedBox, redirects: int, now_ns: int
    ) -> int | None:
        """Send it once."""
        return None if redirects and not at.draining else self._anywhere(at)

    def connected(self, camera: int, of: FleetCamera, at: SimulatedBox, now_ns: int) -> int | None:
        """Send it away if the box drains."""
        return self._anywhere(at) if at.draining else None

    def _anywhere(self, at: SimulatedBox) -> int | None:
        there = [box.number for box in self._boxes if box.serves]
        to = self._rng.choice(there) if there else None
        return None if to == at.number else to


class Omniscient(NoRedirects):
    """Everybody is where the load is least, always."""

    exact = True

    def __init__(self, boxes: list[SimulatedBox]) -> None:
        self._boxes = boxes

    def hello(
        self, camera: int, of: FleetCamera, at: SimulatedBox, redirects: int, now_ns: int
    ) -> int | None:
        """Send it to the box that is the least loaded with it."""
        return None if redirects else self._least(of, at)

    def connected(self, camera: int, of: FleetCamera, at: SimulatedBox, now_ns: int) -> int | None:
        """Send it to the box that is the least loaded with it, if its own one drains."""
        return self._least(of, at) if at.draining else None

    def _least(self, of: FleetCamera, at: SimulatedBox) -> int | None:
        there = [box for box in self._boxes if box.serves]
        if not there:
            return None
        best = min(there, key=lambda box: (box.rate_hz + of.rate_hz) / box.frames_per_s)
        return None if best is at else best.number


PolicyFactory = Callable[[list[SimulatedBox], random.Random], FleetPolicy]


def policies(stay: float = STAY) -> dict[str, PolicyFactory]:
    """Return the policies by name."""
    return {
        "edgebox": lambda boxes, rng: Rule(len(boxes), rng, stay),
        "none": lambda boxes, rng: NoRedirects(),
        "random": RandomRedirects,
        "omniscient": lambda boxes, rng: Omniscient(boxes),
    }

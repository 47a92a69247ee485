"""Measures what a box does for its cameras by their load: with the simulator of one box.

The share of frames on time and the accuracy of a box at a load are those of a run of the real
Scheduler, planner, estimators and senders (`simulation/run.py`) with as many cameras as make that
load. A fleet of 100 boxes is simulated with the table that comes of it, not frame by frame. Pure.
"""

import math
import random
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from edgebox.domain.model_family import (
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.plans import PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId
from edgebox.link.shaping import BandwidthTrace
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.service_rate import TYPICAL_SLO_NS, frames_per_s_max
from edgebox.simulation.figures import figures
from edgebox.simulation.fleet.population import FleetCamera, draw_cameras
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Hardware, Scenario
from edgebox.simulation.simulated_cameras import SimulatedCamera

LOADS = (0.25, 0.5, 0.75, 0.9, 1.0, 1.15, 1.4, 1.8)
"""The loads at which a box is measured."""
_FAMILY = FamilyName("street")
_SIDES_PX = (128, 256, 416, 608)
_BATCHES = (1, 2, 4, 8)
_SPREAD = (0.86, 0.87, 0.89, 0.9, 0.92, 0.94, 0.96, 1.0, 1.1)
_MS = 1_000_000
_S = 1_000 * _MS


def _batch_ms(side_px: int, batch: int) -> float:
    """Return what a batch takes at its P99: as on the GPUs of Jellyfish's evaluation."""
    return 20 + batch * (2.16 + 0.837 * (side_px / 128) ** 2)


def _accuracy(side_px: int) -> float:
    """Return a saturating curve like that of Jellyfish's figure 10."""
    return 0.665 * (1 - math.exp(-side_px / 160))


def box_hardware(executors: int) -> Hardware:
    """Return a box with so many executors like those of Jellyfish's evaluation."""
    variants = tuple(
        Variant(VariantName(f"street-{side}"), _FAMILY, side, side, _accuracy(side))
        for side in _SIDES_PX
    )
    profiles = {}
    for number in range(executors):
        executor = ExecutorId(f"gpu/{number}")
        profiles[executor] = tuple(
            LatencyProfile(
                VariantName(f"street-{side}"),
                executor,
                {
                    size: tuple(round(_batch_ms(side, size) * k * _MS) for k in _SPREAD)
                    for size in _BATCHES
                },
            )
            for side in _SIDES_PX
        )
    return Hardware(variants, profiles)


def frames_per_s_of(hardware: Hardware) -> float:
    """Return the frames/s that are a load of 1."""
    profiles = {
        executor: {profile.variant: profile for profile in of}
        for executor, of in hardware.profiles.items()
    }
    snapshot = PlanningSnapshot(0, (), hardware.variants, profiles, {}, 0)
    return frames_per_s_max(snapshot, _FAMILY, PlanningParameters())


@dataclass(frozen=True, slots=True)
class Service:
    """What the cameras of a box get at a load."""

    load: float
    on_time: float
    """Frames answered in time, as a share of all that the cameras capture."""
    accuracy: float
    """The mean accuracy over all captured frames, those that were not answered in time as 0."""


@dataclass(frozen=True)
class BoxModel:
    """A box by its load."""

    frames_per_s: float
    """The frames/s that are a load of 1."""
    table: tuple[Service, ...]

    @cached_property
    def _loads(self) -> list[float]:
        return [row.load for row in self.table]

    def at(self, load: float) -> Service:
        """Return what cameras get at a load: interpolated.

        Beyond the table's last row a box answers as many frames as there.
        """
        table = self.table
        place = bisect_left(self._loads, load)
        if place == 0:
            return Service(load, table[0].on_time, table[0].accuracy)
        if place == len(table):
            part = table[-1].load / load
            return Service(load, table[-1].on_time * part, table[-1].accuracy * part)
        low, high = table[place - 1], table[place]
        part = (load - low.load) / (high.load - low.load)
        return Service(
            load,
            low.on_time + part * (high.on_time - low.on_time),
            low.accuracy + part * (high.accuracy - low.accuracy),
        )


def measure_box(
    hardware: Hardware, seed: int, *, seconds: float = 3.0, loads: tuple[float, ...] = LOADS
) -> Iterator[tuple[float, Service]]:
    """Run one box at each load, and yield the share that is done and what was measured.

    Args:
        hardware: of the box.
        seed: of its cameras and their frames.
        seconds: of virtual time that count, after two more.
        loads: rising.
    """
    frames_per_s = frames_per_s_of(hardware)
    for done, load in enumerate(loads, 1):
        rng = random.Random(f"{seed}/{load}")
        cameras, rate_hz = [], 0.0
        while rate_hz < load * frames_per_s:
            cameras += draw_cameras(1, rng)
            rate_hz += cameras[-1].rate_hz
        scenario = Scenario(
            cameras=tuple(_simulated(number, each, rng) for number, each in enumerate(cameras)),
            hardware=hardware,
            duration_ns=round((2 + seconds) * _S),
            warmup_ns=2 * _S,
            seed=seed,
        )
        every = figures(run_scenario(scenario), scenario)["all"]
        yield done / len(loads), Service(load, 1 - every["miss_rate"], every["accuracy"])


def _simulated(number: int, camera: FleetCamera, rng: random.Random) -> SimulatedCamera:
    name = CameraId(f"camera-{number}")
    return SimulatedCamera(
        Camera(name, "default", _FAMILY, TYPICAL_SLO_NS, camera.rate_hz, 1280, 720),
        BandwidthTrace.constant(camera.mbps),
        rtt_ns=camera.rtt_ns,
        phase_ns=rng.randrange(round(1e9 / camera.rate_hz)),
    )

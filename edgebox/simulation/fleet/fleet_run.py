"""Decides how a simulated fleet becomes figures: the box is measured, then each policy is run.

Pure: all randomness comes from the seed.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgebox.domain.errors import InvalidInputError
from edgebox.fleet.redirect import STAY
from edgebox.simulation.fleet.box_model import (
    BoxModel,
    Service,
    box_hardware,
    frames_per_s_of,
    measure_box,
)
from edgebox.simulation.fleet.fleet_figures import fleet_figures
from edgebox.simulation.fleet.fleet_policies import policies
from edgebox.simulation.fleet.fleet_simulator import BOX_SIZES, FleetSimulator
from edgebox.simulation.fleet.population import draw_cameras
from edgebox.simulation.fleet.timetable import fleet_events

POLICIES = tuple(policies())
BOXES_MIN = 10


@dataclass(frozen=True, slots=True)
class FleetSetting:
    """What is simulated."""

    boxes: int = 100
    cameras: int = 10_000
    executors: int = 4
    """Of a box of size 1."""
    seed: int = 1
    stay: float = STAY
    policies: Sequence[str] = POLICIES

    def __post_init__(self) -> None:
        if self.boxes < BOXES_MIN:
            raise InvalidInputError(f"a fleet is simulated with at least {BOXES_MIN} boxes")
        for name in self.policies:
            if name not in POLICIES:
                raise InvalidInputError(
                    f"there is no policy {name!r} (there are: {', '.join(POLICIES)})"
                )


@dataclass(frozen=True, slots=True)
class Progress:
    """What is being done, and the share of it that is done."""

    text: str
    share: float


def measured_box(setting: FleetSetting) -> Iterator[Progress | BoxModel]:
    """Measure the box; yield progress, and the model at the end."""
    hardware = box_hardware(setting.executors)
    rows: list[Service] = []
    for share, row in measure_box(hardware, setting.seed):
        rows.append(row)
        yield Progress("one box, by its load", share)
    yield BoxModel(frames_per_s_of(hardware), tuple(rows))


def run_fleet(setting: FleetSetting, model: BoxModel) -> Iterator[Progress | dict[str, Any]]:
    """Run each policy on the same boxes and cameras; yield progress, and the figures at the end."""
    found: dict[str, Any] = {}
    for name in setting.policies:
        rng = random.Random(setting.seed)
        cameras = draw_cameras(setting.cameras, rng)
        timetable = fleet_events(setting.boxes, rng)
        make = policies(setting.stay)[name]
        simulator = FleetSimulator(
            model, setting.boxes, cameras, timetable=timetable, policy=make, rng=rng
        )
        for share in simulator.progress():
            yield Progress(f"policy {name}", share)
        found[name] = fleet_figures(simulator.run, setting.cameras)
    sizes = [BOX_SIZES[number % len(BOX_SIZES)] for number in range(setting.boxes)]
    yield {
        "boxes": setting.boxes,
        "cameras": setting.cameras,
        "seed": setting.seed,
        "stay": setting.stay,
        "offered_load": round(
            sum(each.rate_hz for each in draw_cameras(setting.cameras, random.Random(setting.seed)))
            / (model.frames_per_s * sum(sizes)),
            4,
        ),
        "box": {
            "frames_per_s": round(model.frames_per_s, 1),
            "by_load": [
                {"load": row.load, "on_time": row.on_time, "accuracy": row.accuracy}
                for row in model.table
            ],
        },
        "policies": found,
    }

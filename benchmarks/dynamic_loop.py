"""Owns the workload of `benchmarks.dynamic` with one model: a loop, as long as a picture needs."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.dynamic_boxes import measure, write_config
from benchmarks.dynamic_model import FAMILY, SIDE_PX, STEPS_MAX, picture, write_family
from benchmarks.dynamic_workload import Application, Workload
from edgebox.config.config_file import load
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.zoo import load_family
from edgebox.media.jpeg import decode

_RUNS = 7


def _steps(drawn: float) -> int:
    return min(STEPS_MAX, max(1, round(drawn)))


def _doorway(rng: random.Random) -> int:
    return _steps(2 + rng.expovariate(1 / 3))


def _plaza(rng: random.Random) -> int:
    return _steps(rng.lognormvariate(3.3, 0.3))


APPLICATIONS = (
    # A quiet place: nearly all its pictures are over after a few steps.
    Application("doorway", 0.65, _doorway),
    # A busy one: many steps, and now and then very many.
    Application("plaza", 0.35, _plaza),
)


@dataclass(frozen=True, slots=True)
class Alone:
    """What pictures take alone, by the number of steps they need."""

    steps: tuple[int, ...]
    took_ms: tuple[float, ...]

    def ms(self, steps: int) -> float:
        """Return what one picture takes; linear between those that were measured."""
        return float(np.interp(steps, self.steps, self.took_ms))


async def prepare(
    folder: Path, profiled_steps: int, profile_s: float, tell: Callable[[str], None]
) -> Workload:
    """Write the model, measure the machine, and return the workload.

    Args:
        folder: is there; model and database are written into it.
        profiled_steps: how many steps the profiler's pictures need.
        profile_s: how long the machine is measured.
        tell: called with the present step.
    """
    family = write_family(folder / "refining", profiled_steps)
    lines = (
        f'[inference]\nfamilies = ["{family.as_posix()}"]\nfamily = "{FAMILY}"\n'
        f"profile_s = {profile_s}\n"
    )
    tell("measuring the machine")
    profiles = await measure(load(write_config(folder, lines, "edf")))
    alone = await asyncio.to_thread(measure_alone, family)
    return Workload(
        applications=APPLICATIONS,
        picture=picture,
        alone_ms=alone.ms,
        size_px=(SIDE_PX, SIDE_PX),
        hello={"family": FAMILY},
        config=lines,
        profiles=profiles,
        about={
            "profiled_steps": profiled_steps,
            "alone_ms_by_steps": {
                str(steps): round(ms, 2)
                for steps, ms in zip(alone.steps, alone.took_ms, strict=True)
            },
        },
    )


def measure_alone(family_folder: Path) -> Alone:
    """Measure what single pictures take; blocks for a second or two.

    The quickest of some runs: what else the machine does must not make the load another.
    """
    family = load_family(family_folder)
    executor = OnnxExecutor(0, [family], providers="cpu", cpu_threads=1)
    name = family.variants[0].name
    steps = (1, *range(10, STEPS_MAX + 1, 10))
    took_ns: dict[int, list[int]] = {of: [] for of in steps}
    for _ in range(_RUNS):
        for of, times_ns in took_ns.items():
            canvas = decode(picture(of))
            times_ns.append(executor.submit(name, [canvas], 1).result().took_ns)
    executor.close()
    return Alone(steps, tuple(min(times) / 1e6 for times in took_ns.values()))

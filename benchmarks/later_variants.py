"""What planning the later stages of pipelines is worth: `python -m benchmarks.later_variants`.

Six cameras with vehicles of different sizes go through the bundled detector and classifier on two
executors of a CPU, under virtual time. Accuracies are those of the families' manifests, times those
of their model cards. Three planners, for several loads and seeds:

- `without`: an option counts with its detector's accuracy, later stages run their largest variant;
- `pictures`: an option counts with the later stages' accuracy at its picture size, too;
- `both`: the plan also chooses the later stages' variants.

Right objects per second are the objects answered in time, each weighted by the accuracy of its
detector's variant and by that of the classifier's variant at the object's side.
"""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from edgebox.domain.plans import CameraSnapshot, Plan, PlanningSnapshot
from edgebox.inference.zoo import load_family
from edgebox.planning.later_stages import present_choice
from edgebox.planning.planner import plan
from edgebox.simulation.object_figures import object_figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario

MODELS = Path(__file__).parents[1] / "models"
CAMERAS = 6
EXECUTORS = 2
LOADS = (1.0, 2.0, 4.0)
STREET_MS = 1.27e-4
"""Of each pixel of a picture; about the times of the model card."""
VEHICLES_MS = {32: 0.075, 48: 0.2, 64: 0.31, 96: 0.66}
"""Of each crop, by its side in px."""
BATCH_MS = 0.3
"""What a batch takes besides."""
SIZES = (1, 2, 4, 8, 16)


def scenario_of(load: float, seed: int) -> Scenario:
    """Return one scenario.

    Args:
        load: the factor of all execution times.
        seed: of all random numbers.
    """
    rng = random.Random(seed)
    lines = [f"duration_s = 30\nwarmup_s = 10\nseed = {seed}\n"]
    lines += [
        f'[[executors]]\nname = "cpu/{at}"\ntimes = {load}\ninterference = 0.3\n'
        "spread = [0.94, 0.96, 0.98, 1.0, 1.02, 1.05, 1.10, 1.15, 1.2]\n"
        for at in range(EXECUTORS)
    ]
    for family in ("street", "vehicles"):
        for variant in load_family(MODELS / family).offered:
            crops = family == "vehicles"
            each_ms = VEHICLES_MS[variant.width_px] if crops else STREET_MS * variant.pixels
            times = ", ".join(f"{n} = {BATCH_MS + each_ms * n:.3f}" for n in SIZES)
            table = [list(pair) for pair in variant.accuracy_by_side]
            lines.append(
                f'[[variants]]\nname = "{variant.name}"\nfamily = "{family}"\n'
                f"width_px = {variant.width_px}\nheight_px = {variant.height_px}\n"
                f"accuracy = {variant.accuracy}\nbatch_ms = {{ {times} }}\n"
                + (f"accuracy_by_side = {table}\n" if table else "")
            )
    lines.append(
        '[[pipelines]]\nname = "cars"\n[[pipelines.stages]]\nname = "detect"\nfamily = "street"\n'
        '[[pipelines.stages]]\nname = "read"\nfamily = "vehicles"\nafter = ["detect"]\n'
        "crops_max = 32\n"
    )
    for at in range(CAMERAS):
        # Every second camera looks far: its vehicles are small.
        typical = rng.uniform(0.02, 0.035) if at % 2 else rng.uniform(0.07, 0.15)
        sides = [round(typical * rng.lognormvariate(0, 0.3), 4) for _ in range(8)]
        lines.append(
            f'[[cameras]]\nname = "camera-{at}"\npipeline = "cars"\nslo_ms = 250\nrate_hz = 10\n'
            f"mbps = {rng.choice((2, 6, 100))}\nobjects = {rng.randint(3, 14)}\n"
            f"object_sides = {sides}\n"
        )
    return parse_scenario("\n".join(lines), "later_variants.toml", _no_file)


def _no_file(name: str) -> str:
    raise FileNotFoundError(name)


def _pictures(camera: CameraSnapshot) -> CameraSnapshot:
    return replace(
        camera, later=tuple(replace(of, variants=of.variants[-1:]) for of in camera.later)
    )


def _without(camera: CameraSnapshot) -> CameraSnapshot:
    taken = present_choice(camera).executor_s
    return replace(camera, later=(), other_later_s=(*camera.other_later_s, *taken))


PLANNERS: dict[str, Callable[[CameraSnapshot], CameraSnapshot]] = {
    "without": _without,
    "pictures": _pictures,
    "both": lambda camera: camera,
}


def run(scenario: Scenario, knows: Callable[[CameraSnapshot], CameraSnapshot]) -> dict[str, Any]:
    """Run a scenario with a planner that knows a part of the later stages; return its figures."""
    planned = partial(plan, parameters=scenario.planning)

    def planner(snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
        seen = replace(snapshot, cameras=tuple(map(knows, snapshot.cameras)))
        return planned(seen, iterations_max)

    return object_figures(run_scenario(scenario, planner=planner), scenario)


@click.command()
@click.option("--seeds", default=4, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(*, seeds: int, as_json: bool) -> None:
    """Print the right objects per second of each planner by load, and the mean over seeds."""
    out: dict[str, dict[str, list[float]]] = {}
    for load in LOADS:
        found: dict[str, list[dict[str, Any]]] = {
            name: [run(scenario_of(load, seed), knows) for seed in range(1, seeds + 1)]
            for name, knows in PLANNERS.items()
        }
        out[f"{load:g}"] = {
            name: [of["objects_right_per_s"] for of in each] for name, each in found.items()
        }
        if not as_json:
            click.echo(f"load {load:g}")
            for name, each in found.items():
                right = " ".join(f"{of['objects_right_per_s']:6.1f}" for of in each)
                mean = fmean(of["objects_right_per_s"] for of in each)
                answered = fmean(of["objects_per_s"] for of in each)
                shown = fmean(of["objects_shown_per_s"] for of in each)
                click.echo(
                    f"  {name:9} {mean:6.1f} right, {answered:.1f} of {shown:.1f} answered: {right}"
                )
    if as_json:
        click.echo(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()

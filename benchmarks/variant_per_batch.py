"""Variants for each batch: `python -m benchmarks.variant_per_batch [--seeds 3] [--json]`.

Cameras on one executor under virtual time, with arrivals that vary faster than plans: cameras on
mobile links, whose frames come in clumps; cameras that send for two seconds when something moves;
an application whose pictures take up to four times as long as usual; and steady cameras that
cannot scale their pictures, so that these can run on larger variants than planned. The same run
with and without `variant_per_batch`: misses, mean accuracy of what was answered on time, and the
accuracy-weighted goodput (the accuracies of all answers on time, each second).

Variants and times are those of `benchmarks.cascade`, measured with the bundled street family.
"""

import json
import random
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from statistics import fmean

import click

from benchmarks.cascade import SIZES, SPREAD
from edgebox.simulation.figures import figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import parse_scenario

DURATION_S = 60
WARMUP_S = 10
LOADS = (0.7, 1.0, 1.4)
"""Of the executor, if every frame ran on the largest variant."""
LARGEST_MS = SIZES[608][1]
CAMERAS = 8
GAINS = (0.0, 0.4)
"""Share of a request's time that a further one in its batch saves: on CPUs, and on GPUs."""
USED = (0.9, 1.0)
"""The planner's `utilisation_max`: the default, and without a reserve."""
KINDS = ("mobile", "motion", "pictures", "unscaled")
TRACES = Path("benchmarks/scenarios/traces")


def _camera(name: str, rate_hz: float, keys: str) -> str:
    return f'[[cameras]]\nname = "{name}"\nrate_hz = {rate_hz}\nslo_ms = 200\n{keys}\n'


def _steady(load: float, count: int) -> list[str]:
    """Return cameras that send all the time, each its share of the load of `CAMERAS`."""
    rate_hz = load * 1e3 / LARGEST_MS / CAMERAS
    return [_camera(f"cam-{at}", rate_hz, "mbps = 1000") for at in range(count)]


def _mobile(load: float, rng: random.Random) -> str:
    rate_hz = load * 1e3 / LARGEST_MS / CAMERAS
    return "\n".join(
        _camera(
            f"cam-{at}",
            rate_hz,
            f'trace = "lte.txt"\ntrace_start_s = {rng.uniform(0, 60):.1f}',
        )
        for at in range(CAMERAS)
    )


def _motion(load: float, rng: random.Random) -> str:
    """Half of the load is steady; the other comes in bursts of two seconds, a third of the time."""
    rate_hz = load * 1e3 / LARGEST_MS / CAMERAS
    cameras = _steady(load, CAMERAS // 2)
    for at in range(CAMERAS // 2):
        begins_s, burst = rng.uniform(0, 6), 0
        while begins_s < DURATION_S:
            keys = f"mbps = 1000\njoins_s = {begins_s:.2f}\nleaves_s = {begins_s + 2:.2f}"
            cameras.append(_camera(f"motion-{at}-{burst}", 3 * rate_hz, keys))
            begins_s, burst = begins_s + 2 + rng.expovariate(1 / 4), burst + 1
    return "\n".join(cameras)


def _pictures(load: float, rng: random.Random) -> str:
    """The work of half of the cameras' pictures varies; the mean load is the same."""
    rate_hz = load * 1e3 / LARGEST_MS / CAMERAS
    work = [0.6, 0.7, 0.7, 0.8, 0.8, 1.0, 1.2, 2.0, 4.0]
    return "\n".join(
        _camera(
            f"cam-{at}",
            rate_hz,
            "mbps = 1000\n" + (f'app = "varied"\nwork = {work}' if at % 2 else ""),
        )
        for at in range(CAMERAS)
    )


def _unscaled(load: float, rng: random.Random) -> str:
    return "\n".join(_steady(load, CAMERAS))


def scenario_text(
    kind: str, load: float, seed: int, *, per_batch: bool, gain: float, used: float
) -> str:
    """Return a scenario file.

    Args:
        kind: of `KINDS`.
        load: see `LOADS`.
        seed: of all random numbers.
        per_batch: whether requests may run on other variants than planned.
        gain: the share of a request's time that a further one in its batch saves.
        used: the planner's `utilisation_max`.
    """
    cameras = {"mobile": _mobile, "motion": _motion, "pictures": _pictures, "unscaled": _unscaled}[
        kind
    ]
    variants = "\n".join(
        f'[[variants]]\nname = "street-{px}"\nwidth_px = {px}\naccuracy = {accuracy}\n'
        "batch_ms = { "
        + ", ".join(f"{n} = {ms * (1 + (n - 1) * (1 - gain)):.3f}" for n in (1, 2, 4, 8))
        + " }\n"
        for px, (accuracy, ms) in SIZES.items()
    )
    return (
        f"duration_s = {DURATION_S}\nwarmup_s = {WARMUP_S}\nseed = {seed}\n"
        f"[planner]\nutilisation_max = {used}\n"
        f"[policy]\nvariant_per_batch = {str(per_batch).lower()}\n"
        f'sender = "{"unscaled" if kind == "unscaled" else "window"}"\n'
        f'[[executors]]\nname = "cpu/0"\nspread = {list(SPREAD)}\n{variants}'
        + cameras(load, random.Random(seed))
    )


def measure(
    kind: str, load: float, seeds: int, *, per_batch: bool, gain: float, used: float
) -> dict[str, float]:
    """Return the mean figures of some seeds."""
    rows = []
    for seed in range(1, seeds + 1):
        text = scenario_text(kind, load, seed, per_batch=per_batch, gain=gain, used=used)
        scenario = parse_scenario(text, "burst.toml", lambda name: (TRACES / name).read_text())
        rows.append(figures(run_scenario(scenario), scenario)["all"])
    seconds = DURATION_S - WARMUP_S
    return {
        "missed": fmean(row["miss_rate"] for row in rows),
        "accuracy": fmean(row["accuracy"] for row in rows),
        "accuracy_per_s": fmean(row["on_time"] * row["accuracy"] / seconds for row in rows),
    }


def _line(of: Mapping[str, float]) -> str:
    return f"{of['missed']:7.2%} {of['accuracy']:.3f} {of['accuracy_per_s']:6.2f}"


@click.command()
@click.option("--seeds", default=3, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(*, seeds: int, as_json: bool) -> None:
    """Print misses, accuracy and goodput without and with a variant for each batch."""
    found = []
    for used, gain, kind, load in product(USED, GAINS, KINDS, LOADS):
        plain, chosen = (
            measure(kind, load, seeds, per_batch=per_batch, gain=gain, used=used)
            for per_batch in (False, True)
        )
        of = {"used": used, "gain": gain, "kind": kind, "load": load}
        found.append({**of, "without": plain, "with": chosen})
        if not as_json:
            settings = f"used {used:<4} gain {gain} {kind:8} load {load}"
            click.echo(f"{settings}:  {_line(plain)}   ->  {_line(chosen)}")
    if as_json:
        click.echo(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

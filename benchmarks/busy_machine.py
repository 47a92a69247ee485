"""Cameras of a box whose batches now and then take several times as long as usual.

    python -m benchmarks.busy_machine [--seeds 1,2,3] [--duration-s 120] [--ablation]

The box is a CPU on which batching does not pay, and other programs run beside it. The profile was
measured while the machine was idle; what batches take is drawn from a distribution with a heavy
tail, or other programs come and go and slow all batches for some seconds. Prints misses, accuracy
(a miss counts 0), changes of variant per camera and minute, and the mean width of what was sent.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import click

from benchmarks.changed_constant import changed
from edgebox.domain.model_family import QUANTILES, LatencyProfile
from edgebox.domain.plans import Plan
from edgebox.scheduling import calibration
from edgebox.scheduling.events import PlanComputed
from edgebox.simulation.figures import figures
from edgebox.simulation.report import Report
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario

SPREAD = (0.9, 0.94, 0.97, 1.0, 1.03, 1.08, 1.12, 1.2, 1.4)
"""Quantiles of a batch's time in units of its median, on an idle machine."""
SIZES_MS = {128: 3, 160: 4, 192: 5, 224: 6.5, 256: 8, 320: 11, 384: 15, 448: 20, 512: 26, 608: 36}
"""What a frame of each size takes on an idle machine."""


@dataclass(frozen=True, slots=True)
class Load:
    """What other programs do to batches."""

    name: str
    tail: tuple[float, ...]
    """What batches take, by quantile, in units of the idle machine's median."""
    spells: float = 1.0
    """Above 1: other programs slow all batches by this much, half of the time, for 1 to 8 s."""


LOADS = (
    Load("idle", SPREAD),
    Load("heavy tail", (0.9, 0.95, 1.0, 1.1, 1.4, 2.0, 3.0, 6.0, 8.0)),
    Load("heavier tail", (0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 4.5, 9.0, 14.0)),
    Load("tail and spells", (0.9, 0.95, 1.0, 1.1, 1.4, 2.0, 3.0, 6.0, 8.0), 1.6),
    Load("hard spells", SPREAD, 3.0),
)
ABLATIONS: dict[str, tuple[str, float]] = {
    "differences by chance count": ("SIGNIFICANT", 0.0),
    "no row of slower batches raises it": ("ALL_SLOWER", 1e9),
    "every difference counts": ("SLOWDOWN_CHANGE_MIN", 0.01),
}
"""Constants of `scheduling.calibration` with values that take away what they are for."""


def scenario_of(
    load: Load, seed: int, duration_s: float, *, cameras: int, rate_hz: float, slo_ms: float
) -> Scenario:
    """Return a box under a load."""
    lines = [
        f"duration_s = {duration_s}\nwarmup_s = 10\nseed = {seed}",
        f'[[executors]]\nname = "cpu/0"\nspread = {list(SPREAD)}',
        f'[[cameras]]\nname = "camera"\ncount = {cameras}\nslo_ms = {slo_ms}',
        f"rate_hz = {rate_hz}\nmbps = 40\njoins_apart_s = 0.3",
        *(
            f'[[variants]]\nname = "s-{px}"\nwidth_px = {px}\nheight_px = {px * 9 // 16}\n'
            f"accuracy = {0.665 * (1 - 2.718281828 ** (-px / 250)):.4f}\n"
            f"batch_ms = {{ 1 = {ms}, 2 = {2 * ms}, 4 = {4 * ms} }}"
            for px, ms in SIZES_MS.items()
        ),
    ]
    scenario = parse_scenario("\n".join(lines), "busy machine", lambda name: name)
    assert scenario.hardware is not None
    taken = {
        executor: tuple(_taken(profile, load) for profile in profiles)
        for executor, profiles in scenario.hardware.profiles.items()
    }
    return replace(scenario, hardware=replace(scenario.hardware, taken=taken))


def _taken(profile: LatencyProfile, load: Load) -> LatencyProfile:
    """Return what batches of a profile take; only one frame of a batch meets another program."""
    first = profile.batch_sizes[0]
    median_ns = profile.quantile_ns(first, 0.5)
    rows = {
        size: tuple(
            round(median_ns * tail + profile.quantile_ns(size, q) - profile.quantile_ns(first, q))
            for q, tail in zip(QUANTILES, load.tail, strict=True)
        )
        for size in profile.batch_sizes
    }
    return replace(profile, quantiles_ns=rows)


def spells(load: Load, seed: int, duration_s: float) -> Callable[[int], float]:
    """Return the factor by which other programs slow all batches at an instant."""
    rng, at_ns, ends, factors = random.Random(seed), 0, [], []
    while at_ns < duration_s * 1e9 + 10e9:
        at_ns += round(rng.uniform(1, 8) * 1e9)
        ends.append(at_ns)
        factors.append(load.spells if rng.random() < 0.5 else 1.0)

    def factor(now_ns: int) -> float:
        return next((f for end, f in zip(ends, factors, strict=True) if now_ns < end), 1.0)

    return factor


def mean_width_px(report: Report) -> float:
    """Return the mean width of the pictures that reached the box."""
    return fmean(ended.request.width_px for ended in report.ended)


def reasons_of(report: Report) -> list[str]:
    """Return the reasons that plans gave, of every camera."""
    plans = (call.event.plan for call in report.journal if isinstance(call.event, PlanComputed))
    return [given.reason for plan in plans for given in _assignments(plan)]


def _assignments(plan: Plan) -> Sequence:  # type: ignore[type-arg]
    return list(plan.assignments.values())


@click.command()
@click.option("--seeds", default="1,2,3", show_default=True, help="With commas.")
@click.option("--duration-s", default=120.0, show_default=True)
@click.option("--cameras", default=4, show_default=True)
@click.option("--rate-hz", default=5.0, show_default=True)
@click.option("--slo-ms", default=300.0, show_default=True)
@click.option("--ablation", is_flag=True, help="With one rule of the slowdown left out at a time.")
def main(
    *, seeds: str, duration_s: float, cameras: int, rate_hz: float, slo_ms: float, ablation: bool
) -> None:
    """Print what cameras get under every load."""
    options = {"cameras": cameras, "rate_hz": rate_hz, "slo_ms": slo_ms}
    play(seeds, duration_s, options)
    for what, change in ABLATIONS.items() if ablation else ():
        click.echo(what)
        with changed(calibration, *change):
            play(seeds, duration_s, options)


def play(seeds: str, duration_s: float, options: dict[str, Any]) -> None:
    """Print what cameras get under every load; the options are those of `scenario_of`."""
    for load in LOADS:
        rows = []
        for seed in map(int, seeds.split(",")):
            scenario = scenario_of(load, seed, duration_s, **options)
            report = run_scenario(
                scenario, throttling=spells(load, seed, duration_s), keep_journal=True
            )
            of_all = figures(report, scenario)["all"]
            said = reasons_of(report)
            blamed = sum("the uplink carries" in each for each in said) / len(said)
            rows.append(
                (
                    100 * of_all["miss_rate"],
                    of_all["accuracy"],
                    of_all["changes_per_camera_minute"],
                    mean_width_px(report),
                    100 * blamed,
                )
            )
        missed, accuracy, changes, width_px, blamed = map(fmean, zip(*rows, strict=True))
        click.echo(
            f"{load.name:16} misses {missed:6.2f} %  accuracy {accuracy:.4f}  changes "
            f"{changes:5.1f}/min  {width_px:4.0f} px  blames the uplink {blamed:3.0f} %"
        )


if __name__ == "__main__":
    main()

"""Cascades and exits against single sizes: `python -m benchmarks.cascade [--seeds 3] [--json]`.

Eight cameras on one CPU executor under virtual time. The load is what the large model alone would
take of the executor's time. For each load: every single size, the planner with all sizes, and
cascades of three small models, with five shares each and with the share that the planner chooses,
all with the same pictures. What counts is the
accuracy-weighted goodput: the expected accuracies of all answers on time, each second.

An early exit is the same with the two parts of one network: the small model is the first part, and
the large one the second part, which takes only the rest of the time.

Times, accuracies and curves are measured: `edgebox profile street` on two cores, the family's mAP,
and `edgebox models cascade` on 300 pictures of 20 synthetic streets that no model was trained on.
Those of the exits are of `models.street.evaluate_exit`: parts and whole in turn, 240 pictures.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import click

from edgebox.simulation.answer_accuracy import accuracy_figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import parse_scenario

SIZES: Mapping[int, tuple[float, float]] = {
    128: (0.1767, 3.5), 160: (0.2569, 4.07), 192: (0.3261, 5.87), 224: (0.3831, 6.52),
    256: (0.4343, 8.79), 288: (0.4755, 11.55), 320: (0.5239, 12.58), 352: (0.5424, 15.86),
    384: (0.5734, 17.13), 416: (0.5975, 20.73), 448: (0.6141, 22.37), 480: (0.6349, 27.04),
    512: (0.6416, 28.2), 544: (0.6553, 33.23), 576: (0.6645, 38.9), 608: (0.6786, 40.7),
}  # fmt: skip
"""Accuracy (mAP) and median milliseconds of a picture, by input side."""
LARGE = 608
SMALL = (256, 320, 384)
SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)
LOADS = (0.7, 1.0, 1.4)
CAMERAS = 8
CURVES: Mapping[int, Sequence[tuple[float, float, float]]] = {
    256: (
        (0.5285, 0.0, 0.2569), (0.3795, 0.1, 0.2147), (0.3308, 0.2, 0.1815),
        (0.3012, 0.3, 0.1508), (0.2774, 0.4, 0.1177), (0.255, 0.5, 0.0909),
        (0.2414, 0.6, 0.0653), (0.2157, 0.7, 0.0407), (0.1758, 0.8, 0.0193),
        (0.1178, 0.9, 0.0059), (0.0, 1.0, 0.0),
    ),
    320: (
        (0.4053, 0.0, 0.1825), (0.2955, 0.1, 0.1502), (0.249, 0.2, 0.1224),
        (0.2235, 0.3, 0.0995), (0.1967, 0.4, 0.0796), (0.1755, 0.5, 0.061),
        (0.1609, 0.6, 0.0425), (0.1408, 0.7, 0.0252), (0.1193, 0.8, 0.0112),
        (0.0746, 0.9, 0.0029), (0.0, 1.0, 0.0),
    ),
    384: (
        (0.2977, 0.0, 0.1285), (0.1943, 0.1, 0.1072), (0.1771, 0.2, 0.089),
        (0.1557, 0.3, 0.0735), (0.1431, 0.4, 0.0583), (0.1262, 0.5, 0.0435),
        (0.1149, 0.6, 0.029), (0.0997, 0.7, 0.0171), (0.0843, 0.8, 0.0079),
        (0.0513, 0.9, 0.0026), (0.0, 1.0, 0.0),
    ),
}  # fmt: skip
"""By small model: threshold, share sent on, and loss."""


@dataclass(frozen=True)
class Exit:
    """The exit of one size of the detector."""

    accuracy: float
    """mAP of the first part's answers."""
    first: float
    """Time of the first part, in units of the whole network's."""
    second: float
    """Time of the second part, in units of the whole network's."""
    curve: Sequence[tuple[float, float, float]]
    """Threshold, share sent on, and loss."""


EXITS: Mapping[int, Exit] = {
    416: Exit(
        0.4477,
        0.570,
        0.605,
        (
            (0.1921, 0.0, 0.1844),
            (0.1888, 0.1, 0.1562),
            (0.1875, 0.2, 0.1309),
            (0.1863, 0.3, 0.1101),
            (0.1856, 0.4, 0.0914),
            (0.1849, 0.5, 0.0741),
            (0.1842, 0.6, 0.0551),
            (0.1835, 0.7, 0.0373),
            (0.1822, 0.8, 0.0238),
            (0.1803, 0.9, 0.0110),
            (0.0000, 1.0, 0.0000),
        ),
    ),
    608: Exit(
        0.5297,
        0.565,
        0.597,
        (
            (0.4525, 0.0, 0.1449),
            (0.1771, 0.1, 0.1237),
            (0.1675, 0.2, 0.1051),
            (0.1576, 0.3, 0.0907),
            (0.1523, 0.4, 0.0747),
            (0.1458, 0.5, 0.0576),
            (0.1394, 0.6, 0.0440),
            (0.1298, 0.7, 0.0274),
            (0.1179, 0.8, 0.0160),
            (0.1018, 0.9, 0.0068),
            (0.0000, 1.0, 0.0000),
        ),
    ),
}
EXIT_SHARES = (0.1, 0.3, 0.5, 0.7)
"""Shares of the pictures that go on to the second part."""
SPREAD = (0.94, 0.96, 0.98, 1.0, 1.02, 1.05, 1.10, 1.15, 1.2)
"""Execution times by quantile, in units of the median."""


@dataclass(frozen=True)
class Models:
    """Two models of a cascade: name, input side in px, accuracy and milliseconds of each."""

    small: tuple[str, int, float, float]
    large: tuple[str, int, float, float]
    curve: Sequence[tuple[float, float, float]]

    @classmethod
    def sizes(cls, small: int) -> "Models":
        """Return the cascade of a small size and the largest."""
        return cls(
            (f"street-{small}", small, *SIZES[small]),
            (f"street-{LARGE}", LARGE, *SIZES[LARGE]),
            CURVES[small],
        )

    @classmethod
    def parts(cls, px: int) -> "Models":
        """Return the exit of a size."""
        of, (accuracy, whole_ms) = EXITS[px], SIZES[px]
        return cls(
            (f"street-exit-{px}", px, of.accuracy, of.first * whole_ms),
            (f"street-rest-{px}", px, accuracy, of.second * whole_ms),
            of.curve,
        )


def scenario_text(
    load: float,
    seed: int,
    sizes: Sequence[int],
    cascade: Models | None,
    share: float | None,
    *,
    plans: bool,
    table: Mapping[int, tuple[float, float]] = SIZES,
    cameras: int = CAMERAS,
) -> str:
    """Return a scenario file.

    Args:
        load: of the executor by the large model alone.
        seed: of all random numbers.
        sizes: that the box has, beside the models of a cascade.
        cascade: its models; None: there is none.
        share: of the pictures that it sends on; None: the planner chooses it.
        plans: whether the planner chooses among the sizes; else frames run on the largest.
        table: accuracy and milliseconds of each size.
        cameras: how many.
    """
    rate_hz = load * 1e3 / table[LARGE][1] / cameras
    lines = [f"duration_s = 60\nwarmup_s = 10\nseed = {seed}\n"]
    lines.append(f'[policy]\nplanning = "{"adaptive" if plans else "none"}"\n')
    lines.append(f'[[executors]]\nname = "cpu/0"\nspread = {list(SPREAD)}\n')
    rows = [(f"street-{px}", px, *table[px]) for px in sizes]
    if cascade is not None:
        rows += [cascade.small, cascade.large]
    lines += [
        f'[[variants]]\nname = "{name}"\nfamily = "{_family(name)}"\nwidth_px = {px}\n'
        f"accuracy = {accuracy}\nbatch_ms = {{ 1 = {ms:.3f} }}\n"
        for name, px, accuracy, ms in rows
    ]
    pipeline = ""
    if cascade is not None:
        fixed = "" if share is None else f"share = {share}\n"
        pipeline = 'pipeline = "cascade"\n'
        small, large = cascade.small[0], cascade.large[0]
        lines.append(
            '[[pipelines]]\nname = "cascade"\n[[pipelines.stages]]\nname = "small"\n'
            f'family = "{_family(small)}"\nvariant = "{small}"\n[[pipelines.stages]]\n'
            f'name = "large"\nfamily = "{_family(large)}"\nafter = ["small"]\n'
            f'variant = "{large}"\nsmall = "{small}"\n{fixed}'
            f"curve = {list(map(list, cascade.curve))}\n"
        )
    lines.append(
        f'[[cameras]]\nname = "gate"\ncount = {cameras}\n{pipeline}slo_ms = 300\n'
        f"rate_hz = {rate_hz}\nmbps = 1000\n"
    )
    return "\n".join(lines)


def _family(variant: str) -> str:
    return variant.rpartition("-")[0]


def arms() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every way to serve the cameras, with its name."""
    for px in SIZES:
        yield f"size {px}", {"sizes": (px,), "cascade": None, "share": 0.0, "plans": False}
    yield "planner", {"sizes": tuple(SIZES), "cascade": None, "share": 0.0, "plans": True}
    for small in SMALL:
        for share in SHARES:
            of = {"sizes": (), "cascade": Models.sizes(small), "share": share, "plans": False}
            yield f"cascade {small} {share}", of
        of = {"sizes": (), "cascade": Models.sizes(small), "share": None, "plans": True}
        yield f"planned share {small}", of
    for px in EXITS:
        for share in EXIT_SHARES:
            of = {"sizes": (), "cascade": Models.parts(px), "share": share, "plans": False}
            yield f"exit {px} {share}", of
        of = {"sizes": (), "cascade": Models.parts(px), "share": None, "plans": True}
        yield f"planned exit {px}", of


def goodput(load: float, seeds: int, of: dict[str, Any]) -> dict[str, float]:
    """Return the mean figures over some seeds."""
    found = []
    for seed in range(1, seeds + 1):
        scenario = parse_scenario(scenario_text(load, seed, **of), "cascade.toml", str)
        found.append(accuracy_figures(run_scenario(scenario), scenario))
    return {
        "accuracy_per_s": fmean(each["accuracy_per_s"] for each in found),
        "answers_per_s": fmean(each["answers_per_s"] for each in found),
        "missed": fmean(each["cascade"]["missed"] for each in found),
    }


def best(found: Mapping[str, Mapping[str, float]], prefix: str) -> tuple[str, float]:
    """Return the best of the arms whose names begin so, and its goodput."""
    name = max(
        (name for name in found if name.startswith(prefix)),
        key=lambda name: found[name]["accuracy_per_s"],
    )
    return name, found[name]["accuracy_per_s"]


Point = tuple[float, float]
"""Milliseconds of a picture, and accuracy."""


def single_points() -> list[Point]:
    """Return what single sizes take and are worth; a picture that is refused takes nothing."""
    return [(0.0, 0.0), *((ms, accuracy) for accuracy, ms in SIZES.values())]


def cascade_points(of: Models) -> list[Point]:
    """Return what each share of a cascade's curve takes and is worth."""
    (*_, small, small_ms), (*_, large, large_ms) = of.small, of.large
    most = of.curve[0][2]
    return [
        (small_ms + share * large_ms, large - (large - small) * loss / most)
        for _, share, loss in of.curve
    ]


def bound(points: Sequence[Point], picture_ms: float) -> float:
    """Return the highest mean accuracy of any mix that takes so long for a picture on average.

    It is the concave hull of the points: choices are mixed among pictures, nothing waits, and the
    executor is never idle. No plan and no scheduler can do better.
    """
    best = max(accuracy for ms, accuracy in points if ms <= picture_ms)
    for left_ms, left in points:
        for right_ms, right in points:
            if left_ms < picture_ms < right_ms:
                part = (picture_ms - left_ms) / (right_ms - left_ms)
                best = max(best, left + part * (right - left))
    return best


def show_bounds(loads: Sequence[float]) -> None:
    """Print what is possible at most by load: mean accuracy of all pictures."""
    by_kind = {
        "sizes": single_points(),
        "cascades": [(0.0, 0.0)] + [p for px in SMALL for p in cascade_points(Models.sizes(px))],
        "exits": [(0.0, 0.0)] + [p for px in EXITS for p in cascade_points(Models.parts(px))],
    }
    by_kind["all"] = [point for points in by_kind.values() for point in points]
    large, large_ms = SIZES[LARGE]
    for load in loads:
        ms = large_ms / load
        single = max(accuracy * min(1.0, ms / of_ms) for accuracy, of_ms in SIZES.values())
        reached = ", ".join(f"{kind} {bound(of, ms):.3f}" for kind, of in by_kind.items())
        click.echo(
            f"load {load}, {ms:.1f} ms a picture: best single size {single:.3f}; at most: "
            f"{reached}; the large one for nothing {large:.3f}, {large / single - 1:+.1%}"
        )


@click.command()
@click.option("--seeds", default=3, show_default=True)
@click.option("--json", "as_json", is_flag=True)
@click.option("--bounds", is_flag=True, help="What is possible at most; nothing is simulated.")
def main(*, seeds: int, as_json: bool, bounds: bool) -> None:
    """Print the accuracy-weighted goodput by load and way to serve."""
    if bounds:
        show_bounds((*LOADS, 2.0, 3.0))
        return
    found = {load: {name: goodput(load, seeds, of) for name, of in arms()} for load in LOADS}
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for load, of in found.items():
        large = of[f"size {LARGE}"]["accuracy_per_s"]
        name, single = best(of, "size ")
        click.echo(
            f"load {load}: large alone {large:.2f}, best single size {single:.2f} ({name}), "
            f"planner {of['planner']['accuracy_per_s']:.2f}"
        )
        for small in SMALL:
            name, cascade = best(of, f"cascade {small} ")
            planned = of[f"planned share {small}"]["accuracy_per_s"]
            two = max(large, of[f"size {small}"]["accuracy_per_s"])
            click.echo(
                f"  {name}: {cascade:.2f}; {cascade / large - 1:+.1%} of the large alone, "
                f"{cascade / two - 1:+.1%} of the better of the two models, "
                f"{cascade / single - 1:+.1%} of the best single size; "
                f"planned share: {planned:.2f}, {planned / cascade - 1:+.1%}"
            )
        for px in EXITS:
            name, goodput_of_exit = best(of, f"exit {px} ")
            whole = of[f"size {px}"]["accuracy_per_s"]
            planned = of[f"planned exit {px}"]["accuracy_per_s"]
            click.echo(
                f"  {name}: {goodput_of_exit:.2f}; {goodput_of_exit / whole - 1:+.1%} of the "
                f"whole network at {px} px, {goodput_of_exit / large - 1:+.1%} of the large "
                f"alone, {goodput_of_exit / single - 1:+.1%} of the best single size; "
                f"planned share: {planned:.2f}, {planned / goodput_of_exit - 1:+.1%}"
            )


if __name__ == "__main__":
    main()

"""Which figures count as worse, and that every figure has a committed one."""

import json
from collections.abc import Iterator
from itertools import chain

import pytest

from benchmarks.regression import RESULTS, Figures, Part, Tolerance, _parts, measured, verdict

TIMED = Tolerance(0.15)
RATE = Tolerance(0.2, more_is_better=True)
SIMULATED = Tolerance(absolute=0.002)


@pytest.mark.parametrize(
    ("tolerance", "now", "said"),
    [
        (TIMED, 1.1, "as committed"),
        (TIMED, 1.2, "worse"),
        (TIMED, 0.8, "better"),
        (RATE, 0.81, "as committed"),
        (RATE, 0.7, "worse"),
        (RATE, 1.3, "better"),
        (SIMULATED, 1.001, "as committed"),
        (SIMULATED, 0.99, "differs"),
        (SIMULATED, 1.01, "differs"),
    ],
)
def test_a_figure_is_worse_beyond_its_tolerance(
    tolerance: Tolerance, now: float, said: str
) -> None:
    assert verdict(tolerance, 1.0, now) == said
    assert verdict(tolerance, None, now) == "new"


def part_of(*values: float) -> tuple[Part, Iterator[float]]:
    """Return a part that measures these values in turn, and what it has not measured yet."""
    coming = iter(values)
    return Part(lambda: {"cost": next(coming)}, {"cost": TIMED}), coming


def test_what_seems_worse_is_measured_again_and_the_best_counts() -> None:
    part, left = part_of(1.5, 1.3, 1.4, 0.9)
    assert measured(part, {"cost": 1.0}) == {"cost": 1.3}
    assert next(left) == 0.9
    part, left = part_of(1.5, 1.1, 0.9)
    assert measured(part, {"cost": 1.0}) == {"cost": 1.1}
    assert next(left) == 0.9


def test_simulations_are_not_run_again() -> None:
    measurements: list[Figures] = [{"share": 0.5}]
    part = Part(measurements.pop, {"share": SIMULATED})
    assert measured(part, {"share": 0.9}) == {"share": 0.5}


def test_every_figure_has_a_committed_one() -> None:
    committed = json.loads(RESULTS.read_text())["figures"]
    assert set(committed) >= set(chain(*(part.tolerances for part in _parts().values())))


def test_a_simulation_comes_out_as_committed() -> None:
    committed = json.loads(RESULTS.read_text())["figures"]
    part = _parts()["overload, decoding shares the executor's cores"]
    for name, value in part.measure().items():
        assert verdict(part.tolerances[name], committed[name], value) == "as committed"

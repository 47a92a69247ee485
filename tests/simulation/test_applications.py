"""Cameras whose pictures are other work than the profile's: planned by what is learned of them."""

from statistics import fmean

import pytest

from benchmarks.applications import PLANNERS, SETTINGS, run
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import parse_scenario
from tests.simulation.scenes import gate, scenario_text

pytestmark = pytest.mark.long


@pytest.mark.parametrize("variant_per_batch", [False, True])
def test_plans_by_what_is_learned_serve_the_long_and_the_short(variant_per_batch: bool) -> None:
    """Pictures of the long application are four times the profile's work, of the other .3."""
    setting = SETTINGS[-1]
    runs = {
        name: [
            run(setting, planner, seed, 12, 6, variant_per_batch=variant_per_batch)
            for seed in (1, 2)
        ]
        for name, planner in PLANNERS.items()
    }

    def missed(name: str, group: str) -> float:
        return fmean(of[group][0] for of in runs[name])

    def accuracy(name: str, *groups: str) -> float:
        return fmean(of[group][1] for of in runs[name] for group in groups)

    for group in ("short", "long"):
        assert missed("learned", group) < 0.005
    assert accuracy("learned", "short") > 0.54
    assert accuracy("learned", "short", "long") > accuracy("profile", "short", "long") + 0.03
    if not variant_per_batch:
        assert missed("profile", "long") > 0.3
        assert accuracy("learned", "long") > accuracy("profile", "long") + 0.1


@pytest.mark.parametrize(
    ("work", "least", "most"),
    [("3", 3, 3), ("0.25", 0.25, 0.25), ("[1, 1, 1, 1, 2, 3, 4, 4, 5]", 1, 5)],
)
def test_a_batch_takes_as_long_as_the_work_of_its_pictures(
    work: str, least: float, most: float
) -> None:
    """One camera, whose frames never meet, on an executor without any spread of its own."""
    text = scenario_text(gate(slo_ms=1000, rate_hz=2) + f"\nwork = {work}")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("spread"))
    scenario = parse_scenario(text, "test.toml", lambda name: name)
    assert scenario.hardware is not None
    [on] = scenario.hardware.profiles.values()
    profiles = {profile.variant: profile for profile in on}
    found = []
    for end in run_scenario(scenario).ended:
        assert end.variant is not None
        assert end.started_ns is not None
        # Batches of 1, 2, 4 take times on a line: 5 and 3 ms each, 6 and 9, 8 and 20.
        one, two = (profiles[end.variant].quantile_ns(size, 0.5) for size in (1, 2))
        took_ns = end.at_ns - end.started_ns - scenario.costs.overhead_ns
        found.append((took_ns - (2 * one - two)) / (two - one))
    assert len(found) > 30
    assert min(found) == pytest.approx(least, rel=0.01)
    assert max(found) == pytest.approx(most, rel=0.4)
    assert (max(found) > 1.5 * min(found)) == (least < most)

"""Each part of `adaptive` that the ablation takes away is really gone, and comes back."""

import random

import pytest

from benchmarks.adaptive_ablation import ABLATIONS, _rate
from edgebox.simulation.generation import make_workload


@pytest.mark.parametrize("name", [name for name in ABLATIONS if name != "adaptive"])
def test_a_part_that_is_taken_away_makes_a_difference(name: str) -> None:
    workload = make_workload(
        "modal-4", load=0.9, slo_multiple=3.0, requests=300, rng=random.Random(3)
    )
    whole = _rate(workload, "adaptive")
    assert _rate(workload, name) != whole
    assert _rate(workload, "adaptive") == whole

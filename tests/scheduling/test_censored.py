"""What batches tell of single requests: as good as possible, judged by what was really drawn."""

import random
from itertools import product

import numpy as np
import pytest

from edgebox.scheduling.censored import BIN, BINS, AppEvidence, MultiRequestBatch, _shares, infer
from tests.scheduling.scene import CPU

NOBODY = np.empty(0)


def batches(
    rng: random.Random, draws: list[list[float]], count: int, size: int
) -> list[MultiRequestBatch]:
    made = []
    for at in range(count):
        apps = tuple(rng.randrange(len(draws)) for _ in range(size))
        made.append(MultiRequestBatch(apps, max(rng.choice(draws[app]) for app in apps), at, CPU))
    return made


def test_an_application_that_is_long_is_found_among_known_ones() -> None:
    rng = random.Random(1)
    usual = np.sort([rng.uniform(0.95, 1.05) for _ in range(200)])
    seen = batches(rng, [[1.0], [5.0]], 40, 4)
    evidence_by_app = {
        0: AppEvidence([1.0], usual, 200, fixed=True),
        1: AppEvidence([1.0], NOBODY, 0, fixed=False),
    }
    found = infer(seen, evidence_by_app)
    assert list(found) == [1], "what is known well stays"
    assert np.median(found[1]) == pytest.approx(5.0, rel=BIN)


def test_the_longest_of_many_is_not_taken_for_the_usual() -> None:
    rng = random.Random(2)
    drawn = [rng.lognormvariate(0, 0.4) for _ in range(4000)]
    seen = batches(rng, [drawn], 250, 6)
    (values,) = infer(seen, {0: AppEvidence([1.0], NOBODY, 0, fixed=False)}).values()
    for q in (0.5, 0.75, 0.95):
        assert np.quantile(values, q) == pytest.approx(np.quantile(drawn, q), rel=0.15)
    assert np.mean([batch.work for batch in seen]) > 1.4 * np.mean(values)


def test_every_round_is_the_expectation_by_hand() -> None:
    """All ways in which the members may have fallen, for two batches of two applications."""
    rng = np.random.default_rng(3)
    prior = rng.uniform(0.1, 1.0, (2, BINS)) * (np.arange(BINS) < 3)
    prior[prior == 0] = 1e-12
    count, longest = np.array([[2.0, 1.0], [0.0, 2.0]]), np.array([2, 1])
    shares = prior / prior.sum(axis=1, keepdims=True)
    for _ in range(12):
        members = prior.copy()
        for of, most in zip(count, longest, strict=True):
            apps = [app for app in (0, 1) for _ in range(int(of[app]))]
            outcomes = [w for w in product(range(3), repeat=len(apps)) if max(w) == most]
            chance = [
                np.prod([shares[a, b] for a, b in zip(apps, w, strict=True)]) for w in outcomes
            ]
            for way, weight in zip(outcomes, chance, strict=True):
                for app, at in zip(apps, way, strict=True):
                    members[app, at] += weight / sum(chance)
        shares = members / members.sum(axis=1, keepdims=True)
    found = _shares(prior, np.array([True, True]), count, longest)
    assert found[:, :3] == pytest.approx(shares[:, :3], rel=1e-6)

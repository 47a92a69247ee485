"""Makes instances of problem P1: like those of Jellyfish's evaluation, and of any kind."""

import random
from collections.abc import Callable

from edgebox.planning.mapping_problem import MappingCamera, MappingProblem, MappingVariant


def family(
    variants: int = 16,
    max_batch: int = 12,
    single_ms: float = 23.0,
    fixed: float = 0.88,
    growth: float = 1.8,
) -> tuple[MappingVariant, ...]:
    """Return variants from 128 px up in steps of 32.

    Args:
        variants: how many.
        max_batch: the largest batch.
        single_ms: a batch of one of the smallest.
        fixed: the share of a batch of one that does not grow with the batch.
        growth: how many times slower the sixteenth is, less one.
    """
    out = []
    for at in range(variants):
        px = 128 + 32 * at
        alone_ms = single_ms * (1 + growth * ((px / 128) ** 1.5 - 1) / 9.35)
        latency_ms = tuple(
            round(alone_ms * (fixed + (1 - fixed) * batch), 3) for batch in range(1, max_batch + 1)
        )
        out.append(
            MappingVariant(f"d{px}", px, round(0.31 + 0.33 * (at / 15) ** 0.6, 4), latency_ms)
        )
    return tuple(out)


def jellyfish(
    rng: random.Random, workers: int, cameras: int, drift: random.Random | None = None
) -> MappingProblem:
    """Return a problem like those of Jellyfish, section 7.6: its rates, SLOs and bandwidths.

    With `drift`, every bandwidth is then changed by up to a tenth.
    """
    variants = family()
    made = []
    for at in range(cameras):
        slo_ms, rate_hz = rng.choice([75, 100, 150]), rng.choice([10, 15, 25])
        mbps = rng.uniform(7.5, 50) * (drift.uniform(0.9, 1.1) if drift else 1)
        budgets = []
        for variant in variants:
            bits = variant.input_px**2 * 3.6
            left_ms = slo_ms - bits / mbps / 1000 - 2
            carried = bits * rate_hz <= mbps * 1e6
            budgets.append(max(0.0, round(left_ms, 3)) if carried else 0.0)
        made.append(MappingCamera(f"c{at}", rate_hz, tuple(budgets)))
    return MappingProblem(workers, 12, variants, tuple(made))


def anything(rng: random.Random, workers: int, cameras: int) -> MappingProblem:
    """Return a problem of any kind: rates from 1 to 60, loose or tight, one weak camera."""
    max_batch = rng.choice([1, 4, 8, 12])
    variants = family(
        rng.choice([1, 2, 5, 8, 16]),
        max_batch,
        rng.choice([2.3, 5.0, 11.5, 23.0]),
        rng.uniform(0.1, 0.95),
        rng.uniform(1.0, 4.0),
    )
    single_ms = variants[0].latency_ms[0]
    rate: Callable[[], float] = rng.choice(
        [
            lambda: float(rng.randint(1, 60)),
            lambda: round(rng.uniform(1, 60), 2),
            lambda: rng.uniform(1, 60),
            lambda: rng.choice([10.0, 15.0, 25.0]),
        ]
    )
    loose = rng.choice([1.5, 3, 6, 12, 30])
    made = []
    for at in range(cameras):
        top_ms = 2 * single_ms * rng.uniform(0.8, loose)
        slope = rng.uniform(0, 0.1) * rng.choice([0, 1, 3])
        budgets = tuple(max(0.0, round(top_ms - slope * v.input_px, 3)) for v in variants)
        made.append(MappingCamera(f"c{at}", rate(), budgets))
    if made and rng.random() < 0.2:
        at = rng.randrange(cameras)
        weak = (2.05 * single_ms, *(0.0,) * (len(variants) - 1))
        made[at] = MappingCamera(made[at].id, made[at].rate_hz, weak)
    return MappingProblem(workers, max_batch, variants, tuple(made))

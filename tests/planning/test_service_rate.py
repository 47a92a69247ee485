"""The frames/s that are a load of 1."""

import pytest

from edgebox.domain.model_family import ExecutorId, FamilyName, LatencyProfile, Variant, VariantName
from edgebox.domain.plans import PlanningSnapshot
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.service_rate import frames_per_s_max

MS = 1_000_000
STREET, YARD = FamilyName("street"), FamilyName("yard")


def snapshot(*, executors: int = 1, fixed_ms: int = 0) -> PlanningSnapshot:
    def profile(variant: str, executor: ExecutorId, alone_ms: int) -> LatencyProfile:
        rows = {size: (alone_ms * MS * (1 + size) // 2,) * 9 for size in (1, 2, 4, 8)}
        return LatencyProfile(VariantName(variant), executor, rows)

    names = [ExecutorId(f"gpu/{number}") for number in range(executors)]
    variants = (
        Variant(VariantName("small"), STREET, 128, 128, 0.4),
        Variant(VariantName("large"), STREET, 608, 608, 0.6),
    )
    profiles = {
        name: {
            VariantName("small"): profile("small", name, 20),
            VariantName("large"): profile("large", name, 80),
        }
        for name in names
    }
    return PlanningSnapshot(0, (), variants, profiles, {}, fixed_ms * MS)


def rate(of: PlanningSnapshot, slo_ms: int = 300) -> float:
    return frames_per_s_max(of, STREET, PlanningParameters(), slo_ms * MS)


def test_it_is_that_of_the_largest_batch_of_the_smallest_variant() -> None:
    # Batches of 8 take 90 ms, which fits 150.
    assert rate(snapshot()) == pytest.approx(0.95 * 8 / 0.090)


def test_a_batch_must_fit_half_of_the_deadline() -> None:
    assert rate(snapshot(), slo_ms=120) == pytest.approx(0.95 * 4 / 0.050)
    assert rate(snapshot(fixed_ms=180)) == pytest.approx(0.95 * 4 / 0.050)


def test_executors_add_up() -> None:
    assert rate(snapshot(executors=3)) == pytest.approx(3 * rate(snapshot()))


def test_a_family_that_is_not_loaded_has_none() -> None:
    assert frames_per_s_max(snapshot(), YARD, PlanningParameters()) == 0

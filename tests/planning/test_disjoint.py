"""Executors that have no family in common are planned as the separate boxes that they are."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId, FamilyName, Variant, VariantName
from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot
from edgebox.planning.by_application import by_application
from edgebox.planning.camera_admission import refusal
from edgebox.planning.disjoint import part_of, parts
from edgebox.planning.explain import explanation
from edgebox.planning.optimisation import optimise
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.scene import FIXED_NS, link, seen
from tests.scheduling.scene import ACCURACY, MEDIAN_MS, camera, profile

PARAMETERS = PlanningParameters()


def variants(family: str) -> list[Variant]:
    return [
        Variant(VariantName(f"{family}-{px}"), FamilyName(family), px, px, accuracy)
        for px, accuracy in ACCURACY.items()
    ]


def box(held: Sequence[Sequence[str]], cameras: Sequence[CameraSnapshot]) -> PlanningSnapshot:
    """Return a box whose executors hold these families."""
    profiles = {
        ExecutorId(f"cpu/{at}"): {
            variant.name: replace(profile(px, sizes=(1, 2, 4, 8)), variant=variant.name)
            for family in families
            for px, variant in zip(MEDIAN_MS, variants(family), strict=True)
        }
        for at, families in enumerate(held)
    }
    names = sorted({family for families in held for family in families})
    every = tuple(variant for family in names for variant in variants(family))
    return PlanningSnapshot(0, tuple(cameras), every, profiles, {}, FIXED_NS)


def cameras_of(family: str, count: int, rate_hz: float = 10, slo_ms: int = 300) -> list:  # type: ignore[type-arg]
    return [
        seen(
            replace(
                camera(f"{family}-{at}", slo_ms=slo_ms, rate_hz=rate_hz), family=FamilyName(family)
            ),
            link(),
        )
        for at in range(count)
    ]


def planned(of: PlanningSnapshot) -> dict[str, tuple[str, bool]]:
    answer = plan(of, 1000)
    return {c: (a.variant, a.served) for c, a in answer.assignments.items()}


def test_one_executor_is_not_charged_for_the_others_cameras() -> None:
    gate, yard = cameras_of("gate", 3), cameras_of("yard", 3)
    whole = box([["gate"], ["yard"]], [*gate, *yard])
    apart = plan(whole, 1000)
    pooled = optimise(by_application(whole), 1000, PARAMETERS)
    assert pooled is not None
    for family, of in (("gate", gate), ("yard", yard)):
        alone = planned(box([[family]], of))
        assert {c: each for c, each in planned(whole).items() if c.startswith(family)} == alone
    accuracy = {variant.name: variant.accuracy for variant in whole.variants}
    assert sum(accuracy[a.variant] for a in apart.assignments.values()) > sum(
        option.variant.accuracy for option in pooled.chosen
    )
    assert list(apart.assignments) == [each.camera.id for each in whole.cameras]


FAMILIES = ("a", "b", "c", "d")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sets(st.sampled_from(FAMILIES), max_size=3), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from(FAMILIES), st.sampled_from((5, 15, 40))), max_size=6),
)
def test_parts_share_nothing_and_are_planned_as_if_alone(
    held: list[set[str]], wanted: list[tuple[str, float]]
) -> None:
    cameras = [
        seen(replace(camera(f"{at}", rate_hz=rate_hz), family=FamilyName(family)), link())
        for at, (family, rate_hz) in enumerate(wanted)
    ]
    whole = box([sorted(each) for each in held], cameras)
    found = parts(whole)
    loaded = [executor for executor, of in whole.profiles.items() if of]
    if loaded:
        assert sorted(e for part in found for e in part.profiles) == sorted(loaded)
    for part in found:
        for other in found:
            if part is not other:
                assert not {v.family for v in part.variants} & {v.family for v in other.variants}
    # Two executors are in one part exactly where a chain of common families connects them.
    for at, one in enumerate(held):
        reached = {at}
        for _ in held:
            reached |= {
                n for n, each in enumerate(held) if any(each & held[known] for known in reached)
            }
        mine = next((p for p in found if ExecutorId(f"cpu/{at}") in p.profiles), None)
        if one and mine is not None:
            assert set(mine.profiles) == {ExecutorId(f"cpu/{n}") for n in reached if held[n]}
    separately: dict[str, tuple[str, bool]] = {}
    for part in found:
        separately |= planned(part)
    assert planned(whole) == separately


def test_newcomers_and_questions_are_weighed_in_their_part() -> None:
    gate, yard = cameras_of("gate", 4, rate_hz=60), cameras_of("yard", 1)
    whole = box([["gate"], ["yard"]], [*gate, *yard])
    newcomer = replace(camera("new"), family=FamilyName("yard"))
    assert refusal(whole, newcomer, PARAMETERS) is None
    only = box([["yard"]], yard)
    asked = explanation(whole, yard[0].camera.id, PARAMETERS, 1000)
    assert asked == explanation(only, yard[0].camera.id, PARAMETERS, 1000)
    assert part_of(whole, FamilyName("nobody's")) is whole

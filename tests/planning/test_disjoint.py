"""Executors that have no family in common are planned as the separate boxes that they are."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import (
    QUANTILES,
    ExecutorId,
    FamilyName,
    Variant,
    VariantName,
)
from edgebox.domain.plans import CameraSnapshot, LaterStage, LaterVariant, Plan, PlanningSnapshot
from edgebox.domain.requests import SiteId
from edgebox.planning.by_application import by_application
from edgebox.planning.camera_admission import refusal
from edgebox.planning.disjoint import parts
from edgebox.planning.explain import explanation
from edgebox.planning.optimisation import optimise
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.scene import FIXED_NS, link, seen
from tests.planning.test_later_stages import READ
from tests.scheduling.pipelines import CHAIN
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
    nobodys = replace(newcomer, family=FamilyName("nobody's"))
    assert refusal(whole, nobodys, PARAMETERS) is None
    unknown = replace(whole, cameras=(*whole.cameras, seen(nobodys, link())))
    assert explanation(unknown, nobodys.id, PARAMETERS, 1000) is None


def two_parts(
    data: st.DataObject, *, sites: Sequence[str | None], tail: float, slowdown: Sequence[float]
) -> PlanningSnapshot:
    """Return a box of two parts with two executors each, and cameras that may share uplinks."""
    cameras = [
        replace(
            seen(
                replace(
                    camera(
                        f"{family}-{at}",
                        slo_ms=data.draw(st.sampled_from([100, 150, 200, 300])),
                        rate_hz=data.draw(st.sampled_from([2, 5, 15])),
                    ),
                    family=FamilyName(family),
                    site=None if site is None else SiteId(site),
                ),
                link(data.draw(st.sampled_from([2.0, 8.0, 16.0]))),
            )
        )
        for family in ("gate", "yard")
        for at, site in enumerate(sites)
    ]
    whole = box([["gate"], ["yard"], ["gate"], ["yard"]], cameras)
    tails = {
        executor: {
            name: replace(
                of,
                quantiles_ns={
                    size: tuple(
                        round(times[QUANTILES.index(0.5)] * (tail if q > 0.9 else 1.0))
                        for q in QUANTILES
                    )
                    for size, times in of.quantiles_ns.items()
                },
            )
            for name, of in profiles.items()
        }
        for executor, profiles in whole.profiles.items()
    }
    return replace(whole, profiles=tails, slowdown=dict(zip(tails, slowdown, strict=True)))


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_what_is_explained_is_what_is_planned(data: st.DataObject) -> None:
    """Whatever decides the parts together: uplinks, quantiles, executors that are far slower."""
    whole = two_parts(
        data,
        sites=data.draw(st.lists(st.sampled_from([None, "a", "b"]), min_size=1, max_size=3)),
        tail=data.draw(st.sampled_from([1.0, 1.5, 4.0])),
        slowdown=data.draw(st.tuples(*[st.sampled_from([1.0, 3.0, 20.0])] * 4)),
    )
    answer = plan(whole, 1000)
    for each in whole.cameras:
        explained = explanation(whole, each.camera.id, PARAMETERS, 1000)
        assert explained is not None
        [chosen] = [o for o in explained.options if o.verdict == "chosen"]
        assert chosen.variant.name == answer.assignments[each.camera.id].variant
        assert chosen.why == answer.assignments[each.camera.id].reason


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_parts_with_nothing_in_common_change_nothing_of_each_other(data: st.DataObject) -> None:
    slowdown = data.draw(st.tuples(*[st.sampled_from([1.0, 3.0, 20.0, 25.0])] * 4))
    whole = two_parts(
        data,
        sites=[None] * data.draw(st.integers(1, 3)),
        tail=data.draw(st.sampled_from([1.0, 4.0])),
        slowdown=slowdown,
    )
    separately: dict[str, tuple[str, bool]] = {}
    for part in parts(whole):
        separately |= planned(part)
    assert planned(whole) == separately


def with_later(of: CameraSnapshot, executor_s: float) -> CameraSnapshot:
    """Return a camera whose frames have crops for the smallest variant of `read`."""
    variant = variants("read")[0]
    later = LaterStage(READ, 2.0, (0.1,), (LaterVariant(variant, executor_s),), variant.name)
    piped = replace(of.camera, pipeline=CHAIN)
    return replace(of, camera=piped, later=(later,))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.01, 0.03, 0.08]), min_size=1, max_size=4))
def test_crops_burden_only_the_part_that_runs_them(executor_s: list[float]) -> None:
    gate = cameras_of("gate", len(executor_s))
    piped = [with_later(each, taken) for each, taken in zip(gate, executor_s, strict=True)]
    of_gate = plan(box([["gate"]], gate), 1000)
    readers = [["read"], ["read"], ["yard"]]
    whole = plan(box([["gate"], *readers], piped), 1000)
    variants_of = {c: a.variant for c, a in of_gate.assignments.items()}
    assert {c: a.variant for c, a in whole.assignments.items()} == variants_of
    # One executor with frames, two with crops, one idle.
    busy = of_gate.utilisation + 10 * sum(executor_s)
    assert whole.utilisation == pytest.approx(busy / 4)


def test_crops_burden_frames_of_their_own_part() -> None:
    yard = cameras_of("yard", 6)
    gate = [with_later(each, 0.03) for each in cameras_of("gate", 3)]
    held = [["gate"], ["yard", "read"]]
    plain = [replace(each, later=()) for each in gate]
    without_crops, with_crops = (plan(box(held, [*of, *yard]), 1000) for of in (plain, gate))
    px = {variant.name: variant.pixels for variant in variants("yard")}

    def pixels_of(of: Plan) -> int:
        return sum(px[a.variant] for c, a in of.assignments.items() if c.startswith("yard"))

    assert pixels_of(with_crops) < pixels_of(without_crops)


def test_a_newcomer_whose_crops_fill_another_part_is_refused() -> None:
    held = [["gate"], ["read"]]
    newcomer = replace(cameras_of("gate", 4)[3].camera, pipeline=CHAIN, min_rate_hz=10.0)
    half_full = box(held, [with_later(c, 0.03) for c in cameras_of("gate", 2)])
    assert refusal(half_full, newcomer, PARAMETERS) is None
    full = box(held, [with_later(c, 0.03) for c in cameras_of("gate", 3)])
    said = refusal(full, newcomer, PARAMETERS)
    assert said == "the later stages of pipelines would need 120% of the time of cpu/1"
    # One without that pipeline takes nothing of it.
    assert refusal(full, replace(newcomer, pipeline=None), PARAMETERS) is None

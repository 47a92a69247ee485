"""An executor for each camera: the options against brute force, and the claim by playing it out."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.plans import PlanningSnapshot
from edgebox.planning.capacity import batch_times
from edgebox.planning.dedicated import best_dedicated
from edgebox.planning.explain import explanation
from edgebox.planning.options import all_options
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import MS, camera, name

P = PlanningParameters()
STEADY = link(throughput_stability=1.0)
GPUS = tuple(ExecutorId(f"gpu/{at}") for at in range(4))


def box(slos_ms: Sequence[int], executors: int, rate_hz: float = 10) -> PlanningSnapshot:
    return snapshot(
        [seen(camera(f"gate-{at}", slo_ms, rate_hz), STEADY) for at, slo_ms in enumerate(slos_ms)],
        executors=GPUS[:executors],
    )


def sizes(of: PlanningSnapshot) -> list[str]:
    return [each.variant for each in plan(of, 1000).assignments.values()]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([20, 40, 60, 100, 300]),
            st.sampled_from([5, 15, 25, 60]),
            st.sampled_from([1.0, 3.0, 100.0, None]),
            st.sampled_from([None, 128, 320]),
            st.sampled_from([None, 0.3, 0.8, 1.0]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 4),
)
def test_everybody_has_the_largest_that_is_in_time_alone(
    drawn: list[tuple[int, int, float | None, int | None, float | None]], executors: int
) -> None:
    of = snapshot(
        [
            seen(
                camera(f"gate-{at}", slo_ms, rate_hz),
                link(mbps, throughput_stability=steady),
                has_px,
            )
            for at, (slo_ms, rate_hz, mbps, has_px, steady) in enumerate(drawn)
        ],
        executors=GPUS[:executors],
    )
    cameras = all_options(of, batch_times(of, P.quantile), P, dedicated=True)
    found = best_dedicated(cameras, executors, P)
    if len(drawn) > executors:
        assert found is None
        return
    for at, each in enumerate(cameras):
        shares = [option.single_ns * option.rate_hz / 1e9 for option in each.options]
        limits = [
            P.utilisation_upgrade
            if each.current_px is not None and option.variant.pixels > each.current_px
            else P.utilisation_max
            for option in each.options
        ]
        fits = [n for n, share in enumerate(shares) if share <= limits[n]]
        if not fits:
            assert found is None
            return
        if found is not None:
            assert found.at[at] == max(fits)
            option = found.chosen[at]
            assert not each.served or option.single_ns <= option.budget.compute_ns
    assert found is not None
    assert found.utilisation <= P.utilisation_max
    served = [option for c, option in zip(cameras, found.chosen, strict=True) if c.served]
    for option in served:
        assert found.steal_budget_ns + option.single_ns <= option.budget.compute_ns


def test_with_an_executor_for_each_nobody_waits() -> None:
    # P99 of 416 px is 30 ms, of 320 px 18; 60 ms leave some 50.
    assert sizes(box([60], 1)) == [name(416)]
    assert sizes(box([60, 60], 1)) == [name(320)] * 2
    assert sizes(box([60, 60], 2)) == [name(416)] * 2
    assert sizes(box([60, 60, 60], 2)) == [name(320)] * 3


def test_one_executor_must_be_quick_enough_for_its_camera() -> None:
    # 36 ms of 40 are all that may be planned; a camera at 40 Hz would need both executors.
    assert sizes(box([60], 1, rate_hz=25)) == [name(416)]
    assert sizes(box([60], 1, rate_hz=40)) == [name(320)]
    # Two of them serve in parallel what one could not alone.
    assert sizes(box([100], 2, rate_hz=40)) == [name(416)]
    [given_] = plan(box([100], 1, rate_hz=40), 1000).assignments.values()
    assert given_.variant == name(320)
    assert given_.reason == (
        "320 × 320 px: one camera has gpu/0 to itself; "
        "416 × 416 px would need 30 % more of its time"
    )


def test_what_is_kept_for_an_unsteady_link_is_no_more_than_for_a_batch_in_front() -> None:
    # 416 px of 16:9 weigh some 32 kB: 13 ms at 20 Mbit/s, 26 ms where half of that is to be feared.
    def chosen(throughput_stability: float | None) -> str:
        of = snapshot(
            [seen(camera(slo_ms=65), link(20, throughput_stability=throughput_stability))]
        )
        return sizes(of)[0]

    assert chosen(1.0) == name(416)
    assert chosen(0.8) == name(416)
    assert chosen(0.4) == chosen(0.01) == chosen(None) == name(320)


def test_so_much_is_kept_as_frames_took_longer_than_planned() -> None:
    def chosen(overrun_ms: int | None) -> str:
        overrun_ns = None if overrun_ms is None else overrun_ms * MS
        return sizes(snapshot([seen(camera(slo_ms=60), STEADY, None, overrun_ns)]))[0]

    assert chosen(0) == chosen(15) == name(416)
    assert chosen(25) == chosen(10_000) == chosen(None) == name(320)


def test_the_steadier_an_uplink_the_more_of_it_is_filled() -> None:
    # At 10 Hz: 416 px needs 2.27 Mbit/s, 2.83 at 80 % and 2.39 at 95 %.
    def chosen(throughput_stability: float | None, mbps: float) -> str:
        of = snapshot(
            [seen(camera(slo_ms=1000), link(mbps, throughput_stability=throughput_stability))]
        )
        return sizes(of)[0]

    assert [chosen(None, mbps) for mbps in (2.2, 2.5, 2.9)] == [name(320), name(320), name(416)]
    assert [chosen(0.5, mbps) for mbps in (2.2, 2.5, 2.9)] == [name(320), name(320), name(416)]
    assert [chosen(1.0, mbps) for mbps in (2.2, 2.5, 2.9)] == [name(320), name(416), name(416)]


def test_the_table_of_sizes_says_what_one_batch_needs() -> None:
    of = box([60], 1)
    weighed = explanation(of, of.cameras[0].camera.id, P, 1000)
    assert weighed is not None
    needed_ms = {each.variant.name: each.needed_ns / MS for each in weighed.options}
    assert needed_ms[name(416)] == 30
    chosen = [each for each in weighed.options if each.verdict == "chosen"]
    assert [each.variant.name for each in chosen] == [name(416)]
    two = box([60, 60], 1)
    weighed = explanation(two, two.cameras[0].camera.id, P, 1000)
    assert weighed is not None
    assert {each.variant.name: each.needed_ns / MS for each in weighed.options}[name(416)] == 60


def test_who_has_it_keeps_it() -> None:
    of = box([60, 60], 2)
    first = plan(of, 1000)
    cameras = tuple(replace(each, current=first.assignments[each.camera.id]) for each in of.cameras)
    again = plan(replace(of, cameras=cameras), 1000)
    assert {c: a.variant for c, a in again.assignments.items()} == dict.fromkeys(
        first.assignments, name(416)
    )


def test_a_tight_camera_may_have_an_executor_to_itself_beside_others() -> None:
    of = snapshot(
        [
            seen(camera(f"gate-{at}", slo_ms, 25), STEADY)
            for at, slo_ms in enumerate((45, 400, 400, 400))
        ],
        executors=GPUS[:2],
        gain=0.8,
    )
    answer = plan(of, 1000)
    tight, loose = answer.groups
    given_ = list(answer.assignments.values())
    assert tight.executors == GPUS[:1]
    assert given_[0].variant in tight.variants
    assert all(each.variant in loose.variants for each in given_[1:])
    in_force = tuple(
        replace(each, current=answer.assignments[each.camera.id]) for each in of.cameras
    )
    again = plan(replace(of, cameras=in_force, groups=answer.groups), 1000)
    assert {c: a.variant for c, a in again.assignments.items()} == {
        c: a.variant for c, a in answer.assignments.items()
    }
    assert again.groups == answer.groups


@settings(max_examples=100, deadline=None)
@given(
    period_ms=st.integers(10, 100),
    share=st.floats(0.1, P.utilisation_max),
    budget_share=st.floats(0.0, 3.0),
    network=st.lists(st.floats(0, 1), min_size=2, max_size=60),
)
def test_a_camera_does_not_wait_for_its_own_frames(
    period_ms: int, share: float, budget_share: float, network: list[float]
) -> None:
    """Whatever the link does within the budget: frames arrive in order and all are in time."""
    takes_ms = share * period_ms
    budget_ms = budget_share * period_ms  # what the link may take; the rest is the frame's own
    free_ms = last_ms = 0.0
    for number, part in enumerate(network):
        captured_ms = number * period_ms
        last_ms = max(last_ms, captured_ms + part * budget_ms)  # none overtakes another
        free_ms = max(free_ms, last_ms) + takes_ms
        assert free_ms <= captured_ms + budget_ms + takes_ms + 1e-6

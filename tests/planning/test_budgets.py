"""What a link leaves of an SLO."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgebox.link.bandwidth import message_bytes
from edgebox.planning.budgets import CameraBudgets, bandwidth_needed_bps, budget
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.scene import FIXED_NS, link
from tests.scheduling.scene import FAMILY, MS, camera

PARAMETERS = PlanningParameters()


def test_a_worked_example() -> None:
    # 256x144 px at 0.3 bytes, 8 % more for being small, and 660 bytes: 101,175 bits, 50.6 ms at
    # 2 Mbit/s, 2 ms there and back.
    of = budget(camera(), link(2), FAMILY[1], FIXED_NS, PARAMETERS)
    bits = 8 * (660 + 0.3 * 256 * 144 * (144 / 256) ** -0.14)
    assert of.frame_bits == pytest.approx(bits)
    assert bits == pytest.approx(101_175, abs=1)
    assert of.compute_ns == pytest.approx((300 - bits / 2000 - 2 - 5 - 2) * MS, abs=1)
    assert of.rate_hz == 10
    slow = budget(camera(), link(1), FAMILY[1], FIXED_NS, PARAMETERS)
    assert slow.rate_hz == pytest.approx(0.8 * 1e6 / bits)


def test_a_small_camera_sends_its_own_size_whatever_the_variant() -> None:
    small = camera(size=(200, 100))
    bits = {budget(small, link(2), v, 0, PARAMETERS).frame_bits for v in FAMILY[1:]}
    assert bits == {8 * message_bytes(0.3, 200 * 100)}


def test_without_an_estimate_two_batches_of_a_third_fit() -> None:
    small = budget(camera(slo_ms=300), link(None), FAMILY[0], 0, PARAMETERS)
    assert small.compute_ns == 200 * MS
    assert small.rate_hz == 10


def test_without_an_estimate_large_frames_are_not_risked() -> None:
    of = budget(camera(rate_hz=10), link(None), FAMILY[4], 0, PARAMETERS)
    assert 8 * PARAMETERS.unmeasured_frame_bytes / of.frame_bits < 1
    assert of.rate_hz == 10 * 8 * PARAMETERS.unmeasured_frame_bytes / of.frame_bits


def test_a_dead_link_leaves_nothing() -> None:
    of = budget(camera(), link(0), FAMILY[0], 0, PARAMETERS)
    assert of.compute_ns < 0
    assert of.rate_hz == 0


@given(st.sampled_from([None, 0.0, 0.3, 2.0, 30.0]), st.floats(1, 3))
def test_budgets_of_a_weaker_uplink_are_those_of_a_link_with_less(
    mbps: float | None, weaker: float
) -> None:
    sizes = [100 * 100, 640 * 360]
    less = link(None if mbps is None else mbps / weaker)
    found = CameraBudgets(camera(), link(mbps), FIXED_NS, PARAMETERS, weaker=weaker)
    expected = CameraBudgets(camera(), less, FIXED_NS, PARAMETERS)
    for one, other in zip(found.of_pictures(sizes), expected.of_pictures(sizes), strict=True):
        assert one == pytest.approx(other)


@given(
    st.integers(1, 2000),
    st.floats(0.5, 60),
    st.floats(0.05, 100),
    st.sampled_from(FAMILY),
    st.integers(0, 200 * MS),
)
def test_the_bandwidth_said_to_be_needed_is_just_enough(
    slo_ms: int, rate_hz: float, mbps: float, variant: object, compute_ns: int
) -> None:
    of = camera(slo_ms=slo_ms, rate_hz=rate_hz)
    bits = budget(of, link(mbps), variant, FIXED_NS, PARAMETERS).frame_bits  # type: ignore[arg-type]
    needed_bps = bandwidth_needed_bps(
        of,
        link(mbps),
        frame_bits=bits,
        compute_ns=compute_ns,
        fixed_ns=FIXED_NS,
        parameters=PARAMETERS,
    )

    def enough(bandwidth_bps: float) -> bool:
        got = budget(of, link(bandwidth_bps / 1e6), variant, FIXED_NS, PARAMETERS)  # type: ignore[arg-type]
        return got.compute_ns >= compute_ns and math.isclose(got.rate_hz, rate_hz)

    if needed_bps is None:
        assert not enough(1e15)
    else:
        assume(needed_bps < 1e12)
        assert enough(needed_bps * 1.0001)
        assert not enough(needed_bps * 0.999)

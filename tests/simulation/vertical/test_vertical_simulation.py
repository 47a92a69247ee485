"""Policies of cores under virtual time: counts add up, and the figures that are documented."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.simulation.vertical.comparison import POLICIES, compare
from edgebox.simulation.vertical.vertical_scenario import (
    VerticalScenario,
    make_arrivals,
    parse_vertical_scenario,
)

TEXT = """
duration_s = 60
rate_hz = 20
slo_ms = 1000
picture_kb = [100, 200]
[link]
made_up = "lte"
made_up_seed = 5
[model]
gamma_ms = 143
epsilon_ms = 23
delta_ms = 5
eta_ms = 53
"""


def scenario(text: str = TEXT) -> VerticalScenario:
    return parse_vertical_scenario(text, "yard.toml", lambda name: "")


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 30),
    st.integers(0, 40),
    st.sampled_from(["lte", "wifi"]),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.integers(200, 1500),
)
def test_no_policy_is_below_the_bound_and_static_cores_cost_what_they_are(
    rate_hz: int, seed: int, link: str, spread: float, slo_ms: int
) -> None:
    text = TEXT.replace("rate_hz = 20", f"rate_hz = {rate_hz}").replace("= 1000", f"= {slo_ms}")
    text = text.replace("seed = 5", f"seed = {seed}").replace('"lte"', f'"{link}"')
    of = replace(scenario(text), spread=spread, duration_ns=10 * 10**9)
    for run in compare(of, POLICIES):
        assert run["requests"] == rate_hz * 10
        for each in run["policies"]:
            assert each["violations"] == each["dropped"] + each["late"]
            assert each["violations"] <= run["requests"]
            assert each["busy_core_seconds"] <= each["core_seconds"] + 0.1
            if spread == 0:
                assert each["late"] == 0
                if each["policy"] != "horizontal":  # it has more than one executor
                    assert each["avoidable"] >= 0


def by_name(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["policy"]: each for each in run["policies"]}


def test_the_documented_ratios_hold() -> None:
    for run in compare(scenario(), POLICIES):
        found = by_name(run)
        ours = found["per-batch"]
        assert ours["avoidable"] <= 0.001 * run["requests"] + 1
        assert ours["of_perfect_knowledge"] <= 1.1
        assert found["sponge"]["of_perfect_knowledge"] > 1.15
        assert found["static-16"]["of_perfect_knowledge"] > 3


def test_requests_arrive_in_the_order_of_their_deadlines() -> None:
    of = scenario()
    for size in of.sizes_bytes:
        arrivals = make_arrivals(of, size)
        assert list(arrivals.arrivals_ns) == sorted(arrivals.arrivals_ns)
        assert list(arrivals.deadlines_ns) == sorted(arrivals.deadlines_ns)
        assert all(a >= c for a, c in zip(arrivals.arrivals_ns, arrivals.captures_ns, strict=True))


def test_times_may_be_measured_ones() -> None:
    head, _ = TEXT.split("[model]")
    rows = "\n".join(
        f"[[model.measured]]\nbatch = {b}\ncores = {c}\nms = {(143 * b + 23) / c + 5 * b + 53}"
        for b in (1, 4, 8)
        for c in (1, 2, 8)
    )
    found = scenario(head + "[model]\n" + rows)
    assert found.latency.gamma_ns == pytest.approx(143e6, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("picture_kb = [100, 200]", ""), "picture_kb: is missing"),
        (("rate_hz = 20", "rate_hz = 0"), "yard.toml:3: rate_hz: must be a number above 0"),
        (("[model]", "[model]\ncores_max = 0"), "cores_max: must be"),
        (("eta_ms = 53", "eta_ms = 53\nzeta_ms = 1"), "zeta_ms"),
        (("gamma_ms = 143", "gamma_ms = -1"), "gamma_ms: must be"),
        (('made_up = "lte"', ""), "give exactly one of mbps, trace"),
        (("slo_ms = 1000", "slo_ms = 1000\ncores_static = [32]"), "cores_static[1]: must be"),
        (("slo_ms = 1000", "slo_ms = 1000\ncores_static = [8.5]"), "whole numbers, not [8.5]"),
        (("duration_s = 60", "duration_s = 0.01"), "duration_s: at rate_hz there are 0 requests"),
        (("rate_hz = 20", "rate_hz = 10000"), "there are 600000 requests"),
    ],
)
def test_mistakes_are_named_with_line_and_key(change: tuple[str, str], error: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        scenario(TEXT.replace(*change))
    assert error in str(caught.value)
    assert "\n" not in str(caught.value)

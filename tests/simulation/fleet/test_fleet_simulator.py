"""The simulated fleet: cameras are connected once, frames add up, and failures are survived."""

import random
from functools import cache
from typing import Any

import pytest

from edgebox.domain.errors import InvalidInputError
from edgebox.fleet.redirect import REDIRECTS_MAX
from edgebox.simulation.fleet.box_model import (
    BoxModel,
    Service,
    box_hardware,
    frames_per_s_of,
    measure_box,
)
from edgebox.simulation.fleet.fleet_figures import fleet_figures
from edgebox.simulation.fleet.fleet_policies import policies
from edgebox.simulation.fleet.fleet_run import FleetSetting
from edgebox.simulation.fleet.fleet_simulator import FleetRun, FleetSimulator, Loss, Sample
from edgebox.simulation.fleet.population import draw_cameras
from edgebox.simulation.fleet.timetable import FleetEvent, What, fleet_events

BOXES, CAMERAS = 20, 600
MODEL = BoxModel(230.0, (Service(0.5, 1.0, 0.5), Service(1.0, 1.0, 0.4), Service(2.0, 0.5, 0.2)))


def simulator(policy: str, seed: int = 1) -> FleetSimulator:
    rng = random.Random(seed)
    cameras = draw_cameras(CAMERAS, rng)
    return FleetSimulator(
        MODEL,
        BOXES,
        cameras,
        timetable=fleet_events(BOXES, rng),
        policy=policies()[policy],
        rng=rng,
    )


def figures(policy: str, seed: int = 1) -> dict[str, Any]:
    made = simulator(policy, seed)
    for _ in made.progress():
        pass
    return fleet_figures(made.run, CAMERAS)


@cache
def known(policy: str, seed: int = 1) -> dict[str, Any]:
    """Return the figures of a run, which is made once."""
    return figures(policy, seed)


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    return {policy: known(policy) for policy in policies()}


def test_every_camera_is_connected_once_at_every_moment() -> None:
    made = simulator("edgebox")
    for _ in made.progress():
        connected = [camera for box in made.boxes for camera in box.cameras]
        assert len(connected) == len(set(connected))
        assert all(box.up or not box.cameras for box in made.boxes)
        for box in made.boxes:
            rates = sum(made.rate_hz(camera) for camera in box.cameras)
            assert box.rate_hz == pytest.approx(rates)
    assert sum(len(box.cameras) for box in made.boxes) >= CAMERAS - 3  # some are on their way


def test_the_same_seed_gives_the_same_run(found: dict[str, dict[str, Any]]) -> None:
    assert figures("edgebox") == found["edgebox"]
    assert known("edgebox", seed=2) != found["edgebox"]


def test_the_rule_is_near_perfect_knowledge_and_far_from_none(
    found: dict[str, dict[str, Any]],
) -> None:
    best, ours = found["omniscient"]["on_time"], found["edgebox"]["on_time"]
    assert ours > best - 0.02
    for other in ("none", "random"):
        assert best - ours < 0.5 * (best - found[other]["on_time"])
        assert found["edgebox"]["load_deviation"] < found[other]["load_deviation"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_cameras_of_a_lost_box_are_back_within_five_seconds(seed: int) -> None:
    of = known("edgebox", seed)
    assert [loss["what"] for loss in of["recovery"]] == ["crash", "power loss"]
    for loss in of["recovery"]:
        assert loss["cameras"] > 0
        assert loss["all_s"] is not None
        assert loss["all_s"] <= 5.0


def test_redirects_are_bounded_and_rare(found: dict[str, dict[str, Any]]) -> None:
    of = found["edgebox"]
    assert of["redirects_of_one_hello_max"] <= REDIRECTS_MAX + 1  # the last of a draining box
    assert of["redirects_per_camera"] < 3
    assert found["none"]["redirects_per_camera"] == 0


def test_shares_by_phase_and_over_time_are_shares(found: dict[str, dict[str, Any]]) -> None:
    for of in found.values():
        for each in (*of["phases"].values(), *of["over_time"]):
            assert 0 <= each["accuracy"] <= each["on_time"] <= 1


def test_a_box_is_interpolated_between_its_loads() -> None:
    assert MODEL.at(0.1).on_time == 1.0
    assert MODEL.at(1.5).on_time == pytest.approx(0.75)
    assert MODEL.at(1.5).accuracy == pytest.approx(0.3)
    assert MODEL.at(4.0).on_time == pytest.approx(0.25)  # it answers as many frames as at 2


def test_a_box_is_measured_with_the_simulator() -> None:
    hardware = box_hardware(1)
    rows = [row for _, row in measure_box(hardware, 1, seconds=2.0, loads=(0.5, 2.0))]
    assert rows[0].on_time > 0.97
    assert rows[1].on_time < 0.7
    assert rows[1].accuracy < rows[0].accuracy
    assert frames_per_s_of(box_hardware(2)) == pytest.approx(2 * frames_per_s_of(hardware))


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least 10 boxes"):
        FleetSetting(boxes=9)
    with pytest.raises(InvalidInputError, match="there is no policy 'best'"):
        FleetSetting(policies=["best"])


def test_boxes_without_cameras_keep_nobody_waiting() -> None:
    crash = FleetEvent(0, What.CRASH, (1, 2))
    losses = [Loss(crash, set()), Loss(crash, {7}), Loss(crash, set(), [3 * 10**9, 10**9])]
    run = FleetRun(samples=[Sample(0, 0.0, 0.0, 0.0, (), 0)], losses=losses)
    found = fleet_figures(run, 10)["recovery"]
    assert [(of["cameras"], of["all_s"]) for of in found] == [(0, 0.0), (1, None), (2, 3.0)]

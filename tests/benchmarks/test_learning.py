"""The scenes of `benchmarks.learning`, some of them, smaller, on other seeds."""

from dataclasses import replace

import pytest

from benchmarks.learning import OFF, measure, run, scenes, workload

SCENES = {scene.name: scene for scene in scenes()}
SEED = 3


@pytest.mark.parametrize("name", ["two: 85/15, mmpp", "two: 95/5", "one: 95/5"])
def test_another_mix_costs_nothing_and_is_no_drift(name: str) -> None:
    scene = replace(SCENES[name], requests=2500)
    work = workload(scene, SEED)
    report, drifts = run(scene, work)
    without, _ = run(scene, work, OFF)
    assert drifts == []
    first = scene.first
    assert report.finish_rate_from(first) >= without.finish_rate_from(first) - 0.02


@pytest.mark.parametrize("many", ["two", "one"])
def test_a_slower_machine_is_told_from_a_mix_that_changes_with_it(many: str) -> None:
    scene = replace(SCENES[f"{many}: 1.5 times slower, 85% short"], requests=2500)
    _, drifts = run(scene, workload(scene, SEED))
    assert [drift.factor for drift in drifts] == pytest.approx([1.5], rel=0.05)


def test_a_slower_machine_that_was_suspected_first_is_not_taken_for_a_faster_one_later() -> None:
    """What was learned since the suspicion is undone as well, or the machine would look quicker."""
    scene = SCENES["one: 1.5 times slower, 50% short"]
    _, drifts = run(scene, workload(scene, 101))
    assert [drift.factor for drift in drifts] == pytest.approx([1.5], rel=0.05)


@pytest.mark.parametrize(
    ("name", "near"),
    [("an unknown long application", 0.05), ("two applications swap their times", 0.03)],
)
def test_what_was_not_known_is_soon_as_good_as_known(name: str, near: float) -> None:
    found = measure(replace(SCENES[name], requests=1200), SEED)
    assert found["on time"] >= found["informed"] - near

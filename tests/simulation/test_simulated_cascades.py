"""Cascades under virtual time: the share that is sent on, and the accuracy that comes of it."""

from collections import Counter
from typing import Any

import pytest

from edgebox.domain.cascades import CascadeOutcome
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.requests import Outcome
from edgebox.simulation.answer_accuracy import accuracy_figures
from edgebox.simulation.object_figures import object_figures
from edgebox.simulation.report import Report
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario

pytestmark = pytest.mark.long

SMALL, LARGE = 0.4, 0.7
TEXT = """
duration_s = {duration_s}
[policy]
planning = "none"
[[executors]]
name = "cpu/0"
[[variants]]
name = "detect-128"
family = "detect"
width_px = 128
accuracy = 0.4
batch_ms = {{ 1 = 2 }}
[[variants]]
name = "detect-512"
family = "detect"
width_px = 512
accuracy = 0.7
batch_ms = {{ 1 = {large_ms} }}
[[pipelines]]
name = "cascade"
[[pipelines.stages]]
name = "small"
family = "detect"
variant = "detect-128"
[[pipelines.stages]]
name = "large"
family = "detect"
after = ["small"]
variant = "detect-512"
small = "detect-128"
curve = [[0.9, 0, 0.4], [0.5, 0.5, 0.1], [0, 1, 0]]
{threshold}
[[cameras]]
name = "gate"
count = 2
pipeline = "cascade"
slo_ms = 200
rate_hz = 10
mbps = 1000
{camera}
"""


def scenario(
    threshold: str = "share = 0.25",
    large_ms: float = 10,
    camera: str = "",
    duration_s: int = 60,
) -> Scenario:
    text = TEXT.format(threshold=threshold, large_ms=large_ms, camera=camera, duration_s=duration_s)
    return parse_scenario(text, "test.toml", str)


def run(of: Scenario) -> dict[str, Any]:
    return accuracy_figures(run_scenario(of), of)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_box_with_room_has_the_accuracy_of_the_curve(share: float) -> None:
    of = scenario(f"share = {share}")
    found = run(of)
    answered = sum(found["cascade"].values())
    assert found["cascade"]["missed"] == 0
    assert found["cascade"]["sent_on"] / answered == pytest.approx(share, abs=0.04)
    cascade = of.cameras[0].camera.cascade
    assert cascade is not None
    wanted = cascade.curve.accuracy_at(share, SMALL, LARGE)
    assert found["accuracy_per_s"] / found["answers_per_s"] == pytest.approx(wanted, abs=0.01)


def sent_on(report: Report) -> set[tuple[str, int]]:
    """Return the pictures, by camera and instant of capture, that were sent on."""
    return {
        (each.request.camera, each.truly_captured_ns)
        for each in report.ended
        if each.work is not None and each.work.cascade is CascadeOutcome.SENT_ON
    }


@pytest.mark.parametrize("rate_hz", [10, 30, 48, 65])
def test_a_planned_share_is_nearly_as_good_as_the_best_of_all_shares(rate_hz: int) -> None:
    # The large model alone could answer 100 frames a second of both cameras.
    def goodput(threshold: str) -> dict[str, Any]:
        # Without what is there before the first plans, a few seconds tell of many.
        text = TEXT.format(
            threshold=threshold, large_ms=10, camera="", duration_s="6\nwarmup_s = 2"
        )
        text = text.replace("rate_hz = 10", f"rate_hz = {rate_hz}")
        if not threshold:
            text = text.replace('planning = "none"', 'planning = "adaptive"')
        return run(parse_scenario(text, "test.toml", str))

    fixed = [goodput(f"share = {share}") for share in (0, 0.25, 0.5, 0.75, 1)]
    planned = goodput("")
    best = max(each["accuracy_per_s"] for each in fixed)
    assert planned["accuracy_per_s"] >= 0.95 * best
    assert planned["cascade"]["missed"] <= 0.05 * sum(planned["cascade"].values())


def test_the_same_picture_is_always_as_hard() -> None:
    few, many = (run_scenario(scenario(f"share = {share}", duration_s=20)) for share in (0.2, 0.6))
    assert sent_on(few) < sent_on(many)


def test_harder_pictures_are_sent_on_more_often() -> None:
    shares = []
    for difficulty in (0.5, 1, 2):
        found = run(scenario(camera=f"difficulty = {difficulty}", duration_s=40))["cascade"]
        shares.append(found["sent_on"] / sum(found.values()))
    assert shares == pytest.approx([0.25**2, 0.25, 0.25**0.5], abs=0.04)


def test_a_large_model_that_is_too_slow_costs_no_answer() -> None:
    # It takes longer than any deadline, so it is never begun.
    of = scenario(large_ms=300, duration_s=20)
    report = run_scenario(of)
    assert all(each.outcome is Outcome.ON_TIME for each in report.ended)
    found = accuracy_figures(report, of)
    assert found["cascade"]["sent_on"] == 0
    assert found["cascade"]["missed"] > 0
    mean = found["accuracy_per_s"] / found["answers_per_s"]
    assert mean == pytest.approx(SMALL, abs=0.01)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("share = 0.25", "share = 0.25\nthreshold = 0.5", "excludes threshold"),
        ("share = 0.25", "share = 2", "share"),
        ("[0.9, 0, 0.4]", "[0.9, 0]", "list of .threshold, share, loss"),
        ("[0.9, 0, 0.4]", "[0.9, 0, 0.05]", "losses fall"),
        ('small = "detect-128"', 'small = "detect-64"', "small"),
        ('family = "detect"\nvariant = "detect-128"', 'family = "detect"', "must have the variant"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(old: str, new: str, said: str) -> None:
    text = TEXT.format(threshold="share = 0.25", large_ms=10, camera="", duration_s=1)
    assert old in text
    with pytest.raises(InvalidInputError, match=said):
        parse_scenario(text.replace(old, new, 1), "test.toml", str)


def test_later_stages_answer_also_where_the_large_model_has_no_time() -> None:
    text = TEXT.format(threshold="share = 0.5", large_ms=400, camera="objects = 2", duration_s=5)
    reader = (
        '[[variants]]\nname = "read-64"\nfamily = "read"\nwidth_px = 64\naccuracy = 0.8\n'
        "batch_ms = { 1 = 2 }\n[[pipelines]]"
    )
    stage = (
        '[[pipelines.stages]]\nname = "read"\nfamily = "read"\nafter = ["small", "large"]\n'
        "[[cameras]]"
    )
    text = text.replace("[[pipelines]]", reader, 1).replace("[[cameras]]", stage, 1)
    of = parse_scenario(text, "test.toml", str)
    report = run_scenario(of)
    outcomes = Counter(ended.work.cascade for ended in report.ended if ended.work is not None)
    assert outcomes[CascadeOutcome.SENT_ON] == 0
    assert outcomes[CascadeOutcome.MISSED] >= 20
    found = object_figures(report, of)
    assert found["objects_per_s"] == found["objects_shown_per_s"] == 40
    assert found["frames"]["partial"] == 0

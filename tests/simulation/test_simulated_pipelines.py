"""Pipelines under virtual time: their crops, their figures, and what bounds them."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.pipelines import StageName
from edgebox.domain.requests import Outcome
from edgebox.scheduling.scheduler_parameters import FrameAdmissionRule
from edgebox.simulation.object_figures import object_figures, objects_bound
from edgebox.simulation.objects import parse_object_counts
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario
from tests.simulation.pipelines import COUNTS, PIPELINE, pipelines_scenario, pipelines_text, yard

pytestmark = pytest.mark.long

S = 1_000_000_000
READ = StageName("read")
RECORDED = 'objects = "counts.csv"\nobjects_video = "a"'


def run(scenario: Scenario) -> dict[str, Any]:
    return object_figures(run_scenario(scenario), scenario)


def test_a_box_with_room_answers_every_object_as_often_as_pictures_show_it() -> None:
    found = run(pipelines_scenario(yard(), yard("gate", "objects = 1"), top="duration_s = 20"))
    assert found["objects_per_s"] == found["objects_shown_per_s"] == found["objects_bound_per_s"]
    assert found["cameras"] == {
        "yard": pytest.approx(30, abs=0.2), "gate": pytest.approx(10, abs=0.2)
    }  # fmt: skip
    assert found["frames"]["partial"] == 0
    assert found["executor_time"] == {"complete": 1.0, "partial": 0.0, "wasted": 0.0}


def test_recorded_counts_are_of_the_instant_of_capture_and_a_stage_takes_so_many() -> None:
    scenario = pipelines_scenario(yard(objects=RECORDED))
    report = run_scenario(scenario)
    for end in report.ended:
        second = end.truly_captured_ns // S % 3
        assert end.work is not None
        assert end.work.crops[READ] == (3, 4, 0)[second]
        assert end.outcome is Outcome.ON_TIME


def test_cameras_without_objects_or_pipeline_bring_no_crops() -> None:
    plain = (
        '[[cameras]]\nname = "plain"\nfamily = "detect"\nslo_ms = 200\nrate_hz = 5\nmbps = 100\n'
    )
    scenario = pipelines_scenario(yard(objects=""), plain)
    found = run(scenario)
    assert found["objects_shown_per_s"] == found["objects_per_s"] == 0
    assert found["frames"]["at_box"] == found["frames"]["on_time"] == 150
    assert found["frames"]["late"] == found["frames"]["dropped"] == 0


OVERLOADED = [yard(f"dense-{at}", "objects = 4", 30) for at in range(3)]
OVERLOADED += [yard(f"sparse-{at}", "objects = 1", 30) for at in range(4)]


@pytest.mark.parametrize("batching", ["adaptive", "edf"])
def test_under_overload_admission_answers_more_objects_and_wastes_little(batching: str) -> None:
    scenario = pipelines_scenario(
        *OVERLOADED, top="duration_s = 9\nwarmup_s = 3", policy=f'batching = "{batching}"'
    )
    found = {
        rule: run(replace(scenario, scheduling=replace(scenario.scheduling, frame_admission=rule)))
        for rule in FrameAdmissionRule
    }
    by_density = found.pop(FrameAdmissionRule.DENSITY)
    bound = by_density["objects_bound_per_s"]
    for others in found.values():
        assert by_density["objects_per_s"] > 1.15 * others["objects_per_s"]
    assert 0.8 * bound < by_density["objects_per_s"] <= bound
    assert by_density["executor_time"]["wasted"] < 0.02


@settings(max_examples=20, deadline=None)
@given(
    objects=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    rate_hz=st.integers(1, 40),
    seed=st.integers(0, 5),
    batching=st.sampled_from(["adaptive", "edf", "coral"]),
)
def test_counts_add_up_and_nothing_exceeds_the_bound(
    objects: list[int], rate_hz: int, seed: int, batching: str
) -> None:
    cameras = [yard(f"c{at}", f"objects = {of}", rate_hz) for at, of in enumerate(objects)]
    top = f"duration_s = 3\nseed = {seed}"
    scenario = pipelines_scenario(*cameras, top=top, policy=f'batching = "{batching}"')
    report = run_scenario(scenario)
    found = object_figures(report, scenario)
    assert len(report.ended) + len(report.lost) == sum(report.captured.values())
    assert found["objects_per_s"] <= found["objects_bound_per_s"] + 0.01
    assert found["objects_bound_per_s"] <= found["objects_shown_per_s"] + 0.01
    spent = report.spent
    busy_ns = sum(report.busy_ns.values())
    assert spent.complete_ns + spent.partial_ns + spent.wasted_ns <= busy_ns + 1
    for end in report.ended:
        assert end.work is not None
        assert end.work.answered <= end.work.crops


def test_the_bound_is_that_of_every_choice_of_frames() -> None:
    """Compare with all subsets of a few frames in one window, on whole frames."""
    cameras = [
        yard("a", "objects = 4", 2),
        yard("b", "objects = 1", 2),
        yard("c", "objects = 2", 2),
    ]
    slow = pipelines_text(*cameras, top="duration_s = 1").replace(
        "{ 1 = 8, 2 = 12, 4 = 20, 8 = 36 }", "{ 1 = 2550 }"
    )
    scenario = parse_scenario(slow, "test.toml", lambda name: "")
    frames = [(2550.0 + of * 9 / 16, min(of, 4)) for of in (4, 1, 2)] * 2
    room_ms = 10_000 + 200
    best = max(
        sum(objects for _, objects in chosen)
        for number in range(len(frames) + 1)
        for chosen in itertools.combinations(frames, number)
        if sum(took for took, _ in chosen) <= room_ms
    )
    bound = objects_bound(scenario)
    assert best <= bound < best + 4


SEVERAL_SIZES = """
[[variants]]
name = "detect-128"
family = "detect"
width_px = 128
accuracy = 0.4
batch_ms = { 1 = 2, 2 = 3, 4 = 5, 8 = 9 }
[[variants]]
name = "detect-608"
family = "detect"
width_px = 608
accuracy = 0.6
batch_ms = { 1 = 30, 2 = 55, 4 = 105, 8 = 205 }
[[variants]]
name = "read-128"
family = "read"
width_px = 128
accuracy = 0.9
batch_ms = { 1 = 6, 2 = 8, 4 = 12, 8 = 20, 16 = 36 }
"""


@pytest.mark.parametrize("limit", ["", 'variant = "detect-320"\n'])
def test_nothing_exceeds_the_bound_where_smaller_sizes_are_planned(limit: str) -> None:
    cameras = [yard(f"c{at}", rate_hz=15) for at in range(8)]
    text = pipelines_text(*cameras, SEVERAL_SIZES, top="duration_s = 4\nwarmup_s = 2")
    text = text.replace('planning = "none"', 'planning = "adaptive"')
    text = text.replace('family = "detect"\n[[pipelines', f'family = "detect"\n{limit}[[pipelines')
    scenario = parse_scenario(text, "test.toml", lambda name: "")
    found = run(scenario)
    assert found["objects_per_s"] <= found["objects_bound_per_s"] <= found["objects_shown_per_s"]
    # A frame takes 9 / 8 ms, and each of its crops 9 / 16.
    largest = parse_scenario(text.replace("rate_hz = 15", "rate_hz = 300"), "t", lambda name: "")
    frame_ms = 9 / 8 + 3 * 9 / 16
    assert objects_bound(largest) == pytest.approx(3 * (10_000 + 200) / frame_ms, rel=0.01)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", 'f:1: must name the columns: "at_s" and one per class'),
        ("at_s\n0\n", 'f:1: must name the columns: "at_s" and one per class'),
        ("at_s,car\n", "f: there are no counts (it has: nothing)"),
        ("at_s,car\n0,1\n0,2\n", "f:3: at_s: must be after the line before"),
        ("at_s,car\n0,many\n", "f:2: car: must be a number from 0 to 100000, not 'many'"),
        ("at_s,car\n0,nan\n", "f:2: car: must be a number from 0 to 100000, not 'nan'"),
        ("at_s,car\n0\n", "f:2: must have 2 columns"),
        (COUNTS, 'f:1: needs objects_video, because it has one "video"'),
    ],
)
def test_wrong_counts_have_one_clear_error(text: str, error: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        parse_object_counts(text, "f")
    assert str(raised.value) == error


def test_an_unknown_video_is_answered_by_those_there_are() -> None:
    with pytest.raises(InvalidInputError, match=r"there is no video 'c' \(it has: a, b\)"):
        parse_object_counts(COUNTS, "f", "c")


def line_of(text: str, needle: str) -> int:
    return next(at for at, line in enumerate(text.splitlines(), 1) if needle in line)


@pytest.mark.parametrize(
    ("before", "after", "needle", "key"),
    [
        ('"read"\nafter', '"raed"\nafter', "raed", "pipelines[1].stages[2].family"),
        ("crops_max = 4", "crops_max = 0", "crops_max", "pipelines[1].stages[2].crops_max"),
        ("crops_max = 4", "crops = 4", "crops =", "pipelines[1].stages[2].crops"),
        ('after = ["detect"]', 'after = ["read"]', "[[pipelines]]", "pipelines[1].stages"),
        ('pipeline = "cars"', 'pipeline = "vans"', "vans", "cameras[1].pipeline"),
        ("objects = 3", "objects = -1", "objects", "cameras[1].objects"),
        ('planning = "none"', 'frame_admission = ""', "frame_admission", "policy.frame_admission"),
    ],
)  # fmt: skip
def test_mistakes_are_named_by_line_and_key(before: str, after: str, needle: str, key: str) -> None:
    text = pipelines_text(yard())
    assert before in text
    text = text.replace(before, after, 1)
    with pytest.raises(InvalidInputError) as raised:
        parse_scenario(text, "f.toml", lambda name: "")
    assert str(raised.value).startswith(f"f.toml:{line_of(text, needle)}: {key}: ")


def test_two_pipelines_of_one_name_are_an_error() -> None:
    text = pipelines_text(yard()) + PIPELINE
    with pytest.raises(InvalidInputError, match="there are two pipelines named 'cars'"):
        parse_scenario(text, "f.toml", lambda name: "")


BY_SIDE = "accuracy = 0.8\naccuracy_by_side = [[10, 0.2], [30, 0.6], [60, 0.8]]\n"


@pytest.mark.parametrize(
    ("sides", "by_side", "right"),
    [
        ("", "accuracy = 0.8\n", 0.8),
        # The picture has 320 × 180 px, so .125 of its side is 30 px, and .0833 is 20 px.
        ("object_sides = [0.125]", BY_SIDE, 0.6),
        ("object_sides = [0.125, 0.08333]", BY_SIDE, (2 * 0.6 + 0.4) / 3),
        ("object_sides = [0.9]", BY_SIDE, 0.8),
    ],
)
def test_right_answers_count_with_the_accuracy_at_the_side_of_their_object(
    sides: str, by_side: str, right: float
) -> None:
    text = pipelines_text(yard(objects=f"objects = 3\n{sides}"), top="duration_s = 10")
    scenario = parse_scenario(text.replace("accuracy = 0.8\n", by_side), "f.toml", lambda _: "")
    found = run(scenario)
    detector = 0.5
    assert found["objects_per_s"] == pytest.approx(30, abs=0.2)
    assert found["objects_right_per_s"] == pytest.approx(
        found["objects_per_s"] * detector * right, rel=0.01
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[]", "must be a list of [side in px, accuracy] pairs"),
        ("[[1, 2, 3]]", "must have pairs of a side from 0 to 65536 px and an accuracy from 0 to 1"),
        ("[[30, 1.5]]", "must have pairs of a side from 0 to 65536 px and an accuracy from 0 to 1"),
        ("[[30, 0.5], [30, 0.6]]", "must have rising sides"),
    ],
)
def test_a_wrong_table_of_sides_is_named_by_line_and_key(table: str, message: str) -> None:
    text = pipelines_text(yard()).replace(
        "accuracy = 0.8\n", f"accuracy = 0.8\naccuracy_by_side = {table}\n"
    )
    with pytest.raises(InvalidInputError) as raised:
        parse_scenario(text, "f.toml", lambda _: "")
    line = line_of(text, "accuracy_by_side")
    assert str(raised.value).startswith(f"f.toml:{line}: variants[2].accuracy_by_side: {message}")

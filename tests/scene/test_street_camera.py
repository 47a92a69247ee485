"""The synthetic street: the same for the same seed, and boxes that fit what is painted."""

from collections import Counter
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgebox.scene.colour_names import colour_name
from edgebox.scene.street_camera import COLOUR_NAMES, LABELS, Scene, SceneFrame

SEEDS = (1, 2, 3, 10)


@cache
def scene_of(seed: int) -> Scene:
    """Return the scene of a seed, which is painted once: what it is asked for leaves no trace."""
    return Scene(seed)


@pytest.fixture(scope="module")
def frames() -> dict[int, SceneFrame]:
    """Render one moment of a few scenes."""
    return {seed: scene_of(seed).render(7.0) for seed in SEEDS}


def test_the_same_seed_and_moment_give_the_same_picture(frames: dict[int, SceneFrame]) -> None:
    scene = Scene(SEEDS[0])
    scene.render(3.0)  # what was asked for before leaves no trace
    scene.render(120.0)
    again = scene.render(7.0)
    np.testing.assert_array_equal(again.rgb, frames[SEEDS[0]].rgb)
    assert again.objects == frames[SEEDS[0]].objects


def test_seeds_and_moments_differ(frames: dict[int, SceneFrame]) -> None:
    for one, other in pairwise(SEEDS):
        assert frames[one].objects != frames[other].objects
    later = scene_of(SEEDS[0]).render(8.0)
    assert later.objects != frames[SEEDS[0]].objects


@pytest.mark.parametrize("size", [(1280, 720), (640, 360), (320, 240)])
def test_pictures_have_the_size_asked_for(size: tuple[int, int]) -> None:
    frame = Scene(4, *size).render(5.0)
    assert frame.rgb.shape == (size[1], size[0], 3)
    assert frame.rgb.dtype == np.uint8
    assert frame.objects


def test_boxes_lie_in_the_picture_and_fractions_between_0_and_1(
    frames: dict[int, SceneFrame],
) -> None:
    for frame in frames.values():
        height, width, _ = frame.rgb.shape
        for item in frame.objects:
            left, top, right, bottom = item.box
            assert 0 <= left < right <= width
            assert 0 <= top < bottom <= height
            assert 0.0 <= item.visible_fraction <= 1.0
            assert item.label in LABELS


def test_all_labels_occur_near_and_far() -> None:
    seen: Counter[str] = Counter()
    heights = []
    for seed in range(6):
        for item in scene_of(seed).render(9.0).objects:
            seen[item.label] += item.visible_fraction > 0.5
            heights.append(item.box[3] - item.box[1])
    assert set(seen) == set(LABELS)
    assert all(seen[label] > 0 for label in LABELS)
    assert 10 < min(heights) < 20  # far, and yet not a speck
    assert max(heights) > 150


def differing(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return (h, w) flags where two pictures differ by more than noise and shadows do."""
    gaps: NDArray[np.int64] = np.abs(one.astype(np.int64) - other.astype(np.int64)).max(axis=2)
    return gaps > 60


def test_boxes_cover_what_moves() -> None:
    # What differs between two moments of a scene by day was painted by an object in one of them.
    scene = scene_of(3)
    first, second = scene.render(4.0), scene.render(9.0)
    changed = differing(first.rgb, second.rgb)
    covered = np.zeros_like(changed)
    for item in (*first.objects, *second.objects):
        left, top, right, bottom = (int(edge) for edge in item.box)
        covered[top:bottom, left:right] = True
    assert changed.sum() > 2000
    assert covered[changed].mean() > 0.99


def test_boxes_are_tight() -> None:
    # A solid stands out from its environment on all four sides of its box: look at single, wholly
    # visible objects and compare with a moment when they are gone.
    scene = scene_of(3)
    frame = scene.render(4.0)
    others = [scene.render(4.0 + shift).rgb for shift in (3.0, 7.0, 11.0)]
    empty = np.median(np.stack(others), axis=0).astype(np.uint8)
    changed = differing(frame.rgb, empty)
    checked = 0
    for item in frame.objects:
        left, top, right, bottom = (int(edge) for edge in item.box)
        inside = left > 10 and right < 1270 and top > 10 and bottom < 710
        if item.visible_fraction < 0.98 or bottom - top < 25 or not inside:
            continue
        rows, columns = np.nonzero(changed[top:bottom, left:right])
        if len(rows) < 0.3 * (bottom - top) * (right - left):
            continue  # as grey as the road
        checked += 1
        slack = 3 + 0.2 * max(bottom - top, right - left)
        assert rows.min() <= slack
        assert columns.min() <= slack
        assert bottom - top - rows.max() <= slack
        assert right - left - columns.max() <= slack
    assert checked >= 2


def test_occlusion_lowers_the_visible_fraction() -> None:
    objects = scene_of(14).render(11.0).objects
    assert any(item.visible_fraction < 0.5 for item in objects)
    assert any(item.visible_fraction > 0.99 for item in objects)


def test_traffic_moves_both_ways_at_plausible_speeds() -> None:
    scene = scene_of(14)
    steps = [scene.render(20.0 + 0.1 * step).objects for step in range(4)]
    for before, after in pairwise(steps):
        near = [item for item in before if item.box[3] - item.box[1] > 60 and item.box[3] < 700]
        for item in near:
            gaps = [
                max(abs(a - b) for a, b in zip(item.box, other.box, strict=True))
                for other in after
                if other.label == item.label
            ]
            assert min(gaps) < 60, "something near vanished or jumped within a tenth of a second"


def test_moods_differ_in_brightness() -> None:
    levels: dict[str, list[float]] = {}
    for seed in range(12):
        scene = Scene(seed, 320, 180)
        levels.setdefault(scene.mood, []).append(float(scene.render(0.0).rgb.mean()))
    assert len(levels) >= 4
    assert max(max(found) for found in levels.values()) > 110
    assert min(min(found) for found in levels.values()) < 70


def test_vehicles_have_the_colours_that_people_call_them(frames: dict[int, SceneFrame]) -> None:
    seen: dict[str, list[NDArray[np.float64]]] = {}
    for frame in frames.values():
        for item in frame.objects:
            assert (item.colour is None) == (item.label == "person")
            left, top, right, bottom = (int(edge) for edge in item.box)
            if item.colour is None or item.visible_fraction < 0.9 or bottom - top < 30:
                continue
            assert item.colour in COLOUR_NAMES
            pixels = frame.rgb[top:bottom, left:right].reshape(-1, 3).astype(np.float64)
            seen.setdefault(item.colour, []).append(pixels.mean(axis=0))
    assert len(seen) >= 5
    # Whatever else a box shows, it is redder around what is red, and bluer around what is blue.
    means = {name: np.mean(found, axis=0) for name, found in seen.items()}
    assert means["red"][0] - means["red"][2] > means["blue"][0] - means["blue"][2] + 20
    assert means["white"].mean() > means["black"].mean() + 10


@pytest.mark.parametrize(
    ("paint", "name"),
    [
        ((236, 238, 240), "white"),
        ((186, 190, 196), "grey"),
        ((92, 98, 106), "grey"),
        ((34, 36, 40), "black"),
        ((142, 26, 40), "red"),
        ((206, 98, 36), "orange"),
        ((236, 190, 40), "yellow"),
        ((58, 96, 74), "green"),
        ((30, 52, 96), "blue"),
        ((120, 60, 130), "purple"),
        ((120, 82, 62), "brown"),
        ((200, 170, 120), "beige"),
    ],
)
def test_paints_have_names(paint: tuple[int, int, int], name: str) -> None:
    assert colour_name(paint) == name


@given(st.tuples(*[st.integers(0, 255)] * 3))
def test_every_colour_has_a_name(paint: tuple[int, int, int]) -> None:
    assert colour_name(paint) in COLOUR_NAMES
    grey = (paint[0],) * 3
    assert colour_name(grey) in ("white", "grey", "black")

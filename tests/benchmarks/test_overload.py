"""Cameras that ignore advice, under virtual time: what is answered, and who comes back when."""

from dataclasses import replace
from functools import cache

import pytest

from benchmarks.overload import SETTINGS, Measured, Setting, measure

SHARED = "decoding shares the executor's cores"
ALONE = ("one camera at 1,000 Hz", "one camera with pictures that take 300 ms")


def short(name: str) -> Setting:
    return replace(SETTINGS[name], before_s=5, during_s=6, after_s=5)


@cache
def measured(name: str) -> Measured:
    return measure(short(name))


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ALONE])
def test_as_much_is_answered_as_at_capacity_and_the_first_cameras_recover(name: str) -> None:
    figures = measured(name)
    assert figures.before_share == 1.0
    assert figures.goodput_of_capacity >= 0.9
    assert figures.recovery_s is not None
    assert figures.recovery_s <= 2.0


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ALONE])
def test_cameras_that_obey_keep_their_frames_beside_those_that_ignore_advice(name: str) -> None:
    # A plan shares the box among all; what a camera sends beyond it is at its own expense.
    assert measured(name).share >= 0.95


def test_without_the_bound_on_decoded_frames_much_of_it_is_lost() -> None:
    taking_all = replace(short(SHARED), cut=False)
    bounded, unbounded = (measure(replace(taking_all, held=held)) for held in (True, False))
    assert unbounded.goodput_of_capacity < 0.7 * bounded.goodput_of_capacity
    assert unbounded.decoded > 2 * bounded.decoded


@pytest.mark.parametrize("name", ALONE)
def test_one_camera_takes_nothing_from_the_others(name: str) -> None:
    assert measured(name).share >= 0.99

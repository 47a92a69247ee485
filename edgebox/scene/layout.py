"""The contents of a street scene by seed: camera, light, roads and their traffic.

Pure: everything follows from the random numbers passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, exp, pi, radians, sin
from random import Random

import numpy as np

from edgebox.scene.optics import Light, View
from edgebox.scene.traffic import Lane, Road, TrafficPlanner


@dataclass(frozen=True)
class Layout:
    """Everything about a scene that does not move, and the lanes for what does."""

    view: View
    light: Light
    mood: str
    roads: tuple[Road, ...]
    lanes: tuple[Lane, ...]
    far_m: float  # things farther away are not shown
    noise_level: float  # amplitude of the sensor noise


def build_layout(rng: Random, width_px: int, height_px: int) -> Layout:
    """Draw a street, a camera over it and its traffic."""
    view, style = _draw_view(rng, width_px, height_px)
    mood, light = _draw_light(rng)
    far_m = view.focal_px / (width_px / 1280) / 8.0
    roads = _draw_roads(rng, style)
    lanes = TrafficPlanner(rng, roads, view, far_m).fill(people_wait=style != "junction")
    noise = rng.uniform(1.0, 3.0) if mood not in ("dusk", "night") else rng.uniform(2.5, 6.0)
    return Layout(view, light, mood, roads, lanes, far_m, noise)


def _draw_view(rng: Random, width_px: int, height_px: int) -> tuple[View, str]:
    style = rng.choices(("along", "junction", "across"), (0.45, 0.35, 0.2))[0]
    scale = width_px / 1280
    focal = exp(rng.uniform(np.log(800), np.log(1700)))
    if style == "across":
        focal = rng.uniform(800, 1300)
    height = rng.uniform(5.0, 8.5) + (focal - 800) / 900 * rng.uniform(1.0, 3.5)
    horizon = rng.uniform(0.13, 0.33)
    return View(
        width_px, height_px, focal * scale, width_px / 2, horizon * height_px, height
    ), style


def _draw_light(rng: Random) -> tuple[str, Light]:
    mood = rng.choices(
        ("clear", "golden", "overcast", "haze", "dusk", "night"), (0.3, 0.14, 0.2, 0.12, 0.14, 0.1)
    )[0]
    turn, rise = rng.uniform(-pi, pi), radians(rng.uniform(30, 65))
    if mood == "golden":
        rise = radians(rng.uniform(15, 28))
    sun = (cos(rise) * sin(turn), sin(rise), -abs(cos(rise) * cos(turn)))
    table = {
        "clear": ((0.60, 0.62, 0.68), (0.55, 0.52, 0.46), (196, 214, 232), 0.0012, 105),
        "golden": ((0.56, 0.52, 0.54), (0.62, 0.48, 0.30), (238, 206, 164), 0.0022, 96),
        "overcast": ((0.74, 0.75, 0.78), (0.16, 0.16, 0.16), (198, 202, 206), 0.0022, 62),
        "haze": ((0.76, 0.76, 0.78), (0.14, 0.14, 0.13), (206, 210, 212), 0.0072, 48),
        "dusk": ((0.40, 0.39, 0.50), (0.16, 0.12, 0.12), (122, 108, 132), 0.0022, 70),
        "night": ((0.30, 0.30, 0.38), (0.12, 0.11, 0.10), (40, 44, 62), 0.0020, 60),
    }
    ambient, glow, haze, per_m, alpha = table[mood]
    gain = rng.uniform(0.9, 1.08)
    light = Light(
        (ambient[0] * gain, ambient[1] * gain, ambient[2] * gain),
        glow,
        sun,
        haze,
        per_m * rng.uniform(0.7, 1.3),
        alpha,
        mood in ("dusk", "night"),
    )
    return mood, light


def _draw_roads(rng: Random, style: str) -> tuple[Road, ...]:
    greens = (rng.random() < 0.3, rng.random() < 0.3)
    parking = rng.random() < 0.45
    if style == "across":
        side = rng.choice((-1, 1))
        heading = side * radians(90 + rng.uniform(-22, 22))
        lanes = rng.choice((1, 1, 2))
        road = Road(0.0, rng.uniform(16, 26), heading, lanes, parking, greens)
        return (road,)
    heading = radians(rng.uniform(-21, 21))
    lanes = rng.choice((1, 2, 2, 3))
    main = Road(rng.uniform(-8, 8) - sin(heading) * 14, 4.0, heading, lanes, parking, greens)
    if style == "along":
        return (main,)
    crossing = main.at(np.array([rng.uniform(26, 62)]), 0.0)[0]
    other = Road(
        float(crossing[0]),
        float(crossing[2]),
        heading + radians(90 + rng.uniform(-9, 9)),
        rng.choice((1, 1, 2)),
        False,
        (rng.random() < 0.3, rng.random() < 0.3),
    )
    return (main, other)

"""Building blocks of objects in a street scene: faces, hulls, limbs, and functions to build them.

Pure data, in local metres (forward, left, up), standing on the ground around the origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, repeat
from math import pi
from typing import TypeAlias

import numpy as np

from edgebox.scene.optics import Colour, Floats

TYRE: Colour = (26, 26, 30)
HUB: Colour = (150, 154, 160)
WHITE_LAMP: Colour = (255, 244, 214)
RED_LAMP: Colour = (224, 40, 34)
PAINTS: tuple[Colour, ...] = (
    (236, 238, 240),
    (228, 229, 226),
    (186, 190, 196),
    (150, 156, 164),
    (92, 98, 106),
    (44, 46, 52),
    (34, 36, 40),
    (176, 34, 38),
    (142, 26, 40),
    (36, 72, 142),
    (30, 52, 96),
    (72, 122, 176),
    (58, 96, 74),
    (200, 170, 120),
    (206, 98, 36),
    (120, 82, 62),
    (198, 202, 204),
)


Point: TypeAlias = tuple[float, float, float]
"""Local metres: forward, left, up."""


@dataclass(frozen=True)
class Face:
    """A flat, one-coloured polygon of a hull; its winding does not matter."""

    points: tuple[Point, ...]
    colour: Colour
    shines: bool = False  # drawn unshaded where lamps are lit


@dataclass(frozen=True)
class Hull:
    """A convex body: its faces first, then what is painted upon them."""

    faces: tuple[Face, ...]
    lies_under: bool = False  # below all other parts, whatever the distance says

    @cached_property
    def points(self) -> Floats:
        """Return the corners of all faces, one after the other, (n, 3) local metres."""
        # All at once: an array for each face took a tenth of the time that a scene takes to build.
        return np.array([point for face in self.faces for point in face.points], dtype=np.float64)

    @cached_property
    def starts(self) -> list[int]:
        """Return where each face begins in `points`, and the end of the last."""
        return [0, *accumulate(len(face.points) for face in self.faces)]

    @cached_property
    def centre(self) -> Floats:
        """Return a (3,) point inside the body."""
        centre: Floats = self.points[: self.starts[min(6, len(self.faces))]].mean(axis=0)
        return centre

    @cached_property
    def face_centres(self) -> Floats:
        """Return the (m, 3) centres of the faces."""
        sums = np.add.reduceat(self.points, self.starts[:-1], axis=0)
        centres: Floats = sums / np.diff(self.starts)[:, None]
        return centres

    @cached_property
    def normals(self) -> Floats:
        """Return the (m, 3) outward unit normals of the faces."""
        first, second, third = (self.points[np.array(self.starts[:-1]) + at] for at in range(3))
        along, across = second - first, third - second
        normals: Floats = along[:, (1, 2, 0)] * across[:, (2, 0, 1)]
        normals -= along[:, (2, 0, 1)] * across[:, (1, 2, 0)]
        normals /= np.maximum(np.sqrt(np.einsum("ij,ij->i", normals, normals)), 1e-9)[:, None]
        inward = np.einsum("ij,ij->i", normals, first - self.centre) < 0
        normals[inward] *= -1
        return normals

    @cached_property
    def colours(self) -> Floats:
        """Return the (m, 3) unlit colours of the faces."""
        return np.array([face.colour for face in self.faces], dtype=np.float64)


@dataclass(frozen=True)
class Limb:
    """A round bar between two points; a ball where they coincide."""

    start: tuple[float, float, float]
    end: tuple[float, float, float]
    start_radius_m: float
    end_radius_m: float
    colour: Colour


@dataclass(frozen=True)
class Lamp:
    """A light on a vehicle, seen from the half space it faces."""

    at: tuple[float, float, float]
    facing: float  # +1.0 forward, -1.0 backward
    colour: Colour


@dataclass(frozen=True)
class Solid:
    """A thing that can stand on the ground: parts in local metres (forward, left, up)."""

    label: str
    parts: tuple[Hull | Limb, ...]
    length_m: float
    width_m: float
    height_m: float
    lamps: tuple[Lamp, ...] = ()
    paint: Colour | None = None  # of the largest painted part, which people call its colour


def scaled(colour: Colour, factor: float) -> Colour:
    """Return a colour made lighter or darker."""
    red, green, blue = (min(255.0, level * factor) for level in colour)
    return red, green, blue


def face(points: Iterable[Point], colour: Colour, shines: bool = False) -> Face:
    """Return a face with the given corners."""
    return Face(tuple(points), colour, shines)


def extruded(
    profile: Sequence[tuple[float, float]], half_width: float, colour: Colour
) -> list[Face]:
    """Return the faces of a convex (forward, up) profile drawn out to both sides."""
    sides = [face([(x, y, z) for x, z in profile], colour) for y in (half_width, -half_width)]
    following = [*profile[1:], profile[0]]
    strips = [
        face(
            [
                (x0, half_width, z0),
                (x1, half_width, z1),
                (x1, -half_width, z1),
                (x0, -half_width, z0),
            ],
            colour,
        )
        for (x0, z0), (x1, z1) in zip(profile, following, strict=True)
    ]
    return sides + strips


def block(
    x: tuple[float, float], half_width: float, z: tuple[float, float], colour: Colour
) -> list[Face]:
    """Return the faces of an upright box, which spans x forward and z upward."""
    return extruded([(x[0], z[0]), (x[0], z[1]), (x[1], z[1]), (x[1], z[0])], half_width, colour)


def on_sides(
    x: tuple[float, float],
    z: tuple[float, float],
    half_width: float,
    colour: Colour,
    shines: bool = False,
) -> list[Face]:
    """Return a rectangle painted on the left and on the right side."""
    return [on_side(x, z, y, colour, shines) for y in (half_width, -half_width)]


def on_side(
    x: tuple[float, float],
    z: tuple[float, float],
    y: float,
    colour: Colour,
    shines: bool = False,
) -> Face:
    """Return a rectangle painted on the side at `y`."""
    return face(
        [(x[0], y, z[0]), (x[0], y, z[1]), (x[1], y, z[1]), (x[1], y, z[0])], colour, shines
    )


def across(
    x: float, y: tuple[float, float], z: tuple[float, float], colour: Colour, shines: bool = False
) -> Face:
    """Return a rectangle painted on a front or a back at `x`."""
    return face(
        [(x, y[0], z[0]), (x, y[0], z[1]), (x, y[1], z[1]), (x, y[1], z[0])], colour, shines
    )


def wheels(centres: Sequence[float], radius: float, half_width: float) -> list[Face]:
    """Return tyres and hubs, painted on both sides."""
    turns = np.linspace(0, 2 * pi, 16, endpoint=False)
    faces = []
    for x in centres:
        for y in (half_width, -half_width):
            for size, colour in ((1.0, TYRE), (0.58, HUB), (0.2, TYRE)):
                forward = (x + radius * size * np.cos(turns)).tolist()
                up = (radius + radius * size * np.sin(turns)).tolist()
                faces.append(face(zip(forward, repeat(y), up, strict=False), colour))
    return faces


def underbody(axles: tuple[float, float], half_width: float, top: float) -> Hull:
    """Return the dark space between the wheels, under the body."""
    span = (axles[0] - 0.3, axles[1] + 0.3)
    return Hull(tuple(block(span, half_width - 0.04, (0.04, top), TYRE)), lies_under=True)

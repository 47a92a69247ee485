"""The optics of a street scene: the camera's projection, the light and the poses of objects.

Pure functions of their arguments. World coordinates in metres: x to the right of the camera, y up
from the ground, z away from the camera. The camera looks level through a shifted lens, so that what
is upright stays upright in the picture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Colour: TypeAlias = tuple[float, float, float]  # red, green, blue, 0..255

NEAR_M = 1.2  # what is nearer to the camera is cut off
LEVEL_MIN, LEVEL_MAX = 10, 244  # leaves room for the sensor noise, so that adding it cannot wrap


@dataclass(frozen=True)
class View:
    """A fixed camera: where it stands and how it projects."""

    width_px: int
    height_px: int
    focal_px: float
    middle_px: float  # the column straight ahead
    horizon_px: float  # the row of the horizon
    height_m: float

    def project(self, points: Floats) -> Floats:
        """Return (n, 2) picture coordinates, px, of (n, 3) world points with z >= NEAR_M."""
        scale = self.focal_px / np.maximum(points[:, 2], NEAR_M)
        # Filled in, for `np.stack` takes twice as long, and scenes project thousands of faces.
        spots = np.empty((len(points), 2))
        spots[:, 0] = self.middle_px + points[:, 0] * scale
        spots[:, 1] = self.horizon_px + (self.height_m - points[:, 1]) * scale
        return spots

    def scaled(self, factor: float) -> View:
        """Return the same camera with a picture of `factor` times the size."""
        return View(
            round(self.width_px * factor),
            round(self.height_px * factor),
            self.focal_px * factor,
            self.middle_px * factor,
            self.horizon_px * factor,
            self.height_m,
        )

    def moved(self, left_px: float, top_px: float) -> View:
        """Return the same camera with the picture's origin moved to (left_px, top_px)."""
        middle, horizon = self.middle_px - left_px, self.horizon_px - top_px
        return replace(self, middle_px=middle, horizon_px=horizon)


@dataclass(frozen=True)
class Light:
    """The light and the air of a scene; factors of 1.0 leave a colour unchanged."""

    ambient: Colour
    sun: Colour
    sun_direction: tuple[float, float, float]  # unit vector towards the sun
    haze: Colour
    haze_per_m: float
    shadow_alpha: int
    lamps_lit: bool

    def shade(self, colours: Floats, normals: Floats, distances: Floats) -> Floats:
        """Return the (n, 3) colours of lit surfaces seen through the air."""
        facing = np.clip(normals @ np.array(self.sun_direction), 0.0, 1.0)[:, None]
        lit = colours * (np.array(self.ambient) + np.array(self.sun) * facing)
        return self.through_air(lit, distances)

    def through_air(self, colours: Floats, distances: Floats) -> Floats:
        """Return the (n, 3) colours mixed with haze over the (n,) distances, m."""
        kept = np.exp(-self.haze_per_m * distances)[:, None]
        mixed: Floats = colours * kept + np.array(self.haze) * (1 - kept)
        return mixed.clip(LEVEL_MIN, LEVEL_MAX)


@dataclass(frozen=True)
class Pose:
    """Where a solid stands: its ground point and its heading (0 = away from the camera)."""

    x_m: float
    z_m: float
    heading_rad: float

    def to_world(self, points: Floats) -> Floats:
        """Return (n, 3) world points for (n, 3) local ones (forward, left, up)."""
        moved: Floats = self.turned(points) + np.array((self.x_m, 0.0, self.z_m))
        return moved

    def turned(self, directions: Floats) -> Floats:
        """Return (n, 3) world directions for (n, 3) local ones."""
        sine, cosine = np.sin(self.heading_rad), np.cos(self.heading_rad)
        forward, left, up = directions.T
        turned = np.empty((len(directions), 3))
        turned[:, 0] = forward * sine - left * cosine
        turned[:, 1] = up
        turned[:, 2] = forward * cosine + left * sine
        return turned


def clip_near(polygon: Floats) -> Floats:
    """Return the part of a (k, 3) world polygon that lies in front of the camera; may be empty."""
    if polygon[:, 2].min() >= NEAR_M:
        return polygon
    kept: list[Floats] = []
    for before, here in zip(np.roll(polygon, 1, axis=0), polygon, strict=True):
        if (before[2] < NEAR_M) != (here[2] < NEAR_M):
            share = (NEAR_M - before[2]) / (here[2] - before[2])
            kept.append(before + share * (here - before))
        if here[2] >= NEAR_M:
            kept.append(here)
    return np.array(kept).reshape(-1, 3)

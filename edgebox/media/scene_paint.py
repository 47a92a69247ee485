"""Owns how a shape becomes an anti-aliased, shaded sprite with its shadow and its lamps' glow.

Pure functions of their arguments; no randomness, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import hypot

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from edgebox.media.scene_optics import NEAR_M, Colour, Floats, Light, Pose, View, clip_near
from edgebox.media.scene_shapes import Hull, Limb, Solid


@dataclass(frozen=True)
class Sprite:
    """A painted solid, shadow and glow included, and which pixels are the solid itself."""

    image: Image.Image  # RGBA
    body: Image.Image  # L, 255 where the solid covers the pixel
    anchor_px: tuple[float, float]  # the solid's ground point, from the sprite's top left corner
    box_px: tuple[int, int, int, int]  # of the body, within the sprite
    body_area_px: int

    def resized(self, factor: float) -> Sprite | None:
        """Return the sprite at `factor` times its size; None where nothing would be left."""
        size = tuple(max(1, round(side * factor)) for side in self.image.size)
        body = self.body.resize(size, Image.Resampling.BILINEAR).point(_threshold)
        box = body.getbbox()
        if box is None:
            return None
        image = self.image.resize(size, Image.Resampling.BILINEAR)
        anchor = (
            self.anchor_px[0] * size[0] / self.image.width,
            self.anchor_px[1] * size[1] / self.image.height,
        )
        return Sprite(image, body, anchor, box, body.histogram()[255])


_threshold = [0] * 128 + [255] * 128  # a pixel belongs to the body where half of it is covered


def as_fill(colour: Floats) -> tuple[int, int, int]:
    """Return a colour as PIL wants it."""
    return int(colour[0]), int(colour[1]), int(colour[2])


class Easel:
    """A supersampled canvas over a rectangle of the picture.

    Without a `canvas` it starts transparent and new paint replaces old; a given RGB canvas is
    painted over, translucent paint mixing with what is there.
    """

    def __init__(
        self,
        view: View,
        box: tuple[int, int, int, int],
        factor: int,
        canvas: Image.Image | None = None,
    ) -> None:
        self._view = view
        self._origin = np.array(box[:2], dtype=np.float64)
        self._factor = factor
        size = ((box[2] - box[0]) * factor, (box[3] - box[1]) * factor)
        self.image = canvas or Image.new("RGBA", size, (0, 0, 0, 0))
        self._draw = ImageDraw.Draw(self.image, "RGBA" if canvas else None)

    def place(self, points: Floats) -> Floats:
        """Return (n, 2) canvas coordinates of (n, 3) world points."""
        return (self._view.project(points) - self._origin) * self._factor

    def polygon(self, points: Floats, fill: tuple[int, ...]) -> None:
        """Fill a (k, 3) world polygon."""
        visible = clip_near(points)
        if len(visible) >= 3:
            self._draw.polygon(self.place(visible).ravel().tolist(), fill=fill)

    def bar(
        self,
        ends: Sequence[Sequence[float]],
        radii: Sequence[float],
        fills: Sequence[tuple[int, int, int]],
    ) -> None:
        """Draw a round bar between two canvas points (radii in canvas px): dark, then lit."""
        for fill, shrink, shift in ((fills[0], 1.0, 0.0), (fills[1], 0.72, -0.22)):
            rims = [
                (x + shift * radius, y + shift * radius, radius * shrink)
                for (x, y), radius in zip(ends, radii, strict=True)
            ]
            for x, y, radius in rims:
                self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
            (x0, y0, wide0), (x1, y1, wide1) = rims
            length = hypot(x1 - x0, y1 - y0)
            if length > 0.5:
                nx, ny = (y0 - y1) / length, (x1 - x0) / length
                self._draw.polygon(
                    (
                        x0 + nx * wide0,
                        y0 + ny * wide0,
                        x1 + nx * wide1,
                        y1 + ny * wide1,
                        x1 - nx * wide1,
                        y1 - ny * wide1,
                        x0 - nx * wide0,
                        y0 - ny * wide0,
                    ),
                    fill=fill,
                )

    def paint_limbs(self, solid: Solid, pose: Pose, light: Light) -> list[Callable[[], None]]:
        """Return one painting order for every limb of the solid, in the order of its parts."""
        limbs = [part for part in solid.parts if isinstance(part, Limb)]
        if not limbs:
            return []
        local = np.array([point for limb in limbs for point in (limb.start, limb.end)])
        world = pose.to_world(local)
        spots = self.place(world).tolist()
        radii = np.array([r for limb in limbs for r in (limb.start_radius_m, limb.end_radius_m)])
        sizes = (
            radii * self._view.focal_px * self._factor / np.maximum(world[:, 2], NEAR_M)
        ).tolist()
        bases = np.repeat(np.array([limb.colour for limb in limbs]), 2, axis=0)
        normals = np.tile(np.array(((0.0, 0.0, 0.0), light.sun_direction)) * 0.8, (len(limbs), 1))
        tones = [as_fill(tone) for tone in light.shade(bases, normals, world[:, 2])]
        near = (world[:, 2] < NEAR_M).tolist()
        orders: list[Callable[[], None]] = []
        for at in range(0, len(spots), 2):
            span = slice(at, at + 2)
            if any(near[span]):
                orders.append(lambda: None)
            else:
                orders.append(partial(self.bar, spots[span], sizes[span], tones[span]))
        return orders

    def reduced(self) -> Image.Image:
        """Return the canvas at the picture's own resolution."""
        return self.image.reduce(self._factor)


def paint_hull(easel: Easel, hull: Hull, pose: Pose, view: View, light: Light) -> None:
    worlds = pose.to_world(hull.points)
    centres = pose.to_world(hull.face_centres)
    normals = pose.turned(hull.normals)
    eye = np.array((0.0, view.height_m, 0.0))
    seen = np.einsum("ij,ij->i", normals, eye - centres) > 0
    fills = light.shade(hull.colours, normals, centres[:, 2])
    if light.lamps_lit:
        shining = np.array([face.shines for face in hull.faces])
        fills[shining] = light.through_air(hull.colours[shining], centres[shining, 2])
    starts = hull.starts
    for index in np.flatnonzero(seen):
        easel.polygon(worlds[starts[index] : starts[index + 1]], as_fill(fills[index]))


def _part_centre(part: Hull | Limb) -> Floats:
    if isinstance(part, Limb):
        return (np.array(part.start) + np.array(part.end)) / 2
    return part.centre


def _footprint(solid: Solid, pose: Pose, light: Light) -> Floats:
    """Return the (4, 3) ground polygon of the shadow: under the solid and away from the sun."""
    half_length, half_width = solid.length_m / 2, solid.width_m / 2
    local = np.array(
        [
            (half_length, half_width, 0.0),
            (half_length, -half_width, 0.0),
            (-half_length, -half_width, 0.0),
            (-half_length, half_width, 0.0),
        ]
    )
    corners = pose.to_world(local)
    sun_x, _, sun_z = light.sun_direction
    reach = 0.28 * solid.height_m
    corners[:, 0] -= sun_x * reach
    corners[:, 2] -= sun_z * reach
    return corners


def _light_pool(solid: Solid) -> Floats:
    """Return the (4, 3) local ground polygon that the headlights light up."""
    ahead, half = solid.length_m / 2, solid.width_m / 2
    return np.array(
        [
            (ahead, half, 0.0),
            (ahead + 5, half + 1, 0.0),
            (ahead + 5, -half - 1, 0.0),
            (ahead, -half, 0.0),
        ]
    )


def _paint_shadow(
    view: View, box: tuple[int, int, int, int], solid: Solid, pose: Pose, light: Light
) -> Image.Image:
    """Return the blurred shadow; painted at a quarter of the size, since it is soft anyway."""
    coarse = view.scaled(0.25)
    size = (box[2] - box[0], box[3] - box[1])
    small = (box[0] // 4, box[1] // 4, box[2] // 4 + 2, box[3] // 4 + 2)
    easel = Easel(coarse, small, 2)
    easel.polygon(_footprint(solid, pose, light), (12, 14, 22, light.shadow_alpha))
    if light.lamps_lit and any(lamp.facing > 0 for lamp in solid.lamps):
        easel.polygon(pose.to_world(_light_pool(solid)), (255, 232, 180, 40))
    blur_px = max(0.5, 0.06 * view.focal_px / max(pose.z_m, 4.0))
    soft = easel.image.filter(ImageFilter.GaussianBlur(min(blur_px, 4.0)))
    left, top = (box[0] - small[0] * 4) / 2, (box[1] - small[1] * 4) / 2
    return soft.resize(
        size, Image.Resampling.BILINEAR, (left, top, left + size[0] / 2, top + size[1] / 2)
    )


def _with_glow(
    image: Image.Image, corner_px: tuple[int, int], solid: Solid, pose: Pose, view: View
) -> Image.Image:
    """Return a sprite with light around the lamps that face the camera."""
    toward = np.array((-pose.x_m, -pose.z_m))
    ahead = np.array((np.sin(pose.heading_rad), np.cos(pose.heading_rad)))
    cosine = float(toward @ ahead) / max(float(np.hypot(*toward)), 1e-6)
    for lamp in solid.lamps:
        if lamp.facing * cosine <= 0.1:
            continue
        world = pose.to_world(np.array([lamp.at]))
        if world[0, 2] < NEAR_M + 1:
            continue
        spot = view.project(world)[0] - np.array(corner_px)
        radius = max(1.5, (0.85 if lamp.facing > 0 else 0.5) * view.focal_px / world[0, 2])
        image = _with_disc(image, (float(spot[0]), float(spot[1])), radius, lamp.colour)
    return image


def _with_disc(
    image: Image.Image, spot: tuple[float, float], radius_px: float, colour: Colour
) -> Image.Image:
    side = int(radius_px * 2) + 3
    left, top = int(spot[0] - side / 2), int(spot[1] - side / 2)
    grid = np.arange(side) + 0.5
    dx, dy = grid[None, :] + left - spot[0], grid[:, None] + top - spot[1]
    falloff = np.clip(1 - np.hypot(dx, dy) / radius_px, 0, 1) ** 1.8
    disc = np.empty((side, side, 4), dtype=np.uint8)  #: (h, w, 4) RGBA
    disc[..., :3] = np.array(colour, dtype=np.uint8)
    disc[..., 3] = (falloff * 225).astype(np.uint8)
    layer = Image.new("RGBA", image.size, (0, 0, 0, 0))
    layer.paste(Image.fromarray(disc), (left, top))
    return Image.alpha_composite(image, layer)


def paint(solid: Solid, pose: Pose, view: View, light: Light) -> Sprite | None:
    """Paint a solid as the camera sees it; None where nothing of it would show.

    The sprite ends a little outside the picture, so large near solids stay affordable.
    """
    box = _sprite_box(solid, pose, view, light)
    if box is None:
        return None
    side_px = max(box[2] - box[0], box[3] - box[1])
    easel = Easel(view, box, 4 if side_px < 90 else 3 if side_px < 220 else 2)
    eye = np.array((0.0, view.height_m, 0.0))
    centres = pose.to_world(np.array([_part_centre(part) for part in solid.parts]))
    limbs = easel.paint_limbs(solid, pose, light)
    limb_numbers = np.cumsum([isinstance(part, Limb) for part in solid.parts]) - 1
    distances = np.linalg.norm(centres - eye, axis=1)
    distances[[isinstance(part, Hull) and part.lies_under for part in solid.parts]] = np.inf
    for index in np.argsort(-distances, kind="stable"):
        part = solid.parts[index]
        if isinstance(part, Hull):
            paint_hull(easel, part, pose, view, light)
        else:
            limbs[limb_numbers[index]]()
    body_image = easel.reduced()
    body = body_image.getchannel("A").point(_threshold)
    body_box = body.getbbox()
    if body_box is None:
        return None
    image = Image.alpha_composite(_paint_shadow(view, box, solid, pose, light), body_image)
    if light.lamps_lit:
        image = _with_glow(image, box[:2], solid, pose, view)
    ground = view.project(np.array([(pose.x_m, 0.0, pose.z_m)]))[0]
    used = image.getbbox() or body_box
    anchor = (float(ground[0] - box[0] - used[0]), float(ground[1] - box[1] - used[1]))
    body = body.crop(used)
    inner = (
        body_box[0] - used[0],
        body_box[1] - used[1],
        body_box[2] - used[0],
        body_box[3] - used[1],
    )
    return Sprite(image.crop(used), body, anchor, inner, body.histogram()[255])


def _sprite_box(
    solid: Solid, pose: Pose, view: View, light: Light
) -> tuple[int, int, int, int] | None:
    """Return the picture rectangle the sprite needs: the solid's bounding box with a border."""
    reach = 1.15 * solid.length_m / 2 + 0.2, 1.1 * solid.width_m / 2 + 0.2
    local = np.array(
        [
            (forward * reach[0], left * reach[1], up)
            for forward in (-1, 1)
            for left in (-1, 1)
            for up in (0.0, 1.05 * solid.height_m + 0.05)
        ]
    )
    if light.lamps_lit and solid.lamps:
        local = np.concatenate((local, _light_pool(solid)))
    world = pose.to_world(local)
    if world[:, 2].max() <= NEAR_M:
        return None
    spots = view.project(world)
    border = 2 + 0.5 * view.focal_px / max(pose.z_m, 3.0)
    low, high = spots.min(axis=0) - border, spots.max(axis=0) + border
    margin_x, margin_y = view.width_px * 0.2, view.height_px * 0.2
    left, top = max(low[0], -margin_x), max(low[1], -margin_y)
    right = min(high[0], view.width_px + margin_x)
    bottom = min(high[1], view.height_px + margin_y)
    if right - left < 1 or bottom - top < 1:
        return None
    return int(left), int(top), int(right) + 1, int(bottom) + 1

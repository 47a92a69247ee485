"""Renders a shape as an anti-aliased, shaded sprite with its shadow and its lamps' glow.

Pure functions of their arguments; no randomness, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import hypot

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from edgebox.scene.optics import NEAR_M, Floats, Light, Pose, View, clip_near
from edgebox.scene.shapes import Hull, Limb, Solid

_HALF = [0] * 128 + [255] * 128  # a pixel belongs to a solid that covers half of it
_SHADOW = (12, 14, 22)
_LIGHT_POOL = (255, 232, 180)
_POOL_ALPHA = 40
_GLOW_SIDE_PX = 64


@dataclass(frozen=True)
class Sprite:
    """A painted solid, shadow and glow included, and which pixels are the solid itself."""

    colours: Image.Image  # RGB
    alpha: Image.Image  # L, how much of what is behind it is covered
    body: Image.Image  # L, 255 where the solid itself covers the pixel, else 0
    anchor_px: tuple[float, float]  # the solid's ground point, from the sprite's top left corner
    box_px: tuple[int, int, int, int]  # of the body, within the sprite
    body_area_px: int

    @property
    def area_px(self) -> int:
        """Return the number of pixels the sprite keeps in memory."""
        return self.colours.width * self.colours.height

    def resized(self, factor: float) -> Sprite | None:
        """Return the sprite at `factor` times its size; None if it would be empty."""
        width, height = self.colours.size
        size = (max(1, round(width * factor)), max(1, round(height * factor)))
        body = self.body.resize(size, Image.Resampling.NEAREST)
        box = body.getbbox()
        if box is None:
            return None
        anchor = (self.anchor_px[0] * size[0] / width, self.anchor_px[1] * size[1] / height)
        return Sprite(
            self.colours.resize(size, Image.Resampling.BILINEAR),
            self.alpha.resize(size, Image.Resampling.BILINEAR),
            body,
            anchor,
            box,
            _count(body),
        )


def _count(body: Image.Image) -> int:
    return int(np.count_nonzero(np.asarray(body)))


def as_fill(colour: Floats) -> tuple[int, int, int]:
    """Return a colour in PIL's form."""
    return int(colour[0]), int(colour[1]), int(colour[2])


class Painter:
    """Paints on a supersampled canvas over a rectangle of the picture.

    A given canvas is painted over; translucent paint mixes with its colours. Without one, the
    painter starts with an empty canvas in the `ground` colour and records which pixels are
    covered.
    """

    def __init__(
        self,
        view: View,
        box: tuple[int, int, int, int],
        factor: int,
        canvas: Image.Image | None = None,
        ground: tuple[int, int, int] = (0, 0, 0),
    ) -> None:
        self._view = view
        self._origin = np.array(box[:2], dtype=np.float64)
        self._factor = factor
        size = ((box[2] - box[0]) * factor, (box[3] - box[1]) * factor)
        self._canvas = canvas or Image.new("RGB", size, ground)
        self._draw = ImageDraw.Draw(self._canvas, "RGBA" if canvas else None)
        self._cover = None if canvas else Image.new("L", size)
        self._draw_cover = ImageDraw.Draw(self._cover) if self._cover else None

    def place(self, points: Floats) -> Floats:
        """Return (n, 2) canvas coordinates of (n, 3) world points."""
        return (self._view.project(points) - self._origin) * self._factor

    def polygon(self, points: Floats, fill: tuple[int, ...]) -> None:
        """Fill a (k, 3) world polygon."""
        visible = clip_near(points)
        if len(visible) >= 3:
            self._polygon(self.place(visible).ravel().tolist(), fill)

    def faces(self, points: Floats, starts: list[int], seen: list[int], fills: Floats) -> None:
        """Fill the faces `seen`: face i has the corners points[starts[i]:starts[i + 1]]."""
        tones = fills.astype(int).tolist()
        if points[:, 2].min() < NEAR_M:
            for index in seen:
                self.polygon(points[starts[index] : starts[index + 1]], tuple(tones[index]))
            return
        spots = self.place(points).ravel().tolist()
        for index in seen:
            corners = spots[2 * starts[index] : 2 * starts[index + 1]]
            self._polygon(corners, tuple(tones[index]))

    def _polygon(self, corners: list[float], fill: tuple[int, ...]) -> None:
        self._draw.polygon(corners, fill=fill)
        if self._draw_cover:
            self._draw_cover.polygon(corners, fill=255)

    def bar(
        self,
        ends: Sequence[Sequence[float]],
        radii: Sequence[float],
        fills: Sequence[tuple[int, int, int]],
    ) -> None:
        """Draw a round bar between two canvas points (radii in canvas px): dark, then lit."""
        self._round(ends, radii, fills[0])
        lit = [(x - 0.22 * r, y - 0.22 * r) for (x, y), r in zip(ends, radii, strict=True)]
        self._round(lit, [0.72 * radius for radius in radii], fills[1])

    def _round(
        self, ends: Sequence[Sequence[float]], radii: Sequence[float], fill: tuple[int, int, int]
    ) -> None:
        for (x, y), radius in zip(ends, radii, strict=True):
            rim = (x - radius, y - radius, x + radius, y + radius)
            self._draw.ellipse(rim, fill=fill)
            if self._draw_cover:
                self._draw_cover.ellipse(rim, fill=255)
        (x0, y0), (x1, y1) = ends
        length = hypot(x1 - x0, y1 - y0)
        if length > 0.5:
            nx, ny = (y0 - y1) / length, (x1 - x0) / length
            first, last = radii
            self._polygon(
                [
                    *(x0 + nx * first, y0 + ny * first, x1 + nx * last, y1 + ny * last),
                    *(x1 - nx * last, y1 - ny * last, x0 - nx * first, y0 - ny * first),
                ],
                fill,
            )

    def limb_orders(self, solid: Solid, pose: Pose, light: Light) -> list[Callable[[], None]]:
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
        return self._canvas.reduce(self._factor)

    def reduced_cover(self) -> Image.Image:
        """Return how much of each pixel was painted, L, at the picture's own resolution.

        Raises:
            ValueError: The canvas was given; what it covered before is not known.
        """
        if self._cover is None:
            raise ValueError("a painter over a given canvas does not know what is covered")
        return self._cover.reduce(self._factor)


def paint_hull(painter: Painter, hull: Hull, pose: Pose, view: View, light: Light) -> None:
    """Paint the faces of a hull that look towards the camera."""
    worlds = pose.to_world(hull.points)
    centres = pose.to_world(hull.face_centres)
    normals = pose.turned(hull.normals)
    eye = np.array((0.0, view.height_m, 0.0))
    seen = np.einsum("ij,ij->i", normals, eye - centres) > 0
    fills = light.shade(hull.colours, normals, centres[:, 2])
    if light.lamps_lit:
        shining = np.array([face.shines for face in hull.faces])
        fills[shining] = light.through_air(hull.colours[shining], centres[shining, 2])
    painter.faces(worlds, hull.starts, np.flatnonzero(seen).tolist(), fills)


def _part_centre(part: Hull | Limb) -> Floats:
    if isinstance(part, Limb):
        middle: Floats = (np.array(part.start) + np.array(part.end)) / 2
        return middle
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


def _soft_mask(
    view: View, box: tuple[int, int, int, int], ground: Floats, blur_m: float, level: int
) -> Image.Image:
    """Return a blurred ground polygon as an L mask; painted small, since it is soft anyway."""
    size = (box[2] - box[0], box[3] - box[1])
    small = (box[0] // 4, box[1] // 4, box[2] // 4 + 2, box[3] // 4 + 2)
    mask = Image.new("L", (2 * (small[2] - small[0]), 2 * (small[3] - small[1])))
    visible = clip_near(ground)
    if len(visible) >= 3:
        spots = view.project(visible) / 2 - 2.0 * np.array(small[:2])
        ImageDraw.Draw(mask).polygon(spots.ravel().tolist(), fill=level)
    blur_px = 0.5 * blur_m * view.focal_px / max(float(ground[:, 2].mean()), 4.0)
    soft = mask.filter(ImageFilter.BoxBlur(min(max(blur_px, 0.6), 5.0)))
    left, top = (box[0] - small[0] * 4) / 2, (box[1] - small[1] * 4) / 2
    return soft.resize(
        size, Image.Resampling.BILINEAR, (left, top, left + size[0] / 2, top + size[1] / 2)
    )


def _add_glow(
    colours: Image.Image, alpha: Image.Image, solid: Solid, pose: Pose, seen: View
) -> None:
    """Paint light around the lamps that face the camera; `seen` has the sprite's own origin."""
    toward = np.array((-pose.x_m, -pose.z_m))
    ahead = np.array((np.sin(pose.heading_rad), np.cos(pose.heading_rad)))
    cosine = float(toward @ ahead) / max(float(np.hypot(*toward)), 1e-6)
    for lamp in solid.lamps:
        world = pose.to_world(np.array([lamp.at]))
        if lamp.facing * cosine <= 0.1 or world[0, 2] < NEAR_M + 1:
            continue
        x, y = seen.project(world)[0].tolist()
        radius = max(1.5, (0.85 if lamp.facing > 0 else 0.5) * seen.focal_px / world[0, 2])
        side = max(3, round(2 * radius))
        disc = _glow_disc().resize((side, side), Image.Resampling.BILINEAR)
        spot = (round(x - side / 2), round(y - side / 2))
        colours.paste(as_fill(np.array(lamp.colour)), (*spot, spot[0] + side, spot[1] + side), disc)
        alpha.paste(255, (*spot, spot[0] + side, spot[1] + side), disc)


@cache
def _glow_disc() -> Image.Image:
    """Return a disc that fades from its middle to its rim."""
    grid = (np.arange(_GLOW_SIDE_PX) + 0.5) / _GLOW_SIDE_PX * 2 - 1
    falloff = np.clip(1 - np.hypot(grid[None, :], grid[:, None]), 0, 1) ** 1.8
    return Image.fromarray((falloff * 225).astype(np.uint8))


def paint(solid: Solid, pose: Pose, view: View, light: Light) -> Sprite | None:
    """Paint a solid as the camera sees it; None if it is outside the picture. The sprite ends a

    little outside the picture, which limits the cost of large, near solids.
    """
    box = _sprite_box(solid, pose, view, light)
    if box is None:
        return None
    # The solid's own colour lies under its edges, so that they do not fade to black.
    tone = as_fill(light.shade(*_main_colour(solid), np.array([max(pose.z_m, NEAR_M)]))[0])
    side_px = max(box[2] - box[0], box[3] - box[1])
    painter = Painter(view, box, 4 if side_px < 70 else 3 if side_px < 150 else 2, ground=tone)
    _paint_parts(painter, solid, pose, view, light)
    cover = painter.reduced_cover()
    body = cover.point(_HALF)
    body_box = body.getbbox()
    if body_box is None:
        return None
    shadow = _soft_mask(view, box, _footprint(solid, pose, light), 0.12, light.shadow_alpha)
    alpha = ImageChops.screen(shadow, cover)
    colours = Image.new("RGB", alpha.size, tone)
    colours.paste(_SHADOW, None, shadow.point([min(255, 5 * level) for level in range(256)]))
    if light.lamps_lit and any(lamp.facing > 0 for lamp in solid.lamps):
        pool = _soft_mask(view, box, pose.to_world(_light_pool(solid)), 0.12, _POOL_ALPHA)
        colours.paste(_LIGHT_POOL, None, pool.point([min(255, 5 * level) for level in range(256)]))
        alpha = ImageChops.lighter(alpha, pool)
    colours.paste(painter.reduced(), None, cover)
    if light.lamps_lit:
        _add_glow(colours, alpha, solid, pose, view.moved(*box[:2]))
    return _trimmed(
        colours, alpha, body, view.project(np.array([(pose.x_m, 0.0, pose.z_m)]))[0] - box[:2]
    )


def _trimmed(
    colours: Image.Image, alpha: Image.Image, body: Image.Image, anchor_px: Floats
) -> Sprite:
    """Return a sprite without the empty border around it."""
    left, top, right, bottom = used = alpha.getbbox() or (0, 0, *alpha.size)
    body = body.crop(used)
    return Sprite(
        colours.crop(used),
        alpha.crop(used),
        body,
        (float(anchor_px[0]) - left, float(anchor_px[1]) - top),
        body.getbbox() or (0, 0, right - left, bottom - top),
        _count(body),
    )


def _main_colour(solid: Solid) -> tuple[Floats, Floats]:
    """Return the (1, 3) colour of the solid's last part, and a (1, 3) normal in half light."""
    part = solid.parts[-1]
    colour = part.colour if isinstance(part, Limb) else part.faces[0].colour
    return np.array([colour], dtype=np.float64), np.array([(0.0, 0.5, 0.0)])


def _paint_parts(painter: Painter, solid: Solid, pose: Pose, view: View, light: Light) -> None:
    """Paint all parts of a solid, the farthest first."""
    eye = np.array((0.0, view.height_m, 0.0))
    centres = pose.to_world(np.array([_part_centre(part) for part in solid.parts]))
    distances = np.linalg.norm(centres - eye, axis=1)
    distances[[isinstance(part, Hull) and part.lies_under for part in solid.parts]] = np.inf
    limbs = painter.limb_orders(solid, pose, light)
    limb_numbers = np.cumsum([isinstance(part, Limb) for part in solid.parts]) - 1
    for index in np.argsort(-distances, kind="stable"):
        part = solid.parts[index]
        if isinstance(part, Hull):
            paint_hull(painter, part, pose, view, light)
        else:
            limbs[limb_numbers[index]]()


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

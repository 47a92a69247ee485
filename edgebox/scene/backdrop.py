"""The static backdrop of a street scene: sky, ground, roads, buildings, trees.

Painted once per scene. Pure: the randomness is passed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from random import Random

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from edgebox.scene.furniture import (
    build_building,
    build_sign,
    build_street_lamp,
    build_tree,
)
from edgebox.scene.layout import Layout
from edgebox.scene.optics import Colour, Floats, Pose, View
from edgebox.scene.paint import Painter, Sprite, as_fill, paint, paint_hull
from edgebox.scene.shapes import Hull, Solid
from edgebox.scene.traffic import LANE_WIDTH_M, PAVEMENT_WIDTH_M, Road

_SUPERSAMPLING = 2
_ASPHALT: Colour = (96, 98, 103)
_PAVEMENT: Colour = (164, 160, 154)
_KERB: Colour = (192, 190, 184)
_GRASS: Colour = (104, 130, 76)
_PLAZA: Colour = (150, 144, 136)
_WHITE: Colour = (232, 232, 226)
_YELLOW: Colour = (226, 186, 72)
_SKIES: dict[str, tuple[Colour, Colour]] = {
    "clear": ((92, 150, 214), (206, 224, 238)),
    "golden": ((124, 150, 190), (250, 212, 160)),
    "overcast": ((168, 176, 184), (208, 212, 214)),
    "haze": ((186, 196, 204), (214, 216, 216)),
    "dusk": ((52, 56, 96), (232, 148, 112)),
    "night": ((16, 20, 38), (52, 56, 80)),
}


@dataclass(frozen=True)
class Occluder:
    """Something fixed that hides what passes behind it."""

    z_m: float
    left_px: int
    top_px: int
    colours: Image.Image  # RGB
    alpha: Image.Image  # L, without the shadow
    body: Image.Image  # L, 255 where it covers the pixel


def paint_backdrop(layout: Layout, rng: Random) -> tuple[Image.Image, tuple[Occluder, ...]]:
    """Paint the empty street; return it as RGB with the occluders, the farthest first."""
    view = layout.view
    sky = _paint_sky(layout, rng)
    size = (view.width_px * _SUPERSAMPLING, view.height_px * _SUPERSAMPLING)
    canvas = sky.resize(size, Image.Resampling.BILINEAR)
    painter = Painter(view, (0, 0, view.width_px, view.height_px), _SUPERSAMPLING, canvas)
    grounds = _Grounds(layout, painter)
    grounds.paint(rng)
    _paint_buildings(layout, painter, rng)
    picture = _with_texture(painter.reduced(), view, rng)
    occluders = []
    for solid, pose in sorted(_street_furniture(layout, rng), key=lambda item: -item[1].z_m):
        sprite = paint(solid, pose, view, layout.light)
        if sprite is not None:
            ground = view.project(np.array([(pose.x_m, 0.0, pose.z_m)]))[0]
            left = round(float(ground[0]) - sprite.anchor_px[0])
            top = round(float(ground[1]) - sprite.anchor_px[1])
            picture.paste(sprite.colours, (left, top), sprite.alpha)
            occluders.append(_as_occluder(sprite, pose, left, top))
    return picture, tuple(occluders)


def _as_occluder(sprite: Sprite, pose: Pose, left: int, top: int) -> Occluder:
    box = sprite.box_px
    return Occluder(
        pose.z_m,
        left + box[0],
        top + box[1],
        sprite.colours.crop(box),
        ImageChops.darker(sprite.alpha, sprite.body).crop(box),
        sprite.body.crop(box),
    )


def _paint_sky(layout: Layout, rng: Random) -> Image.Image:
    """Return sky and bare ground at the picture's size."""
    view = layout.view
    top, low = (np.array(colour) for colour in _SKIES[layout.mood])
    rows = np.arange(view.height_px, dtype=np.float64)[:, None]
    share = np.clip(rows / max(view.horizon_px, 1.0), 0, 1) ** 1.4
    sky = top + (low - top) * share
    depth = view.focal_px * view.height_m / np.maximum(rows - view.horizon_px, 0.5)
    green = any(any(road.greens) for road in layout.roads)
    base = np.array(_GRASS if green else _PLAZA, dtype=np.float64)
    up = np.zeros((view.height_px, 3))
    up[:, 1] = 1.0
    ground = layout.light.shade(
        np.tile(base, (view.height_px, 1)), up, np.minimum(depth[:, 0], 900)
    )
    column = np.where(rows < view.horizon_px, sky, ground).clip(10, 244).astype(np.uint8)
    image = Image.fromarray(np.repeat(column[:, None, :], view.width_px, axis=1))
    if layout.mood == "night":
        _paint_stars(image, view, rng)
    else:
        image = _with_clouds(image, view, rng, 0.75 if layout.mood in ("clear", "golden") else 0.3)
    _paint_skyline(image, layout, rng)
    return image


def _paint_stars(image: Image.Image, view: View, rng: Random) -> None:
    for _ in range(70):
        level = rng.randrange(90, 230)
        spot = (rng.randrange(view.width_px), rng.randrange(max(1, int(view.horizon_px))))
        image.putpixel(spot, (level, level, min(244, level + 12)))


def _with_clouds(image: Image.Image, view: View, rng: Random, strength: float) -> Image.Image:
    mask = Image.new("L", image.size, 0)
    draw = ImageDraw.Draw(mask)
    unit = view.width_px / 1280
    for _ in range(rng.randrange(3, 8)):
        x, y = rng.uniform(0, view.width_px), rng.uniform(0, view.horizon_px * 0.8)
        for _ in range(7):
            wide, tall = rng.uniform(30, 110) * unit, rng.uniform(8, 22) * unit
            dx, dy = rng.uniform(-110, 110) * unit, rng.uniform(-8, 8) * unit
            draw.ellipse(
                (x + dx - wide, y + dy - tall, x + dx + wide, y + dy + tall),
                fill=int(210 * strength),
            )
    soft = mask.filter(ImageFilter.GaussianBlur(9 * unit))
    soft.paste(0, (0, int(view.horizon_px), view.width_px, view.height_px))
    return Image.composite(Image.new("RGB", image.size, (240, 240, 240)), image, soft)


def _paint_skyline(image: Image.Image, layout: Layout, rng: Random) -> None:
    """Paint far roofs along the horizon, the farther row paler."""
    view, draw = layout.view, ImageDraw.Draw(image)
    haze = np.array(layout.light.haze)
    unit = view.width_px / 1280
    for row, (share, tallest) in enumerate(((0.75, 46), (0.55, 32))):
        tone = as_fill(np.clip(haze * share + np.array((60, 70, 84)) * (1 - share) * 0.9, 12, 244))
        x = -20.0
        while x < view.width_px:
            wide = rng.uniform(18, 70) * unit
            tall = rng.uniform(0.3, 1.0) * tallest * unit
            top = view.horizon_px - tall
            draw.rectangle((x, top, x + wide, view.horizon_px + 2), fill=tone)
            if layout.light.lamps_lit and row == 1:
                for _ in range(int(wide / 7)):
                    spot = (int(rng.uniform(x, x + wide)), int(rng.uniform(top, view.horizon_px)))
                    draw.point(spot, fill=(236, 200, 130))
            x += wide * rng.uniform(0.8, 1.2)


class _Grounds:
    """Paints roads, pavements and markings, in strips so that haze grows with the distance."""

    def __init__(self, layout: Layout, painter: Painter) -> None:
        self._layout, self._easel = layout, painter

    def paint(self, rng: Random) -> None:
        """Paint everything that lies flat."""
        roads = self._layout.roads
        for road in roads:
            for side, green in ((-1, road.greens[0]), (1, road.greens[1])):
                far = road.half_width_m + PAVEMENT_WIDTH_M
                ground = _GRASS if green else _PLAZA
                self._strip(road, (side * far, side * (far + 55)), ground)
                if not green:
                    self._slabs(road, side, far)
        for road in roads:
            far = road.half_width_m + PAVEMENT_WIDTH_M
            self._strip(road, (-far, far), _PAVEMENT, joints=True)
        for road in roads:
            edge = road.half_width_m
            self._strip(road, (-edge - 0.22, edge + 0.22), _KERB)
        for road in roads:
            edge = road.half_width_m
            self._strip(road, (-edge, edge), _ASPHALT)
        for index, road in enumerate(roads):
            self._wear(road, rng)
            gaps = self._gaps(index)
            self._mark(road, gaps)
            if gaps:
                self._cross(road, gaps[0])

    def _slabs(self, road: Road, side: int, from_m: float) -> None:
        """Lay joints over a paved place, so that it shows its perspective."""
        for out in np.arange(from_m, from_m + 40, 2.4):
            self._patch(road, (-60, 120), (side * out, side * (out + 0.07)), (120, 114, 108, 150))
        for along in np.arange(-60.0, 120.0, 2.4):
            self._patch(
                road,
                (along, along + 0.07),
                (side * from_m, side * (from_m + 40)),
                (120, 114, 108, 150),
            )

    def _gaps(self, index: int) -> list[tuple[float, float]]:
        """Return where the road's markings make way for the other road."""
        roads = self._layout.roads
        if len(roads) < 2:
            return []
        road, other = roads[index], roads[1 - index]
        along = np.arange(-60.0, 200.0, 0.25)
        points = road.at(along, 0.0)
        sine, cosine = sin(other.heading_rad), cos(other.heading_rad)
        right = (points[:, 0] - other.x_m) * cosine - (points[:, 2] - other.z_m) * sine
        inside = along[np.abs(right) < other.half_width_m + 0.8]
        return [(float(inside[0]), float(inside[-1]))] if len(inside) else []

    def _strip(
        self, road: Road, right: tuple[float, float], colour: Colour, joints: bool = False
    ) -> None:
        """Cover the road's whole length between two distances to the right of its middle."""
        edges = np.arange(-90.0, 426.0, 6.0)
        near, far = road.at(edges, right[0]), road.at(edges, right[1])
        tones = self._tones(colour, (near[:, 2] + far[:, 2]) / 2)
        for index in range(len(edges) - 1):
            tone = tones[index] * (0.975 if joints and index % 2 else 1.0)
            corners = np.stack((near[index], near[index + 1], far[index + 1], far[index]))
            if corners[:, 2].max() > 1.3:
                self._easel.polygon(corners, as_fill(tone))

    def _tones(self, colour: Colour, depths: Floats) -> Floats:
        up = np.tile((0.0, 1.0, 0.0), (len(depths), 1))
        flat = np.tile(np.array(colour, dtype=np.float64), (len(depths), 1))
        return self._layout.light.shade(flat, up, np.maximum(depths, 1.0))

    def _patch(
        self,
        road: Road,
        along: tuple[float, float],
        right: tuple[float, float],
        paint: tuple[float, float, float, int],
    ) -> None:
        """Cover a rectangle of the road with red, green, blue, alpha."""
        places = np.array((along[0], along[1], along[1], along[0]))
        corners = road.at(places, np.array((right[0], right[0], right[1], right[1])))
        if corners[:, 2].max() > 1.3 and corners[:, 2].min() < 400:
            tone = self._tones(paint[:3], corners[:1, 2])[0]
            self._easel.polygon(corners, (*as_fill(tone), paint[3]))

    def _wear(self, road: Road, rng: Random) -> None:
        """Darken the wheel tracks; add mended patches and manhole covers."""
        for number in range(-road.lanes_per_side, road.lanes_per_side):
            middle = (number + 0.5) * LANE_WIDTH_M
            for track in (-0.8, 0.8):
                self._patch(
                    road,
                    (-40, 380),
                    (middle + track - 0.28, middle + track + 0.28),
                    (70, 72, 76, 26),
                )
            for _ in range(2):
                at, wide = rng.uniform(5, 90), rng.uniform(0.5, 1.3)
                self._patch(
                    road,
                    (at, at + rng.uniform(1, 5)),
                    (middle - wide, middle + wide),
                    (74, 75, 80, 150),
                )
            at = rng.uniform(8, 50)
            self._patch(road, (at, at + 0.7), (middle - 0.35, middle + 0.35), (64, 62, 60, 220))

    def _mark(self, road: Road, gaps: Sequence[tuple[float, float]]) -> None:
        def open_at(start: float, end: float) -> bool:
            return all(end < gap[0] - 4.5 or start > gap[1] + 4.5 for gap in gaps)

        pieces = [(s, s + 3.4) for s in np.arange(-60.0, 330.0, 8.5) if open_at(s, s + 3.4)]
        runs = [(s, s + 4.0) for s in np.arange(-60.0, 330.0, 4.0) if open_at(s, s + 4.0)]
        for number in range(-road.lanes_per_side + 1, road.lanes_per_side):
            right = number * LANE_WIDTH_M
            if number == 0:
                for start, end in runs:
                    for shift in (-0.17, 0.17):
                        self._patch(
                            road, (start, end), (shift - 0.07, shift + 0.07), (*_YELLOW, 225)
                        )
                continue
            for start, end in pieces:
                self._patch(road, (start, end), (right - 0.08, right + 0.08), (*_WHITE, 225))
        edge = road.lanes_per_side * LANE_WIDTH_M + 0.05
        for start, end in runs:
            for side in (-edge, edge):
                self._patch(road, (start, end), (side - 0.07, side + 0.07), (*_WHITE, 190))

    def _cross(self, road: Road, gap: tuple[float, float]) -> None:
        """Paint zebra crossings and stop lines on both sides of a junction."""
        half = road.lanes_per_side * LANE_WIDTH_M
        for at, away in ((gap[0] - 4.0, -1), (gap[1] + 1.0, 1)):
            for right in np.arange(-half + 0.2, half - 0.4, 1.0):
                self._patch(road, (at, at + 3.0), (right, right + 0.5), (*_WHITE, 230))
            stop = at - 1.4 if away < 0 else at + 4.0
            lanes = (0.2, half) if away < 0 else (-half, -0.2)
            self._patch(road, (stop, stop + 0.4), lanes, (*_WHITE, 230))


def _paint_buildings(layout: Layout, painter: Painter, rng: Random) -> None:
    """Paint the rows of buildings, moved back where they would hide a part of the traffic."""
    paths = _busy_points(layout)
    placed: list[tuple[Solid, Pose]] = []
    for road in layout.roads:
        for solid, along_m, right_m in _building_row(road, rng):
            for set_back in (0.0, 9.0, 20.0, 34.0):
                out = right_m + (set_back if right_m > 0 else -set_back)
                spot = road.at(np.array([along_m]), out)[0]
                pose = Pose(float(spot[0]), float(spot[2]), road.heading_rad)
                if not 4 < pose.z_m < 320 or _stands_on_road(solid, pose, layout.roads):
                    continue
                if not _hides(solid, pose, layout.view, paths):
                    placed.append((solid, pose))
                    break
    placed.sort(key=lambda item: -item[1].z_m)
    eye = np.array((0.0, layout.view.height_m, 0.0))
    for solid, pose in placed:
        hulls = [part for part in solid.parts if isinstance(part, Hull)]
        hulls.sort(
            key=lambda hull: -float(np.linalg.norm(pose.to_world(hull.centre[None])[0] - eye))
        )
        for hull in hulls:
            paint_hull(painter, hull, pose, layout.view, layout.light)


def _building_row(road: Road, rng: Random) -> list[tuple[Solid, float, float]]:
    """Return buildings along both sides: (solid, middle along the road, middle to its right)."""
    row = []
    for side, green in ((-1, road.greens[0]), (1, road.greens[1])):
        along = -70.0
        while along < 230:
            length = rng.uniform(10, 24)
            solid = build_building(rng, length)
            set_back = rng.uniform(0.2, 0.8) + (26 if green else 0)
            right = side * (road.half_width_m + PAVEMENT_WIDTH_M + set_back + solid.width_m / 2)
            row.append((solid, along + length / 2, right))
            along += length + (rng.uniform(2, 9) if rng.random() < 0.25 else 0.15)
    return row


def _busy_points(layout: Layout) -> Floats:
    """Return (n, 3) world points that traffic and people pass, at foot and at head height."""
    found = []
    for lane in layout.lanes:
        path = lane.path
        points = path.road.at(np.arange(path.low_m, path.high_m, 3.0), path.right_m)
        points = points[points[:, 2] > 3.0]
        found += [points, points + np.array((0.0, 1.8, 0.0))]
    return np.concatenate(found)


def _hides(solid: Solid, pose: Pose, view: View, points: Floats) -> bool:
    """Return whether a building hides any of the points."""
    half_length, half = solid.length_m / 2, solid.width_m / 2
    corners = np.array(
        [
            (x, y, z)
            for x in (-half_length, half_length)
            for y in (-half, half)
            for z in (0.0, solid.height_m)
        ]
    )
    world = pose.to_world(corners)
    if world[:, 2].min() < 2.0:
        world[:, 2] = np.maximum(world[:, 2], 2.0)
    small = view.scaled(320 / view.width_px)
    silhouette = Image.new("L", (small.width_px, small.height_px), 0)
    draw = ImageDraw.Draw(silhouette)
    spots = small.project(world)
    for face in ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (1, 3, 7, 5)):
        draw.polygon(spots[list(face)].ravel().tolist(), fill=255)
    shadow = np.asarray(silhouette)
    beyond = points[points[:, 2] > world[:, 2].min() + 1.0]
    places = small.project(beyond).astype(int)
    inside = (places >= 0).all(axis=1) & (places[:, 0] < small.width_px)
    inside &= places[:, 1] < small.height_px
    return bool(shadow[places[inside, 1], places[inside, 0]].any())


def _stands_on_road(solid: Solid, pose: Pose, roads: Sequence[Road]) -> bool:
    edges = np.linspace(-solid.length_m / 2, solid.length_m / 2, 7)
    sides = (-solid.width_m / 2, 0.0, solid.width_m / 2)
    points = pose.to_world(np.array([(x, y, 0.0) for x in edges for y in sides]))
    for road in roads:
        sine, cosine = sin(road.heading_rad), cos(road.heading_rad)
        right = (points[:, 0] - road.x_m) * cosine - (points[:, 2] - road.z_m) * sine
        if float(np.abs(right).min()) < road.half_width_m + PAVEMENT_WIDTH_M - 0.1:
            return True
    return False


def _street_furniture(layout: Layout, rng: Random) -> list[tuple[Solid, Pose]]:
    """Return trees, lamps and signs along the kerbs, and trees on the greens."""
    found: list[tuple[Solid, Pose]] = []
    for road in layout.roads:
        planted = rng.random() < 0.6
        for side, green in ((-1, road.greens[0]), (1, road.greens[1])):
            heading = road.heading_rad + (pi if side < 0 else 0.0)
            for along in np.arange(-30.0, 180.0, rng.uniform(16, 24)):
                kind = rng.random()
                right = side * (road.half_width_m + 0.45)
                if kind < 0.4:
                    solid = build_street_lamp(rng)
                elif planted:
                    solid = build_tree(rng)
                else:
                    solid = build_sign(rng)
                spot = road.at(np.array([along + rng.uniform(-2, 2)]), right)[0]
                found.append((solid, Pose(float(spot[0]), float(spot[2]), heading)))
            for _ in range(14 if green else 0):
                right = side * (road.half_width_m + PAVEMENT_WIDTH_M + rng.uniform(1.5, 24))
                spot = road.at(np.array([rng.uniform(0, 190)]), right)[0]
                found.append((build_tree(rng), Pose(float(spot[0]), float(spot[2]), heading)))
    near = 0.017 * layout.view.focal_px * 1280 / layout.view.width_px  # not in everyone's way
    return [
        (solid, pose)
        for solid, pose in found
        if near < pose.z_m < layout.far_m and not _stands_in_lane(pose, layout.roads)
    ]


def _stands_in_lane(pose: Pose, roads: Sequence[Road]) -> bool:
    for road in roads:
        sine, cosine = sin(road.heading_rad), cos(road.heading_rad)
        right = (pose.x_m - road.x_m) * cosine - (pose.z_m - road.z_m) * sine
        if abs(right) < road.half_width_m + 0.2:
            return True
    return False


def _with_texture(picture: Image.Image, view: View, rng: Random) -> Image.Image:
    """Return the picture with a faint grain on everything below the horizon."""
    grain = np.random.default_rng(rng.randrange(1 << 32))
    field = np.zeros((view.height_px, view.width_px))
    for cell, strength in ((3, 1.6), (11, 1.6), (60, 2.2)):
        shape = (view.height_px // cell + 2, view.width_px // cell + 2)
        coarse = Image.fromarray(grain.normal(0, strength, shape).astype(np.float32))
        field += np.asarray(
            coarse.resize((view.width_px, view.height_px), Image.Resampling.BILINEAR)
        )
    field[: int(view.horizon_px)] = 0
    mixed = np.asarray(picture).astype(np.float64) + field[..., None]
    return Image.fromarray(np.clip(mixed, 10, 244).astype(np.uint8))

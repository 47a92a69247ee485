"""The synthetic street camera: a picture and its ground truth for any seed and moment.

`Scene.render` is a pure function of (seed, size, moment): moments may be rendered in any order.
Limits: straight roads and flat ground; a scene keeps a cache of sprites, so use each from one
thread at a time. A 1280x720 picture costs a few milliseconds once the cache is warm.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from math import atan2, exp, floor, log, sqrt
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from edgebox.scene.backdrop import Occluder, paint_backdrop
from edgebox.scene.colour_names import COLOUR_NAMES, colour_name
from edgebox.scene.layout import Layout, build_layout
from edgebox.scene.optics import Pose
from edgebox.scene.paint import Sprite, paint
from edgebox.scene.people import GAIT_PHASES, build_motorbike, build_person
from edgebox.scene.shapes import Solid
from edgebox.scene.traffic import LABELS, Path
from edgebox.scene.vehicles import build_bus, build_car, build_truck

__all__ = ["COLOUR_NAMES", "LABELS", "Scene", "SceneFrame", "SceneObject"]

_DESIGNS = {"car": 10, "bus": 3, "truck": 4, "motorbike": 4, "person": 8}
_CELL_M = 0.25  # resolution of a lane's table of viewpoints
_VIEWPOINT_SCALE = 0.18  # a sprite is painted anew where its size has changed by this share...
_VIEWPOINT_TURN_RAD = 0.15  # ...or where it is seen from another side by this angle
_SIZE_STEPS = ((60.0, 0.02), (28.0, 0.035), (0.0, 0.07))  # px a metre and a half: resize step
_PERSON_DEPTH_STEP = 0.3  # of the logarithm of the depth
_PERSON_TURN_RAD = 0.3
_NEAREST_M = 2.0
_STRIDE_M = 1.5
_LEAST_HEIGHT_PX = 4
_CACHED_PX = 16_000_000  # about 96 MB at 6 bytes a pixel
_CACHED_SPRITE_PX = 3_000  # resized ones above this change with every picture
_PAINTED_PX, _COARSEST = 60_000, 0.5  # larger sprites are painted smaller, down to this share
_OBJECTS_MAX = 254  # an object's number must fit a byte


@dataclass(frozen=True)
class SceneObject:
    """One object in the picture."""

    label: str
    box: tuple[float, float, float, float]  # xyxy, source px, clipped to the picture
    visible_fraction: float  # share of its painted pixels that nothing hides, 0..1
    identity: tuple[int, int, int]  # the same for one object in all pictures of its passage
    colour: str | None = None  # of a vehicle, one of COLOUR_NAMES; None: of a person


@dataclass(frozen=True)
class SceneFrame:
    """A picture and its ground truth."""

    rgb: NDArray[np.uint8]  #: (h, w, 3)
    objects: tuple[SceneObject, ...]  # the farthest first


@dataclass(frozen=True)
class _Placement:
    """An object to paint: its sprite and where the sprite's top left corner goes."""

    z_m: float
    solid: Solid
    identity: tuple[int, int, int]  # lane, place in the lane's traffic, round
    sprite: Sprite
    left_px: int
    top_px: int


class _Viewpoints:
    """A path cut into stretches along which a thing looks about the same."""

    def __init__(self, path: Path, focal_px: float) -> None:
        along = np.arange(path.low_m - 1.0, path.high_m + 1.0 + _CELL_M, _CELL_M)
        points = path.road.at(along, path.right_m)
        shown = points[:, 2] >= _NEAREST_M  # one piece, since the depth rises or falls throughout
        along, points = along[shown], points[shown]
        depth = points[:, 2]
        scale_change = np.abs(np.diff(np.log(depth))) / _VIEWPOINT_SCALE
        turn_change = np.abs(np.diff(np.arctan2(points[:, 0], depth))) / _VIEWPOINT_TURN_RAD
        # What is a few pixels tall looks the same from a wider range of viewpoints.
        coarseness = np.clip(60.0 / (focal_px * 1.6 / depth[1:]), 1.0, 3.0)
        passed = np.concatenate(([0.0], np.cumsum((scale_change + turn_change) / coarseness)))
        stretch = np.floor(passed).astype(int)
        self._low_m = float(along[0])
        self._stretch_of_cell: list[int] = stretch.tolist()
        self._poses: dict[int, Pose] = {}
        for number in set(self._stretch_of_cell):
            x, z = path.place(float(along[stretch == number].mean()))
            self._poses[number] = Pose(x, z, path.heading_rad)

    def find(self, along_m: float) -> tuple[int, Pose]:
        """Return the stretch's number and the pose in its middle."""
        cell = int((along_m - self._low_m) / _CELL_M)
        number = self._stretch_of_cell[min(max(cell, 0), len(self._stretch_of_cell) - 1)]
        return number, self._poses[number]


class _SpriteCache:
    """The sprites used last, up to a number of pixels; None: the object is not visible."""

    def __init__(self) -> None:
        self._sprites: OrderedDict[tuple[int, ...], Sprite | None] = OrderedDict()
        self._held_px = 0

    def __contains__(self, key: tuple[int, ...]) -> bool:
        return key in self._sprites

    def get(self, key: tuple[int, ...]) -> Sprite | None:
        """Return the sprite stored under a key that is present."""
        self._sprites.move_to_end(key)
        return self._sprites[key]

    def put(self, key: tuple[int, ...], sprite: Sprite | None) -> None:
        """Store a sprite and forget the ones unused for longest."""
        self._sprites[key] = sprite
        self._held_px += self._size_px(sprite)
        while self._held_px > _CACHED_PX and len(self._sprites) > 1:
            self._held_px -= self._size_px(self._sprites.popitem(last=False)[1])

    @staticmethod
    def _size_px(sprite: Sprite | None) -> int:
        return 64 if sprite is None else sprite.area_px


class Scene:
    """A street, a fixed camera and endless traffic.

    Args:
        seed: Chooses everything: layout, light, traffic.
        width_px, height_px: Size of the pictures.
    """

    def __init__(self, seed: int, width_px: int = 1280, height_px: int = 720) -> None:
        rng = Random(seed)
        self.seed = seed
        self.width_px, self.height_px = width_px, height_px
        self._layout = build_layout(rng, width_px, height_px)
        self._designs = _draw_designs(rng)
        self._backdrop, self._occluders = paint_backdrop(self._layout, rng)
        self._viewpoints = [
            _Viewpoints(lane.path, self._layout.view.focal_px) for lane in self._layout.lanes
        ]
        self._noise = _noise_tile(rng, self._layout, width_px, height_px)
        self._cache = _SpriteCache()

    @property
    def mood(self) -> str:
        """Return the weather or time of day, such as "clear" or "dusk"."""
        return self._layout.mood

    def render(self, at_s: float) -> SceneFrame:
        """Return the picture at a moment, in seconds since the scene's own beginning."""
        placements = sorted(self._placements(at_s), key=lambda item: -item.z_m)[-_OBJECTS_MAX:]
        canvas, owners = self._paint_all(placements)
        clean = np.frombuffer(canvas.tobytes(), np.uint8)
        rgb = clean.reshape(self.height_px, self.width_px, 3) + self._noise_at(at_s)
        return SceneFrame(rgb, tuple(self._ground_truth(placements, np.asarray(owners))))

    def _noise_at(self, at_s: float) -> NDArray[np.uint8]:
        """Return (h, w, 3) noise; negative values wrap, which adding to uint8 undoes."""
        rng = Random(hash((self.seed, round(at_s * 1e6))))
        top, left = rng.randrange(64), rng.randrange(64)
        return self._noise[top : top + self.height_px, left : left + self.width_px]

    def _placements(self, at_s: float) -> Iterator[_Placement]:
        view = self._layout.view
        for number, lane in enumerate(self._layout.lanes):
            for along_m, slot, turn in lane.occupants(at_s):
                x, z = lane.path.place(along_m)
                if not _NEAREST_M < z < self._layout.far_m:
                    continue
                designs = self._designs[slot.label]
                design = (slot.design + turn * 7919) % len(designs)
                phase = int(along_m / _STRIDE_M * GAIT_PHASES) if lane.speed_mps > 0 else 0
                phase %= len(designs[design])
                key = (LABELS.index(slot.label), design, phase)
                if slot.label == "person":
                    stretch, pose = _viewpoint_of_person(x, z, lane.path.heading_rad)
                else:
                    cell, pose = self._viewpoints[number].find(along_m)
                    stretch = (number, cell)
                solid = designs[design][phase]
                sprite = self._sprite((*key, *stretch), solid, pose, z)
                if sprite is None:
                    continue
                scale = view.focal_px / z
                left = view.middle_px + x * scale - sprite.anchor_px[0]
                top = view.horizon_px + view.height_m * scale - sprite.anchor_px[1]
                identity = (number, lane.slots.index(slot), turn)
                yield _Placement(z, solid, identity, sprite, round(left), round(top))

    def _sprite(self, key: tuple[int, ...], solid: Solid, pose: Pose, z_m: float) -> Sprite | None:
        """Return a solid seen from the viewpoint that `key` names, at the size for depth z_m."""
        focal_px = self._layout.view.focal_px
        tall_px = 1.5 * focal_px / pose.z_m
        share = next(share for least_px, share in _SIZE_STEPS if tall_px >= least_px)
        step = round(log(pose.z_m / z_m) / share)
        sized_key = (*key, step)
        if sized_key in self._cache:
            return self._cache.get(sized_key)
        coarseness = _painted_scale(solid, focal_px / pose.z_m)
        if key not in self._cache:
            view = self._layout.view
            view = view if coarseness == 1.0 else view.scaled(coarseness)
            self._cache.put(key, paint(solid, pose, view, self._layout.light))
        painted = self._cache.get(key)
        if painted is None or (step == 0 and coarseness == 1.0):
            return painted
        resized = painted.resized(exp(step * share) / coarseness)
        if resized is None or resized.area_px < _CACHED_SPRITE_PX:
            self._cache.put(sized_key, resized)
        return resized

    def _paint_all(self, placements: list[_Placement]) -> tuple[Image.Image, Image.Image]:
        """Return the picture and, per pixel, which placement shows there (1-based; 0: none)."""
        canvas = self._backdrop.copy()
        owners = Image.new("L", canvas.size, 0)
        waiting = list(reversed(self._occluders))  # the farthest is the last
        painted: list[tuple[int, int, int, int]] = []
        for number, item in enumerate(placements, 1):
            while waiting and waiting[-1].z_m >= item.z_m:
                _paste_occluder(canvas, owners, waiting.pop(), painted)
            spot = (item.left_px, item.top_px)
            canvas.paste(item.sprite.colours, spot, item.sprite.alpha)
            owners.paste(
                number,
                (*spot, spot[0] + item.sprite.body.width, spot[1] + item.sprite.body.height),
                item.sprite.body,
            )
            size = item.sprite.colours.size
            painted.append((*spot, spot[0] + size[0], spot[1] + size[1]))
        while waiting:
            _paste_occluder(canvas, owners, waiting.pop(), painted)
        return canvas, owners

    def _ground_truth(
        self, placements: list[_Placement], owners: NDArray[np.uint8]
    ) -> Iterator[SceneObject]:
        for number, item in enumerate(placements, 1):
            left, top, right, bottom = item.sprite.box_px
            box = (
                max(item.left_px + left, 0),
                max(item.top_px + top, 0),
                min(item.left_px + right, self.width_px),
                min(item.top_px + bottom, self.height_px),
            )
            if box[2] <= box[0] or box[3] - box[1] < _LEAST_HEIGHT_PX:
                continue
            shown_px = np.count_nonzero(owners[box[1] : box[3], box[0] : box[2]] == number)
            visible = min(1.0, int(shown_px) / item.sprite.body_area_px)
            corners = (float(box[0]), float(box[1]), float(box[2]), float(box[3]))
            paint = item.solid.paint
            colour = None if paint is None else colour_name(paint)
            yield SceneObject(item.solid.label, corners, visible, item.identity, colour)


def _painted_scale(solid: Solid, px_per_m: float) -> float:
    """Return at which share of its size a solid is painted: what is very near is left soft."""
    area = px_per_m**2 * (0.7 * solid.length_m + solid.width_m) * (solid.height_m + 1.0)
    return max(_COARSEST, min(1.0, sqrt(_PAINTED_PX / area)))


def _viewpoint_of_person(
    x_m: float, z_m: float, heading_rad: float
) -> tuple[tuple[int, int], Pose]:
    """Return a coarse viewpoint, shared by all lanes: people are slim and many."""
    depth = floor(log(z_m) / _PERSON_DEPTH_STEP)
    turn = round((heading_rad - atan2(x_m, z_m)) / _PERSON_TURN_RAD)
    pose = Pose(0.0, exp(depth * _PERSON_DEPTH_STEP), turn * _PERSON_TURN_RAD)
    return (depth, turn), pose


def _paste_occluder(
    canvas: Image.Image,
    owners: Image.Image,
    occluder: Occluder,
    painted: list[tuple[int, int, int, int]],
) -> None:
    """Paint an occluder again where something was painted behind it."""
    left, top = occluder.left_px, occluder.top_px
    right, bottom = left + occluder.body.width, top + occluder.body.height
    if any(
        box[0] < right and box[2] > left and box[1] < bottom and box[3] > top for box in painted
    ):
        canvas.paste(occluder.colours, (left, top), occluder.alpha)
        owners.paste(0, (left, top, right, bottom), occluder.body)


def _draw_designs(rng: Random) -> dict[str, list[tuple[Solid, ...]]]:
    """Return the scene's designs: per label, each with one solid for every phase of its gait."""
    builders = {
        "car": build_car,
        "bus": build_bus,
        "truck": build_truck,
        "motorbike": build_motorbike,
    }
    designs: dict[str, list[tuple[Solid, ...]]] = {
        label: [(build(rng),) for _ in range(_DESIGNS[label])] for label, build in builders.items()
    }
    designs["person"] = [build_person(rng) for _ in range(_DESIGNS["person"])]
    return designs


def _noise_tile(rng: Random, layout: Layout, width_px: int, height_px: int) -> NDArray[np.uint8]:
    """Return (h + 64, w + 64, 3) sensor noise within what the painters leave free of a byte."""
    source = np.random.default_rng(rng.randrange(1 << 32))
    shape = (height_px + 64, width_px + 64)
    grey = source.normal(0, layout.noise_level, (*shape, 1)).astype(np.float32)
    colour = source.normal(0, layout.noise_level * 0.45, (*shape, 3)).astype(np.float32)
    noise: NDArray[np.int8] = np.clip(grey + colour, -10, 11).round().astype(np.int8)
    return noise.view(np.uint8)

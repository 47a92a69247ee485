"""The shapes that stand still along a street: buildings, trees, lamps, signs.

Builders return `Solid`s in local metres, as `vehicles` does; a building's forward axis runs
along its road. Variety comes from the `random.Random` passed in.
"""

from __future__ import annotations

from itertools import repeat
from math import cos, pi, sin
from random import Random

import numpy as np

from edgebox.scene.optics import Colour
from edgebox.scene.shapes import (
    Face,
    Hull,
    Lamp,
    Limb,
    Solid,
    across,
    block,
    extruded,
    face,
    on_side,
    on_sides,
    scaled,
)

_WALLS: tuple[Colour, ...] = (
    (178, 104, 82),
    (196, 152, 116),
    (214, 198, 168),
    (190, 180, 170),
    (226, 214, 196),
    (160, 128, 112),
    (148, 158, 166),
    (206, 176, 132),
    (176, 190, 186),
    (220, 186, 170),
    (130, 86, 74),
    (198, 204, 210),
)
_ROOFS: tuple[Colour, ...] = ((112, 70, 58), (86, 84, 90), (128, 92, 74), (70, 74, 84))
_AWNINGS: tuple[Colour, ...] = ((176, 54, 50), (48, 104, 92), (204, 150, 60), (58, 84, 140))
_PANES: tuple[Colour, ...] = ((70, 88, 104), (84, 104, 120), (62, 76, 92), (104, 124, 138))
_WARM: tuple[Colour, ...] = ((255, 214, 140), (252, 198, 112), (250, 226, 172))
_SIGN_WHITE: Colour = (240, 240, 236)
_LEAVES: tuple[Colour, ...] = (
    (74, 112, 58),
    (88, 126, 62),
    (62, 98, 60),
    (112, 132, 64),
    (150, 122, 56),
)


def _pane(rng: Random) -> tuple[Colour, bool]:
    """Return a window's colour, and whether a lamp burns behind it; most rooms are dark."""
    if rng.random() < 0.03:
        return rng.choice(_WARM), True
    return rng.choice(_PANES), False


def _windows(rng: Random, length: float, half: float, height: float, floor_m: float) -> list[Face]:
    """Return windows on the long sides and on both ends, above the ground floor."""
    faces = []
    wide, bay = rng.uniform(0.9, 1.5), rng.uniform(2.3, 3.2)
    tall = floor_m * rng.uniform(0.45, 0.62)
    trim = rng.choice(((232, 228, 220), (90, 84, 80), (206, 196, 180)))
    for floor in range(1, int(height / floor_m)):
        z = (floor * floor_m + 0.75, floor * floor_m + 0.75 + tall)
        frame_z = (z[0] - 0.12, z[1] + 0.12)
        for along in (length, half * 2):
            count = int((along - 1.0) / bay)
            for index in range(count):
                middle = (index - (count - 1) / 2) * bay
                span = (middle - wide / 2, middle + wide / 2)
                frame = (span[0] - 0.12, span[1] + 0.12)
                for sign in (0, 1):
                    colour, lit = _pane(rng)
                    if along == length:
                        side = (half, -half)[sign]
                        faces.append(on_side(frame, frame_z, side, trim))
                        faces.append(on_side(span, z, side, colour, lit))
                    else:
                        end = (sign - 0.5) * length
                        faces.append(across(end, frame, frame_z, trim))
                        faces.append(across(end, span, z, colour, lit))
    return faces


def _shop(rng: Random, length: float, half: float, floor_m: float) -> list[Face]:
    """Return a ground floor of shop windows under an awning."""
    accent = rng.choice(_AWNINGS)
    faces = on_sides(
        (-length / 2 + 0.2, length / 2 - 0.2), (0.1, floor_m - 0.3), half, (74, 70, 70)
    )
    x = -length / 2 + 0.5
    while x + 2.6 < length / 2:
        faces += on_sides((x, x + 2.4), (0.55, floor_m - 1.0), half, (150, 160, 150), True)
        x += 2.8
    faces += on_sides(
        (-length / 2 + 0.3, length / 2 - 0.3), (floor_m - 0.9, floor_m - 0.35), half, accent
    )
    return faces


def build_building(rng: Random, length_m: float) -> Solid:
    """Build a town house, a block of flats or an office of about the given frontage."""
    depth = rng.uniform(9, 14)
    half = depth / 2
    floor_m = rng.uniform(3.0, 3.6)
    storeys = rng.choices((2, 3, 4, 5, 7, 9), (2, 4, 4, 3, 2, 1))[0]
    height = storeys * floor_m + 0.6
    wall = rng.choice(_WALLS)
    faces = block((-length_m / 2, length_m / 2), half, (0.0, height), wall)
    faces += on_sides(
        (-length_m / 2, length_m / 2), (height - 0.45, height), half, scaled(wall, 1.12)
    )
    faces += on_sides((-length_m / 2, length_m / 2), (0.0, 0.5), half, scaled(wall, 0.7))
    faces += _windows(rng, length_m, half, height, floor_m)
    if rng.random() < 0.65:
        faces += _shop(rng, length_m, half, floor_m)
    else:
        faces += on_sides((-0.6, 0.6), (0.0, 2.3), half, (84, 60, 48))
    parts: list[Hull | Limb] = [Hull(tuple(faces))]
    if storeys <= 4 and rng.random() < 0.6:
        rise = rng.uniform(2.0, 3.6)
        gable = [(-half - 0.3, height), (0.0, height + rise), (half + 0.3, height)]
        parts.append(_gable_roof(gable, length_m / 2 + 0.2, rng.choice(_ROOFS)))
        height += rise
    else:
        hut = block((-1.6, 1.6), 1.4, (height, height + 1.6), scaled(wall, 0.85))
        parts.append(Hull(tuple(hut)))
    return Solid("building", tuple(parts), length_m, depth, height)


def _gable_roof(gable: list[tuple[float, float]], half_length: float, colour: Colour) -> Hull:
    """Return a pitched roof whose ridge runs along the road."""
    faces = extruded(gable, half_length, colour)
    return Hull(tuple(face([(y, x, z) for x, y, z in each.points], colour) for each in faces))


def build_tree(rng: Random) -> Solid:
    """Build a broad-leaved street tree."""
    height = rng.uniform(5.0, 9.0)
    crown = height * rng.uniform(0.26, 0.36)
    leaf = rng.choice(_LEAVES)
    parts: list[Hull | Limb] = [
        Limb((0, 0, 0), (0, 0, height * 0.55), 0.17, 0.11, (92, 74, 58)),
    ]
    for _ in range(rng.randrange(13, 19)):
        turn, out = rng.uniform(0, 2 * pi), crown * rng.uniform(0.1, 0.72)
        up = height * rng.uniform(0.5, 0.86)
        spot = (out * cos(turn), out * sin(turn), up)
        size = crown * rng.uniform(0.3, 0.52)
        shade = 0.72 + 0.4 * (up / height - 0.5) / 0.36 + rng.uniform(-0.08, 0.08)
        parts.append(Limb(spot, spot, size, size, scaled(leaf, shade)))
    return Solid("tree", tuple(parts), crown * 2, crown * 2, height)


def build_street_lamp(rng: Random) -> Solid:
    """Build a lamp post whose arm reaches to its left."""
    height = rng.uniform(6.5, 8.5)
    metal: Colour = rng.choice(((92, 98, 104), (64, 72, 70), (120, 124, 128)))
    head = block((-0.16, 0.16), 0.35, (height - 0.06, height + 0.08), (240, 236, 214))
    moved = [face([(x, y + 1.7, z) for x, y, z in each.points], each.colour, True) for each in head]
    parts = (
        Limb((0, 0, 0), (0, 0, 1.0), 0.11, 0.1, metal),
        Limb((0, 0, 1.0), (0, 0, height - 0.3), 0.075, 0.055, metal),
        Limb((0, 0, height - 0.3), (0, 1.5, height), 0.055, 0.05, metal),
        Hull(tuple(moved)),
    )
    lamps = (
        Lamp((0.0, 1.7, height), 1.0, (255, 226, 160)),
        Lamp((0.0, 1.7, height), -1.0, (255, 226, 160)),
    )
    return Solid("lamp", parts, 0.5, 4.2, height + 0.1, lamps)


def build_sign(rng: Random) -> Solid:
    """Build a road sign or a traffic light, facing backward (towards oncoming eyes)."""
    pole = Limb((0, 0, 0), (0, 0, 2.9), 0.045, 0.045, (132, 136, 140))
    if rng.random() < 0.5:
        faces = block((-0.12, 0.12), 0.17, (2.2, 3.2), (40, 42, 44))
        lit = rng.randrange(3)
        colours: tuple[Colour, ...] = ((60, 220, 110), (250, 180, 50), (240, 56, 48))
        for x in (0.12, -0.12):
            for index in range(3):
                z = 2.28 + index * 0.3
                colour = colours[index] if index == lit else scaled(colours[index], 0.28)
                faces.append(across(x, (-0.1, 0.1), (z, z + 0.22), colour, True))
        return Solid("traffic light", (pole, Hull(tuple(faces))), 0.4, 0.5, 3.3)
    board: Colour = rng.choice(((40, 84, 160), (200, 44, 44), (236, 236, 232), (44, 120, 84)))
    turns = np.linspace(0, 2 * pi, rng.choice((4, 8, 16)), endpoint=False) + pi / 4
    faces = []
    for x in (-0.06, 0.06):
        for radius, colour in ((0.36, board), (0.22, _SIGN_WHITE)):
            ys, zs = radius * np.cos(turns), 2.75 + radius * np.sin(turns)
            faces.append(face(zip(repeat(x), ys.tolist(), zs.tolist(), strict=False), colour))
    return Solid("sign", (pole, Hull(tuple(faces))), 0.3, 0.8, 3.15)

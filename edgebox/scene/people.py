"""The shapes of people: on foot, and on motorbikes.

Variety comes from the `random.Random` passed in; nothing else varies.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sin
from random import Random

import numpy as np

from edgebox.scene.optics import Colour
from edgebox.scene.shapes import (
    HUB,
    PAINTS,
    RED_LAMP,
    TYRE,
    WHITE_LAMP,
    Hull,
    Lamp,
    Limb,
    Solid,
    across,
    block,
    extruded,
    face,
    scaled,
)

GAIT_PHASES = 6

_CLOTHES: tuple[Colour, ...] = (
    (40, 46, 66),
    (58, 62, 72),
    (30, 30, 36),
    (176, 48, 52),
    (214, 208, 196),
    (62, 98, 148),
    (196, 150, 60),
    (76, 118, 88),
    (150, 92, 132),
    (228, 120, 72),
    (96, 84, 74),
    (120, 158, 188),
)
_SKINS: tuple[Colour, ...] = ((236, 196, 168), (214, 166, 132), (168, 118, 86), (110, 76, 56))
_HAIRS: tuple[Colour, ...] = ((42, 32, 28), (84, 56, 36), (168, 130, 76), (122, 118, 116))


def build_motorbike(rng: Random) -> Solid:
    """Build a motorbike or a scooter with its rider."""
    paint: Colour = rng.choice(PAINTS[5:])
    jacket, helmet = rng.choice(_CLOTHES), rng.choice((*PAINTS[:2], *PAINTS[5:]))
    trousers: Colour = rng.choice(((40, 44, 60), (34, 34, 38), (70, 66, 62)))
    wheel: list[Hull | Limb] = []
    for x in (-0.68, 0.7):
        turns = np.linspace(0, 2 * pi, 12, endpoint=False)
        rim = [(x + 0.31 * float(np.cos(a)), 0.31 + 0.31 * float(np.sin(a))) for a in turns]
        hub = [(x + 0.17 * float(np.cos(a)), 0.31 + 0.17 * float(np.sin(a))) for a in turns]
        faces = extruded(rim, 0.07, TYRE)
        faces += [face([(px, y, pz) for px, pz in hub], HUB) for y in (0.07, -0.07)]
        wheel.append(Hull(tuple(faces)))
    body = extruded(
        [(-0.85, 0.72), (-0.5, 0.4), (0.3, 0.32), (0.62, 0.8), (0.3, 0.98), (-0.8, 0.86)],
        0.15,
        paint,
    )
    body.append(across(-0.85, (-0.1, 0.1), (0.66, 0.76), RED_LAMP, True))
    shield = Hull(
        (
            *block((0.5, 0.66), 0.2, (0.72, 1.14), scaled(paint, 0.9)),
            across(0.66, (-0.11, 0.11), (0.84, 1.0), WHITE_LAMP, True),
        )
    )
    lean = rng.uniform(0.0, 0.2)
    chest = (0.0 + lean, 0.0, 1.38)
    rider: list[Hull | Limb] = [
        Limb((-0.25, 0, 0.92), chest, 0.19, 0.22, jacket),
        Limb((0.08 + lean, 0, 1.66), (0.1 + lean, 0, 1.69), 0.15, 0.15, helmet),
    ]
    for side in (0.2, -0.2):
        rider += [
            Limb((-0.2, side * 0.7, 0.9), (0.22, side * 1.2, 0.78), 0.11, 0.09, trousers),
            Limb((0.22, side * 1.2, 0.78), (0.02, side * 1.1, 0.34), 0.09, 0.07, trousers),
            Limb((lean, side * 1.1, 1.42), (0.52, side * 1.6, 1.08), 0.08, 0.06, jacket),
        ]
    parts = (*wheel, Hull(tuple(body)), shield, *rider)
    lamps = (Lamp((0.7, 0.0, 0.92), 1.0, WHITE_LAMP), Lamp((-0.86, 0.0, 0.7), -1.0, RED_LAMP))
    return Solid("motorbike", parts, 2.05, 0.75, 1.86, lamps, paint)


def build_person(rng: Random) -> tuple[Solid, ...]:
    """Build a pedestrian: one solid for each of the GAIT_PHASES of a stride."""
    height = rng.uniform(1.55, 1.9) if rng.random() > 0.12 else rng.uniform(1.05, 1.35)
    top, trousers = rng.choice(_CLOTHES), rng.choice(_CLOTHES[:3] + _CLOTHES[5:6] + _CLOTHES[10:11])
    skin, hair = rng.choice(_SKINS), rng.choice(_HAIRS)
    bag = rng.choice(_CLOTHES) if rng.random() < 0.35 else None
    clothes = _Clothes(top, trousers, skin, hair, bag, coat=rng.random() < 0.3)
    build = rng.uniform(0.9, 1.15)
    return tuple(
        _walker(phase / GAIT_PHASES, height / 1.75, build, clothes) for phase in range(GAIT_PHASES)
    )


@dataclass(frozen=True)
class _Clothes:
    """The appearance of a pedestrian."""

    top: Colour
    trousers: Colour
    skin: Colour
    hair: Colour
    bag: Colour | None
    coat: bool


def _walker(phase: float, size: float, build: float, clothes: _Clothes) -> Solid:
    top, trousers, skin, hair = clothes.top, clothes.trousers, clothes.skin, clothes.hair
    swing = 0.34 * sin(2 * pi * phase)
    wide = 0.1 * build
    parts: list[Hull | Limb] = []

    def limb(
        start: tuple[float, float, float],
        end: tuple[float, float, float],
        radii: tuple[float, float],
        colour: Colour,
    ) -> None:
        scaled = [(x * size, y * size, z * size) for x, y, z in (start, end)]
        parts.append(Limb(scaled[0], scaled[1], radii[0] * size, radii[1] * size, colour))

    for side, step in ((1, swing), (-1, -swing)):
        lift = 0.05 * max(0.0, -step)
        limb(
            (0, side * wide, 0.84), (step * 0.55, side * wide, 0.46), (0.1 * build, 0.075), trousers
        )
        limb(
            (step * 0.55, side * wide, 0.46),
            (step - 0.05, side * wide, 0.09 + lift),
            (0.075, 0.055),
            trousers,
        )
        limb(
            (step, side * wide, 0.05 + lift),
            (step + 0.1, side * wide, 0.05 + lift),
            (0.055, 0.05),
            (36, 34, 36),
        )
        limb(
            (0, side * (wide + 0.12), 1.36),
            (-step * 0.6, side * (wide + 0.16), 0.9),
            (0.07, 0.05),
            scaled(top, 0.9),
        )
        limb(
            (-step * 0.6, side * (wide + 0.16), 0.88),
            (-step * 0.62, side * (wide + 0.16), 0.84),
            (0.05, 0.05),
            skin,
        )
    hem = 0.55 if clothes.coat else 0.88
    for side in (1, -1):
        limb(
            (0, side * 0.07 * build, 1.34),
            (0, side * 0.08 * build, hem),
            (0.13 * build, 0.13 * build),
            top,
        )
    if clothes.bag is not None:
        limb((-0.2, 0, 1.3), (-0.22, 0, 1.05), (0.13, 0.15), clothes.bag)
    limb((0, 0, 1.46), (0.01, 0, 1.52), (0.06, 0.06), skin)
    limb((0.03, 0, 1.61), (0.03, 0, 1.65), (0.105, 0.11), skin)
    limb((-0.015, 0, 1.66), (-0.01, 0, 1.68), (0.11, 0.105), hair)
    return Solid("person", tuple(parts), 1.0 * size, 0.62 * size, 1.8 * size)

"""The shapes of cars, buses and trucks.

Variety comes from the `random.Random` passed in; nothing else varies.
"""

from __future__ import annotations

from random import Random

from edgebox.scene.optics import Colour
from edgebox.scene.shapes import (
    PAINTS,
    RED_LAMP,
    WHITE_LAMP,
    Face,
    Hull,
    Lamp,
    Solid,
    across,
    block,
    extruded,
    face,
    on_sides,
    scaled,
    underbody,
    wheels,
)

_GLASS: Colour = (58, 76, 92)
_GLASS_LIGHT: Colour = (112, 138, 156)
_TRAY: Colour = (214, 136, 40)


def _lamps(length: float, half_width: float, z: float) -> tuple[Lamp, ...]:
    return tuple(
        Lamp((facing * length / 2, side * (half_width - 0.28), z), facing, colour)
        for facing, colour in ((1.0, WHITE_LAMP), (-1.0, RED_LAMP))
        for side in (1, -1)
    )


def _car_body(length: float, half: float, belt: float, paint: Colour, sill: Colour) -> Hull:
    front, back = length / 2, -length / 2
    profile = [
        (back + 0.06, 0.24),
        (back, 0.55),
        (back + 0.07, belt - 0.03),
        (back + 0.25, belt),
        (front - 1.15, belt),
        (front - 0.16, belt - 0.2),
        (front, belt - 0.4),
        (front - 0.06, 0.24),
    ]
    faces = extruded(profile, half, paint)
    faces += on_sides((back + 0.12, front - 0.12), (0.24, 0.36), half, sill)
    for x in (-0.12 * length, 0.13 * length):
        faces += on_sides((x, x + 0.03), (0.4, belt - 0.02), half, scaled(paint, 0.72))
    faces += on_sides(
        (-0.02 * length, 0.02 * length), (belt - 0.16, belt - 0.11), half, scaled(paint, 0.62)
    )
    faces += wheels((back + 0.19 * length, front - 0.19 * length), 0.33, half)
    for x, lamp, lower in ((front, WHITE_LAMP, (70, 74, 80)), (back, RED_LAMP, sill)):
        faces.append(across(x, (-half + 0.1, half - 0.1), (0.27, 0.42), lower))
        faces.append(across(x, (-0.26, 0.26), (0.44, 0.55), (226, 226, 214)))
        for side in (1, -1):
            spread = (side * (half - 0.06), side * (half - 0.46))
            faces.append(across(x, spread, (0.56, belt - 0.24), lamp, shines=True))
    return Hull(tuple(faces))


def _greenhouse(
    foot: tuple[float, float],
    roof: tuple[float, float],
    half: float,
    z: tuple[float, float],
    paint: Colour,
) -> Hull:
    """Return cabin glass and roof: narrower at the top, foot and roof span x forward."""
    low, high = half * 0.95, half * 0.76
    bottom, top = z
    (fx0, fx1), (rx0, rx1) = foot, roof
    faces = [
        face([(rx0, -high, top), (rx1, -high, top), (rx1, high, top), (rx0, high, top)], paint),
        face([(fx1, -low, bottom), (rx1, -high, top), (rx1, high, top), (fx1, low, bottom)], paint),
        face([(fx0, -low, bottom), (rx0, -high, top), (rx0, high, top), (fx0, low, bottom)], paint),
    ]
    faces += [
        face(
            [
                (fx0, side * low, bottom),
                (rx0, side * high, top),
                (rx1, side * high, top),
                (fx1, side * low, bottom),
            ],
            paint,
        )
        for side in (1, -1)
    ]
    return Hull((*faces, *_cabin_glass(foot, roof, (low, high), z)))


def _cabin_glass(
    foot: tuple[float, float],
    roof: tuple[float, float],
    halves: tuple[float, float],
    z: tuple[float, float],
) -> list[Face]:
    (fx0, fx1), (rx0, rx1), (low, high), (bottom, top) = foot, roof, halves, z
    height = top - bottom

    def on_end(
        foot_x: float, roof_x: float, inset: float, share: tuple[float, float], colour: Colour
    ) -> Face:
        corners = []
        for level, sign in ((0, -1), (1, -1), (1, 1), (0, 1)):
            part = share[level]
            wide = low + (high - low) * part - inset
            corners.append((foot_x + (roof_x - foot_x) * part, sign * wide, bottom + height * part))
        return face(corners, colour)

    def on_side(side: int, span: tuple[float, float], colour: Colour) -> Face:
        corners = []
        for level, at in ((0.08, 0), (0.86, 0), (0.86, 1), (0.08, 1)):
            left = fx0 + (rx0 - fx0) * level
            right = fx1 + (rx1 - fx1) * level
            wide = low + (high - low) * level
            corners.append((left + (right - left) * span[at], side * wide, bottom + height * level))
        return face(corners, colour)

    glass = [
        on_end(fx1, rx1, 0.08, (0.06, 0.9), _GLASS),
        on_end(fx1, rx1, 0.16, (0.55, 0.84), _GLASS_LIGHT),
        on_end(fx0, rx0, 0.12, (0.12, 0.86), _GLASS),
    ]
    for side in (1, -1):
        glass += [
            on_side(side, (0.06, 0.5), _GLASS),
            on_side(side, (0.54, 0.94), _GLASS),
            on_side(side, (0.62, 0.74), _GLASS_LIGHT),
        ]
    return glass


def build_car(rng: Random) -> Solid:
    """Build a hatchback, a saloon, an estate, a people carrier or a taxi."""
    styles = ("hatch", "saloon", "estate", "suv", "carrier", "taxi")
    style = rng.choices(styles, (5, 4, 3, 5, 2, 1))[0]
    paint: Colour = (236, 190, 40) if style == "taxi" else rng.choice(PAINTS)
    length = {"hatch": 3.9, "saloon": 4.6, "estate": 4.6, "suv": 4.5, "carrier": 4.7, "taxi": 4.6}[
        style
    ] + rng.uniform(-0.15, 0.15)
    height = {
        "hatch": 1.48,
        "saloon": 1.42,
        "estate": 1.46,
        "suv": 1.7,
        "carrier": 1.82,
        "taxi": 1.45,
    }[style]
    belt = 0.9 if height < 1.6 else 1.05
    half = 0.89 + rng.uniform(-0.03, 0.05)
    back, front = -length / 2, length / 2
    foot_back = back + (0.75 if style in ("saloon", "taxi") else 0.06)
    roof_back = foot_back + (0.55 if style in ("saloon", "taxi") else 0.28)
    foot_front = front - (0.75 if style == "carrier" else 1.1)
    roof_front = foot_front - (0.75 if style != "suv" else 0.6)
    sill = scaled(paint, 0.45)
    parts = [
        underbody((back + 0.19 * length, front - 0.19 * length), half, 0.3),
        _car_body(length, half, belt, paint, sill),
        _greenhouse((foot_back, foot_front), (roof_back, roof_front), half, (belt, height), paint),
    ]
    if style == "taxi":
        parts.append(
            Hull(tuple(block((-0.1, 0.15), 0.32, (height, height + 0.16), (250, 246, 220))))
        )
        height += 0.16
    lamps = _lamps(length, half, 0.62)
    return Solid("car", tuple(parts), length, half * 2, height, lamps, paint)


def _bus_windows(back: float, front: float, half: float, z: tuple[float, float]) -> list[Face]:
    faces = on_sides((back + 0.3, front - 0.15), z, half, (34, 40, 48))
    count = int((front - back - 1.0) / 1.35)
    for index in range(count):
        x = back + 0.45 + index * 1.35
        faces += on_sides((x, x + 1.2), (z[0] + 0.06, z[1] - 0.06), half, (92, 116, 132), True)
        faces += on_sides((x + 0.15, x + 0.5), (z[0] + 0.4, z[1] - 0.06), half, (138, 162, 176))
    return faces


def build_bus(rng: Random) -> Solid:
    """Build a city bus or a double-decker."""
    double = rng.random() < 0.25
    length = 10.6 if double else rng.choice((10.5, 12.0))
    height, half = (4.3, 1.26) if double else (rng.uniform(3.0, 3.2), 1.27)
    paint: Colour = rng.choice(
        (
            (196, 36, 40),
            (232, 160, 36),
            (40, 110, 176),
            (46, 140, 96),
            (228, 230, 226),
            (224, 224, 230),
            (120, 60, 130),
        )
    )
    if double:
        paint = (186, 28, 34)
    stripe: Colour = rng.choice(((240, 240, 236), (36, 60, 110), (250, 210, 60), (60, 60, 66)))
    back, front = -length / 2, length / 2
    faces = block((back, front), half, (0.32, height), paint)
    faces += on_sides((back + 0.1, front - 0.1), (0.32, 0.62), half, scaled(paint, 0.6))
    faces += on_sides((back + 0.05, front - 0.05), (0.98, 1.12), half, stripe)
    for floor in (1.35, 2.95) if double else (1.35,):
        faces += _bus_windows(back, front, half, (floor, floor + (0.95 if double else 1.2)))
    faces += on_sides((front - 1.5, front - 0.45), (0.45, 2.3), half, (58, 72, 84))
    faces += on_sides((front - 1.0, front - 0.95), (0.45, 2.3), half, paint)
    faces += wheels((back + 0.24 * length, front - 0.24 * length), 0.5, half)
    faces.append(across(front, (-half + 0.1, half - 0.1), (1.05, 2.45), _GLASS))
    faces.append(across(front, (-half + 0.25, -0.2), (1.7, 2.35), _GLASS_LIGHT))
    faces.append(across(front, (-half + 0.3, half - 0.3), (2.5, 2.85), (24, 24, 26)))
    faces.append(across(front, (-0.6, 0.6), (2.57, 2.78), (255, 186, 60), True))
    faces.append(across(back, (-half + 0.25, half - 0.25), (1.7, 2.6), _GLASS))
    faces.append(across(back, (-half + 0.3, half - 0.3), (0.8, 1.4), scaled(paint, 0.7)))
    if double:
        faces += [
            across(x, (-half + 0.15, half - 0.15), (3.0, 3.95), _GLASS) for x in (front, back)
        ]
    for x, lamp in ((front, WHITE_LAMP), (back, RED_LAMP)):
        faces += [
            across(x, (s * (half - 0.1), s * (half - 0.5)), (0.6, 0.85), lamp, True)
            for s in (1, -1)
        ]
    under = underbody((back + 0.24 * length, front - 0.24 * length), half, 0.4)
    parts, lamps = (under, Hull(tuple(faces))), _lamps(length, half, 0.75)
    return Solid("bus", parts, length, half * 2, height, lamps, paint)


def _truck_cab(span: tuple[float, float], half: float, height: float, paint: Colour) -> Hull:
    back, front = span
    profile = [
        (back, 0.4),
        (back, height),
        (front - 0.35, height),
        (front, height * 0.55),
        (front, 0.4),
    ]
    faces = extruded(profile, half, paint)
    slope_z = (height * 0.58, height - 0.12)
    slope_x = (front - 0.03, front - 0.28)
    faces.append(
        face(
            [
                (slope_x[0], -half + 0.12, slope_z[0]),
                (slope_x[1], -half + 0.16, slope_z[1]),
                (slope_x[1], half - 0.16, slope_z[1]),
                (slope_x[0], half - 0.12, slope_z[0]),
            ],
            _GLASS,
        )
    )
    faces += on_sides((back + 0.5, front - 0.3), (height * 0.56, height - 0.25), half, _GLASS)
    faces += on_sides((back + 0.45, back + 0.48), (0.6, height * 0.9), half, scaled(paint, 0.7))
    faces.append(across(front, (-half + 0.3, half - 0.3), (0.85, height * 0.5), (58, 60, 66)))
    faces.append(across(front, (-half + 0.05, half - 0.05), (0.4, 0.62), (48, 50, 56)))
    faces += [
        across(front, (s * (half - 0.08), s * (half - 0.45)), (0.64, 0.84), WHITE_LAMP, True)
        for s in (1, -1)
    ]
    faces += wheels((front - 0.75,), 0.46, half)
    return Hull(tuple(faces))


def _truck_cargo(
    style: str, span: tuple[float, float], half: float, top: float, rng: Random
) -> tuple[list[Hull], Colour | None]:
    """Return the parts behind the cab, and the paint of a box or a tray."""
    back, front = span
    body: Colour = rng.choice(
        (
            (226, 228, 228),
            (214, 214, 208),
            (60, 96, 150),
            (170, 60, 50),
            (206, 150, 60),
            (90, 120, 96),
        )
    )
    chassis: Colour = (54, 56, 62)
    under = block((back, front + 0.3), half - 0.15, (0.45, 1.0), chassis)
    under += wheels((back + 0.8, back + 1.9), 0.46, half - 0.14)
    if style == "box":
        load = block((back, front), half, (0.98, top), body)
        accent: Colour = rng.choice(((200, 60, 50), (40, 90, 160), (240, 180, 50), (60, 130, 90)))
        load += on_sides((back + 0.6, front - 0.6), (1.5, 1.95), half, accent)
        load += on_sides((back + 1.0, front - 2.0), (2.15, 2.75), half, scaled(accent, 0.75))
        load.append(across(back, (-half + 0.1, half - 0.1), (1.1, top - 0.12), scaled(body, 0.9)))
        load.append(across(back, (-0.03, 0.03), (1.1, top - 0.12), scaled(body, 0.5)))
    elif style == "tipper":
        profile = [
            (back - 0.1, 1.0),
            (back - 0.3, top - 0.9),
            (front + 0.1, top - 0.7),
            (front, 1.0),
        ]
        body = _TRAY
        load = extruded(profile, half, body)
        for index in range(4):
            x = back + 0.3 + index * (front - back) / 4
            load += on_sides((x, x + 0.14), (1.0, top - 0.85), half, (168, 102, 30))
    else:
        load = block((back, front), half, (0.98, 1.25), (110, 86, 62))
        load += block((back + 0.5, front - 0.9), half - 0.25, (1.25, top - 1.0), (168, 132, 88))
    tail = [
        across(back, (s * (half - 0.2), s * (half - 0.55)), (0.68, 0.9), RED_LAMP, True)
        for s in (1, -1)
    ]
    painted = None if style == "flat" else body
    return [Hull(tuple(under + tail)), Hull(tuple(load))], painted


def build_truck(rng: Random) -> Solid:
    """Build a lorry: a cab and a box, a tipper's tray or a flat bed with a load."""
    style = rng.choice(("box", "box", "tipper", "flat"))
    length = rng.uniform(7.0, 9.5) if style != "box" else rng.uniform(6.5, 11.5)
    half, top = 1.24, rng.uniform(3.2, 3.8)
    cab_length, cab_height = 2.0, rng.uniform(2.5, 2.9)
    front = length / 2
    paint: Colour = rng.choice(PAINTS)
    cab = _truck_cab((front - cab_length, front), half - 0.04, cab_height, paint)
    cargo, cargo_paint = _truck_cargo(style, (-front, front - cab_length - 0.35), half, top, rng)
    height = top if style == "box" else max(cab_height, top - 0.7)
    under = underbody((-front + 0.8, front - 0.75), half - 0.2, 0.5)
    parts, lamps = (under, *cargo, cab), _lamps(length, half, 0.75)
    return Solid("truck", parts, length, half * 2, height, lamps, cargo_paint or paint)

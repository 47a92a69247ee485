"""Decides which weights an executor's memory shall hold, and which give way to which.

Pure. In this order, each as far as the memory goes: the smallest weights of every family, so that
nobody's frame ever has nothing to run on; those in the plan, chosen so that most cameras get
what they were given and least must be loaded for it; their neighbours in size, nearest first, which
the next plan is most likely to name; and what is there anyway.

Source: Jellyfish, section 4.4, which prefetches neighbours and matches the old and the new set of
models in sorted order, because each of its workers holds one model. Here an executor holds many,
so what is in both sets stays where it is, the fewest loads there can be, and only the rest is
matched in sorted order: of all pairings that has the least total distance (the rearrangement
inequality), and until its partner is loaded the old one is the nearest thing there is.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from edgebox.domain.model_family import FamilyName, Weights, WeightsId

Cameras = Mapping[WeightsId, int]
"""How many cameras the plan has put on which weights."""


def smallest(weights: Sequence[Weights]) -> list[Weights]:
    """Return the weights of every family that always stay: those of its smallest variant."""
    first: dict[FamilyName, Weights] = {}
    for each in sorted(weights, key=_size):
        first.setdefault(each.family, each)
    return list(first.values())


def hold(
    weights: Sequence[Weights], cameras: Cameras, resident: Collection[WeightsId], limit_bytes: int
) -> list[WeightsId]:
    """Return what the memory shall hold, the most needed first.

    O(n log n) but for the choice between weights of a plan that do not fit together.
    """
    held = smallest(weights)
    left_bytes = limit_bytes - sum(each.size_bytes for each in held)
    wanted = [each for each in weights if cameras.get(each.id) and each not in held]
    chosen = serving_most(wanted, cameras, resident, left_bytes)
    held += chosen
    left_bytes -= sum(each.size_bytes for each in chosen)
    distance = _distances(weights, [each for each in held if cameras.get(each.id)])
    rest = [
        each
        for each in weights
        if each not in held and (each.id in distance or each.id in resident)
    ]
    far = len(weights)
    rest.sort(key=lambda w: (distance.get(w.id, far), w.id not in resident, _size(w)))
    for each in rest:
        if each.size_bytes <= left_bytes:
            held.append(each)
            left_bytes -= each.size_bytes
    return [each.id for each in held]


@dataclass(frozen=True, slots=True)
class Fit:
    """What of all weights an executor can ever hold."""

    kept: tuple[Weights, ...]
    left_out: tuple[Weights, ...]
    any_bytes: int
    """The least limit with which nothing is left out."""
    all_bytes: int
    """The limit with which all are in memory at once."""


def fitting(weights: Sequence[Weights], limit_bytes: int) -> Fit:
    """Decide what stays out because it fits beside nothing else that must stay.

    Args:
        weights: by family, the most important family first: where not even the smallest of each
            family fit together, the last families go.
        limit_bytes: of the executor.
    """
    must = smallest(weights)
    order = list(dict.fromkeys(each.family for each in weights))
    floor: list[Weights] = []
    for each in sorted(must, key=lambda w: order.index(w.family)):
        if sum(w.size_bytes for w in (*floor, each)) <= limit_bytes:
            floor.append(each)
    left_bytes = limit_bytes - sum(each.size_bytes for each in floor)
    families = {each.family for each in floor}
    kept = [
        each
        for each in weights
        if each in floor or (each.family in families and each.size_bytes <= left_bytes)
    ]
    more = (each.size_bytes for each in weights if each not in must)
    return Fit(
        tuple(kept),
        tuple(each for each in weights if each not in kept),
        sum(each.size_bytes for each in must) + max(more, default=0),
        sum(each.size_bytes for each in weights),
    )


def serving_most(
    wanted: Sequence[Weights], cameras: Cameras, resident: Collection[WeightsId], limit_bytes: int
) -> list[Weights]:
    """Return those of a plan's weights that fit together and serve most cameras.

    Of equals the choice with the fewest bytes to load. Exact: a knapsack over the undominated
    (bytes, value) pairs, at most 2^n of them for n weights, of which plans name a handful.
    """
    choices: list[tuple[int, tuple[int, int], tuple[Weights, ...]]] = [(0, (0, 0), ())]
    for each in sorted(wanted, key=lambda w: (-cameras[w.id], _size(w))):
        load_bytes = 0 if each.id in resident else each.size_bytes
        choices += [
            (
                used + each.size_bytes,
                (value[0] + cameras[each.id], value[1] - load_bytes),
                (*of, each),
            )
            for used, value, of in choices
            if used + each.size_bytes <= limit_bytes
        ]
        choices.sort(key=lambda choice: (choice[0], (-choice[1][0], -choice[1][1])))
        undominated = choices[:1]
        for choice in choices[1:]:
            if choice[1] > undominated[-1][1]:
                undominated.append(choice)
        choices = undominated
    return list(max(choices, key=lambda choice: choice[1])[2])


def matched(old: Collection[Weights], new: Collection[Weights]) -> dict[WeightsId, WeightsId]:
    """Return which of the old weights each of the new ones takes the place of.

    What is in both stays; of the rest both are sorted by falling size and paired in order.
    """
    leaving = sorted((w for w in old if w not in new), key=_size, reverse=True)
    coming = sorted((w for w in new if w not in old), key=_size, reverse=True)
    return {to.id: of.id for of, to in zip(leaving, coming, strict=False)}


def _size(weights: Weights) -> tuple[int, int, WeightsId]:
    return weights.pixels, weights.size_bytes, weights.id


def _distances(weights: Sequence[Weights], used: Sequence[Weights]) -> dict[WeightsId, int]:
    """Return how many steps of its family's ladder each is from the nearest that is used."""
    ladders: dict[FamilyName, list[Weights]] = defaultdict(list)
    for each in sorted(weights, key=_size):
        ladders[each.family].append(each)
    out: dict[WeightsId, int] = {}
    for ladder in ladders.values():
        places = [at for at, each in enumerate(ladder) if each in used]
        if places:
            out |= {w.id: min(abs(at - p) for p in places) for at, w in enumerate(ladder)}
    return out

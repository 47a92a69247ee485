"""Decides which weights an executor's memory holds, and which of them replace which.

Pure. Memory is filled in this order: the smallest weights of every family, so that every frame has
something to run on; the weights in the plan, chosen so that most cameras get what the plan gave
them and the fewest bytes must be loaded; their neighbours in size, nearest first, which the next
plan is most likely to use; and what is in memory already.

Source: Jellyfish, section 4.4, which prefetches neighbours and matches the old and the new set of
models in sorted order, because each of its workers holds one model. Here an executor holds many.
What is in both sets stays in place, which gives the fewest loads, and only the rest is matched in
sorted order. Of all pairings that has the least total distance (rearrangement inequality), and
until the new weights are loaded the old ones are the nearest in size.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from edgebox.domain.model_family import FamilyName, Weights, WeightsId

Cameras = Mapping[WeightsId, int]
"""The number of cameras that the plan has assigned to each weights."""


def smallest(weights: Sequence[Weights]) -> list[Weights]:
    """Return the weights of every family that always stay: those of its smallest variant."""
    first: dict[FamilyName, Weights] = {}
    for each in sorted(weights, key=_size):
        first.setdefault(each.family, each)
    return list(first.values())


def choose_resident(
    weights: Sequence[Weights], cameras: Cameras, resident: Collection[WeightsId], limit_bytes: int
) -> list[WeightsId]:
    """Return the weights to hold in memory, the most needed first.

    O(n log n) except for the choice between weights of a plan that do not fit together.
    """
    held = smallest(weights)
    left_bytes = limit_bytes - sum(each.size_bytes for each in held)
    wanted = [each for each in weights if cameras.get(each.id) and each not in held]
    chosen = serving_most_cameras(wanted, cameras, resident, left_bytes)
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
    """The weights that an executor can hold at all."""

    kept: tuple[Weights, ...]
    left_out: tuple[Weights, ...]
    any_bytes: int
    """The smallest limit with which nothing is left out."""
    all_bytes: int
    """The limit with which all are in memory at once."""


def fit_to_memory(weights: Sequence[Weights], limit_bytes: int) -> Fit:
    """Decide which weights to leave out because they fit beside nothing else that must stay.

    Args:
        weights: by family, the most important family first: if not even the smallest weights of all
            families fit together, the last families are left out.
        limit_bytes: the executor's limit.
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


def serving_most_cameras(
    wanted: Sequence[Weights], cameras: Cameras, resident: Collection[WeightsId], limit_bytes: int
) -> list[Weights]:
    """Return the weights of a plan that fit together and serve most cameras.

    Ties are broken by the fewest bytes to load. Exact: a knapsack over the undominated (bytes,
    value) pairs, at most 2^n of them for n weights, of which plans name only a few.
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
    """Return which of the old weights each of the new ones replaces.

    What is in both sets stays; the rest of both is sorted by falling size and paired in order.
    """
    leaving = sorted((w for w in old if w not in new), key=_size, reverse=True)
    coming = sorted((w for w in new if w not in old), key=_size, reverse=True)
    return {to.id: of.id for of, to in zip(leaving, coming, strict=False)}


def _size(weights: Weights) -> tuple[int, int, WeightsId]:
    return weights.pixels, weights.size_bytes, weights.id


def _distances(weights: Sequence[Weights], used: Sequence[Weights]) -> dict[WeightsId, int]:
    """Return how many rungs of its family's ladder each is from the nearest one in use."""
    ladders: dict[FamilyName, list[Weights]] = defaultdict(list)
    for each in sorted(weights, key=_size):
        ladders[each.family].append(each)
    out: dict[WeightsId, int] = {}
    for ladder in ladders.values():
        places = [at for at, each in enumerate(ladder) if each in used]
        if places:
            out |= {w.id: min(abs(at - p) for p in places) for at, w in enumerate(ladder)}
    return out

"""What a memory holds, with brute force as the judge."""

from collections.abc import Iterable
from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import FamilyName, VariantName, Weights, WeightsId
from edgebox.scheduling.weight_placement import (
    choose_resident,
    fit_to_memory,
    matched,
    serving_most_cameras,
    smallest,
)


def weights(at: int, size: int, family: str = "f", pixels: int | None = None) -> Weights:
    name = f"{family}/{at}"
    return Weights(
        WeightsId(name),
        FamilyName(family),
        size,
        1000 * (at + 1) if pixels is None else pixels,
        (VariantName(name),),
    )


@st.composite
def stocks(draw: st.DrawFn) -> list[Weights]:
    sizes = st.lists(st.integers(1, 9), min_size=1, max_size=4)
    families = [draw(sizes) for _ in range(draw(st.integers(1, 2)))]
    return [
        weights(at, size, f"f{number}")
        for number, of in enumerate(families)
        for at, size in enumerate(of)
    ]


def total(of: Iterable[Weights]) -> int:
    return sum(each.size_bytes for each in of)


def subsets(of: list[Weights]) -> Iterable[tuple[Weights, ...]]:
    return (each for n in range(len(of) + 1) for each in combinations(of, n))


@given(stocks(), st.data())
def test_most_cameras_are_served_and_least_is_loaded_for_it(
    stock: list[Weights], data: st.DataObject
) -> None:
    cameras = {each.id: data.draw(st.integers(1, 4)) for each in stock}
    resident = {each.id for each in stock if data.draw(st.booleans())}
    limit = data.draw(st.integers(0, 30))

    def value(of: Iterable[Weights]) -> tuple[int, int]:
        of = list(of)
        load = total(each for each in of if each.id not in resident)
        return sum(cameras[each.id] for each in of), -load

    chosen = serving_most_cameras(stock, cameras, resident, limit)
    assert total(chosen) <= limit
    assert value(chosen) == max(value(of) for of in subsets(stock) if total(of) <= limit)


@given(stocks(), st.data())
def test_what_is_held_fits_and_begins_with_what_everybody_can_run_on(
    stock: list[Weights], data: st.DataObject
) -> None:
    floor = smallest(stock)
    assert {each.family for each in floor} == {each.family for each in stock}
    cameras = {each.id: data.draw(st.integers(0, 3)) for each in stock}
    limit = total(floor) + data.draw(st.integers(0, 30))
    resident = {each.id for each in floor} | {each.id for each in stock if data.draw(st.booleans())}
    held = choose_resident(stock, cameras, resident, limit)
    of = {each.id: each for each in stock}
    assert len(held) == len(set(held))
    assert total(of[each] for each in held) <= limit
    assert held[: len(floor)] == [each.id for each in floor]
    # If a plan fits, it is held whole: the fewest loads are those of what is not there.
    wanted = [each for each in stock if cameras[each.id]]
    if total({*floor, *wanted}) <= limit:
        assert {each.id for each in wanted} <= set(held)
        # A neighbour that is left out would not fit beside those before it.
        for each in stock:
            served = any(w.family == each.family for w in wanted)
            if (served or each.id in resident) and each.id not in held:
                assert total(of[other] for other in held) + each.size_bytes > limit or any(
                    total(of[other] for other in held[:at]) + each.size_bytes <= limit
                    for at in range(len(held))
                )


def test_neighbours_come_in_the_order_of_their_distance() -> None:
    stock = [weights(at, 1) for at in range(7)]
    cameras = {stock[4].id: 2}
    assert choose_resident(stock, cameras, (), 4) == ["f/0", "f/4", "f/3", "f/5"]
    # Of two that are as near, the one that is there: nothing has to be loaded for it.
    assert choose_resident(stock, cameras, (stock[5].id,), 3) == ["f/0", "f/4", "f/5"]
    # Of what is not near, what is there stays while there is room.
    assert choose_resident(stock, {}, (stock[6].id,), 3) == ["f/0", "f/6"]


@given(
    st.lists(st.integers(0, 30), unique=True, min_size=1, max_size=5),
    st.lists(st.integers(0, 30), unique=True, min_size=1, max_size=5),
)
def test_what_changes_is_matched_at_the_least_distance(old: list[int], new: list[int]) -> None:
    before, after = [weights(at, 1) for at in old], [weights(at, 1) for at in new]
    pairs = matched(before, after)
    of = {each.id: each.pixels for each in (*before, *after)}
    leaving = [at for at in old if at not in new]
    coming = [at for at in new if at not in old]
    assert not set(pairs) & {each.id for each in before}  # what is in both stays
    assert len(pairs) == min(len(leaving), len(coming))
    if len(leaving) != len(coming) or not leaving:
        return
    best = min(
        sum(abs(a - b) for a, b in zip(leaving, order, strict=True))
        for order in permutations(coming)
    )
    assert sum(abs(of[a] - of[b]) for a, b in pairs.items()) == 1000 * best


@given(stocks(), st.integers(0, 40))
def test_what_is_left_out_at_the_start_can_never_be_held(stock: list[Weights], limit: int) -> None:
    fit = fit_to_memory(stock, limit)
    assert sorted((*fit.kept, *fit.left_out), key=lambda w: w.id) == sorted(
        stock, key=lambda w: w.id
    )
    floor = smallest(fit.kept)
    for each in fit.kept:
        assert total({*floor, each}) <= limit
    for each in fit.left_out:
        of_kept_family = any(each.family == other.family for other in floor)
        assert not of_kept_family or total({*floor, each}) > limit
    assert fit_to_memory(stock, fit.any_bytes).left_out == ()
    assert fit.any_bytes == 0 or fit_to_memory(stock, fit.any_bytes - 1).left_out
    everything = dict.fromkeys((each.id for each in stock), 1)
    assert len(choose_resident(stock, everything, (), fit.all_bytes)) == len(stock)

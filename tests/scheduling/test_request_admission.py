"""Which variant a frame runs on, against looking at every variant that it may run on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.domain.requests import Camera
from edgebox.scheduling.expectations import Expectations, SingleRequestTimes
from edgebox.scheduling.request_admission import choose_variant
from tests.scheduling.scene import camera as a_camera
from tests.scheduling.scene import request

SIDES = st.sampled_from([128, 192, 256, 320])


class Known:
    """Expected times that are given."""

    def __init__(self, usual_ns: Mapping[VariantName, int]) -> None:
        self._usual_ns = usual_ns

    def single_request(self, variant: VariantName, app: str) -> SingleRequestTimes | None:
        usual_ns = self._usual_ns.get(variant)
        return None if usual_ns is None else SingleRequestTimes(usual_ns, usual_ns, usual_ns)


@st.composite
def ladders(draw: st.DrawFn) -> list[Variant]:
    """Variants from the smallest to the largest, which need not be more and more accurate."""
    sides = sorted(draw(st.lists(st.tuples(SIDES, SIDES), max_size=5)), key=lambda s: s[0] * s[1])
    return [
        Variant(
            VariantName(f"v{at}"), FamilyName("street"), *px, draw(st.sampled_from([0.3, 0.5, 0.7]))
        )
        for at, px in enumerate(sides)
    ]


def by_looking_at_all(
    camera: Camera,
    assigned: VariantName,
    ladder: Sequence[Variant],
    usual_ns: Mapping[VariantName, int],
) -> VariantName | None:
    names = [variant.name for variant in ladder]
    if assigned not in names:
        return None
    top = names.index(assigned)
    floor = min(camera.min_accuracy, ladder[top].accuracy)
    chosen = None
    for variant in ladder[: top + 1]:
        if variant.accuracy < floor:
            continue
        if usual_ns.get(variant.name, 10**9) <= 100:
            chosen = variant.name
        if variant.covers(200, 150):
            break
    return chosen


@given(ladders(), st.data())
def test_the_largest_that_fits_and_is_not_more_than_enough(
    ladder: list[Variant], data: st.DataObject
) -> None:
    usual_ns = {
        variant.name: data.draw(st.integers(50, 150))
        for variant in ladder
        if data.draw(st.booleans())
    }
    assigned = data.draw(st.sampled_from([VariantName(f"v{at}") for at in range(6)]))
    of = replace(a_camera(), min_accuracy=data.draw(st.sampled_from([0.0, 0.4, 0.6])))
    frame = request(1, 200, size=(200, 150))
    found = choose_variant(
        frame,
        of,
        assigned,
        ladder,
        expectations=cast(Expectations, Known(usual_ns)),
        time_left_ns=100,
    )
    assert found == by_looking_at_all(of, assigned, ladder, usual_ns)

"""What a camera runs on that is given another family, until the next plan."""

from collections.abc import Sequence
from dataclasses import replace

from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.scheduling.adaptation import NEW_FAMILY_REASON
from edgebox.scheduling.events import (
    CameraChanged,
    CameraConnected,
    ExecutorStarted,
    VariantsAvailable,
)
from tests.scheduling.scene import (
    CPU,
    FAMILY,
    MEDIAN_MS,
    MS,
    Bench,
    camera,
    name,
    profile,
    request,
)
from tests.scheduling.test_adaptation import advice, planned, snapshots

OTHER = FamilyName("other")


def of_other(px: int) -> VariantName:
    return VariantName(f"{OTHER}-{px}")


def other_families(sizes_px: Sequence[int]) -> Bench:
    """Return a box that has another family in memory, too, with variants of some sizes."""
    bench = Bench([])
    others = [replace(v, family=OTHER, name=of_other(v.width_px)) for v in FAMILY]
    bench(VariantsAvailable((*FAMILY, *others)), 0)
    profiles = [profile(px) for px in MEDIAN_MS]
    profiles += [replace(profile(px), variant=of_other(px)) for px in sizes_px]
    bench(ExecutorStarted(CPU, tuple(profiles)), 0)
    return bench


def test_a_camera_of_another_family_is_served_like_a_new_one_until_it_is_planned() -> None:
    bench = other_families([*MEDIAN_MS])
    bench(CameraConnected(camera(slo_ms=60)), 0)
    bench(planned(256), 1)
    changed = bench(CameraChanged(replace(camera(slo_ms=60), family=OTHER)), 2)
    assert [(one.variant, one.reason) for one in advice(changed)] == [
        (of_other(320), NEW_FAMILY_REASON)
    ]
    (snapshot,) = snapshots(changed)
    (seen,) = snapshot.snapshot.cameras
    assert seen.current is not None
    assert seen.current.variant == of_other(320)
    # Also frames that were sent for a variant of the family before.
    for number, advised in enumerate((name(256), of_other(320)), start=1):
        sent = request(number, 400, arrival_ms=3, size=(608, 342), advised=advised)
        assert bench.scheduler.admission.choose(sent, 3 * MS) == of_other(320)


def test_a_camera_of_a_family_that_is_not_loaded_is_advised_when_it_is() -> None:
    bench = other_families([])
    bench(CameraConnected(camera()), 0)
    bench(planned(256), 1)
    assert advice(bench(CameraChanged(replace(camera(), family=OTHER)), 2)) == []
    assert bench.scheduler.assignments == {}
    loaded = (profile(128), replace(profile(128), variant=of_other(128)))
    assert [one.variant for one in advice(bench(ExecutorStarted(CPU, loaded), 3))] == [
        of_other(128)
    ]
